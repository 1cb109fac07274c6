/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * levels.h - distinct priority levels: finding two that are equal, and ranking them.
 *
 * A user numbers levels 0..65535 with gaps; a bitmap wants 0, 1, 2... Both functions are for control paths.
 */
#ifndef LINKWEIR_LEVELS_H
#define LINKWEIR_LEVELS_H

#include "bitmap.h"
#include <linkweir/policy.h>

#define LW_MAX_LEVEL 65535u
#define LW_LEVELS_AT_ONCE 1024u         /* a bit for each of them is on the stack */
#define LW_LEVEL_PARAM(help_) \
	{ "level", help_, NULL, 0, LW_MAX_LEVEL, LW_UNSET, LW_NUMBER, 0 }

/*@ axiomatic lw_levels { logic integer lw_level_of(integer value, integer q); } */

/* a level that was not given is the queue's index */
/*@ assigns \nothing;
    ensures level: \result == lw_level_of(value, q); */
static inline uint32_t lw_level(uint64_t value, uint32_t q)
{
	return value > LW_MAX_LEVEL ? q : (uint32_t)value;
}

/*
 * Do two levels clash? A queue has the level in column `at` and, if `low_at` < nqparams and it is set, the one in column
 * `low_at`. Returns the first queue and column whose level an earlier one has. It passes over the queues 64 times, for 1024 levels
 * each, so that 128 bytes of stack are enough.
 */
/*@ assigns *clash_queue, *clash_column \from indirect:qparams[0 .. nqueues * nqparams - 1], nqueues, at, low_at;
    assigns \result \from indirect:qparams[0 .. nqueues * nqparams - 1], nqueues;
    ensures truth: \result == 0 || \result == 1;
    ensures queue: \initialized(clash_queue) && *clash_queue <= nqueues;
    ensures column: \initialized(clash_column) && (*clash_column == at || *clash_column == low_at); */
static inline bool lw_levels_clash(const uint64_t *qparams, uint32_t nqueues, uint32_t nqparams, uint32_t at,
				   uint32_t low_at, uint32_t *clash_queue, uint32_t *clash_column)
{
	uint64_t seen[LW_LEVELS_AT_ONCE / 64];
	uint32_t base, q;

	*clash_queue = nqueues;
	*clash_column = at;
	for (base = 0; base <= LW_MAX_LEVEL; base += LW_LEVELS_AT_ONCE) {
		memset(seen, 0, sizeof(seen));
		for (q = 0; q < *clash_queue; q++) {
			const uint64_t *row = qparams + (size_t)q * nqparams;
			uint32_t low;

			for (low = 0; low < 2; low++) {
				uint32_t column = low ? low_at : at, level;
				uint64_t bit;

				if (low && (low_at >= nqparams || row[low_at] == LW_UNSET))
					continue;
				level = lw_level(row[column], q);
				if (level / LW_LEVELS_AT_ONCE != base / LW_LEVELS_AT_ONCE)
					continue;
				level %= LW_LEVELS_AT_ONCE;
				bit = (uint64_t)1 << (level & 63);
				if (seen[level >> 6] & bit) {
					*clash_queue = q;       /* ends the loop over queues, and bounds the next passes */
					*clash_column = column;
					break;
				}
				seen[level >> 6] |= bit;
			}
		}
	}
	return *clash_queue < nqueues;
}

/*
 * A key is a level and, in the low bits, the queue that has it: key % LW_BITMAP_SIZE is the queue. Sorting only moves keys:
 * each is there as often afterwards, and what holds for all of them holds as well. For the proofs, lw_count is how often a value
 * is among the first n keys, lw_one is 1 for two equal numbers and 0 otherwise, and lw_good is any property of a key.
 */
/*@ axiomatic lw_counts {
      logic integer lw_count{L}(uint32_t *key, integer n, integer value) reads key[0 .. n - 1];
      logic integer lw_one(integer a, integer b);
      predicate lw_good(integer key);
    }
    predicate lw_all_good{L}(uint32_t *key, integer n) = \forall integer i; 0 <= i < n ==> lw_good(\at(key[i], L));
    predicate lw_queues_below{L}(uint32_t *key, integer n, integer bound) =
	\forall integer i; 0 <= i < n ==> \at(key[i], L) % LW_BITMAP_SIZE < bound;
    predicate lw_at_most{L}(uint32_t *key, integer n, integer most) = \forall integer i; 0 <= i < n ==> \at(key[i], L) <= most;
    predicate lw_moved{K,L}(uint32_t *key, integer n, integer place) =
	\forall integer i; 0 <= i < n && i != place ==> \at(key[i], L) == \at(key[i], K);
    predicate lw_heap{L}(uint32_t *key, integer from, integer n) = \forall integer p, c;
	from <= p < c < n && (c == 2 * p + 1 || c == 2 * p + 2) ==> \at(key[c], L) <= \at(key[p], L);
    predicate lw_ascending{L}(uint32_t *key, integer from, integer n) =
	\forall integer i, j; from <= i <= j < n ==> \at(key[i], L) <= \at(key[j], L);
    predicate lw_below{L}(uint32_t *key, integer place, integer n) =
	\forall integer i, j; 0 <= i < place <= j < n ==> \at(key[i], L) <= \at(key[j], L); */

/*@ requires room: \valid(key + place);
    assigns key[place];
    ensures put: key[place] == value;
    ensures counts: \forall integer n, v; place < n ==>
	lw_count(key, n, v) == lw_count{Pre}(key, n, v) - lw_one(\old(key[place]), v) + lw_one(value, v);
    ensures same: \forall integer n, v; n <= place ==> lw_count(key, n, v) == lw_count{Pre}(key, n, v); */
static inline void lw_put(uint32_t *key, uint32_t place, uint32_t value)
{
	key[place] = value;
	//@ assert moved: \forall integer n; lw_moved{Pre,Here}(key, n, place);
}

/*@ requires room: parent < n <= 2 * LW_BITMAP_SIZE && \valid(key + (0 .. n - 1));
    requires heap: lw_heap(key, parent + 1, n);
    assigns key[0 .. n - 1];
    ensures kept: \forall integer bound; lw_queues_below{Pre}(key, n, bound) ==> lw_queues_below{Post}(key, n, bound);
    ensures good: lw_all_good{Pre}(key, n) ==> lw_all_good{Post}(key, n);
    ensures most: \forall integer most; lw_at_most{Pre}(key, n, most) ==> lw_at_most{Post}(key, n, most);
    ensures same: \forall integer all, v; n <= all ==> lw_count(key, all, v) == lw_count{Pre}(key, all, v);
    ensures heap: lw_heap(key, \old(parent), n); */
static inline void lw_sift_down(uint32_t *key, uint32_t parent, uint32_t n)
{
	uint32_t value = key[parent], child;

	/*@ loop invariant place: \at(parent, Pre) <= parent < n && child == 2 * parent + 1;
	    loop invariant kept: \forall integer bound; lw_queues_below{Pre}(key, n, bound) ==>
			lw_queues_below{Here}(key, n, bound) && value % LW_BITMAP_SIZE < bound;
	    loop invariant good: lw_all_good{Pre}(key, n) ==> lw_all_good{Here}(key, n) && lw_good(value);
	    loop invariant most: \forall integer most; lw_at_most{Pre}(key, n, most) ==> lw_at_most{Here}(key, n, most) && value <= most;
	    loop invariant same: \forall integer all, v; n <= all ==>
			lw_count(key, all, v) - lw_one(key[parent], v) + lw_one(value, v) == lw_count{Pre}(key, all, v);
	    loop invariant below: lw_heap(key, \at(parent, Pre) + 1, n);
	    loop invariant top: parent != \at(parent, Pre) ==> lw_heap(key, \at(parent, Pre), n) && value < key[parent];
	    loop assigns key[0 .. n - 1], parent, child;
	    loop variant n - parent; */
	for (child = 2 * parent + 1; child < n; child = 2 * parent + 1) {
		if (child + 1 < n && key[child + 1] > key[child])
			child++;
		if (key[child] <= value)
			break;
		//@ assert larger: \forall integer c; c < n && (c == 2 * parent + 1 || c == 2 * parent + 2) ==> key[c] <= key[child];
		lw_put(key, parent, key[child]);
		parent = child;
	}
	lw_put(key, parent, value);
}

/* ascending, in place, O(n log n): heapsort */
/*@ requires room: n <= 2 * LW_BITMAP_SIZE && \valid(key + (0 .. n - 1));
    assigns key[0 .. n - 1] \from key[0 .. n - 1];
    ensures kept: \forall integer bound; lw_queues_below{Pre}(key, n, bound) ==> lw_queues_below{Post}(key, n, bound);
    ensures same: \forall integer v; lw_count(key, n, v) == lw_count{Pre}(key, n, v);
    ensures good: lw_all_good{Pre}(key, n) ==> lw_all_good{Post}(key, n);
    ensures ascending: lw_ascending(key, 0, n); */
static inline void lw_sort(uint32_t *key, uint32_t n)
{
	uint32_t i;

	/*@ loop invariant place: 0 <= i <= n / 2;
	    loop invariant kept: \forall integer bound; lw_queues_below{Pre}(key, n, bound) ==> lw_queues_below{Here}(key, n, bound);
	    loop invariant good: lw_all_good{Pre}(key, n) ==> lw_all_good{Here}(key, n);
	    loop invariant same: \forall integer v; lw_count(key, n, v) == lw_count{Pre}(key, n, v);
	    loop invariant heap: lw_heap(key, i, n);
	    loop assigns i, key[0 .. n - 1];
	    loop variant i; */
	for (i = n / 2; i > 0; i--)
		lw_sift_down(key, i - 1, n);
	/*@ loop invariant place: 0 <= i <= n;
	    loop invariant kept: \forall integer bound; lw_queues_below{Pre}(key, n, bound) ==> lw_queues_below{Here}(key, n, bound);
	    loop invariant good: lw_all_good{Pre}(key, n) ==> lw_all_good{Here}(key, n);
	    loop invariant same: \forall integer v; lw_count(key, n, v) == lw_count{Pre}(key, n, v);
	    loop invariant heap: lw_heap(key, 0, i);
	    loop invariant ascending: lw_ascending(key, i, n);
	    loop invariant below: lw_below(key, i, n);
	    loop assigns i, key[0 .. n - 1];
	    loop variant i; */
	for (i = n; i > 1; i--) {
		uint32_t top = key[0];

		//@ assert top: lw_at_most(key, i, top);
		lw_put(key, 0, key[i - 1]);
		lw_put(key, i - 1, top);
		/*@ assert swapped: \forall integer bound; lw_queues_below{Pre}(key, n, bound) ==>
				lw_queues_below{Here}(key, n, bound) && lw_queues_below{Here}(key, i - 1, bound); */
		//@ assert good: lw_all_good{Pre}(key, n) ==> lw_all_good{Here}(key, n) && lw_all_good{Here}(key, i - 1);
		//@ assert most: lw_at_most(key, i - 1, top);
		lw_sift_down(key, 0, i - 1);
	}
}

#endif
