/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../ctz.h"
#include "../../src/strict.c"

/*@ assigns \nothing;
    ensures \result == (struct strict_queue *)(st + 1); */
static struct strict_queue *strict_queues(struct strict_state *st);

/*@ requires size: v->nqueues <= LW_BITMAP_SIZE;
    requires state: \valid((struct strict_state *)state) &&
		\valid((struct strict_queue *)((struct strict_state *)state + 1) + (0 .. v->nqueues - 1)) &&
		\valid((uint32_t *)((struct strict_state *)state + 1) + (0 .. v->nqueues - 1));
    requires view: \valid_read(v) && \separated(v, (struct strict_state *)state + (..));
    requires rows: \valid_read(qparams + (0 .. v->nqueues - 1)); */
static void strict_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams);
