/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* math.h - exact 64-bit arithmetic: transmission times of lengths without division, 128-bit products and quotients. */
#ifndef LINKWEIR_MATH_H
#define LINKWEIR_MATH_H

#include "port.h"

/*
 * The transmission time of a length at a rate, bytes * 8e9 / rate ns, as one multiplication:
 * ns = (bytes * mult) >> shift, with mult = 8e9 * 2^shift / rate rounded to nearest (halves up) and shift the largest
 * <= 63 that keeps mult < 2^32. From 2 bit/s up the relative error is below 2^-31 and bytes * mult below 2^52; at 1 bit/s
 * mult is 8e9 and shift 0.
 */
struct lw_pace {
	uint64_t mult;
	uint32_t shift;
	uint32_t unused;                /* keeps the struct free of padding */
};

struct lw_u128 {
	uint64_t hi, lo;
};

/*@ assigns \result \from a, b;
    ensures exact: \result.hi * 18446744073709551616 + \result.lo == a * b; */
static inline struct lw_u128 lw_mul(uint64_t a, uint64_t b)
{
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t low = a0 * b0, mid = a1 * b0 + (low >> 32), mid2 = a0 * b1 + (uint32_t)mid;
	struct lw_u128 product;

	//@ assert half: a0 <= UINT32_MAX && b0 <= UINT32_MAX && a1 <= UINT32_MAX && b1 <= UINT32_MAX;
	//@ assert fit: a0 * b0 <= 18446744065119617025 && a1 * b0 <= 18446744065119617025 && a0 * b1 <= 18446744065119617025 && a1 * b1 <= 18446744065119617025;
	//@ assert whole: a == a1 * 4294967296 + a0 && b == b1 * 4294967296 + b0;
	//@ assert low: low == a0 * b0 && low == (low >> 32) * 4294967296 + (uint32_t)low;
	//@ assert mid: mid == a1 * b0 + (low >> 32) && mid == (mid >> 32) * 4294967296 + (uint32_t)mid;
	//@ assert mid2: mid2 == a0 * b1 + (uint32_t)mid && mid2 == (mid2 >> 32) * 4294967296 + (uint32_t)mid2;
	//@ assert high: a1 * b1 + (mid >> 32) + (mid2 >> 32) <= UINT64_MAX;
	//@ assert product: a * b == a1 * b1 * 18446744073709551616 + (a1 * b0 + a0 * b1) * 4294967296 + a0 * b0;
	product.hi = a1 * b1 + (mid >> 32) + (mid2 >> 32);
	product.lo = ((uint64_t)(uint32_t)mid2 << 32) + (uint32_t)low;
	return product;
}

/* a * b < c * d, exactly */
/*@ assigns \result \from a, b, c, d;
    ensures truth: \result == 0 || \result == 1;
    ensures exact: \result != 0 <==> a * b < c * d; */
static inline bool lw_product_less(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct lw_u128 x = lw_mul(a, b), y = lw_mul(c, d);

	return x.hi != y.hi ? x.hi < y.hi : x.lo < y.lo;
}

/* floor(a * b / c), or UINT64_MAX if the result does not fit or c is 0; up to 64 steps, so for control paths only */
/*@ assigns \result \from a, b, c;
    ensures at_most: c != 0 ==> \result <= a * b / c;
    ensures exact: c != 0 && a * b < c * 18446744073709551616 ==> \result * c <= a * b < \result * c + c; */
static inline uint64_t lw_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t top_bit = (uint64_t)1 << 63;
	struct lw_u128 n = lw_mul(a, b);
	uint64_t rest = n.hi, digits = n.lo, quotient = 0;
	uint32_t bit;

	if (rest >= c)
		return UINT64_MAX;
	if (!rest)
		return LW_DIV64(n.lo, c);
	/* long division, one binary digit per step; rest stays below c: its double, which may overflow, is formed only if below c */
	/*@ loop invariant place: bit <= 64;
	    loop invariant rest: rest < c;
	    loop invariant quotient: quotient < (1 << bit);
	    loop invariant exact: (quotient * c + rest) * 18446744073709551616 + digits == a * b * (1 << bit);
	    loop assigns bit, rest, digits, quotient; */
	for (bit = 0; bit < 64; bit++) {
		bool digit = digits >= top_bit, carry = rest + digit >= c - rest;

		digits = 2 * (digit ? digits - top_bit : digits);
		rest = carry ? rest + digit - (c - rest) : 2 * rest + digit;
		quotient = 2 * quotient + carry;
	}
	return quotient;
}

/* The pace of a rate; for control paths only, because it divides. A rate of 0 gives a pace of 0 ns per byte. */
/*@ assigns \result \from rate_bps;
    ensures shift: \result.shift <= 63;
    ensures mult: \result.mult <= 8000000000 && (rate_bps != 1 ==> \result.mult <= UINT32_MAX); */
static inline struct lw_pace lw_pace_of(uint64_t rate_bps)
{
	const uint64_t bit_ns = 8000000000u;
	struct lw_pace pace = { 0, 0, 0 };
	uint64_t rest;

	if (!rate_bps)
		return pace;
	pace.mult = LW_DIV64(bit_ns, rate_bps);
	rest = LW_MOD64(bit_ns, rate_bps);
	/* one more binary digit per step; rest stays below rate_bps: its double, which may overflow, is formed only if below that */
	/*@ loop invariant rest: rest < rate_bps;
	    loop invariant shift: pace.shift <= 63;
	    loop invariant most: pace.mult <= bit_ns && (rate_bps != 1 ==> pace.mult <= UINT32_MAX);
	    loop invariant whole: pace.shift == 0 ==> pace.mult == bit_ns / rate_bps;
	    loop assigns rest, pace.mult, pace.shift; */
	while (pace.shift < 63 && pace.mult < (1u << 31)) {
		bool carry = rest >= rate_bps - rest;

		rest = carry ? rest - (rate_bps - rest) : rest + rest;
		pace.mult = 2 * pace.mult + carry;
		pace.shift++;
	}
	if (rest && rest >= rate_bps - rest)
		pace.mult++;
	if (pace.shift && pace.mult > UINT32_MAX) {       /* rounding up has made it 2^32 */
		pace.mult >>= 1;
		pace.shift--;
	}
	return pace;
}

/* the transmission time of `bytes` in ns, rounded down */
static inline uint64_t lw_pace_ns(const struct lw_pace *pace, uint32_t bytes)
{
	return (bytes * pace->mult) >> pace->shift;
}

/* a - b, or 0 when b is the greater */
/*@ assigns \nothing;
    ensures \result == (a > b ? a - b : 0); */
static inline uint64_t lw_excess(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

#endif
