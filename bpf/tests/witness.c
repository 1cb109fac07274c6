// SPDX-License-Identifier: GPL-2.0-only
/*
 * witness.c - looks at loaders and disciplines from outside, without linkweir's own programs.
 *
 *   witness kill N COMMAND...    runs a loader and kills it, and the tc that it runs, when their Nth watched call has returned: one of
 *                                bpf(2), a message to the kernel by netlink, or a folder made, or a pin or folder removed. If it ends earlier, or N is 0,
 *                                prints the number of these calls. Exit code: that of the command, or 137 if it was killed
 *   witness memory PINS          a hash of the memory of the discipline that is pinned in this folder: its arena, and the texts of its
 *                                settings
 *   witness settings PINS        the text of the settings in force there
 *
 * The last two load no program, so they change nothing and take a hundredth of the time that the loader's commands take.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
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

#include "../plane.h"

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

#define MOST_TRACED 16

/* The loader and the programs that it runs, and the system call that each of them is in. */
static struct traced {
	pid_t pid;
	uint64_t number;
} traced[MOST_TRACED];

static struct traced *traced_of(pid_t pid)
{
	struct traced *one;

	for (one = traced; one < traced + MOST_TRACED; one++)
		if (one->pid == pid)
			return one;
	return NULL;
}

static void kill_all(void)
{
	struct traced *one;

	for (one = traced; one < traced + MOST_TRACED; one++)
		if (one->pid)
			kill(one->pid, SIGKILL);
}

/* Calls that change something outside the process, or ask the kernel to: bpf(2), what is sent by netlink, folders made, and pins or folders removed. */
static bool is_watched(uint64_t number)
{
	switch (number) {
	case __NR_bpf:
	case __NR_sendto:
	case __NR_sendmsg:
	case __NR_mkdir:
	case __NR_mkdirat:
	case __NR_rmdir:
	case __NR_unlink:
	case __NR_unlinkat:
		return true;
	}
	return false;
}

/* Whether a traced process has returned from a call that is watched. */
static bool returned(struct traced *one)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, one->pid, (void *)sizeof(info), &info) < 0)
		return false;                   /* it was killed */
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		one->number = info.entry.nr;
	return info.op == PTRACE_SYSCALL_INFO_EXIT && is_watched(one->number);
}

/* The signal that a stopped process gets when it continues: none for the stops that tracing makes. */
static int signal_of(int status, bool is_new)
{
	int signal = WSTOPSIG(status);

	return status >> 16 || signal == (SIGTRAP | 0x80) || (is_new && signal == SIGSTOP) ? 0 : signal;
}

static int kill_after(long calls, char **command)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
			     PTRACE_O_TRACEEXEC;
	pid_t loader = fork(), pid;
	int status, code = 1;
	long made = 0;

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
	if (ptrace(PTRACE_SETOPTIONS, loader, NULL, (void *)options))
		fail("ptrace");
	traced[0].pid = loader;
	ptrace(PTRACE_SYSCALL, loader, NULL, NULL);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		struct traced *one = traced_of(pid);
		bool is_new = !one;

		if (!WIFSTOPPED(status)) {
			if (one)
				one->pid = 0;
			if (pid == loader)
				code = ended(status);
			continue;
		}
		if (is_new && !(one = traced_of(0))) {
			fprintf(stderr, "witness: more than %d processes\n", MOST_TRACED);
			exit(1);
		}
		one->pid = pid;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) && returned(one) && ++made == calls)
			kill_all();
		ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)signal_of(status, is_new));
	}
	if (!calls || made < calls)
		printf("%ld\n", made);
	return code;
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

	for (i = 0; i < bytes / 8; i++) {
		of = (of ^ words[i]) * 0x100000001b3ull;
		of ^= of >> 32; /* so that highest bits of two words do not cancel */
	}
	return of;
}

static const void *map_arena(const char *folder, size_t *bytes)
{
	struct bpf_map_info info = { 0 };
	int map = open_pinned(folder, "arena", &info);
	void *arena;

	*bytes = info.max_entries * PAGE_BYTES;
	/* the kernel lets an arena be at one address only */
	arena = mmap((void *)(uintptr_t)info.map_extra, *bytes, PROT_READ, MAP_SHARED, map, 0);
	if (arena == MAP_FAILED)
		fail("arena");
	close(map);
	return arena;
}

struct notes {
	uint64_t version, rate_bps, bytes;
	char text[LW_NOTES_BYTES - 24];
};

static struct notes *read_notes(const char *folder, uint32_t place)
{
	static struct notes notes;
	struct bpf_map_info info = { 0 };
	union bpf_attr attr = { 0 };
	int map = open_pinned(folder, "notes", &info);

	if (info.value_size != sizeof(notes)) {
		errno = EINVAL;
		fail("notes");
	}
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)&place;
	attr.value = (uintptr_t)&notes;
	if (bpf(BPF_MAP_LOOKUP_ELEM, &attr))
		fail("notes");
	close(map);
	return &notes;
}

static void print_memory(const char *folder)
{
	const uint64_t empty = 0xcbf29ce484222325ull;
	uint64_t texts = empty;
	uint32_t place;
	size_t bytes;
	const void *arena = map_arena(folder, &bytes);

	for (place = 0; place < LW_TEXTS; place++)
		texts = hash(texts, (const uint64_t *)read_notes(folder, place), sizeof(struct notes));
	printf("%016llx %016llx\n", (unsigned long long)hash(empty, arena, bytes), (unsigned long long)texts);
}

static void print_settings(const char *folder)
{
	size_t bytes;
	const char *arena = map_arena(folder, &bytes);
	const struct lw_settings *now = (const struct lw_settings *)(arena + ((const struct lw_plane *)arena)->now_at);
	const struct notes *notes = read_notes(folder, (uint32_t)now->text);

	fwrite(notes->text, 1, notes->bytes < sizeof(notes->text) ? notes->bytes : sizeof(notes->text), stdout);
}

int main(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "kill"))
		return kill_after(atol(argv[2]), argv + 3);
	if (argc == 3 && !strcmp(argv[1], "memory")) {
		print_memory(argv[2]);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "settings")) {
		print_settings(argv[2]);
		return 0;
	}
	fprintf(stderr, "usage: witness kill N COMMAND... | memory PINS | settings PINS\n");
	return 2;
}
