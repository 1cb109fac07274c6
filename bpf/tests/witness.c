// SPDX-License-Identifier: GPL-2.0-only
/*
 * witness.c - looks at loaders and disciplines from outside, without linkweir's own programs.
 *
 *   witness kill N COMMAND...    runs a loader and kills it when its Nth call bpf(2) has returned; if it ends earlier, or N is 0, prints the
 *                                number of these calls. Exit code: that of the command, or 137 if it was killed
 *   witness memory PINS          a hash of the memory of the discipline that is pinned in this folder: its arena, and the texts of its
 *                                settings. It loads no program, so it changes nothing and takes little time
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/bpf.h>

#define PAGE_BYTES 4096ul

static void fail(const char *what)
{
	fprintf(stderr, "witness: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int ended(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Whether the traced process has returned from bpf(2). */
static int returned(pid_t loader, uint64_t *number)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, loader, (void *)sizeof(info), &info) < 0)
		fail("ptrace");
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		*number = info.entry.nr;
	return info.op == PTRACE_SYSCALL_INFO_EXIT && *number == __NR_bpf;
}

static int kill_after(long calls, char **command)
{
	pid_t loader = fork();
	uint64_t number = 0;
	long made = 0;
	int status, signal = 0;

	if (loader < 0)
		fail("fork");
	if (!loader) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			fail("ptrace");
		execvp(command[0], command);
		fail(command[0]);
	}
	waitpid(loader, &status, 0);            /* it stops in execvp */
	if (!WIFSTOPPED(status))
		return ended(status);
	if (ptrace(PTRACE_SETOPTIONS, loader, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)))
		fail("ptrace");
	for (;;) {
		ptrace(PTRACE_SYSCALL, loader, NULL, (void *)(long)signal);
		waitpid(loader, &status, 0);
		if (!WIFSTOPPED(status)) {
			printf("%ld\n", made);
			return ended(status);
		}
		signal = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
		if (signal || !returned(loader, &number) || ++made != calls)
			continue;
		kill(loader, SIGKILL);
		waitpid(loader, &status, 0);
		return ended(status);
	}
}

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(__NR_bpf, command, attr, sizeof(*attr));
}

static int open_pinned(const char *folder, const char *name, struct bpf_map_info *info)
{
	union bpf_attr attr = { 0 };
	char path[512];
	int map;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	attr.pathname = (uintptr_t)path;
	map = (int)bpf(BPF_OBJ_GET, &attr);
	if (map < 0)
		fail(path);
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)map;
	attr.info.info_len = sizeof(*info);
	attr.info.info = (uintptr_t)info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
		fail(path);
	return map;
}

/* FNV-1a, a word of eight bytes at a time */
static uint64_t hash(uint64_t of, const uint64_t *words, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes / 8; i++)
		of = (of ^ words[i]) * 0x100000001b3ull;
	return of;
}

static void print_memory(const char *folder)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr attr = { 0 };
	uint64_t arena_hash = 0xcbf29ce484222325ull, texts_hash = arena_hash, *words;
	int map = open_pinned(folder, "arena", &info);
	uint32_t place;

	/* the kernel lets an arena be at one address only */
	words = mmap((void *)(uintptr_t)info.map_extra, info.max_entries * PAGE_BYTES, PROT_READ, MAP_SHARED, map, 0);
	if (words == MAP_FAILED)
		fail("arena");
	arena_hash = hash(arena_hash, words, info.max_entries * PAGE_BYTES);
	memset(&info, 0, sizeof(info));
	map = open_pinned(folder, "notes", &info);
	words = calloc(1, info.value_size);
	if (!words)
		fail("memory");
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)&place;
	attr.value = (uintptr_t)words;
	for (place = 0; place < info.max_entries; place++) {
		if (bpf(BPF_MAP_LOOKUP_ELEM, &attr))
			fail("notes");
		texts_hash = hash(texts_hash, words, info.value_size);
	}
	printf("%016llx %016llx\n", (unsigned long long)arena_hash, (unsigned long long)texts_hash);
}

int main(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "kill"))
		return kill_after(atol(argv[2]), argv + 3);
	if (argc == 3 && !strcmp(argv[1], "memory")) {
		print_memory(argv[2]);
		return 0;
	}
	fprintf(stderr, "usage: witness kill N COMMAND... | memory PINS\n");
	return 2;
}
