/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * mlwdf.c - modified largest weighted delay first: the greatest a W r / R.
 *
 * Andrews et al., 2001; Shakkottai and Stolyar, 2001. a W is how old a queue's head packet is, measured by target and
 * tolerance; r / R how good its channel is, measured by the mean (urgent.h). Elastic queues count as a W = 1, which is
 * proportional fairness. Two claims are compared by cross-multiplication, so no pick divides. Of equal claims the earliest
 * head packet goes, then the lowest index.
 */
#include "urgent.h"

enum { MLWDF_NPARAMS = LW_URGENT_EXPIRE + 1 };

static struct lw_pick mlwdf_pick(void *state, const struct lw_view *v)
{
	struct lw_urgent *st = (struct lw_urgent *)state;
	uint64_t best_age = 0, best_key = 0;
	uint32_t best = LW_NONE, q;

	lw_urgent_clock(st, v);
	for (q = 0; q < v->nqueues; q++) {
		const struct lw_urgent_queue *queue = lw_urgent_queues(st) + q;
		uint64_t age, key, claim, best_claim;

		if (!lw_eligible(v, q))
			continue;
		age = queue->target_ns ? lw_urgent_age(st, v, q) : LW_SOFT_ONE;
		key = lw_urgent_key(st, queue);
		claim = lw_soft_mul(age, best_key);
		best_claim = lw_soft_mul(best_age, key);
		if (best != LW_NONE && (claim < best_claim || (claim == best_claim && !lw_urgent_earlier(v, q, best))))
			continue;
		best = q;
		best_age = age;
		best_key = key;
	}
	return lw_answer(best);
}

static const struct lw_param mlwdf_params[MLWDF_NPARAMS] = { LW_TC_PARAM, LW_NORM_PARAM, LW_EXPIRE_PARAM };
static const struct lw_param mlwdf_qparams[LW_URGENT_NQPARAMS] = { LW_TARGET_PARAM, LW_DELTA_PARAM };
static const struct lw_stat mlwdf_stats[] = { LW_MEAN_STAT };

const struct lw_policy lw_policy_mlwdf = {
	.name = "mlwdf",
	.help = "modified largest weighted delay first: channel times age of the head packet",
	.abi = LW_ABI,
	.nparams = MLWDF_NPARAMS,
	.nqparams = LW_URGENT_NQPARAMS,
	.nstats = 1,
	.params = mlwdf_params,
	.qparams = mlwdf_qparams,
	.stats = mlwdf_stats,
	.state_size = lw_urgent_state_size,
	.check = NULL,
	.init = lw_urgent_init,
	.pick = mlwdf_pick,
	.enqueued = lw_urgent_event,
	.sent = lw_urgent_sent,
	.dropped = lw_urgent_event,
	.rated = lw_urgent_rated,
	.change = lw_urgent_change,
	.victim = NULL,
	.leaving = lw_urgent_leaving,
	.expired = lw_urgent_expired,
	.observe = lw_urgent_observe,
};
