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
#define LW_LEVEL_PARAM(help_) \
	{ "level", help_, NULL, 0, LW_MAX_LEVEL, LW_UNSET, LW_NUMBER, 0 }

/* a level that was not given is the queue's index */
static inline uint32_t lw_level(uint64_t value, uint32_t q)
{
	return value == LW_UNSET ? q : (uint32_t)value;
}

/*
 * Is the level in column `at` of queue q, or (when `low_at` < nqparams) the one given in column `low_at`, also a level
 * of an earlier slot? The first such queue and column are told. 16 passes over the queues with half a kilobyte of stack.
 */
static inline bool lw_levels_clash(const uint64_t *qparams, uint32_t nqueues, uint32_t nqparams, uint32_t at,
				   uint32_t low_at, uint32_t *clash_queue, uint32_t *clash_column)
{
	uint64_t seen[LW_BITMAP_SIZE / 64];
	uint32_t base, q, last = nqueues;

	for (base = 0; base <= LW_MAX_LEVEL; base += LW_BITMAP_SIZE) {
		memset(seen, 0, sizeof(seen));
		for (q = 0; q < last; q++) {
			const uint64_t *row = qparams + (size_t)q * nqparams;
			uint32_t low;

			for (low = 0; low < 2; low++) {
				uint32_t column = low ? low_at : at, level;
				uint64_t bit;

				if (low && (low_at >= nqparams || row[low_at] == LW_UNSET))
					continue;
				level = lw_level(row[column], q) - base;
				if (level >= LW_BITMAP_SIZE)
					continue;
				bit = (uint64_t)1 << (level & 63);
				if (seen[level >> 6] & bit) {
					*clash_queue = q;
					*clash_column = column;
					last = q;
					break;
				}
				seen[level >> 6] |= bit;
			}
		}
	}
	return last < nqueues;
}

static inline void lw_sift_down(uint32_t *key, uint32_t parent, uint32_t n)
{
	uint32_t value = key[parent], child;

	for (child = 2 * parent + 1; child < n; child = 2 * parent + 1) {
		if (child + 1 < n && key[child + 1] > key[child])
			child++;
		if (key[child] <= value)
			break;
		key[parent] = key[child];
		parent = child;
	}
	key[parent] = value;
}

/* ascending, in place, O(n log n): heapsort */
static inline void lw_sort(uint32_t *key, uint32_t n)
{
	uint32_t i;

	for (i = n / 2; i-- > 0;)
		lw_sift_down(key, i, n);
	for (i = n; i-- > 1;) {
		uint32_t top = key[0];

		key[0] = key[i];
		key[i] = top;
		lw_sift_down(key, 0, i);
	}
}

#endif
