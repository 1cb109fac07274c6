/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* credit.h - contracts of the functions of pss.c that move a level; charge.c and level.c prove them. */
#include "../shifts.h"
#include "order.h"

/* The unit is 2^shift; the position of a level is in 2^-shift ns. */
/*@ logic integer pss_unit{L}(struct pss_queue *q) = 1 << \at(q->shift, L);
    logic integer pss_pos{L}(struct pss_queue *q) = \at(q->tat_ns, L) * pss_unit{L}(q) + \at(q->frac, L);
    logic struct pss_queue *pss_row(struct pss_state *st, integer q) = pss_rows(st) + q;
    predicate pss_paced{L}(struct pss_queue *q) = \at(q->shift, L) <= 63 && \at(q->frac, L) < pss_unit{L}(q);
    logic integer pss_cost(integer bytes, struct pss_queue *q) = bytes * q->mult;
    logic integer pss_cut{L}(struct pss_queue *q, integer now) =
	\at(q->tat_ns, L) < now ? now * pss_unit{L}(q) - pss_pos{L}(q) : 0; */

/*@ requires valid: \valid_read(queue) && \valid(rest) && \separated(rest, queue) && bytes < LW_MAX_PACKET_BYTES;
    requires paced: pss_paced(queue);
    assigns *rest;
    ensures exact: \result * pss_unit(queue) + *rest == pss_cost(bytes, queue) + queue->frac;
    ensures fraction: *rest < pss_unit(queue);
    ensures bounded: \result <= 9007199254740992; */
static uint64_t pss_cost_ns(const struct pss_queue *queue, uint32_t bytes, uint64_t *rest);

/*@ requires valid: \valid_read(queue);
    assigns \nothing;
    ensures later: \result == (queue->mark_ns > now ? queue->mark_ns : now); */
static uint64_t pss_origin(const struct pss_queue *queue, uint64_t now);

/*@ requires valid: \valid_read(st) && \valid_read(queue);
    assigns \nothing;
    ensures least: \result <= queue->resume_ns && \result == (st->reset != 0 || level_ns > queue->resume_ns ? queue->resume_ns : level_ns); */
static uint64_t pss_floor(const struct pss_state *st, const struct pss_queue *queue, uint64_t level_ns);

/*@ requires valid: \valid_read(queue);
    requires fits: pss_bounds(queue, now);
    assigns \nothing;
    ensures bounded: \result <= queue->tat_ns || \result == queue->floor_ns; */
static uint64_t pss_level(const struct pss_queue *queue, uint64_t now);

/*@ requires valid: \valid_read(queue);
    assigns \nothing;
    ensures returns: \forall integer now; 0 <= now <= LW_MAX_NOW_NS && pss_bounds(queue, now) && \result <= now ==>
	queue->tat_ns <= now + PSS_MAX_LEVEL_NS + 9007199254740992; */
static uint64_t pss_due(const struct pss_queue *queue);

/*@ requires given: \valid(st) && \valid(pss_row(st, q)) && \separated(st, pss_row(st, q));
    requires fits: now <= LW_MAX_NOW_NS && pss_bounds(pss_row(st, q), now);
    assigns *pss_row(st, q);
    ensures paced: pss_paced(pss_row(st, q));
    ensures same: pss_row(st, q)->controlled == \old(pss_row(st, q)->controlled);
    ensures fits: pss_fits(pss_row(st, q), now); */
static void pss_stand(struct pss_state *st, uint32_t q, uint64_t level_ns, uint64_t now);
