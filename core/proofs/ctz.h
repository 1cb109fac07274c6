/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* ctz.h - counts of trailing and leading zeros in C that Frama-C can analyse, in place of the compiler's builtins. */
#ifndef PROOF_CTZ_H
#define PROOF_CTZ_H

#include <linkweir/port.h>

/*@ requires bit_set: x != 0;
    assigns \nothing;
    ensures in_word: 0 <= \result < 64; */
static inline int proof_ctz(unsigned long long x)
{
	int i;

	//@ loop unroll 64;
	for (i = 0; i < 63; i++)
		if ((x >> i) & 1)
			return i;
	//@ admit last_bit: ((x >> 63) & 1) == 1;
	return 63;
}
#undef LW_CTZ64
#define LW_CTZ64(x) ((uint32_t)proof_ctz(x))

/*@ requires not_zero: x != 0;
    assigns \result \from x;
    ensures in_word: 0 <= \result < 64; */
static inline int proof_clz(unsigned long long x)
{
	int i;

	//@ loop unroll 64;
	for (i = 0; i < 63; i++)
		if (x >> (63 - i))
			return i;
	return 63;
}
#undef LW_CLZ64
#define LW_CLZ64(x) ((uint32_t)proof_clz(x))

#endif
