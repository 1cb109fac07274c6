/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guarded.c - runs a user's policy in a process of its own and answers a data plane's questions over a socket.
 *
 * The socket comes as standard input and moves to a descriptor of its own. A request is a struct ask, then the queues of the
 * view that changed, then values (the parameters). Questions get an answer, events do not. The state and everything the policy
 * may read lie at the end of their pages, each followed by a page that nobody may touch. What the policy may only read is
 * mapped a second time for it, read only. A signal handler tells what the policy did, and the process ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "linkweir/policy.h"

const char *linkweir_fault(void);
const struct lw_policy *linkweir_table(void);

enum op { DESCRIBE, CHECK, INIT, PICK, VICTIM, LEAVING, EXPIRED, OBSERVE, ENQUEUED, SENT, DROPPED, RATED };

struct ask {
	uint32_t op, q, bytes, ecn;
	uint64_t now_ns, link_bps;
	uint32_t nqueues, nchanged, nvalues, unused;
};

struct changed {
	uint32_t q, unused;
	struct lw_queue queue;
};

enum kind { ANSWER, FAULT };

struct answer {
	uint32_t kind, value;           /* of a fault: the call, of enum op */
	uint64_t retry_ns;              /* of a fault: the time of the call */
	uint32_t nbytes, q;             /* what follows; of a fault: the queue that the call was about */
};

/* Memory that ends where a forbidden page begins, mapped twice. */
struct area {
	const char *what;
	unsigned char *ours;            /* for writing; of the state, for the policy too */
	unsigned char *theirs;          /* the same memory, read only */
	size_t bytes;
};

#define CANARY 0xa5
#define TICK_MS 50
#define MOST_TICKS 20                   /* a call may take a second of processor time */
#define MOST_SECONDS 20                 /* and so long if it sleeps */
#define FIRST_OWN_FD 100                /* ours are beyond those that a policy meets */

static struct area state = { "its state", NULL, NULL, 0 };
static struct area queues = { "the queues of the view", NULL, NULL, 0 };
static struct area values = { "its parameters", NULL, NULL, 0 };
static size_t page;
static volatile sig_atomic_t calling;   /* whether the policy's code runs */
static volatile sig_atomic_t ticks;     /* of processor time, in this call */
static volatile sig_atomic_t seconds;   /* of real time, in this call */
static int channel;                     /* the socket */
static pid_t parent;
static const struct lw_policy *policy;
static struct ask ask;                  /* the latest */

/* --- The socket ---------------------------------------------------------------------------------------------------- */

static void put(const void *from, size_t bytes)
{
	const char *at = from;

	while (bytes > 0) {
		ssize_t n = write(channel, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1);
		at += n;
		bytes -= (size_t)n;
	}
}

static void get(void *to, size_t bytes)
{
	char *at = to;

	while (bytes > 0) {
		ssize_t n = read(channel, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);       /* the run is over */
		at += n;
		bytes -= (size_t)n;
	}
}

static void reply(enum kind kind, uint32_t value, uint64_t retry_ns, const void *more, size_t bytes)
{
	struct answer answer = { kind, value, retry_ns, (uint32_t)bytes, 0 };

	if (kind == FAULT)
		answer.q = ask.q;
	put(&answer, sizeof(answer));
	put(more, bytes);
}

/* Only calls that a signal handler may make. */
static void fail(const char *text)
{
	reply(FAULT, ask.op, ask.now_ns, text, strlen(text));
	_exit(1);
}

/* --- Memory -------------------------------------------------------------------------------------------------------- */

static unsigned char *map(int fd, size_t bytes, int protection)
{
	unsigned char *all = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED || mmap(all + page, bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		fail("there is not enough memory for its state");
	return all + page;
}

static size_t whole_pages(size_t bytes)
{
	size_t pages = (bytes + page - 1) / page;

	return (pages > 0 ? pages : 1) * page;
}

static size_t aligned(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

/* Gives an area this many bytes, at the end of its pages. */
static void resize(struct area *area, size_t bytes)
{
	size_t whole = whole_pages(bytes), before = whole - aligned(bytes);
	int fd;

	if (area->ours != NULL) {
		size_t old = whole_pages(area->bytes), old_before = old - aligned(area->bytes);

		munmap(area->ours - old_before - page, old + 2 * page);
		munmap(area->theirs - old_before - page, old + 2 * page);
	}
	fd = memfd_create("linkweir", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)whole) != 0)
		fail("there is not enough memory for its state");
	area->ours = map(fd, whole, PROT_READ | PROT_WRITE) + before;
	area->theirs = map(fd, whole, PROT_READ) + before;
	area->bytes = bytes;
	close(fd);
	memset(area->ours - before, CANARY, before);
	memset(area->ours + bytes, CANARY, aligned(bytes) - bytes);
}

/* Whether nobody wrote into what lies in the area's pages besides it. */
static void check_canaries(void)
{
	size_t before = whole_pages(state.bytes) - aligned(state.bytes), i;

	for (i = 0; i < before; i++)
		if (state.ours[i - before] != CANARY)
			fail("wrote in front of its state");
	for (i = state.bytes; i < aligned(state.bytes); i++)
		if (state.ours[i] != CANARY)
			fail("wrote behind its state");
}

/* --- What the policy did ------------------------------------------------------------------------------------------- */

static void append(char *text, size_t room, const char *more)
{
	size_t used = strlen(text);

	for (; *more != '\0' && used + 1 < room; more++)
		text[used++] = *more;
	text[used] = '\0';
}

static void append_number(char *text, size_t room, uint64_t number)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do
		digits[--at] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	append(text, room, digits + at);
}

/* Where an address is in relation to an area, if it is in or next to it. */
static bool tell_area(char *text, size_t room, const struct area *area, const unsigned char *start, const unsigned char *at)
{
	size_t whole = whole_pages(area->bytes);
	const unsigned char *end = start + aligned(area->bytes);
	uint64_t away;

	if (start == NULL || at < end - whole - page || at >= end + page)
		return false;
	if (at >= start && at < end) {
		append(text, room, "wrote to ");
		append(text, room, area->what);
		append(text, room, ", which it may only read here");
		return true;
	}
	append(text, room, "reached ");
	away = at < start ? (uint64_t)(start - at) : (uint64_t)(at - (start + area->bytes)) + 1;
	append_number(text, room, away);
	append(text, room, away == 1 ? " byte " : " bytes ");
	append(text, room, at < start ? "in front of " : "behind the end of ");
	append(text, room, area->what);
	append(text, room, " (");
	append_number(text, room, area->bytes);
	append(text, room, " bytes)");
	return true;
}

static void on_crash(int number, siginfo_t *info, void *context)
{
	static const struct area *const areas[] = { &state, &queues, &values };
	char text[200] = "";
	const unsigned char *at = info->si_addr;
	size_t i;

	(void)context;
	if (!calling)
		_exit(2);
	if (number == SIGFPE)
		fail("divided by 0");
	if (number == SIGABRT)
		fail("called abort()");
	if (number == SIGILL)
		fail("ran into code that is none");
	if (info->si_code == SI_KERNEL)         /* the processor tells no address that cannot be one */
		fail("followed a wild pointer, perhaps a value that init() never set");
	if (at < (const unsigned char *)page)
		fail("used a null pointer");
	for (i = 0; i < sizeof(areas) / sizeof(*areas); i++)
		if (tell_area(text, sizeof(text), areas[i], areas[i]->ours, at) ||
		    tell_area(text, sizeof(text), areas[i], areas[i]->theirs, at))
			fail(text);
	fail("reached memory that is not its own (a wild pointer, or a stack that ran full)");
}

static void on_tick(int number)
{
	(void)number;
	if (calling && ++ticks > MOST_TICKS)
		fail("did not return within 1 s of processor time");
}

static void on_second(int number)
{
	(void)number;
	if (getppid() != parent)
		_exit(0);               /* the run was killed */
	if (calling && ++seconds > MOST_SECONDS)
		fail("did not return within 20 s");
}

static void on_exit_called(void)
{
	if (calling)
		fail("called exit()");
}

static void prepare(void)
{
	static unsigned char own_stack[1 << 16];
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	stack_t stack = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) };
	struct sigaction crash = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct sigaction tick = { .sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct sigaction second = { .sa_handler = on_second, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct itimerval every = { { 0, TICK_MS * 1000 }, { 0, TICK_MS * 1000 } };
	struct itimerval each_second = { { 1, 0 }, { 1, 0 } };
	struct rlimit none = { 0, 0 };
	size_t i;
	int nothing;

	page = (size_t)sysconf(_SC_PAGESIZE);
	parent = getppid();
	channel = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, FIRST_OWN_FD);
	nothing = open("/dev/null", O_RDONLY);
	if (channel < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
		_exit(2);
	close(nothing);
	atexit(on_exit_called);
	sigaltstack(&stack, NULL);
	for (i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
		sigaction(crashes[i], &crash, NULL);
	sigaction(SIGPROF, &tick, NULL);
	sigaction(SIGALRM, &second, NULL);
	signal(SIGINT, SIG_IGN);        /* Ctrl-C is for the run, which then ends us */
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_CORE, &none);
	setitimer(ITIMER_PROF, &every, NULL);
	setitimer(ITIMER_REAL, &each_second, NULL);
}

/* --- Calls --------------------------------------------------------------------------------------------------------- */

static void begin(void)
{
	ticks = 0;
	seconds = 0;
	calling = 1;
}

static void end(void)
{
	calling = 0;
	if (state.ours != NULL)
		check_canaries();
}

static void put_text(FILE *to, const char *text)
{
	fputs(text != NULL ? text : "", to);
	fputc('\0', to);
}

static void put_params(FILE *to, const struct lw_param *rows, uint32_t count)
{
	uint32_t i;

	fprintf(to, "%u%c", (unsigned)count, '\0');
	for (i = 0; i < count; i++) {
		put_text(to, rows[i].name);
		put_text(to, rows[i].help);
		put_text(to, rows[i].choices);
		fprintf(to, "%llu%c%llu%c%llu%c%u%c%u%c", (unsigned long long)rows[i].min, '\0', (unsigned long long)rows[i].max,
			'\0', (unsigned long long)rows[i].def, '\0', (unsigned)rows[i].unit, '\0', (unsigned)rows[i].flags, '\0');
	}
}

/* The table as texts that end with a null byte; a fault if it is against the contract. */
static void describe(void)
{
	const char *fault = linkweir_fault();
	char *text = NULL;
	size_t bytes = 0;
	FILE *to;
	uint32_t i;

	if (fault != NULL)
		fail(fault);
	to = open_memstream(&text, &bytes);
	if (to == NULL)
		fail("there is not enough memory");
	put_text(to, policy->help);
	put_text(to, policy->shared_limit);
	fprintf(to, "%u%c%u%c", (unsigned)policy->max_queues, '\0', (unsigned)policy->traits, '\0');
	fprintf(to, "%d%c%d%c%d%c%d%c", policy->victim != NULL, '\0', policy->leaving != NULL, '\0', policy->expired != NULL, '\0',
		policy->check != NULL, '\0');
	put_params(to, policy->params, policy->nparams);
	put_params(to, policy->qparams, policy->nqparams);
	fprintf(to, "%u%c", (unsigned)policy->nstats, '\0');
	for (i = 0; i < policy->nstats; i++) {
		put_text(to, policy->stats[i].name);
		put_text(to, policy->stats[i].help);
		fprintf(to, "%u%c", (unsigned)policy->stats[i].unit, '\0');
	}
	fclose(to);
	reply(ANSWER, 0, 0, text, bytes);
	free(text);
}

static void check(const struct lw_view *v)
{
	struct lw_fault fault = { NULL, NULL, LW_NONE };
	const uint64_t *params = (const uint64_t *)values.theirs;
	char text[400];
	bool fits;

	begin();
	fits = policy->check == NULL || policy->check(v, params, params + policy->nparams, &fault);
	end();
	if (fits) {
		reply(ANSWER, 1, 0, NULL, 0);
		return;
	}
	snprintf(text, sizeof(text), "%s%c%s", fault.what != NULL ? fault.what : "", '\0', fault.param != NULL ? fault.param : "");
	reply(ANSWER, 0, fault.queue, text, strlen(text) + 1 + strlen(text + strlen(text) + 1));
}

static void init(const struct lw_view *v)
{
	const uint64_t *params = (const uint64_t *)values.theirs;
	size_t bytes;

	begin();
	bytes = policy->state_size(v->nqueues, params);
	calling = 0;
	if (bytes < 1 || bytes > (size_t)1 << 30)
		fail("state_size() must be 1 byte .. 1 GiB");
	resize(&state, bytes);
	memset(state.ours, CANARY, bytes);      /* init() finds no zeros to rely on */
	begin();
	policy->init(state.ours, v, params, params + policy->nparams);
	end();
	reply(ANSWER, 0, 0, NULL, 0);
}

/* Asked twice: the same question gets the same answer. */
static void pick(const struct lw_view *v)
{
	uint64_t retry_ns[2] = { LW_NEVER, LW_NEVER };
	uint32_t q[2];
	int i;

	for (i = 0; i < 2; i++) {
		begin();
		q[i] = policy->pick(state.ours, v, &retry_ns[i]);
		end();
	}
	if (q[0] != q[1] || (q[0] == LW_NONE && retry_ns[0] != retry_ns[1]))
		fail("gave two answers to the same question, asked twice with no event between");
	reply(ANSWER, q[0], retry_ns[0], NULL, 0);
}

static void observe(const struct lw_view *v, uint32_t q)
{
	int64_t shown[64] = { 0 };

	begin();
	policy->observe(state.theirs, v, q, shown);
	end();
	reply(ANSWER, 0, 0, shown, policy->nstats * sizeof(*shown));
}

static void event(void (*call)(void *, const struct lw_view *, uint32_t, uint32_t), const struct lw_view *v)
{
	if (call == NULL)
		return;
	begin();
	call(state.ours, v, ask.q, ask.bytes);
	end();
}

static void answer(const struct lw_view *v)
{
	uint32_t value;

	switch ((enum op)ask.op) {
	case DESCRIBE:
		describe();
		break;
	case CHECK:
		check(v);
		break;
	case INIT:
		init(v);
		break;
	case PICK:
		pick(v);
		break;
	case VICTIM:
		begin();
		value = policy->victim(state.ours, v, ask.q, ask.bytes);
		end();
		reply(ANSWER, value, 0, NULL, 0);
		break;
	case LEAVING:
		begin();
		value = (uint32_t)policy->leaving(state.ours, v, ask.q, ask.ecn != 0);
		end();
		reply(ANSWER, value, 0, NULL, 0);
		break;
	case EXPIRED:
		begin();
		value = policy->expired(state.theirs, v, ask.q);
		end();
		reply(ANSWER, value, 0, NULL, 0);
		break;
	case OBSERVE:
		observe(v, ask.q);
		break;
	case ENQUEUED:
		event(policy->enqueued, v);
		break;
	case SENT:
		event(policy->sent, v);
		break;
	case DROPPED:
		event(policy->dropped, v);
		break;
	case RATED:
		if (policy->rated != NULL) {
			begin();
			policy->rated(state.ours, v);
			end();
		}
		break;
	}
}

int main(void)
{
	struct changed changed;
	struct lw_view view;
	uint32_t i;

	prepare();
	policy = linkweir_table();
	for (;;) {
		get(&ask, sizeof(ask));
		if (queues.bytes != ask.nqueues * sizeof(struct lw_queue))
			resize(&queues, ask.nqueues * sizeof(struct lw_queue));
		for (i = 0; i < ask.nchanged; i++) {
			get(&changed, sizeof(changed));
			memcpy(queues.ours + changed.q * sizeof(struct lw_queue), &changed.queue, sizeof(struct lw_queue));
		}
		if (ask.nvalues > 0) {
			resize(&values, ask.nvalues * sizeof(uint64_t));
			get(values.ours, values.bytes);
		}
		view.now_ns = ask.now_ns;
		view.link_bps = ask.link_bps;
		view.queues = (const struct lw_queue *)queues.theirs;
		view.nqueues = ask.nqueues;
		answer(&view);
	}
}
