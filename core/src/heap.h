/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * heap.h - the queue with the smallest key, in O(log n): a binary heap of queues; for pf.h and arrivals.h.
 *
 * Of equal keys the earliest head packet comes first, then the lowest index, so the order is total. Each queue has a row. The
 * rows serve twice: rows[q] is about queue q, and rows[i].queue is the queue at place i of the heap, of which 0 is the root.
 */
#ifndef LINKWEIR_HEAP_H
#define LINKWEIR_HEAP_H

#include <linkweir/policy.h>

struct lw_heap_row {
	uint64_t key;                   /* key and head_ns count while the heap holds this queue */
	uint64_t head_ns;               /* arrival of the head packet */
	uint32_t place;                 /* of this queue in the heap, or LW_NONE */
	uint32_t queue;                 /* at the place that is this row's index */
};

static inline void lw_heap_clear(struct lw_heap_row *rows, uint32_t nqueues)
{
	uint32_t q;

	for (q = 0; q < nqueues; q++) {
		rows[q].key = rows[q].head_ns = 0;
		rows[q].place = LW_NONE;
		rows[q].queue = q;              /* not in use; an index even so, for the proofs */
	}
}

static inline bool lw_heap_holds(const struct lw_heap_row *rows, uint32_t q)
{
	return rows[q].place != LW_NONE;
}

static inline bool lw_heap_before(const struct lw_heap_row *rows, uint32_t a, uint32_t b)
{
	if (rows[a].key != rows[b].key)
		return rows[a].key < rows[b].key;
	if (rows[a].head_ns != rows[b].head_ns)
		return rows[a].head_ns < rows[b].head_ns;
	return a < b;
}

static inline void lw_heap_put(struct lw_heap_row *rows, uint32_t place, uint32_t q)
{
	rows[place].queue = q;
	rows[q].place = place;
}

/* q rises from `place`, which is free or its own */
static inline void lw_heap_up(struct lw_heap_row *rows, uint32_t place, uint32_t q)
{
	//@ assert up_placed: place < lw_n;
	while (place > 0 && lw_heap_before(rows, q, rows[(place - 1) / 2].queue)) {
		lw_heap_put(rows, place, rows[(place - 1) / 2].queue);
		place = (place - 1) / 2;
	}
	//@ split place;
	lw_heap_put(rows, place, q);
}

static inline void lw_heap_down(struct lw_heap_row *rows, uint32_t count, uint32_t q)
{
	uint32_t place = rows[q].place, child;

	//@ assert down_placed: place < lw_n;
	for (child = 2 * place + 1; child < count; child = 2 * place + 1) {
		if (child + 1 < count && lw_heap_before(rows, rows[child + 1].queue, rows[child].queue))
			child++;
		if (!lw_heap_before(rows, rows[child].queue, q))
			break;
		lw_heap_put(rows, place, rows[child].queue);
		place = child;
	}
	//@ split place;
	lw_heap_put(rows, place, q);
}

/* after a new key or head of q, which the heap holds */
static inline void lw_heap_move(struct lw_heap_row *rows, uint32_t count, uint32_t q)
{
	if (rows[q].place)              /* often q is the root, which needs no new place above */
		lw_heap_up(rows, rows[q].place, q);
	lw_heap_down(rows, count, q);
}

/* after new keys of any queues: O(n) */
static inline void lw_heap_order(struct lw_heap_row *rows, uint32_t count)
{
	uint32_t i;

	for (i = count / 2; i > 0; i--)
		lw_heap_down(rows, count, rows[i - 1].queue);
}

static inline void lw_heap_join(struct lw_heap_row *rows, uint32_t *count, uint32_t q)
{
	//@ assert room: *count < lw_n;
	lw_heap_up(rows, (*count)++, q);
}

static inline void lw_heap_leave(struct lw_heap_row *rows, uint32_t *count, uint32_t q)
{
	uint32_t place = rows[q].place, last;

	//@ assert held: 0 < *count <= lw_n;
	last = rows[--*count].queue;
	rows[q].place = LW_NONE;
	if (last == q)
		return;
	/* the last entry fills the gap, where it may be too deep or too high */
	rows[last].place = place;
	lw_heap_move(rows, *count, last);
}

#endif
