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

/* the present time; if the clock steps back, the last one */
static inline uint64_t lw_clock(uint64_t *seen_ns, const struct lw_view *v)
{
	if (v->now_ns > *seen_ns)
		*seen_ns = v->now_ns;
	return *seen_ns;
}

/* the answer of a pick that waits for events only */
static inline uint32_t lw_answer(uint32_t q, uint64_t *retry_ns)
{
	if (q == LW_NONE)
		*retry_ns = LW_NEVER;
	return q;
}

#endif
