/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* order.h - what holds between two calls of pss about ranks, the set of ready ones and the row of low queues. */
#include "../any_queues.h"
#include "../bitmap.h"
#include "../../src/pss.c"

/*@ predicate pss_given{L}(struct pss_state *st, struct lw_view *v) =
	\valid{L}(st) && \valid{L}(pss_rows(st) + (0 .. lw_n - 1)) && \valid{L}(pss_holder_row(st) + (0 .. 3 * lw_n - 1)) &&
	\at(v->nqueues, L) == lw_n && lw_n <= LW_BITMAP_SIZE && \valid_read{L}(v) && \valid_read{L}(v->queues + (0 .. lw_n - 1)) &&
	\separated(v, st, pss_rows(st) + (0 .. lw_n - 1), pss_holder_row(st) + (0 .. 3 * lw_n - 1), \at(v->queues, L) + (0 .. lw_n - 1));
    predicate pss_apart_in_memory(struct pss_state *st) =
	\separated(st, pss_rows(st) + (0 .. lw_n - 1), pss_holder_row(st) + (0 .. 3 * lw_n - 1));
    predicate pss_sound{L}(struct pss_state *st) = lw_summed{L}(&st->ready) && pss_ranked{L}(pss_rows(st)) &&
	pss_present{L}(&st->ready, pss_rows(st)) && pss_held{L}(pss_holder_row(st)) && pss_listed{L}(st, pss_low_row(st)) &&
	pss_once{L}(pss_low_row(st), \at(st->nlow, L)) && pss_sunk{L}(pss_low_row(st), \at(st->nlow, L), pss_rows(st));
    predicate pss_eligible{L}(struct lw_view *v, integer q) =
	\at(v->queues[q].backlog_pkts, L) != 0 && \at(v->queues[q].rate_bps, L) != 0; */

/*@ assigns \nothing;
    ensures row: \result == pss_rows(st); */
static struct pss_queue *pss_queues(struct pss_state *st);

/*@ assigns \nothing;
    ensures row: n == lw_n ==> \result == pss_holder_row(st); */
static uint32_t *pss_holders(struct pss_state *st, uint32_t n);

/*@ assigns \nothing;
    ensures row: n == lw_n ==> \result == pss_low_row(st); */
static uint32_t *pss_lows(struct pss_state *st, uint32_t n);

/*@ requires range: q < v->nqueues && \valid_read(v) && \valid_read(v->queues + q);
    assigns \nothing;
    ensures eligible: \result != 0 <==> pss_eligible(v, q); */
static inline bool lw_eligible(const struct lw_view *v, uint32_t q);
