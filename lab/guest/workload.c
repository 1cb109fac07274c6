// SPDX-License-Identifier: BSD-3-Clause
/*
 * workload - traffic in the laboratory: sends, receives and prints lines at given times. It never waits busily, so that virtual
 * time can skip every wait. Times are ns after ZERO_NS, an instant of the monotonic clock given in the environment; nothing starts earlier.
 *
 *   workload datagrams ADDRESS FILE DSCP[:PRIORITY[:TO]]...
 *                                                sends what FILE lists (struct due); for each flow a DSCP, a priority (0: of the DSCP), and
 *                                                where it goes, ADDRESS or TO
 *   workload streams ADDRESS INTERVAL END FILE FLOW:DSCP:PRIORITY:START:STOP:BYTES:CC[:TO]...
 *                                                TCP streams from START to STOP or until BYTES are sent (0: no limit), to ADDRESS or TO;
 *                                                those with the CC dctcp ask for accurate ECN.
 *                                                FILE: each INTERVAL a line "AT FLOW cwnd srtt_us segments repeated timeouts twice
 *                                                samples cwnds rtt_samples rtts_us"; the last four are the sums of what was read
 *                                                every SAMPLE_NS, so that their differences give means over time
 *   workload receive INTERVAL END DATAGRAMS STREAMS
 *                                                until END. DATAGRAMS: a struct came per datagram, with the time at which it reached this
 *                                                host; STREAMS: lines "AT FLOW bytes segments"
 *   workload say FILE                            prints the lines "AT TEXT" of FILE at their times, without AT
 *
 * Exit code 0, or 1 with a message. A packet that a queue refuses is not an error.
 */
#define _GNU_SOURCE                     /* recvmmsg, sendmmsg */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#ifndef SENT_WHEN_DUE
#define SENT_WHEN_DUE 0                 /* 1: datagrams count as sent when they were due, which saves a reading of the clock */
#endif
#define DATAGRAM_PORT 5000
#define STREAM_PORT 5001
#define FIRST_LOCAL_PORT 20000          /* the flow of a stream is its sender's port minus this */
#define HEADER_BYTES 28                 /* IP and UDP */
#define MOST_FLOWS 1024
#define SAMPLE_NS 100000000LL
#define TAKE_NS 10000000LL
#define MOST_TAKEN 64
#define MOST_SENT 64
#define MOST_READING_NS 5000
#define MOST_READINGS 10

struct due {
	uint64_t at_ns;
	uint32_t flow;
	uint32_t bytes;                 /* with the headers of IP and UDP */
};

struct came {
	uint32_t flow;
	uint32_t bytes;
	uint64_t sent_ns;
	uint64_t came_ns;
};

struct payload {
	uint64_t sent_ns;
	uint32_t flow;
};

static char block[1 << 18];
static int64_t zero_ns;

static void fail(const char *what)
{
	fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec - zero_ns;
}

static void wait_until(int64_t at_ns)
{
	struct timespec until = { (at_ns + zero_ns) / 1000000000, (at_ns + zero_ns) % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void begin(void)
{
	const char *zero = getenv("ZERO_NS");

	if (!zero) {
		errno = EINVAL;
		fail("ZERO_NS");
	}
	zero_ns = atoll(zero);
	if (prctl(PR_SET_TIMERSLACK, 1UL))      /* else the kernel wakes this up to 50 us late */
		fail("PR_SET_TIMERSLACK");
	if (now_ns() > 0) {
		errno = ETIME;
		fail("preparations were not finished by ZERO_NS");
	}
}

static struct sockaddr_in address_of(const char *address, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	if (address && inet_pton(AF_INET, address, &a.sin_addr) != 1)
		fail(address);
	return a;
}

static int opened(int type)
{
	int s = socket(AF_INET, type, 0), on = 1;

	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		fail("socket");
	return s;
}

/* `priority` names the band of a queueing discipline; 0: what follows from the DSCP */
static void mark(int s, int dscp, unsigned int priority)
{
	int tos = dscp << 2;

	if (setsockopt(s, IPPROTO_IP, IP_TOS, &tos, sizeof(tos)))
		fail("IP_TOS");
	if (priority && setsockopt(s, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)))
		fail("SO_PRIORITY");
}

static FILE *written(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		fail(path);
	return file;
}

static void watch(int epoll, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event e = { .events = events, .data.u64 = tag };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
		fail("epoll");
}

/* a timer that fires at `first_ns` and every `interval_ns` after that, or once if that is 0 */
static int timer(int64_t first_ns, int64_t interval_ns)
{
	int64_t at_ns = zero_ns + first_ns;
	struct itimerspec when = {
		.it_value = { at_ns / 1000000000, at_ns % 1000000000 },
		.it_interval = { interval_ns / 1000000000, interval_ns % 1000000000 },
	};
	int t = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

	if (t < 0 || timerfd_settime(t, TFD_TIMER_ABSTIME, &when, NULL))
		fail("timer");
	return t;
}

static void rearm(int t)
{
	uint64_t times;

	if (read(t, &times, sizeof(times)) < 0 && errno != EAGAIN)
		fail("timer");
}

/* TCP_INFO of a connection; `timeouts` exists since Linux 6.7, and older headers lack it */
static struct tcp_state {
	struct tcp_info info;
	unsigned int timeouts;
} tcp_state(int s)
{
	enum { TOTAL_RTO = 240, ENOUGH = 512 };
	union { struct tcp_info info; char bytes[ENOUGH]; } all;
	struct tcp_state state = { .timeouts = 0 };
	socklen_t size = sizeof(all);
	uint16_t timeouts;

	memset(&all, 0, sizeof(all));
	if (getsockopt(s, IPPROTO_TCP, TCP_INFO, &all, &size))
		fail("TCP_INFO");
	memcpy(&timeouts, all.bytes + TOTAL_RTO, sizeof(timeouts));
	state.info = all.info;
	state.timeouts = timeouts;
	return state;
}

/* ---- datagrams ---- */

/* Sends the first and those behind it of its flow and length that are due at the same time, in one call; returns how many. */
static int send_alike(int s, const struct due *first, const struct due *end)
{
	static struct mmsghdr messages[MOST_SENT];
	struct payload *payload = (struct payload *)block;
	struct iovec part = { block, first->bytes - HEADER_BYTES };
	const struct due *due = first;
	int count = 0, done;

	while (due < end && count < MOST_SENT && due->at_ns == first->at_ns && due->flow == first->flow && due->bytes == first->bytes) {
		messages[count++].msg_hdr = (struct msghdr){ .msg_iov = &part, .msg_iovlen = 1 };
		due++;
	}
	payload->sent_ns = SENT_WHEN_DUE ? first->at_ns : (uint64_t)now_ns();
	payload->flow = first->flow;
	done = sendmmsg(s, messages, (unsigned int)count, 0);
	if (done >= 0)
		return done;
	if (errno != ENOBUFS)
		fail("send");
	return 1;       /* a queue has refused the first */
}

static void send_datagrams(const char *address, const char *path, int nflows, char **marks)
{
	int file = open(path, O_RDONLY), sockets[MOST_FLOWS], room = 64 << 20, i;
	const struct due *due;
	struct stat size;
	int sent;
	size_t n;

	if (file < 0 || fstat(file, &size))
		fail(path);
	if (!size.st_size)
		return;
	due = mmap(NULL, (size_t)size.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (due == MAP_FAILED)
		fail(path);
	for (i = 0; i < nflows; i++) {
		char own[INET_ADDRSTRLEN] = "";
		unsigned int priority = 0;
		struct sockaddr_in to;
		int dscp;

		if (sscanf(marks[i], "%d:%u:%15s", &dscp, &priority, own) < 1) {
			errno = EINVAL;
			fail(marks[i]);
		}
		to = address_of(own[0] ? own : address, DATAGRAM_PORT);
		sockets[i] = opened(SOCK_DGRAM);
		mark(sockets[i], dscp, priority);
		if (setsockopt(sockets[i], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) ||
		    connect(sockets[i], (struct sockaddr *)&to, sizeof(to)))
			fail("connect");
	}
	for (n = 0; n < (size_t)size.st_size / sizeof(*due); n += (size_t)sent) {
		wait_until((int64_t)due[n].at_ns);
		sent = send_alike(sockets[due[n].flow], due + n, due + (size_t)size.st_size / sizeof(*due));
	}
}

/* ---- streams ---- */

struct stream {
	int flow, dscp, socket, timer;
	unsigned int priority;
	int64_t start_ns, stop_ns, left_bytes;
	uint64_t samples, cwnds, rtt_samples, rtts_us;  /* sums over the samples */
	char cc[16], to[INET_ADDRSTRLEN];
};

enum { BEGIN = 1 << 16, MORE = 2 << 16, TICK = 3 << 16, END = 4 << 16, SAMPLE = 7 << 16, KIND = 0xf << 16, NUMBER = 0xffff };

/* The kernel has one setting for the connections of a host: whether they ask for accurate ECN, or for what their route says. */
static void ask_for_accurate_ecn(int accurate)
{
	static int asked;
	FILE *setting;

	if (accurate == asked)
		return;
	setting = written("/proc/sys/net/ipv4/tcp_ecn");
	fputs(accurate ? "3" : "2", setting);
	if (fclose(setting))
		fail("tcp_ecn");
	asked = accurate;
}

static void begin_stream(struct stream *stream, struct sockaddr_in to, int epoll, unsigned int number)
{
	struct sockaddr_in from = address_of(NULL, FIRST_LOCAL_PORT + stream->flow);
	int s = opened(SOCK_STREAM), unsent_bytes = 65536;

	mark(s, stream->dscp, stream->priority);
	if (setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, stream->cc, (socklen_t)strlen(stream->cc)))
		fail(stream->cc);
	ask_for_accurate_ecn(!strcmp(stream->cc, "dctcp"));
	if (setsockopt(s, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof(unsent_bytes)) ||
	    bind(s, (struct sockaddr *)&from, sizeof(from)) || fcntl(s, F_SETFL, O_NONBLOCK) ||
	    (connect(s, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS))
		fail("connect");
	stream->socket = s;
	watch(epoll, s, EPOLLOUT | EPOLLET, MORE | number);
}

static void feed(struct stream *stream)
{
	int over = now_ns() >= stream->stop_ns;
	ssize_t taken;
	size_t want;

	do {
		if (over || !stream->left_bytes) {
			shutdown(stream->socket, SHUT_WR);
			return;
		}
		want = stream->left_bytes < (int64_t)sizeof(block) ? (size_t)stream->left_bytes : sizeof(block);
		taken = write(stream->socket, block, want);
		if (taken > 0)
			stream->left_bytes -= taken;
	} while (taken > 0);
	if (taken < 0 && errno != EAGAIN && errno != EPIPE)
		fail("write");
}

static void sample(struct stream *stream)
{
	struct tcp_info info = tcp_state(stream->socket).info;

	stream->samples++;
	stream->cwnds += info.tcpi_snd_cwnd;
	if (info.tcpi_rtt) {
		stream->rtt_samples++;
		stream->rtts_us += info.tcpi_rtt;
	}
}

static void send_streams(const char *address, int64_t interval_ns, int64_t end_ns, const char *path, int n, char **words)
{
	static struct stream streams[MOST_FLOWS];
	FILE *file = written(path);
	int epoll = epoll_create1(0), i, tick = timer(0, interval_ns), sampler = timer(SAMPLE_NS / 2, SAMPLE_NS), more = 1;

	for (i = 0; i < n; i++) {
		struct stream *s = &streams[i];

		if (sscanf(words[i], "%d:%d:%u:%ld:%ld:%ld:%15[^:]:%15s", &s->flow, &s->dscp, &s->priority, &s->start_ns,
			   &s->stop_ns, &s->left_bytes, s->cc, s->to) < 7) {
			errno = EINVAL;
			fail(words[i]);
		}
		if (!s->left_bytes)
			s->left_bytes = INT64_MAX;
		s->socket = -1;
		s->timer = timer(s->start_ns, 0);
		watch(epoll, s->timer, EPOLLIN, BEGIN | (unsigned int)i);
	}
	watch(epoll, tick, EPOLLIN, TICK);
	watch(epoll, sampler, EPOLLIN, SAMPLE);
	watch(epoll, timer(end_ns, 0), EPOLLIN, END);
	while (more) {
		struct epoll_event happened[64];
		int count = epoll_wait(epoll, happened, 64, -1), k;
		int64_t at_ns;

		for (k = 0; k < count; k++) {
			unsigned int what = happened[k].data.u64 & KIND, number = happened[k].data.u64 & NUMBER;
			struct stream *s = &streams[number];

			if (what == BEGIN) {
				rearm(s->timer);
				begin_stream(s, address_of(s->to[0] ? s->to : address, STREAM_PORT), epoll, number);
			} else if (what == MORE) {
				feed(s);
			} else if (what == SAMPLE) {
				rearm(sampler);
				for (i = 0; i < n; i++)
					if (streams[i].socket >= 0)
						sample(&streams[i]);
			} else if (what == END) {
				more = 0;
			}
		}
		for (k = 0; k < count; k++)
			if ((happened[k].data.u64 & KIND) == TICK)
				break;
		if (k == count && more)
			continue;
		rearm(tick);
		at_ns = now_ns();
		for (i = 0; i < n; i++) {
			struct tcp_state is;

			if (streams[i].socket < 0)
				continue;
			is = tcp_state(streams[i].socket);
			fprintf(file, "%ld %d %u %u %u %u %u %u %lu %lu %lu %lu\n", at_ns, streams[i].flow, is.info.tcpi_snd_cwnd,
				is.info.tcpi_rtt, is.info.tcpi_data_segs_out, is.info.tcpi_total_retrans, is.timeouts,
				is.info.tcpi_dsack_dups, streams[i].samples, streams[i].cwnds, streams[i].rtt_samples,
				streams[i].rtts_us);
		}
	}
	fclose(file);
}

/* ---- the receiver ---- */

/* by how much the wall clock, with which the kernel stamps datagrams, is ahead of ours; read again if something came between */
static int64_t wall_ahead_ns(void)
{
	int64_t before_ns, after_ns;
	struct timespec wall;
	int tries = 0;

	do {
		before_ns = now_ns();
		clock_gettime(CLOCK_REALTIME, &wall);
		after_ns = now_ns();
	} while (after_ns - before_ns > MOST_READING_NS && ++tries < MOST_READINGS);
	return wall.tv_sec * 1000000000LL + wall.tv_nsec - (before_ns + after_ns) / 2;
}

/* many at a time: in user-mode Linux waking up for each would cost more than all else that is done for it */
static void take_datagrams(int s, FILE *file, int64_t end_ns)
{
	static struct { struct payload payload; struct iovec part; char control[CMSG_SPACE(sizeof(struct timespec))]; } taken[MOST_TAKEN];
	static struct mmsghdr messages[MOST_TAKEN];
	int64_t ahead_ns = wall_ahead_ns();
	int count, k;

	do {
		for (k = 0; k < MOST_TAKEN; k++) {
			taken[k].part = (struct iovec){ &taken[k].payload, sizeof(taken[k].payload) };
			messages[k].msg_hdr = (struct msghdr){ .msg_iov = &taken[k].part, .msg_iovlen = 1,
							       .msg_control = taken[k].control,
							       .msg_controllen = sizeof(taken[k].control) };
		}
		/* MSG_TRUNC: the whole length, of which only the payload is copied */
		count = recvmmsg(s, messages, MOST_TAKEN, MSG_DONTWAIT | MSG_TRUNC, NULL);
		for (k = 0; k < count; k++) {
			const struct cmsghdr *noted = CMSG_FIRSTHDR(&messages[k].msg_hdr);
			struct timespec wall;
			struct came came;
			int64_t came_ns;

			if (!noted || noted->cmsg_type != SCM_TIMESTAMPNS) {
				errno = ENODATA;
				fail("the time of a datagram");
			}
			memcpy(&wall, CMSG_DATA(noted), sizeof(wall));
			came_ns = wall.tv_sec * 1000000000LL + wall.tv_nsec - ahead_ns;
			if (messages[k].msg_len < sizeof(struct payload) || came_ns > end_ns)
				continue;
			came = (struct came){ taken[k].payload.flow, messages[k].msg_len + HEADER_BYTES, taken[k].payload.sent_ns,
					      (uint64_t)came_ns };
			fwrite(&came, sizeof(came), 1, file);
		}
	} while (count == MOST_TAKEN);
}

static void receive(int64_t interval_ns, int64_t end_ns, const char *datagrams, const char *streams)
{
	static struct { int socket; uint64_t bytes; } got[MOST_FLOWS];
	FILE *packets = written(datagrams), *lines = written(streams);
	struct sockaddr_in udp = address_of(NULL, DATAGRAM_PORT), tcp = address_of(NULL, STREAM_PORT);
	int d = opened(SOCK_DGRAM), l = opened(SOCK_STREAM), epoll = epoll_create1(0), room = 64 << 20, on = 1, i, more = 1;
	int tick = timer(0, interval_ns), take = timer(TAKE_NS, TAKE_NS);
	enum { DATAGRAMS = 5 << 16, NEW = 6 << 16 };

	if (setsockopt(d, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(d, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) || bind(d, (struct sockaddr *)&udp, sizeof(udp)) ||
	    bind(l, (struct sockaddr *)&tcp, sizeof(tcp)) || listen(l, MOST_FLOWS))
		fail("receiver");
	for (i = 0; i < MOST_FLOWS; i++)
		got[i].socket = -1;
	watch(epoll, take, EPOLLIN, DATAGRAMS);
	watch(epoll, l, EPOLLIN, NEW);
	watch(epoll, tick, EPOLLIN, TICK);
	watch(epoll, timer(end_ns, 0), EPOLLIN, END);
	while (more) {
		struct epoll_event happened[64];
		int count = epoll_wait(epoll, happened, 64, -1), k, count_now = 0;
		int64_t at_ns;

		for (k = 0; k < count; k++) {
			unsigned int what = happened[k].data.u64 & KIND, flow = happened[k].data.u64 & NUMBER;
			struct sockaddr_in peer;
			socklen_t size = sizeof(peer);
			ssize_t length;

			switch (what) {
			case DATAGRAMS:
				rearm(take);
				take_datagrams(d, packets, end_ns);
				break;
			case NEW:
				i = accept(l, (struct sockaddr *)&peer, &size);
				flow = (unsigned int)ntohs(peer.sin_port) - FIRST_LOCAL_PORT;
				if (i < 0 || flow >= MOST_FLOWS)
					fail("accept");
				got[flow].socket = i;
				watch(epoll, i, EPOLLIN, MORE | flow);
				break;
			case MORE:      /* MSG_TRUNC: counts without copying */
				length = recv(got[flow].socket, block, sizeof(block), MSG_TRUNC | MSG_DONTWAIT);
				if (length > 0)
					got[flow].bytes += (uint64_t)length;
				else if (length == 0)
					epoll_ctl(epoll, EPOLL_CTL_DEL, got[flow].socket, NULL);
				break;
			case END:
				take_datagrams(d, packets, end_ns);
				more = 0;
				count_now = 1;
				break;
			case TICK:
				rearm(tick);
				count_now = 1;
			}
		}
		if (!count_now)
			continue;
		at_ns = now_ns();
		for (i = 0; i < MOST_FLOWS; i++)
			if (got[i].socket >= 0)
				fprintf(lines, "%ld %d %lu %u\n", at_ns, i, got[i].bytes, tcp_state(got[i].socket).info.tcpi_data_segs_in);
	}
	if (fclose(packets) || fclose(lines))
		fail("results");
}

/* ---- words ---- */

static void say(const char *path)
{
	FILE *file = fopen(path, "r");
	char *line = NULL, *text;
	size_t size = 0;

	if (!file)
		fail(path);
	while (getline(&line, &size, file) > 0) {
		wait_until(strtoll(line, &text, 10));
		fputs(text + 1, stdout);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	begin();
	if (argc >= 4 && argc - 4 <= MOST_FLOWS && !strcmp(argv[1], "datagrams")) {
		send_datagrams(argv[2], argv[3], argc - 4, argv + 4);
	} else if (argc >= 6 && argc - 6 <= MOST_FLOWS && !strcmp(argv[1], "streams")) {
		send_streams(argv[2], atoll(argv[3]), atoll(argv[4]), argv[5], argc - 6, argv + 6);
	} else if (argc == 6 && !strcmp(argv[1], "receive")) {
		receive(atoll(argv[2]), atoll(argv[3]), argv[4], argv[5]);
	} else if (argc == 3 && !strcmp(argv[1], "say")) {
		say(argv[2]);
	} else {
		fprintf(stderr, "usage: workload datagrams|streams|receive|say ...\n");
		return 2;
	}
	return 0;
}
