/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * invariants.h - what must hold in every life of a scheduler (body.h), in addition to what plane.h checks.
 *
 *   fifo        the earliest head packet is picked
 *   strict      the smallest level is picked; between levels also by wrr and drr
 *   rr          while a queue stays eligible, at most n - 1 packets of others are sent between two of its own
 *   wrr         within a level, at most the others' weights (burst), or their weights + 1 each (smooth)
 *   drr         within a level, at most r quanta + one packet of each other queue, r = rounds that its packet needs
 *   pss         the smallest current level is picked; credits are not negative; no queue below LR stays at its low level;
 *               what a controlled queue sends at its high level conforms to a leaky bucket of its rate and of LM + one packet
 *               + what leaks while that packet is sent
 *   pf, codes   the largest weight * rate / mean is picked, as far as the means shown are exact
 *   codes       a packet is dropped on leaving exactly if it has waited longer than its timeout
 *   codel       the earliest head packet is picked; no packet is dropped or marked that waited less than the target or has
 *               no more than mtu bytes behind it in all queues; the latter also in fq_codel
 *   fq_codel    at most `limit` packets and `memory` bytes remain, unless LW_MOST_DROPS were dropped; the queue with the
 *               most bytes loses first
 *   pds         the largest d * wait is picked; an arrival costs at most two packets, and exactly two while more than `limit`
 *               remain; without early drops none is dropped below it; the ring counts exactly the last k arrivals, the
 *               infinite history all
 *   dualpi2     the earliest head packet of its kind is picked; while both kinds wait, their bytes differ from their shares by
 *               at most two packets; no packet is dropped or marked that has less than two mtu behind it, unless it is an L4S
 *               one that waited longer than the step; an arrival drops exactly what is above `limit` and `memory`
 *
 * The bounds on waiting hold while the data plane sends what was picked and the parameters stay the same; otherwise they are
 * no longer checked in this life (`counting`).
 */
#ifndef LINKWEIR_TESTS_INVARIANTS_H
#define LINKWEIR_TESTS_INVARIANTS_H

#include "plane.h"

#include <linkweir/math.h>

#define BODY_MAX_QUEUES 64u
#define BODY_DAY_NS 86400000000000u
#define BODY_LATEST_NS ((uint64_t)1 << 61)

/* bits that a controlled pss queue has sent at its high level beyond its rate; `rest` in 1e-9 bits */
struct body_bucket {
	uint64_t bits, rest;
	uint64_t at_ns;
	uint64_t charged_bits;          /* in total, for the rounding of paces */
};

/* Variants of a life; all must give the same answers. */
enum body_way {
	BODY_STILL,
	BODY_MOVING,                    /* the state moves to another address after every operation */
	BODY_REPEATING                  /* every operation is followed by rated() without news and change() without changes */
};

struct body_counts {
	unsigned long lives, refused, operations, sends, drops, waits, buckets;
	uint64_t digest;                /* of all answers: the same on every machine */
};

struct body {
	struct plane p;
	const uint8_t *data;
	size_t size, at;
	bool ended;
	bool trace;
	bool may_disturb;               /* operations that end `counting` are decoded too */
	bool counting;
	uint64_t digest;                /* of picks and drops */
	uint64_t seen_ns;
	uint64_t init_link_bps, least_link_bps;
	uint32_t longest_bytes;
	uint64_t arrivals;
	uint64_t ecn;                   /* bits for packets that can carry a mark */
	uint64_t wait_pkts[BODY_MAX_QUEUES], wait_bytes[BODY_MAX_QUEUES];
	struct body_bucket buckets[BODY_MAX_QUEUES];
	struct body_counts *counts;
};

/* ---- parameters ---- */

static uint32_t body_index(const struct lw_param *params, uint32_t n, const char *name)
{
	uint32_t i;

	for (i = 0; i < n && strcmp(params[i].name, name) != 0; i++)
		;
	return i;
}

/* parameter `name` of queue q; NULL if the policy has none of that name */
static uint64_t *body_of(struct body *b, uint32_t q, const char *name)
{
	const struct lw_policy *policy = b->p.policy;
	uint32_t i = body_index(policy->qparams, policy->nqparams, name);

	return i < policy->nqparams ? &b->p.qparams[(size_t)q * policy->nqparams + i] : NULL;
}

static uint64_t body_param(struct body *b, const char *name)
{
	return b->p.params[body_index(b->p.policy->params, b->p.policy->nparams, name)];
}

static bool body_is(const struct body *b, const char *name)
{
	return strcmp(b->p.policy->name, name) == 0;
}

/* ---- what must hold ---- */

static uint64_t body_level(struct body *b, uint32_t q)
{
	uint64_t *level = body_of(b, q, "level");

	return !level ? 0 : *level == LW_UNSET ? q : *level;
}

static bool body_eligible(const struct body *b, uint32_t q)
{
	return b->p.queues[q].backlog_pkts && b->p.queues[q].rate_bps;
}

static uint64_t body_rho_bps(struct body *b, uint32_t q)
{
	uint64_t rate_bps = *body_of(b, q, "rate");

	return rate_bps ? rate_bps : lw_mul_div(b->init_link_bps, *body_of(b, q, "share"), 1000000);
}

/* LR and LM as vectors/README.md derives them from a capacity */
static uint64_t body_lr_bits(struct body *b, uint32_t q, uint64_t link_bps)
{
	uint64_t rho_bps = body_rho_bps(b, q), memory, others;

	if (*body_of(b, q, "lr") != LW_UNSET)
		return *body_of(b, q, "lr");
	memory = lw_mul_div(rho_bps, *body_of(b, q, "memory"), 1000000000);
	others = lw_mul_div(rho_bps, 16 * *body_of(b, q, "mtu"), link_bps);
	return memory > others ? memory : others;
}

static uint64_t body_lm_bits(struct body *b, uint32_t q, uint64_t link_bps)
{
	if (*body_of(b, q, "lm") != LW_UNSET)
		return *body_of(b, q, "lm");
	return body_lr_bits(b, q, link_bps) + lw_mul_div((*body_of(b, q, "burst") - 1) * 8 * *body_of(b, q, "mtu"),
							 link_bps - body_rho_bps(b, q), link_bps);
}

/* the capacity that LR and LM are computed from; with shares it does not change while `counting` */
static uint64_t body_measure_bps(struct body *b, uint32_t q)
{
	return *body_of(b, q, "rate") ? b->p.best_bps : b->init_link_bps;
}

/* pf: no queue has a better claim than the one picked, as far as the means shown are exact. */
static bool body_claim_is_best(struct body *b, uint32_t picked)
{
	int64_t values[PLANE_MAX_STATS];
	double picked_key = 0, picked_claim = 1, key, claim;
	uint32_t q;

	for (q = 0; q <= b->p.view.nqueues; q++) {
		uint32_t of = q ? q - 1 : picked;

		if (!body_eligible(b, of))
			continue;
		if (!plane_observe_in(&b->p, b->p.copy, of, values))
			return false;
		claim = (double)b->p.queues[of].rate_bps * (double)*body_of(b, of, "weight");
		key = (double)values[0] / claim;
		if (!q) {
			picked_key = key;
			picked_claim = claim;
		} else if (picked_key - 0.5 / picked_claim > (key + 0.5 / claim) * 1.000001) {
			return plane_wrong(&b->p, "queue %" PRIu32 " is picked, queue %" PRIu32 " has the better claim", picked,
					   of);
		}
	}
	return true;
}

/* dualpi2: no queue of its kind has an earlier head packet, and none with a lower index one that is as early. */
static bool body_first_of_kind(struct body *b, uint32_t picked)
{
	uint32_t q;

	for (q = 0; q < b->p.view.nqueues; q++) {
		uint64_t head_ns = b->p.queues[q].head_arrival_ns, picked_ns = b->p.queues[picked].head_arrival_ns;

		if (body_eligible(b, q) && *body_of(b, q, "l4s") == *body_of(b, picked, "l4s") &&
		    (head_ns < picked_ns || (head_ns == picked_ns && q < picked)))
			return plane_wrong(&b->p, "queue %" PRIu32 " is picked, queue %" PRIu32 " of its kind is before it", picked, q);
	}
	return true;
}

/* The policy's rule of choice, applied naively. A pick has just been made on the copy of the state. */
static bool body_choice_is_right(struct body *b, uint32_t picked)
{
	uint64_t best = 0;
	uint32_t q, found = LW_NONE;

	if (body_is(b, "pf") || body_is(b, "codes"))
		return body_claim_is_best(b, picked);
	if (body_is(b, "dualpi2"))
		return body_first_of_kind(b, picked);
	if (body_is(b, "mlwdf") || body_is(b, "exp_rule") || body_is(b, "exp_pf") || body_is(b, "fq_codel"))
		return true;
	for (q = 0; q < b->p.view.nqueues; q++) {
		int64_t values[PLANE_MAX_STATS];
		uint64_t key = body_level(b, q), lr_bits;

		if (body_is(b, "pss")) {
			if (!plane_observe_in(&b->p, b->p.copy, q, values))
				return false;
			if (values[0] < 0)
				return plane_wrong(&b->p, "the credit of queue %" PRIu32 " is negative", q);
			/* levels are clamped to 2^62 ns, where this says nothing */
			lr_bits = b->counting && values[1] ? body_lr_bits(b, q, body_measure_bps(b, q)) : 0;
			if (values[0] < (int64_t)lr_bits &&
			    lw_mul_div(lr_bits, 1000000000, body_rho_bps(b, q)) < (uint64_t)1 << 62)
				return plane_wrong(&b->p, "queue %" PRIu32 " is kept at its low level though its credit is below lr", q);
			if (values[1])
				key = *body_of(b, q, "low_level");
		} else if (body_is(b, "fifo") || body_is(b, "codel")) {
			key = b->p.queues[q].head_arrival_ns;
		} else if (body_is(b, "pds")) {
			uint64_t wait = lw_excess(b->seen_ns, b->p.queues[q].head_arrival_ns), most = (uint64_t)1 << 47;

			key = UINT64_MAX - (wait < most ? wait : most) * *body_of(b, q, "delay");
		}
		if (!body_eligible(b, q) || (found != LW_NONE && key > best))
			continue;
		if (q == picked || found == LW_NONE || key < best)
			found = q;
		best = key;
	}
	if (body_is(b, "wrr") || body_is(b, "drr") || body_is(b, "rr"))
		return found == LW_NONE || body_level(b, found) == body_level(b, picked) ||
		       plane_wrong(&b->p, "queue %" PRIu32 " of a less urgent level than queue %" PRIu32 " is picked", picked,
				   found);
	if (found != picked)
		return plane_wrong(&b->p, "queue %" PRId32 " is picked, by the rule it is %" PRId32, (int32_t)picked,
				   (int32_t)found);
	return true;
}

/* the most packets or bytes that the others of its level may send while q stays eligible and waits */
static uint64_t body_wait_bound(struct body *b, uint32_t q, bool *in_bytes)
{
	uint64_t bound = 0, rounds;
	uint32_t other;

	*in_bytes = body_is(b, "drr");
	for (other = 0; other < b->p.view.nqueues; other++) {
		if (other == q || body_level(b, other) != body_level(b, q))
			continue;
		if (body_is(b, "rr")) {
			bound += 1;
		} else if (body_is(b, "wrr")) {
			bound += *body_of(b, other, "weight") + (body_param(b, "mode") == 1);
		} else {
			rounds = (b->longest_bytes - 1) / *body_of(b, q, "quantum") + 1;
			bound += rounds * *body_of(b, other, "quantum") + b->longest_bytes;
		}
	}
	return bound;
}

/* dualpi2: what both kinds sent while both waited, since all queues were empty */
static bool body_shares(struct body *b, uint32_t served, uint32_t bytes)
{
	uint64_t kind = *body_of(b, served, "l4s"), share = body_param(b, "classic_share"), longest = body_param(b, "mtu");
	uint64_t of_l4s, of_classic, apart;
	uint32_t q;

	if (!b->counting)
		return true;
	for (q = 0; q < b->p.view.nqueues && !(body_eligible(b, q) && *body_of(b, q, "l4s") != kind); q++)
		;
	if (q == b->p.view.nqueues)
		return true;
	b->wait_bytes[kind] += bytes;
	longest = longest > b->longest_bytes ? longest : b->longest_bytes;
	of_l4s = b->wait_bytes[1] * share;
	of_classic = b->wait_bytes[0] * (1000000 - share);
	apart = of_l4s > of_classic ? of_l4s - of_classic : of_classic - of_l4s;
	b->counts->waits++;
	return apart <= 2 * longest * 1000000 ||
	       plane_wrong(&b->p, "%" PRIu64 " bytes of L4S packets and %" PRIu64 " of classic ones are too far from their shares",
			   b->wait_bytes[1], b->wait_bytes[0]);
}

static bool body_waits(struct body *b, uint32_t served, uint32_t bytes)
{
	uint32_t q;

	if (body_is(b, "dualpi2"))
		return body_shares(b, served, bytes);
	if (!body_is(b, "rr") && !body_is(b, "wrr") && !body_is(b, "drr"))
		return true;
	b->wait_pkts[served] = b->wait_bytes[served] = 0;
	for (q = 0; q < b->p.view.nqueues && b->counting; q++) {
		uint64_t waited, bound;
		bool in_bytes;

		if (q == served || !body_eligible(b, q) || body_level(b, q) != body_level(b, served))
			continue;
		b->wait_pkts[q]++;
		b->wait_bytes[q] += bytes;
		bound = body_wait_bound(b, q, &in_bytes);
		waited = in_bytes ? b->wait_bytes[q] : b->wait_pkts[q];
		b->counts->waits++;
		if (waited > bound)
			return plane_wrong(&b->p, "queue %" PRIu32 " has waited for %" PRIu64 " %s of others, at most %" PRIu64
					   " are allowed", q, waited, in_bytes ? "bytes" : "packets", bound);
	}
	return true;
}

/* q, at its high level, is about to send `bytes` */
static bool body_fill(struct body *b, uint32_t q, uint32_t bytes)
{
	struct body_bucket *bucket = b->buckets + q;
	uint64_t rho = body_rho_bps(b, q), longest_bits = 8 * (uint64_t)b->longest_bytes, measure = body_measure_bps(b, q);
	uint64_t most, gap, leak;
	const uint64_t second = 1000000000;

	gap = b->seen_ns - bucket->at_ns;
	bucket->at_ns = b->seen_ns;
	leak = lw_mul_div(rho, gap, second);
	if (leak != UINT64_MAX) {
		uint64_t part = rho * gap - leak * second;      /* < second, although the products may wrap */

		if (bucket->rest < part) {
			leak++;
			bucket->rest += second;
		}
		bucket->rest -= part;
	}
	if (bucket->bits < leak)
		bucket->bits = bucket->rest = 0;
	else
		bucket->bits -= leak;
	bucket->bits += 8 * (uint64_t)bytes;
	bucket->charged_bits += 8 * (uint64_t)bytes;
	/*
	 * More than LM and a packet: what leaks during the packet before, which may be sent before its nominal end; each length
	 * is charged within 2^-31 of its time; lr, lm and the packet time are whole ns, each at most one rate * ns off. When a
	 * larger capacity lowered LR, the credit fell with it, so LM is that much further above what was sent.
	 */
	most = body_lm_bits(b, q, measure) + body_lr_bits(b, q, b->init_link_bps) - body_lr_bits(b, q, measure) +
	       longest_bits + lw_mul_div(longest_bits, rho, b->least_link_bps) + (bucket->charged_bits >> 31) +
	       3 * (rho / second + 1);
	b->counts->buckets++;
	if (bucket->bits > most)
		return plane_wrong(&b->p, "queue %" PRIu32 " is %" PRIu64 " bits ahead of its rate at the high level, at most %"
				   PRIu64 " are allowed", q, bucket->bits, most);
	return true;
}

static bool body_pds_counts(struct body *b)
{
	uint64_t history = body_param(b, "history"), k = body_param(b, "k");
	int64_t values[PLANE_MAX_STATS], received = 0, lost = 0;
	uint32_t q;

	for (q = 0; q < b->p.view.nqueues; q++) {
		if (!plane_observe_in(&b->p, b->p.state, q, values))
			return false;
		received += values[0];
		lost += values[1];
		if (values[0] < 0 || values[1] < 0 || values[2] < 0 || (history == 1 && values[1] > values[0]))
			return plane_wrong(&b->p, "queue %" PRIu32 " received %" PRId64 ", lost %" PRId64 ", owes %" PRId64, q,
					   values[0], values[1], values[2]);
	}
	if (history == 0 && received >= (int64_t)(2 * k))
		return plane_wrong(&b->p, "%" PRId64 " arrivals in a decayed history of %" PRIu64, received, k);
	if (history == 1 && received != (int64_t)(b->arrivals < k ? b->arrivals : k))
		return plane_wrong(&b->p, "the ring of %" PRIu64 " holds %" PRId64 " arrivals of %" PRIu64, k, received,
				   b->arrivals);
	if (history == 2 && (received != (int64_t)b->arrivals || lost != (int64_t)b->p.lost_pkts))
		return plane_wrong(&b->p, "counted %" PRId64 " arrivals and %" PRId64 " losses", received, lost);
	return true;
}

#endif
