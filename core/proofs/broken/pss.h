/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * pss.h - what pss guarantees, checked on one controlled queue (AF) between more urgent traffic (EF), traffic between its two levels
 * (CS) and traffic below both (BE).
 *
 * All amounts are in 10^-9 bits, so that rho bit/s times nanoseconds is exact. `credit` is what `observe` answers: the level, rounded
 * down to a nanosecond and then to a bit, so the level is at least that and less than a bit and a nanosecond of rho more.
 */
#ifndef LINKWEIR_BROKEN_PSS_H
#define LINKWEIR_BROKEN_PSS_H

#include "plane.h"

enum { EF, AF, CS, BE };
enum kind { CONSTANT, STARVED, EXACT, FADING, NKINDS };

#define SECOND_NS 1000000000u
#define BIT ((wide)SECOND_NS)
#define BYTE (8 * BIT)
#define L_COST (LARGEST_BYTES * BYTE)
#define NOTHING (-((wide)1 << 120))

static struct {
	enum kind kind;
	uint64_t rho_bps, byte_ns, first_byte_ns, best_bps;
	uint64_t least_bps, most_bps, most_memory_ns;           /* of rho and the memory */
	bool reset;
	/* as the settings mean it */
	wide lr, lm;
	uint64_t lr_ns, lm_ns;
	/* EF: at most sigma at once, and ef_bps */
	uint64_t ef_bps, tokens_at_ns;
	wide sigma, tokens, lack;       /* lack: the D of the theorems */
	/* all that AF has sent, and at its high level */
	wide served, served_high;
	/* the part of the life in which nothing is cut, floored or uncharged */
	bool exact;
	wide exact_served, exact_credit;
	uint64_t exact_at_ns;
	wide bucket;                    /* least served_high - rho t - level, of all instants so far */
	wide promise;                   /* greatest served - rho t - max(D, x - LR + D) of this backlogged period */
	/* AF when it emptied */
	wide emptied_credit, emptied_least;
	uint64_t emptied_ns;
	/* arrivals: how many queues are greedy */
	uint32_t mood[4], left;
} p;

static wide rho_times(uint64_t ns)
{
	return (wide)p.rho_bps * ns;
}

static wide larger(wide a, wide b)
{
	return a > b ? a : b;
}

static wide smaller(wide a, wide b)
{
	return a < b ? a : b;
}

static bool is_low(void)
{
	int64_t values[8];

	policy->observe(state, &view, AF, values);
	return values[1];
}

static wide credit(void)
{
	int64_t values[8];

	policy->observe(state, &view, AF, values);
	return values[0] * BIT;
}

/* What `observe` would answer for a level of so many nanoseconds. */
static wide credit_of(uint64_t level_ns)
{
	return rho_times(level_ns) / BIT * BIT;
}

static wide near(void)
{
	return BIT + p.rho_bps;         /* of one observation */
}

static wide pace_error(wide counted)
{
	return (counted >> 32) + 1;
}

/* LR and LM from the settings (docs/reference/policies/pss.md), of the fastest link reported so far. */
static void derive(void)
{
	wide mtu_bits = 8 * *value_of(AF, "mtu"), lr = *value_of(AF, "lr"), gain;

	if (*value_of(AF, "lr") == LW_UNSET)
		lr = larger((wide)p.rho_bps * *value_of(AF, "memory") / SECOND_NS, p.rho_bps * 2 * mtu_bits / p.best_bps);
	gain = (wide)(*value_of(AF, "burst") - 1) * mtu_bits * (p.best_bps - p.rho_bps) / p.best_bps;
	p.lr = lr * BIT;
	p.lm = (lr + gain) * BIT;
	p.lr_ns = (uint64_t)(p.lr / p.rho_bps);
	p.lm_ns = (uint64_t)(p.lm / p.rho_bps);
}

/* ---- checks ---- */

/* Any instant may begin a window of high_bucket. */
static void look(void)
{
	p.bucket = smaller(p.bucket, p.served_high - rho_times(view.now_ns) - credit());
}

static void emptied(wide least)
{
	p.emptied_ns = view.now_ns;
	p.emptied_credit = credit();
	p.emptied_least = p.reset ? p.lr : smaller(least, p.lr);
	p.exact = false;
	p.promise = NOTHING;
}

/* The first packet after an empty interval: the level has fallen, but not below the floor, and no floor is above LR. */
static void check_floor(void)
{
	wide expected = larger(p.emptied_credit - rho_times(view.now_ns - p.emptied_ns), p.emptied_least);

	at_most(FLOORS, "the level when a packet ends an empty interval", credit(), "what is left, or the floor",
		expected + 2 * near());
	at_most(FLOORS, "what is left of the level, or the floor", expected - 2 * near(),
		"the level when a packet ends an empty interval", credit());
}

/* counted = rho dt + dx where nothing is cut, floored or uncharged. */
static void check_identity(uint32_t bytes, wide before, bool low_before)
{
	wide error, change;

	if (low_before) {
		p.exact = false;
		return;
	}
	if (!p.exact || !before) {                      /* a level that was 0 may have been cut */
		p.exact = true;
		p.exact_served = 0;
		p.exact_credit = before;
		p.exact_at_ns = view.now_ns;
	}
	p.exact_served += bytes * BYTE;
	if (p.reset && !queues[AF].backlog_pkts)        /* `observe` answers LR already, if the level is below it */
		return;
	error = near() + pace_error(p.exact_served);
	change = rho_times(view.now_ns - p.exact_at_ns) + credit() - p.exact_credit;
	at_most(IDENTITY, "counted", p.exact_served, "rho dt + dx, and the rounding of dx", change + error);
	at_most(IDENTITY, "rho dt + dx, less the rounding of dx", change - error, "counted", p.exact_served);
}

/* At the low level as much is charged as leaves the level at LM when the packet has been sent. */
static void check_uncharged(uint32_t bytes, wide before, uint64_t tx_ns)
{
	wide full = p.lm + rho_times(tx_ns), most = larger(before, smaller(before + bytes * BYTE, full));

	at_most(UNCHARGED, "the level after a packet at the low level", credit(), "x + counted - uncharged", most + 2 * near());
	at_most(UNCHARGED, "x + counted - uncharged", most - 2 * near(), "the level after a packet at the low level", credit());
}

/* The high level ends with the packet that brings the level to LM at its nominal end, and with no other. */
static void check_sink(uint64_t tx_ns)
{
	if (is_low())
		at_most(SINK, "LM at the nominal end of the packet", credit_of(p.lm_ns + tx_ns),
			"the level with which the low level begins", credit());
	else
		at_most(SINK, "the level at the high level, less what keeps it below LM", credit(), "LM at the packet's nominal end",
			credit_of(p.lm_ns + tx_ns - 1));
}

static void check_bucket(void)
{
	wide most = p.lm + L_COST, error = pace_error(p.served_high);

	if (p.kind == FADING)                           /* LM changes */
		return;
	at_most(LEVEL, "the level after a packet", credit(), "LM + L", most + error);
	at_most(BUCKET, "sent at the high level, less rho t", p.served_high - rho_times(view.now_ns) - p.bucket, "M - m",
		most + error);
}

static void check_departure(uint32_t bytes, wide before, bool low_before)
{
	uint64_t tx_ns = bytes * p.byte_ns;

	p.served += bytes * BYTE;
	if (!low_before)
		p.served_high += bytes * BYTE;
	check_identity(bytes, before, low_before);
	if (low_before)
		check_uncharged(bytes, before, tx_ns);
	else
		check_sink(tx_ns);
	check_bucket();
	if (!queues[AF].backlog_pkts)
		emptied(larger(0, credit() - rho_times(tx_ns)));
}

/* served >= rho t - max(D, x - LR + D) in every part of a backlogged period; x <= M. */
static void check_reserved(void)
{
	if (p.kind == CONSTANT && p.promise != NOTHING)
		at_most(RESERVED, "rho t - max(D, x - LR + D)", p.promise + rho_times(view.now_ns) - pace_error(p.served), "served",
			p.served);
}

static void promise(void)
{
	wide x = smaller(credit() + near(), p.lm + L_COST);

	if (queues[AF].backlog_pkts)
		p.promise = larger(p.promise, p.served - rho_times(view.now_ns) -
				   larger(p.lack, x - rho_times(p.lr_ns) + p.lack));
}

static uint64_t level_of(uint32_t q)
{
	return *value_of(q, q == AF && is_low() ? "low_level" : "level");
}

/* pick names the most urgent queue, and AF is low only above LR. */
static uint32_t checked_pick(void)
{
	uint32_t q = pick();

	if (q != LW_NONE)
		for (uint32_t i = 0; i < view.nqueues; i++)
			if (eligible(i))
				at_most(ORDER, "the level of the queue picked", level_of(q), "that of a queue that waits", level_of(i));
	if (is_low())
		at_most(RETURNS, "the least level above LR", credit_of(p.lr_ns + 1), "the level at the low level", credit());
	return q;
}

/* ---- the data plane ---- */

static void af_arrives(uint32_t bytes)
{
	bool first = !queues[AF].backlog_pkts;

	look();
	if (arrive(AF, bytes) && first)
		check_floor();
}

static void ef_arrives(uint32_t bytes)
{
	if (p.kind == CONSTANT) {
		p.tokens = smaller(p.sigma, p.tokens + (wide)p.ef_bps * (view.now_ns - p.tokens_at_ns));
		p.tokens_at_ns = view.now_ns;
		if (p.tokens < bytes * BYTE)
			return;
		if (arrive(EF, bytes))
			p.tokens -= bytes * BYTE;
		return;
	}
	arrive(EF, bytes);
}

/* mood: 0 nothing, 1 now and then, 2 always a packet waiting */
static void arrivals(void)
{
	for (uint32_t q = 0; q < view.nqueues; q++) {
		uint32_t bytes = some_length(), count = p.mood[q] == 2 ? 2 : p.mood[q] == 1 && !any(4);

		while (count--)
			if (q == AF)
				af_arrives(bytes);
			else if (q == EF)
				ef_arrives(bytes);
			else
				arrive(q, bytes);
	}
}

static void moods(void)
{
	if (p.left) {
		p.left--;
		return;
	}
	p.left = (uint32_t)(any(4) ? 10 + any(60) : 100 + any(300));
	for (uint32_t q = 0; q < view.nqueues; q++)
		p.mood[q] = (uint32_t)any(3);
	if (!any(3))
		p.mood[AF] = 2;
	if (p.mood[EF] == 2 && p.kind != CONSTANT && any(2))
		p.mood[EF] = 1;
}

static void use_link(uint64_t byte_ns)
{
	p.byte_ns = byte_ns;
	view.link_bps = 8000000000u / byte_ns;
	for (uint32_t q = 0; q < view.nqueues; q++)
		queues[q].rate_bps = view.link_bps;
	if (view.link_bps > p.best_bps)
		p.best_bps = view.link_bps;
}

static void change_link(void)
{
	use_link(p.first_byte_ns / 2 + any(3 * p.first_byte_ns));
	policy->rated(state, &view);
}

static void change_setting(void)
{
	switch (any(3)) {
	case 0:
		*value_of(AF, "burst") = 2 + any(40);
		break;
	case 1:
		*value_of(AF, "memory") = any(2) * any(p.most_memory_ns);
		break;
	default:
		*value_of(AF, "rate") = p.rho_bps = p.least_bps + any(p.most_bps - p.least_bps);
	}
	policy->change(state, &view, params, qparams);
}

/* A call that may change LR and LM: what AF is owed or ahead stays, up to the new LR and LM. A fade changes nothing. */
static void renew(void (*change)(void), const char *name)
{
	wide before = credit(), lr = p.lr, error = near(), expected;
	uint64_t lr_ns = p.lr_ns, lm_ns = p.lm_ns;

	change();
	derive();
	called(name, AF);
	error += near();
	expected = smaller(p.lm + (LW_MAX_PACKET_BYTES - 1) * BYTE, larger(0, before - lr + p.lr));
	if (change == change_setting || lr_ns != p.lr_ns || lm_ns != p.lm_ns) {
		at_most(KEPT, "the level after the change", credit(), "the level before it, and the change of LR",
			expected + error);
		at_most(KEPT, "the level before the change, and the change of LR", expected - error, "the level after it",
			credit());
		p.exact = false;
		if (!queues[AF].backlog_pkts)
			emptied(credit());
		return;
	}
	at_most(KEPT, "the level after a fade", credit(), "the level before it", before);
	at_most(KEPT, "the level before a fade", before, "the level after it", credit());
}

/* EXACT: rho is at least 1 Gbit/s, so the credit tells the level's nanoseconds. Waits until AF is exactly at LR, or until its head
 * brings it exactly to LM. */
static void wait_for_edge(void)
{
	uint64_t level_ns = (uint64_t)((credit() + p.rho_bps - 1) / p.rho_bps), cost_ns, edge_ns = p.lr_ns;

	if (!is_low()) {
		if (!queues[AF].backlog_pkts)
			return;
		cost_ns = (uint64_t)(queues[AF].head_bytes * BYTE / p.rho_bps) + any(2);
		edge_ns = p.lm_ns + queues[AF].head_bytes * p.byte_ns - cost_ns;
	}
	if (level_ns > edge_ns)
		view.now_ns += level_ns - edge_ns;
}

static void transmit(uint32_t bytes)
{
	uint64_t end_ns = view.now_ns + bytes * p.byte_ns, looks = any(3);

	while (looks-- && view.now_ns < end_ns) {
		view.now_ns += any(end_ns - view.now_ns);
		arrivals();
		if (!any(4))
			checked_pick();
	}
	view.now_ns = end_ns;
}

static void decide(void)
{
	wide before;
	bool low_before;
	uint32_t q, bytes;

	moods();
	arrivals();
	if (p.kind == EXACT && any(2))
		wait_for_edge();
	if (p.kind != CONSTANT && !any(40) && drop(AF) && !queues[AF].backlog_pkts)
		emptied(credit());
	if (p.kind == FADING && !any(20))
		renew(change_link, "rated");
	if (p.kind == FADING && !any(40))
		renew(change_setting, "change");
	check_reserved();
	look();
	q = checked_pick();
	if (q == LW_NONE) {
		view.now_ns += any(2) ? 1 + any(3 * p.lr_ns + 10000) : 1 + any(10000);
		return;
	}
	before = credit();
	low_before = is_low();
	bytes = send(q);
	if (q == AF)
		check_departure(bytes, before, low_before);
	promise();
	transmit(bytes);
}

static void choose(void)
{
	static const uint64_t paces_ns[] = { 1, 2, 5, 8, 20, 80, 100, 800, 1000, 8000 };
	uint64_t byte_ns = p.kind == EXACT ? 1 + any(2) : paces_ns[any(10)], slowest_bps;

	if (p.kind == FADING)
		byte_ns = 4 * byte_ns;
	p.first_byte_ns = byte_ns;
	use_link(byte_ns);
	slowest_bps = p.kind == FADING ? view.link_bps / 4 : view.link_bps;
	p.ef_bps = slowest_bps / 100 * (1 + any(60));
	p.least_bps = p.kind == EXACT ? 1000000000 : slowest_bps / 50;
	p.most_bps = p.kind == EXACT ? 3000000000 : (slowest_bps - p.ef_bps) * 9 / 10;
	p.most_memory_ns = 20 * LARGEST_BYTES * byte_ns;
	p.rho_bps = p.least_bps + any(p.most_bps - p.least_bps);
	p.sigma = p.tokens = (LARGEST_BYTES + any(10000)) * BYTE;
	p.lack = (wide)p.rho_bps * (p.sigma + L_COST) / (view.link_bps - p.ef_bps) + 1;
	*value_of(AF, "rate") = p.rho_bps;
	*value_of(AF, "mtu") = LARGEST_BYTES;
	*value_of(AF, "burst") = 2 + any(20);
	if (p.kind == CONSTANT)
		*value_of(AF, "lr") = (uint64_t)(p.lack / BIT + 1 + p.rho_bps / SECOND_NS + 1) * (1 + any(5)) + any(1000);
	else if (p.kind == FADING)
		*value_of(AF, "memory") = any(2) * any(p.most_memory_ns);
	else
		*value_of(AF, "lr") = any(3) * any(200000);
}

static void life_of_pss(uint64_t operations)
{
	memset(&p, 0, sizeof(p));
	p.kind = (enum kind)(life % NKINDS);
	p.bucket = (wide)1 << 120;
	p.promise = NOTHING;
	p.reset = any(2);
	view.nqueues = 4;
	for (uint32_t i = 0; i < policy->nparams; i++)
		params[i] = !strcmp(policy->params[i].name, "on_empty") ? p.reset : 0;         /* sat=exact early=charge */
	for (uint32_t q = 0; q < view.nqueues; q++)
		*value_of(q, "level") = q == BE ? 4 : q;
	*value_of(AF, "low_level") = 3;
	choose();
	derive();
	start();
	emptied(p.lr);
	while (operations--)
		decide();
}

#endif
