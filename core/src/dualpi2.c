/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * dualpi2.c - two queues with coupled queue management: a short one for L4S packets, a longer one for classic ones.
 *
 * De Schepper, Briscoe and White, RFC 9332, 2023: the coupling of section 2.1, the controller of section 2.5 and appendix A.
 * The data plane sorts packets by their ECN codepoint: ECT(1) and CE into queues with `l4s`, all others into the rest. All
 * queues of a kind are one queue, first come, first served; ties go to the lowest index.
 *
 * Every `tupdate` a proportional-integral controller moves the base probability p by
 *     alpha * (delay - target) + beta * (delay - delay at the last update),
 * delay being the longer of the two waits of the head packets. Classic packets are marked (dropped if they cannot carry a
 * mark) with probability p * p, L4S packets with `coupling` * p, and also if they waited longer than `step`. While coupling
 * * p exceeds 1 the queues are overloaded: packets of both kinds are dropped with probability p * p, and the other L4S packets
 * are marked; or, with overload = mark, p stays at 1 / coupling and the limit has to drop. Nothing is marked or dropped by
 * probability while less than two mtu wait behind the packet. Above `limit` packets or `memory` bytes the newest packet is
 * dropped, then tails of its queue, then of the first queue that has packets.
 *
 * What appendix A leaves open is done as in Linux (net/sched/sch_dualpi2.c; lab/dualpi2 compares verdicts): p and the random
 * numbers have 32 bits, the gains are whole 2^-32 per 64 ns, rounded down; weighted round robin of both kinds by a credit in
 * bytes * share; and verdicts at departure only. Deviations from Linux:
 *   A policy has no timer. The next event makes the updates that were due, each for its own instant, with the heads of that
 *   time; Linux sets its timer again at the end of an update. If packets waited for more than 64 updates without an event, the
 *   rest is one update at the time of the event, from which the next one is counted.
 *   A queue whose rate_bps is 0 counts as empty. The first update after that moves p by beta * all its wait. An outage of the
 *   link blocks no queue: as in Linux p rises, up to 1, and what waited is dropped after it.
 *   Random numbers are the upper halves of SplitMix64 (Steele, Lea and Flood, 2014), which begins with `seed`.
 *   Shares are millionths, not percent. Gains end at 65536. p stays at its bounds, where Linux's 32 bits can wrap.
 *   `memory` counts bytes of packets, not of buffers. After a lower limit the next arrival drops; Linux drops at once.
 *   A change of classic_share leaves the credit, and one to overload = mark moves p at once; Linux sets the credit back, and moves
 *   p at its next update. The credit is set back when the queues become empty, in Linux when it finds them empty.
 *   Early drops at arrival, a step in packets, the least queue length for the step, filters, the choice of codepoints and the
 *   splitting of aggregated packets are left out.
 *
 * pick and leaving are O(1) without an update; an event looks at every queue.
 */
#include "view.h"

#include <linkweir/math.h>

#define DUAL_MOST_UPDATES 64u           /* at their own instants, while packets wait */
#define DUAL_MOST_DELAY_NS ((uint64_t)1 << 40)
#define DUAL_MOST_PROB UINT32_MAX
#define DUAL_MOST_CREDIT ((int64_t)1 << 40)     /* more than a packet at a share of 1 */

enum {
	DUAL_TARGET, DUAL_TUPDATE, DUAL_ALPHA, DUAL_BETA, DUAL_COUPLING, DUAL_STEP, DUAL_SHARE, DUAL_OVERLOAD, DUAL_MTU,
	DUAL_LIMIT, DUAL_MEMORY, DUAL_SEED, DUAL_NPARAMS
};
enum { DUAL_L4S, DUAL_NQPARAMS };
enum { DUAL_C, DUAL_L, DUAL_KINDS };

struct dualpi2_state {
	uint64_t now_ns;
	uint64_t target_ns, tupdate_ns, step_ns;
	int64_t alpha, beta;            /* 2^-32 of probability per 64 ns */
	uint64_t coupling, most_prob;   /* most_prob: of the base probability */
	int64_t share[DUAL_KINDS];      /* millionths of the link while both kinds wait */
	uint64_t floor_bytes;           /* two mtu */
	uint64_t limit_pkts, memory_bytes;
	uint64_t seed, random;
	uint64_t held_bytes, held_pkts; /* in all queues */
	uint64_t due_ns;                /* when the next update is */
	uint64_t delay_ns;              /* at the last update */
	uint64_t prob;                  /* base probability, in 2^-32 */
	int64_t credit;                 /* L4S is next up to 0, classic above; bytes * millionths */
	uint64_t head_ns[DUAL_KINDS];   /* arrival of the head, while there is one */
	uint32_t head[DUAL_KINDS];      /* queue of the head of each kind, or LW_NONE */
};

/* after it, 1 in each L4S queue */
static uint8_t *dual_kinds(struct dualpi2_state *st)
{
	return (uint8_t *)(st + 1);
}

static size_t dualpi2_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct dualpi2_state) + nqueues;
}

/* ---- the controller ---- */

/* the longer wait of both heads at this instant */
static uint64_t dual_delay_ns(const struct dualpi2_state *st, uint64_t at_ns)
{
	uint64_t delay_ns = 0;
	uint32_t kind;

	for (kind = 0; kind < DUAL_KINDS; kind++) {
		uint64_t waited_ns = st->head[kind] == LW_NONE ? 0 : lw_excess(at_ns, st->head_ns[kind]);

		if (waited_ns > delay_ns)
			delay_ns = waited_ns;
	}
	return delay_ns < DUAL_MOST_DELAY_NS ? delay_ns : DUAL_MOST_DELAY_NS;
}

static void dual_update(struct dualpi2_state *st, uint64_t at_ns)
{
	uint64_t delay_ns = dual_delay_ns(st, at_ns);
	int64_t change = ((int64_t)delay_ns - (int64_t)st->target_ns) * st->alpha +
			 ((int64_t)delay_ns - (int64_t)st->delay_ns) * st->beta;

	st->delay_ns = delay_ns;
	if (change > 0)
		st->prob += (uint64_t)change >> 6;
	else
		st->prob = lw_excess(st->prob, (uint64_t)-change >> 6);
	if (st->prob > st->most_prob)
		st->prob = st->most_prob;
}

/* Nothing waits, and nothing did at the last update: every update that is due takes the same off p. Their number is found bit
 * by bit, because the packet path does not divide. */
static void dual_fade(struct dualpi2_state *st, uint64_t now_ns)
{
	uint64_t left_ns = now_ns - st->due_ns, span_ns = st->tupdate_ns, updates = 1;
	struct lw_u128 fall;
	uint32_t bit = 0;

	/* 52 doublings of the least tupdate, 1000 ns, are beyond the latest time */
	while (bit < 52 && span_ns <= left_ns >> 1) {
		span_ns <<= 1;
		bit++;
	}
	for (;; bit--) {
		if (span_ns <= left_ns) {
			left_ns -= span_ns;
			updates += (uint64_t)1 << bit;
		}
		if (!bit)
			break;
		span_ns >>= 1;
	}
	st->due_ns = now_ns - left_ns + st->tupdate_ns;
	fall = lw_mul(st->target_ns * (uint64_t)st->alpha >> 6, updates);
	st->prob = fall.hi ? 0 : lw_excess(st->prob, fall.lo);
}

/* the updates that were due up to now, before the event that happens now */
static uint64_t dual_catch_up(struct dualpi2_state *st, const struct lw_view *v)
{
	uint64_t now_ns = lw_clock(&st->now_ns, v);
	uint32_t left;

	for (left = DUAL_MOST_UPDATES; left > 0 && st->due_ns <= now_ns; left--) {
		bool idle = st->head[DUAL_C] == LW_NONE && st->head[DUAL_L] == LW_NONE;

		if (idle && !st->delay_ns) {
			dual_fade(st, now_ns);
			return now_ns;
		}
		dual_update(st, st->due_ns);
		st->due_ns += st->tupdate_ns;
	}
	if (st->due_ns <= now_ns) {
		dual_update(st, now_ns);
		st->due_ns = now_ns + st->tupdate_ns;
	}
	return now_ns;
}

/* ---- verdicts ---- */

/* true with a probability of `prob` + 1 in 2^32, as in Linux */
static bool dual_roll(struct dualpi2_state *st, uint64_t prob)
{
	uint64_t z = st->random += 0x9e3779b97f4a7c15u;

	z = lw_mul(z ^ z >> 30, 0xbf58476d1ce4e5b9u).lo;
	z = lw_mul(z ^ z >> 27, 0x94d049bb133111ebu).lo;
	return (z ^ z >> 31) >> 32 <= prob;
}

static bool dual_roll_twice(struct dualpi2_state *st)
{
	return dual_roll(st, st->prob) && dual_roll(st, st->prob);
}

/* what the probabilities say of a packet */
static enum lw_verdict dual_judge(struct dualpi2_state *st, uint32_t kind, bool ecn)
{
	uint64_t coupled = st->prob * st->coupling;
	bool overload = coupled > DUAL_MOST_PROB;

	if (kind == DUAL_C || overload) {
		if (dual_roll_twice(st))
			return overload || !ecn ? LW_DROP : LW_MARK;
		return overload && kind == DUAL_L && ecn ? LW_MARK : LW_PASS;
	}
	if (!dual_roll(st, coupled))
		return LW_PASS;
	return ecn ? LW_MARK : LW_DROP;
}

static enum lw_verdict dualpi2_leaving(void *state, const struct lw_view *v, uint32_t q, bool ecn)
{
	struct dualpi2_state *st = (struct dualpi2_state *)state;
	const struct lw_queue *queue = v->queues + q;
	uint64_t now_ns = dual_catch_up(st, v);
	uint32_t kind = dual_kinds(st)[q];
	enum lw_verdict verdict = LW_PASS;

	if (lw_excess(st->held_bytes, queue->head_bytes) >= st->floor_bytes)
		verdict = dual_judge(st, kind, ecn);
	if (verdict == LW_PASS && kind == DUAL_L && lw_excess(now_ns, queue->head_arrival_ns) > st->step_ns)
		verdict = ecn ? LW_MARK : LW_DROP;
	return verdict;
}

/* ---- the scheduler ---- */

static uint32_t dualpi2_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct dualpi2_state *st = (struct dualpi2_state *)state;
	uint32_t kind = st->head[DUAL_C] == LW_NONE || (st->head[DUAL_L] != LW_NONE && st->credit <= 0) ? DUAL_L : DUAL_C;

	lw_clock(&st->now_ns, v);
	return lw_answer(st->head[kind], retry_ns);
}

/* as in Linux: the kind with the greater share begins */
static void dual_reset_credit(struct dualpi2_state *st)
{
	st->credit = (int64_t)(st->floor_bytes / 2) * (st->share[DUAL_C] - st->share[DUAL_L]);
}

/* after an event: finds the head of each kind */
static void dual_look(struct dualpi2_state *st, const struct lw_view *v)
{
	uint32_t q;

	st->head[DUAL_C] = st->head[DUAL_L] = LW_NONE;
	for (q = 0; q < v->nqueues; q++) {
		uint64_t head_ns = v->queues[q].head_arrival_ns;
		uint32_t kind = dual_kinds(st)[q];

		if (!lw_eligible(v, q) || (st->head[kind] != LW_NONE && head_ns >= st->head_ns[kind]))
			continue;
		st->head[kind] = q;
		st->head_ns[kind] = head_ns;
	}
	if (!st->held_pkts)
		dual_reset_credit(st);
}

static void dualpi2_rated(void *state, const struct lw_view *v)
{
	dual_catch_up((struct dualpi2_state *)state, v);
	dual_look((struct dualpi2_state *)state, v);
}

static void dualpi2_enqueued(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct dualpi2_state *st = (struct dualpi2_state *)state;

	(void)q;
	dual_catch_up(st, v);
	st->held_pkts++;
	st->held_bytes += bytes;
	dual_look(st, v);
}

static void dualpi2_dropped(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct dualpi2_state *st = (struct dualpi2_state *)state;

	(void)q;
	dual_catch_up(st, v);
	st->held_pkts = lw_excess(st->held_pkts, 1);
	st->held_bytes = lw_excess(st->held_bytes, bytes);
	dual_look(st, v);
}

static void dualpi2_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct dualpi2_state *st = (struct dualpi2_state *)state;
	uint32_t kind = dual_kinds(st)[q], other = DUAL_L - kind;

	if (st->head[other] != LW_NONE)         /* alone, a kind spends nothing */
		st->credit += (kind == DUAL_L ? 1 : -1) * (int64_t)bytes * st->share[other];
	if (st->credit > DUAL_MOST_CREDIT)      /* only if the data plane did not send what was picked */
		st->credit = DUAL_MOST_CREDIT;
	if (st->credit < -DUAL_MOST_CREDIT)
		st->credit = -DUAL_MOST_CREDIT;
	dualpi2_dropped(state, v, q, bytes);
}

static uint32_t dualpi2_victim(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	const struct dualpi2_state *st = (const struct dualpi2_state *)state;
	uint32_t other;

	(void)bytes;
	if (st->held_pkts <= st->limit_pkts && st->held_bytes <= st->memory_bytes)
		return LW_NONE;
	if (v->queues[q].backlog_pkts)
		return q;
	for (other = 0; other < v->nqueues; other++)
		if (v->queues[other].backlog_pkts)
			return other;
	return LW_NONE;
}

/* ---- settings ---- */

/* a gain in 1/256 per second, in 2^-32 per 64 ns */
static int64_t dual_gain(uint64_t value)
{
	return (int64_t)LW_DIV64(value * DUAL_MOST_PROB >> 2, 1000000000u);
}

static void dualpi2_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct dualpi2_state *st = (struct dualpi2_state *)state;
	uint32_t q;

	dual_catch_up(st, v);
	st->target_ns = params[DUAL_TARGET];
	st->tupdate_ns = params[DUAL_TUPDATE];
	st->step_ns = params[DUAL_STEP];
	st->alpha = dual_gain(params[DUAL_ALPHA]);
	st->beta = dual_gain(params[DUAL_BETA]);
	st->coupling = params[DUAL_COUPLING];
	st->most_prob = params[DUAL_OVERLOAD] ? LW_DIV64(DUAL_MOST_PROB, st->coupling) : DUAL_MOST_PROB;
	if (st->prob > st->most_prob)
		st->prob = st->most_prob;
	st->share[DUAL_C] = (int64_t)params[DUAL_SHARE];
	st->share[DUAL_L] = 1000000 - st->share[DUAL_C];
	st->floor_bytes = 2 * params[DUAL_MTU];
	st->limit_pkts = params[DUAL_LIMIT];
	st->memory_bytes = params[DUAL_MEMORY];
	if (params[DUAL_SEED] != st->seed)
		st->seed = st->random = params[DUAL_SEED];
	for (q = 0; q < v->nqueues; q++)
		dual_kinds(st)[q] = (uint8_t)qparams[(size_t)q * DUAL_NQPARAMS + DUAL_L4S];
	dual_look(st, v);
}

static void dualpi2_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct dualpi2_state *st = (struct dualpi2_state *)state;
	uint32_t q;

	memset(st, 0, sizeof(*st));
	st->now_ns = v->now_ns;
	st->due_ns = v->now_ns + params[DUAL_TUPDATE];
	st->head[DUAL_C] = st->head[DUAL_L] = LW_NONE;
	for (q = 0; q < v->nqueues; q++) {
		st->held_pkts += v->queues[q].backlog_pkts;
		st->held_bytes += v->queues[q].backlog_bytes;
	}
	dualpi2_change(state, v, params, qparams);
	dual_reset_credit(st);
}

static void dualpi2_observe(const void *state, const struct lw_view *v, uint32_t q, int64_t *values)
{
	const struct dualpi2_state *st = (const struct dualpi2_state *)state;
	uint64_t coupled = st->prob * st->coupling;
	bool l4s = ((const uint8_t *)(st + 1))[q];

	(void)v;
	if (coupled > DUAL_MOST_PROB)
		coupled = DUAL_MOST_PROB;
	values[0] = (int64_t)(st->prob * 1000000 >> 32);
	values[1] = l4s ? (int64_t)(coupled * 1000000 >> 32) : (int64_t)lw_mul(st->prob * st->prob, 1000000).hi;
}

static const struct lw_param dualpi2_params[DUAL_NPARAMS] = {
	{ "target", "delay that the controller aims at", NULL, 1000, 10000000000u, 15000000, LW_NS, 0 },
	{ "tupdate", "time between updates of the probability", NULL, 1000, 1000000000, 16000000, LW_NS, 0 },
	{ "alpha", "integral gain, in 1/256 per second", NULL, 1, 65536, 41, LW_NUMBER, 0 },
	{ "beta", "proportional gain, in 1/256 per second", NULL, 1, 65536, 819, LW_NUMBER, 0 },
	{ "coupling", "probability of L4S packets over the base probability", NULL, 1, 255, 2, LW_NUMBER, 0 },
	{ "step", "wait above which L4S packets are marked", NULL, 0, 4000000000u, 1000000, LW_NS, 0 },
	{ "classic_share", "share of the classic packets while both kinds wait", NULL, 0, 1000000, 100000, LW_PPM, 0 },
	{ "overload", "what happens while L4S packets are marked with probability 1: packets are dropped, or only marked", "drop|mark", 0,
	  1, 0, LW_CHOICE, 0 },
	{ "mtu", "no packet is judged by probability while less than twice this waits behind it", NULL, 0,
	  LW_MAX_PACKET_BYTES - 1, 1514, LW_BYTES, 0 },
	{ "limit", "packets that all queues hold together", NULL, 1, 1u << 20, 10000, LW_PKTS, 0 },
	{ "memory", "bytes that all queues hold together", NULL, 1, (uint64_t)1 << 40, 30280000, LW_BYTES, 0 },
	{ "seed", "of the random numbers", NULL, 0, UINT32_MAX, 1, LW_NUMBER, 0 },
};
static const struct lw_param dualpi2_qparams[DUAL_NQPARAMS] = {
	{ "l4s", "whether its packets are L4S ones: ECT(1) or CE", "no|yes", 0, 1, 0, LW_CHOICE, 0 },
};
static const struct lw_stat dualpi2_stats[] = {
	{ "base_probability", "probability that the controller sets", LW_PPM },
	{ "probability", "of a mark or drop of the queue's packets, steps not counted", LW_PPM },
};

const struct lw_policy lw_policy_dualpi2 = {
	.name = "dualpi2",
	.help = "two queues with coupled queue management (RFC 9332), for L4S and classic packets",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES | LW_SORTED_BY_ECN,
	.max_queues = LW_MAX_QUEUES,
	.nparams = DUAL_NPARAMS,
	.nqparams = DUAL_NQPARAMS,
	.nstats = sizeof(dualpi2_stats) / sizeof(*dualpi2_stats),
	.params = dualpi2_params,
	.qparams = dualpi2_qparams,
	.stats = dualpi2_stats,
	.shared_limit = "limit",
	.state_size = dualpi2_state_size,
	.init = dualpi2_init,
	.pick = dualpi2_pick,
	.enqueued = dualpi2_enqueued,
	.sent = dualpi2_sent,
	.dropped = dualpi2_dropped,
	.rated = dualpi2_rated,
	.change = dualpi2_change,
	.victim = dualpi2_victim,
	.leaving = dualpi2_leaving,
	.observe = dualpi2_observe,
};
