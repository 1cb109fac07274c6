/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * How far a level can be above the present, so that no time overflows: every call keeps pss_fits of each queue. charge.c and level.c prove
 * what a packet and a change of the constants do to one queue, order.c what these calls do to ranks. Taken as given: the loops of pss_init
 * and pss_change, which copy the settings and call pss_begin or pss_renew for each queue; and what order.c proves of the same calls, which
 * for its part takes pss_fits as given: each call keeps both if both hold before it.
 */
#include "credit.h"

/*@ predicate pss_tx{L}(struct pss_state *st) = \at(st->tx.mult, L) <= 8000000000 && \at(st->tx.shift, L) <= 63;
    predicate pss_steady{K,L}(struct pss_state *st) = \at(st->seen_ns, L) == \at(st->seen_ns, K) && \at(st->tx.mult, L) == \at(st->tx.mult, K) &&
	\at(st->tx.shift, L) == \at(st->tx.shift, K);
    predicate pss_kept{L}(struct pss_state *st) = \at(st->seen_ns, L) <= LW_MAX_NOW_NS && pss_tx{L}(st) &&
	pss_all_fit{L}(pss_rows(st), \at(st->seen_ns, L)); */

/*@ requires valid: \valid(seen_ns) && \valid_read(v);
    requires fits: *seen_ns <= LW_MAX_NOW_NS && v->now_ns <= LW_MAX_NOW_NS;
    assigns *seen_ns;
    ensures fits: \result == *seen_ns && \old(*seen_ns) <= *seen_ns <= LW_MAX_NOW_NS;
    ensures fits: \forall struct pss_state *st; seen_ns == &st->seen_ns && \separated(st, pss_rows(st) + (0 .. lw_n - 1)) && pss_kept{Pre}(st) ==>
	pss_kept(st); */
static inline uint64_t lw_clock(uint64_t *seen_ns, const struct lw_view *v);

/*@ requires valid: \valid_read(pace);
    requires fits: pace->mult <= 8000000000 && pace->shift <= 63 && bytes < LW_MAX_PACKET_BYTES;
    assigns \nothing;
    ensures fits: \result <= 9007199254740992; */
static inline uint64_t lw_pace_ns(const struct lw_pace *pace, uint32_t bytes);

/*@ assigns map->summary, map->word[0 .. 63];
    ensures fits: \forall struct pss_state *st; map == &st->ready && pss_apart_in_memory(st) ==> pss_steady{Pre,Post}(st) &&
	\forall integer now; pss_all_fit{Pre}(pss_rows(st), now) ==> pss_all_fit(pss_rows(st), now); */
static inline void lw_bitmap_add(struct lw_bitmap *map, uint32_t bit);

/*@ assigns map->summary, map->word[0 .. 63];
    ensures fits: \forall struct pss_state *st; map == &st->ready && pss_apart_in_memory(st) ==> pss_steady{Pre,Post}(st) &&
	\forall integer now; pss_all_fit{Pre}(pss_rows(st), now) ==> pss_all_fit(pss_rows(st), now); */
static inline void lw_bitmap_del(struct lw_bitmap *map, uint32_t bit);

/*@ assigns st->ready.summary, st->ready.word[0 .. 63], queue->low;
    ensures fits: queue->low == low; */
static void pss_switch(struct pss_state *st, struct pss_queue *queue, uint8_t low);

/*@ requires valid: \valid(st) && \valid(pss_rows(st) + (0 .. lw_n - 1)) && \valid(pss_holder_row(st) + (0 .. 3 * lw_n - 1));
    requires apart: lows == pss_low_row(st) && pss_apart_in_memory(st);
    requires place: i < st->nlow <= lw_n && lows[i] < lw_n;
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, lows[0 .. lw_n - 1], pss_rows(st)[0 .. lw_n - 1];
    ensures fits: \forall integer now; pss_all_fit{Pre}(pss_rows(st), now) &&
	\old(pss_rows(st)[lows[i]].tat_ns) <= now + PSS_MAX_LEVEL_NS + 9007199254740992 ==> pss_all_fit(pss_rows(st), now); */
static void pss_rise(struct pss_state *st, uint32_t *lows, uint32_t i);

/*@ requires given: pss_given(st, v);
    requires fits: now <= LW_MAX_NOW_NS && pss_all_fit(pss_rows(st), now);
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, pss_low_row(st)[0 .. lw_n - 1],
	pss_rows(st)[0 .. lw_n - 1];
    ensures fits: pss_steady{Pre,Post}(st) && pss_all_fit(pss_rows(st), now); */
static void pss_review(struct pss_state *st, const struct lw_view *v, uint64_t now);

/*@ requires given: pss_given(st, v);
    requires fits: now <= LW_MAX_NOW_NS && pss_all_fit(pss_rows(st), now);
    assigns st->review_ns, pss_rows(st)[0 .. lw_n - 1];
    ensures fits: pss_steady{Pre,Post}(st) && pss_all_fit(pss_rows(st), now); */
static void pss_saturate(struct pss_state *st, const struct lw_view *v, uint64_t now);

/*@ requires given: pss_given(st, v) && q < lw_n && queue == pss_rows(st) + q;
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, pss_low_row(st)[0 .. lw_n - 1], queue->low;
    ensures fits: queue->low == 1;
    ensures fits: \forall integer now; (\forall integer p; 0 <= p < lw_n && p != q ==> pss_fits{Pre}(pss_rows(st) + p, now)) &&
	pss_bounds{Pre}(queue, now) && pss_paced{Pre}(queue) && \old(queue->tat_ns) <= now + PSS_MAX_LEVEL_NS + 36028797018963968 ==>
	pss_all_fit(pss_rows(st), now); */
static void pss_sink(struct pss_state *st, const struct lw_view *v, struct pss_queue *queue, uint32_t q);

/*@ requires valid: \valid_read(st) && \valid(queue);
    assigns queue->floor_ns, queue->empty;
    ensures fits: queue->floor_ns <= queue->resume_ns;
    ensures fits: \forall integer q, now; 0 <= q < lw_n && queue == pss_rows((struct pss_state *)st) + q &&
	pss_apart_in_memory((struct pss_state *)st) && pss_all_fit{Pre}(pss_rows((struct pss_state *)st), now) ==>
	pss_all_fit(pss_rows((struct pss_state *)st), now); */
static void pss_rest(const struct pss_state *st, struct pss_queue *queue, uint64_t level_ns);

/*@ requires valid: \valid(queue);
    requires fits: bytes < LW_MAX_PACKET_BYTES && pss_paced(queue) && now <= LW_MAX_NOW_NS && full <= now + PSS_MAX_LEVEL_NS + 9007199254740992 &&
	queue->tat_ns <= now + PSS_MAX_LEVEL_NS + (queue->low != 0 ? 36028797018963968 : 18014398509481984);
    assigns queue->tat_ns, queue->frac;
    ensures fits: pss_paced(queue) && queue->tat_ns <= now + PSS_MAX_LEVEL_NS + 36028797018963968;
    ensures fits: \forall integer t; pss_bounds{Pre}(queue, t) ==> pss_bounds(queue, t);
    ensures fits: \forall struct pss_state *st, integer q, p, t; 0 <= q < lw_n && queue == pss_rows(st) + q && 0 <= p < lw_n && p != q &&
	pss_fits{Pre}(pss_rows(st) + p, t) ==> pss_fits(pss_rows(st) + p, t); */
static void pss_add(struct pss_queue *queue, uint32_t bytes, uint64_t now, uint64_t full, bool paper);

/*@ requires given: pss_given(st, v) && q < lw_n;
    requires fits: now <= LW_MAX_NOW_NS && bytes < LW_MAX_PACKET_BYTES && pss_all_fit(pss_rows(st), now) && pss_tx(st);
    requires controlled: pss_rows(st)[q].controlled != 0;
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, pss_low_row(st)[0 .. lw_n - 1],
	pss_rows(st)[q];
    ensures fits: pss_steady{Pre,Post}(st) && pss_all_fit(pss_rows(st), now); */
static void pss_charge(struct pss_state *st, const struct lw_view *v, uint32_t q, uint32_t bytes, uint64_t now);

/*@ requires given: pss_given(st, v) && q < lw_n;
    assigns st->ready.summary, st->ready.word[0 .. 63], pss_rows(st)[q].empty;
    ensures fits: pss_steady{Pre,Post}(st) && \forall integer now; pss_all_fit{Pre}(pss_rows(st), now) ==> pss_all_fit(pss_rows(st), now); */
static void pss_shrink(struct pss_state *st, const struct lw_view *v, uint32_t q);

/*@ requires given: pss_given(st, v) && q < lw_n;
    requires fits: now <= LW_MAX_NOW_NS && bytes < LW_MAX_PACKET_BYTES && pss_all_fit(pss_rows(st), now) && pss_tx(st);
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, pss_low_row(st)[0 .. lw_n - 1],
	pss_rows(st)[0 .. lw_n - 1];
    ensures fits: pss_steady{Pre,Post}(st) && pss_all_fit(pss_rows(st), now); */
static void pss_settle(struct pss_state *st, const struct lw_view *v, uint32_t q, uint32_t bytes, uint64_t now);

/*@ requires given: pss_given((struct pss_state *)state, v) && q < lw_n && v->now_ns <= LW_MAX_NOW_NS;
    requires fits: bytes < LW_MAX_PACKET_BYTES && pss_kept((struct pss_state *)state);
    ensures fits: pss_kept((struct pss_state *)state); */
static void pss_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);

/*@ requires valid: \valid(retry_ns);
    assigns *retry_ns;
    ensures fits: \forall struct pss_state *st; \separated(retry_ns, st, pss_rows(st) + (0 .. lw_n - 1)) && pss_kept{Pre}(st) ==> pss_kept(st); */
static inline uint32_t lw_answer(uint32_t q, uint64_t *retry_ns);

/*@ requires given: pss_given((struct pss_state *)state, v) && \valid(retry_ns) && v->now_ns <= LW_MAX_NOW_NS;
    requires apart: \separated(retry_ns, (struct pss_state *)state, pss_rows((struct pss_state *)state) + (0 .. lw_n - 1), pss_holder_row((struct pss_state *)state) + (0 .. 3 * lw_n - 1), v, v->queues + (0 .. lw_n - 1));
    requires fits: pss_kept((struct pss_state *)state);
    ensures fits: pss_kept((struct pss_state *)state); */
static uint32_t pss_pick(void *state, const struct lw_view *v, uint64_t *retry_ns);

/*@ requires given: pss_given((struct pss_state *)state, v) && q < lw_n && v->now_ns <= LW_MAX_NOW_NS;
    requires fits: pss_kept((struct pss_state *)state);
    ensures fits: pss_kept((struct pss_state *)state); */
static void pss_enqueued(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);

/*@ requires given: pss_given((struct pss_state *)state, v) && q < lw_n && v->now_ns <= LW_MAX_NOW_NS;
    requires fits: pss_kept((struct pss_state *)state);
    ensures fits: pss_kept((struct pss_state *)state); */
static void pss_dropped(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);

/*@ requires fits: 0 < rho_bps;
    assigns \nothing;
    ensures fits: \result <= PSS_MAX_LEVEL_NS; */
static uint64_t pss_time_of(uint64_t bits, uint64_t rho_bps);

/*@ requires valid: \valid_read(row + (0 .. PSS_NQPARAMS - 1));
    assigns \nothing;
    ensures least: \result.rho_bps >= PSS_MIN_RATE_BPS; */
static struct pss_reserve pss_derive(const uint64_t *row, uint64_t link_bps);

/*@ requires valid: \valid_read(st) && \valid(queue) && \valid(setting) && \separated(st, queue, setting);
    assigns queue->mult, queue->shift, queue->resume_ns, queue->full_ns, setting->rho_bps;
    ensures fits: \forall integer now; pss_bounds{Pre}(queue, now) ==> pss_bounds(queue, now);
    ensures fits: \result == 0 ==> \forall integer now; pss_fits{Pre}(queue, now) ==> pss_fits(queue, now);
    ensures fits: setting->rho_bps >= PSS_MIN_RATE_BPS; */
static bool pss_set_constants(const struct pss_state *st, struct pss_queue *queue, struct pss_setting *setting);

/*@ requires given: q < lw_n && \valid(st) && \valid(pss_rows(st) + (0 .. lw_n - 1)) && \valid(setting) &&
	\separated(st, pss_rows(st) + (0 .. lw_n - 1), setting);
    requires fits: now <= LW_MAX_NOW_NS && pss_fits(pss_rows(st) + q, now) && pss_rows(st)[q].controlled != 0;
    assigns pss_rows(st)[q], setting->rho_bps;
    ensures fits: pss_fits(pss_rows(st) + q, now) && pss_rows(st)[q].controlled == \old(pss_rows(st)[q].controlled);
    ensures fits: (\forall integer p; 0 <= p < lw_n && p != q ==> pss_fits{Pre}(pss_rows(st) + p, now)) ==> pss_all_fit(pss_rows(st), now); */
static void pss_carry(struct pss_state *st, uint32_t q, uint64_t level_ns, struct pss_setting *setting, bool renewed, uint64_t now);

/*@ requires given: q < lw_n && \valid(st) && \valid(pss_rows(st) + (0 .. lw_n - 1)) && \valid(setting) &&
	\separated(st, pss_rows(st) + (0 .. lw_n - 1), setting);
    requires fits: now <= LW_MAX_NOW_NS && pss_bounds(pss_rows(st) + q, now);
    assigns pss_rows(st)[q], setting->rho_bps;
    ensures fits: pss_fits(pss_rows(st) + q, now) && pss_rows(st)[q].controlled != 0;
    ensures fits: (\forall integer p; 0 <= p < lw_n && p != q ==> pss_fits{Pre}(pss_rows(st) + p, now)) ==> pss_all_fit(pss_rows(st), now); */
static void pss_begin(struct pss_state *st, uint32_t q, struct pss_setting *setting, uint64_t credit_bits, uint64_t now);

/*@ requires given: q < lw_n && \valid(st) && \valid(pss_rows(st) + (0 .. lw_n - 1)) && \valid(setting) &&
	\separated(st, pss_rows(st) + (0 .. lw_n - 1), setting);
    requires fits: now <= LW_MAX_NOW_NS && pss_fits(pss_rows(st) + q, now);
    assigns pss_rows(st)[q], setting->rho_bps;
    ensures fits: pss_fits(pss_rows(st) + q, now);
    ensures plain: (pss_rows(st)[q].controlled != 0 <==> setting->value[PSS_LOW_LEVEL] != LW_UNSET) &&
	(pss_rows(st)[q].controlled == 0 ==> pss_rows(st)[q].low == 0); */
static void pss_renew(struct pss_state *st, uint32_t q, struct pss_setting *setting, bool renewed, uint64_t now);

/*@ requires valid: \valid(st);
    requires fits: pss_tx(st);
    assigns st->link_bps, st->tx, st->best_bps;
    ensures fits: pss_tx(st);
    ensures fits: pss_apart_in_memory(st) ==> \forall integer now; pss_all_fit{Pre}(pss_rows(st), now) ==> pss_all_fit(pss_rows(st), now); */
static void pss_follow(struct pss_state *st, uint64_t link_bps);

/*@ assigns \nothing;
    ensures fits: n == lw_n ==> \result == pss_setting_row(st); */
static struct pss_setting *pss_settings(struct pss_state *st, uint32_t n);

/*@ requires given: pss_given(st, v);
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, pss_low_row(st)[0 .. lw_n - 1];
    ensures fits: pss_steady{Pre,Post}(st) && \forall integer now; pss_all_fit{Pre}(pss_rows(st), now) ==> pss_all_fit(pss_rows(st), now); */
static void pss_rebuild(struct pss_state *st, const struct lw_view *v);

/*@ requires valid: \valid(st) && \valid_read(v) && \valid_read(params + (0 .. PSS_NPARAMS - 1));
    requires fits: pss_tx(st);
    assigns st->paper, st->reset, st->ignore, st->link_bps, st->tx, st->best_bps;
    ensures fits: pss_tx(st);
    ensures fits: pss_apart_in_memory(st) ==> \forall integer now; pss_all_fit{Pre}(pss_rows(st), now) ==> pss_all_fit(pss_rows(st), now); */
static bool pss_configure(struct pss_state *st, const struct lw_view *v, const uint64_t *params);

/*@ predicate pss_set(struct pss_state *st, struct lw_view *v) = \valid(pss_setting_row(st) + (0 .. lw_n - 1)) &&
	\separated(v, st, pss_rows(st) + (0 .. lw_n - 1), pss_setting_row(st) + (0 .. lw_n - 1), pss_holder_row(st) + (0 .. 3 * lw_n - 1),
		v->queues + (0 .. lw_n - 1)); */

/*@ requires given: pss_given((struct pss_state *)state, v) && pss_set((struct pss_state *)state, v) && v->now_ns <= LW_MAX_NOW_NS;
    requires fits: pss_kept((struct pss_state *)state);
    ensures fits: pss_kept((struct pss_state *)state); */
static void pss_rated(void *state, const struct lw_view *v);
