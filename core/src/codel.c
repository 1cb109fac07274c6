/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * codel.c - controlled delay over one stream: first come, first served across all queues, judged by codel.h.
 *
 * The packet that arrived first leaves first; ties go to the lowest index. The backlog behind it is that of all queues
 * together. pick and leaving look at every queue.
 */
#include "codel.h"

struct codel_state {
	uint64_t now_ns;
	struct lw_codel_law law;
	struct lw_codel codel;
};

static size_t codel_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return nqueues <= LW_MAX_QUEUES ? sizeof(struct codel_state) : 0;
}

static void codel_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	(void)v, (void)qparams;
	((struct codel_state *)state)->law = lw_codel_law_of(params);
}

static void codel_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	memset(state, 0, sizeof(struct codel_state));
	((struct codel_state *)state)->now_ns = v->now_ns;
	codel_change(state, v, params, qparams);
}

static struct lw_pick codel_pick(void *state, const struct lw_view *v)
{
	lw_clock(&((struct codel_state *)state)->now_ns, v);
	return lw_answer(lw_earliest(v));
}

static enum lw_verdict codel_leaving(void *state, const struct lw_view *v, uint32_t q, bool ecn)
{
	struct codel_state *st = (struct codel_state *)state;
	uint64_t now_ns = lw_clock(&st->now_ns, v), behind = 0;
	uint32_t i;

	for (i = 0; i < v->nqueues; i++)
		behind += v->queues[i].backlog_bytes;
	return lw_codel_leaving(&st->codel, &st->law, now_ns, lw_excess(now_ns, v->queues[q].head_arrival_ns),
				lw_excess(behind, v->queues[q].head_bytes), ecn);
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
	.nparams = LW_CODEL_NPARAMS,
	.nqparams = 0,
	.nstats = LW_CODEL_NSTATS,
	.params = codel_params,
	.qparams = NULL,
	.stats = codel_stats,
	.state_size = codel_state_size,
	.check = NULL,
	.init = codel_init,
	.pick = codel_pick,
	.enqueued = NULL,
	.sent = NULL,
	.dropped = NULL,
	.rated = NULL,
	.change = codel_change,
	.victim = NULL,
	.leaving = codel_leaving,
	.expired = NULL,
	.observe = codel_observe,
};
