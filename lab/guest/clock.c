// SPDX-License-Identifier: BSD-3-Clause
/*
 * clock - lets gateway and emulator remember the time in user-mode Linux (LD_PRELOAD).
 *
 * There, reading the clock is a system call as expensive as sending a packet. In virtual time it is hardly worth it: while a program
 * runs, only its own reads of the clock let time pass. So each thread keeps the monotonic time that it has read until it waits in
 * epoll. A thread that waits elsewhere gets the new time late, after at most READS reads.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { READS = 64, SIGNAL_SET_BYTES = 8 };

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

int epoll_pwait(int epoll, struct epoll_event *events, int most, int timeout_ms, const sigset_t *blocked)
{
	left = 0;
	return (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout_ms, blocked, SIGNAL_SET_BYTES);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
	return epoll_pwait(epoll, events, most, timeout_ms, NULL);
}
