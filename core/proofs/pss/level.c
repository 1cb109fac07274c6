/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * How far a level can be above the present after a change of the constants, and when a queue returns to its high level:
 * pss_stand makes pss_fits true. pss_review, which moves a queue to its high level when it is due, keeps it (`returns`).
 */
#include "credit.h"

/*@ assigns \nothing;
    ensures \result == pss_row(st, 0); */
static struct pss_queue *pss_queues(struct pss_state *st);

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
    requires paced: pss_row(st, q)->shift <= 63;
    requires bounds: now <= LW_MAX_NOW_NS && pss_bounds(pss_row(st, q), now);
    assigns *pss_row(st, q);
    ensures paced: pss_paced(pss_row(st, q));
    ensures fits: pss_fits(pss_row(st, q), now); */
static void pss_stand(struct pss_state *st, uint32_t q, uint64_t level_ns, uint64_t now);
