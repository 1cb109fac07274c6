/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* pf.c - proportional fairness: the queue whose channel is best relative to the service it lately received (pf.h). */
#include "pf.h"

static void pf_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	pf_start((struct pf_state *)state, v, params, qparams, PF_NQPARAMS);
}

static void pf_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	pf_alter((struct pf_state *)state, v, params, qparams, PF_NQPARAMS);
}

static const struct lw_param pf_params[PF_NPARAMS] = { LW_TC_PARAM, LW_UNIT_PARAM, LW_IDLE_PARAM };
static const struct lw_param pf_qparams[PF_NQPARAMS] = { LW_WEIGHT_PARAM };
static const struct lw_stat pf_stats[] = { LW_MEAN_STAT };

const struct lw_policy lw_policy_pf = {
	.name = "pf",
	.help = "proportional fairness: the queue whose channel is best relative to its recent service",
	.abi = LW_ABI,
	.max_queues = LW_MAX_QUEUES,
	.nparams = PF_NPARAMS,
	.nqparams = PF_NQPARAMS,
	.nstats = 1,
	.params = pf_params,
	.qparams = pf_qparams,
	.stats = pf_stats,
	.state_size = pf_state_size,
	.init = pf_init,
	.pick = pf_pick,
	.enqueued = pf_event,
	.sent = pf_sent,
	.dropped = pf_event,
	.rated = pf_rated,
	.change = pf_change,
	.observe = pf_observe,
};
