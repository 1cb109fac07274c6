/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * means.h - what each queue has lately been given: exponentially weighted means that cost nothing while time passes.
 *
 * A mean R forgets with the time constant Tc: R(t + d) = R(t) exp(-d / Tc), and a service of c adds c / Tc. All means decay
 * by the same factor, so what is kept is S = R Tc g(t) with g(t) = exp((t - t0) / Tc) = 2^x(t): S is constant, but for a
 * service, which adds c g. Comparing R / r is comparing S / r. x counts half-lives H = Tc ln 2 in 2^-32. Numbers are those
 * of soft.h; S, and with it x, is brought back to where it began once in 52 days (lw_mean_turn, lw_means_turn).
 *
 * A queue that was not seen before, or that returns while idle queues decay, begins with at least the key S / (w r) of the
 * best queue or, when no other has a claim, with that which the last one served had before, lest it holds the link until its
 * mean has grown (the cure is the start rule of fair queueing). Like all keys that floor loses its worth as time passes.
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
	{ "mean", "what the queue is given: bit/s, for unit=airtime ppm of the time, for unit=packets packets per 1000 s", \
	  LW_NUMBER }

enum { LW_COUNT_BYTES, LW_COUNT_AIRTIME, LW_COUNT_PACKETS };
enum { LW_IDLE_DECAY, LW_IDLE_FREEZE };

struct lw_means {
	uint64_t now_ns;                /* the latest time seen */
	uint64_t since_ns;              /* x was `phase` then */
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
	uint64_t rate_bps;              /* as last told */
	uint64_t left_ns;               /* while idle: since when */
	uint32_t weight;
	uint32_t away;                  /* has had no packet since it last had a claim */
};

/* half-lives in a time, in 2^-32 */
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

/* takes note of the time; true when x has to begin anew: lw_mean_turn for every mean, then lw_means_turn */
static inline bool lw_means_clock(struct lw_means *means, const struct lw_view *v)
{
	return lw_clock(&means->now_ns, v) - means->since_ns > LW_TURN_NS;
}

/* A mean for x that begins anew at its fraction. A frozen one may be older than the span of all exponents, so it is not
 * halved as often as x halves, but taken out of the old x and put into the new one. */
static inline void lw_mean_turn(const struct lw_means *means, struct lw_mean *mean)
{
	uint64_t x = lw_means_now(means);
	uint32_t halves = (uint32_t)(x >> 32);

	if (mean->away && means->idle == LW_IDLE_FREEZE) {
		mean->sum = lw_soft_div(mean->sum, lw_soft_exp2(lw_means_at(means, mean->left_ns)));
		mean->sum = lw_soft_mul(mean->sum, lw_soft_exp2((uint32_t)x));
		mean->left_ns = means->now_ns;
		return;
	}
	mean->sum = lw_soft_halve(mean->sum, halves);
	mean->key = lw_soft_halve(mean->key, halves);   /* exact, as it may be another queue's to the last bit */
}

/* x begins anew at its fraction, after lw_mean_turn for every mean */
static inline void lw_means_turn(struct lw_means *means)
{
	uint64_t x = lw_means_now(means);

	means->since_ns = means->now_ns;
	means->phase = (uint32_t)x;
	means->floor = lw_soft_halve(means->floor, (uint32_t)(x >> 32));
}

/* a new rate or weight; true when there is anything new */
static inline bool lw_mean_rate(struct lw_mean *mean, uint64_t rate_bps, uint32_t weight)
{
	uint64_t inverse = mean->inverse;

	if (mean->rate_bps == rate_bps && mean->weight == weight)
		return false;
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

/* the sum of a queue that is idle, as of now */
static inline uint64_t lw_mean_thawed(const struct lw_means *means, const struct lw_mean *mean)
{
	if (means->idle != LW_IDLE_FREEZE)
		return mean->sum;
	return lw_soft_mul(mean->sum, lw_soft_exp2(lw_means_x(means, means->now_ns - mean->left_ns)));
}

/* The queue has a claim again; best_key is the smallest of those that have one, or the floor when there is none. */
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

/* has the head packet of queue q waited for longer than most_ns? 0: there is no such time */
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

/* a packet has gone */
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

/* a sum or key under new parameters, by which x begins at 0 */
static inline uint64_t lw_means_rescaled(const struct lw_means *means, uint64_t sum, uint64_t tc_ns, uint32_t unit)
{
	sum = lw_soft_div(sum, lw_soft_exp2(lw_means_now(means)));
	sum = lw_soft_div(lw_soft_mul(sum, lw_soft_of(tc_ns)), lw_soft_of(means->tc_ns));
	return unit == means->unit ? sum : 0;   /* means of another unit are forgotten */
}

/* New parameters, for all queues; the floor is rescaled by who calls. */
static inline void lw_mean_change(const struct lw_means *means, struct lw_mean *mean, uint64_t tc_ns, uint32_t unit)
{
	uint64_t sum = mean->away ? lw_mean_thawed(means, mean) : mean->sum;

	mean->sum = lw_means_rescaled(means, sum, tc_ns, unit);
	mean->left_ns = means->now_ns;
	mean->key = lw_soft_mul(mean->sum, mean->inverse);
}

/* the mean for people, as LW_MEAN_STAT says, to the nearest; now_ns is not before the last event */
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
