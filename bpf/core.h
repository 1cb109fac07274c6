/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * core.h - includes the policy named by LINKWEIR_POLICY, unchanged.
 *
 * Inside of the core every loop has one more condition, lw_again(), which the verifier needs: the keywords `for` and `while` are macros
 * here. The Makefile copies the core's files, replaces the 0 with which loops begin by lw_zero(), and bounds one index
 * by lw_below(). Nothing else is changed. All functions are inlined, because a function of BPF has at most five arguments
 * and cannot return a structure. A policy's table has addresses of functions, which a BPF program cannot store. As the table has internal
 * linkage here, the compiler uses its entries and leaves it out.
 */
#ifndef LINKWEIR_BPF_CORE_H
#define LINKWEIR_BPF_CORE_H

#define LW_QUOTE(text) #text
#define LW_SOURCE(name) LW_QUOTE(name.c)
#define LW_TABLE_(name) lw_policy_##name
#define LW_TABLE(name) LW_TABLE_(name)
#define lw_policy LW_TABLE(LINKWEIR_POLICY)

#include <linkweir/port.h>
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang attribute push(__attribute__((internal_linkage)), apply_to = variable)
#include <linkweir/policy.h>
#pragma clang attribute pop
#pragma clang diagnostic pop
#undef LW_NOINLINE
#define LW_NOINLINE

/* A 0 that the verifier does not know. It would follow each round of a loop that begins with one that it knows. */
static volatile uint32_t lw_hidden;

static __always_inline uint32_t lw_zero(void)
{
	return lw_hidden;
}

/* `place`, which is below `end`: now the verifier knows it, too. */
static __always_inline uint32_t lw_below(uint32_t place, uint32_t end)
{
	asm volatile("" : "+r"(place));
	return place < end ? place : 0;
}

static inline void lw_clear_words(void *to, unsigned long n)
{
	uint64_t *words = (uint64_t *)to;
	uint32_t word;

	for (word = 0; word < n / 8 && lw_again(); word++)
		words[word] = 0;
}

static inline int lw_words_differ(const void *a, const void *b, unsigned long n)
{
	const uint64_t *left = (const uint64_t *)a, *right = (const uint64_t *)b;
	uint32_t word;

	for (word = 0; word < n / 8 && lw_again(); word++)
		if (left[word] != right[word])
			return 1;
	return 0;
}

#define for(...) for (__VA_ARGS__) if (!lw_again()) break; else
#define while(...) while ((__VA_ARGS__) && lw_again())
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"
#pragma clang diagnostic ignored "-Wundefined-inline"
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wdangling-else"

/* replaced below */
#define lw_sort lw_core_sort
#include "levels.h"
#undef lw_sort

/* The loops of these are verified once, and not in each place that divides. */
#define lw_mul_div lw_core_mul_div
#define lw_pace_of lw_core_pace_of
#include <linkweir/math.h>
#undef lw_mul_div
#undef lw_pace_of
#pragma clang attribute pop
#undef for
#undef while

LW_VERIFIED uint64_t lw_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	return lw_core_mul_div(a, b, c);
}

/* mult, at most 8000000000, and shift, at most 63, in one word */
LW_VERIFIED uint64_t lw_packed_pace(uint64_t rate_bps)
{
	struct lw_pace pace = lw_core_pace_of(rate_bps);

	return pace.mult << 6 | pace.shift;
}

static inline struct lw_pace lw_pace_of(uint64_t rate_bps)
{
	uint64_t packed = lw_packed_pace(rate_bps);
	struct lw_pace pace = { packed >> 6, packed & 63, 0 };

	return pace;
}

/*
 * Sorts keys in the arena, ascending: heapsort, as in the core. The core's loops have indices that the compiler adds pointers to, and the
 * verifier then follows each of their values. Here an index is added to an address, which is a pointer only while it is read or written.
 */
static __always_inline void lw_sink(uint32_t __arena *key, uint32_t parent, uint32_t n)
{
	uint32_t value = key[parent], child;

	while ((child = 2 * parent + 1) < n && lw_again()) {
		uint32_t larger = key[child];

		if (child + 1 < n && key[child + 1] > larger)
			larger = key[++child];
		if (larger <= value)
			break;
		key[parent] = larger;
		parent = child;
	}
	key[parent] = value;
}

LW_VERIFIED int lw_sort_at(uint64_t address, uint32_t n)
{
	uint32_t __arena *key = (uint32_t __arena *)address;
	uint32_t i, top;

	lw_use_arena();
	for (i = n / 2; i > 0 && lw_again(); i--)
		lw_sink(key, i - 1, n);
	for (i = n; i > 1 && lw_again(); i--) {
		top = key[0];
		key[0] = key[i - 1];
		key[i - 1] = top;
		lw_sink(key, 0, i - 1);
	}
	return 0;
}

static inline void lw_sort(uint32_t *key, uint32_t n)
{
	lw_sort_at((uint64_t)(uint32_t __arena *)key, n);
}

#define for(...) for (__VA_ARGS__) if (!lw_again()) break; else
#define while(...) while ((__VA_ARGS__) && lw_again())
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include LW_SOURCE(LINKWEIR_POLICY)
#pragma clang diagnostic pop
#pragma clang attribute pop
#undef for
#undef while

#endif
