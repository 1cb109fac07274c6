/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * codel.h - controlled delay: one stream of packets, judged as they leave; for codel.c and fq_codel.c.
 *
 * Nichols, Jacobson, McGregor and Iyengar, RFC 8289, 2018, section 5. While every packet has waited for longer than `target`
 * for at least `interval`, packets are dropped (or marked) at instants that come closer and closer, interval / sqrt(count)
 * after one another. Nothing is dropped while no more than `mtu` bytes wait behind the packet.
 *
 * The RFC's loop takes packets until one may leave. Here one call judges one packet, and `after` records in which part of
 * that loop the packet before was dropped. interval / sqrt(count) is computed as (interval * x) / 2^32 with x the square
 * root of 2^64 / count, both rounded down. A mark counts as a drop, as in Linux.
 */
#ifndef LINKWEIR_CODEL_H
#define LINKWEIR_CODEL_H

#include "view.h"

#include <linkweir/math.h>

#define LW_TARGET_PARAM_CODEL \
	{ "target", "delay above which packets are dropped once it has lasted for an interval", NULL, 1000, 10000000000u, 5000000, LW_NS, 0 }
#define LW_INTERVAL_PARAM \
	{ "interval", "how long the delay may stay above target before the first drop; about the longest round-trip time", NULL, 1000000, 4000000000u, 100000000, \
	  LW_NS, 0 }
#define LW_MTU_PARAM \
	{ "mtu", "no drops while at most this waits behind a packet", NULL, 0, LW_MAX_PACKET_BYTES - 1, 1514, LW_BYTES, 0 }
#define LW_ECN_PARAM(on) \
	{ "ecn", "whether packets that can carry a congestion mark are marked instead of dropped", "no|yes", 0, 1, on, \
	  LW_CHOICE, 0 }
#define LW_CODEL_STATS \
	{ "dropping", "1 while packets are dropped at intervals", LW_NUMBER }, \
	{ "count", "drops since that began", LW_PKTS }

enum { LW_CODEL_TARGET, LW_CODEL_INTERVAL, LW_CODEL_MTU, LW_CODEL_ECN, LW_CODEL_NPARAMS };
enum { LW_CODEL_NSTATS = 2 };
enum lw_codel_after { LW_AFTER_PASS, LW_AFTER_FIRST, LW_AFTER_MORE };

struct lw_codel_law {
	uint64_t target_ns, interval_ns, mtu_bytes;
	bool ecn;
	uint8_t unused[7];
};

struct lw_codel {
	uint64_t first_above_ns;        /* when delays will have been above target for an interval; 0: they are not */
	uint64_t drop_next_ns;          /* while dropping: when the next drop is due */
	uint32_t count;                 /* the next drop follows after interval / sqrt(count) */
	uint32_t lastcount;             /* count as it was when dropping began */
	uint8_t dropping;
	uint8_t after;                  /* enum lw_codel_after */
	uint8_t unused[6];
};

static inline struct lw_codel_law lw_codel_law_of(const uint64_t *params)
{
	struct lw_codel_law law = { params[LW_CODEL_TARGET], params[LW_CODEL_INTERVAL], params[LW_CODEL_MTU],
				    params[LW_CODEL_ECN] != 0, { 0 } };

	return law;
}

/* interval / sqrt(count) */
static inline uint64_t lw_codel_gap_ns(uint64_t interval_ns, uint32_t count)
{
	uint64_t root = 0, bit;

	if (count < 2)
		return interval_ns;
	/* 32 steps: the largest root with root^2 * count <= 2^64 */
	for (bit = (uint64_t)1 << 31; bit; bit >>= 1) {
		struct lw_u128 square = lw_mul((root | bit) * (root | bit), count);

		if (!square.hi || (square.hi == 1 && !square.lo))
			root |= bit;
	}
	return interval_ns * root >> 32;
}

/* have packets waited longer than target for an interval? `waited_ns`: of the head packet; `behind`: bytes after it */
static inline bool lw_codel_lasts(struct lw_codel *codel, const struct lw_codel_law *law, uint64_t now_ns,
				  uint64_t waited_ns, uint64_t behind)
{
	if (waited_ns < law->target_ns || behind <= law->mtu_bytes) {
		codel->first_above_ns = 0;
		return false;
	}
	if (!codel->first_above_ns) {
		codel->first_above_ns = now_ns + law->interval_ns;
		return false;
	}
	return now_ns >= codel->first_above_ns;
}

static inline enum lw_verdict lw_codel_leaving(struct lw_codel *codel, const struct lw_codel_law *law, uint64_t now_ns,
					       uint64_t waited_ns, uint64_t behind, bool ecn)
{
	bool lasts = lw_codel_lasts(codel, law, now_ns, waited_ns, behind);
	uint8_t after = codel->after;
	uint32_t drops = codel->count - codel->lastcount;

	//@ assert due_soon: codel->drop_next_ns <= (1ULL << 63);
	codel->after = LW_AFTER_PASS;
	if (after == LW_AFTER_FIRST)            /* the RFC sends the packet after a first drop unjudged */
		return LW_PASS;
	ecn = ecn && law->ecn;
	if (codel->dropping) {
		if (!lasts) {
			codel->dropping = 0;
			return LW_PASS;
		}
		/* the schedule advances from the instant that was due, not from now, so several drops may be due at once */
		if (after == LW_AFTER_MORE)
			codel->drop_next_ns += lw_codel_gap_ns(law->interval_ns, codel->count);
		if (now_ns < codel->drop_next_ns)
			return LW_PASS;
		codel->count++;
		if (ecn) {
			codel->drop_next_ns += lw_codel_gap_ns(law->interval_ns, codel->count);
			return LW_MARK;
		}
		codel->after = LW_AFTER_MORE;
		return LW_DROP;
	}
	if (!lasts)
		return LW_PASS;
	codel->dropping = 1;
	/* dropping that begins again within 16 intervals continues at the rate it had reached */
	codel->count = drops > 1 && now_ns < codel->drop_next_ns + 16 * law->interval_ns ? drops : 1;
	codel->lastcount = codel->count;
	codel->drop_next_ns = now_ns + lw_codel_gap_ns(law->interval_ns, codel->count);
	if (ecn)
		return LW_MARK;
	codel->after = LW_AFTER_FIRST;
	return LW_DROP;
}

/* the queue is found empty, or a drop has emptied it */
static inline void lw_codel_empty(struct lw_codel *codel)
{
	codel->first_above_ns = 0;
	codel->dropping = 0;
	codel->after = LW_AFTER_PASS;
}

static inline void lw_codel_show(const struct lw_codel *codel, int64_t *values)
{
	values[0] = codel->dropping;
	values[1] = codel->count;
}

#endif
