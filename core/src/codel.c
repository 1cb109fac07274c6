/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * codel.c - controlled delay over one stream: first come, first served across all queues, judged by codel.h.
 *
 * The packet that arrived first leaves first; ties go to the lowest index (arrivals.h). The backlog behind it is that of all
 * queues together. pick and leaving are O(1), an event is O(log n).
 */
#include "arrivals.h"
#include "codel.h"

struct codel_state {
	uint64_t now_ns;
	struct lw_codel_law law;
	struct lw_codel codel;
	uint64_t held_bytes;            /* in all queues */
	uint32_t count;                 /* queues in the heap */
	uint32_t unused;
};

static struct lw_heap_row *codel_rows(struct codel_state *st)
{
	return (struct lw_heap_row *)(st + 1);
}

static size_t codel_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct codel_state) + nqueues * sizeof(struct lw_heap_row);
}

static void codel_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	(void)v, (void)qparams;
	((struct codel_state *)state)->law = lw_codel_law_of(params);
}

static void codel_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct codel_state *st = (struct codel_state *)state;
	uint32_t q;

	memset(st, 0, sizeof(*st));
	st->now_ns = v->now_ns;
	codel_change(state, v, params, qparams);
	for (q = 0; q < v->nqueues; q++)
		st->held_bytes += v->queues[q].backlog_bytes;
	lw_arrivals_init(codel_rows(st), &st->count, v);
}

static uint32_t codel_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct codel_state *st = (struct codel_state *)state;

	lw_clock(&st->now_ns, v);
	return lw_answer(lw_arrivals_first(codel_rows(st), st->count), retry_ns);
}

static enum lw_verdict codel_leaving(void *state, const struct lw_view *v, uint32_t q, bool ecn)
{
	struct codel_state *st = (struct codel_state *)state;
	const struct lw_queue *queue = v->queues + q;
	uint64_t now_ns = lw_clock(&st->now_ns, v);

	return lw_codel_leaving(&st->codel, &st->law, now_ns, lw_excess(now_ns, queue->head_arrival_ns),
				lw_excess(st->held_bytes, queue->head_bytes), ecn);
}

static void codel_enqueued(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct codel_state *st = (struct codel_state *)state;

	st->held_bytes += bytes;
	lw_arrivals_follow(codel_rows(st), &st->count, v, q);
}

/* sent and dropped */
static void codel_gone(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct codel_state *st = (struct codel_state *)state;

	st->held_bytes = lw_excess(st->held_bytes, bytes);
	lw_arrivals_follow(codel_rows(st), &st->count, v, q);
}

static void codel_rated(void *state, const struct lw_view *v)
{
	struct codel_state *st = (struct codel_state *)state;

	lw_arrivals_rated(codel_rows(st), &st->count, v);
}

static void codel_observe(const void *state, const struct lw_view *v, uint32_t q, int64_t *values)
{
	(void)v, (void)q;
	lw_codel_show(&((const struct codel_state *)state)->codel, values);
}

static const struct lw_param codel_params[LW_CODEL_NPARAMS] = {
	LW_TARGET_PARAM_CODEL, LW_INTERVAL_PARAM, LW_MTU_PARAM, LW_ECN_PARAM(0),
};
static const struct lw_stat codel_stats[LW_CODEL_NSTATS] = { LW_CODEL_STATS };

const struct lw_policy lw_policy_codel = {
	.name = "codel",
	.help = "controlled delay (RFC 8289) over all queues together, first come, first served",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES,
	.max_queues = LW_MAX_QUEUES,
	.nparams = LW_CODEL_NPARAMS,
	.nstats = LW_CODEL_NSTATS,
	.params = codel_params,
	.stats = codel_stats,
	.state_size = codel_state_size,
	.init = codel_init,
	.pick = codel_pick,
	.enqueued = codel_enqueued,
	.sent = codel_gone,
	.dropped = codel_gone,
	.rated = codel_rated,
	.change = codel_change,
	.leaving = codel_leaving,
	.observe = codel_observe,
};
