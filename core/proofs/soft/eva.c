/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* The bodies of soft.h over all arguments, numbers or not: the policies are analysed with their contracts instead. */
#include "../ctz.h"
#include "__fc_builtin.h"
#include "../../src/soft.h"

static uint64_t any(void)
{
	return Frama_C_unsigned_long_long_interval(0, UINT64_MAX);
}

int main(void)
{
	uint32_t n = Frama_C_unsigned_int_interval(0, UINT32_MAX);
	uint64_t a = any(), b = any(), value = any(), x = any();
	struct lw_soft_sum sum = { Frama_C_unsigned_int_interval(0, UINT32_MAX), n };

	lw_soft_of(value);
	lw_soft_mul(a, b);
	lw_soft_div(a, b);
	lw_soft_add(a, b);
	lw_soft_sub(a, b);
	lw_soft_halve(a, n);
	lw_soft_exp2(x);
	lw_soft_log2(a);
	lw_soft_floor(a, n, value >> 1);
	lw_soft_sqrt(a);
	lw_soft_gather(&sum, a, value);
	return 0;
}
