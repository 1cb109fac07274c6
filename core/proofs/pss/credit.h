/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* credit.h - contracts of the functions of pss.c that move a level; charge.c and level.c prove them. */
#include "../any_queues.h"
#include "../shifts.h"
#include "../bitmap.h"
#include "../../src/pss.c"

/* The unit is 2^shift; the position of a level is in 2^-shift ns. pss_fits: how far a level can be above the present. */
/*@ logic integer pss_unit{L}(struct pss_queue *q) = 1 << \at(q->shift, L);
    logic integer pss_pos{L}(struct pss_queue *q) = \at(q->tat_ns, L) * pss_unit{L}(q) + \at(q->frac, L);
    logic struct pss_queue *pss_row(struct pss_state *st, integer q) = pss_rows(st) + q;
    predicate pss_paced{L}(struct pss_queue *q) = \at(q->shift, L) <= 63 && \at(q->frac, L) < pss_unit{L}(q);
    logic integer pss_cost(integer bytes, struct pss_queue *q) = bytes * q->mult;
    logic integer pss_cut{L}(struct pss_queue *q, integer now) =
	\at(q->tat_ns, L) < now ? now * pss_unit{L}(q) - pss_pos{L}(q) : 0;
    predicate pss_bounds{L}(struct pss_queue *q, integer now) =
	\at(q->resume_ns, L) <= PSS_MAX_LEVEL_NS && \at(q->full_ns, L) <= PSS_MAX_LEVEL_NS &&
	\at(q->floor_ns, L) <= PSS_MAX_LEVEL_NS && \at(q->mark_ns, L) <= now + 9007199254740992;
    predicate pss_fits{L}(struct pss_queue *q, integer now) = pss_bounds{L}(q, now) &&
	\at(q->tat_ns, L) <= now + PSS_MAX_LEVEL_NS + (\at(q->low, L) != 0 ? 36028797018963968 : 18014398509481984); */

/*@ requires valid: \valid_read(queue) && \valid(rest) && \separated(rest, queue) && bytes < LW_MAX_PACKET_BYTES;
    requires paced: pss_paced(queue);
    assigns *rest;
    ensures exact: \result * pss_unit(queue) + *rest == pss_cost(bytes, queue) + queue->frac;
    ensures fraction: *rest < pss_unit(queue);
    ensures bounded: \result <= 9007199254740992; */
static uint64_t pss_cost_ns(const struct pss_queue *queue, uint32_t bytes, uint64_t *rest);

/*@ requires valid: \valid(queue) && bytes < LW_MAX_PACKET_BYTES;
    requires paced: pss_paced(queue);
    requires fits: now <= LW_MAX_NOW_NS && queue->tat_ns <= now + PSS_MAX_LEVEL_NS + (queue->low != 0 ? 36028797018963968 : 18014398509481984);
    requires full: full <= now + PSS_MAX_LEVEL_NS + 9007199254740992;
    assigns queue->tat_ns, queue->frac;
    ensures paced: pss_paced(queue);
    ensures high: !queue->low && !paper ==>
	pss_pos(queue) == pss_pos{Pre}(queue) + pss_cut{Pre}(queue, now) + pss_cost(bytes, queue);
    ensures paper: !queue->low && paper && pss_pos(queue) <
	pss_pos{Pre}(queue) + pss_cut{Pre}(queue, now) + pss_cost(bytes, queue) ==> queue->tat_ns == full;
    ensures most: pss_pos{Pre}(queue) + pss_cut{Pre}(queue, now) <= pss_pos(queue) || paper;
    ensures least: pss_pos(queue) <= pss_pos{Pre}(queue) + pss_cut{Pre}(queue, now) + pss_cost(bytes, queue) || paper;
    ensures uncharged: !paper && pss_pos(queue) <
	pss_pos{Pre}(queue) + pss_cut{Pre}(queue, now) + pss_cost(bytes, queue) ==> queue->low && queue->tat_ns >= full;
    ensures low: queue->low && !paper ==> pss_pos(queue) == pss_pos{Pre}(queue) + pss_cut{Pre}(queue, now) || queue->tat_ns <= full;
    ensures fits: queue->tat_ns <= now + PSS_MAX_LEVEL_NS + 36028797018963968; */
static void pss_add(struct pss_queue *queue, uint32_t bytes, uint64_t now, uint64_t full, bool paper);
