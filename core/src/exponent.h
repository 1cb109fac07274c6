/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * exponent.h - the exponential of a queue's urgency, for exp_rule.c and exp_pf.c.
 *
 * Both compare r / R exp((u - mean u) / (1 + sqrt(mean u))) with u the urgency a W of a queue and mean u
 * that of all waiting real-time queues. Claims are compared by their logarithms to base 2, in units of 2^-24; the exponent
 * is clamped to -32 .. 32.
 */
#ifndef LINKWEIR_EXPONENT_H
#define LINKWEIR_EXPONENT_H

#include "urgent.h"

#define LW_EXPONENT_MOST ((uint64_t)32 << 24)
#define LW_EXPONENT_BIASES (2 * (uint64_t)LW_SOFT_BIAS)         /* in the exponent of a product */

struct lw_ages {
	uint64_t mean;                  /* of the urgencies; 0 if no real-time queue waits */
	uint64_t scale;                 /* log2(e) / (1 + sqrt(mean)) */
	uint64_t offset;                /* mean * scale rounded down, in 2^-24, clamped as above */
	uint32_t shift;                 /* brings claim.age * mantissa of scale to 2^-24; above 63: out of range */
	uint32_t count;
	bool elastic;                   /* an elastic queue waits */
};

/* An upper bound of an urgency, in 2^32 of the last place of the greatest a; 2^32: not known. No a is smaller than the
 * greatest by a factor of 2^63, so the shift is in range. */
static inline uint64_t lw_age_bound(const struct lw_urgent *st, uint64_t a, uint64_t wait_ns)
{
	uint64_t age = lw_soft_mantissa(a) * (uint32_t)wait_ns >> 32;

	/* the product above has only a part of such a wait */
	if (wait_ns >> 32)
		return (uint64_t)1 << 32;
	return (age >> ((lw_soft_exponent(st->most_a) - lw_soft_exponent(a)) & 63)) + 1;
}

/* looks at every waiting queue, and stores a bound of its urgency for lw_exponent_bound */
static inline struct lw_ages lw_ages_of(struct lw_urgent *st, const struct lw_view *v)
{
	struct lw_ages ages = { 0, 0, 0, 0, 0, false };
	struct lw_soft_sum sum = { 0, 0 };
	struct lw_claim *claims = lw_claims(st);
	uint64_t now_ns = st->means.now_ns, bits, exponents;
	uint32_t q, word;

	LW_FOR_EACH_WAITING(st, v, q, word, bits) {
		uint64_t wait_ns = lw_claim_wait_ns(claims + q, now_ns);

		if (!claims[q].a) {
			ages.elastic = true;
			continue;
		}
		claims[q].age = lw_age_bound(st, claims[q].a, wait_ns);
		lw_soft_gather(&sum, claims[q].a, wait_ns);
		ages.count++;
	}
	ages.mean = lw_soft_div(lw_soft_total(&sum), lw_soft_of(ages.count));
	ages.scale = lw_soft_div(LW_LOG2_E, lw_soft_add(LW_SOFT_ONE, lw_soft_sqrt(ages.mean)));
	ages.offset = lw_soft_floor(lw_soft_mul(ages.mean, ages.scale), 24, LW_EXPONENT_MOST);
	/* 56: 32 for the unit of claim.age, 24 for that of the result */
	exponents = (uint64_t)lw_soft_exponent(st->most_a) + lw_soft_exponent(ages.scale) + 56;
	ages.shift = exponents > LW_EXPONENT_BIASES ? 64 : (uint32_t)(LW_EXPONENT_BIASES - exponents);
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

/* An upper bound of lw_exponent for an urgency of at most `age`, in a tenth of the steps; 16, which is 2^-20, covers rounding. */
static inline int64_t lw_exponent_bound(const struct lw_ages *ages, uint64_t age)
{
	uint64_t log;

	if (ages->shift > 63 || age >> 32)
		return (int64_t)LW_EXPONENT_MOST;
	log = age * lw_soft_mantissa(ages->scale) >> ages->shift;
	return log < 2 * LW_EXPONENT_MOST ? (int64_t)log - (int64_t)ages->offset + 16 : (int64_t)LW_EXPONENT_MOST;
}

/* the queue with the greatest claim; `elastic`: what multiplies r / R of elastic queues, a logarithm like lw_exponent's */
static inline uint32_t lw_exponent_pick(struct lw_urgent *st, const struct lw_view *v, const struct lw_ages *ages,
					int64_t elastic, uint64_t *retry_ns)
{
	const struct lw_claim *claims = lw_claims(st);
	uint64_t now_ns = st->means.now_ns, bits;
	int64_t most = LW_CLAIM_LEAST;
	uint32_t best = LW_NONE, q, word;

	LW_FOR_EACH_WAITING(st, v, q, word, bits) {
		int64_t claim = claims[q].log;

		/* most queues end at the bound, which spares the exact exponent */
		if (!claims[q].a)
			claim += elastic;
		else if (claim + lw_exponent_bound(ages, claims[q].age) < most)
			continue;
		else
			claim += lw_exponent(ages, lw_claim_age(claims + q, now_ns));
		if (claim < most || (claim == most && !lw_claim_earlier(claims, q, best)))
			continue;
		best = q;
		most = claim;
	}
	return lw_answer(best, retry_ns);
}

#endif
