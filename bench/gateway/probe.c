// SPDX-License-Identifier: BSD-3-Clause
/*
 * Sends and receives numbered UDP datagrams; both ends share one clock.
 *
 *     probe send ADDRESS PORT BYTES PACKETS_PER_S SECONDS     0 packets/s: as fast as it can
 *     probe receive ADDRESS PORT                              until SIGINT or SIGTERM
 *
 * Each prints one JSON object at its end. The sender wakes every 50 us and sends what is due; it does not busy-wait, so
 * that the tunnel gets the processor. Delays are one way, from before the system call of the sender to after that of the
 * receiver.
 */
#define _GNU_SOURCE
#include "udp.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { LARGEST = 2048, RECEIVE_BYTES = 16 << 20, TICK_NS = 50000, BATCH = 64 };
/* Delays are counted in steps of 1 us up to 1 s. */
enum { STEP_NS = 1000, STEPS = 1000000 };

struct probe {
	uint64_t number, sent_ns;
};

static uint32_t delays[STEPS + 1];
static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int send_all(const struct sockaddr_in *to, size_t bytes, uint64_t pkts_per_s, double seconds)
{
	static char datagram[LARGEST];
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	uint64_t begun_ns, end_ns, ns, sent = 0, refused = 0;

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof *to))
		err(1, "socket");
	prctl(PR_SET_TIMERSLACK, 1);
	begun_ns = ns = now_ns();
	end_ns = begun_ns + (uint64_t)(seconds * 1e9);
	while (ns < end_ns && !stopped) {
		uint64_t due = pkts_per_s ? (uint64_t)((double)(ns - begun_ns) * (double)pkts_per_s * 1e-9) + 1 : sent + BATCH;

		for (; sent < due; sent++) {
			struct probe probe = {sent, now_ns()};

			memcpy(datagram, &probe, sizeof probe);
			if (send(fd, datagram, bytes, 0) < 0)
				refused++;
		}
		if (pkts_per_s) {
			/* The next packet at low rates, the next tick at high ones. */
			uint64_t next_ns = begun_ns + (uint64_t)((double)sent * 1e9 / (double)pkts_per_s);
			uint64_t tick_ns = ns + TICK_NS;
			struct timespec until;

			if (next_ns < tick_ns)
				next_ns = tick_ns;
			until = (struct timespec){(time_t)(next_ns / 1000000000u), (long)(next_ns % 1000000000u)};
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		}
		ns = now_ns();
	}
	printf("{\"sent_pkts\": %llu, \"refused_pkts\": %llu, \"seconds\": %.6f}\n", (unsigned long long)sent,
	       (unsigned long long)refused, (double)(ns - begun_ns) * 1e-9);
	return 0;
}

static double percentile_us(uint64_t received, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)received), seen = 0;

	for (int step = 0; step <= STEPS; step++) {
		seen += delays[step];
		if (seen > wanted)
			return (double)step * STEP_NS * 1e-3;
	}
	return 0;
}

static int receive_all(const struct sockaddr_in *at)
{
	static char datagrams[BATCH][LARGEST];
	struct iovec places[BATCH];
	struct mmsghdr messages[BATCH];
	struct sigaction action = {.sa_handler = stop};
	uint64_t received = 0, late = 0, next = 0, first_ns = 0, last_ns = 0;
	int fd = open_socket(at, 0, RECEIVE_BYTES);

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	memset(messages, 0, sizeof messages);
	for (int i = 0; i < BATCH; i++) {
		places[i] = (struct iovec){datagrams[i], LARGEST};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &places[i], .msg_iovlen = 1};
	}
	printf("ready\n");
	fflush(stdout);
	while (!stopped) {
		int count = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL);
		uint64_t ns = now_ns();

		for (int i = 0; i < count; i++) {
			struct probe probe;
			uint64_t step;

			if (messages[i].msg_len < sizeof probe)
				continue;
			memcpy(&probe, datagrams[i], sizeof probe);
			step = ns > probe.sent_ns ? (ns - probe.sent_ns) / STEP_NS : 0;
			delays[step < STEPS ? step : STEPS]++;
			late += probe.number < next;
			next = probe.number + 1;
			received++;
			if (!first_ns)
				first_ns = probe.sent_ns;
			last_ns = ns;
		}
	}
	printf("{\"received_pkts\": %llu, \"reordered_pkts\": %llu, \"seconds\": %.6f, \"p50_us\": %.0f, \"p99_us\": %.0f, "
	       "\"max_us\": %.0f}\n",
	       (unsigned long long)received, (unsigned long long)late, (double)(last_ns - first_ns) * 1e-9,
	       percentile_us(received, 0.5), percentile_us(received, 0.99), percentile_us(received, 0.999999));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 7 && !strcmp(argv[1], "send")) {
		struct sockaddr_in to = address(argv[2], argv[3]);
		long bytes = atol(argv[4]);

		if (bytes >= (long)sizeof(struct probe) && bytes <= LARGEST)
			return send_all(&to, (size_t)bytes, strtoull(argv[5], NULL, 10), atof(argv[6]));
	}
	if (argc == 4 && !strcmp(argv[1], "receive")) {
		struct sockaddr_in at = address(argv[2], argv[3]);

		return receive_all(&at);
	}
	fprintf(stderr, "probe send ADDRESS PORT BYTES PACKETS_PER_S SECONDS | probe receive ADDRESS PORT\n");
	return 2;
}
