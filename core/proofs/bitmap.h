/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* bitmap.h - for proofs with WP: the set that a bitmap stands for, and what each function of ../src/bitmap.h does to it. */
#ifndef PROOF_BITMAP_H
#define PROOF_BITMAP_H

#include "ctz.h"
#include "../src/bitmap.h"

/* About lw_bit. The other axioms are in bits.h, which only the proofs of the functions of single words need. */
/*@ axiomatic bits_of_words {
      axiom zero_bits: \forall integer k; 0 <= k ==> !lw_bit(0, k);
      axiom no_bits: \forall integer x; 0 <= x <= 18446744073709551615 && x != 0 ==> \exists integer k; 0 <= k < 64 && lw_bit(x, k);
    } */

/* The builtin that ctz.h stands for: assumed. */
/*@ ensures bit: lw_bit(x, \result);
    ensures lowest: \forall integer k; 0 <= k < \result ==> !lw_bit(x, k); */
static inline int proof_ctz(unsigned long long x);

/*@ requires range: bit < 64;
    assigns \nothing;
    ensures has: \result != 0 <==> lw_bit(word, bit); */
static inline bool lw_has_bit(uint64_t word, uint32_t bit);

/*@ requires range: bit < 64;
    assigns \nothing;
    ensures some: \result != 0;
    ensures bits: \forall integer k; 0 <= k < 64 ==> (lw_bit(\result, k) <==> lw_bit(word, k) || k == bit); */
static inline uint64_t lw_with_bit(uint64_t word, uint32_t bit);

/*@ requires range: bit < 64;
    assigns \nothing;
    ensures empty: word == 0 ==> \result == 0;
    ensures none: \result == 0 ==> \forall integer k; 0 <= k < 64 && k != bit ==> !lw_bit(word, k);
    ensures bits: \forall integer k; 0 <= k < 64 ==> (lw_bit(\result, k) <==> lw_bit(word, k) && k != bit); */
static inline uint64_t lw_without_bit(uint64_t word, uint32_t bit);

/*@ requires valid: \valid(map);
    assigns map->summary, map->word[0 .. 63];
    ensures summed: lw_summed(map);
    ensures none: \forall integer r; 0 <= r < LW_BITMAP_SIZE ==> !lw_member(map, r); */
static inline void lw_bitmap_clear(struct lw_bitmap *map);

/*@ requires valid: \valid_read(map) && bit < LW_BITMAP_SIZE;
    assigns \nothing;
    ensures has: \result != 0 <==> lw_member(map, bit); */
static inline bool lw_bitmap_has(const struct lw_bitmap *map, uint32_t bit);

/*@ requires valid: \valid(map) && bit < LW_BITMAP_SIZE;
    requires summed: lw_summed(map);
    assigns map->summary, map->word[0 .. 63];
    ensures summed: lw_summed(map);
    ensures added: \forall integer r; 0 <= r < LW_BITMAP_SIZE ==>
	(lw_member(map, r) <==> lw_member{Pre}(map, r) || r == bit); */
static inline void lw_bitmap_add(struct lw_bitmap *map, uint32_t bit);

/*@ requires valid: \valid(map) && bit < LW_BITMAP_SIZE;
    requires summed: lw_summed(map);
    assigns map->summary, map->word[0 .. 63];
    ensures summed: lw_summed(map);
    ensures deleted: \forall integer r; 0 <= r < LW_BITMAP_SIZE ==>
	(lw_member(map, r) <==> lw_member{Pre}(map, r) && r != bit); */
static inline void lw_bitmap_del(struct lw_bitmap *map, uint32_t bit);

/*@ requires valid: \valid_read(map);
    requires summed: lw_summed(map);
    assigns \nothing;
    ensures none: \result != 0 ==> \forall integer r; 0 <= r < LW_BITMAP_SIZE ==> !lw_member(map, r);
    ensures some: \result == 0 ==> map->summary != 0; */
static inline bool lw_bitmap_empty(const struct lw_bitmap *map);

/*@ requires valid: \valid_read(map);
    requires summed: lw_summed(map);
    requires some: map->summary != 0;
    assigns \nothing;
    ensures range: \result < LW_BITMAP_SIZE;
    ensures member: lw_member(map, \result);
    ensures least: \forall integer r; 0 <= r < \result ==> !lw_member(map, r); */
static inline uint32_t lw_bitmap_first(const struct lw_bitmap *map);

#endif
