/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * NAME.c - FILL IN: one line that says what it does.
 *
 * FILL IN: the algorithm, its source (author, year, section), and where this file deviates from it and why. Bounds on the
 * steps of each call. The rules are at the head of policy.h.
 *
 * Until then it serves the queue whose head packet has waited longest; ties go to the lowest index.
 */
#include "view.h"

struct NAME_state {
	uint64_t unused;                /* FILL IN: what the algorithm keeps; no pointers */
};

static size_t NAME_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)nqueues, (void)params;
	return sizeof(struct NAME_state);
}

static void NAME_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	(void)v, (void)params, (void)qparams;
	memset(state, 0, sizeof(struct NAME_state));
}

static uint32_t NAME_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	uint32_t q, best = LW_NONE;

	(void)state;
	for (q = 0; q < v->nqueues; q++)
		if (lw_eligible(v, q) &&
		    (best == LW_NONE || v->queues[q].head_arrival_ns < v->queues[best].head_arrival_ns))
			best = q;
	return lw_answer(best, retry_ns);
}

const struct lw_policy lw_policy_NAME = {
	.name = "NAME",
	.help = "FILL IN: one line for lists of policies",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES,        /* FILL IN: leave it out if choices depend on rates */
	.max_queues = LW_MAX_QUEUES,
	.state_size = NAME_state_size,
	.init = NAME_init,
	.pick = NAME_pick,
};
