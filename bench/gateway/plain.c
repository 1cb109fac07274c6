// SPDX-License-Identifier: BSD-3-Clause
/*
 * A plain TUN/UDP forwarder: no scheduler, no offloads, one packet per system call, each copied into memory of its own on
 * its way. What a tunnel costs that does nothing.
 *
 *     plain DEVICE LOCAL PEER PORT        makes the device, which must then be given its address, and carries packets
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 64, LARGEST = 65536, RECEIVE_BYTES = 4 << 20 };

static void fail(const char *what)
{
	fprintf(stderr, "plain: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_tun(const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		fail("/dev/net/tun");
	if (strlen(name) >= sizeof request.ifr_name) {
		errno = ENAMETOOLONG;
		fail(name);
	}
	strcpy(request.ifr_name, name);
	if (ioctl(fd, TUNSETIFF, &request))
		fail(name);
	return fd;
}

static struct sockaddr_in address(const char *text, const char *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};

	if (inet_pton(AF_INET, text, &at.sin_addr) != 1) {
		errno = EINVAL;
		fail(text);
	}
	return at;
}

static int open_socket(const struct sockaddr_in *local, const struct sockaddr_in *peer)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int room = RECEIVE_BYTES;

	if (fd < 0 || bind(fd, (const struct sockaddr *)local, sizeof *local) ||
	    connect(fd, (const struct sockaddr *)peer, sizeof *peer))
		fail("socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
		fail("SO_RCVBUFFORCE");
	return fd;
}

/* Moves packets from one side to the other until there is none, or it is the other's turn. */
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
			fail("malloc");
		memcpy(packet, buffer, (size_t)bytes);
		/* A device that is down and a queue that is full lose the packet, as a cable would. */
		if (write(to, packet, (size_t)bytes) < 0 && errno == EBADF)
			fail("write");
		free(packet);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in local, peer;
	struct pollfd sides[2];

	if (argc != 5) {
		fprintf(stderr, "plain DEVICE LOCAL PEER PORT\n");
		return 2;
	}
	local = address(argv[2], argv[4]);
	peer = address(argv[3], argv[4]);
	sides[0] = (struct pollfd){.fd = open_tun(argv[1]), .events = POLLIN};
	sides[1] = (struct pollfd){.fd = open_socket(&local, &peer), .events = POLLIN};
	for (;;) {
		if (poll(sides, 2, -1) < 0)
			fail("poll");
		if (sides[0].revents)
			carry(sides[0].fd, sides[1].fd);
		if (sides[1].revents)
			carry(sides[1].fd, sides[0].fd);
	}
}
