/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* The bodies of math.h over all arguments: pss and pds are analysed with their contracts instead. */
#include "__fc_builtin.h"
#include <linkweir/math.h>

int main(void)
{
	uint64_t a = Frama_C_unsigned_long_long_interval(0, UINT64_MAX), b = Frama_C_unsigned_long_long_interval(0, UINT64_MAX);
	uint64_t c = Frama_C_unsigned_long_long_interval(0, UINT64_MAX), d = Frama_C_unsigned_long_long_interval(0, UINT64_MAX);
	uint32_t bytes = Frama_C_unsigned_int_interval(0, (1u << 20) - 1);
	struct lw_pace pace;

	lw_mul_div(a, b, c);
	lw_product_less(a, b, c, d);
	lw_excess(a, b);
	pace = lw_pace_of(Frama_C_unsigned_long_long_interval(0, 400000000000u));
	lw_pace_ns(&pace, bytes);
	return 0;
}
