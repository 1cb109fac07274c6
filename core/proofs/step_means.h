/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* step_means.h - the heap of pf.h (step_heap.h), with any means. */
#define STEP_STATE struct pf_state
#define STEP_ROWS(st) pf_rows((st), &proof_view)
#define STATE_BYTES (sizeof(struct pf_state) + QUEUES * (sizeof(struct pf_queue) + sizeof(struct lw_heap_row)))
#define STEP_KINDS 3
#include "step_heap.h"

static void step_numbers(struct pf_state *st)
{
	uint32_t q;

	st->means.now_ns = proof_between(0, LW_MAX_NOW_NS);
	st->means.since_ns = proof_between(0, LW_MAX_NOW_NS);
	st->means.phase = proof_between(0, UINT32_MAX);
	st->means.mult = proof_between(0, UINT64_MAX);
	st->means.tc_ns = proof_between(1, UINT64_MAX);
	st->means.floor = proof_between(0, UINT64_MAX);
	st->means.unit = (uint32_t)proof_between(0, 2);
	st->means.idle = (uint32_t)proof_between(0, 1);
	//@ loop unroll QUEUES;
	for (q = 0; q < QUEUES; q++) {
		struct pf_queue *queue = pf_queues(st) + q;

		queue->mean.sum = proof_between(0, UINT64_MAX);
		queue->mean.inverse = proof_between(0, UINT64_MAX);
		queue->mean.key = proof_between(0, UINT64_MAX);
		queue->mean.rate_bps = proof_between(0, UINT64_MAX);
		queue->mean.left_ns = proof_between(0, LW_MAX_NOW_NS);
		queue->mean.weight = (uint32_t)proof_between(1, 65535);
		queue->mean.away = step_choice(2);
		queue->timeout_ns = proof_between(0, UINT64_MAX);
	}
}
