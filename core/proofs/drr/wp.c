/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* What a visit and a grant of several quanta do to one queue, as visit and grant of rocq/Drr.v. */
#include "../any_queues.h"
#include "../ctz.h"
#include "../../src/drr.c"
#include "visit.h"

/*@ axiomatic product { axiom product: \forall integer rounds, quantum; drr_bytes(rounds, quantum) == rounds * quantum; } */

/*@ requires valid: \valid(queue) && queue->quantum_bytes < LW_MAX_PACKET_BYTES && bytes <= UINT64_MAX - UINT32_MAX;
    assigns queue->deficit_bytes;
    ensures granted: queue->deficit_bytes ==
	\min(\old(queue->deficit_bytes) + bytes, queue->quantum_bytes + LW_MAX_PACKET_BYTES); */
static void drr_add(struct drr_queue *queue, uint64_t bytes);
