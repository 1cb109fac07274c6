// SPDX-License-Identifier: BSD-3-Clause
/*
 * preload - stands between user-mode Linux and the C library (LD_PRELOAD).
 *
 * getrandom: numbers that follow from LINKWEIR_SEED instead of the host's entropy, so that a run can be repeated. SplitMix64
 * (Steele, Lea and Flood 2014). For experiments only.
 *
 * ptrace: user-mode Linux up to 6.15 keeps 2696 bytes of a program's floating-point and vector registers, which is all of them up to
 * AVX-512. A host with AMX has more and refuses to set a part (EFAULT). What user-mode Linux does not keep is set to its initial state
 * here: programs inside cannot use it, since that takes a permission nobody gives them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

ssize_t getrandom(void *buffer, size_t bytes, unsigned int flags)
{
	static uint64_t state;
	static int known;
	unsigned char *out = buffer;
	size_t i;

	(void)flags;
	if (!known) {
		const char *seed = getenv("LINKWEIR_SEED");

		state = seed ? strtoull(seed, NULL, 10) : 0;
		known = 1;
	}
	for (i = 0; i < bytes; i++) {
		uint64_t z = state += 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		out[i] = (unsigned char)(z ^ (z >> 31));
	}
	return (ssize_t)bytes;
}

#ifdef __x86_64__
enum { LARGEST = 65536, COMPONENTS_AT = 512 };
#define AMX (UINT64_C(3) << 17)

static long call(int request, pid_t pid, void *address, void *data)
{
	static long (*next)(int, ...);

	if (!next)
		next = (long (*)(int, ...))dlsym(RTLD_NEXT, "ptrace");
	return next(request, pid, address, data);
}

long ptrace(enum __ptrace_request request, ...)
{
	static unsigned char whole[LARGEST] __attribute__((aligned(64)));
	struct iovec *part, all = { whole, sizeof(whole) };
	void *address, *data;
	uint64_t components;
	va_list rest;
	pid_t pid;

	va_start(rest, request);
	pid = va_arg(rest, pid_t);
	address = va_arg(rest, void *);
	data = va_arg(rest, void *);
	va_end(rest);
	part = data;
	if (request != PTRACE_SETREGSET || (uintptr_t)address != NT_X86_XSTATE || part->iov_len <= COMPONENTS_AT ||
	    part->iov_len >= sizeof(whole))
		return call(request, pid, address, data);
	memcpy(whole, part->iov_base, part->iov_len);
	memcpy(&components, whole + COMPONENTS_AT, sizeof(components));
	components &= ~AMX;
	memcpy(whole + COMPONENTS_AT, &components, sizeof(components));
	return call(request, pid, address, &all);
}
#endif
