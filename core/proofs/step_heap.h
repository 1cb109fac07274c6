/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* step_heap.h - arrangements of the heap of pf.h: which queue is at which place. Keys are ranges, so any order may result. */
#define step_place(state, i) \
	do { \
		if (((struct pf_state *)(state))->count > (i)) \
			STEP_SPLIT(pf_heap((struct pf_state *)(state), &proof_view)[i]); \
	} while (0)
#define step_split(state) \
	do { \
		STEP_SPLIT(((struct pf_state *)(state))->count); \
		step_place(state, 0u); \
		step_place(state, 1u); \
	} while (0)
#include "step.h"

static void step_rows(uint64_t *qparams)
{
	(void)qparams;
}

static void step_state(void *state)
{
	struct pf_state *st = (struct pf_state *)state;
	uint32_t order = step_choice(STEP_ORDERS), q, i;

	memset(st, 0, sizeof(*st));
	st->means.now_ns = proof_between(0, PROOF_LAST_NS);
	st->means.since_ns = proof_between(0, PROOF_LAST_NS);
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
		queue->mean.left_ns = proof_between(0, PROOF_LAST_NS);
		queue->mean.weight = (uint32_t)proof_between(1, 65535);
		queue->mean.away = step_choice(2);
		queue->head_ns = proof_between(0, UINT64_MAX);
		queue->timeout_ns = proof_between(0, UINT64_MAX);
		queue->place = LW_NONE;
	}
	//@ loop unroll QUEUES;
	for (i = 0; i < QUEUES && step_orders[order][i] < QUEUES; i++) {
		pf_heap(st, &proof_view)[i] = step_orders[order][i];
		pf_queues(st)[step_orders[order][i]].place = i;
		st->count = i + 1;
	}
}

static bool step_sound(const void *state)
{
	struct pf_state *st = (struct pf_state *)state;
	const uint32_t *heap = pf_heap(st, &proof_view);
	uint32_t q, i, placed = 0;

	if (st->count > QUEUES)
		return false;
	//@ loop unroll QUEUES;
	for (i = 0; i < st->count; i++)
		if (heap[i] >= QUEUES || pf_queues(st)[heap[i]].place != i)
			return false;
	//@ loop unroll QUEUES;
	for (q = 0; q < QUEUES; q++)
		placed += pf_queues(st)[q].place != LW_NONE;
	return placed == st->count;
}
