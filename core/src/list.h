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
 * The invariant that keeps every index in range, for any number of queues lw_n (each proof sets it): the neighbours of a
 * queue in a list point back to it, and a head is in a list. lw_remove must be given the head of the queue's own list;
 * otherwise that head would still name the queue.
 */
/*@ predicate lw_ranged{L}(struct lw_link *links) =
	\forall integer q; 0 <= q < lw_n ==> (links[q].next == LW_NONE && links[q].prev == LW_NONE) ||
		(links[q].next < lw_n && links[q].prev < lw_n);
    predicate lw_forth{L}(struct lw_link *links) =
	\forall integer q; 0 <= q < lw_n && links[q].next != LW_NONE ==> links[links[q].next].prev == q;
    predicate lw_back{L}(struct lw_link *links) =
	\forall integer q; 0 <= q < lw_n && links[q].prev != LW_NONE ==> links[links[q].prev].next == q;
    predicate lw_linked{L}(struct lw_link *links) =
	lw_ranged{L}(links) && lw_forth{L}(links) && lw_back{L}(links);
    predicate lw_headed{L}(struct lw_link *links, integer head) =
	head == LW_NONE || (0 <= head < lw_n && links[head].next != LW_NONE);
    predicate lw_same{K,L}(struct lw_link *links, integer q) =
	\at(links[q].next, K) == LW_NONE <==> \at(links[q].next, L) == LW_NONE; */

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

/*@ requires room: lw_n <= LW_MAX_QUEUES && q < lw_n && \valid(links + (0 .. lw_n - 1)) && \valid(head) &&
		\separated(head, links + (0 .. lw_n - 1));
    requires sound: lw_linked(links) && lw_headed(links, *head);
    requires unlisted: links[q].next == LW_NONE;
    assigns *head, links[0 .. lw_n - 1];
    ensures ranged: lw_ranged(links);
    ensures forth: lw_forth(links);
    ensures back: lw_back(links);
    ensures head: *head == (\old(*head) == LW_NONE ? q : \old(*head)) && links[*head].next != LW_NONE;
    ensures listed: links[q].next == *head;
    ensures others: \forall integer i; 0 <= i < lw_n && i != q ==> lw_same{Pre,Post}(links, i) &&
	(links[i].next == \old(links[i].next) || (links[i].next == q && \old(links[i].next) == \old(*head))); */
static inline void lw_append(struct lw_link *links, uint32_t *head, uint32_t q)
{
	uint32_t first = *head, tail;

	if (first == LW_NONE) {
		links[q].next = links[q].prev = q;
		*head = q;
		return;
	}
	//@ assert head_in_range: first < lw_n;
	tail = links[first].prev;
	//@ assert tail_in_range: tail < lw_n;
	//@ assert apart: links[tail].next == first && tail != q && first != q;
	links[q].next = first;
	links[q].prev = tail;
	links[tail].next = q;
	links[first].prev = q;
}

/*@ requires room: lw_n <= LW_MAX_QUEUES && q < lw_n && \valid(links + (0 .. lw_n - 1)) && \valid(head) &&
		\separated(head, links + (0 .. lw_n - 1));
    requires sound: lw_linked(links) && lw_headed(links, *head);
    requires listed: links[q].next != LW_NONE;
    assigns *head, links[0 .. lw_n - 1];
    ensures ranged: lw_ranged(links);
    ensures forth: lw_forth(links);
    ensures back: lw_back(links);
    ensures headed: lw_headed(links, *head);
    ensures head: *head != q && (*head == LW_NONE || *head == \old(*head) || *head == \old(links[q].next));
    ensures unlisted: links[q].next == LW_NONE;
    ensures others: \forall integer i; 0 <= i < lw_n && i != q ==> lw_same{Pre,Post}(links, i) &&
	(links[i].next == \old(links[i].next) || (\old(links[i].next) == q && links[i].next == \old(links[q].next))); */
static inline void lw_remove(struct lw_link *links, uint32_t *head, uint32_t q)
{
	uint32_t next = links[q].next, prev = links[q].prev;

	if (next == q) {
		*head = LW_NONE;
	} else {
		//@ assert next_in_range: next < lw_n;
		//@ assert prev_in_range: prev < lw_n;
		/*@ assert apart: prev != q && next != q && links[prev].next == q && links[next].prev == q &&
				links[next].next != LW_NONE; */
		links[prev].next = next;
		links[next].prev = prev;
		if (*head == q)
			*head = next;
	}
	links[q].next = links[q].prev = LW_NONE;
	//@ assert same: \forall integer i; 0 <= i < lw_n && i != q ==> lw_same{Pre,Here}(links, i);
}

/*@ requires room: lw_n <= LW_MAX_QUEUES && q < lw_n && \valid(links + (0 .. lw_n - 1)) && \valid(head) &&
		\separated(head, links + (0 .. lw_n - 1));
    requires sound: lw_linked(links) && lw_headed(links, *head);
    requires listed: links[q].next != LW_NONE;
    assigns *head, links[0 .. lw_n - 1];
    ensures ranged: lw_ranged(links);
    ensures forth: lw_forth(links);
    ensures back: lw_back(links);
    ensures headed: lw_headed(links, *head);
    ensures same: \forall integer i; 0 <= i < lw_n ==> lw_same{Pre,Post}(links, i); */
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
