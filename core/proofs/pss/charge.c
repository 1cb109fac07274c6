/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* What a packet adds to the level of its queue: the step of rocq/Charge.v that rocq/Identity.v sums up. */
#include "credit.h"

/*@ requires valid: \valid(queue) && bytes < LW_MAX_PACKET_BYTES;
    requires fits: pss_paced(queue);
    requires fits: now <= LW_MAX_NOW_NS && queue->tat_ns <= now + PSS_MAX_LEVEL_NS + (queue->low != 0 ? 36028797018963968 : 18014398509481984);
    requires fits: full <= now + PSS_MAX_LEVEL_NS + 9007199254740992;
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
