/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* visit.h - what a visit and a grant of several quanta do to one queue of drr, as visit, lacks and good_skip of rocq/Drr.v have it. */
#ifndef LINKWEIR_PROOFS_DRR_VISIT_H
#define LINKWEIR_PROOFS_DRR_VISIT_H

/*@ requires valid: \valid(queue) && drr_good(queue) && length <= drr_longest <= LW_MAX_PACKET_BYTES;
    assigns queue->deficit_bytes, queue->fresh;
    ensures visited: drr_visited{Pre,Post}(queue);
    ensures fits: \result == 0 <==> length <= queue->deficit_bytes;
    ensures fresh: queue->fresh == (\result == 0 ? 0 : 1);
    ensures good: drr_good(queue);
    ensures lacks: \result != 0 ==> drr_lacks(queue, length, \result);
    ensures near: \result != 0 ==> drr_near(queue, length, \result) && \result < UINT32_MAX; */
static uint32_t drr_visit(struct drr_queue *queue, uint32_t length);

/*@ requires valid: \valid(queue) && drr_good(queue) && 0 < drr_longest <= LW_MAX_PACKET_BYTES && 0 < rounds < UINT32_MAX;
    requires lacks: drr_lacks(queue, drr_longest, rounds + 1);
    assigns queue->deficit_bytes;
    ensures granted: drr_granted{Pre,Post}(queue, rounds);
    ensures good: drr_good(queue); */
static void drr_grant(struct drr_queue *queue, uint32_t rounds);

#endif
