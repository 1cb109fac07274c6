/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* bitmap.h - a set of up to 4096 ranks; with one summary bit per word, the first member is found in two steps. */
#ifndef LINKWEIR_BITMAP_H
#define LINKWEIR_BITMAP_H

#include <linkweir/port.h>

#define LW_BITMAP_SIZE 4096u

struct lw_bitmap {
	uint64_t summary;               /* bit w: word[w] is not 0 */
	uint64_t word[LW_BITMAP_SIZE / 64];
};

/* The set it stands for. The proofs give lw_bit(x, k), bit k of x, its meaning. */
/*@ axiomatic bit { predicate lw_bit(integer x, integer k); }
    predicate lw_member{L}(struct lw_bitmap *map, integer r) = lw_bit(\at(map->word[r / 64], L), r % 64);
    predicate lw_summed{L}(struct lw_bitmap *map) =
	\forall integer w; 0 <= w < 64 ==> (lw_bit(\at(map->summary, L), w) <==> \at(map->word[w], L) != 0); */

static inline bool lw_has_bit(uint64_t word, uint32_t bit)
{
	return (word >> bit) & 1;
}

static inline uint64_t lw_with_bit(uint64_t word, uint32_t bit)
{
	return word | (uint64_t)1 << bit;
}

static inline uint64_t lw_without_bit(uint64_t word, uint32_t bit)
{
	return word & ~((uint64_t)1 << bit);
}

static inline void lw_bitmap_clear(struct lw_bitmap *set)
{
	uint32_t w;

	set->summary = 0;
	/*@ loop invariant place: w <= 64;
	    loop invariant cleared: \forall integer i; 0 <= i < w ==> set->word[i] == 0;
	    loop assigns w, set->word[0 .. 63];
	    loop variant 64 - w; */
	for (w = 0; w < LW_BITMAP_SIZE / 64; w++)
		set->word[w] = 0;
}

static inline bool lw_bitmap_has(const struct lw_bitmap *set, uint32_t bit)
{
	return lw_has_bit(set->word[bit / 64], bit % 64);
}

static inline void lw_bitmap_add(struct lw_bitmap *set, uint32_t bit)
{
	set->word[bit / 64] = lw_with_bit(set->word[bit / 64], bit % 64);
	set->summary = lw_with_bit(set->summary, bit / 64);
}

static inline void lw_bitmap_del(struct lw_bitmap *set, uint32_t bit)
{
	uint64_t word = lw_without_bit(set->word[bit / 64], bit % 64);

	set->word[bit / 64] = word;
	if (!word)
		set->summary = lw_without_bit(set->summary, bit / 64);
}

static inline bool lw_bitmap_empty(const struct lw_bitmap *set)
{
	return !set->summary;
}

/* the smallest member; the set must not be empty */
static inline uint32_t lw_bitmap_first(const struct lw_bitmap *set)
{
	uint32_t w = LW_CTZ64(set->summary);

	return w * 64 + LW_CTZ64(set->word[w]);
}

#endif
