/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * What sending subtracts from a deficit, as charge and joined of rocq/Drr.v have it, for any number of queues: a queue that
 * stays in its list loses the bytes sent, one that joins or leaves has a deficit of 0 and begins with a quantum. No other
 * queue's deficit changes.
 */
#include "../any_queues.h"
#include "../ctz.h"
#include "../../src/drr.c"
#include "state.h"

/*@ predicate drr_listed{L}(struct drr_state *st, integer q) = \at(drr_chain(st)[q].next, L) != LW_NONE;
    predicate drr_eligible{L}(struct lw_view *v, integer q) =
	\at(v->queues[q].backlog_pkts, L) != 0 && \at(v->queues[q].rate_bps, L) != 0; */

/*@ requires range: q < v->nqueues && \valid_read(v) && \valid_read(v->queues + q);
    assigns \nothing;
    ensures truth: \result == 0 || \result == 1;
    ensures eligible: \result != 0 <==> drr_eligible(v, q); */
static inline bool lw_eligible(const struct lw_view *v, uint32_t q);

/*@ requires given: drr_parts(st, v) && q < v->nqueues && drr_rows(st)[q].level < DRR_LEVELS;
    assigns st->busy, st->head[0 .. 63], drr_chain(st)[0 .. lw_n - 1]; */
static void drr_leave(struct drr_state *st, const struct lw_view *v, uint32_t q);

/*@ requires given: drr_parts(st, v) && q < v->nqueues && drr_rows(st)[q].level < DRR_LEVELS;
    assigns st->busy, st->head[0 .. 63], drr_chain(st)[0 .. lw_n - 1], drr_rows(st)[q].deficit_bytes, drr_rows(st)[q].fresh;
    ensures stays: (drr_listed{Pre}(st, q) <==> drr_eligible{Pre}(v, q)) ==>
	drr_rows(st)[q].deficit_bytes == \old(drr_rows(st)[q].deficit_bytes) && drr_rows(st)[q].fresh == \old(drr_rows(st)[q].fresh);
    ensures changes: !(drr_listed{Pre}(st, q) <==> drr_eligible{Pre}(v, q)) ==>
	drr_rows(st)[q].deficit_bytes == 0 && drr_rows(st)[q].fresh == 1; */
static void drr_follow(struct drr_state *st, const struct lw_view *v, uint32_t q);

/*@ requires given: drr_parts((struct drr_state *)state, v) && q < v->nqueues && drr_rows((struct drr_state *)state)[q].level < DRR_LEVELS;
    ensures charged: drr_listed{Pre}((struct drr_state *)state, q) && drr_eligible{Pre}(v, q) &&
	bytes <= \old(drr_rows((struct drr_state *)state)[q].deficit_bytes) ==>
	drr_rows((struct drr_state *)state)[q].deficit_bytes == \old(drr_rows((struct drr_state *)state)[q].deficit_bytes) - bytes;
    ensures bounded: drr_rows((struct drr_state *)state)[q].deficit_bytes <= \old(drr_rows((struct drr_state *)state)[q].deficit_bytes);
    ensures others: \forall integer p; 0 <= p < lw_n && p != q ==>
	drr_rows((struct drr_state *)state)[p].deficit_bytes == \old(drr_rows((struct drr_state *)state)[p].deficit_bytes); */
static void drr_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);
