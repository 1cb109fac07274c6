// SPDX-License-Identifier: BSD-3-Clause
/*
 * A plain TUN/UDP forwarder: no scheduler, no offloads, one packet per system call, each copied into newly allocated
 * memory. It shows the cost of a tunnel that does nothing else.
 *
 *     plain DEVICE LOCAL PEER PORT        makes the device, whose address must then be set, and forwards packets
 */
#include "udp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BATCH = 64, LARGEST = 65536, RECEIVE_BYTES = 4 << 20 };

static int open_tun(const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		err(1, "/dev/net/tun");
	if (strlen(name) >= sizeof request.ifr_name)
		errx(1, "%s: must be shorter than %zu characters", name, sizeof request.ifr_name);
	strcpy(request.ifr_name, name);
	if (ioctl(fd, TUNSETIFF, &request))
		err(1, "%s", name);
	return fd;
}

/* Moves packets from one side to the other until there is none, or it is the turn of the other direction. */
static void carry(int from, int to)
{
	static char buffer[LARGEST];

	for (int i = 0; i < BATCH; i++) {
		ssize_t bytes = read(from, buffer, sizeof buffer);
		char *packet;

		if (bytes <= 0)
			return;
		packet = malloc((size_t)bytes);
		if (!packet)
			err(1, "malloc");
		memcpy(packet, buffer, (size_t)bytes);
		/* A device that is down and a queue that is full lose the packet, as a cable would. */
		if (write(to, packet, (size_t)bytes) < 0 && errno == EBADF)
			err(1, "write");
		free(packet);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in local, peer;
	struct pollfd sides[2];
	int outside;

	if (argc != 5) {
		fprintf(stderr, "plain DEVICE LOCAL PEER PORT\n");
		return 2;
	}
	local = address(argv[2], argv[4]);
	peer = address(argv[3], argv[4]);
	sides[0] = (struct pollfd){.fd = open_tun(argv[1]), .events = POLLIN};
	outside = open_socket(&local, SOCK_NONBLOCK | SOCK_CLOEXEC, RECEIVE_BYTES);
	if (connect(outside, (const struct sockaddr *)&peer, sizeof peer))
		err(1, "connect");
	sides[1] = (struct pollfd){.fd = outside, .events = POLLIN};
	for (;;) {
		if (poll(sides, 2, -1) < 0)
			err(1, "poll");
		if (sides[0].revents)
			carry(sides[0].fd, sides[1].fd);
		if (sides[1].revents)
			carry(sides[1].fd, sides[0].fd);
	}
}
