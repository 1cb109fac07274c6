/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/codel.c"
#define POLICY codel
#define STATE_BYTES (sizeof(struct codel_state) + QUEUES * sizeof(struct lw_heap_row))
#define STEP_STATE struct codel_state
#define STEP_ROWS(st) codel_rows(st)
#define STEP_KINDS 3
#include "../step_heap.h"

static void step_numbers(struct codel_state *st)
{
	st->now_ns = proof_between(0, LW_MAX_NOW_NS);
	st->law.target_ns = proof_between(1000, 10000000000u);
	st->law.interval_ns = proof_between(1000000, 4000000000u);
	st->law.mtu_bytes = proof_between(0, LW_MAX_PACKET_BYTES - 1);
	st->law.ecn = proof_between(0, 1) != 0;
	st->codel.first_above_ns = proof_between(0, LW_MAX_NOW_NS);
	st->codel.drop_next_ns = proof_between(0, LW_MAX_NOW_NS);
	st->codel.count = (uint32_t)proof_between(0, UINT32_MAX);
	st->codel.lastcount = (uint32_t)proof_between(0, UINT32_MAX);
	st->codel.dropping = (uint8_t)proof_between(0, 1);
	st->codel.after = (uint8_t)proof_between(0, 2);
	st->held_bytes = proof_between(0, UINT64_MAX);
}
