/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.c - the cost of one packet in each policy: enqueued + pick + leaving + sent, and the data plane around them.
 *
 * The data plane is minimal: one ring of 64 packets per queue, and the policy's view kept up to date. One turn
 * of the loop draws a packet that fits its ring from a prepared sequence of queues and lengths, then sends one, so that
 * the backlog stays at eight packets per queue on average. The clock advances by the time a packet of that length takes
 * at 1 Gbit/s. With the order `random` it is unpredictable which queue is drawn and so which runs empty; part of each
 * figure is branch mispredictions, in the bare loop too. With `turn` the queues are drawn in turn.
 *
 * The loop is compiled three times from one source:
 *   bare     rings and a bitmap of the backlogged ones, the first of them is served: strict priority without a policy
 *   view     the same, and the view is kept
 *   policy   the same data plane with the view, with a policy called through its contract
 *
 * Usage: bench list
 *        bench time CASE random|turn QUEUES PACKETS REPETITIONS
 *            alternates the three loops; prints ns per packet of each repetition
 *        bench count bare|view|CASE random|turn QUEUES PACKETS
 *            runs one loop once, for callgrind --toggle-collect=measured_*
 */
#include <linkweir/policy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING_PKTS 64u
#define MEAN_BACKLOG_PKTS 8u
#define SEQUENCE_PKTS 65536u           /* at most, unless one block is longer; whole blocks are used */
#define DRAWS_PER_QUEUE 16u             /* in a block */
#define LINK_BPS 1000000000u
#define NS_PER_BYTE 8u                  /* at LINK_BPS */
#define MAX_QUEUES 65536u
#define MAX_LEVELS 4096u                /* of pss */
#define WARM_UP_TURNS 4u                /* of the sequence */

struct packet {
	uint64_t arrival_ns;
	uint32_t bytes, unused;
};

struct ring {
	uint32_t in, out;               /* packets ever put in and taken out */
};

struct arrival {
	uint16_t queue, bytes;
};

struct plane {
	struct lw_view view;
	struct lw_queue *queues;        /* what view.queues points at */
	struct ring *rings;
	struct packet (*packets)[RING_PKTS];
	struct arrival *sequence;
	uint64_t ready[MAX_QUEUES / 64];        /* bare and view: the backlogged queues */
	uint32_t drawn, sequence_pkts;  /* next draw, and length of the cyclic sequence */
	const struct lw_policy *policy;
	void *state;
	size_t state_bytes;
};

enum loop { BARE, VIEW, POLICY };

__attribute__((noreturn, cold)) static void fail(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

/* Bare and view: the backlogged queues with words over words; up to 64 queues it is one word and stays in a register. */
struct ready {
	uint64_t summary[MAX_QUEUES / 4096], only, *word;
};

static inline __attribute__((always_inline)) void ready_add(struct ready *r, uint32_t q, bool small)
{
	if (small) {
		r->only |= (uint64_t)1 << q;
	} else {
		r->word[q >> 6] |= (uint64_t)1 << (q & 63);
		r->summary[q >> 12] |= (uint64_t)1 << (q >> 6 & 63);
	}
}

static inline __attribute__((always_inline)) void ready_remove(struct ready *r, uint32_t q, bool small)
{
	if (small) {
		r->only &= ~((uint64_t)1 << q);
	} else {
		r->word[q >> 6] &= ~((uint64_t)1 << (q & 63));
		if (!r->word[q >> 6])
			r->summary[q >> 12] &= ~((uint64_t)1 << (q >> 6 & 63));
	}
}

static inline __attribute__((always_inline)) uint32_t ready_first(const struct ready *r, bool small)
{
	uint32_t top = 0, word;

	if (small)
		return (uint32_t)__builtin_ctzll(r->only);
	while (!r->summary[top])
		top++;
	word = (top << 6) | (uint32_t)__builtin_ctzll(r->summary[top]);
	return (word << 6) | (uint32_t)__builtin_ctzll(r->word[word]);
}

/* Draws packets until one fits its ring; returns the place in the sequence after it. */
static inline __attribute__((always_inline)) uint32_t take_in(struct plane *p, uint32_t drawn, struct ready *r,
							       enum loop loop, bool small)
{
	struct packet *packet;
	struct arrival a;
	struct ring *ring;

	do {
		a = p->sequence[drawn];
		drawn = drawn + 1 == p->sequence_pkts ? 0 : drawn + 1;
		ring = &p->rings[a.queue];
	} while (ring->in - ring->out == RING_PKTS);
	packet = &p->packets[a.queue][ring->in++ % RING_PKTS];
	packet->arrival_ns = p->view.now_ns;
	packet->bytes = a.bytes;
	if (loop != POLICY)
		ready_add(r, a.queue, small);
	if (loop != BARE) {
		struct lw_queue *queue = &p->queues[a.queue];

		if (!queue->backlog_pkts) {
			queue->head_arrival_ns = p->view.now_ns;
			queue->head_bytes = a.bytes;
		}
		queue->backlog_pkts++;
		queue->backlog_bytes += a.bytes;
	}
	if (loop == POLICY) {
		const struct lw_policy *policy = p->policy;

		if (policy->enqueued)
			policy->enqueued(p->state, &p->view, a.queue, a.bytes);
		if (policy->victim && policy->victim(p->state, &p->view, a.queue, a.bytes) != LW_NONE)
			fail("the policy drops; the case must give it room");
	}
	return drawn;
}

static inline __attribute__((always_inline)) void send_one(struct plane *p, struct ready *r, enum loop loop, bool small)
{
	struct packet *packet;
	struct ring *ring;
	uint64_t retry_ns;
	uint32_t q, bytes;

	if (loop == POLICY) {
		q = p->policy->pick(p->state, &p->view, &retry_ns);
		if (q == LW_NONE)
			fail("the policy picked nothing while packets wait");
		if (p->policy->leaving && p->policy->leaving(p->state, &p->view, q, false) != LW_PASS)
			fail("the policy drops what it picked; the case must give it time");
	} else {
		q = ready_first(r, small);
	}
	ring = &p->rings[q];
	bytes = p->packets[q][ring->out++ % RING_PKTS].bytes;
	if (loop != POLICY && ring->out == ring->in)
		ready_remove(r, q, small);
	if (loop != BARE) {
		struct lw_queue *queue = &p->queues[q];

		queue->backlog_bytes -= bytes;
		if (--queue->backlog_pkts) {
			packet = &p->packets[q][ring->out % RING_PKTS];
			queue->head_arrival_ns = packet->arrival_ns;
			queue->head_bytes = packet->bytes;
		}
	}
	if (loop == POLICY && p->policy->sent)
		p->policy->sent(p->state, &p->view, q, bytes);
	p->view.now_ns += (uint64_t)bytes * NS_PER_BYTE;
}

static inline __attribute__((always_inline)) void turns(struct plane *p, uint64_t packets, enum loop loop, bool small)
{
	struct ready r = { { 0 }, p->ready[0], p->ready };
	uint32_t word, drawn = p->drawn;

	for (word = 0; !small && word < MAX_QUEUES / 64; word++)
		r.summary[word >> 6] |= (uint64_t)(p->ready[word] != 0) << (word & 63);
	while (packets--) {
		drawn = take_in(p, drawn, &r, loop, small);
		send_one(p, &r, loop, small);
	}
	p->drawn = drawn;
	if (small)
		p->ready[0] = r.only;
}

/* Sets up the standing backlog. */
static void fill(struct plane *p, enum loop loop)
{
	struct ready r = { { 0 }, 0, p->ready };
	uint32_t i;

	for (i = 0; i < MEAN_BACKLOG_PKTS * p->view.nqueues; i++)
		p->drawn = take_in(p, p->drawn, &r, loop, false);
}

static inline __attribute__((always_inline)) void serve(struct plane *p, uint64_t packets, enum loop loop)
{
	if (loop == POLICY)
		turns(p, packets, POLICY, true);
	else if (p->view.nqueues <= 64)
		turns(p, packets, loop, true);
	else
		turns(p, packets, loop, false);
}

/* Separate functions, since callgrind starts counting at a name. */
__attribute__((noinline)) static void measured_bare(struct plane *p, uint64_t packets)
{
	serve(p, packets, BARE);
}

__attribute__((noinline)) static void measured_view(struct plane *p, uint64_t packets)
{
	serve(p, packets, VIEW);
}

__attribute__((noinline)) static void measured_policy(struct plane *p, uint64_t packets)
{
	serve(p, packets, POLICY);
}

static void run(struct plane *p, uint64_t packets, enum loop loop)
{
	if (loop == BARE)
		measured_bare(p, packets);
	else if (loop == VIEW)
		measured_view(p, packets);
	else
		measured_policy(p, packets);
}

/* The same loop under another name, so that the warm-up is not counted. */
__attribute__((noinline)) static void warm_up(struct plane *p, uint64_t packets, enum loop loop)
{
	if (loop == BARE)
		serve(p, packets, BARE);
	else if (loop == VIEW)
		serve(p, packets, VIEW);
	else
		serve(p, packets, POLICY);
}

/* ---- the cases ---- */

struct bench_case {
	const char *name;
	const struct lw_policy *policy;
	struct {
		const char *name;
		uint64_t value;
	} params[3];                    /* those that differ from their defaults; a NULL name ends them */
	bool linear;                    /* steps grow with the number of queues: fewer packets suffice */
	void (*fill)(uint64_t *qparams, const struct lw_policy *policy, uint32_t nqueues);
};

static uint32_t column(const struct lw_param *table, uint32_t n, const char *name)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(table[i].name, name))
			return i;
	fprintf(stderr, "bench: no parameter %s\n", name);
	exit(1);
}

static void set(uint64_t *qparams, const struct lw_policy *policy, uint32_t q, const char *name, uint64_t value)
{
	qparams[(size_t)q * policy->nqparams + column(policy->qparams, policy->nqparams, name)] = value;
}

static void fill_weights(uint64_t *qparams, const struct lw_policy *policy, uint32_t nqueues)
{
	uint32_t q;

	for (q = 0; q < nqueues; q++)
		set(qparams, policy, q, "weight", 1 + q % 8);
}

/* RFC 5865: the first queue strictly first, the others share what is left. */
static void fill_two_levels(uint64_t *qparams, const struct lw_policy *policy, uint32_t nqueues)
{
	uint32_t q;

	for (q = 1; q < nqueues; q++)
		set(qparams, policy, q, "level", 1);
}

/*
 * A third of the queues is controlled, as far as 4096 levels allow, each with the rate at which its packets arrive. So
 * neither they nor the plain queues below them run dry, and they change their level every few packets.
 */
static uint32_t controlled_queues(uint32_t nqueues)
{
	uint32_t third = nqueues / 3, spare = nqueues < MAX_LEVELS ? MAX_LEVELS - nqueues : 0;

	return third < spare ? third : spare;
}

static void fill_reservations(uint64_t *qparams, const struct lw_policy *policy, uint32_t nqueues)
{
	uint32_t q, left = controlled_queues(nqueues);

	for (q = 0; q < nqueues; q++) {
		if (q % 3 == 1 && left) {
			left--;
			set(qparams, policy, q, "low_level", 2 * MAX_LEVELS + q);
			set(qparams, policy, q, "rate", LINK_BPS / nqueues);
			set(qparams, policy, q, "burst", 4);
		} else if (q % 3 == 2) {
			set(qparams, policy, q, "level", MAX_LEVELS + q);
		}
	}
}

static void fill_proportions(uint64_t *qparams, const struct lw_policy *policy, uint32_t nqueues)
{
	uint32_t q;

	for (q = 0; q < nqueues; q++)
		set(qparams, policy, q, "delay", 1 + q % 8);
}

static void fill_timeouts(uint64_t *qparams, const struct lw_policy *policy, uint32_t nqueues)
{
	uint32_t q;

	for (q = 0; q < nqueues; q++)
		set(qparams, policy, q, "timeout", 3600000000000u);
}

static const struct bench_case cases[] = {
	{ "fifo", &lw_policy_fifo, { { NULL, 0 } }, true, NULL },
	{ "strict", &lw_policy_strict, { { NULL, 0 } }, false, NULL },
	{ "rr", &lw_policy_rr, { { NULL, 0 } }, false, NULL },
	{ "wrr", &lw_policy_wrr, { { NULL, 0 } }, false, fill_weights },
	{ "wrr-smooth", &lw_policy_wrr, { { "mode", 1 } }, false, fill_weights },
	{ "drr", &lw_policy_drr, { { NULL, 0 } }, false, NULL },
	{ "drr-rfc5865", &lw_policy_drr, { { NULL, 0 } }, false, fill_two_levels },
	{ "pss", &lw_policy_pss, { { NULL, 0 } }, false, fill_reservations },
	{ "pss-paper", &lw_policy_pss, { { "sat", 1 } }, true, fill_reservations },
	{ "pds", &lw_policy_pds, { { "limit", 1u << 20 } }, true, fill_proportions },
	{ "pf", &lw_policy_pf, { { NULL, 0 } }, false, NULL },
	{ "codes", &lw_policy_codes, { { NULL, 0 } }, false, fill_timeouts },
	{ "mlwdf", &lw_policy_mlwdf, { { NULL, 0 } }, true, NULL },
	{ "exp_rule", &lw_policy_exp_rule, { { NULL, 0 } }, true, NULL },
	{ "exp_pf", &lw_policy_exp_pf, { { NULL, 0 } }, true, NULL },
	{ "codel", &lw_policy_codel, { { "target", 10000000000u } }, true, NULL },
	{ "fq_codel", &lw_policy_fq_codel,
	  { { "target", 10000000000u }, { "limit", 1u << 20 }, { "memory", (uint64_t)1 << 40 } }, false, NULL },
};
#define NCASES (sizeof(cases) / sizeof(cases[0]))

/* ---- preparation ---- */

static uint64_t splitmix64(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void *allot(size_t count, size_t size)
{
	void *block = calloc(count, size);

	if (!block)
		fail("out of memory");
	return block;
}

/*
 * Blocks of 16 draws per queue, the same 16 lengths for each, in random order: over a block every queue receives the same
 * bytes, so that a standing backlog stays in place under a policy that shares the link equally.
 */
static uint32_t prepare_sequence(struct arrival *sequence, uint32_t nqueues, bool in_turn)
{
	uint32_t block = DRAWS_PER_QUEUE * nqueues, blocks = block < SEQUENCE_PKTS ? SEQUENCE_PKTS / block : 1, i, j, b;
	uint16_t lengths[DRAWS_PER_QUEUE];
	uint64_t seed = 1;

	for (b = 0; b < blocks; b++) {
		struct arrival *row = sequence + (size_t)b * block;

		for (i = 0; i < DRAWS_PER_QUEUE; i++)
			lengths[i] = (uint16_t)(64 + splitmix64(&seed) % 1437);
		for (i = 0; i < block; i++) {
			row[i].queue = (uint16_t)(i % nqueues);
			row[i].bytes = lengths[i / nqueues];
		}
		for (i = block - 1; i > 0 && !in_turn; i--) {
			struct arrival kept = row[i];

			j = (uint32_t)(splitmix64(&seed) % (i + 1));
			row[i] = row[j];
			row[j] = kept;
		}
	}
	return blocks * block;
}

static void set_up(struct plane *p, uint32_t nqueues, bool in_turn)
{
	uint32_t q;

	memset(p, 0, sizeof(*p));
	p->queues = allot(nqueues, sizeof(*p->queues));
	p->rings = allot(nqueues, sizeof(*p->rings));
	p->packets = allot(nqueues, sizeof(*p->packets));
	p->sequence = allot(SEQUENCE_PKTS + (size_t)DRAWS_PER_QUEUE * nqueues, sizeof(*p->sequence));
	p->view.now_ns = 1000000000u;
	p->view.link_bps = LINK_BPS;
	p->view.queues = p->queues;
	p->view.nqueues = nqueues;
	for (q = 0; q < nqueues; q++)
		p->queues[q].rate_bps = LINK_BPS;
	p->sequence_pkts = prepare_sequence(p->sequence, nqueues, in_turn);
}

/* Returns NULL if the policy was set up, else why it cannot serve so many queues. */
static const char *set_policy(struct plane *p, const struct bench_case *c)
{
	const struct lw_policy *policy = c->policy;
	uint32_t n = p->view.nqueues, q, i;
	uint64_t *params = allot(policy->nparams + 1, sizeof(*params));
	uint64_t *qparams = allot((size_t)n * policy->nqparams + 1, sizeof(*qparams));
	struct lw_fault fault = { "refused", "", LW_NONE };
	size_t bytes;

	for (i = 0; i < policy->nparams; i++)
		params[i] = policy->params[i].def;
	for (q = 0; q < n; q++)
		for (i = 0; i < policy->nqparams; i++)
			qparams[(size_t)q * policy->nqparams + i] = policy->qparams[i].def;
	for (i = 0; i < 3 && c->params[i].name; i++)
		params[column(policy->params, policy->nparams, c->params[i].name)] = c->params[i].value;
	if (c->fill)
		c->fill(qparams, policy, n);
	if (n > policy->max_queues)
		return "does not serve so many queues";
	bytes = policy->state_size(n, params);
	if (policy->check && !policy->check(&p->view, params, qparams, &fault))
		return fault.what;
	p->policy = policy;
	p->state = allot((bytes + 7) / 8, 8);
	p->state_bytes = bytes;
	policy->init(p->state, &p->view, params, qparams);
	free(params);
	free(qparams);
	return NULL;
}

static uint64_t warm_up_packets(const struct bench_case *c, uint32_t nqueues, uint64_t packets)
{
	uint64_t full = (uint64_t)WARM_UP_TURNS * SEQUENCE_PKTS;

	return c && c->linear && nqueues > 64 ? packets / 8 + MEAN_BACKLOG_PKTS : full;
}

/* Processor time of this process, so that other processes do not count. */
static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void print_list(const char *name, const double *values, uint32_t n, const char *end)
{
	uint32_t i;

	printf("\"%s\": [", name);
	for (i = 0; i < n; i++)
		printf("%s%.3f", i ? ", " : "", values[i]);
	printf("]%s", end);
}

static int time_case(const struct bench_case *c, bool in_turn, uint32_t nqueues, uint64_t packets, uint32_t repetitions)
{
	static struct plane planes[3];
	double *ns[3];
	const char *refusal;
	uint32_t loop, i;

	for (loop = BARE; loop <= POLICY; loop++) {
		set_up(&planes[loop], nqueues, in_turn);
		ns[loop] = allot(repetitions, sizeof(double));
	}
	refusal = set_policy(&planes[POLICY], c);
	if (refusal) {
		printf("{\"case\": \"%s\", \"queues\": %u, \"refused\": \"%s\"}\n", c->name, nqueues, refusal);
		return 0;
	}
	for (loop = BARE; loop <= POLICY; loop++) {
		fill(&planes[loop], (enum loop)loop);
		warm_up(&planes[loop], warm_up_packets(loop == POLICY ? c : NULL, nqueues, packets), (enum loop)loop);
	}
	for (i = 0; i < repetitions; i++) {
		for (loop = BARE; loop <= POLICY; loop++) {
			double begin = cpu_seconds();

			run(&planes[loop], packets, (enum loop)loop);
			ns[loop][i] = (cpu_seconds() - begin) * 1e9 / (double)packets;
		}
	}
	printf("{\"case\": \"%s\", \"queues\": %u, \"packets\": %llu, \"state_bytes\": %llu, ", c->name, nqueues,
	       (unsigned long long)packets,
	       (unsigned long long)planes[POLICY].state_bytes);
	print_list("bare_ns", ns[BARE], repetitions, ", ");
	print_list("view_ns", ns[VIEW], repetitions, ", ");
	print_list("policy_ns", ns[POLICY], repetitions, "}\n");
	return 0;
}

static int count_case(const struct bench_case *c, enum loop loop, bool in_turn, uint32_t nqueues, uint64_t packets)
{
	static struct plane plane;
	const char *refusal;

	set_up(&plane, nqueues, in_turn);
	if (loop == POLICY) {
		refusal = set_policy(&plane, c);
		if (refusal)
			fail(refusal);
	}
	fill(&plane, loop);
	warm_up(&plane, warm_up_packets(c, nqueues, packets), loop);
	run(&plane, packets, loop);
	return 0;
}

static const struct bench_case *find(const char *name)
{
	size_t i;

	for (i = 0; i < NCASES; i++)
		if (!strcmp(cases[i].name, name))
			return &cases[i];
	fprintf(stderr, "bench: no case %s\n", name);
	exit(2);
}

static uint64_t whole(const char *text, uint64_t max)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*end || !value || value > max) {
		fprintf(stderr, "bench: %s is not in 1..%llu\n", text, (unsigned long long)max);
		exit(2);
	}
	return value;
}

static bool in_turn(const char *order)
{
	if (strcmp(order, "random") && strcmp(order, "turn")) {
		fprintf(stderr, "bench: the order is random or turn, not %s\n", order);
		exit(2);
	}
	return !strcmp(order, "turn");
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (i = 0; i < NCASES; i++)
			printf("%s %s\n", cases[i].name, cases[i].linear ? "linear" : "constant");
		return 0;
	}
	if (argc == 7 && !strcmp(argv[1], "time"))
		return time_case(find(argv[2]), in_turn(argv[3]), (uint32_t)whole(argv[4], MAX_QUEUES),
				 whole(argv[5], 1u << 30), (uint32_t)whole(argv[6], 1000));
	if (argc == 6 && !strcmp(argv[1], "count")) {
		bool turn = in_turn(argv[3]);
		uint32_t nqueues = (uint32_t)whole(argv[4], MAX_QUEUES);
		uint64_t packets = whole(argv[5], 1u << 30);

		if (!strcmp(argv[2], "bare"))
			return count_case(NULL, BARE, turn, nqueues, packets);
		if (!strcmp(argv[2], "view"))
			return count_case(NULL, VIEW, turn, nqueues, packets);
		return count_case(find(argv[2]), POLICY, turn, nqueues, packets);
	}
	fprintf(stderr, "usage: bench list | time CASE random|turn QUEUES PACKETS REPETITIONS |\n"
			"       bench count bare|view|CASE random|turn QUEUES PACKETS\n");
	return 2;
}
