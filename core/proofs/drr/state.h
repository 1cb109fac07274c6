/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* state.h - for proofs with WP, after ../../src/drr.c: the parts of drr's state, for any number of queues. */
#ifndef PROOF_DRR_STATE_H
#define PROOF_DRR_STATE_H

/*@ predicate drr_parts{L}(struct drr_state *st, struct lw_view *v) =
	\valid{L}(st) && \valid{L}(drr_rows(st) + (0 .. lw_n - 1)) && \valid{L}(drr_chain(st) + (0 .. lw_n - 1)) &&
	v->nqueues == lw_n && lw_n <= LW_MAX_QUEUES && \valid_read{L}(v) && \valid_read{L}(v->queues + (0 .. lw_n - 1)) &&
	\separated(v, st, drr_rows(st) + (0 .. lw_n - 1), drr_chain(st) + (0 .. lw_n - 1), v->queues + (0 .. lw_n - 1)); */

/*@ assigns \nothing;
    ensures \result == drr_rows(st); */
static struct drr_queue *drr_queues(struct drr_state *st);

/*@ requires v->nqueues == lw_n;
    assigns \nothing;
    ensures \result == drr_chain(st); */
static struct lw_link *drr_links(struct drr_state *st, const struct lw_view *v);

#endif
