/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * mlwdf.c - modified largest weighted delay first: the greatest a W r / R.
 *
 * Andrews et al., 2001; Shakkottai and Stolyar, 2001. a W is the age of a queue's head packet relative to its target
 * and tolerance; r / R is its channel's rate relative to the mean (urgent.h). Elastic queues count as a W = 1, which is
 * proportional fairness among them. Two claims are compared by cross-multiplication, so no pick divides. Of equal claims the
 * earliest head packet is sent first, then that of the lowest index.
 */
#include "urgent.h"

enum { MLWDF_NPARAMS = LW_URGENT_EXPIRE + 1 };

#define MLWDF_APART ((int64_t)3 << 20)  /* 3/16: more than the errors of two bounds */

/* log2(10^9 a W r / R) in 2^-24, off by at most 0.0862 either way: between powers of two, the logarithms of W and R / r are
 * straight lines */
static inline int64_t mlwdf_bound(const struct lw_claim *claim, uint64_t now_ns)
{
	uint64_t wait = claim->a ? lw_claim_wait_ns(claim, now_ns) : LW_URGENT_S_NS;
	uint32_t zeros = LW_CLZ64(wait);

	return claim->log + ((int64_t)(63 - zeros) << 24) + (int64_t)(wait << zeros << 1 >> 40);
}

static uint32_t mlwdf_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct lw_urgent *st = (struct lw_urgent *)state;
	const struct lw_claim *claims = lw_claims(st);
	const struct lw_urgent_queue *queues = lw_urgent_queues(st, v);
	uint64_t best_age = 0, best_key = 0, bits;
	int64_t least = LW_CLAIM_LEAST; /* a queue with a bound below this claims less than the best */
	uint32_t best = LW_NONE, q, word;

	lw_urgent_clock(st, v);
	LW_FOR_EACH_WAITING(st, v, q, word, bits) {
		int64_t bound = mlwdf_bound(claims + q, st->means.now_ns);
		uint64_t age, key, claim, best_claim;

		if (bound < least)
			continue;
		age = claims[q].a ? lw_claim_age(claims + q, st->means.now_ns) : LW_SOFT_ONE;
		key = lw_urgent_key(st, queues + q);
		claim = lw_soft_mul(age, best_key);
		best_claim = lw_soft_mul(best_age, key);
		if (best != LW_NONE && (claim < best_claim || (claim == best_claim && !lw_claim_earlier(claims, q, best))))
			continue;
		best = q;
		best_age = age;
		best_key = key;
		/* a queue never served has key 0: only another one that was never served may claim more */
		least = key ? bound - MLWDF_APART : LW_CLAIM_UNSERVED / 2;
	}
	return lw_answer(best, retry_ns);
}

static void mlwdf_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	lw_urgent_change(state, v, params, qparams, true);
}

static void mlwdf_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	lw_urgent_init(state, v, params, qparams, true, true);
}

static const struct lw_param mlwdf_params[MLWDF_NPARAMS] = { LW_TC_PARAM, LW_NORM_PARAM, LW_EXPIRE_PARAM };
static const struct lw_param mlwdf_qparams[LW_URGENT_NQPARAMS] = { LW_TARGET_PARAM, LW_DELTA_PARAM };
static const struct lw_stat mlwdf_stats[] = { LW_MEAN_STAT };

const struct lw_policy lw_policy_mlwdf = {
	.name = "mlwdf",
	.help = "modified largest weighted delay first: channel times age of the head packet",
	.abi = LW_ABI,
	.max_queues = LW_MAX_QUEUES,
	.nparams = MLWDF_NPARAMS,
	.nqparams = LW_URGENT_NQPARAMS,
	.nstats = 1,
	.params = mlwdf_params,
	.qparams = mlwdf_qparams,
	.stats = mlwdf_stats,
	.state_size = lw_urgent_state_size,
	.init = mlwdf_init,
	.pick = mlwdf_pick,
	.enqueued = lw_urgent_event,
	.sent = lw_urgent_sent,
	.dropped = lw_urgent_event,
	.rated = lw_urgent_rated,
	.change = mlwdf_change,
	.leaving = lw_urgent_leaving,
	.expired = lw_urgent_expired,
	.observe = lw_urgent_observe,
};
