/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * pss_reserve.h - what the user sets for a queue of pss.c and what it means: reserved rate, LR and LM, and why a setting is refused.
 */
#ifndef LINKWEIR_PSS_RESERVE_H
#define LINKWEIR_PSS_RESERVE_H

#include "levels.h"
#include <linkweir/math.h>

#define PSS_SECOND_NS 1000000000u
#define PSS_PPM 1000000u
#define PSS_MIN_RATE_BPS 10u
#define PSS_MAX_RATE_BPS 400000000000u
#define PSS_MAX_MEMORY_NS 604800000000000u      /* 7 days */
#define PSS_MAX_CREDIT_BITS ((uint64_t)1 << 60)
#define PSS_MAX_LEVEL_NS ((uint64_t)1 << 62)

enum { PSS_SAT, PSS_ON_EMPTY, PSS_EARLY, PSS_NPARAMS };
enum { PSS_EXACT, PSS_PAPER };
enum { PSS_KEEP, PSS_RESET };
enum { PSS_CHARGE, PSS_IGNORE };
enum {
	PSS_LEVEL, PSS_LOW_LEVEL, PSS_RATE, PSS_SHARE, PSS_BURST, PSS_MTU, PSS_MEMORY, PSS_LR, PSS_LM, PSS_CREDIT,
	PSS_NQPARAMS
};

struct pss_reserve {
	uint64_t rho_bps, lr_bits, lm_bits;
};

static uint64_t pss_rho_bps(const uint64_t *row, uint64_t link_bps)
{
	return row[PSS_RATE] ? row[PSS_RATE] : lw_mul_div(link_bps, row[PSS_SHARE], PSS_PPM);
}

/* What a queue that sends these bits without a pause gets ahead of its reserved rate: at most all of them. */
static uint64_t pss_gain_bits(uint64_t bits, uint64_t rho_bps, uint64_t link_bps)
{
	return lw_mul_div(bits, lw_excess(link_bps, rho_bps), link_bps);
}

/* LR covers the memory, and at least two packets of other queues; LM lets `burst` packets be sent back to back. */
static struct pss_reserve pss_derive(const uint64_t *row, uint64_t link_bps)
{
	uint64_t mtu_bits = 8 * row[PSS_MTU], others;
	struct pss_reserve r;

	r.rho_bps = pss_rho_bps(row, link_bps);
	if (r.rho_bps < PSS_MIN_RATE_BPS)       /* a share of a link that is nearly down */
		r.rho_bps = PSS_MIN_RATE_BPS;
	r.lr_bits = row[PSS_LR];
	r.lm_bits = row[PSS_LM];
	if (r.lr_bits > PSS_MAX_CREDIT_BITS) {          /* unset */
		r.lr_bits = lw_mul_div(r.rho_bps, row[PSS_MEMORY], PSS_SECOND_NS);
		others = lw_mul_div(r.rho_bps, 2 * mtu_bits, link_bps);
		if (r.lr_bits < others)
			r.lr_bits = others;
	}
	if (r.lm_bits > PSS_MAX_CREDIT_BITS) {
		uint64_t burst_bits = (row[PSS_BURST] - 1) * mtu_bits;

		r.lm_bits = r.lr_bits + pss_gain_bits(burst_bits, r.rho_bps, link_bps);
	}
	return r;
}

static bool pss_refuse(struct lw_fault *fault, uint32_t q, const char *param, const char *what)
{
	fault->what = what;
	fault->param = param;
	fault->queue = q;
	return false;
}

static bool pss_check_queue(const uint64_t *row, uint64_t link_bps, uint32_t q, uint64_t *sum_bps,
			    struct lw_fault *fault)
{
	const char *given = row[PSS_SHARE] ? "share" : "rate";
	struct pss_reserve r;

	if (row[PSS_LOW_LEVEL] == LW_UNSET) {
		if (row[PSS_RATE] || row[PSS_SHARE])
			return pss_refuse(fault, q, given, "only a controlled queue reserves a rate: give it a low_level too");
		return true;
	}
	if (!row[PSS_RATE] && !row[PSS_SHARE])
		return pss_refuse(fault, q, "rate", "a queue with a low_level needs a reservation: give rate or share");
	if (row[PSS_RATE] && row[PSS_SHARE])
		return pss_refuse(fault, q, "share", "rate and share are two names of one reservation: give only one");
	if (row[PSS_LOW_LEVEL] <= lw_level(row[PSS_LEVEL], q))
		return pss_refuse(fault, q, "low_level", "low_level must be less urgent than level: give a larger number");
	r = pss_derive(row, link_bps);
	if (pss_rho_bps(row, link_bps) < PSS_MIN_RATE_BPS)
		return pss_refuse(fault, q, given, "the reservation is below 10 bit/s: give a larger one");
	if (r.rho_bps >= link_bps)
		return pss_refuse(fault, q, given, "the reservation must be below the link's capacity: give a smaller one");
	if (r.lm_bits <= r.lr_bits && row[PSS_LM] == LW_UNSET)
		return pss_refuse(fault, q, given,
				  "the reservation leaves no bit of credit between lr and lm: give a smaller one or a larger burst");
	if (r.lm_bits <= r.lr_bits)
		return pss_refuse(fault, q, "lm", "lm must be above lr: raise lm, lower lr, or leave lm out");
	if (r.rho_bps > link_bps - *sum_bps)
		return pss_refuse(fault, q, given, "the reservations add up to more than the link: lower some");
	*sum_bps += r.rho_bps;
	return true;
}

#endif
