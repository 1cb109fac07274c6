/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * step_heap.h - arrangements of the heap of heap.h: which queue is at which place. Keys are ranges, so any order may result.
 *
 * A file defines STEP_STATE, the struct that begins the state and has `count`, STEP_ROWS(st), the rows of the heap, and
 * step_numbers(st), which makes the rest of the state any numbers.
 */
#define step_place(state, i) \
	do { \
		if (((STEP_STATE *)(state))->count > (i)) \
			STEP_SPLIT(STEP_ROWS((STEP_STATE *)(state))[i].queue); \
	} while (0)
#define step_split(state) \
	do { \
		STEP_SPLIT(((STEP_STATE *)(state))->count); \
		step_place(state, 0u); \
		step_place(state, 1u); \
	} while (0)
#include "step.h"

static void step_numbers(STEP_STATE *st);

static void step_rows(uint64_t *qparams)
{
	(void)qparams;
}

static void step_state(void *state)
{
	STEP_STATE *st = (STEP_STATE *)state;
	uint32_t order = step_choice(STEP_ORDERS), q, i;

	memset(st, 0, sizeof(*st));
	step_numbers(st);
	//@ loop unroll QUEUES;
	for (q = 0; q < QUEUES; q++) {
		struct lw_heap_row *row = STEP_ROWS(st) + q;

		row->key = proof_between(0, UINT64_MAX);
		row->head_ns = proof_between(0, UINT64_MAX);
		row->place = LW_NONE;
		row->queue = q;
	}
	//@ loop unroll QUEUES;
	for (i = 0; i < QUEUES && step_orders[order][i] < QUEUES; i++) {
		STEP_ROWS(st)[i].queue = step_orders[order][i];
		STEP_ROWS(st)[step_orders[order][i]].place = i;
		st->count = i + 1;
	}
}

static bool step_sound(const void *state)
{
	STEP_STATE *st = (STEP_STATE *)state;
	const struct lw_heap_row *rows = STEP_ROWS(st);
	uint32_t q, i, placed = 0;

	if (st->count > QUEUES)
		return false;
	//@ loop unroll QUEUES;
	for (i = 0; i < st->count; i++)
		if (rows[i].queue >= QUEUES || rows[rows[i].queue].place != i)
			return false;
	//@ loop unroll QUEUES;
	for (q = 0; q < QUEUES; q++)
		placed += rows[q].place != LW_NONE;
	return placed == st->count;
}
