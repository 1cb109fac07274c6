// SPDX-License-Identifier: BSD-3-Clause
/*
 * preload - replaces functions of the C library for user-mode Linux (LD_PRELOAD).
 *
 * getrandom: numbers computed from LINKWEIR_SEED instead of the host's entropy, so that a run can be repeated. SplitMix64
 * (Steele, Lea and Flood 2014). For experiments only.
 *
 * ptrace: user-mode Linux up to 6.15 saves 2696 bytes of a program's floating-point and vector registers, which is all of them up to
 * AVX-512. A host with AMX has more and refuses to set only a part (EFAULT). So this sets the registers that user-mode Linux does not
 * save to their initial state; programs inside never use them, as they have not requested the permission that AMX needs. It also
 * skips setting registers that have not changed since they were read, which would take most of the time of a system call inside.
 * And it lets no process outlive a kernel that is killed just after it began it, before the host knows that both belong together:
 * such a process would stay, stopped, for ever.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

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

static pid_t kernel;

__attribute__((constructor)) static void begin(void)
{
	kernel = getpid();
}

/* For a process that the kernel has just begun. */
static void end_with_kernel(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != kernel) /* it has ended already */
		_exit(1);
}

static long call(int request, pid_t pid, void *address, void *data)
{
	static long (*next)(int, ...);

	if (!next)
		next = (long (*)(int, ...))dlsym(RTLD_NEXT, "ptrace");
	return next(request, pid, address, data);
}

/* Registers of each process as last read, valid until it runs again. The host may have filled in fewer bytes than it was asked for. */
static struct known {
	pid_t pid;
	size_t asked, bytes;
	unsigned char registers[4096];
} known[64];

static struct known *known_of(pid_t pid)
{
	return &known[(unsigned int)pid % (sizeof(known) / sizeof(known[0]))];
}

static long set_registers(pid_t pid, const struct iovec *part)
{
	static unsigned char whole[LARGEST] __attribute__((aligned(64)));
	struct iovec all = { whole, sizeof(whole) };
	uint64_t components;

	memcpy(whole, part->iov_base, part->iov_len);
	memcpy(&components, whole + COMPONENTS_AT, sizeof(components));
	components &= ~AMX;
	memcpy(whole + COMPONENTS_AT, &components, sizeof(components));
	return call(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
	struct iovec *part;
	struct known *mine;
	void *address, *data;
	va_list rest;
	long result;
	pid_t pid;

	va_start(rest, request);
	pid = va_arg(rest, pid_t);
	address = va_arg(rest, void *);
	data = va_arg(rest, void *);
	va_end(rest);
	if (request == PTRACE_TRACEME)
		end_with_kernel();
	mine = known_of(pid);
	if ((request != PTRACE_GETREGSET && request != PTRACE_SETREGSET) || (uintptr_t)address != NT_X86_XSTATE) {
		if (mine->pid == pid && request != PTRACE_GETREGS && request != PTRACE_SETREGS)
			mine->pid = 0;
		return call((int)request, pid, address, data);
	}
	part = data;
	if (part->iov_len <= COMPONENTS_AT || part->iov_len > sizeof(mine->registers))
		return call((int)request, pid, address, data);
	if (request == PTRACE_SETREGSET) {
		if (mine->pid == pid && mine->asked == part->iov_len && !memcmp(mine->registers, part->iov_base, mine->bytes))
			return 0;
		mine->pid = 0;
		return set_registers(pid, part);
	}
	mine->asked = part->iov_len;
	result = call((int)request, pid, address, data);
	mine->pid = result ? 0 : pid;
	mine->bytes = part->iov_len;
	memcpy(mine->registers, part->iov_base, mine->bytes);
	return result;
}
#endif
