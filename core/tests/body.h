/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * body.h - one random life of a scheduler, shared by property.c and fuzz.c: a policy, its parameters and a sequence of
 * operations, decoded from bytes.
 *
 * The first byte chooses the policy, the next ones its parameters, the rest are operations. Every byte string is a valid
 * life, so a fuzzer may change any byte and a failing life can be shrunk by leaving bytes out.
 *
 * What must hold in every life is in invariants.h.
 */
#ifndef LINKWEIR_TESTS_BODY_H
#define LINKWEIR_TESTS_BODY_H

#include "invariants.h"

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

/* checks what dualpi2 dropped after an arrival at q when `total` packets of `held` bytes waited */
static bool body_excess_is_right(struct body *b, uint32_t q, uint64_t total, uint64_t held)
{
	struct plane *p = &b->p;
	uint64_t limit = body_param(b, "limit"), memory = body_param(b, "memory"), left_bytes = 0;
	uint32_t i;

	for (i = 0; i < p->view.nqueues; i++)
		left_bytes += p->queues[i].backlog_bytes;
	if ((total > limit || held > memory) != (p->ndrops > 0))
		return plane_wrong(p, "%lu drops with %" PRIu64 " packets of %" PRIu64 " bytes", (unsigned long)p->ndrops, total,
				   held);
	if (p->ndrops < LW_MOST_DROPS && (total - p->ndrops > limit || left_bytes > memory))
		return plane_wrong(p, "%" PRIu64 " packets with %" PRIu64 " bytes remain", total - p->ndrops, left_bytes);
	return !p->ndrops || p->drops[0] == q || plane_wrong(p, "another queue than that of the new packet loses first");
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
	if (total == 1 && body_is(b, "dualpi2"))
		b->wait_bytes[0] = b->wait_bytes[1] = 0;
	if (p->started && body_is(b, "fq_codel"))
		return body_overflow_is_right(b, total, held, most);
	if (p->started && body_is(b, "dualpi2"))
		return body_excess_is_right(b, q, total, held);
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
	if (verdict == LW_PASS || !(strstr(b->p.policy->name, "codel") || body_is(b, "dualpi2")))
		return true;
	for (i = 0; i < b->p.view.nqueues; i++)
		behind += b->p.queues[i].backlog_bytes;
	behind -= verdict == LW_MARK ? was->head_bytes : 0;
	if (body_is(b, "dualpi2"))
		return behind >= 2 * body_param(b, "mtu") || (*body_of(b, q, "l4s") && waited_ns > body_param(b, "step")) ||
		       plane_wrong(&b->p, "a packet that waited %" PRIu64 " ns, %" PRIu64 " bytes behind it, gets verdict %d",
				   waited_ns, behind, (int)verdict);
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

/* another packet of q becomes its head without an event; bounds on waiting then no longer hold */
static bool body_lead(struct body *b, uint32_t q)
{
	uint32_t place, pkts = b->p.queues[q].backlog_pkts;

	if (!b->may_disturb || pkts < 2)
		return true;
	place = 1 + body_byte(b) % (pkts - 1);
	b->counting = false;
	BODY_TRACE(b, "lead %" PRIu32 " %" PRIu32 "\n", q, place);
	return plane_lead(&b->p, q, place);
}

static bool body_operate(struct body *b)
{
	static const uint32_t lengths[] = { 1, 40, 64, 576, 1500, 1514, 9000, 65535, LW_MAX_PACKET_BYTES - 1 };
	uint32_t what = body_byte(b) % 32, q = 0, length = 0, n;

	if (what < 12 || what == 27 || what == 28 || what >= 30)
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
		return body_byte(b) & 1 ? body_lead(b, q) : body_observe(b);
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
