/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* strict: an event keeps the bitmap equal to the set of eligible queues, and pick names the eligible queue of the least rank. */
#include "../bitmap.h"
#include "../../src/strict.c"

/*@ logic struct strict_queue *strict_row(struct strict_state *st, integer q) = (struct strict_queue *)(st + 1) + q;
    predicate strict_eligible{L}(struct lw_view *v, integer q) =
	\at(v->queues[q].backlog_pkts, L) != 0 && \at(v->queues[q].rate_bps, L) != 0;
    predicate strict_given{L}(struct strict_state *st, struct lw_view *v) =
	\valid{L}(st) && \valid{L}(strict_row(st, 0) + (0 .. v->nqueues - 1)) && v->nqueues <= LW_BITMAP_SIZE &&
	\valid_read{L}(v) && \valid_read{L}(v->queues + (0 .. v->nqueues - 1)) &&
	\separated(v, st, strict_row(st, 0) + (0 .. v->nqueues - 1), v->queues + (0 .. v->nqueues - 1));
    predicate strict_ranked{L}(struct strict_state *st, integer n) =
	(\forall integer q; 0 <= q < n ==> \at(strict_row(st, q)->rank, L) < n &&
		\at(strict_row(st, \at(strict_row(st, q)->rank, L))->holder, L) == q) &&
	(\forall integer r; 0 <= r < n ==> \at(strict_row(st, r)->holder, L) < n &&
		\at(strict_row(st, \at(strict_row(st, r)->holder, L))->rank, L) == r);
    predicate strict_within{L}(struct strict_state *st, integer n) =
	\forall integer r; n <= r < LW_BITMAP_SIZE ==> !lw_member{L}(&st->ready, r); */

/*@ assigns \nothing;
    ensures \result == strict_row(st, 0); */
static struct strict_queue *strict_queues(struct strict_state *st);

/*@ requires range: q < v->nqueues && \valid_read(v) && \valid_read(v->queues + q);
    assigns \nothing;
    ensures eligible: \result != 0 <==> strict_eligible(v, q); */
static inline bool lw_eligible(const struct lw_view *v, uint32_t q);

/*@ requires given: strict_given(st, v) && q < v->nqueues;
    requires sound: lw_summed(&st->ready) && strict_ranked(st, v->nqueues) && strict_within(st, v->nqueues);
    assigns st->ready.summary, st->ready.word[0 .. 63];
    ensures sound: lw_summed(&st->ready) && strict_within(st, v->nqueues);
    ensures agrees: strict_eligible(v, q) <==> lw_member(&st->ready, strict_row(st, q)->rank);
    ensures others: \forall integer p; 0 <= p < v->nqueues && p != q ==>
	(lw_member(&st->ready, strict_row(st, p)->rank) <==> lw_member{Pre}(&st->ready, strict_row(st, p)->rank)); */
static void strict_follow(struct strict_state *st, const struct lw_view *v, uint32_t q);

/*@ requires given: strict_given((struct strict_state *)state, v) && \valid(retry_ns);
    requires apart: \separated(retry_ns, (struct strict_state *)state, strict_row((struct strict_state *)state, 0) + (0 .. v->nqueues - 1));
    requires sound: lw_summed(&((struct strict_state *)state)->ready) && strict_ranked((struct strict_state *)state, v->nqueues) &&
	strict_within((struct strict_state *)state, v->nqueues);
    requires agrees: \forall integer q; 0 <= q < v->nqueues ==> (strict_eligible(v, q) <==>
	lw_member(&((struct strict_state *)state)->ready, strict_row((struct strict_state *)state, q)->rank));
    assigns *retry_ns;
    ensures exists: \result == LW_NONE || \result < v->nqueues;
    ensures none: \result == LW_NONE ==> \forall integer q; 0 <= q < v->nqueues ==> !strict_eligible{Pre}(v, q);
    ensures eligible: \result != LW_NONE ==> strict_eligible{Pre}(v, \result);
    ensures urgent: \result != LW_NONE ==> \forall integer q; 0 <= q < v->nqueues && strict_eligible{Pre}(v, q) ==>
	strict_row((struct strict_state *)state, \result)->rank <= strict_row((struct strict_state *)state, q)->rank; */
static uint32_t strict_pick(void *state, const struct lw_view *v, uint64_t *retry_ns);
