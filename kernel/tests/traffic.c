// SPDX-License-Identifier: GPL-2.0-only
/*
 * traffic.c - sends and counts datagrams in the guest; never busy-waits.
 *
 *   traffic send ADDRESS PORT TOS COUNT BYTES PAUSE_US   TOS is the whole byte; a pause follows each packet unless it is 0;
 *                                                        COUNT 0 sends until SIGTERM and then prints how many were sent
 *   traffic offer ADDRESS PORT TOS COUNT BYTES           the same without pauses; prints how many the queue refused
 *   traffic count PORT...                                "PORT PACKETS BYTES MARKED" each, when ended by SIGTERM
 *   traffic measure PORT...                              the same with "FIRST_NS LAST_NS P99_NS": when the first and the last arrived,
 *                                                        and the 99th percentile of their delays since `send`
 *   traffic super ADDRESS PORT TOS COUNT BYTES PIECE     each of COUNT sends is one super-packet cut into pieces (UDP_SEGMENT)
 *   traffic frame DEVICE HEX COUNT [PIECE]               COUNT Ethernet frames of these bytes, with header; with PIECE they are marked
 *                                                        as IPv4 TCP super-packets, to be cut into pieces, whatever they contain
 *
 * Exit code 0, or 1 with a message. A datagram that the queue refuses, or that has no receiver, is not an error.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <linux/virtio_net.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#define MOST_PORTS 16
#define MOST_DELAYS 200000

static char payload[65536];

static void fail(const char *what)
{
	fprintf(stderr, "traffic: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int sender(const char *address, const char *port, const char *tos)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port)) };
	int s = socket(AF_INET, SOCK_DGRAM, 0), value = (int)strtol(tos, NULL, 0), room = 64 << 20;

	if (s < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
	    setsockopt(s, IPPROTO_IP, IP_TOS, &value, sizeof(value)) ||
	    setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) || connect(s, (struct sockaddr *)&to, sizeof(to)))
		fail("sender");
	return s;
}

static volatile sig_atomic_t ended;

static void end_sending(int signal)
{
	(void)signal;
	ended = 1;
}

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void send_all(int s, long count, size_t bytes, long pause_us)
{
	long sent;

	if (!count)
		signal(SIGTERM, end_sending);
	for (sent = 0; count ? sent < count : !ended; sent++) {
		int64_t now_ns = clock_ns();

		memcpy(payload, &now_ns, sizeof(now_ns));
		if (send(s, payload, bytes, 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED)
			fail("send");
		if (pause_us)
			usleep((useconds_t)pause_us);
	}
	if (!count)
		printf("%ld\n", sent);
}

static void offer_all(int s, long count, size_t bytes)
{
	long refused = 0;
	int on = 1;

	if (setsockopt(s, IPPROTO_IP, IP_RECVERR, &on, sizeof(on)))     /* otherwise the kernel does not report refusals */
		fail("IP_RECVERR");
	while (count--) {
		if (send(s, payload, bytes, 0) >= 0)
			continue;
		if (errno != ENOBUFS)
			fail("send");
		refused++;
	}
	printf("%ld\n", refused);
}

static void send_frames(const char *device, const char *hex, long count, int piece)
{
	int s = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), claims = piece > 0;
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(device) };
	struct virtio_net_hdr claim = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = (unsigned short)piece,
		.csum_start = ETH_HLEN + 20, .csum_offset = 16,         /* of a TCP header after one of IPv4 */
	};
	unsigned char frame[256] = { 0 };
	size_t length = strlen(hex) / 2, i;
	struct iovec parts[] = { { &claim, sizeof(claim) }, { frame, length } };
	struct msghdr message = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = parts + !claims, .msg_iovlen = 1 + claims };

	errno = EINVAL;
	if (strlen(hex) % 2 || length < ETH_HLEN || length > sizeof(frame))
		fail("a frame has 14 .. 256 bytes");
	for (i = 0; i < length; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &frame[i]) != 1)
			fail("a frame is hexadecimal");
	if (claims && setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &claims, sizeof(claims)))
		fail("PACKET_VNET_HDR");
	memcpy(&to.sll_protocol, frame + 12, sizeof(to.sll_protocol));
	while (count--)
		if (sendmsg(s, &message, 0) < 0 && errno != ENOBUFS)
			fail("frame");
}

struct measured {
	int64_t first_ns, last_ns;
	int64_t *delays_ns;
	size_t ndelays;
};

static void measure(struct measured *m, const struct timespec *at)
{
	int64_t sent_ns, now_ns = at->tv_sec * 1000000000ll + at->tv_nsec;

	memcpy(&sent_ns, payload, sizeof(sent_ns));
	if (!m->delays_ns)
		m->delays_ns = calloc(MOST_DELAYS, sizeof(*m->delays_ns));
	if (!m->delays_ns)
		fail("memory");
	if (!m->first_ns)
		m->first_ns = now_ns;
	m->last_ns = now_ns;
	if (m->ndelays < MOST_DELAYS)
		m->delays_ns[m->ndelays++] = now_ns - sent_ns;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void print_measured(struct measured *m)
{
	if (m->ndelays)
		qsort(m->delays_ns, m->ndelays, sizeof(*m->delays_ns), by_value);
	printf(" %lld %lld %lld", (long long)m->first_ns, (long long)m->last_ns,
	       m->ndelays ? (long long)m->delays_ns[m->ndelays - 1 - m->ndelays / 100] : 0);
}

static void count_all(int nports, char **ports, bool times)
{
	struct measured measured[MOST_PORTS] = { 0 };
	struct pollfd polls[MOST_PORTS + 1];
	long pkts[MOST_PORTS] = { 0 }, bytes[MOST_PORTS] = { 0 }, marked[MOST_PORTS] = { 0 };
	int i, on = 1, room = 256 << 20, left = 1;
	sigset_t end;

	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	polls[nports] = (struct pollfd){ .fd = signalfd(-1, &end, 0), .events = POLLIN };
	for (i = 0; i < nports; i++) {
		struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(ports[i])) };
		int s = socket(AF_INET, SOCK_DGRAM, 0);

		if (s < 0 || setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
		    setsockopt(s, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on)) ||
		    (times && setsockopt(s, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on))) || bind(s, (struct sockaddr *)&at, sizeof(at)))
			fail("receiver");
		polls[i] = (struct pollfd){ .fd = s, .events = POLLIN };
	}
	puts("ready");
	fflush(stdout);
	while (left && poll(polls, (nfds_t)nports + 1, -1) > 0) {
		left = !(polls[nports].revents & POLLIN);
		for (i = 0; i < nports; i++) {
			char control[128];
			struct iovec part = { payload, sizeof(payload) };
			struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
			struct cmsghdr *c;
			ssize_t length;

			if (!(polls[i].revents & POLLIN))
				continue;
			left = 1;               /* first read all that has arrived */
			message.msg_control = control;
			message.msg_controllen = sizeof(control);
			length = recvmsg(polls[i].fd, &message, MSG_DONTWAIT);
			if (length < 0)
				continue;
			pkts[i]++;
			bytes[i] += length;
			for (c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
				if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS)
					measure(&measured[i], (const struct timespec *)CMSG_DATA(c));
				if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS && (*CMSG_DATA(c) & 3) == 3)
					marked[i]++;
			}
		}
	}
	for (i = 0; i < nports; i++) {
		printf("%s %ld %ld %ld", ports[i], pkts[i], bytes[i], marked[i]);
		if (times)
			print_measured(&measured[i]);
		puts("");
	}
}

int main(int argc, char **argv)
{
	if (argc == 8 && !strcmp(argv[1], "send")) {
		send_all(sender(argv[2], argv[3], argv[4]), atol(argv[5]), (size_t)atol(argv[6]), atol(argv[7]));
	} else if (argc == 8 && !strcmp(argv[1], "super")) {
		int s = sender(argv[2], argv[3], argv[4]), piece = atoi(argv[7]);

		if (setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &piece, sizeof(piece)))
			fail("UDP_SEGMENT");
		send_all(s, atol(argv[5]), (size_t)atol(argv[6]), 0);
	} else if (argc == 7 && !strcmp(argv[1], "offer")) {
		offer_all(sender(argv[2], argv[3], argv[4]), atol(argv[5]), (size_t)atol(argv[6]));
	} else if ((argc == 5 || argc == 6) && !strcmp(argv[1], "frame")) {
		send_frames(argv[2], argv[3], atol(argv[4]), argc == 6 ? atoi(argv[5]) : 0);
	} else if (argc >= 3 && argc - 2 <= MOST_PORTS && !strcmp(argv[1], "count")) {
		count_all(argc - 2, argv + 2, false);
	} else if (argc >= 3 && argc - 2 <= MOST_PORTS && !strcmp(argv[1], "measure")) {
		count_all(argc - 2, argv + 2, true);
	} else {
		fprintf(stderr, "usage: traffic send|offer|super|count|measure|frame ...\n");
		return 2;
	}
	return 0;
}
