/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * fifo.c - first in, first out, across all queues.
 *
 * The head packet that has waited longest is sent first; ties go to the lowest queue. With one queue per user it behaves like
 * one shared FIFO, except that a blocked queue does not hold up the others. A pick is O(1), an event O(log n) (arrivals.h).
 */
#include "arrivals.h"

struct fifo_state {
	uint32_t count;                 /* queues in the heap */
	uint32_t unused;
};

static struct lw_heap_row *fifo_rows(struct fifo_state *st)
{
	return (struct lw_heap_row *)(void *)(st + 1);  /* aligned, as the state is, and its struct has 8 bytes */
}

static size_t fifo_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct fifo_state) + nqueues * sizeof(struct lw_heap_row);
}

static void fifo_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct fifo_state *st = (struct fifo_state *)state;

	(void)params, (void)qparams;
	memset(st, 0, sizeof(*st));
	lw_arrivals_init(fifo_rows(st), &st->count, v);
}

static uint32_t fifo_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct fifo_state *st = (struct fifo_state *)state;

	(void)v;
	return lw_answer(lw_arrivals_first(fifo_rows(st), st->count), retry_ns);
}

/* enqueued, sent and dropped */
static void fifo_event(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct fifo_state *st = (struct fifo_state *)state;

	(void)bytes;
	lw_arrivals_follow(fifo_rows(st), &st->count, v, q);
}

static void fifo_rated(void *state, const struct lw_view *v)
{
	struct fifo_state *st = (struct fifo_state *)state;

	lw_arrivals_rated(fifo_rows(st), &st->count, v);
}

const struct lw_policy lw_policy_fifo = {
	.name = "fifo",
	.help = "the packet that arrived first, whatever its queue",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES,
	.max_queues = LW_MAX_QUEUES,
	.state_size = fifo_state_size,
	.init = fifo_init,
	.pick = fifo_pick,
	.enqueued = fifo_event,
	.sent = fifo_event,
	.dropped = fifo_event,
	.rated = fifo_rated,
};
