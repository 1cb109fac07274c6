/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* sort.h - for proofs with WP: what the counts of levels.h are, and the first of a heap. Theorems of rocq/Sort.v. */
#ifndef PROOF_SORT_H
#define PROOF_SORT_H

#include "../src/levels.h"

/*@ axiomatic levels {
      axiom own_level: \forall integer value, q; value > LW_MAX_LEVEL ==> lw_level_of(value, q) == q;
      axiom given_level: \forall integer value, q; 0 <= value <= LW_MAX_LEVEL ==> lw_level_of(value, q) == value;
      axiom some_level: \forall integer value, q; 0 <= q ==> 0 <= lw_level_of(value, q);
    }
    axiomatic sorting {
      axiom equal: \forall integer a; lw_one(a, a) == 1;
      axiom unequal: \forall integer a, b; a != b ==> lw_one(a, b) == 0;
      axiom moved{K,L}: \forall uint32_t *key, integer n, place, value; 0 <= place < n && lw_moved{K,L}(key, n, place) ==>
	lw_count{L}(key, n, value) == lw_count{K}(key, n, value) - lw_one(\at(key[place], K), value) + lw_one(\at(key[place], L), value);
      axiom unmoved{K,L}: \forall uint32_t *key, integer n, place, value; n <= place && lw_moved{K,L}(key, n, place) ==>
	lw_count{L}(key, n, value) == lw_count{K}(key, n, value);
      axiom appended{L}: \forall uint32_t *key, integer n, value; 0 <= n ==>
	lw_count{L}(key, n + 1, value) == lw_count{L}(key, n, value) + lw_one(\at(key[n], L), value);
      axiom some{L}: \forall uint32_t *key, integer n, value; 0 <= lw_count{L}(key, n, value);
      axiom somewhere{L}: \forall uint32_t *key, integer n, value; 0 < lw_count{L}(key, n, value) ==>
	\exists integer i; 0 <= i < n && \at(key[i], L) == value;
      axiom first_of_heap{L}: \forall uint32_t *key, integer n; lw_heap{L}(key, 0, n) ==> lw_at_most{L}(key, n, \at(key[0], L));
    } */

#endif
