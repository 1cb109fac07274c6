/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* math.h - exact 64-bit arithmetic: lengths to times without division, 128-bit products and quotients. */
#ifndef LINKWEIR_MATH_H
#define LINKWEIR_MATH_H

#include "port.h"

/* floor(bytes * 8e9 / rate) as one multiplication: ns = (bytes * mult) >> shift, mult < 2^32, relative error < 2^-31. */
struct lw_pace {
	uint64_t mult;
	uint32_t shift;
	uint32_t unused;                /* keeps the struct free of padding */
};

struct lw_u128 {
	uint64_t hi, lo;
};

static inline struct lw_u128 lw_mul(uint64_t a, uint64_t b)
{
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t low = a0 * b0, mid = a1 * b0 + (low >> 32), mid2 = a0 * b1 + (uint32_t)mid;
	struct lw_u128 product;

	product.hi = a1 * b1 + (mid >> 32) + (mid2 >> 32);
	product.lo = (mid2 << 32) | (uint32_t)low;
	return product;
}

/* a * b < c * d, exactly */
static inline bool lw_product_less(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct lw_u128 x = lw_mul(a, b), y = lw_mul(c, d);

	return x.hi != y.hi ? x.hi < y.hi : x.lo < y.lo;
}

/* floor(a * b / c), UINT64_MAX when it does not fit or c is 0; 64 steps, for control paths */
static inline uint64_t lw_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
	struct lw_u128 n = lw_mul(a, b);
	uint64_t rest = n.hi, quotient = 0;
	uint32_t bit;

	if (rest >= c)
		return UINT64_MAX;
	if (!rest)
		return LW_DIV64(n.lo, c);
	for (bit = 0; bit < 64; bit++) {
		bool carry = (rest >> 63) != 0;

		rest = (rest << 1) | (n.lo >> 63);
		n.lo <<= 1;
		quotient <<= 1;
		if (carry || rest >= c) {
			rest -= c;
			quotient |= 1;
		}
	}
	return quotient;
}

#endif
