/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * pss: where the set of ranks has the present rank of each queue that can send, and no other, pick names the queue whose present rank is
 * the least. Arrivals, drops and departures keep the set so, and the row of low queues, which has each of them once and so has room for
 * one more. A change of level moves the ranks of its queue only. ranks.c shows the state that this begins with. Levels are as
 * fits.c shows.
 */
#include "order.h"

/*@ axiomatic places { // the numbers below lw_n are lw_n
      axiom room{L}: \forall uint32_t *lows, integer k, q; 0 <= q < lw_n && pss_once{L}(lows, k) && pss_apart{L}(lows, k, q) ==> k < lw_n;
    } */

/*@ predicate pss_switches{L}(struct pss_state *st, struct pss_queue *queue, integer low) =
	low <= (\at(queue->controlled, L) != 0 ? 1 : 0) && pss_ranked{L}(pss_rows(st)) &&
	pss_present{L}(&st->ready, pss_rows(st)); */

/*@ requires valid: \valid(st) && \valid(queue) && \separated(st, queue);
    requires range: low <= 1 && queue->low <= 1 && queue->rank[0] < LW_BITMAP_SIZE && (queue->low || low ==> queue->rank[1] < LW_BITMAP_SIZE);
    requires summed: lw_summed(&st->ready);
    assigns st->ready.summary, st->ready.word[0 .. 63], queue->low;
    ensures summed: lw_summed(&st->ready);
    ensures low: queue->low == low;
    ensures ranked: \forall integer q; 0 <= q < lw_n && queue == pss_rows(st) + q && pss_switches{Pre}(st, queue, low) ==> pss_ranked(pss_rows(st));
    ensures ready: \forall integer q; 0 <= q < lw_n && queue == pss_rows(st) + q && pss_switches{Pre}(st, queue, low) ==>
	(pss_ready(&st->ready, pss_rows(st), q) <==> pss_ready{Pre}(&st->ready, pss_rows(st), q));
    ensures left: \old(queue->low) != low && queue->rank[0] != queue->rank[1] ==> !lw_member(&st->ready, queue->rank[\old(queue->low)]);
    ensures places: \forall integer q, p; 0 <= q < lw_n && queue == pss_rows(st) + q && 0 <= p < lw_n && p != q ==>
	pss_rank_of(pss_rows(st), p) == pss_rank_of{Pre}(pss_rows(st), p);
    ensures others: \forall integer r; 0 <= r < LW_BITMAP_SIZE && r != queue->rank[\old(queue->low)] && r != queue->rank[low] ==>
	(lw_member(&st->ready, r) <==> lw_member{Pre}(&st->ready, r));
    ensures present: \forall integer q; 0 <= q < lw_n && queue == pss_rows(st) + q && pss_switches{Pre}(st, queue, low) ==>
	pss_present(&st->ready, pss_rows(st));
    ensures agrees: \forall integer q; 0 <= q < lw_n && queue == pss_rows(st) + q && pss_switches{Pre}(st, queue, low) &&
	pss_agrees{Pre}(&st->ready, pss_rows(st)) ==> pss_agrees(&st->ready, pss_rows(st)); */
static void pss_switch(struct pss_state *st, struct pss_queue *queue, uint8_t low);

/*@ requires valid: \valid(seen_ns) && \valid_read(v);
    assigns *seen_ns;
    ensures sound: \forall struct pss_state *st; seen_ns == &st->seen_ns && pss_sound{Pre}(st) ==> pss_sound(st);
    ensures agrees: \forall struct pss_state *st; seen_ns == &st->seen_ns && pss_sound{Pre}(st) && pss_agrees{Pre}(&st->ready, pss_rows(st)) ==> pss_agrees(&st->ready, pss_rows(st)); */
static inline uint64_t lw_clock(uint64_t *seen_ns, const struct lw_view *v);

/*@ requires valid: \valid_read(queue);
    assigns \nothing; */
static uint64_t pss_due(const struct pss_queue *queue);

/*@ requires valid: \valid(st) && \valid(pss_rows(st) + (0 .. lw_n - 1)) && \valid(pss_holder_row(st) + (0 .. 3 * lw_n - 1));
    requires apart: lows == pss_low_row(st) && lw_n <= LW_BITMAP_SIZE &&
	\separated(st, pss_rows(st) + (0 .. lw_n - 1), pss_holder_row(st) + (0 .. 3 * lw_n - 1));
    requires sound: pss_sound(st);
    requires agrees: pss_agrees(&st->ready, pss_rows(st));
    requires place: i < st->nlow;
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, lows[0 .. lw_n - 1], pss_rows(st)[0 .. lw_n - 1];
    ensures fewer: st->nlow == \old(st->nlow) - 1;
    ensures summed: lw_summed(&st->ready);
    ensures ranked: pss_ranked(pss_rows(st));
    ensures present: pss_present(&st->ready, pss_rows(st));
    ensures held: pss_held(pss_holder_row(st));
    ensures listed: pss_listed(st, lows);
    ensures once: pss_once(lows, st->nlow);
    ensures sunk: pss_sunk(lows, st->nlow, pss_rows(st));
    ensures agrees: pss_agrees(&st->ready, pss_rows(st)); */
static void pss_rise(struct pss_state *st, uint32_t *lows, uint32_t i);

/*@ requires given: pss_given(st, v);
    requires sound: pss_sound(st);
    requires agrees: pss_agrees(&st->ready, pss_rows(st));
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, pss_low_row(st)[0 .. lw_n - 1],
	pss_rows(st)[0 .. lw_n - 1];
    ensures size: v->nqueues == lw_n;
    ensures sound: pss_sound(st);
    ensures agrees: pss_agrees(&st->ready, pss_rows(st)); */
static void pss_review(struct pss_state *st, const struct lw_view *v, uint64_t now);

/*@ requires given: pss_given((struct pss_state *)state, v) && \valid(retry_ns);
    requires apart: \separated(retry_ns, (struct pss_state *)state, pss_rows((struct pss_state *)state) + (0 .. lw_n - 1), pss_holder_row((struct pss_state *)state) + (0 .. 3 * lw_n - 1), v, v->queues + (0 .. lw_n - 1));
    requires sound: pss_sound((struct pss_state *)state);
    requires agrees: pss_agrees(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state));
    ensures exists: \result == LW_NONE || \result < lw_n;
    ensures none: \result == LW_NONE ==> \forall integer q; 0 <= q < lw_n ==> !pss_can_send(q);
    ensures eligible: \result != LW_NONE ==> pss_can_send(\result);
    ensures least: \result != LW_NONE ==> \forall integer r; 0 <= r < pss_rank_of(pss_rows((struct pss_state *)state), \result) ==> !lw_member(&((struct pss_state *)state)->ready, r);
    ensures sound: \result != LW_NONE ==> pss_sound((struct pss_state *)state);
    ensures agrees: pss_agrees(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state)); */
static uint32_t pss_pick(void *state, const struct lw_view *v, uint64_t *retry_ns);

/*@ assigns \nothing; */
static uint64_t pss_floor(const struct pss_state *st, const struct pss_queue *queue, uint64_t level_ns);

/*@ requires valid: \valid_read(st) && \valid(queue);
    assigns queue->floor_ns, queue->empty;
    ensures sound: \forall integer q; 0 <= q < lw_n && queue == pss_rows((struct pss_state *)st) + q && pss_apart_in_memory((struct pss_state *)st) &&
	pss_sound{Pre}((struct pss_state *)st) ==> pss_sound((struct pss_state *)st);
    ensures places: \forall integer q, p; 0 <= q < lw_n && queue == pss_rows((struct pss_state *)st) + q && 0 <= p < lw_n ==>
	pss_rank_of(pss_rows((struct pss_state *)st), p) == pss_rank_of{Pre}(pss_rows((struct pss_state *)st), p);
    ensures agrees: \forall integer q; 0 <= q < lw_n && queue == pss_rows((struct pss_state *)st) + q && pss_apart_in_memory((struct pss_state *)st) &&
	pss_sound{Pre}((struct pss_state *)st) && pss_agrees{Pre}(&((struct pss_state *)st)->ready, pss_rows((struct pss_state *)st)) ==>
	pss_agrees(&((struct pss_state *)st)->ready, pss_rows((struct pss_state *)st)); */
static void pss_rest(const struct pss_state *st, struct pss_queue *queue, uint64_t level_ns);

/*@ requires given: pss_given(st, v) && q < lw_n;
    requires sound: pss_sound(st);
    assigns st->ready.summary, st->ready.word[0 .. 63], pss_rows(st)[q].empty;
    ensures sound: pss_sound(st);
    ensures left: !pss_eligible(v, q) ==> !pss_ready(&st->ready, pss_rows(st), q);
    ensures stays: pss_eligible(v, q) ==> (pss_ready(&st->ready, pss_rows(st), q) <==> pss_ready{Pre}(&st->ready, pss_rows(st), q));
    ensures others: \forall integer p; 0 <= p < lw_n && p != q ==>
	(pss_ready(&st->ready, pss_rows(st), p) <==> pss_ready{Pre}(&st->ready, pss_rows(st), p)); */
static void pss_shrink(struct pss_state *st, const struct lw_view *v, uint32_t q);

/*@ requires valid: \valid_read(queue);
    assigns \nothing; */
static uint64_t pss_level(const struct pss_queue *queue, uint64_t now);

/*@ assigns \nothing; */
static uint64_t pss_origin(const struct pss_queue *queue, uint64_t now);

/*@ requires given: pss_given((struct pss_state *)state, v) && q < lw_n;
    requires sound: pss_sound((struct pss_state *)state);
    ensures sound: pss_sound((struct pss_state *)state);
    ensures joined: \old(pss_rows((struct pss_state *)state)[q].empty) != 0 && v->queues[q].rate_bps != 0 ==>
	pss_ready(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state), q);
    ensures stays: \old(pss_rows((struct pss_state *)state)[q].empty) == 0 || v->queues[q].rate_bps == 0 ==>
	(pss_ready(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state), q) <==>
	 pss_ready{Pre}(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state), q));
    ensures others: \forall integer r; 0 <= r < LW_BITMAP_SIZE && r != pss_rank_of(pss_rows((struct pss_state *)state), q) ==>
	(lw_member(&((struct pss_state *)state)->ready, r) <==> lw_member{Pre}(&((struct pss_state *)state)->ready, r)); */
static void pss_enqueued(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);

/*@ requires given: pss_given((struct pss_state *)state, v) && q < lw_n;
    requires sound: pss_sound((struct pss_state *)state);
    ensures sound: pss_sound((struct pss_state *)state);
    ensures left: \old(pss_rows((struct pss_state *)state)[q].empty) == 0 && v->queues[q].backlog_pkts == 0 ==>
	!pss_ready(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state), q);
    ensures stays: \old(pss_rows((struct pss_state *)state)[q].empty) != 0 || v->queues[q].backlog_pkts != 0 ==>
	(pss_ready(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state), q) <==>
	 pss_ready{Pre}(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state), q));
    ensures others: \forall integer r; 0 <= r < LW_BITMAP_SIZE && r != pss_rank_of(pss_rows((struct pss_state *)state), q) ==>
	(lw_member(&((struct pss_state *)state)->ready, r) <==> lw_member{Pre}(&((struct pss_state *)state)->ready, r)); */
static void pss_dropped(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);

/*@ requires given: pss_given(st, v) && q < lw_n && queue == pss_rows(st) + q;
    requires sound: pss_sound(st);
    requires agrees: pss_agrees(&st->ready, pss_rows(st));
    requires high: queue->controlled != 0 && queue->low == 0;
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, pss_low_row(st)[0 .. lw_n - 1], queue->low;
    ensures sound: pss_sound(st);
    ensures agrees: pss_agrees(&st->ready, pss_rows(st)); */
static void pss_sink(struct pss_state *st, const struct lw_view *v, struct pss_queue *queue, uint32_t q);

/*@ requires given: pss_given(st, v);
    requires sound: pss_sound(st);
    requires agrees: pss_agrees(&st->ready, pss_rows(st));
    assigns st->review_ns, pss_rows(st)[0 .. lw_n - 1];
    ensures sound: pss_sound(st);
    ensures agrees: pss_agrees(&st->ready, pss_rows(st)); */
static void pss_saturate(struct pss_state *st, const struct lw_view *v, uint64_t now);

/*@ assigns \nothing; */
static inline uint64_t lw_excess(uint64_t a, uint64_t b);

/*@ assigns \nothing; */
static inline uint64_t lw_pace_ns(const struct lw_pace *pace, uint32_t bytes);

/*@ requires valid: \valid(queue);
    assigns queue->tat_ns, queue->frac; */
static void pss_add(struct pss_queue *queue, uint32_t bytes, uint64_t now, uint64_t full, bool paper);

/*@ requires given: pss_given(st, v) && q < lw_n;
    requires sound: pss_sound(st);
    requires agrees: pss_agrees(&st->ready, pss_rows(st));
    requires controlled: pss_rows(st)[q].controlled != 0;
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, pss_low_row(st)[0 .. lw_n - 1],
	pss_rows(st)[0 .. lw_n - 1];
    ensures sound: pss_sound(st);
    ensures agrees: pss_agrees(&st->ready, pss_rows(st)); */
static void pss_charge(struct pss_state *st, const struct lw_view *v, uint32_t q, uint32_t bytes, uint64_t now);

/*@ requires given: pss_given(st, v) && q < lw_n;
    requires sound: pss_sound(st);
    requires agrees: pss_agrees(&st->ready, pss_rows(st));
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, pss_low_row(st)[0 .. lw_n - 1],
	pss_rows(st)[0 .. lw_n - 1];
    ensures sound: pss_sound(st);
    ensures left: !pss_eligible(v, q) ==> !pss_ready(&st->ready, pss_rows(st), q);
    ensures stays: pss_eligible(v, q) ==> (pss_ready(&st->ready, pss_rows(st), q) <==> pss_can_send(q));
    ensures others: \forall integer p; 0 <= p < lw_n && p != q ==> (pss_ready(&st->ready, pss_rows(st), p) <==> pss_can_send(p)); */
static void pss_settle(struct pss_state *st, const struct lw_view *v, uint32_t q, uint32_t bytes, uint64_t now);

/*@ requires given: pss_given((struct pss_state *)state, v) && q < lw_n;
    requires sound: pss_sound((struct pss_state *)state);
    requires agrees: pss_agrees(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state));
    ensures sound: pss_sound((struct pss_state *)state);
    ensures left: !pss_eligible(v, q) ==> !pss_ready(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state), q);
    ensures stays: pss_eligible(v, q) ==> (pss_ready(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state), q) <==> pss_can_send(q));
    ensures others: \forall integer p; 0 <= p < lw_n && p != q ==>
	(pss_ready(&((struct pss_state *)state)->ready, pss_rows((struct pss_state *)state), p) <==> pss_can_send(p)); */
static void pss_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);
