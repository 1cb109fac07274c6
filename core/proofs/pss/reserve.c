/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * What a queue gains while a burst is sent is a part of the burst, by the contract of lw_mul_div. Taken as given: a capacity is not 0;
 * pss_check refuses that, and pss_follow leaves the constants as they are.
 */
#include "../any_queues.h"
#include "../ctz.h"
#include "../../src/pss.c"

/*@ axiomatic parts { axiom part: \forall integer a, b, c; 0 <= a && 0 <= b <= c && 0 < c ==> a * b / c <= a; } */

/*@ requires valid: \valid_read(row + (0 .. PSS_NQPARAMS - 1)) && link_bps > 0;
    assigns \nothing; */
static struct pss_reserve pss_derive(const uint64_t *row, uint64_t link_bps);
