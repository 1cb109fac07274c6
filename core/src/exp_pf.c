/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * exp_pf.c - exponential proportional fairness: real-time queues by the exponential rule, elastic ones by proportional
 * fairness, and a weight between the two kinds.
 *
 * Rhee, Holtzman and Kim, 2003. A real-time queue claims r / R exp((a W - mean) / (1 + sqrt(mean))), an elastic one
 * w / M r / R. M is the number of waiting packets per waiting real-time queue. The weight w starts at 1 and adapts when a
 * packet is sent, at most once per tick: it falls by 0.01 while a real-time head packet is older than the shortest target,
 * otherwise it grows by 0.001, within 0.01 and 1. `sent` looks at every waiting queue then. Of equal claims the earliest
 * head packet is sent first, then that of the lowest index.
 */
#include "exponent.h"

#define EXP_PF_DOWN_PPM 10000u
#define EXP_PF_UP_PPM 1000u
#define EXP_PF_LEAST_PPM 10000u
#define EXP_PF_MOST_PPM 1000000u

enum { EXP_PF_NPARAMS = LW_URGENT_TICK + 1 };

/* log2(w / M) */
static int64_t exp_pf_elastic(struct lw_urgent *st, const struct lw_view *v, const struct lw_ages *ages)
{
	int64_t w = lw_soft_log2(lw_soft_div(lw_soft_of(st->elastic_ppm), lw_soft_of(EXP_PF_MOST_PPM)));
	uint64_t pkts = 0, bits;
	uint32_t q, word;

	if (!ages->count)
		return w;
	LW_FOR_EACH_WAITING(st, v, q, word, bits)
		if (lw_claims(st)[q].a)
			pkts += v->queues[q].backlog_pkts;
	return w - lw_soft_log2(lw_soft_div(lw_soft_of(pkts), lw_soft_of(ages->count)));
}

static uint32_t exp_pf_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct lw_urgent *st = (struct lw_urgent *)state;
	struct lw_ages ages;

	lw_urgent_clock(st, v);
	ages = lw_ages_of(st, v);
	return lw_exponent_pick(st, v, &ages, ages.elastic ? exp_pf_elastic(st, v, &ages) : 0, retry_ns);
}

static void exp_pf_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct lw_urgent *st = (struct lw_urgent *)state;
	uint64_t bits;
	uint32_t word;
	bool late = false;

	lw_urgent_sent(state, v, q, bytes);
	if (st->means.now_ns < st->next_tick_ns)
		return;
	st->next_tick_ns = st->means.now_ns + st->tick_ns;
	LW_FOR_EACH_WAITING(st, v, q, word, bits)
		late = late || (lw_claims(st)[q].a && lw_claim_wait_ns(lw_claims(st) + q, st->means.now_ns) > st->shortest_ns);
	/* no wrap below 0: the weight is at least EXP_PF_LEAST_PPM, which is no less than the step down */
	if (late)
		st->elastic_ppm -= EXP_PF_DOWN_PPM;
	else
		st->elastic_ppm += EXP_PF_UP_PPM;
	if (st->elastic_ppm < EXP_PF_LEAST_PPM)
		st->elastic_ppm = EXP_PF_LEAST_PPM;
	if (st->elastic_ppm > EXP_PF_MOST_PPM)
		st->elastic_ppm = EXP_PF_MOST_PPM;
}

static void exp_pf_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	((struct lw_urgent *)state)->tick_ns = params[LW_URGENT_TICK];
	lw_urgent_change(state, v, params, qparams, params[LW_URGENT_FACTOR] != 0);
}

static void exp_pf_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct lw_urgent *st = (struct lw_urgent *)state;

	lw_urgent_init(state, v, params, qparams, params[LW_URGENT_FACTOR] != 0, false);
	st->tick_ns = params[LW_URGENT_TICK];
	st->elastic_ppm = EXP_PF_MOST_PPM;
}

static const struct lw_param exp_pf_params[EXP_PF_NPARAMS] = {
	LW_TC_PARAM,
	LW_NORM_PARAM,
	LW_EXPIRE_PARAM,
	LW_FACTOR_PARAM,
	{ "tick", "shortest time between two changes of the elastic queues' weight", NULL, 1000, 10000000000u, 1000000, LW_NS, 0 },
};
static const struct lw_param exp_pf_qparams[LW_URGENT_NQPARAMS] = { LW_TARGET_PARAM, LW_DELTA_PARAM };
static const struct lw_stat exp_pf_stats[] = { LW_MEAN_STAT };

const struct lw_policy lw_policy_exp_pf = {
	.name = "exp_pf",
	.help = "exponential proportional fairness: exponential rule for real-time queues, proportional fairness for others",
	.abi = LW_ABI,
	.max_queues = LW_MAX_QUEUES,
	.nparams = EXP_PF_NPARAMS,
	.nqparams = LW_URGENT_NQPARAMS,
	.nstats = 1,
	.params = exp_pf_params,
	.qparams = exp_pf_qparams,
	.stats = exp_pf_stats,
	.state_size = lw_urgent_state_size,
	.init = exp_pf_init,
	.pick = exp_pf_pick,
	.enqueued = lw_urgent_event,
	.sent = exp_pf_sent,
	.dropped = lw_urgent_event,
	.rated = lw_urgent_rated,
	.change = exp_pf_change,
	.leaving = lw_urgent_leaving,
	.expired = lw_urgent_expired,
	.observe = lw_urgent_observe,
};
