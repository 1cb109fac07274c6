/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * NAME.c - earliest deadline first: each class has a deadline, and the packet whose deadline ends first goes next.
 *
 * Replace this by your own algorithm. Units are those of the contract: ns, bit/s, bytes. The rules are at the head of
 * linkweir/policy.h. The state is one block without pointers, and a policy writes to nothing else.
 */
#include "linkweir/policy.h"

/* The state: a deadline for each queue, ns. */
static size_t NAME_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return nqueues * sizeof(uint64_t);
}

static void NAME_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	uint64_t *deadline_ns = (uint64_t *)state;
	uint32_t q;

	(void)params;
	for (q = 0; q < v->nqueues; q++)
		deadline_ns[q] = qparams[q];
}

static uint32_t NAME_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	const uint64_t *deadline_ns = (const uint64_t *)state;
	uint64_t first_ns = UINT64_MAX;
	uint32_t q, best = LW_NONE;

	for (q = 0; q < v->nqueues; q++) {
		const struct lw_queue *queue = &v->queues[q];

		if (queue->backlog_pkts == 0 || queue->rate_bps == 0)
			continue;
		if (queue->head_arrival_ns + deadline_ns[q] < first_ns) {
			first_ns = queue->head_arrival_ns + deadline_ns[q];
			best = q;
		}
	}
	if (best == LW_NONE)
		*retry_ns = LW_NEVER;
	return best;
}

static const struct lw_param NAME_qparams[] = {
	{ .name = "deadline", .help = "time a packet may wait", .min = 1000, .max = 60000000000, .def = 100000000,
	  .unit = LW_NS },
};

const struct lw_policy lw_policy_NAME = {
	.name = "NAME",
	.help = "earliest deadline first",
	.abi = LW_ABI,
	.max_queues = LW_MAX_QUEUES,
	.nqparams = 1,
	.qparams = NAME_qparams,
	.state_size = NAME_state_size,
	.init = NAME_init,
	.pick = NAME_pick,
};
