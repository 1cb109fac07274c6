// SPDX-License-Identifier: BSD-3-Clause
/*
 * probe.c - finds out which class of a device's queueing disciplines the kernel puts packets into.
 *
 *   probe DEVICE FILE
 *
 * FILE has a line for each packet: mark, priority, and its Ethernet frame in hexadecimal. For each, the program prints the
 * classes whose counters grew by it, or `-` if none did. Counted is what arrived: packets that left, wait or were dropped.
 * The enqueueing of a packet is over when send returns, so nothing waits here.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_CLASSES 4096
#define MOST_BYTES 2048

struct count {
	uint32_t handle, arrived;
};

static void fail(const char *what)
{
	fprintf(stderr, "probe: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint32_t arrivals(const struct rtattr *stats)
{
	const struct rtattr *a = RTA_DATA(stats);
	int left = (int)RTA_PAYLOAD(stats);
	uint32_t sum = 0;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == TCA_STATS_BASIC) {
			sum += ((const struct gnet_stats_basic *)RTA_DATA(a))->packets;
		} else if (a->rta_type == TCA_STATS_QUEUE) {
			const struct gnet_stats_queue *queue = RTA_DATA(a);

			sum += queue->qlen + queue->drops;
		}
	}
	return sum;
}

/* Their classes are the flows that have packets now. */
static bool is_hashed(const char *kind)
{
	return !strcmp(kind, "fq_codel") || !strcmp(kind, "sfq") || !strcmp(kind, "cake");
}

/* The counts of all classes, in the kernel's order. */
static int read_counts(int s, int device, struct count *found)
{
	static char answer[1 << 16];
	struct {
		struct nlmsghdr head;
		struct tcmsg tc;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask), .nlmsg_type = RTM_GETTCLASS, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.tc = { .tcm_family = AF_UNSPEC, .tcm_ifindex = device },
	};
	int n = 0;

	if (send(s, &ask, sizeof(ask), 0) < 0)
		fail("send");
	for (;;) {
		ssize_t got = recv(s, answer, sizeof(answer), 0);
		int left = (int)got;

		if (got < 0)
			fail("recv");
		for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			struct tcmsg *tc = NLMSG_DATA(h);
			struct rtattr *a = TCA_RTA(tc);
			int rest = (int)TCA_PAYLOAD(h);

			if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
				return n;
			if (n == MOST_CLASSES)
				fail("too many classes");
			found[n].handle = tc->tcm_handle;
			found[n].arrived = 0;
			bool hashed = false;

			for (; RTA_OK(a, rest); a = RTA_NEXT(a, rest)) {
				if (a->rta_type == TCA_STATS2)
					found[n].arrived = arrivals(a);
				else if (a->rta_type == TCA_KIND)
					hashed = is_hashed(RTA_DATA(a));
			}
			n += !hashed;
		}
	}
}

int main(int argc, char **argv)
{
	static struct count before[MOST_CLASSES], after[MOST_CLASSES];
	static char line[2 * MOST_BYTES + 64];
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct sockaddr_ll to = { .sll_family = AF_PACKET };
	int counters = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), packets = socket(AF_PACKET, SOCK_RAW, 0), n;
	FILE *file;

	if (argc != 3 || counters < 0 || packets < 0 || connect(counters, (void *)&kernel, sizeof(kernel)))
		fail("DEVICE FILE");
	to.sll_ifindex = (int)if_nametoindex(argv[1]);
	if (!to.sll_ifindex)
		fail(argv[1]);
	file = fopen(argv[2], "r");
	if (!file)
		fail(argv[2]);
	n = read_counts(counters, to.sll_ifindex, before);
	while (fgets(line, sizeof(line), file)) {
		unsigned char frame[MOST_BYTES];
		char *hex;
		int mark = (int)strtol(line, &hex, 0), priority = (int)strtol(hex, &hex, 0), bytes = 0, grown = 0;

		while (*hex == ' ')
			hex++;
		for (; sscanf(hex, "%2hhx", &frame[bytes]) == 1 && bytes < MOST_BYTES - 1; hex += 2)
			bytes++;
		if (setsockopt(packets, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) ||
		    setsockopt(packets, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)))
			fail("setsockopt");
		memcpy(&to.sll_protocol, frame + 12, 2);
		/* A queueing discipline that drops the packet returns ENOBUFS; the counters say so, too. */
		if (sendto(packets, frame, (size_t)bytes, 0, (void *)&to, sizeof(to)) < 0 && errno != ENOBUFS)
			fail("sendto");
		if (read_counts(counters, to.sll_ifindex, after) != n)
			fail("classes changed");
		for (int i = 0; i < n; i++)
			if (after[i].arrived != before[i].arrived)
				printf("%s%x:%x", grown++ ? " " : "", after[i].handle >> 16, after[i].handle & 0xffff);
		puts(grown ? "" : "-");
		memcpy(before, after, sizeof(before));
	}
	return 0;
}
