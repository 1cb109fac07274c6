// SPDX-License-Identifier: BSD-3-Clause
/*
 * clock - remembers the time for programs in user-mode Linux (LD_PRELOAD).
 *
 * There, reading the clock is a system call as expensive as sending a packet, and in virtual time it need not be made: time stands
 * still while a program runs, and passes while it waits. So each thread reads the monotonic clock again only after it waited in
 * epoll_wait. A thread that waits elsewhere gets the new time late, after at most READS reads.
 */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { READS = 64 };

static _Thread_local struct timespec known;
static _Thread_local int left;                  /* reads that `known` still answers */

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, clock, now);
	if (!left) {
		if (syscall(SYS_clock_gettime, clock, &known))
			return -1;
		left = READS;
	}
	left--;
	*now = known;
	return 0;
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
	left = 0;
	return (int)syscall(SYS_epoll_wait, epoll, events, most, timeout_ms);
}
