/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * exp_rule.c - the exponential rule: the greatest r / R exp((a W - mean a W) / (1 + sqrt(mean a W))).
 *
 * Shakkottai and Stolyar, 2001 and 2002, with beta = 1 and eta = 1/2. While ages differ little, it is proportional
 * fairness; a queue whose urgency a W exceeds the mean by more than the square root of the mean is preferred strongly.
 * Elastic queues count as W = 0. Of equal claims the earliest head packet is sent first, then that of the lowest index.
 */
#include "exponent.h"

enum { EXP_RULE_NPARAMS = LW_URGENT_FACTOR + 1 };

static uint32_t exp_rule_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct lw_urgent *st = (struct lw_urgent *)state;
	struct lw_ages ages;

	lw_urgent_clock(st, v);
	ages = lw_ages_of(st, v);
	return lw_exponent_pick(st, v, &ages, lw_exponent(&ages, 0), retry_ns);
}

static void exp_rule_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	lw_urgent_change(state, v, params, qparams, params[LW_URGENT_FACTOR] != 0);
}

static void exp_rule_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	lw_urgent_init(state, v, params, qparams, params[LW_URGENT_FACTOR] != 0, false);
}

static const struct lw_param exp_rule_params[EXP_RULE_NPARAMS] = {
	LW_TC_PARAM, LW_NORM_PARAM, LW_EXPIRE_PARAM, LW_FACTOR_PARAM,
};
static const struct lw_param exp_rule_qparams[LW_URGENT_NQPARAMS] = { LW_TARGET_PARAM, LW_DELTA_PARAM };
static const struct lw_stat exp_rule_stats[] = { LW_MEAN_STAT };

const struct lw_policy lw_policy_exp_rule = {
	.name = "exp_rule",
	.help = "the exponential rule: channel times the exponential of how much older the head packet is than others'",
	.abi = LW_ABI,
	.max_queues = LW_MAX_QUEUES,
	.nparams = EXP_RULE_NPARAMS,
	.nqparams = LW_URGENT_NQPARAMS,
	.nstats = 1,
	.params = exp_rule_params,
	.qparams = exp_rule_qparams,
	.stats = exp_rule_stats,
	.state_size = lw_urgent_state_size,
	.init = exp_rule_init,
	.pick = exp_rule_pick,
	.enqueued = lw_urgent_event,
	.sent = lw_urgent_sent,
	.dropped = lw_urgent_event,
	.rated = lw_urgent_rated,
	.change = exp_rule_change,
	.leaving = lw_urgent_leaving,
	.expired = lw_urgent_expired,
	.observe = lw_urgent_observe,
};
