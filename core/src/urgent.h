/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * urgent.h - what mlwdf.c, exp_rule.c and exp_pf.c have in common: channel, mean and the age of the head packet.
 *
 * A real-time queue has a target T for its delays and a tolerance delta, the fraction of its packets that may be later. Its
 * urgency is a W, with a = -ln(delta) / T and W the age of its head packet (at least 1 ns). A queue without a target is
 * elastic. The channel's rate r is divided by a mean R: the service that the queue lately received (means.h), or the mean
 * rate of its channel, outages left out, as of the last change of rates.
 *
 * Urgencies grow with time at different speeds, so a pick looks at every eligible queue: O(n). So does rated(), and so does
 * an arrival at an empty queue if the best key is not known, because its queue was served since, has left, or was never
 * served. The other events are O(1). What a pick reads of a queue is kept apart, as of the queue's last event (struct
 * lw_claim). A cheap upper bound of each claim spares the exact one of most queues.
 */
#ifndef LINKWEIR_URGENT_H
#define LINKWEIR_URGENT_H

#include "means.h"

#define LW_NORM_PARAM \
	{ "norm", "what a channel is measured by: the queue's mean throughput or the channel's mean rate", \
	  "throughput|channel", 0, 1, 0, LW_CHOICE, 0 }
#define LW_EXPIRE_PARAM \
	{ "expire", "whether packets older than their target are dropped", "no|yes", 0, 1, 0, LW_CHOICE, 0 }
#define LW_FACTOR_PARAM \
	{ "factor", "what the exponential of a real-time queue is multiplied by: nothing, or -ln(delta) / T per second", \
	  "none|urgency", 0, 1, 0, LW_CHOICE, 0 }
#define LW_TARGET_PARAM \
	{ "target", "delay that packets should not exceed; 0: an elastic queue", NULL, 0, 3600000000000u, 100000000, LW_NS, 0 }
#define LW_DELTA_PARAM \
	{ "delta", "part of the packets that may exceed the target", NULL, 1, 500000, 50000, LW_PPM, 0 }

#define LW_URGENT_S_NS ((uint64_t)1000000000)

enum { LW_NORM_THROUGHPUT, LW_NORM_CHANNEL };
enum { LW_URGENT_TC, LW_URGENT_NORM, LW_URGENT_EXPIRE, LW_URGENT_FACTOR, LW_URGENT_TICK };
enum { LW_URGENT_TARGET, LW_URGENT_DELTA, LW_URGENT_NQPARAMS };

struct lw_urgent {
	struct lw_means means;
	uint32_t norm;
	uint32_t expire;
	uint32_t elastic_ppm;           /* exp_pf.c: the weight of elastic queues */
	uint32_t coarse;                /* mlwdf.c: the claims' logarithms are only bounds */
	uint64_t tick_ns, next_tick_ns; /* exp_pf.c: when that weight may change */
	uint64_t shortest_ns;           /* of the targets; LW_NEVER: there is none */
	uint64_t most_a;                /* the greatest a */
	uint64_t best_key;              /* the smallest key of those that have a claim; 0: not known */
};

struct lw_urgent_queue {
	struct lw_mean mean;
	uint64_t channel;               /* mean rate, bit/s, as of channel_ns */
	uint64_t channel_ns;
	uint64_t target_ns;             /* 0: elastic */
	uint64_t a;                     /* -ln(delta) / T, per ns; 0: elastic */
	int64_t log_a;                  /* log2 of a per second, where claims count it, in 2^-24 */
	uint64_t logged;                /* the key whose logarithm is `log` */
	int64_t log;                    /* in 2^-24 */
};

/* What a pick reads of a queue. */
struct lw_claim {
	uint64_t head_ns;               /* arrival of its head packet */
	uint64_t a;                     /* 0: elastic */
	int64_t log;                    /* log2(r / mean), and of a where claims count it, in 2^-24; coarse: up to 0.0861 above */
	uint64_t key;                   /* of the service it received; UINT64_MAX: has no claim */
	uint64_t age;                   /* exponent.h: an upper bound of its urgency as of this pick */
};

#define LW_CLAIM_LEAST (-((int64_t)1 << 60))    /* below all claims */
#define LW_CLAIM_UNSERVED ((int64_t)1 << 61)    /* of a queue never served: better than any other */

static inline struct lw_claim *lw_claims(struct lw_urgent *st)
{
	return (struct lw_claim *)(st + 1);
}

static inline struct lw_urgent_queue *lw_urgent_queues(struct lw_urgent *st, const struct lw_view *v)
{
	return (struct lw_urgent_queue *)(lw_claims(st) + v->nqueues);
}

/* a bit for each queue: it is eligible */
static inline uint64_t *lw_urgent_waiting(struct lw_urgent *st, const struct lw_view *v)
{
	return (uint64_t *)(lw_urgent_queues(st, v) + v->nqueues);
}

/* for each eligible queue q in turn; `word` and `bits` say where it is. Two loops: a `break` ends only the inner one */
#define LW_FOR_EACH_WAITING(st, v, q, word, bits) \
	for ((word) = 0; (word) < ((v)->nqueues + 63) / 64; (word)++) \
		for ((bits) = lw_urgent_waiting(st, v)[word]; \
		     (bits) && ((q) = 64 * (word) + LW_CTZ64(bits), true); (bits) &= (bits) - 1)

static inline size_t lw_urgent_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct lw_urgent) + nqueues * (sizeof(struct lw_claim) + sizeof(struct lw_urgent_queue)) +
	       (nqueues + 63) / 64 * sizeof(uint64_t);
}

/* brings the channel's mean up to now, at the rate it had since; outages do not count */
static inline void lw_urgent_follow_channel(const struct lw_urgent *st, struct lw_urgent_queue *queue)
{
	uint64_t rate = lw_soft_of(queue->mean.rate_bps), kept;

	kept = lw_soft_div(LW_SOFT_ONE, lw_soft_exp2(lw_means_x(&st->means, st->means.now_ns - queue->channel_ns)));
	queue->channel_ns = st->means.now_ns;
	if (rate)
		queue->channel = lw_soft_add(lw_soft_mul(queue->channel, kept),
					     lw_soft_mul(rate, lw_soft_sub(LW_SOFT_ONE, kept)));
}

/* mean / r: smaller is better */
static inline uint64_t lw_urgent_key(const struct lw_urgent *st, const struct lw_urgent_queue *queue)
{
	return st->norm == LW_NORM_CHANNEL ? lw_soft_mul(queue->channel, queue->mean.inverse) : queue->mean.key;
}

/* log2(r / mean) in 2^-24 */
static inline int64_t lw_urgent_log(const struct lw_urgent *st, struct lw_urgent_queue *queue)
{
	uint64_t key = lw_urgent_key(st, queue);

	/* cached by key, since an exact logarithm takes 24 steps */
	if (key != queue->logged) {
		queue->logged = key;
		queue->log = st->coarse ? lw_soft_log2_below(key) : lw_soft_log2(key);
	}
	return key ? -queue->log : LW_CLAIM_UNSERVED;
}

/* at least 1 */
static inline uint64_t lw_claim_wait_ns(const struct lw_claim *claim, uint64_t now_ns)
{
	uint64_t wait_ns = lw_excess(now_ns, claim->head_ns);

	return wait_ns ? wait_ns : 1;
}

/* a W; 0 for an elastic queue */
static inline uint64_t lw_claim_age(const struct lw_claim *claim, uint64_t now_ns)
{
	return lw_soft_mul(claim->a, lw_soft_of(lw_claim_wait_ns(claim, now_ns)));
}

/* the tie rule: is the head packet of q earlier? Any is earlier than LW_NONE */
static inline bool lw_claim_earlier(const struct lw_claim *claims, uint32_t q, uint32_t than)
{
	return than == LW_NONE || claims[q].head_ns < claims[than].head_ns;
}

/* ---- events ---- */

/* updates what a pick, and a queue that returns, reads of queue q */
static inline void lw_urgent_note(struct lw_urgent *st, const struct lw_view *v, uint32_t q)
{
	struct lw_urgent_queue *queue = lw_urgent_queues(st, v) + q;
	struct lw_claim *claim = lw_claims(st) + q;
	uint64_t *waiting = lw_urgent_waiting(st, v) + q / 64, bit = (uint64_t)1 << q % 64;
	bool eligible = lw_eligible(v, q);
	uint64_t key = eligible && !queue->mean.away ? queue->mean.key : UINT64_MAX;

	if (key <= st->best_key)
		st->best_key = key;
	else if (claim->key == st->best_key)
		st->best_key = 0;               /* the best one got worse: lw_urgent_best_key looks for it when needed */
	claim->key = key;
	*waiting = eligible ? *waiting | bit : *waiting & ~bit;
	if (!eligible)
		return;
	claim->head_ns = v->queues[q].head_arrival_ns;
	claim->a = queue->a;
	claim->log = queue->log_a + lw_urgent_log(st, queue);
}

static inline void lw_urgent_clock(struct lw_urgent *st, const struct lw_view *v)
{
	uint32_t q;

	if (!lw_means_clock(&st->means, v))
		return;
	for (q = 0; q < v->nqueues; q++)
		lw_mean_turn(&st->means, &lw_urgent_queues(st, v)[q].mean);
	lw_means_turn(&st->means);
	for (q = 0; q < v->nqueues; q++)
		lw_urgent_note(st, v, q);
}

/* the smallest key of the queues that have a claim, or the floor if none has */
static inline uint64_t lw_urgent_best_key(struct lw_urgent *st, const struct lw_view *v)
{
	const struct lw_claim *claims = lw_claims(st);
	uint64_t best = UINT64_MAX, bits;
	uint32_t q, word;

	if (!st->best_key) {
		LW_FOR_EACH_WAITING(st, v, q, word, bits)
			if (claims[q].key < best)
				best = claims[q].key;
		st->best_key = best;
	}
	return st->best_key == UINT64_MAX ? st->means.floor : st->best_key;
}

/* After any event of queue q. */
static inline void lw_urgent_follow(struct lw_urgent *st, const struct lw_view *v, uint32_t q)
{
	struct lw_mean *mean = &lw_urgent_queues(st, v)[q].mean;

	if (!v->queues[q].backlog_pkts)
		lw_mean_leave(&st->means, mean);
	else if (v->queues[q].rate_bps && mean->away)
		lw_mean_return(&st->means, mean, lw_urgent_best_key(st, v));
	lw_urgent_note(st, v, q);
}

static inline void lw_urgent_rated(void *state, const struct lw_view *v)
{
	struct lw_urgent *st = (struct lw_urgent *)state;
	struct lw_urgent_queue *queues = lw_urgent_queues(st, v);
	uint32_t q;

	lw_urgent_clock(st, v);
	for (q = 0; q < v->nqueues; q++) {
		if (queues[q].mean.rate_bps != v->queues[q].rate_bps) {
			lw_urgent_follow_channel(st, queues + q);
			lw_mean_rate(&queues[q].mean, v->queues[q].rate_bps, 1);
			if (!queues[q].channel)         /* its first rate */
				queues[q].channel = lw_soft_of(v->queues[q].rate_bps);
		}
		lw_urgent_note(st, v, q);
	}
	/* only now: a queue that returns is bounded by the best key at the new rates */
	for (q = 0; q < v->nqueues; q++)
		lw_urgent_follow(st, v, q);
}

static inline void lw_urgent_set(struct lw_urgent *st, const struct lw_view *v, const uint64_t *params,
				 const uint64_t *qparams, bool factor)
{
	uint32_t q;

	st->norm = (uint32_t)params[LW_URGENT_NORM];
	st->expire = (uint32_t)params[LW_URGENT_EXPIRE];
	st->shortest_ns = LW_NEVER;
	st->most_a = 0;
	for (q = 0; q < v->nqueues; q++, qparams += LW_URGENT_NQPARAMS) {
		struct lw_urgent_queue *queue = lw_urgent_queues(st, v) + q;
		/* delta is at most a half, so the logarithm is at least 1 and lw_soft_norm defined */
		int64_t log = lw_soft_log2(lw_soft_div(lw_soft_of(1000000), lw_soft_of(qparams[LW_URGENT_DELTA])));
		uint64_t tolerance = lw_soft_mul(lw_soft_norm((uint64_t)log, LW_SOFT_BIAS - 24), LW_LN_2);

		queue->target_ns = qparams[LW_URGENT_TARGET];
		queue->a = lw_soft_div(tolerance, lw_soft_of(queue->target_ns));
		if (queue->target_ns && queue->target_ns < st->shortest_ns)
			st->shortest_ns = queue->target_ns;
		if (queue->a > st->most_a)
			st->most_a = queue->a;
		queue->log_a = factor && queue->a ? lw_soft_log2(lw_soft_mul(queue->a, lw_soft_of(LW_URGENT_S_NS))) : 0;
	}
}

static inline void lw_urgent_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams,
				  bool factor, bool coarse)
{
	struct lw_urgent *st = (struct lw_urgent *)state;
	struct lw_urgent_queue *queues = lw_urgent_queues(st, v);
	uint32_t q;

	memset(st, 0, sizeof(*st));
	for (q = 0; q < (v->nqueues + 63) / 64; q++)
		lw_urgent_waiting(st, v)[q] = 0;
	for (q = 0; q < v->nqueues; q++) {
		memset(lw_claims(st) + q, 0, sizeof(struct lw_claim));
		memset(queues + q, 0, sizeof(*queues));
	}
	st->means.now_ns = v->now_ns;
	st->coarse = coarse;
	lw_means_start(&st->means, params[LW_URGENT_TC]);
	lw_urgent_set(st, v, params, qparams, factor);
	for (q = 0; q < v->nqueues; q++) {
		lw_mean_init(&queues[q].mean, &st->means, v->queues[q].rate_bps, 1);
		queues[q].channel = lw_soft_of(v->queues[q].rate_bps);
		queues[q].channel_ns = v->now_ns;
		lw_urgent_note(st, v, q);
	}
	for (q = 0; q < v->nqueues; q++)
		lw_urgent_follow(st, v, q);
}

static inline void lw_urgent_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams,
				    bool factor)
{
	struct lw_urgent *st = (struct lw_urgent *)state;
	struct lw_urgent_queue *queues = lw_urgent_queues(st, v);
	uint32_t q;

	lw_urgent_clock(st, v);
	if (st->means.tc_ns != params[LW_URGENT_TC]) {
		for (q = 0; q < v->nqueues; q++) {
			lw_urgent_follow_channel(st, queues + q);
			lw_mean_change(&st->means, &queues[q].mean, params[LW_URGENT_TC], st->means.unit);
		}
		st->means.floor = lw_means_rescaled(&st->means, st->means.floor, params[LW_URGENT_TC], st->means.unit);
		lw_means_start(&st->means, params[LW_URGENT_TC]);
	}
	lw_urgent_set(st, v, params, qparams, factor);
	lw_urgent_rated(st, v);
}

static inline void lw_urgent_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct lw_urgent *st = (struct lw_urgent *)state;

	lw_urgent_clock(st, v);
	lw_mean_serve(&st->means, &lw_urgent_queues(st, v)[q].mean, bytes);
	lw_urgent_follow(st, v, q);
}

/* enqueued and dropped */
static inline void lw_urgent_event(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	(void)bytes;
	lw_urgent_clock((struct lw_urgent *)state, v);
	lw_urgent_follow((struct lw_urgent *)state, v, q);
}

/* for questions that take the state read-only */
static inline const struct lw_urgent_queue *lw_urgent_seen(const struct lw_urgent *st, const struct lw_view *v)
{
	return (const struct lw_urgent_queue *)((const struct lw_claim *)(st + 1) + v->nqueues);
}

static inline bool lw_urgent_expired(const void *state, const struct lw_view *v, uint32_t q)
{
	const struct lw_urgent *st = (const struct lw_urgent *)state;

	return st->expire && lw_means_late(&st->means, v, q, lw_urgent_seen(st, v)[q].target_ns);
}

static inline enum lw_verdict lw_urgent_leaving(void *state, const struct lw_view *v, uint32_t q, bool ecn)
{
	(void)ecn;
	return lw_urgent_expired(state, v, q) ? LW_DROP : LW_PASS;
}

static inline void lw_urgent_observe(const void *state, const struct lw_view *v, uint32_t q, int64_t *values)
{
	const struct lw_urgent *st = (const struct lw_urgent *)state;

	values[0] = lw_mean_shown(&st->means, &lw_urgent_seen(st, v)[q].mean, v->now_ns);
}

#endif
