/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * fq_codel.c - flow queues by deficit round robin, new flows first, each under controlled delay (codel.h).
 *
 * Hoeiland-Joergensen, McKenney, Taht, Gettys and Dumazet, RFC 8290, 2018, section 4. A queue is a flow; the data plane sorts
 * packets into queues. A queue that is in no list and gets a packet joins the list of new queues with a quantum of credit.
 * The first of the new queues, or of the old ones if there is no new one, is served while its credit lasts. Without credit
 * it gets a quantum and moves to the tail of the old ones, even if it is empty (or blocked). A queue found empty (or blocked)
 * with credit leaves its list; a new one becomes old first, so that it cannot return as new at once. Above `limit` packets or
 * `memory` bytes the queue with the most bytes (ties: the earliest head packet, then the lowest index) loses packets from its
 * head, until half of its bytes or 64 packets are gone.
 *
 * Codel drops nothing while at most `mtu` bytes wait behind a packet. As in Linux, these are the bytes of all queues. RFC 8289
 * counts those of the packet's own queue, so that a flow of few packets would lose none, however long they wait for the others.
 * The last packet of a queue may therefore be dropped, and a queue that is found empty ends codel's dropping itself.
 *
 * A quantum smaller than a packet needs several rounds. pick() skips the rounds in which no queue could send: it adds their
 * quanta in one step, and lets the queues leave that those rounds would find empty, with the same result. A pick takes at most
 * 4 steps per queue in the lists, and O(1) on average over the packets if no quantum is smaller than a packet. An overflow
 * looks at every queue.
 */
#include "codel.h"
#include "list.h"

#define FQ_BATCH_PKTS 64u
#define FQ_DEBT_MOST ((int32_t)LW_MAX_PACKET_BYTES)

enum { FQ_QUANTUM = LW_CODEL_NPARAMS, FQ_LIMIT, FQ_MEMORY, FQ_NPARAMS };
enum { FQ_NEW, FQ_OLD, FQ_LISTS };

struct fq_codel_state {
	uint64_t now_ns;
	struct lw_codel_law law;
	uint64_t memory_bytes, held_bytes;      /* at most, and now */
	uint64_t limit_pkts, held_pkts;
	uint64_t batch_bytes;           /* that the victim must still lose */
	uint32_t batch_pkts;            /* but no more packets than this */
	uint32_t victim;                /* the queue that loses head packets, or LW_NONE */
	uint32_t quantum_bytes;
	uint32_t listed;                /* queues in the lists */
	uint32_t head[FQ_LISTS];
};

struct fq_codel_queue {
	struct lw_codel codel;
	int32_t credit_bytes;
	uint32_t list;                  /* while in one */
};

static struct fq_codel_queue *fq_queues(struct fq_codel_state *st)
{
	return (struct fq_codel_queue *)(st + 1);
}

static struct lw_link *fq_links(struct fq_codel_state *st, const struct lw_view *v)
{
	return (struct lw_link *)(fq_queues(st) + v->nqueues);
}

static size_t fq_codel_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct fq_codel_state) + nqueues * (sizeof(struct fq_codel_queue) + sizeof(struct lw_link));
}

static void fq_join(struct fq_codel_state *st, const struct lw_view *v, uint32_t q, uint32_t list)
{
	fq_queues(st)[q].list = list;
	lw_append(fq_links(st, v), &st->head[list], q);
	st->listed++;
}

static void fq_leave(struct fq_codel_state *st, const struct lw_view *v, uint32_t q)
{
	lw_remove(fq_links(st, v), &st->head[fq_queues(st)[q].list], q);
	st->listed--;
}

/* an eligible queue that is in no list joins the new ones */
static void fq_follow(struct fq_codel_state *st, const struct lw_view *v, uint32_t q)
{
	if (!lw_eligible(v, q) || lw_listed(fq_links(st, v), q))
		return;
	fq_queues(st)[q].credit_bytes = (int32_t)st->quantum_bytes;
	fq_join(st, v, q, FQ_NEW);
}

/* The queue to serve, or LW_NONE if no queue could be served when it was looked at. As each step takes a queue out of the
 * new ones that were there, all that are left are old then. */
static uint32_t fq_turn(struct fq_codel_state *st, const struct lw_view *v)
{
	uint32_t steps;

	for (steps = st->listed; steps > 0; steps--) {
		uint32_t from = st->head[FQ_NEW] != LW_NONE ? FQ_NEW : FQ_OLD, q = st->head[from];
		struct fq_codel_queue *queue;
		bool stays = true;

		if (q == LW_NONE)
			return LW_NONE;
		queue = fq_queues(st) + q;
		if (queue->credit_bytes <= 0) {
			queue->credit_bytes += (int32_t)st->quantum_bytes;
		} else if (lw_eligible(v, q)) {
			return q;
		} else {
			stays = from == FQ_NEW && st->head[FQ_OLD] != LW_NONE;
			if (!v->queues[q].backlog_pkts)
				lw_codel_empty(&queue->codel);
		}
		fq_leave(st, v, q);
		if (stays)
			fq_join(st, v, q, FQ_OLD);
	}
	return LW_NONE;
}

/* the rounds after which a queue in the old list has credit */
static uint32_t fq_rounds(const struct fq_codel_state *st, int32_t credit_bytes)
{
	//@ assert owes: -FQ_DEBT_MOST <= credit_bytes;
	return credit_bytes > 0 ? 0 : (uint32_t)-credit_bytes / st->quantum_bytes + 1;
}

/* All queues are old: makes, in one step, the rounds after which the first of those that can send has credit. The round after
 * it gets credit, a queue that cannot send is found and leaves; all leave if none can send. */
static void fq_skip(struct fq_codel_state *st, const struct lw_view *v)
{
	struct lw_link *links = fq_links(st, v);
	uint32_t q = st->head[FQ_OLD], rounds = UINT32_MAX, left;

	for (left = st->listed; left > 0; left--) {
		uint32_t own;

		//@ assert listed_exists: q < lw_n;
		own = fq_rounds(st, fq_queues(st)[q].credit_bytes);
		if (own < rounds && lw_eligible(v, q))
			rounds = own;
		q = links[q].next;
	}
	if (!rounds)
		return;
	for (left = st->listed; left > 0; left--) {
		struct fq_codel_queue *queue;
		uint32_t next;

		//@ assert owing_exists: q < lw_n;
		queue = fq_queues(st) + q;
		next = links[q].next;
		if (fq_rounds(st, queue->credit_bytes) < rounds) {
			if (!v->queues[q].backlog_pkts)
				lw_codel_empty(&queue->codel);
			fq_leave(st, v, q);
		} else {
			/* no overflow: FQ_DEBT_MOST bounds the debt, and less than a quantum goes beyond it */
			//@ assert gain_is_lacked: rounds * st->quantum_bytes <= st->quantum_bytes - queue->credit_bytes;
			queue->credit_bytes += (int32_t)(rounds * st->quantum_bytes);
		}
		q = next;
	}
}

static uint32_t fq_codel_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct fq_codel_state *st = (struct fq_codel_state *)state;
	uint32_t q;

	lw_clock(&st->now_ns, v);
	q = fq_turn(st, v);
	if (q == LW_NONE && st->head[FQ_OLD] != LW_NONE) {
		fq_skip(st, v);
		q = fq_turn(st, v);             /* finds one, since one that can send has credit now, or all have left */
	}
	return lw_answer(q, retry_ns);
}

static enum lw_verdict fq_codel_leaving(void *state, const struct lw_view *v, uint32_t q, bool ecn)
{
	struct fq_codel_state *st = (struct fq_codel_state *)state;
	const struct lw_queue *queue = v->queues + q;
	uint64_t now_ns = lw_clock(&st->now_ns, v);

	return lw_codel_leaving(&fq_queues(st)[q].codel, &st->law, now_ns, lw_excess(now_ns, queue->head_arrival_ns),
				lw_excess(st->held_bytes, queue->head_bytes), ecn);
}

static uint32_t fq_codel_victim(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct fq_codel_state *st = (struct fq_codel_state *)state;
	uint64_t most = 0;

	(void)bytes;
	if (st->victim == LW_NONE) {
		if (st->held_pkts <= st->limit_pkts && st->held_bytes <= st->memory_bytes)
			return LW_NONE;
		for (q = 0; q < v->nqueues; q++) {
			const struct lw_queue *queue = v->queues + q;

			if (!queue->backlog_pkts || queue->backlog_bytes < most)
				continue;
			/* without a victim `most` is 0: also a queue of packets without bytes may become it */
			if (queue->backlog_bytes == most && st->victim != LW_NONE &&
			    queue->head_arrival_ns >= v->queues[st->victim].head_arrival_ns)
				continue;
			most = queue->backlog_bytes;
			st->victim = q;
		}
		st->batch_bytes = most / 2;
		st->batch_pkts = FQ_BATCH_PKTS;
	}
	return st->victim == LW_NONE ? LW_NONE : st->victim | LW_FROM_HEAD;
}

static void fq_gone(struct fq_codel_state *st, uint32_t bytes)
{
	st->held_pkts = lw_excess(st->held_pkts, 1);
	st->held_bytes = lw_excess(st->held_bytes, bytes);
}

static void fq_codel_dropped(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct fq_codel_state *st = (struct fq_codel_state *)state;

	fq_gone(st, bytes);
	if (!v->queues[q].backlog_pkts)
		lw_codel_empty(&fq_queues(st)[q].codel);
	if (q != st->victim)
		return;
	st->batch_bytes = lw_excess(st->batch_bytes, bytes);
	st->batch_pkts--;
	if (!st->batch_bytes || !st->batch_pkts || !v->queues[q].backlog_pkts)
		st->victim = LW_NONE;
}

static void fq_codel_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct fq_codel_state *st = (struct fq_codel_state *)state;
	struct fq_codel_queue *queue = fq_queues(st) + q;

	(void)v;
	fq_gone(st, bytes);
	queue->credit_bytes -= (int32_t)bytes;
	if (queue->credit_bytes < -FQ_DEBT_MOST)
		queue->credit_bytes = -FQ_DEBT_MOST;
}

static void fq_codel_enqueued(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct fq_codel_state *st = (struct fq_codel_state *)state;

	st->held_pkts++;
	st->held_bytes += bytes;
	st->victim = LW_NONE;           /* a batch that LW_MOST_DROPS cut short ends here */
	fq_follow(st, v, q);
}

static void fq_codel_rated(void *state, const struct lw_view *v)
{
	uint32_t q;

	for (q = 0; q < v->nqueues; q++)
		fq_follow((struct fq_codel_state *)state, v, q);
}

static void fq_codel_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct fq_codel_state *st = (struct fq_codel_state *)state;

	(void)v, (void)qparams;
	st->law = lw_codel_law_of(params);
	st->quantum_bytes = (uint32_t)params[FQ_QUANTUM];
	st->limit_pkts = params[FQ_LIMIT];
	st->memory_bytes = params[FQ_MEMORY];
}

static void fq_codel_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct fq_codel_state *st = (struct fq_codel_state *)state;
	uint32_t q;

	memset(st, 0, sizeof(*st));
	st->now_ns = v->now_ns;
	st->head[FQ_NEW] = st->head[FQ_OLD] = st->victim = LW_NONE;
	lw_unlink_all(fq_links(st, v), v->nqueues);
	fq_codel_change(state, v, params, qparams);
	for (q = 0; q < v->nqueues; q++) {
		memset(fq_queues(st) + q, 0, sizeof(struct fq_codel_queue));
		st->held_pkts += v->queues[q].backlog_pkts;
		st->held_bytes += v->queues[q].backlog_bytes;
	}
	fq_codel_rated(state, v);
}

static void fq_codel_observe(const void *state, const struct lw_view *v, uint32_t q, int64_t *values)
{
	const struct fq_codel_state *st = (const struct fq_codel_state *)state;

	(void)v;
	lw_codel_show(&((const struct fq_codel_queue *)(st + 1))[q].codel, values);
}

static const struct lw_param fq_codel_params[FQ_NPARAMS] = {
	LW_TARGET_PARAM_CODEL,
	LW_INTERVAL_PARAM,
	LW_MTU_PARAM,
	LW_ECN_PARAM(1),
	{ "quantum", "bytes per round", NULL, 1, LW_MAX_PACKET_BYTES - 1, 1514, LW_BYTES, 0 },
	{ "limit", "packets that all queues hold together", NULL, 1, 1u << 20, 10240, LW_PKTS, 0 },
	{ "memory", "bytes that all queues hold together", NULL, 1, (uint64_t)1 << 40, 32u << 20, LW_BYTES, 0 },
};
static const struct lw_stat fq_codel_stats[LW_CODEL_NSTATS] = { LW_CODEL_STATS };

const struct lw_policy lw_policy_fq_codel = {
	.name = "fq_codel",
	.help = "flow queues (RFC 8290): deficit round robin, new flows first, each under controlled delay",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES,
	.max_queues = LW_MAX_QUEUES,
	.nparams = FQ_NPARAMS,
	.nstats = LW_CODEL_NSTATS,
	.params = fq_codel_params,
	.stats = fq_codel_stats,
	.shared_limit = "limit",
	.state_size = fq_codel_state_size,
	.init = fq_codel_init,
	.pick = fq_codel_pick,
	.enqueued = fq_codel_enqueued,
	.sent = fq_codel_sent,
	.dropped = fq_codel_dropped,
	.rated = fq_codel_rated,
	.change = fq_codel_change,
	.victim = fq_codel_victim,
	.leaving = fq_codel_leaving,
	.observe = fq_codel_observe,
};
