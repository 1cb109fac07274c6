/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * body.h - one random life of a scheduler, shared by property.c and fuzz.c: a policy, its parameters and a sequence of
 * operations, decoded from bytes.
 *
 * The first byte chooses the policy, the next ones its parameters, the rest are operations. Every byte string is a valid
 * life, so a fuzzer may change any byte and a failing life can be shrunk by leaving bytes out.
 *
 * What must hold in every life, in addition to what plane.h checks
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
 *               no more than mtu bytes behind it
 *   fq_codel    at most `limit` packets and `memory` bytes remain, unless LW_MOST_DROPS were dropped; the queue with the
 *               most bytes loses first
 *   pds         the largest d * wait is picked; an arrival costs at most two packets, and exactly two while more than `limit`
 *               remain; without early drops none is dropped below it; the ring counts exactly the last k arrivals, the
 *               infinite history all
 *
 * The bounds on waiting hold while the data plane sends what was picked and the parameters stay the same; otherwise they are
 * no longer checked in this life (`counting`).
 */
#ifndef LINKWEIR_TESTS_BODY_H
#define LINKWEIR_TESTS_BODY_H

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

/* ---- bytes ---- */

static uint32_t body_byte(struct body *b)
{
	if (b->at >= b->size) {
		b->ended = true;
		return 0;
	}
	return b->data[b->at++];
}

static uint64_t body_wide(struct body *b)
{
	uint64_t value = 0;
	uint32_t i;

	for (i = 0; i < 8; i++)
		value = value << 8 | body_byte(b);
	return value;
}

static uint64_t body_log_uniform(struct body *b)
{
	uint32_t shift = body_byte(b) & 63;

	return body_wide(b) >> shift;
}

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

static uint64_t body_value(struct body *b, const struct lw_param *param)
{
	uint64_t span = param->max - param->min;

	switch (body_byte(b) % 8) {
	case 0:
	case 1:
		return param->def;
	case 2:
		return param->min;
	case 3:
		/* lives are short, so parameters that size the state stay small */
		return param->flags & LW_AT_INIT && span > 64 ? param->min + 64 : param->max;
	case 4:
	case 5:
		return param->min + body_byte(b) % (span < 64 ? span + 1 : 64);
	default:
		if (param->flags & LW_AT_INIT)
			return param->min + body_byte(b) % (span < 64 ? span + 1 : 64);
		return param->min + body_log_uniform(b) % (span + 1);
	}
}

/* distinct levels, and for pss reservations that fit the link */
static void body_shape(struct body *b)
{
	uint32_t n = b->p.view.nqueues, q, turn = body_byte(b), low_turn = body_byte(b), apart = 1 + body_byte(b) % 200;
	uint64_t room = b->p.view.link_bps / (n + 1);

	for (q = 0; q < n; q++) {
		uint32_t level = 2 * ((q + turn) % n), low = 2 * ((q + low_turn) % n) + 1;

		*body_of(b, q, "level") = level * apart;
		if (!body_of(b, q, "low_level"))
			continue;
		*body_of(b, q, "low_level") = LW_UNSET;
		*body_of(b, q, "rate") = *body_of(b, q, "share") = 0;
		if (body_byte(b) % 2 || room < 10)
			continue;
		*body_of(b, q, "low_level") = (low > level ? low : low + 2 * n) * apart;
		*body_of(b, q, "rate") = (room - 10 < 400000000000u ? room - 10 : 400000000000u - 10) >> body_byte(b) % 24;
		*body_of(b, q, "rate") += 10;
		if (body_byte(b) % 3 == 0 && b->p.view.link_bps > 1000000) {
			*body_of(b, q, "rate") = 0;
			*body_of(b, q, "share") = 1000000 / (n + 1) - body_byte(b) % 16;
		}
		*body_of(b, q, "burst") = 2 + (body_byte(b) % 4 ? body_byte(b) % 32 : body_log_uniform(b) % (1u << 20));
		if (*body_of(b, q, "burst") > 1u << 20)
			*body_of(b, q, "burst") = 1u << 20;
		*body_of(b, q, "mtu") = body_byte(b) % 2 ? 1500 : (1u << 20) - 64;
		*body_of(b, q, "mtu") = 64 + body_log_uniform(b) % *body_of(b, q, "mtu");
		*body_of(b, q, "memory") = body_log_uniform(b) % (7 * BODY_DAY_NS + 1);
		*body_of(b, q, "lr") = *body_of(b, q, "lm") = *body_of(b, q, "credit") = LW_UNSET;
		if (body_byte(b) % 4 == 0)
			*body_of(b, q, "lr") = body_log_uniform(b) % ((uint64_t)1 << 59);
		if (body_byte(b) % 4 == 0 && *body_of(b, q, "lr") != LW_UNSET)
			*body_of(b, q, "lm") = *body_of(b, q, "lr") + 1 + body_log_uniform(b) % ((uint64_t)1 << 59);
		if (body_byte(b) % 4 == 0)
			*body_of(b, q, "credit") = body_log_uniform(b) % ((uint64_t)1 << 60);
	}
}

static bool body_configure(struct body *b)
{
	static const uint64_t links[] = { 1000, 56000, 1000000, 20000000, 100000000, 1000000000, 10000000000, 400000000000 };
	const struct lw_policy *policy = lw_policies[body_byte(b) % lw_npolicies];
	uint32_t n = body_byte(b), i, q;
	struct lw_fault fault;

	n = 1 + (n < 224 ? n % 8 : n % BODY_MAX_QUEUES);
	plane_open(&b->p, policy, n, links[body_byte(b) % 8]);
	b->init_link_bps = b->least_link_bps = b->p.view.link_bps;
	b->may_disturb = body_byte(b) % 4 == 0;
	b->ecn = b->may_disturb ? 0x123456789abcdefu : 0;
	b->counting = true;
	for (i = 0; i < policy->nparams; i++)
		b->p.params[i] = body_value(b, policy->params + i);
	for (q = 0; q < n && !body_is(b, "pss"); q++)
		for (i = 0; i < policy->nqparams; i++)
			b->p.qparams[(size_t)q * policy->nqparams + i] = body_value(b, policy->qparams + i);
	if (body_is(b, "pss") || body_is(b, "strict"))
		body_shape(b);
	else if (body_byte(b) % 4)              /* few levels, so that queues share them */
		for (q = 0; q < n && body_of(b, q, "level"); q++)
			*body_of(b, q, "level") %= 2;
	b->p.view.now_ns = b->seen_ns = body_log_uniform(b) % BODY_LATEST_NS;
	if (plane_accepts(&b->p, &fault))
		return true;
	if (!fault.what || !fault.param)
		plane_wrong(&b->p, "a refusal without a reason");
	return false;
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

/* The policy's rule of choice, applied naively. A pick has just been made on the copy of the state. */
static bool body_choice_is_right(struct body *b, uint32_t picked)
{
	uint64_t best = 0;
	uint32_t q, found = LW_NONE;

	if (body_is(b, "pf") || body_is(b, "codes"))
		return body_claim_is_best(b, picked);
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

static bool body_waits(struct body *b, uint32_t served, uint32_t bytes)
{
	uint32_t q;

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

/* ---- operations ---- */

static void body_note(struct body *b, uint64_t what)
{
	b->digest = (b->digest ^ what) * 0x100000001b3u;
}

#define BODY_TRACE(b, ...) ((b)->trace ? (void)(printf("at %" PRIu64 " ", (b)->p.view.now_ns), printf(__VA_ARGS__)) : (void)0)

static void body_advance(struct body *b, uint64_t by_ns)
{
	if (b->p.view.now_ns < BODY_LATEST_NS)
		b->p.view.now_ns += by_ns;
	if (b->seen_ns < b->p.view.now_ns)
		b->seen_ns = b->p.view.now_ns;
}

static void body_wait_a_while(struct body *b)
{
	static const uint64_t unit_ns[] = { 1, 1000, 10000, 100000, 1000000, 100000000, 1000000000, BODY_DAY_NS / 24 };
	uint32_t unit = body_byte(b), n = body_byte(b);

	if (unit < 128)                         /* the time of some packets on the link */
		body_advance(b, lw_mul_div(n * 8 * 250, 1000000000, b->least_link_bps));
	else
		body_advance(b, n * unit_ns[unit % 8]);
}

/* checks what fq_codel dropped when `total` packets of `held` bytes waited, `most` bytes of them in one queue */
static bool body_overflow_is_right(struct body *b, uint64_t total, uint64_t held, uint64_t most)
{
	struct plane *p = &b->p;
	bool over = total > body_param(b, "limit") || held > body_param(b, "memory");
	uint64_t left_bytes = 0;
	uint32_t i, first;

	for (i = 0; i < p->view.nqueues; i++)
		left_bytes += p->queues[i].backlog_bytes;
	if (p->ndrops < LW_MOST_DROPS && (total - p->ndrops > body_param(b, "limit") || left_bytes > body_param(b, "memory")))
		return plane_wrong(p, "%" PRIu64 " packets with %" PRIu64 " bytes remain", total - p->ndrops, left_bytes);
	if (over != (p->ndrops > 0))
		return plane_wrong(p, "%lu drops with %" PRIu64 " packets of %" PRIu64 " bytes", (unsigned long)p->ndrops, total,
				   held);
	for (i = 0; i < p->ndrops; i++)
		if (!(p->drops[i] & LW_FROM_HEAD))
			return plane_wrong(p, "a tail is dropped");
	if (!over)
		return true;
	first = p->drops[0] & ~LW_FROM_HEAD;    /* it held what it still has and at most all that was dropped */
	return p->queues[first].backlog_bytes + held - left_bytes >= most ||
	       plane_wrong(p, "queue %" PRIu32 " loses first though another held %" PRIu64 " bytes", first, most);
}

static bool body_enqueue(struct body *b, uint32_t q, uint32_t bytes)
{
	struct plane *p = &b->p;
	uint64_t total = 1, held = bytes, most = 0;
	uint32_t i;

	for (i = 0; i < p->view.nqueues; i++) {
		uint64_t backlog_bytes = p->queues[i].backlog_bytes + (i == q ? bytes : 0);

		total += p->queues[i].backlog_pkts;
		held += p->queues[i].backlog_bytes;
		most = backlog_bytes > most ? backlog_bytes : most;
	}
	BODY_TRACE(b, "enqueue %" PRIu32 " %" PRIu32 "\n", q, bytes);
	if (bytes > b->longest_bytes)
		b->longest_bytes = bytes;
	b->arrivals += p->started;
	if (!plane_enqueue(p, q, bytes))
		return false;
	for (i = 0; i < p->ndrops; i++)
		body_note(b, p->drops[i]);
	b->counts->drops += (unsigned long)p->ndrops;
	if (p->started && body_is(b, "fq_codel"))
		return body_overflow_is_right(b, total, held, most);
	if (p->started && body_is(b, "pds")) {
		uint64_t limit = body_param(b, "limit"), excess = lw_excess(total, limit);

		if (p->ndrops > 2 || (p->ndrops < 2 && p->ndrops < excess))
			return plane_wrong(p, "%lu drops for one arrival, %" PRIu64 " packets remain, the limit is %" PRIu64,
					   (unsigned long)p->ndrops, total - p->ndrops, limit);
		if (!body_param(b, "early") && p->ndrops > excess)
			return plane_wrong(p, "%lu drops with %" PRIu64 " packets and a limit of %" PRIu64,
					   (unsigned long)p->ndrops, total, limit);
		return body_pds_counts(b);
	}
	return true;
}

static bool body_send(struct body *b, uint32_t q)
{
	struct plane *p = &b->p;
	uint32_t bytes = p->fifos[q].packets[p->fifos[q].head].bytes, rightful;
	bool high = false;

	BODY_TRACE(b, "send %" PRIu32 "\n", q);
	if (!plane_ask_copy(p, &rightful))
		return false;
	if (q != rightful)
		b->counting = false;
	if (body_is(b, "pss") && !body_param(b, "sat") && !body_param(b, "early") && *body_of(b, q, "low_level") != LW_UNSET) {
		int64_t values[PLANE_MAX_STATS];

		if (!plane_observe_in(p, p->copy, q, values))
			return false;
		high = !values[1];
	}
	body_note(b, q);
	b->counts->sends++;
	if (!plane_send(p, q) || !body_waits(b, q, bytes))
		return false;
	return !high || !b->counting || body_fill(b, q, bytes);
}

/* is this verdict possible for the head packet of the queue that was picked? */
static bool body_verdict_is_right(struct body *b, uint32_t q, const struct lw_queue *was, enum lw_verdict verdict)
{
	uint64_t waited_ns = lw_excess(b->seen_ns, was->head_arrival_ns), behind = 0;
	uint32_t i;

	if (body_is(b, "codes"))
		return (verdict == LW_DROP) == (*body_of(b, q, "timeout") && waited_ns > *body_of(b, q, "timeout")) ||
		       plane_wrong(&b->p, "a packet that waited %" PRIu64 " ns gets verdict %d", waited_ns, (int)verdict);
	if (verdict == LW_PASS || !strstr(b->p.policy->name, "codel"))
		return true;
	for (i = 0; i < b->p.view.nqueues; i++)
		behind += i == q || body_is(b, "codel") ? b->p.queues[i].backlog_bytes : 0;
	behind -= verdict == LW_MARK ? was->head_bytes : 0;
	return (waited_ns >= body_param(b, "target") && behind > body_param(b, "mtu")) ||
	       plane_wrong(&b->p, "a packet that waited %" PRIu64 " ns, %" PRIu64 " bytes behind it, gets verdict %d", waited_ns,
			   behind, (int)verdict);
}

/* Pick until a packet may leave, and send it. */
static bool body_pick_and_send(struct body *b)
{
	for (;;) {
		struct plane *p = &b->p;
		enum lw_verdict verdict;
		struct lw_queue was;

		if (!plane_pick(p))
			return false;
		BODY_TRACE(b, "pick %" PRId32 "\n", (int32_t)p->picked);
		body_note(b, p->picked);
		if (p->picked == LW_NONE)
			return true;
		if (!body_choice_is_right(b, p->picked))
			return false;
		was = p->queues[p->picked];
		b->ecn = b->ecn >> 1 | b->ecn << 63;
		if (!plane_verdict(p, b->ecn & 1, &verdict) || !body_verdict_is_right(b, p->picked, &was, verdict))
			return false;
		body_note(b, (uint64_t)verdict);
		if (verdict != LW_DROP)
			return body_send(b, p->picked);
		BODY_TRACE(b, "drop head of %" PRIu32 "\n", p->picked);
		b->counts->drops++;
	}
}

static bool body_expire(struct body *b, uint32_t q)
{
	bool expired;

	if (!b->p.queues[q].backlog_pkts)
		return true;
	BODY_TRACE(b, "expired %" PRIu32 "?\n", q);
	if (!plane_expired(&b->p, q, &expired))
		return false;
	body_note(b, expired);
	return true;
}

static bool body_send_late(struct body *b)
{
	uint32_t q;

	if (!plane_pick(&b->p))
		return false;
	q = b->p.picked;
	body_wait_a_while(b);
	return q == LW_NONE || body_send(b, q);
}

static bool body_rate(struct body *b)
{
	uint32_t q = body_byte(b) % b->p.view.nqueues, part = body_byte(b);
	uint64_t rate_bps = part < 96 ? 0 : part < 192 ? b->init_link_bps : b->init_link_bps / 256 * part;

	BODY_TRACE(b, "rate %" PRIu32 " %" PRIu64 "\n", q, rate_bps);
	return plane_rate(&b->p, q, rate_bps);
}

static bool body_link(struct body *b)
{
	uint32_t part = body_byte(b), q;
	uint64_t link_bps = b->init_link_bps / 64 * (part % 128);

	for (q = 0; q < b->p.view.nqueues; q++)
		if (body_of(b, q, "share") && *body_of(b, q, "share"))
			b->counting = false;
	if (link_bps && link_bps < b->least_link_bps)
		b->least_link_bps = link_bps;
	BODY_TRACE(b, "link %" PRIu64 "\n", link_bps);
	return plane_link(&b->p, link_bps);
}

static bool body_change(struct body *b)
{
	const struct lw_policy *policy = b->p.policy;
	size_t np = policy->nparams, nq = (size_t)b->p.view.nqueues * policy->nqparams, i;
	uint64_t *old = (uint64_t *)plane_room(np + nq, sizeof(*old));
	uint32_t which = body_byte(b);
	struct lw_fault fault;
	bool good = true;

	memcpy(old, b->p.params, np * sizeof(*old));
	memcpy(old + np, b->p.qparams, nq * sizeof(*old));
	if (which % 4 == 0 && (body_is(b, "pss") || body_is(b, "strict"))) {
		body_shape(b);
	} else if ((which % 4 == 1 || !nq) && np) {
		i = body_byte(b) % np;
		if (!(policy->params[i].flags & LW_AT_INIT))
			b->p.params[i] = body_value(b, policy->params + i);
	} else if (nq) {
		i = (size_t)(body_wide(b) % nq);
		b->p.qparams[i] = body_value(b, policy->qparams + i % policy->nqparams);
	}
	if (plane_accepts(&b->p, &fault)) {
		b->counting = false;
		BODY_TRACE(b, "change\n");
		good = plane_change(&b->p);
	} else {
		memcpy(b->p.params, old, np * sizeof(*old));
		memcpy(b->p.qparams, old + np, nq * sizeof(*old));
	}
	free(old);
	return good;
}

/* Events without news. Only at the time of the last event: at a later one, updating the clock may round a mean. */
static void body_repeat(struct body *b)
{
	if (b->p.event_ns != b->p.view.now_ns)
		return;
	if (b->p.policy->rated)
		b->p.policy->rated(b->p.state, &b->p.view);
	plane_change(&b->p);
}

static bool body_observe(struct body *b)
{
	int64_t values[PLANE_MAX_STATS];
	uint32_t q, i;

	for (q = 0; q < b->p.view.nqueues; q++) {
		if (!plane_observe_in(&b->p, b->p.state, q, values))
			return false;
		for (i = 0; i < b->p.policy->nstats; i++) {
			body_note(b, (uint64_t)values[i]);
			if (values[i] < 0)
				return plane_wrong(&b->p, "%s of queue %" PRIu32 " is negative", b->p.policy->stats[i].name, q);
		}
	}
	return true;
}

static bool body_operate(struct body *b)
{
	static const uint32_t lengths[] = { 1, 40, 64, 576, 1500, 1514, 9000, 65535, LW_MAX_PACKET_BYTES - 1 };
	uint32_t what = body_byte(b) % 32, q = 0, length = 0, n;

	if (what < 12 || what == 27 || what == 28 || what == 30)
		q = body_byte(b) % b->p.view.nqueues;
	if (what < 12) {
		length = body_byte(b);
		length = length < 144 ? lengths[length % 9] : 40 + (length - 144) * 13;
	}
	b->counts->operations++;
	if (what < 10)
		return body_enqueue(b, q, length);
	if (what < 12) {
		for (n = 1 + body_byte(b) % 24; n > 0; n--)
			if (!body_enqueue(b, q, length))
				return false;
		return true;
	}
	if (what < 19)
		return body_pick_and_send(b);
	if (what < 20) {
		for (n = 1 + body_byte(b) % 64; n > 0; n--)
			if (!body_pick_and_send(b))
				return false;
		return true;
	}
	switch (what) {
	case 20:
	case 21:
	case 22:
		body_wait_a_while(b);
		return true;
	case 23:
		if (!plane_pick(&b->p))         /* the policy has seen the time that is stepped back from */
			return false;
		b->p.view.now_ns -= b->p.view.now_ns < 1000 ? b->p.view.now_ns : body_byte(b);
		return true;
	case 24:
		return b->may_disturb ? body_send_late(b) : body_pick_and_send(b);
	case 25:
		return body_rate(b);
	case 26:
		return body_link(b);
	case 27:
		BODY_TRACE(b, "drop %" PRIu32 "\n", q);
		return !b->p.queues[q].backlog_pkts || (plane_drop(&b->p, q) && (!body_is(b, "pds") || body_pds_counts(b)));
	case 28:
		return !b->may_disturb || !b->p.queues[q].backlog_pkts || body_send(b, q);
	case 29:
		return !b->may_disturb || body_change(b);
	case 30:
		return body_expire(b, q);
	default:
		return body_observe(b);
	}
}

static void body_forget_waits(struct body *b)
{
	uint32_t q;

	for (q = 0; q < b->p.view.nqueues; q++)
		if (!body_eligible(b, q))
			b->wait_pkts[q] = b->wait_bytes[q] = 0;
}

static void body_begin(struct body *b)
{
	uint32_t n;

	for (n = body_byte(b) % 8; n > 4; n--)          /* packets that wait before init() */
		if (!body_enqueue(b, body_byte(b) % b->p.view.nqueues, 40 + n))
			return;
	for (n = 0; n < b->p.view.nqueues; n++)
		b->buckets[n].at_ns = b->seen_ns;
	plane_start(&b->p);
}

/* One life. True if everything held; otherwise `wrong` says what did not. */
static bool body_live(const uint8_t *data, size_t size, enum body_way way, bool trace, struct body_counts *counts,
		      uint64_t *digest, char *wrong, size_t room)
{
	static struct body life;
	struct body *b = &life;
	bool good;

	memset(b, 0, sizeof(*b));
	b->data = data;
	b->size = size;
	b->trace = trace;
	b->counts = counts;
	counts->lives++;
	if (!body_configure(b)) {
		counts->refused++;
	} else {
		b->p.moving = way == BODY_MOVING;
		body_begin(b);
		while (!b->ended && !b->p.wrong[0] && body_operate(b)) {
			body_forget_waits(b);
			if (way == BODY_REPEATING)
				body_repeat(b);
		}
	}
	good = !b->p.wrong[0];
	*digest = b->digest;
	counts->digest = counts->digest * 31 + b->digest;
	snprintf(wrong, room, "%s: %.400s", b->p.policy->name, b->p.wrong);
	plane_close(&b->p);
	return good;
}

/* One life in all variants: each must hold, and all must give the same answers. */
static bool body_lives(const uint8_t *data, size_t size, struct body_counts *counts, char *wrong, size_t room)
{
	static const char *const faults[] = { "", "a state that was moved in memory answers differently",
					      "rated() or change() with nothing new changes later answers" };
	uint64_t still, other;
	int way;

	if (!body_live(data, size, BODY_STILL, false, counts, &still, wrong, room))
		return false;
	for (way = BODY_MOVING; way <= BODY_REPEATING; way++) {
		if (!body_live(data, size, (enum body_way)way, false, counts, &other, wrong, room))
			return false;
		if (still != other) {
			snprintf(wrong, room, "%s: %s", lw_policies[size ? data[0] % lw_npolicies : 0]->name, faults[way]);
			return false;
		}
	}
	return true;
}

#endif
