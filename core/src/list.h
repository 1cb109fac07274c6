/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * list.h - circular doubly linked lists of queues, by index instead of pointer.
 *
 * A list is the index of its head (LW_NONE when empty); the tail is the head's predecessor. A queue is in one list at
 * most, so one link per queue serves all lists of a policy. Everything is O(1).
 */
#ifndef LINKWEIR_LIST_H
#define LINKWEIR_LIST_H

#include <linkweir/policy.h>

struct lw_link {
	uint32_t next, prev;            /* next is LW_NONE while the queue is in no list */
};

/*
 * What keeps every index in range: whoever is in a list has neighbours that know it, and a head is in a list. Whoever is
 * named as head of a list must not stay so when it leaves, so a queue leaves by the head of its own list.
 */
/*@ predicate lw_linked{L}(struct lw_link *links, integer n) =
	\forall integer q; 0 <= q < n ==>
		(links[q].next == LW_NONE && links[q].prev == LW_NONE) ||
		(links[q].next < n && links[q].prev < n && links[links[q].next].prev == q && links[links[q].prev].next == q);
    predicate lw_headed{L}(struct lw_link *links, integer n, integer head) =
	head == LW_NONE || (0 <= head < n && links[head].next != LW_NONE); */

static inline void lw_unlink_all(struct lw_link *links, uint32_t nqueues)
{
	uint32_t q;

	/*@ loop invariant q <= nqueues;
	    loop invariant \forall integer i; 0 <= i < q ==> links[i].next == LW_NONE && links[i].prev == LW_NONE;
	    loop assigns q, links[0 .. nqueues - 1];
	    loop variant nqueues - q; */
	for (q = 0; q < nqueues; q++)
		links[q].next = links[q].prev = LW_NONE;
}

static inline bool lw_listed(const struct lw_link *links, uint32_t q)
{
	return links[q].next != LW_NONE;
}

static inline void lw_append(struct lw_link *links, uint32_t *head, uint32_t q)
{
	uint32_t tail;

	if (*head == LW_NONE) {
		links[q].next = links[q].prev = q;
		*head = q;
		return;
	}
	tail = links[*head].prev;
	links[q].next = *head;
	links[q].prev = tail;
	links[tail].next = q;
	links[*head].prev = q;
}

static inline void lw_remove(struct lw_link *links, uint32_t *head, uint32_t q)
{
	uint32_t next = links[q].next, prev = links[q].prev;

	if (next == q) {
		*head = LW_NONE;
	} else {
		links[prev].next = next;
		links[next].prev = prev;
		if (*head == q)
			*head = next;
	}
	links[q].next = links[q].prev = LW_NONE;
}

static inline void lw_move_to_tail(struct lw_link *links, uint32_t *head, uint32_t q)
{
	if (*head == q) {
		*head = links[q].next;
		return;
	}
	lw_remove(links, head, q);
	lw_append(links, head, q);
}

#endif
