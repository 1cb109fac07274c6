/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* What a visit adds to a deficit, as grant of rocq/Drr.v has it. */
#include "../any_queues.h"
#include "../ctz.h"
#include "../../src/drr.c"

/*@ requires valid: \valid(queue) && queue->quantum_bytes < LW_MAX_PACKET_BYTES && bytes <= UINT64_MAX - UINT32_MAX;
    assigns queue->deficit_bytes;
    ensures granted: queue->deficit_bytes ==
	\min(\old(queue->deficit_bytes) + bytes, queue->quantum_bytes + LW_MAX_PACKET_BYTES); */
static void drr_add(struct drr_queue *queue, uint64_t bytes);
