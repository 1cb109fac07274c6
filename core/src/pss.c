/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * pss.c - priority switching scheduler: a guaranteed rate for some queues between strict priorities.
 *
 * Finzi, Perrier, Frances and Lochin, 2023; the n-queue form is in Baker et al., draft-finzi-priority-switching-scheduler,
 * 2018; the shaper it grew from is by Goetz, 2012. A plain queue has one priority level. A controlled queue has a
 * reserved rate rho, two levels, and a credit that falls by rho as time passes and rises by the bits it sends. It is at its
 * high level until the credit reaches LM, then at its low level until the credit is back at LR. So it receives rho with
 * priority over the queues between its two levels, plus what they leave over. LR is a memory: credit below it is service
 * owed from a time when more urgent queues or a fading link left too little.
 *
 * Emptying-time form. Credits are divided by rho and so become times: `tat` is the instant at which the bucket will be
 * empty, the level is tat - now, LR and LM become TR and TM. Then passing time needs no arithmetic, an idle gap of days
 * cannot overflow, and the fraction of a nanosecond that a packet costs is carried over, so rates do not drift.
 *
 * Where ours deviates from the paper's Algorithm 1
 *   A queue returns to its high level at credit <= LR (with `<` and LR = 0 it would never return).
 *   The initial credit is LR: a queue starts neither owed service nor ahead (parameter `credit`).
 *   While a queue is empty, its credit does not fall below min(credit, LR). The rule is applied when a packet ends the empty
 *   interval; applied at the next departure it would count idle time as starvation.
 *   sat=exact keeps the excess of the packet that crosses LM, and so delivers rho for any packet size;
 *   sat=paper cuts the credit at LM.
 *   Controlled queues at low level are looked at only when the first of them is due, so calls are O(1) amortised.
 *
 * The capacity that LR and LM are computed from, when it changes
 *   share   the present capacity, which rho follows;
 *   rate    the largest capacity that init(), rated() or change() has reported so far. The paper takes C as known. A fade
 *           changes neither a reservation in bit/s nor its LR and LM (an LM computed from a faded link would let one packet
 *           through at a time). When the link turns out to be faster, LM grows to let `burst` packets through there.
 * When a new capacity or a new setting changes LR and LM, the credit's distance from LR keeps its bits. Below LR it is the
 * service owed, which the new LR (the memory) limits; above LR the service received in advance, which the new LM (the burst)
 * and one packet limit. A call that changes nothing leaves the credit as it is, to the fraction of a nanosecond.
 *
 * Steps: pick, sent and enqueued O(1), plus a pass over all low queues whenever one of them is due; sat=paper adds one step
 * per queue to sent. rated() and change() look at every queue and divide a few times for each, off the packet path.
 */
#include "pss_reserve.h"
#include "view.h"

/* What the user set for a queue, and the rate in bit/s that it means at present. */
struct pss_setting {
	uint64_t value[PSS_NQPARAMS];
	uint64_t rho_bps;
};

/* What the algorithm keeps for a queue: one cache line. Plain queues use `rank` only. */
struct pss_queue {
	uint64_t tat_ns;                /* when the credit would reach 0 */
	uint64_t frac;                  /* of a nanosecond, in 2^-shift */
	uint64_t floor_ns;              /* while empty: the level does not fall below this */
	uint64_t resume_ns;             /* TR: at or below it the queue returns to its high level */
	uint64_t full_ns;               /* TM: from here on it goes to its low level */
	uint64_t mark_ns;               /* early=ignore: nominal end of the last packet; otherwise 0 */
	uint32_t mult;                  /* the pace of rho */
	uint16_t rank[2];               /* of the high and of the low level */
	uint8_t shift;                  /* of mult */
	uint8_t low;                    /* at its low level */
	uint8_t controlled;
	uint8_t empty;
	uint32_t unused;
};

struct pss_state {
	uint64_t seen_ns;
	uint64_t review_ns;             /* before this no low queue can be due */
	struct lw_pace tx;              /* of the link */
	uint64_t link_bps;
	uint64_t best_bps;              /* the largest capacity reported so far: gives LR and LM of a `rate` */
	uint32_t nlow;
	uint8_t paper, reset, ignore;
	uint8_t unused;
	struct lw_bitmap ready;         /* current ranks of the eligible queues */
};

/* The state is followed by queues[n], settings[n], holder[2n]: the queue of a rank, low[n]: the low queues, unordered. */

static struct pss_queue *pss_queues(struct pss_state *st)
{
	return (struct pss_queue *)(st + 1);
}

static struct pss_setting *pss_settings(struct pss_state *st, uint32_t n)
{
	return (struct pss_setting *)(pss_queues(st) + n);
}

static uint32_t *pss_holders(struct pss_state *st, uint32_t n)
{
	return (uint32_t *)(pss_settings(st, n) + n);
}

static uint32_t *pss_lows(struct pss_state *st, uint32_t n)
{
	return pss_holders(st, n) + 2 * (size_t)n;
}

static size_t pss_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct pss_state) +
	       nqueues * (sizeof(struct pss_queue) + sizeof(struct pss_setting) + 3 * sizeof(uint32_t));
}

static bool pss_check(const struct lw_view *v, const uint64_t *params, const uint64_t *qparams, struct lw_fault *fault)
{
	uint64_t sum_bps = 0;
	uint32_t q, column, nlevels = 0;

	(void)params;
	if (!v->link_bps)
		return pss_refuse(fault, LW_NONE, "link", "the capacity of the link must be known: give it");
	for (q = 0; q < v->nqueues; q++) {
		const uint64_t *row = qparams + (size_t)q * PSS_NQPARAMS;

		if (!pss_check_queue(row, v->link_bps, q, &sum_bps, fault))
			return false;
		nlevels += row[PSS_LOW_LEVEL] == LW_UNSET ? 1 : 2;
		if (nlevels > LW_BITMAP_SIZE)
			return pss_refuse(fault, q, "low_level", "more than 4096 levels: use fewer controlled queues");
	}
	if (lw_levels_clash(qparams, v->nqueues, PSS_NQPARAMS, PSS_LEVEL, PSS_LOW_LEVEL, &q, &column))
		return pss_refuse(fault, q, column == PSS_LEVEL ? "level" : "low_level",
				  "another queue has this level: all levels, high and low, must differ");
	return true;
}

static uint64_t pss_time_of(uint64_t bits, uint64_t rho_bps)
{
	uint64_t ns = lw_mul_div(bits, PSS_SECOND_NS, rho_bps);

	return ns < PSS_MAX_LEVEL_NS ? ns : PSS_MAX_LEVEL_NS;
}

/* Derives the constants from the settings; true if any of them has changed. */
static bool pss_set_constants(const struct pss_state *st, struct pss_queue *queue, struct pss_setting *setting)
{
	struct pss_reserve r = pss_derive(setting->value, setting->value[PSS_SHARE] ? st->link_bps : st->best_bps);
	uint64_t resume_ns = pss_time_of(r.lr_bits, r.rho_bps), full_ns = pss_time_of(r.lm_bits, r.rho_bps);
	struct lw_pace pace;

	if (setting->rho_bps == r.rho_bps && queue->resume_ns == resume_ns && queue->full_ns == full_ns)
		return false;
	pace = lw_pace_of(r.rho_bps);
	queue->mult = (uint32_t)pace.mult;      /* < 2^32 from 2 bit/s up */
	queue->shift = (uint8_t)pace.shift;
	queue->resume_ns = resume_ns;
	queue->full_ns = full_ns;
	setting->rho_bps = r.rho_bps;
	return true;
}

/* ---- the credit ---- */

/* The instant from which a level is counted: now, or with early=ignore the nominal end of its last packet if later. */
static uint64_t pss_origin(const struct pss_queue *queue, uint64_t now)
{
	return queue->mark_ns > now ? queue->mark_ns : now;
}

static uint64_t pss_level(const struct pss_queue *queue, uint64_t now)
{
	uint64_t level = lw_excess(queue->tat_ns, pss_origin(queue, now));

	return queue->empty && level < queue->floor_ns ? queue->floor_ns : level;
}

/* At which level an emptied queue stops falling: at its present one, or at TR if less or with on_empty=reset. */
static uint64_t pss_floor(const struct pss_state *st, const struct pss_queue *queue, uint64_t level_ns)
{
	return st->reset || level_ns > queue->resume_ns ? queue->resume_ns : level_ns;
}

/*
 * When a low queue is due to return. The floor does not matter: it never exceeds TR. With early=ignore the level does not
 * fall before the mark, so a queue that would be due by then is due at once.
 */
static uint64_t pss_due(const struct pss_queue *queue)
{
	uint64_t due = lw_excess(queue->tat_ns, queue->resume_ns);

	return due <= queue->mark_ns ? 0 : due;
}

/*
 * For the proofs. Hold between any two calls: a queue is the holder of its ranks, `ready` has present ranks only, and the low
 * row names queues at their low level, each once. pss_holder(r) is the queue of rank r, which changes only where all ranks are
 * given anew, and pss_can_send(q) says which queues can send when a call begins.
 *
 * pss_fits says how far the level of a controlled queue can be above now, so that no time overflows: the greatest TM, 2^62 ns, and
 * two packets at the high level, four at the low one; a packet takes at most 2^53 ns.
 */
/*@ axiomatic pss_call {
      predicate pss_can_send(integer q);
      logic integer pss_holder(integer r);
    }
    logic struct pss_queue *pss_rows(struct pss_state *st) = (struct pss_queue *)(st + 1);
    logic struct pss_setting *pss_setting_row(struct pss_state *st) = (struct pss_setting *)((struct pss_queue *)(st + 1) + lw_n);
    logic uint32_t *pss_holder_row(struct pss_state *st) = (uint32_t *)((struct pss_setting *)((struct pss_queue *)(st + 1) + lw_n) + lw_n);
    logic uint32_t *pss_low_row(struct pss_state *st) = pss_holder_row(st) + 2 * lw_n;
    logic integer pss_rank_of{L}(struct pss_queue *rows, integer q) = \at(rows[q].rank[rows[q].low], L);
    predicate pss_held{L}(uint32_t *holders) = \forall integer r; 0 <= r < 2 * lw_n ==> \at(holders[r], L) == pss_holder(r);
    predicate pss_holds(integer q, integer r) = 0 <= r < LW_BITMAP_SIZE && r < 2 * lw_n && pss_holder(r) == q;
    predicate pss_ranked{L}(struct pss_queue *rows) = \forall integer q; 0 <= q < lw_n ==>
	(\at(rows[q].controlled, L) == 0 ==> \at(rows[q].low, L) == 0) && \at(rows[q].low, L) <= 1 &&
	pss_holds(q, pss_rank_of{L}(rows, q)) && pss_holds(q, \at(rows[q].rank[0], L)) &&
	(\at(rows[q].controlled, L) != 0 ==> pss_holds(q, \at(rows[q].rank[1], L)) &&
		\at(rows[q].rank[0], L) != \at(rows[q].rank[1], L));
    predicate pss_placed{K,L}(struct pss_queue *rows) = \forall integer q; 0 <= q < lw_n ==>
	pss_rank_of{L}(rows, q) == pss_rank_of{K}(rows, q);
    predicate pss_present{L}(struct lw_bitmap *ready, struct pss_queue *rows) =
	\forall integer r; 0 <= r < LW_BITMAP_SIZE && lw_member{L}(ready, r) ==>
		r < 2 * lw_n && 0 <= pss_holder(r) < lw_n && pss_rank_of{L}(rows, pss_holder(r)) == r;
    predicate pss_ready{L}(struct lw_bitmap *ready, struct pss_queue *rows, integer q) = lw_member{L}(ready, pss_rank_of{L}(rows, q));
    predicate pss_agrees{L}(struct lw_bitmap *ready, struct pss_queue *rows) =
	\forall integer q; 0 <= q < lw_n ==> 0 <= pss_rank_of{L}(rows, q) < LW_BITMAP_SIZE &&
		(pss_can_send(q) <==> pss_ready{L}(ready, rows, q));
    predicate pss_once{L}(uint32_t *lows, integer k) = \forall integer i, j; 0 <= i < j < k ==> \at(lows[i], L) != \at(lows[j], L);
    predicate pss_apart{L}(uint32_t *lows, integer k, integer q) = \forall integer i; 0 <= i < k ==>
	\at(lows[i], L) < lw_n && \at(lows[i], L) != q;
    predicate pss_sunk{L}(uint32_t *lows, integer k, struct pss_queue *rows) = \forall integer i; 0 <= i < k ==>
	\at(rows[lows[i]].low, L) != 0;
    predicate pss_listed{L}(struct pss_state *st, uint32_t *lows) = \at(st->nlow, L) <= lw_n &&
	\forall integer i; 0 <= i < \at(st->nlow, L) ==> \at(lows[i], L) < lw_n;
    predicate pss_bounds{L}(struct pss_queue *q, integer now) = 0 <= \at(q->shift, L) <= 63 &&
	\at(q->resume_ns, L) <= PSS_MAX_LEVEL_NS && \at(q->full_ns, L) <= PSS_MAX_LEVEL_NS &&
	\at(q->floor_ns, L) <= PSS_MAX_LEVEL_NS && \at(q->mark_ns, L) <= now + 9007199254740992;
    predicate pss_fits{L}(struct pss_queue *q, integer now) = pss_bounds{L}(q, now) &&
	(\at(q->controlled, L) != 0 ==> \at(q->frac, L) < 1 << \at(q->shift, L) && \at(q->tat_ns, L) <=
		now + PSS_MAX_LEVEL_NS + (\at(q->low, L) != 0 ? 36028797018963968 : 18014398509481984));
    predicate pss_all_fit{L}(struct pss_queue *rows, integer now) = \forall integer q; 0 <= q < lw_n ==> pss_fits{L}(rows + q, now); */

static void pss_switch(struct pss_state *st, struct pss_queue *queue, uint8_t low)
{
	bool ready = lw_bitmap_has(&st->ready, queue->rank[queue->low]);

	if (ready)
		lw_bitmap_del(&st->ready, queue->rank[queue->low]);
	queue->low = low;
	if (ready)
		lw_bitmap_add(&st->ready, queue->rank[low]);
}

static void pss_sink(struct pss_state *st, const struct lw_view *v, struct pss_queue *queue, uint32_t q)
{
	uint64_t due = pss_due(queue);

	//@ assert apart: pss_apart(pss_low_row(st), st->nlow, q);
	//@ assert room_for_low: st->nlow < v->nqueues;
	pss_lows(st, v->nqueues)[st->nlow++] = q;
	pss_switch(st, queue, 1);
	if (due < st->review_ns)
		st->review_ns = due;
}

/* The low queue in place i of the row returns to its high level; the last one takes its place. */
static void pss_rise(struct pss_state *st, uint32_t *lows, uint32_t i)
{
	pss_switch(st, pss_queues(st) + lows[i], 0);
	//@ assert others_low: \forall integer j; 0 <= j < st->nlow && j != i ==> pss_rows(st)[lows[j]].low != 0;
	lows[i] = lows[--st->nlow];
}

/* Every low queue that is due returns to its high level; review_ns becomes the time when the next one is due. */
static void pss_review(struct pss_state *st, const struct lw_view *v, uint64_t now)
{
	uint32_t *lows = pss_lows(st, v->nqueues), i = 0;

	st->review_ns = LW_NEVER;
	/*@ loop invariant fits: pss_all_fit(pss_rows(st), now);
	    loop invariant held: pss_held(pss_holder_row(st));
	    loop invariant listed: pss_listed(st, lows);
	    loop invariant once: pss_once(lows, st->nlow);
	    loop invariant sunk: pss_sunk(lows, st->nlow, pss_rows(st));
	    loop invariant place: i <= st->nlow;
	    loop invariant summed: lw_summed(&st->ready);
	    loop invariant ranked: pss_ranked(pss_rows(st));
	    loop invariant present: pss_present(&st->ready, pss_rows(st));
	    loop invariant agrees: pss_agrees(&st->ready, pss_rows(st));
	    loop assigns i, st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, lows[0 .. lw_n - 1],
		pss_rows(st)[0 .. lw_n - 1]; */
	while (i < st->nlow) {
		struct pss_queue *queue = pss_queues(st) + lows[i];
		uint64_t due = pss_due(queue);

		if (due <= now) {
			pss_rise(st, lows, i);
			continue;
		}
		if (due < st->review_ns)
			st->review_ns = due;
		i++;
	}
}

/* sat=paper: no credit exceeds LM at a departure. */
static void pss_saturate(struct pss_state *st, const struct lw_view *v, uint64_t now)
{
	uint32_t q;

	/*@ loop invariant fits: pss_all_fit(pss_rows(st), now);
	    loop invariant place: q <= v->nqueues;
	    loop invariant summed: lw_summed(&st->ready);
	    loop invariant ranked: pss_ranked(pss_rows(st));
	    loop invariant present: pss_present(&st->ready, pss_rows(st));
	    loop invariant agrees: pss_agrees(&st->ready, pss_rows(st));
	    loop invariant held: pss_held(pss_holder_row(st));
	    loop invariant listed: pss_listed(st, pss_low_row(st));
	    loop invariant once: pss_once(pss_low_row(st), st->nlow);
	    loop invariant sunk: pss_sunk(pss_low_row(st), st->nlow, pss_rows(st));
	    loop assigns q, st->review_ns, pss_rows(st)[0 .. lw_n - 1]; */
	for (q = 0; q < v->nqueues; q++) {
		struct pss_queue *queue = pss_queues(st) + q;
		uint64_t most = pss_origin(queue, now) + queue->full_ns;

		if (queue->controlled && queue->tat_ns > most) {
			queue->tat_ns = most;
			st->review_ns = 0;
		}
	}
}

/* The time that a packet adds to the level, in whole nanoseconds; *rest is the fraction that is left, in 2^-shift. */
static uint64_t pss_cost_ns(const struct pss_queue *queue, uint32_t bytes, uint64_t *rest)
{
	uint64_t cost, step_ns;

	cost = (uint64_t)bytes * queue->mult + queue->frac;
	step_ns = cost >> queue->shift;
	cost &= ((uint64_t)1 << queue->shift) - 1;
	*rest = cost;
	return step_ns;
}

/* Adds a packet to the level. `full` is the tat of a level that is LM at the packet's nominal end. */
static void pss_add(struct pss_queue *queue, uint32_t bytes, uint64_t now, uint64_t full, bool paper)
{
	uint64_t tat, rest, step_ns;

	if (queue->tat_ns < now) {                      /* the level had reached 0 */
		queue->tat_ns = now;
		queue->frac = 0;
	}
	step_ns = pss_cost_ns(queue, bytes, &rest);
	//@ assert step_bounded: step_ns <= ((uint64_t)1 << 53);
	tat = queue->tat_ns;
	//@ assert level_bounded: tat <= now + PSS_MAX_LEVEL_NS + ((uint64_t)1 << 55);
	tat += step_ns;
	if (!queue->low) {
		queue->frac = rest;
		queue->tat_ns = paper && tat > full ? full : tat;
	} else if (tat <= full) {                       /* sent at low level, spare capacity: charged up to LM only */
		queue->frac = rest;
		queue->tat_ns = tat;
	} else if (queue->tat_ns < full) {
		queue->frac = 0;
		queue->tat_ns = full;
	}
}

/* The queue is empty from now on, at this level. */
static void pss_rest(const struct pss_state *st, struct pss_queue *queue, uint64_t level_ns)
{
	queue->floor_ns = pss_floor(st, queue, level_ns);
	queue->empty = 1;
}

static void pss_charge(struct pss_state *st, const struct lw_view *v, uint32_t q, uint32_t bytes, uint64_t now)
{
	struct pss_queue *queue = pss_queues(st) + q;
	uint64_t tx_ns = lw_pace_ns(&st->tx, bytes);
	uint64_t full = now + queue->full_ns + tx_ns;

	if (st->ignore) {                               /* the time that the last packet gained does not count */
		queue->tat_ns = lw_excess(queue->tat_ns, lw_excess(queue->mark_ns, now));
		queue->mark_ns = now + tx_ns;
		st->review_ns = 0;
	}
	pss_add(queue, bytes, now, full, st->paper);
	if (!queue->low && queue->tat_ns >= full)
		pss_sink(st, v, queue, q);
	if (!v->queues[q].backlog_pkts)
		pss_rest(st, queue, lw_excess(queue->tat_ns, now + tx_ns));
}

/* ---- the calls ---- */

static uint32_t pss_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct pss_state *st = (struct pss_state *)state;
	uint64_t now = lw_clock(&st->seen_ns, v);

	if (now >= st->review_ns)
		pss_review(st, v, now);
	if (lw_bitmap_empty(&st->ready))
		return lw_answer(LW_NONE, retry_ns);
	return lw_answer(pss_holders(st, v->nqueues)[lw_bitmap_first(&st->ready)], retry_ns);
}

static void pss_enqueued(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct pss_state *st = (struct pss_state *)state;
	struct pss_queue *queue = pss_queues(st) + q;
	uint64_t now = lw_clock(&st->seen_ns, v);

	(void)bytes;
	if (!queue->empty)
		return;
	if (queue->controlled) {
		uint64_t least = pss_origin(queue, now) + queue->floor_ns;

		if (queue->tat_ns < least) {
			queue->tat_ns = least;
			queue->frac = 0;
		}
	}
	queue->empty = 0;
	//@ assert fits: pss_all_fit(pss_rows(st), st->seen_ns);
	//@ assert placed: pss_placed{Pre,Here}(pss_rows(st));
	//@ assert present: pss_present(&st->ready, pss_rows(st));
	//@ assert ranked: pss_ranked(pss_rows(st));
	//@ assert sunk: pss_sunk(pss_low_row(st), st->nlow, pss_rows(st));
	if (v->queues[q].rate_bps)
		lw_bitmap_add(&st->ready, queue->rank[queue->low]);
}

/* The head of q was sent: it may have been the last one. */
static void pss_shrink(struct pss_state *st, const struct lw_view *v, uint32_t q)
{
	struct pss_queue *queue = pss_queues(st) + q;

	if (!lw_eligible(v, q)) {
		lw_bitmap_del(&st->ready, queue->rank[queue->low]);
		queue->empty = !v->queues[q].backlog_pkts;
	}
}

/* Departures that may move a credit. Not inlined, so that the others need not save registers for it. */
static LW_NOINLINE void pss_settle(struct pss_state *st, const struct lw_view *v, uint32_t q, uint32_t bytes, uint64_t now)
{
	if (st->paper)
		pss_saturate(st, v, now);
	if (now >= st->review_ns)
		pss_review(st, v, now);
	if (pss_queues(st)[q].controlled)
		pss_charge(st, v, q, bytes, now);
	pss_shrink(st, v, q);
}

static void pss_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct pss_state *st = (struct pss_state *)state;
	uint64_t now = lw_clock(&st->seen_ns, v);

	if (pss_queues(st)[q].controlled || st->paper || now >= st->review_ns)
		pss_settle(st, v, q, bytes, now);
	else
		pss_shrink(st, v, q);
}

static void pss_dropped(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct pss_state *st = (struct pss_state *)state;
	struct pss_queue *queue = pss_queues(st) + q;
	uint64_t now = lw_clock(&st->seen_ns, v), level_ns;

	(void)bytes;
	if (v->queues[q].backlog_pkts || queue->empty)
		return;
	level_ns = pss_level(queue, now);
	pss_rest(st, queue, level_ns);
	//@ assert fits: pss_all_fit(pss_rows(st), st->seen_ns);
	//@ assert placed: pss_placed{Pre,Here}(pss_rows(st));
	//@ assert present: pss_present(&st->ready, pss_rows(st));
	lw_bitmap_del(&st->ready, queue->rank[queue->low]);
}

/* Sets the level of q under new constants; LM and one packet above it is the most that can be. */
static void pss_stand(struct pss_state *st, uint32_t q, uint64_t level_ns, uint64_t now)
{
	struct pss_queue *queue = pss_queues(st) + q;
	uint64_t most = queue->full_ns + ((LW_MAX_PACKET_BYTES - 1) * (uint64_t)queue->mult >> queue->shift);

	if (level_ns > most)
		level_ns = most;
	queue->tat_ns = pss_origin(queue, now) + level_ns;
	queue->frac = 0;
	queue->floor_ns = pss_floor(st, queue, level_ns);
	queue->low = queue->low && level_ns > queue->resume_ns;
}

/*
 * A new capacity or setting moves LR: for a share with rho, for a rate with the memory or by the two packets of other queues.
 * The credit's distance from LR, which is what the queue is owed or ahead, keeps its bits. If the whole credit were kept, a
 * queue that is owed nothing would be ahead by the difference of the two LR after every fall of LR, and be owed it after
 * every rise. `renewed`: the user changed a setting, even if no constant follows.
 */
static void pss_carry(struct pss_state *st, uint32_t q, uint64_t level_ns, struct pss_setting *setting, bool renewed,
		      uint64_t now)
{
	struct pss_queue *queue = pss_queues(st) + q;
	uint64_t old_bps = setting->rho_bps, owed_ns = lw_excess(queue->resume_ns, level_ns);
	uint64_t ahead_ns = lw_excess(level_ns, queue->resume_ns);

	if (!pss_set_constants(st, queue, setting) && !renewed)
		return;
	owed_ns = lw_mul_div(owed_ns, old_bps, setting->rho_bps);
	ahead_ns = lw_mul_div(ahead_ns, old_bps, setting->rho_bps);
	if (ahead_ns > 2 * PSS_MAX_LEVEL_NS)    /* more than pss_stand allows; the sum below must not overflow */
		ahead_ns = 2 * PSS_MAX_LEVEL_NS;
	pss_stand(st, q, lw_excess(queue->resume_ns, owed_ns) + ahead_ns, now);
}

/* Rebuilds what follows from ranks, `low` and eligibility, when any of them may have changed in any queue. */
static void pss_rebuild(struct pss_state *st, const struct lw_view *v)
{
	uint32_t q, *lows = pss_lows(st, v->nqueues);

	lw_bitmap_clear(&st->ready);
	st->nlow = 0;
	st->review_ns = 0;
	/*@ loop invariant place: q <= v->nqueues && st->nlow <= q;
	    loop invariant held: pss_held(pss_holder_row(st));
	    loop invariant summed: lw_summed(&st->ready);
	    loop invariant present: pss_present(&st->ready, pss_rows(st));
	    loop invariant later: \forall integer p; q <= p < lw_n ==> !pss_ready(&st->ready, pss_rows(st), p);
	    loop invariant sends: \forall integer p; 0 <= p < lw_n ==>
		(pss_can_send(p) <==> v->queues[p].backlog_pkts != 0 && v->queues[p].rate_bps != 0);
	    loop invariant earlier: \forall integer p; 0 <= p < q ==> (pss_can_send(p) <==> pss_ready(&st->ready, pss_rows(st), p));
	    loop invariant below: \forall integer i; 0 <= i < st->nlow ==> lows[i] < q;
	    loop invariant once: pss_once(lows, st->nlow);
	    loop invariant sunk: pss_sunk(lows, st->nlow, pss_rows(st));
	    loop assigns q, st->ready.summary, st->ready.word[0 .. 63], st->nlow, lows[0 .. lw_n - 1]; */
	for (q = 0; q < v->nqueues; q++) {
		struct pss_queue *queue = pss_queues(st) + q;

		if (queue->low)
			lows[st->nlow++] = q;
		//@ assert own_rank: \forall integer p; 0 <= p < lw_n && p != q ==> pss_rank_of(pss_rows(st), p) != pss_rank_of(pss_rows(st), q);
		if (lw_eligible(v, q))
			lw_bitmap_add(&st->ready, queue->rank[queue->low]);
	}
}

/* For the proofs: how many levels the first n queues have, the key of a level, and that all keys in a row are keys of levels. */
/*@ axiomatic pss_levels { logic integer pss_nlevels{L}(struct pss_setting *settings, integer n) reads settings[0 .. n - 1]; }
    logic integer pss_sort_key(integer level, integer low, integer q) = (level * 2 + low) * LW_BITMAP_SIZE + q;
    logic integer pss_level_of{L}(struct pss_setting *settings, integer q, integer low) =
	lw_level_of(\at(settings[q].value[PSS_LEVEL + low], L), q);
    logic integer pss_key_of{L}(struct pss_setting *settings, integer q, integer low) =
	pss_sort_key(pss_level_of{L}(settings, q, low), low, q);
    predicate pss_has{L}(struct pss_setting *settings, integer q, integer low) =
	low == 0 || (low == 1 && \at(settings[q].value[PSS_LOW_LEVEL], L) != LW_UNSET);
    predicate pss_is_key{L}(struct pss_setting *settings, integer key, integer bound) =
	key % LW_BITMAP_SIZE < bound && key == pss_key_of{L}(settings, key % LW_BITMAP_SIZE, key / LW_BITMAP_SIZE % 2);
    predicate pss_keyed{L}(struct pss_setting *settings, uint32_t *key, integer n, integer bound) =
	\forall integer i; 0 <= i < n ==> pss_is_key{L}(settings, \at(key[i], L), bound);
    predicate pss_all_keyed{L}(struct pss_setting *settings, uint32_t *key, integer n, integer bound) =
	\forall integer q, low; 0 <= q < bound && pss_has{L}(settings, q, low) ==> 0 < lw_count{L}(key, n, pss_key_of{L}(settings, q, low)); */

/* A key of a level: the level, then high or low, then the queue; 16 + 1 + 12 bits. */
static uint32_t pss_key(uint64_t level, uint32_t low, uint32_t q)
{
	return (lw_level(level, q) * 2 + low) * LW_BITMAP_SIZE + q;
}

/* The keys of all levels, ascending. Returns how many. */
static uint32_t pss_keys(const struct pss_setting *settings, uint32_t nqueues, uint32_t *key)
{
	uint32_t q, n = 0;

	/*@ loop invariant place: q <= nqueues && n <= 2 * q && n == pss_nlevels((struct pss_setting *)settings, q);
	    loop invariant keyed: pss_keyed((struct pss_setting *)settings, key, n, q);
	    loop invariant all: pss_all_keyed((struct pss_setting *)settings, key, n, q);
	    loop assigns q, n, key[0 .. 2 * nqueues - 1]; */
	for (q = 0; q < nqueues; q++) {
		lw_put(key, n++, pss_key(settings[q].value[PSS_LEVEL], 0, q));
		//@ assert high: pss_keyed((struct pss_setting *)settings, key, n, q + 1);
		if (settings[q].value[PSS_LOW_LEVEL] != LW_UNSET)
			lw_put(key, n++, pss_key(settings[q].value[PSS_LOW_LEVEL], 1, q));
	}
	//@ assert good: lw_all_good(key, n);
	lw_sort(key, n);
	//@ assert all_sorted: pss_all_keyed((struct pss_setting *)settings, key, n, nqueues);
	return n;
}

/*@ predicate pss_told{K,L}(struct pss_queue *queues, uint32_t *holders, integer q, integer low, integer n) =
	0 <= \at(queues[q].rank[low], L) < n && \at(holders[queues[q].rank[low]], L) == q &&
	\at(holders[\at(queues[q].rank[low], L)], K) % LW_BITMAP_SIZE == q &&
	\at(holders[\at(queues[q].rank[low], L)], K) / LW_BITMAP_SIZE % 2 == low; */

/* Each sorted key gives way to its queue, the holder of that rank, and the queue learns the rank. */
static void pss_tell(struct pss_state *st, uint32_t *holders, uint32_t n)
{
	struct pss_queue *queues = pss_queues(st);
	uint32_t r;

	/*@ loop invariant place: r <= n;
	    loop invariant below: lw_queues_below(holders, n, lw_n);
	    loop invariant kept: \forall integer q; 0 <= q < lw_n ==>
		pss_rows(st)[q].low == \at(pss_rows(st)[q].low, Pre) && pss_rows(st)[q].controlled == \at(pss_rows(st)[q].controlled, Pre);
	    loop invariant later: \forall integer i; r <= i < n ==> holders[i] == \at(holders[i], Pre);
	    loop invariant told: \forall integer i; 0 <= i < r ==> pss_told{Pre,Here}(pss_rows(st), holders,
		\at(holders[i], Pre) % LW_BITMAP_SIZE, \at(holders[i], Pre) / LW_BITMAP_SIZE % 2, r);
	    loop assigns r, holders[0 .. n - 1], pss_rows(st)[0 .. lw_n - 1]; */
	for (r = 0; r < n; r++) {
		uint32_t low = holders[r] / LW_BITMAP_SIZE % 2, q = holders[r] % LW_BITMAP_SIZE;

		//@ assert holder_exists: q < lw_n;
		holders[r] = q;
		queues[q].rank[low] = (uint16_t)r;
	}
	/*@ assert all_told: \forall integer q, low; 0 <= q < lw_n && pss_has{Pre}(pss_setting_row(st), q, low) ==>
		pss_told{Pre,Here}(pss_rows(st), holders, q, low, n); */
	//@ assert high_told: \forall integer q; 0 <= q < lw_n ==> pss_told{Pre,Here}(pss_rows(st), holders, q, 0, n);
	/*@ assert keys: \forall integer q, low; 0 <= q < lw_n && pss_has{Pre}(pss_setting_row(st), q, low) ==>
		\at(holders[\at(pss_rows(st)[q].rank[low], Here)], Pre) == pss_key_of{Pre}(pss_setting_row(st), q, low); */
}

static void pss_rank(struct pss_state *st, const struct lw_view *v)
{
	uint32_t *holders = pss_holders(st, v->nqueues), n = pss_keys(pss_settings(st, v->nqueues), v->nqueues, holders);

	pss_tell(st, holders, n);
}

/* A capacity of 0 leaves the constants as they are. */
static void pss_follow(struct pss_state *st, uint64_t link_bps)
{
	if (!link_bps)
		return;
	st->link_bps = link_bps;
	st->tx = lw_pace_of(link_bps);
	if (st->best_bps < link_bps)
		st->best_bps = link_bps;
}

/* True if the rules for empty intervals or for early packets have changed. */
static bool pss_configure(struct pss_state *st, const struct lw_view *v, const uint64_t *params)
{
	bool reset = params[PSS_ON_EMPTY] == PSS_RESET, ignore = params[PSS_EARLY] == PSS_IGNORE;
	bool rules = st->reset != reset || st->ignore != ignore;

	st->paper = params[PSS_SAT] == PSS_PAPER;
	st->reset = reset;
	st->ignore = ignore;
	pss_follow(st, v->link_bps);
	return rules;
}

/* A queue becomes controlled: it is neither owed service nor ahead, unless the user set `credit`. */
static void pss_begin(struct pss_state *st, uint32_t q, struct pss_setting *setting, uint64_t credit_bits, uint64_t now)
{
	struct pss_queue *queue = pss_queues(st) + q;
	uint64_t level_ns;

	pss_set_constants(st, queue, setting);
	level_ns = credit_bits == LW_UNSET ? queue->resume_ns : pss_time_of(credit_bits, setting->rho_bps);
	queue->tat_ns = now + level_ns;
	queue->frac = 0;
	queue->mark_ns = 0;                             /* of an earlier reservation */
	queue->floor_ns = pss_floor(st, queue, level_ns);
	queue->low = 0;
	queue->controlled = 1;
}

/* change(): queue q goes on under a setting that may be new. `renewed`: it is, or the rules for all queues are. */
static void pss_renew(struct pss_state *st, uint32_t q, struct pss_setting *setting, bool renewed, uint64_t now)
{
	struct pss_queue *queue = pss_queues(st) + q;
	uint64_t level_ns = pss_level(queue, now);

	if (!st->ignore)
		queue->mark_ns = 0;
	if (setting->value[PSS_LOW_LEVEL] == LW_UNSET)
		queue->controlled = queue->low = 0;
	else if (queue->controlled)
		pss_carry(st, q, level_ns, setting, renewed, now);
	else
		pss_begin(st, q, setting, LW_UNSET, now);
}

static void pss_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct pss_state *st = (struct pss_state *)state;
	struct pss_setting *settings = pss_settings(st, v->nqueues);
	uint32_t *holders = pss_holders(st, v->nqueues), *lows = pss_lows(st, v->nqueues), q;

	memset(st, 0, sizeof(*st));
	st->seen_ns = v->now_ns;
	pss_configure(st, v, params);
	for (q = 0; q < v->nqueues; q++) {
		struct pss_setting *setting = settings + q;

		memset(pss_queues(st) + q, 0, sizeof(struct pss_queue));
		holders[2 * (size_t)q] = holders[2 * (size_t)q + 1] = lows[q] = 0;
		memcpy(setting->value, qparams + (size_t)q * PSS_NQPARAMS, sizeof(setting->value));
		setting->rho_bps = 0;
		if (setting->value[PSS_LOW_LEVEL] != LW_UNSET)
			pss_begin(st, q, setting, setting->value[PSS_CREDIT], v->now_ns);
		pss_queues(st)[q].empty = !v->queues[q].backlog_pkts;
	}
	pss_rank(st, v);
	pss_rebuild(st, v);
}

static void pss_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct pss_state *st = (struct pss_state *)state;
	uint64_t now = lw_clock(&st->seen_ns, v);
	bool rules = pss_configure(st, v, params);
	uint32_t q;

	for (q = 0; q < v->nqueues; q++) {
		struct pss_setting *setting = pss_settings(st, v->nqueues) + q;
		const uint64_t *row = qparams + (size_t)q * PSS_NQPARAMS;
		bool renewed = rules || memcmp(setting->value, row, sizeof(setting->value)) != 0;

		memcpy(setting->value, row, sizeof(setting->value));
		pss_renew(st, q, setting, renewed, now);
	}
	pss_rank(st, v);
	pss_rebuild(st, v);
}

/* A share follows the link. A reservation in bit/s does not; its LR and LM change only when the link is faster than ever
 * before. */
static void pss_rated(void *state, const struct lw_view *v)
{
	struct pss_state *st = (struct pss_state *)state;
	uint64_t now = lw_clock(&st->seen_ns, v), best_bps = st->best_bps;
	uint32_t q;

	if (v->link_bps && v->link_bps != st->link_bps) {
		pss_follow(st, v->link_bps);
		/*@ loop invariant fits: q <= lw_n && v->nqueues == lw_n && st->seen_ns == now && pss_all_fit(pss_rows(st), now);
		    loop assigns q, pss_rows(st)[0 .. lw_n - 1], pss_setting_row(st)[0 .. lw_n - 1]; */
		for (q = 0; q < v->nqueues; q++) {
			struct pss_queue *queue = pss_queues(st) + q;
			struct pss_setting *setting = pss_settings(st, v->nqueues) + q;

			if (queue->controlled && (setting->value[PSS_SHARE] || st->best_bps != best_bps))
				pss_carry(st, q, pss_level(queue, now), setting, false, now);
		}
	}
	pss_rebuild(st, v);
}

/* ---- statistics ---- */

enum { PSS_SEE_CREDIT, PSS_SEE_LOW, PSS_NSTATS };

static void pss_observe(const void *state, const struct lw_view *v, uint32_t q, int64_t *values)
{
	const struct pss_state *st = (const struct pss_state *)state;
	const struct pss_queue *queue = (const struct pss_queue *)(st + 1) + q;
	const struct pss_setting *setting =
		(const struct pss_setting *)((const struct pss_queue *)(st + 1) + v->nqueues) + q;
	uint64_t now = v->now_ns > st->seen_ns ? v->now_ns : st->seen_ns, bits = 0;

	if (queue->controlled)
		bits = lw_mul_div(pss_level(queue, now), setting->rho_bps, PSS_SECOND_NS);
	values[PSS_SEE_CREDIT] = (int64_t)(bits >> 63 ? UINT64_MAX >> 1 : bits);
	values[PSS_SEE_LOW] = queue->low;
}

static const struct lw_param pss_params[PSS_NPARAMS] = {
	{ "sat", "upper end of the credit: exact remembers what goes beyond lm and delivers the rate for any packet size",
	  "exact|paper", PSS_EXACT, PSS_PAPER, PSS_EXACT, LW_CHOICE, 0 },
	{ "on_empty", "a queue that empties keeps what it is owed, or is reset to lr", "keep|reset", PSS_KEEP, PSS_RESET,
	  PSS_KEEP, LW_CHOICE, 0 },
	{ "early", "time gained by packets that leave before their nominal end: charged, or ignored as in the older algorithm",
	  "charge|ignore", PSS_CHARGE, PSS_IGNORE, PSS_CHARGE, LW_CHOICE, 0 },
};

static const struct lw_param pss_qparams[PSS_NQPARAMS] = {
	LW_LEVEL_PARAM("priority, of a controlled queue the high one; 0 the most urgent; all differ; unset is the queue's index"),
	{ "low_level", "priority of a controlled queue that is ahead of its rate; unset: a plain queue", NULL, 0,
	  LW_MAX_LEVEL, LW_UNSET, LW_NUMBER, 0 },
	{ "rate", "reserved rate; 0: not given", NULL, 0, PSS_MAX_RATE_BPS, 0, LW_BPS, 0 },
	{ "share", "reserved part of the link, following its capacity; 0: not given; above 99.9995% it takes a larger burst",
	  NULL, 0, PSS_PPM - 1, 0, LW_PPM, 0 },
	{ "burst", "packets sent back to back at the high level", NULL, 2, 1u << 20, 20, LW_PKTS, 0 },
	{ "mtu", "largest packet", NULL, 64, LW_MAX_PACKET_BYTES - 1, 1514, LW_BYTES, 0 },
	{ "memory", "how long a starvation can last without loss of the service owed", NULL, 0, PSS_MAX_MEMORY_NS, 100000000,
	  LW_NS, 0 },
	{ "lr", "credit at which the queue returns to its high level; unset: from memory and mtu", NULL, 0,
	  PSS_MAX_CREDIT_BITS, LW_UNSET, LW_BITS, 0 },
	{ "lm", "credit at which it goes to its low level; unset: from lr, burst and mtu", NULL, 0, PSS_MAX_CREDIT_BITS,
	  LW_UNSET, LW_BITS, 0 },
	{ "credit", "credit at the start; unset: lr", NULL, 0, PSS_MAX_CREDIT_BITS, LW_UNSET, LW_BITS, 0 },
};

static const struct lw_stat pss_stats[PSS_NSTATS] = {
	{ "credit", "bits sent ahead of the reserved rate; below lr the queue is owed service", LW_BITS },
	{ "low", "1 while the queue is at its low level", LW_NUMBER },
};

const struct lw_policy lw_policy_pss = {
	.name = "pss",
	.help = "priority switching: reserved rates between strict priorities, kept over a varying link",
	.abi = LW_ABI,
	.max_queues = LW_BITMAP_SIZE,
	.nparams = PSS_NPARAMS,
	.nqparams = PSS_NQPARAMS,
	.nstats = PSS_NSTATS,
	.params = pss_params,
	.qparams = pss_qparams,
	.stats = pss_stats,
	.state_size = pss_state_size,
	.check = pss_check,
	.init = pss_init,
	.pick = pss_pick,
	.enqueued = pss_enqueued,
	.sent = pss_sent,
	.dropped = pss_dropped,
	.rated = pss_rated,
	.change = pss_change,
	.observe = pss_observe,
};
