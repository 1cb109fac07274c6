/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * What a queue gains while a burst is sent is a part of the burst, and no sum of credits overflows, by the contract of lw_mul_div. Taken as
 * given: the ranges of the parameters' table; the capacity is 1 bit/s to 1 Tbit/s (pss_check refuses 0, and pss_follow leaves the
 * constants as they are).
 */
#include "../any_queues.h"
#include "../ctz.h"
#include "../../src/pss.c"

/*@ axiomatic parts {
      axiom part: \forall integer a, b, c; 0 <= a && 0 <= b <= c && 0 < c ==> a * b / c <= a;
      axiom memory_part: \forall integer a, b; 0 <= a <= 1000000000000 && 0 <= b <= PSS_MAX_MEMORY_NS ==>
	a * b / PSS_SECOND_NS <= 604800000000000000;
      axiom packet_part: \forall integer a, b, c; 0 <= a <= 1000000000000 && 0 <= b <= 16777216 && 0 < c ==>
	a * b / c <= 16777216000000000000;
    } */

/*@ requires valid: \valid_read(row + (0 .. PSS_NQPARAMS - 1)) && 0 < link_bps <= 1000000000000;
    requires rate: row[PSS_RATE] <= PSS_MAX_RATE_BPS && row[PSS_SHARE] < PSS_PPM;
    assigns \nothing;
    ensures most: \result <= 1000000000000; */
static uint64_t pss_rho_bps(const uint64_t *row, uint64_t link_bps);

/*@ requires valid: 0 < link_bps;
    assigns \nothing;
    ensures part: \result <= bits; */
static uint64_t pss_gain_bits(uint64_t bits, uint64_t rho_bps, uint64_t link_bps);

/*@ requires valid: \valid_read(row + (0 .. PSS_NQPARAMS - 1)) && 0 < link_bps <= 1000000000000;
    requires rate: row[PSS_RATE] <= PSS_MAX_RATE_BPS && row[PSS_SHARE] < PSS_PPM;
    requires packets: 2 <= row[PSS_BURST] <= 1048576 && row[PSS_MTU] < LW_MAX_PACKET_BYTES && row[PSS_MEMORY] <= PSS_MAX_MEMORY_NS;
    assigns \nothing;
    ensures least: \result.rho_bps >= PSS_MIN_RATE_BPS; */
static struct pss_reserve pss_derive(const uint64_t *row, uint64_t link_bps);
