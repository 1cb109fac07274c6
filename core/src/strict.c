/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * strict.c - strict priority.
 *
 * Every queue has a level of its own, 0 the most urgent; the eligible queue with the smallest level is served. Levels
 * are ranked when they are set, and a bitmap of the ranks of eligible queues gives the answer by find-first-set: each
 * call is O(1), except rated() and change(), which look at every queue.
 *
 * Two queues may not share a level, because their order would need a second rule. For queues that should share one, use
 * rr, or wrr or drr with levels.
 */
#include "levels.h"
#include "view.h"

enum { STRICT_LEVEL, STRICT_NQPARAMS };

struct strict_state {
	struct lw_bitmap ready;         /* ranks of the eligible queues */
};

/* one per queue */
struct strict_queue {
	uint32_t rank;                  /* of this queue */
	uint32_t holder;                /* the queue whose rank is this one's index */
};

static struct strict_queue *strict_queues(struct strict_state *st)
{
	return (struct strict_queue *)(st + 1);
}

static size_t strict_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct strict_state) + nqueues * sizeof(struct strict_queue);
}

static bool strict_check(const struct lw_view *v, const uint64_t *params, const uint64_t *qparams,
			 struct lw_fault *fault)
{
	uint32_t q, column;

	(void)params;
	if (!lw_levels_clash(qparams, v->nqueues, STRICT_NQPARAMS, STRICT_LEVEL, LW_NONE, &q, &column))
		return true;
	fault->what = "another queue has this level: give every queue a level of its own";
	fault->param = "level";
	fault->queue = q;
	return false;
}

static void strict_follow(struct strict_state *st, const struct lw_view *v, uint32_t q)
{
	if (lw_eligible(v, q))
		lw_bitmap_add(&st->ready, strict_queues(st)[q].rank);
	else
		lw_bitmap_del(&st->ready, strict_queues(st)[q].rank);
}

static void strict_rated(void *state, const struct lw_view *v)
{
	uint32_t q;

	for (q = 0; q < v->nqueues; q++)
		strict_follow((struct strict_state *)state, v, q);
}

static void strict_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct strict_state *st = (struct strict_state *)state;
	struct strict_queue *queues = strict_queues(st);
	uint32_t r, n = v->nqueues;
	uint32_t *key = (uint32_t *)queues;     /* the first half of the table is used to sort in */

	(void)params;
	memset(st, 0, sizeof(*st));
	/*@ loop invariant r <= n && lw_queues_below{Here}(key, r, n);
	    loop assigns r, key[0 .. n - 1]; */
	for (r = 0; r < n; r++)
		key[r] = lw_level(qparams[r * STRICT_NQPARAMS + STRICT_LEVEL], r) * LW_BITMAP_SIZE + r;
	lw_sort(key, n);
	/*@ loop invariant r <= n && lw_queues_below{Here}(key, r, n);
	    loop assigns r, queues[0 .. n - 1]; */
	for (r = n; r > 0; r--) {               /* downwards: entry r - 1 lies at or behind key[r - 1] */
		uint32_t q = key[r - 1] % LW_BITMAP_SIZE;

		//@ assert holder_exists: q < n;
		queues[r - 1].holder = q;
		queues[r - 1].rank = 0;
	}
	for (r = 0; r < n; r++)
		queues[queues[r].holder].rank = r;
	strict_rated(st, v);
}

static uint32_t strict_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct strict_state *st = (struct strict_state *)state;

	(void)v;
	if (lw_bitmap_empty(&st->ready))
		return lw_answer(LW_NONE, retry_ns);
	return lw_answer(strict_queues(st)[lw_bitmap_first(&st->ready)].holder, retry_ns);
}

/* enqueued, sent and dropped: only eligibility matters */
static void strict_event(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	(void)bytes;
	strict_follow((struct strict_state *)state, v, q);
}

static const struct lw_param strict_qparams[STRICT_NQPARAMS] = {
	LW_LEVEL_PARAM("priority, 0 the most urgent; no two queues share one; unset is the queue's index"),
};

const struct lw_policy lw_policy_strict = {
	.name = "strict",
	.help = "strict priority: the most urgent queue that has a packet",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES,
	.max_queues = LW_BITMAP_SIZE,
	.nqparams = STRICT_NQPARAMS,
	.qparams = strict_qparams,
	.state_size = strict_state_size,
	.check = strict_check,
	.init = strict_init,
	.pick = strict_pick,
	.enqueued = strict_event,
	.sent = strict_event,
	.dropped = strict_event,
	.rated = strict_rated,
	.change = strict_init,
};
