/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* The arithmetic of math.h, for all arguments: products and quotients are exact, and the pace of a rate stays within its contract. */
#include "shifts.h"

/*@ axiomatic products {
      axiom half_product: \forall integer x, y; 0 <= x <= UINT32_MAX && 0 <= y <= UINT32_MAX ==> x * y <= 18446744065119617025;
    } */

#include <linkweir/math.h>
