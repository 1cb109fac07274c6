/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * fifo.c - first in, first out, across all queues.
 *
 * The head packet that has waited longest is sent first; ties go to the lowest queue. It keeps no state, since the view
 * shows all it needs. With one queue per user it behaves like one shared FIFO, except that a blocked queue does not hold up
 * the others. A pick looks at every queue.
 */
#include "view.h"

static size_t fifo_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return nqueues <= LW_MAX_QUEUES ? 8 : 0;        /* nothing is kept, and 0 would mean a refusal */
}

static void fifo_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	(void)v, (void)params, (void)qparams;
	memset(state, 0, 8);
}

static struct lw_pick fifo_pick(void *state, const struct lw_view *v)
{
	(void)state;
	return lw_answer(lw_earliest(v));
}

const struct lw_policy lw_policy_fifo = {
	.name = "fifo",
	.help = "the packet that arrived first, whatever its queue",
	.abi = LW_ABI,
	.nparams = 0,
	.nqparams = 0,
	.nstats = 0,
	.params = NULL,
	.qparams = NULL,
	.stats = NULL,
	.state_size = fifo_state_size,
	.check = NULL,
	.init = fifo_init,
	.pick = fifo_pick,
	.enqueued = NULL,
	.sent = NULL,
	.dropped = NULL,
	.rated = NULL,
	.change = NULL,
	.victim = NULL,
	.leaving = NULL,
	.expired = NULL,
	.observe = NULL,
};
