/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * pf.h - proportional fairness, exactly, in O(log n): for pf.c and, with a timeout, codes.c.
 *
 * Kelly, Maulloo and Tan, 1998; Viswanath, Tse and Laroia, 2002, section II. The eligible queue with the greatest w r / R
 * is served: r the rate of its channel, R the service it lately received (means.h), w its weight. The greatest w r / R is the
 * smallest key S / (w r). A key changes only when its queue is served, gets another rate, or returns from idleness; so the
 * eligible queues form a heap by key, and pick reads its root. Of equal keys the earliest head packet is sent first, then that
 * of the lowest index. Rates are reported in batches: rated() looks at every queue and, if any rate is new, rebuilds the heap
 * in O(n). enqueued, sent and dropped take O(log n), pick O(1); once in 52 days one event takes O(n).
 */
#ifndef LINKWEIR_PF_H
#define LINKWEIR_PF_H

#include "heap.h"
#include "means.h"

enum { PF_TC, PF_UNIT, PF_IDLE, PF_NPARAMS };
enum { PF_WEIGHT, PF_NQPARAMS };

struct pf_state {
	struct lw_means means;
	uint32_t count;                 /* queues in the heap */
	uint32_t unused;
};

struct pf_queue {
	struct lw_mean mean;
	uint64_t timeout_ns;            /* codes.c */
};

static struct pf_queue *pf_queues(struct pf_state *st)
{
	return (struct pf_queue *)(st + 1);
}

/* for each queue in the heap, a copy of its key and of its head packet's arrival */
static struct lw_heap_row *pf_rows(struct pf_state *st, const struct lw_view *v)
{
	return (struct lw_heap_row *)(pf_queues(st) + v->nqueues);
}

static size_t pf_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct pf_state) + nqueues * (sizeof(struct pf_queue) + sizeof(struct lw_heap_row));
}

/* ---- events ---- */

static void pf_join(struct pf_state *st, const struct lw_view *v, uint32_t q)
{
	struct lw_heap_row *rows = pf_rows(st, v);
	struct lw_mean *mean = &pf_queues(st)[q].mean;

	/* the best key is that of the others, so q is not in the heap yet */
	lw_mean_return(&st->means, mean, st->count ? rows[rows[0].queue].key : st->means.floor);
	rows[q].key = mean->key;
	lw_heap_join(rows, &st->count, q);
}

/* After any event of queue q: updates its place in the heap, and its mean if the queue became idle or returned. */
static void pf_follow(struct pf_state *st, const struct lw_view *v, uint32_t q)
{
	struct lw_heap_row *rows = pf_rows(st, v);
	struct lw_mean *mean = &pf_queues(st)[q].mean;
	bool held = lw_heap_holds(rows, q);

	if (!lw_eligible(v, q)) {
		if (held)
			lw_heap_leave(rows, &st->count, q);
		/* a queue that is only blocked keeps its key, and its mean is not frozen */
		if (!v->queues[q].backlog_pkts)
			lw_mean_leave(&st->means, mean);
		return;
	}
	rows[q].head_ns = v->queues[q].head_arrival_ns;
	if (held) {
		rows[q].key = mean->key;
		lw_heap_move(rows, st->count, q);
	} else {
		pf_join(st, v, q);
	}
}

/* after new keys of any queues */
static void pf_order(struct pf_state *st, const struct lw_view *v)
{
	struct lw_heap_row *rows = pf_rows(st, v);
	uint32_t q;

	for (q = 0; q < v->nqueues; q++)
		rows[q].key = pf_queues(st)[q].mean.key;
	lw_heap_order(rows, st->count);
}

/* once in 52 days: it would make every function that asks for the time longer */
static LW_NOINLINE void pf_turn_means(struct pf_state *st, const struct lw_view *v)
{
	uint32_t q;

	for (q = 0; q < v->nqueues; q++)
		lw_mean_turn(&st->means, &pf_queues(st)[q].mean);
	lw_means_turn(&st->means);
	/* the smallest keys may have become 0, and now tie */
	pf_order(st, v);
}

static void pf_clock(struct pf_state *st, const struct lw_view *v)
{
	if (lw_means_clock(&st->means, v))
		pf_turn_means(st, v);
}

/*
 * The pass of pf_rates that updates q: 0 it leaves the heap, 1 it was not idle (its key is known), 2 it returns from idleness
 * (its key is bounded by the best of all others).
 */
static inline uint32_t pf_turn(struct pf_state *st, const struct lw_view *v, uint32_t q)
{
	return !lw_eligible(v, q) ? 0 : !pf_queues(st)[q].mean.away ? 1 : 2;
}

/* Sets the rates of the view and, if given, new weights; follows heads that changed without an event. */
static void pf_rates(struct pf_state *st, const struct lw_view *v, const uint64_t *qparams, uint32_t nqparams)
{
	const struct lw_heap_row *rows = pf_rows(st, v);
	bool moved = false;
	uint32_t q, turn;

	for (q = 0; q < v->nqueues; q++) {
		struct lw_mean *mean = &pf_queues(st)[q].mean;
		uint32_t weight = qparams ? (uint32_t)qparams[(size_t)q * nqparams + PF_WEIGHT] : mean->weight;

		moved = lw_mean_rate(mean, v->queues[q].rate_bps, weight) || moved ||
			(lw_heap_holds(rows, q) && rows[q].head_ns != v->queues[q].head_arrival_ns);
	}
	//@ split moved;
	if (!moved)
		return;
	/* the heap must be in order before single queues move in it */
	pf_order(st, v);
	for (turn = 0; turn < 3; turn++)
		for (q = 0; q < v->nqueues; q++)
			if (pf_turn(st, v, q) == turn)
				pf_follow(st, v, q);
}

static void pf_rated(void *state, const struct lw_view *v)
{
	struct pf_state *st = (struct pf_state *)state;

	pf_clock(st, v);
	pf_rates(st, v, NULL, 0);
}

static void pf_set(struct pf_state *st, const uint64_t *params)
{
	st->means.unit = (uint32_t)params[PF_UNIT];
	st->means.idle = (uint32_t)params[PF_IDLE];
	lw_means_start(&st->means, params[PF_TC]);
}

/* Are these the parameters in force? Converting keys rounds them, so it must not happen without need. */
static bool pf_kept(const struct lw_means *means, const uint64_t *params)
{
	return means->tc_ns == params[PF_TC] && means->unit == params[PF_UNIT] && means->idle == params[PF_IDLE];
}

static void pf_start(struct pf_state *st, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams,
		     uint32_t nqparams)
{
	uint32_t q;

	memset(st, 0, sizeof(*st));
	st->means.now_ns = v->now_ns;
	pf_set(st, params);
	lw_heap_clear(pf_rows(st, v), v->nqueues);
	for (q = 0; q < v->nqueues; q++) {
		pf_queues(st)[q].timeout_ns = 0;
		lw_mean_init(&pf_queues(st)[q].mean, &st->means, v->queues[q].rate_bps,
			     (uint32_t)qparams[(size_t)q * nqparams + PF_WEIGHT]);
	}
	for (q = 0; q < v->nqueues; q++)
		pf_follow(st, v, q);
}

static void pf_alter(struct pf_state *st, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams,
		     uint32_t nqparams)
{
	uint32_t q;

	pf_clock(st, v);
	if (!pf_kept(&st->means, params)) {
		for (q = 0; q < v->nqueues; q++)
			lw_mean_change(&st->means, &pf_queues(st)[q].mean, params[PF_TC], (uint32_t)params[PF_UNIT]);
		st->means.floor = lw_means_rescaled(&st->means, st->means.floor, params[PF_TC], (uint32_t)params[PF_UNIT]);
		pf_set(st, params);
		pf_order(st, v);
	}
	pf_rates(st, v, qparams, nqparams);
}

static uint32_t pf_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct pf_state *st = (struct pf_state *)state;

	lw_clock(&st->means.now_ns, v);
	return lw_answer(st->count ? pf_rows(st, v)[0].queue : LW_NONE, retry_ns);
}

static void pf_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct pf_state *st = (struct pf_state *)state;

	pf_clock(st, v);
	lw_mean_serve(&st->means, &pf_queues(st)[q].mean, bytes);
	pf_follow(st, v, q);
}

/* enqueued and dropped. They change no key, so a queue in the heap keeps its place while its head packet is the same. */
static void pf_event(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct pf_state *st = (struct pf_state *)state;
	const struct lw_heap_row *rows = pf_rows(st, v);

	(void)bytes;
	pf_clock(st, v);
	if (lw_heap_holds(rows, q) && lw_eligible(v, q) && rows[q].head_ns == v->queues[q].head_arrival_ns)
		return;
	pf_follow(st, v, q);
}

static void pf_observe(const void *state, const struct lw_view *v, uint32_t q, int64_t *values)
{
	const struct pf_state *st = (const struct pf_state *)state;
	const struct pf_queue *queue = (const struct pf_queue *)(st + 1) + q;

	values[0] = lw_mean_shown(&st->means, &queue->mean, v->now_ns);
}

#endif
