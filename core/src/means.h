/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * means.h - how much service each queue lately received: exponentially weighted means that cost nothing while time passes.
 *
 * A mean R decays with the time constant Tc: R(t + d) = R(t) exp(-d / Tc); a service of c adds c / Tc. All means decay by the
 * same factor, so a queue keeps S = R Tc g(t) with g(t) = exp((t - t0) / Tc) = 2^x(t). S changes only when the queue is
 * served, which adds c g; comparing R / r is comparing S / r. x counts half-lives H = Tc ln 2 in units of 2^-32. Numbers are
 * those of soft.h. As g grows without end, x and with it every S are scaled back once in 52 days (lw_mean_turn,
 * lw_means_turn).
 *
 * A queue that was never seen before, or that returns while idle queues decay, would have the smallest mean and hold the
 * link until it has grown. So it begins with at least the key S / (w r) of the best queue or, if no other has a claim, with
 * the key that the last queue served had before (`floor`): the start rule of fair queueing. The floor decays as keys do.
 */
#ifndef LINKWEIR_MEANS_H
#define LINKWEIR_MEANS_H

#include "soft.h"
#include "view.h"

#define LW_TURN_NS ((uint64_t)1 << 52)
#define LW_TC_PARAM \
	{ "tc", "time constant of the means; longer: more throughput of all, longer gaps for one", NULL, 10000000, \
	  100000000000u, 1000000000, LW_NS, 0 }
#define LW_UNIT_PARAM \
	{ "unit", "what a mean counts; airtime shares time, not throughput", "bytes|airtime|packets", 0, 2, 0, LW_CHOICE, 0 }
#define LW_IDLE_PARAM \
	{ "idle", "what becomes of the mean of a queue without packets", "decay|freeze", 0, 1, 0, LW_CHOICE, 0 }
#define LW_WEIGHT_PARAM \
	{ "weight", "multiplies the queue's claim", NULL, 1, 65535, 1, LW_NUMBER, 0 }
#define LW_MEAN_STAT \
	{ "mean", "mean service of the queue: bit/s, for unit=airtime ppm of the time, for unit=packets packets per 1000 s", \
	  LW_NUMBER }

enum { LW_COUNT_BYTES, LW_COUNT_AIRTIME, LW_COUNT_PACKETS };
enum { LW_IDLE_DECAY, LW_IDLE_FREEZE };

struct lw_means {
	uint64_t now_ns;                /* the latest time seen */
	uint64_t since_ns;              /* when x was `phase` */
	uint64_t phase;                 /* below 2^32 */
	uint64_t mult;                  /* half-lives per ns, in 2^-86 */
	uint64_t tc_ns;
	uint64_t floor;                 /* the key of the last queue served, before it was */
	uint32_t unit;
	uint32_t idle;
};

struct lw_mean {
	uint64_t sum;                   /* S; while frozen, as it was at left_ns, which is not before since_ns */
	uint64_t inverse;               /* 1 / (w r), of the last rate that was not 0 */
	uint64_t key;                   /* S / (w r): the smallest has the greatest claim */
	uint64_t rate_bps;              /* as last reported */
	uint64_t left_ns;               /* while idle: since when */
	uint32_t weight;
	uint32_t away;                  /* it became empty and has not had a claim since; also before the first */
};

/* half-lives in a time, in 2^-32; times beyond 2 LW_TURN_NS are clamped */
static inline uint64_t lw_means_x(const struct lw_means *means, uint64_t time_ns)
{
	struct lw_u128 x = lw_mul(time_ns < 2 * LW_TURN_NS ? time_ns : 2 * LW_TURN_NS, means->mult);

	return x.hi << 10 | x.lo >> 54;
}

/* x(at_ns); at_ns is not before since_ns */
static inline uint64_t lw_means_at(const struct lw_means *means, uint64_t at_ns)
{
	return means->phase + lw_means_x(means, at_ns - means->since_ns);
}

/* x(now) */
static inline uint64_t lw_means_now(const struct lw_means *means)
{
	return lw_means_at(means, means->now_ns);
}

static inline void lw_means_start(struct lw_means *means, uint64_t tc_ns)
{
	means->tc_ns = tc_ns;
	means->mult = lw_mul_div(13306513097844322492u, (uint64_t)1 << 23, tc_ns);      /* 2^86 / (Tc ln 2) */
	means->since_ns = means->now_ns;
	means->phase = 0;
}

/* updates the clock; true when x must be scaled back: call lw_mean_turn for every mean, then lw_means_turn */
static inline bool lw_means_clock(struct lw_means *means, const struct lw_view *v)
{
	return lw_clock(&means->now_ns, v) - means->since_ns > LW_TURN_NS;
}

/* Scales a mean back for an x reduced to its fraction. A frozen mean may be older than the exponents can span, so it is
 * converted from the old x to the new one instead of being halved. */
static inline void lw_mean_turn(const struct lw_means *means, struct lw_mean *mean)
{
	uint64_t x = lw_means_now(means);
	uint32_t halves = (uint32_t)(x >> 32);

	if (mean->away && means->idle == LW_IDLE_FREEZE) {
		mean->sum = lw_soft_div(mean->sum, lw_soft_exp2(lw_means_at(means, mean->left_ns)));
		mean->sum = lw_soft_halve(mean->sum, 0);        /* too small for its exponent: 0 */
		mean->sum = lw_soft_mul(mean->sum, lw_soft_exp2((uint32_t)x));
		mean->left_ns = means->now_ns;
		return;
	}
	mean->sum = lw_soft_halve(mean->sum, halves);
	mean->key = lw_soft_halve(mean->key, halves);   /* exact: a tie with another queue must stay one */
}

/* reduces x to its fraction; after lw_mean_turn for every mean */
static inline void lw_means_turn(struct lw_means *means)
{
	uint64_t x = lw_means_now(means);

	means->since_ns = means->now_ns;
	means->phase = (uint32_t)x;
	means->floor = lw_soft_halve(means->floor, (uint32_t)(x >> 32));
}

/* sets the rate and the weight; true if one of them changed */
static inline bool lw_mean_rate(struct lw_mean *mean, uint64_t rate_bps, uint32_t weight)
{
	uint64_t inverse = mean->inverse;

	if (mean->rate_bps == rate_bps && mean->weight == weight)
		return false;
	/* while the queue is blocked, the last rate stays in the inverse, but a new weight counts */
	if (rate_bps)
		inverse = lw_soft_div(LW_SOFT_ONE, lw_soft_mul(lw_soft_of(rate_bps), lw_soft_of(weight)));
	else if (mean->weight != weight)
		inverse = lw_soft_div(lw_soft_mul(inverse, lw_soft_of(mean->weight)), lw_soft_of(weight));
	mean->rate_bps = rate_bps;
	mean->weight = weight;
	if (inverse != mean->inverse) {         /* else the key stays as it is, to the last bit */
		mean->inverse = inverse;
		mean->key = lw_soft_mul(mean->sum, inverse);
	}
	return true;
}

static inline void lw_mean_init(struct lw_mean *mean, const struct lw_means *means, uint64_t rate_bps, uint32_t weight)
{
	memset(mean, 0, sizeof(*mean));
	mean->left_ns = means->now_ns;
	mean->away = 1;
	lw_mean_rate(mean, rate_bps, weight);
}

/* the sum of an idle queue as of now: a frozen mean has not decayed, so its sum grows as g did */
static inline uint64_t lw_mean_thawed(const struct lw_means *means, const struct lw_mean *mean)
{
	if (means->idle != LW_IDLE_FREEZE)
		return mean->sum;
	return lw_soft_mul(mean->sum, lw_soft_exp2(lw_means_x(means, means->now_ns - mean->left_ns)));
}

/* The queue has a claim again. best_key: the smallest key of the queues that have a claim, or the floor if none has. */
static inline void lw_mean_return(const struct lw_means *means, struct lw_mean *mean, uint64_t best_key)
{
	bool known = mean->sum != 0;

	if (!mean->away)
		return;
	mean->away = 0;
	mean->sum = lw_mean_thawed(means, mean);
	mean->key = lw_soft_mul(mean->sum, mean->inverse);
	if (mean->key >= best_key || (known && means->idle == LW_IDLE_FREEZE))
		return;
	mean->key = best_key;
	mean->sum = lw_soft_mul(best_key, lw_soft_mul(lw_soft_of(mean->rate_bps), lw_soft_of(mean->weight)));
}

/* has the head packet of queue q waited for longer than most_ns? With most_ns 0 there is no limit */
static inline bool lw_means_late(const struct lw_means *means, const struct lw_view *v, uint32_t q, uint64_t most_ns)
{
	uint64_t now_ns = v->now_ns > means->now_ns ? v->now_ns : means->now_ns;

	return most_ns && lw_excess(now_ns, v->queues[q].head_arrival_ns) > most_ns;
}

/* the queue has become empty */
static inline void lw_mean_leave(const struct lw_means *means, struct lw_mean *mean)
{
	if (mean->away)
		return;
	mean->away = 1;
	mean->left_ns = means->now_ns;
}

/* a packet was sent */
static inline void lw_mean_serve(struct lw_means *means, struct lw_mean *mean, uint32_t bytes)
{
	uint64_t counted = LW_SOFT_ONE;

	if (mean->away) {                       /* sent without being eligible */
		mean->sum = lw_mean_thawed(means, mean);
		mean->left_ns = means->now_ns;
	} else {
		means->floor = mean->key;
	}
	if (means->unit == LW_COUNT_BYTES)
		counted = lw_soft_of(bytes);
	else if (means->unit == LW_COUNT_AIRTIME)
		counted = lw_soft_mul(lw_soft_of((uint64_t)bytes * mean->weight), mean->inverse);
	mean->sum = lw_soft_add(mean->sum, lw_soft_mul(counted, lw_soft_exp2(lw_means_now(means))));
	mean->key = lw_soft_mul(mean->sum, mean->inverse);
}

/* a sum or key converted to new parameters, with which x begins at 0 */
static inline uint64_t lw_means_rescaled(const struct lw_means *means, uint64_t sum, uint64_t tc_ns, uint32_t unit)
{
	sum = lw_soft_div(sum, lw_soft_exp2(lw_means_now(means)));
	sum = lw_soft_div(lw_soft_mul(sum, lw_soft_of(tc_ns)), lw_soft_of(means->tc_ns));
	return unit == means->unit ? sum : 0;   /* a mean of another unit is dropped */
}

/* Converts one mean to new parameters. The caller does so for all queues, and converts the floor. */
static inline void lw_mean_change(const struct lw_means *means, struct lw_mean *mean, uint64_t tc_ns, uint32_t unit)
{
	uint64_t sum = mean->away ? lw_mean_thawed(means, mean) : mean->sum;

	mean->sum = lw_means_rescaled(means, sum, tc_ns, unit);
	mean->left_ns = means->now_ns;
	mean->key = lw_soft_mul(mean->sum, mean->inverse);
}

/* the mean in the units of LW_MEAN_STAT, rounded to nearest; now_ns is not before the last event */
static inline int64_t lw_mean_shown(const struct lw_means *means, const struct lw_mean *mean, uint64_t now_ns)
{
	static const uint64_t scale[] = { 8000000000u, 8000000000000000u, 1000000000000u };
	bool frozen = mean->away && means->idle == LW_IDLE_FREEZE;
	uint64_t at_ns = frozen ? mean->left_ns : now_ns > means->now_ns ? now_ns : means->now_ns;
	uint64_t shown = lw_soft_div(mean->sum, lw_soft_exp2(lw_means_at(means, at_ns)));

	shown = lw_soft_div(lw_soft_mul(shown, lw_soft_of(scale[means->unit])), lw_soft_of(means->tc_ns));
	return (int64_t)((lw_soft_floor(shown, 1, (uint64_t)1 << 62) + 1) / 2);
}

#endif
