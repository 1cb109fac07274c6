/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * edf.c - earliest deadline first (Liu and Layland, 1973, section 7), without preemption.
 *
 * A packet is due `deadline` after its arrival. The queue whose head packet is due first is served; ties go to the lowest
 * index. A late packet is still sent. A pick looks at every queue; events cost nothing.
 */
#include "view.h"

enum { EDF_DEADLINE, EDF_NQPARAMS };

#define EDF_MAX_NS 3600000000000u       /* largest deadline */

static uint64_t *edf_deadlines(void *state)
{
	return (uint64_t *)state;
}

static size_t edf_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return nqueues * sizeof(uint64_t);
}

static void edf_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	uint32_t q;

	(void)params;
	for (q = 0; q < v->nqueues; q++)
		edf_deadlines(state)[q] = qparams[(size_t)q * EDF_NQPARAMS + EDF_DEADLINE];
}

/* Exact for packets that came before the last hour of 64-bit time; the sum never exceeds 64 bits. */
static uint64_t edf_due_ns(uint64_t came_ns, uint64_t deadline_ns)
{
	return (came_ns < UINT64_MAX - EDF_MAX_NS ? came_ns : UINT64_MAX - EDF_MAX_NS) + deadline_ns;
}

static uint32_t edf_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	uint64_t due_ns, first_ns = UINT64_MAX;
	uint32_t q, best = LW_NONE;

	for (q = 0; q < v->nqueues; q++) {
		if (!lw_eligible(v, q))
			continue;
		due_ns = edf_due_ns(v->queues[q].head_arrival_ns, edf_deadlines(state)[q]);
		if (best == LW_NONE || due_ns < first_ns) {
			first_ns = due_ns;
			best = q;
		}
	}
	return lw_answer(best, retry_ns);
}

static const struct lw_param edf_qparams[EDF_NQPARAMS] = {
	{ "deadline", "how long after its arrival a packet is due", NULL, 0, EDF_MAX_NS, 100000000, LW_NS, 0 },
};

const struct lw_policy lw_policy_edf = {
	.name = "edf",
	.help = "earliest deadline first",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES,
	.max_queues = LW_MAX_QUEUES,
	.nqparams = EDF_NQPARAMS,
	.qparams = edf_qparams,
	.state_size = edf_state_size,
	.init = edf_init,
	.pick = edf_pick,
	.change = edf_init,
};
