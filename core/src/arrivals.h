/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * arrivals.h - first come, first served across queues: for fifo.c and codel.c.
 *
 * Eligible queues form a heap by the arrival of their head packets; of equal arrivals the lowest index comes first. An event
 * takes O(log n) if its queue has another head packet afterwards, else O(1). rated() looks at every queue, and takes O(log n) for each that moves.
 */
#ifndef LINKWEIR_ARRIVALS_H
#define LINKWEIR_ARRIVALS_H

#include "heap.h"
#include "view.h"

/* after any event of queue q */
static inline void lw_arrivals_follow(struct lw_heap_row *rows, uint32_t *count, const struct lw_view *v, uint32_t q)
{
	uint64_t before_ns = rows[q].head_ns, head_ns = v->queues[q].head_arrival_ns;
	bool held = lw_heap_holds(rows, q);

	if (!lw_eligible(v, q)) {
		if (held)
			lw_heap_leave(rows, count, q);
		return;
	}
	rows[q].head_ns = head_ns;
	if (!held)
		lw_heap_join(rows, count, q);
	else if (head_ns > before_ns)
		lw_heap_down(rows, *count, q);
	else if (head_ns < before_ns)
		lw_heap_up(rows, rows[q].place, q);
	//@ split rows[q].place;
}

static inline void lw_arrivals_rated(struct lw_heap_row *rows, uint32_t *count, const struct lw_view *v)
{
	uint32_t q;

	for (q = 0; q < v->nqueues; q++)
		lw_arrivals_follow(rows, count, v, q);
}

static inline void lw_arrivals_init(struct lw_heap_row *rows, uint32_t *count, const struct lw_view *v)
{
	*count = 0;
	lw_heap_clear(rows, v->nqueues);
	lw_arrivals_rated(rows, count, v);
}

/* the queue whose head packet arrived first, or LW_NONE */
static inline uint32_t lw_arrivals_first(const struct lw_heap_row *rows, uint32_t count)
{
	return count ? rows[0].queue : LW_NONE;
}

#endif
