/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * exponent.h - the exponential of a queue's urgency, for exp_rule.c and exp_pf.c.
 *
 * Both compare r / R exp((u - mean u) / (1 + sqrt(mean u))) with u the urgencies a W of the real-time queues that wait, mean
 * u their mean. What is compared is the logarithm to base 2, in 2^-24; exponents beyond 32 either way are cut.
 */
#ifndef LINKWEIR_EXPONENT_H
#define LINKWEIR_EXPONENT_H

#include "urgent.h"

#define LW_EXPONENT_MOST ((uint64_t)32 << 24)

struct lw_ages {
	uint64_t mean;                  /* of the urgencies; 0 when none waits */
	uint64_t scale;                 /* log2(e) / (1 + sqrt(mean)) */
	uint64_t most;                  /* the greatest urgency */
	uint32_t count;
	uint32_t most_urgent;           /* the first queue of that urgency, or LW_NONE */
};

/* looks at every queue that waits */
static inline struct lw_ages lw_ages_of(struct lw_urgent *st, const struct lw_view *v)
{
	struct lw_ages ages = { 0, 0, 0, 0, LW_NONE };
	const struct lw_claim *claims = lw_claims(st);
	uint64_t now_ns = st->means.now_ns, sum = 0;
	uint32_t q;

	for (q = 0; q < v->nqueues; q++) {
		uint64_t u;

		if (!claims[q].a)
			continue;
		u = lw_claim_age(claims + q, now_ns);
		sum = lw_soft_add(sum, u);
		if (u > ages.most) {
			ages.most = u;
			ages.most_urgent = q;
		}
		ages.count++;
	}
	ages.mean = lw_soft_div(sum, lw_soft_of(ages.count));
	ages.scale = lw_soft_div(LW_LOG2_E, lw_soft_add(LW_SOFT_ONE, lw_soft_sqrt(ages.mean)));
	return ages;
}

/* log2(exp((u - mean) / (1 + sqrt(mean)))) */
static inline int64_t lw_exponent(const struct lw_ages *ages, uint64_t u)
{
	bool below = u < ages->mean;
	uint64_t apart = below ? lw_soft_sub(ages->mean, u) : lw_soft_sub(u, ages->mean);
	int64_t log = (int64_t)lw_soft_floor(lw_soft_mul(apart, ages->scale), 24, LW_EXPONENT_MOST);

	return below ? -log : log;
}

/* what the most urgent queue claims, so the best one no less; below all claims when there is none */
static inline int64_t lw_exponent_least(struct lw_urgent *st, const struct lw_ages *ages, int64_t reach)
{
	return ages->most_urgent == LW_NONE ? LW_CLAIM_LEAST : lw_claims(st)[ages->most_urgent].log + reach;
}

#endif
