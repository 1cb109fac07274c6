/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* bits.h - for proofs with WP: what shifts and masks of words do to single bits. Each axiom is a theorem of rocq/Bits.v with the same name. */
#ifndef PROOF_BITS_H
#define PROOF_BITS_H

#include <linkweir/port.h>

/*@ axiomatic bits {
      axiom bit: \forall integer x, k; 0 <= x && 0 <= k ==> (lw_bit(x, k) <==> ((x >> k) & 1) == 1);
      axiom bit_0: \forall integer x; 0 <= x ==> (x & 1) == 0 || (x & 1) == 1;
      axiom power_word: \forall integer k; 0 <= k <= 63 ==> (1 << k) <= 9223372036854775808;
      axiom or_bit: \forall integer x, y, b, k; 0 <= x && 0 <= b && 0 <= k && y == (1 << b) ==>
	(lw_bit(x | y, k) <==> lw_bit(x, k) || k == b);
      axiom or_bit_swapped: \forall integer x, y, b, k; 0 <= y && 0 <= b && 0 <= k && x == (1 << b) ==>
	(lw_bit(x | y, k) <==> lw_bit(y, k) || k == b);
      axiom or_some: \forall integer x, y, b; 0 <= x && 0 <= b && y == (1 << b) ==> (x | y) >= 1;
      axiom or_some_swapped: \forall integer x, y, b; 0 <= y && 0 <= b && x == (1 << b) ==> (x | y) >= 1;
      axiom and_not: \forall integer x, y, b, k; 0 <= x <= 18446744073709551615 && 0 <= b < 64 && 0 <= k && y == (uint64_t)~(1 << b) ==>
	(lw_bit(x & y, k) <==> lw_bit(x, k) && k != b);
      axiom and_not_swapped: \forall integer x, y, b, k;
	0 <= y <= 18446744073709551615 && 0 <= b < 64 && 0 <= k && x == (uint64_t)~(1 << b) ==>
	(lw_bit(x & y, k) <==> lw_bit(y, k) && k != b);
    } */

#endif
