// SPDX-License-Identifier: GPL-2.0-only
/*
 * stress.c - what happens at the same time on other processors while qdiscs are changed; each part runs until SIGTERM, then prints how often.
 *
 *   stress send ADDRESS SEED CPU    datagrams of random lengths, classes and flows, every eighth a super-packet (UDP_SEGMENT), whose
 *                                   pieces are counted
 *   stress dump DEVICE              shows qdiscs and classes with their statistics
 *   stress flap DEVICE MS           sets the device down and up again, with a pause after each; it ends up
 *
 * Errors of single packets, of dumps in which something changes, and of a device that is gone, are expected and not counted.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#define SOCKETS 16                      /* flows, which a device with several queues spreads over them */
#define MOST_BYTES 60000

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "stress: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint32_t below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33) % n;
}

static unsigned long send_all(const char *address, uint64_t seed, unsigned int cpu)
{
	static const int classes[] = { 0xb8, 0x28, 0x02, 0x00 };
	static char payload[MOST_BYTES];
	unsigned long sent = 0;
	int sockets[SOCKETS], i, room = 1 << 16;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	(void)!sched_setaffinity(0, sizeof(set), &set); /* fails on a machine with fewer processors */
	for (i = 0; i < SOCKETS; i++) {
		struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)(5000 + i)) };

		sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
		if (sockets[i] < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
		    setsockopt(sockets[i], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
			fail("socket");
		while (connect(sockets[i], (struct sockaddr *)&to, sizeof(to)) && !ended)
			usleep(1000);           /* the device is down */
	}
	while (!ended) {
		int s = sockets[below(&seed, SOCKETS)], tos = classes[below(&seed, 4)], piece = 0;
		size_t length = 1 + below(&seed, 1400);

		if (!below(&seed, 8)) {
			piece = 200 + (int)below(&seed, 1200);
			length = (size_t)piece * (2 + below(&seed, 40));
			if (length > MOST_BYTES)
				length = MOST_BYTES;
		}
		setsockopt(s, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
		setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &piece, sizeof(piece));
		if (send(s, payload, length, MSG_DONTWAIT) >= 0)
			sent += piece ? (length + (size_t)piece - 1) / (size_t)piece : 1;
		if (!below(&seed, 32))
			usleep(below(&seed, 2000));     /* queues also become empty */
	}
	return sent;
}

static unsigned long dump_all(const char *device)
{
	static char buffer[65536];
	struct {
		struct nlmsghdr n;
		struct tcmsg t;
	} request = { .t.tcm_ifindex = (int)if_nametoindex(device) };
	int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	unsigned long dumps = 0;

	if (s < 0)
		fail("netlink");
	while (!ended) {
		bool done = false;

		request.n.nlmsg_len = sizeof(request);
		request.n.nlmsg_type = dumps % 2 ? RTM_GETTCLASS : RTM_GETQDISC;
		request.n.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
		request.n.nlmsg_seq = (uint32_t)dumps + 1;
		if (send(s, &request, sizeof(request), 0) < 0)
			break;
		while (!done) {
			ssize_t length = recv(s, buffer, sizeof(buffer), 0);
			struct nlmsghdr *n = (struct nlmsghdr *)buffer;

			if (length < 0 && errno != EINTR)
				fail("recv");
			for (; length > 0 && NLMSG_OK(n, length); n = NLMSG_NEXT(n, length))
				done |= n->nlmsg_type == NLMSG_DONE || n->nlmsg_type == NLMSG_ERROR;
			done |= ended;
		}
		dumps++;
	}
	return dumps;
}

static unsigned long flap(const char *device, unsigned int ms)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq ifreq = { 0 };
	unsigned long flaps = 0;

	strncpy(ifreq.ifr_name, device, sizeof(ifreq.ifr_name) - 1);
	while (!ended || flaps % 2) {
		if (ioctl(s, SIOCGIFFLAGS, &ifreq))
			fail(device);
		ifreq.ifr_flags ^= IFF_UP;
		if (ioctl(s, SIOCSIFFLAGS, &ifreq))
			fail(device);
		flaps++;
		usleep(ms * 1000);
	}
	return flaps;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	struct sigaction action = { .sa_handler = end };        /* without SA_RESTART, so that it ends a wait */
	unsigned long times;

	sigaction(SIGTERM, &action, NULL);
	if (!strcmp(what, "send") && argc == 5) {
		times = send_all(argv[2], strtoull(argv[3], NULL, 10), (unsigned int)atoi(argv[4]));
	} else if (!strcmp(what, "dump") && argc == 3) {
		times = dump_all(argv[2]);
	} else if (!strcmp(what, "flap") && argc == 4) {
		times = flap(argv[2], (unsigned int)atoi(argv[3]));
	} else {
		fprintf(stderr, "usage: stress send ADDRESS SEED CPU | dump DEVICE | flap DEVICE MS\n");
		return 2;
	}
	printf("%s %lu\n", what, times);
	return 0;
}
