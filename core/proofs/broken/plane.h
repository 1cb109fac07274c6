/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * plane.h - a data plane that calls one policy with random packets, and the inequalities of docs/records/proofs.md that are checked
 * from the outside: from what the policy picks, what it reports to `observe`, and what the data plane has sent.
 */
#ifndef LINKWEIR_BROKEN_PLANE_H
#define LINKWEIR_BROKEN_PLANE_H

#include "../queues.h"

#define LARGEST_BYTES 1500u             /* the L of the theorems */

typedef __int128 wide;                  /* exact: bits in units of 10^-9, times a rate */

enum inequality {
	IDENTITY, UNCHARGED, KEPT, FLOORS, SINK, RETURNS, LEVEL, BUCKET, RESERVED, ORDER,         /* pss; ORDER for all */
	SPENT, DEFICIT, TURN, NINEQUALITIES
};

static const struct {
	const char *name, *unit;
	uint64_t scale;                 /* of the numbers: this many make one unit */
} inequalities[NINEQUALITIES] = {
	[IDENTITY] = { "identity", "bits", 1000000000 },
	[UNCHARGED] = { "uncharged", "bits", 1000000000 },
	[KEPT] = { "kept", "bits", 1000000000 },
	[FLOORS] = { "floors", "bits", 1000000000 },
	[SINK] = { "sink", "bits", 1000000000 },
	[RETURNS] = { "returns", "bits", 1000000000 },
	[LEVEL] = { "level_most", "bits", 1000000000 },
	[BUCKET] = { "high_bucket", "bits", 1000000000 },
	[RESERVED] = { "reserved_strict", "bits", 1000000000 },
	[ORDER] = { "order", "", 1 },
	[SPENT] = { "spent", "bytes", 1 },
	[DEFICIT] = { "deficit", "bytes", 1 },
	[TURN] = { "turn", "visits", 1 },
};

static const char *wanted;              /* the only inequality that is looked at; NULL: all */
static uint64_t checks[NINEQUALITIES];
static uint64_t life, calls;            /* the seed, and the calls of the policy so far */
static const char *last_call = "init";
static uint32_t last_queue;

/* ---- inequalities ---- */

static void write_number(enum inequality which, wide value)
{
	uint64_t scale = inequalities[which].scale, whole, rest;

	if (value < 0) {
		printf("-");
		value = -value;
	}
	whole = (uint64_t)(value / scale);
	rest = (uint64_t)(value % scale);
	printf("%llu", (unsigned long long)whole);
	if (rest) {
		char digits[24];

		snprintf(digits, sizeof(digits), "%09llu", (unsigned long long)rest);
		for (size_t end = 9; digits[end - 1] == '0'; end--)
			digits[end - 1] = 0;
		printf(".%s", digits);
	}
	printf("%s%s", *inequalities[which].unit ? " " : "", inequalities[which].unit);
}

/* left <= right, or the life ends with a sentence that says what is broken. */
static void at_most(enum inequality which, const char *what, wide left, const char *bound, wide right)
{
	if (wanted && strcmp(wanted, inequalities[which].name))
		return;
	checks[which]++;
	if (left <= right)
		return;
	printf("seed %llu, call %llu (%s %u), %s: %s = ", (unsigned long long)life, (unsigned long long)calls, last_call,
	       last_queue, inequalities[which].name, what);
	write_number(which, left);
	printf(" > %s = ", bound);
	write_number(which, right);
	printf("\n");
	exit(3);
}

/* ---- calls of the policy ---- */

static void called(const char *name, uint32_t q)
{
	calls++;
	last_call = name;
	last_queue = q;
}

static bool eligible(uint32_t q)
{
	return queues[q].backlog_pkts && queues[q].rate_bps;
}

static uint32_t some_length(void)
{
	return any(3) ? LARGEST_BYTES : any(2) ? 100 * (uint32_t)(1 + any(14)) : (uint32_t)(40 + any(LARGEST_BYTES - 39));
}

static bool arrive(uint32_t q, uint32_t bytes)
{
	if (queues[q].backlog_pkts == ROOM)
		return false;
	put_tail(q, bytes);
	called("enqueued", q);
	policy->enqueued(state, &view, q, bytes);
	return true;
}

/* The head leaves; answers its length. */
static uint32_t send(uint32_t q)
{
	uint32_t bytes = take_head(q);

	called("sent", q);
	policy->sent(state, &view, q, bytes);
	return bytes;
}

static bool drop(uint32_t q)
{
	uint32_t bytes;

	if (!queues[q].backlog_pkts)
		return false;
	bytes = take_tail(q);
	called("dropped", q);
	if (policy->dropped)
		policy->dropped(state, &view, q, bytes);
	return true;
}

/* An answer of pick must name a queue that can send, and one if there is one. */
static uint32_t pick(void)
{
	uint64_t retry_ns;
	uint32_t q = policy->pick(state, &view, &retry_ns), waiting = 0;

	called("pick", q == LW_NONE ? MOST_QUEUES : q);
	for (uint32_t i = 0; i < view.nqueues; i++)
		waiting += eligible(i);
	at_most(ORDER, "queues that can send while none is picked", q == LW_NONE ? waiting : 0, "none", 0);
	at_most(ORDER, "queues picked that cannot send", q != LW_NONE && (q >= view.nqueues || !eligible(q)), "none", 0);
	if (q != LW_NONE && (q >= view.nqueues || !eligible(q)))
		exit(4);                                /* only if another inequality is looked for */
	return q;
}

static void start(void)
{
	struct lw_fault fault;

	if (policy->check && !policy->check(&view, params, qparams, &fault)) {
		printf("seed %llu: settings refused: %s: %s\n", (unsigned long long)life, fault.param, fault.what);
		exit(2);
	}
	state = calloc(1, policy->state_size(view.nqueues, params));
	called("init", 0);
	policy->init(state, &view, params, qparams);
}

#endif
