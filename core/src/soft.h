/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * soft.h - positive floating-point numbers in integers, for quantities that grow and shrink by any factor.
 *
 * A number is one u64: the biased exponent above, a mantissa of 32 bits with its top bit set below; 0 is 0. So comparing
 * numbers is comparing integers. The value is mantissa * 2^(exponent - LW_SOFT_BIAS). Results are truncated: each
 * operation is at most 2^-31 below the exact result (a difference also at most 2^-62 of the minuend above it). Exponents
 * must stay within 2^30 of the bias, which the callers ensure; beyond that they wrap.
 */
#ifndef LINKWEIR_SOFT_H
#define LINKWEIR_SOFT_H

#include <linkweir/math.h>

#define LW_SOFT_TOP 0x80000000u         /* the top bit of every mantissa */
#define LW_SOFT_BIAS 0x80000000u
#define LW_SOFT_ONE (((uint64_t)(LW_SOFT_BIAS - 31) << 32) | LW_SOFT_TOP)
#define LW_LN2_32 2977044472u           /* ln 2, in 2^-32 */
#define LW_LOG2_E ((((uint64_t)LW_SOFT_BIAS - 31) << 32) | 3098164009u)
#define LW_LN_2 ((((uint64_t)LW_SOFT_BIAS - 32) << 32) | LW_LN2_32)

static inline uint32_t lw_soft_exponent(uint64_t a)
{
	return (uint32_t)(a >> 32);
}

/* the top bit is always set; setting it again keeps divisions and counts of zeros defined, whatever a state holds */
static inline uint64_t lw_soft_mantissa(uint64_t a)
{
	return (uint32_t)a | LW_SOFT_TOP;
}

/* m * 2^(exponent - bias); m is not 0 */
/*@ requires number: m != 0;
    assigns \result \from m, exponent; */
static inline uint64_t lw_soft_norm(uint64_t m, uint32_t exponent)
{
	uint32_t shift = LW_CLZ64(m);

	return ((uint64_t)(exponent + 32 - shift) << 32) | (m << shift) >> 32;
}

/* the same of an m whose top bit is one of the two highest */
/*@ assigns \result \from m, exponent; */
static inline uint64_t lw_soft_norm_high(uint64_t m, uint32_t exponent)
{
	uint32_t shift = m >> 63 ? 0 : 1;

	return ((uint64_t)(exponent + 32 - shift) << 32) | (m << shift) >> 32;
}

/*@ assigns \result \from value; */
static inline uint64_t lw_soft_of(uint64_t value)
{
	return value ? lw_soft_norm(value, LW_SOFT_BIAS) : 0;
}

/*@ assigns \result \from a, b; */
static inline uint64_t lw_soft_mul(uint64_t a, uint64_t b)
{
	if (!a || !b)
		return 0;
	return lw_soft_norm_high(lw_soft_mantissa(a) * lw_soft_mantissa(b),
				 lw_soft_exponent(a) + lw_soft_exponent(b) - LW_SOFT_BIAS);
}

/* 0 when b is 0 */
/*@ assigns \result \from a, b; */
static inline uint64_t lw_soft_div(uint64_t a, uint64_t b)
{
	if (!a || !b)
		return 0;
	return lw_soft_norm(LW_DIV64(lw_soft_mantissa(a) << 32, lw_soft_mantissa(b)),
			    lw_soft_exponent(a) - lw_soft_exponent(b) + LW_SOFT_BIAS - 32);
}

/* b's mantissa in 2^-31 of the last place of a, a >= b */
static inline uint64_t lw_soft_aligned(uint64_t a, uint64_t b)
{
	uint32_t apart = lw_soft_exponent(a) - lw_soft_exponent(b);

	return apart < 64 ? (lw_soft_mantissa(b) << 31) >> apart : 0;
}

/*@ assigns \result \from a, b; */
static inline uint64_t lw_soft_add(uint64_t a, uint64_t b)
{
	uint64_t more = a > b ? a : b, less = a > b ? b : a, m;
	uint32_t apart = lw_soft_exponent(more) - lw_soft_exponent(less), carry;

	if (!less)
		return more;
	m = lw_soft_mantissa(more) + (apart < 32 ? lw_soft_mantissa(less) >> apart : 0);
	carry = (uint32_t)(m >> 32);
	return ((uint64_t)(lw_soft_exponent(more) + carry) << 32) | m >> carry;
}

/* A sum that grows from 0: the same bits as lw_soft_add(sum, lw_soft_mul(a, lw_soft_of(n))), in fewer steps. */
struct lw_soft_sum {
	uint64_t mantissa;              /* 0: nothing yet */
	uint32_t exponent;
};

static inline uint64_t lw_soft_total(const struct lw_soft_sum *sum)
{
	return (uint64_t)sum->exponent << 32 | sum->mantissa;
}

/* a is not 0 */
/*@ requires \valid(sum);
    assigns *sum \from *sum, a, n; */
static inline void lw_soft_gather(struct lw_soft_sum *sum, uint64_t a, uint64_t n)
{
	uint32_t shift = sum->exponent - lw_soft_exponent(a);
	uint64_t product = lw_soft_mantissa(a) * (uint32_t)n;   /* a n, when n is below 2^32 */

	if (shift > 63 || (n | product >> shift) >> 32) {       /* too far apart, or the sum is smaller, as at first */
		uint64_t total = lw_soft_add(lw_soft_total(sum), lw_soft_mul(a, lw_soft_of(n)));

		sum->mantissa = (uint32_t)total;
		sum->exponent = lw_soft_exponent(total);
		return;
	}
	sum->mantissa += product >> shift;      /* truncating twice in a row gives the same as once */
	if (sum->mantissa >> 32) {
		sum->mantissa >>= 1;
		sum->exponent++;
	}
}

/* a - b, or 0 if b is greater */
/*@ assigns \result \from a, b; */
static inline uint64_t lw_soft_sub(uint64_t a, uint64_t b)
{
	uint64_t m;

	if (a <= b || !b)
		return a <= b ? 0 : a;
	m = (lw_soft_mantissa(a) << 31) - lw_soft_aligned(a, b);
	return m ? lw_soft_norm(m, lw_soft_exponent(a) - 31) : 0;
}

/* a * 2^-n; 0 if its exponent would leave the safe range */
/*@ assigns \result \from a, n; */
static inline uint64_t lw_soft_halve(uint64_t a, uint32_t n)
{
	if (!a || lw_soft_exponent(a) < LW_SOFT_BIAS - (1u << 30) + n)
		return 0;
	return a - ((uint64_t)n << 32);
}

/* 2^(x / 2^32); at most 2^-27 below it */
/*@ assigns \result \from x; */
static inline uint64_t lw_soft_exp2(uint64_t x)
{
	static const uint32_t sixteenth[16] = {         /* 2^(i/16), in 2^-31 */
		0x80000000, 0x85aac368, 0x8b95c1e4, 0x91c3d374, 0x9837f052, 0x9ef53261, 0xa5fed6aa, 0xad583eea,
		0xb504f334, 0xbd08a39f, 0xc5672a11, 0xce248c15, 0xd744fccb, 0xe0ccdeec, 0xeac0c6e8, 0xf5257d15,
	};
	static const uint32_t fine[16] = {              /* 2^(i/256), in 2^-31 */
		0x80000000, 0x8058d7d3, 0x80b1ed50, 0x810b40a2, 0x8164d1f4, 0x81bea171, 0x8218af43, 0x8272fb98,
		0x82cd8699, 0x83285072, 0x8383594f, 0x83dea15c, 0x843a28c4, 0x8495efb3, 0x84f1f656, 0x854e3cd9,
	};
	uint32_t fraction = (uint32_t)x;
	uint64_t rest = ((uint64_t)(fraction & 0xffffff) * LW_LN2_32) >> 24;    /* < 2^-8, in 2^-40 */
	uint64_t m = (uint64_t)sixteenth[fraction >> 28] * fine[fraction >> 24 & 15] >> 31;

	rest += rest * rest >> 41;                      /* e^y - 1 is y + y^2 / 2 so near 0 */
	m += m * rest >> 40;
	return lw_soft_norm(m, (uint32_t)(x >> 32) + LW_SOFT_BIAS - 31);
}

/* log2(a) in 2^-24; a is not 0 */
/*@ assigns \result \from a;
    ensures bounded: -(1LL << 56) < \result < (1LL << 56); */
static inline int64_t lw_soft_log2(uint64_t a)
{
	int64_t log = ((int64_t)lw_soft_exponent(a) + 31 - (int64_t)LW_SOFT_BIAS) * (1 << 24);
	uint64_t m = lw_soft_mantissa(a);
	int32_t bit;

	for (bit = 1 << 23; bit; bit >>= 1) {
		uint32_t more;

		m = m * m >> 31;
		more = (uint32_t)(m >> 32);     /* 0 or 1 with equal chance, so no branch */
		m = (uint32_t)(m >> more);
		log += more ? bit : 0;
	}
	return log;
}

/* log2(a) in 2^-24, up to 0.0861 below it: between powers of two a straight line; a is not 0 */
static inline int64_t lw_soft_log2_below(uint64_t a)
{
	return ((int64_t)lw_soft_exponent(a) + 31 - (int64_t)LW_SOFT_BIAS) * (1 << 24) +
	       (int64_t)((lw_soft_mantissa(a) & (LW_SOFT_TOP - 1)) >> 7);
}

/* floor(a * 2^n), at most `most` < 2^63 */
/*@ assigns \result \from a, n, most;
    ensures most: \result <= most; */
static inline uint64_t lw_soft_floor(uint64_t a, uint32_t n, uint64_t most)
{
	uint32_t shift = lw_soft_exponent(a) + n - LW_SOFT_BIAS;        /* of the mantissa, in two's complement */
	uint64_t value;

	if (!a)
		return 0;
	if (shift >> 31) {
		shift = 0 - shift;
		value = shift < 32 ? lw_soft_mantissa(a) >> shift : 0;
	} else {
		value = shift < 32 ? lw_soft_mantissa(a) << shift : UINT64_MAX;
	}
	return value < most ? value : most;
}

/*@ assigns \result \from a; */
static inline uint64_t lw_soft_sqrt(uint64_t a)
{
	uint32_t exponent = lw_soft_exponent(a) - 32, bit;
	uint64_t m = lw_soft_mantissa(a) << 32, root = 0;

	if (!a)
		return 0;
	if (exponent & 1) {
		m >>= 1;
		exponent++;
	}
	for (bit = 1u << 31; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= m)
			root |= bit;
	return lw_soft_norm(root, LW_SOFT_BIAS / 2 + exponent / 2);
}

#endif
