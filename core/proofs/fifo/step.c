/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#define lw_n QUEUES
#include "../../src/fifo.c"
#define POLICY fifo
#define STATE_BYTES (sizeof(struct fifo_state) + QUEUES * sizeof(struct lw_heap_row))
#define STEP_STATE struct fifo_state
#define STEP_ROWS(st) fifo_rows(st)
#define STEP_KINDS 3
#include "../step_heap.h"

static void step_numbers(struct fifo_state *st)
{
	(void)st;
}
