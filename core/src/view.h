/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* view.h - what every policy reads from the data plane's view. */
#ifndef LINKWEIR_VIEW_H
#define LINKWEIR_VIEW_H

#include <linkweir/policy.h>

/* has a packet and a channel to send it on */
static inline bool lw_eligible(const struct lw_view *v, uint32_t q)
{
	return v->queues[q].backlog_pkts && v->queues[q].rate_bps;
}

/* the eligible queue with the earliest head packet, ties by lowest index, or LW_NONE; looks at every queue */
static inline uint32_t lw_earliest(const struct lw_view *v)
{
	uint32_t q, best = LW_NONE;

	for (q = 0; q < v->nqueues; q++)
		if (lw_eligible(v, q) &&
		    (best == LW_NONE || v->queues[q].head_arrival_ns < v->queues[best].head_arrival_ns))
			best = q;
	return best;
}

/* the present time; if the clock steps back, the last one */
static inline uint64_t lw_clock(uint64_t *seen_ns, const struct lw_view *v)
{
	if (v->now_ns > *seen_ns)
		*seen_ns = v->now_ns;
	return *seen_ns;
}

static inline struct lw_pick lw_answer(uint32_t q)
{
	struct lw_pick pick;

	pick.retry_ns = q == LW_NONE ? LW_NEVER : 0;
	pick.queue = q;
	return pick;
}

#endif
