/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/drr.c"
#define POLICY drr
#define STATE_BYTES (sizeof(struct drr_state) + QUEUES * (sizeof(struct drr_queue) + sizeof(struct lw_link)))
#define STEP_KINDS 2
#define STEP_LEVELS 2                   /* a level is an index of heads and a bit of busy, so two represent all */
#define step_split(state) \
	do { \
		STEP_SPLIT(((struct drr_state *)(state))->head[0]); \
		STEP_SPLIT(((struct drr_state *)(state))->head[DRR_LEVELS - 1]); \
	} while (0)
#include "../step.h"

static uint8_t step_level(void)
{
	return step_choice(STEP_LEVELS) ? DRR_LEVELS - 1 : 0;
}

static void step_rows(uint64_t *qparams)
{
	uint32_t q;

	//@ loop unroll QUEUES;
	for (q = 0; q < QUEUES; q++)
		qparams[q * DRR_NQPARAMS + DRR_LEVEL] = step_level();
}

static void step_state(void *state)
{
	struct drr_state *st = (struct drr_state *)state;
	struct lw_link *links = drr_links(st, &proof_view);
	uint32_t order = step_choice(STEP_ORDERS), l, q, i;

	st->busy = 0;
	memset(st->head, 0xff, sizeof(st->head));
	//@ loop unroll QUEUES;
	for (q = 0; q < QUEUES; q++) {
		struct drr_queue *queue = drr_queues(st) + q;

		queue->quantum_bytes = (uint32_t)proof_between(1, LW_MAX_PACKET_BYTES - 1);
		queue->deficit_bytes = (uint32_t)proof_between(0, 2 * LW_MAX_PACKET_BYTES);
		queue->level = step_level();
		queue->fresh = (uint8_t)proof_between(0, 1);
		links[q].next = links[q].prev = LW_NONE;
	}
	//@ loop unroll QUEUES;
	for (i = 0; i < QUEUES && step_orders[order][i] < QUEUES; i++) {
		q = step_orders[order][i];
		l = drr_queues(st)[q].level;
		lw_append(links, &st->head[l], q);
		st->busy |= (uint64_t)1 << l;
	}
}

static bool step_sound(const void *state)
{
	struct drr_state *st = (struct drr_state *)state;
	uint64_t busy = 0;
	uint32_t l, q, found = 0;

	//@ loop unroll DRR_LEVELS;
	for (l = 0; l < DRR_LEVELS; l++) {
		uint32_t before = found;

		if (st->head[l] == LW_NONE)
			continue;
		busy |= (uint64_t)1 << l;
		if (!step_list_sound(drr_links(st, &proof_view), st->head[l], &found))
			return false;
		//@ loop unroll QUEUES;
		for (q = 0; q < QUEUES; q++)
			if (((found & ~before) >> q & 1) && drr_queues(st)[q].level != l)
				return false;
	}
	return busy == st->busy && step_rest_sound(drr_links(st, &proof_view), found);
}
