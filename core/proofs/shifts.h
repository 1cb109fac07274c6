/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* shifts.h - for proofs with WP: what shifts and masks mean as arithmetic. Each axiom is a theorem of rocq/Bits.v with the same name. */
#ifndef PROOF_SHIFTS_H
#define PROOF_SHIFTS_H

#include <linkweir/port.h>

/*@ axiomatic shifts {
      axiom power_positive: \forall integer k; 0 <= k ==> (1 << k) >= 1;
      axiom power_zero: (1 << 0) == 1;
      axiom power_word: \forall integer k; 0 <= k <= 63 ==> (1 << k) <= 9223372036854775808;
      axiom power_next: \forall integer k, l; 0 <= k && l == k + 1 ==> (1 << l) == 2 * (1 << k);
      axiom power_64: (1 << 64) == 18446744073709551616;
      axiom shift_right: \forall integer x, k; 0 <= x && 0 <= k ==>
	(x >> k) * (1 << k) <= x < (x >> k) * (1 << k) + (1 << k) && 0 <= (x >> k) <= x;
      axiom halves: \forall integer x; 0 <= x ==> x == (x >> 32) * 4294967296 + (uint32_t)x && 0 <= (x >> 32);
      axiom upper_half: \forall integer x; 0 <= x ==> (x << 32) == x * 4294967296;
      axiom low_bits: \forall integer x, y, k; 0 <= x && 0 <= k && y == (1 << k) - 1 ==> (x & y) == x - (x >> k) * (1 << k);
      axiom low_bits_swapped: \forall integer x, y, k; 0 <= y && 0 <= k && x == (1 << k) - 1 ==> (x & y) == y - (y >> k) * (1 << k);
    } */

#endif
