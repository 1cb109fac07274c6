/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * data_plane.h - the most general data plane, for Eva: any accepted parameters, any view, any operations in any order.
 *
 * Define POLICY (its name), include its source, define STATE_BYTES (and PROOF_SETTLE(params), to narrow the parameters) and
 * include this file. The state is a block of exactly state_size() bytes, not initialised, so that a read before a write, or
 * of one byte beyond, raises an alarm. Views are independent of each other: backlogs appear and vanish, rates jump, the
 * clock steps back, any queue is named with any length. This is more than the contract of policy.h allows, so a proof for
 * this data plane holds for every data plane that keeps the contract.
 */
#include "__fc_builtin.h"
#include <linkweir/policy.h>

#ifndef PROOF_WIDEN
#define PROOF_WIDEN 0                   /* bounds of counters in the state, for Eva to try */
#endif
#ifndef QUEUES
#define QUEUES 3
#endif
#define PROOF_JOIN_(a, b) a##b
#define PROOF_JOIN(a, b) PROOF_JOIN_(a, b)
#define PROVED PROOF_JOIN(lw_policy_, POLICY)

static uint64_t proof_between(uint64_t min, uint64_t max)
{
	return Frama_C_unsigned_long_long_interval(min, max);
}

static uint64_t proof_rate(void)
{
	return Frama_C_interval(0, 1) ? proof_between(LW_MIN_RATE_BPS, LW_MAX_RATE_BPS) : 0;
}

static uint64_t proof_value(const struct lw_param *param)
{
	if (param->def == LW_UNSET && Frama_C_interval(0, 1))
		return LW_UNSET;
	return proof_between(param->min, param->max);
}

static struct lw_queue proof_queues[QUEUES];
static struct lw_view proof_view;

static void proof_look(void)
{
	uint32_t q;

	proof_view.now_ns = proof_between(0, LW_MAX_NOW_NS);
	proof_view.link_bps = proof_rate();
	proof_view.queues = proof_queues;
	proof_view.nqueues = QUEUES;
	//@ loop unroll QUEUES;
	for (q = 0; q < QUEUES; q++) {
		proof_queues[q].backlog_pkts = (uint32_t)proof_between(0, UINT32_MAX);
		proof_queues[q].backlog_bytes = proof_between(0, UINT64_MAX);
		proof_queues[q].rate_bps = proof_rate();
		if (proof_queues[q].backlog_pkts) {
			proof_queues[q].head_bytes = (uint32_t)proof_between(0, LW_MAX_PACKET_BYTES - 1);
			proof_queues[q].head_arrival_ns = proof_between(0, UINT64_MAX);
		}
	}
}

static void proof_params(uint64_t *params, uint64_t *qparams)
{
	uint32_t q, p;

	//@ loop unroll 16;
	for (p = 0; p < PROVED.nparams; p++)
		params[p] = proof_value(PROVED.params + p);
#ifdef PROOF_SETTLE
	PROOF_SETTLE(params);
#endif
	//@ loop unroll QUEUES;
	for (q = 0; q < QUEUES; q++)
		//@ loop unroll 16;
		for (p = 0; p < PROVED.nqparams; p++)
			qparams[q * PROVED.nqparams + p] = proof_value(PROVED.qparams + p);
}

static bool proof_accepts(const uint64_t *params, const uint64_t *qparams)
{
	struct lw_fault fault;

	return !PROVED.check || PROVED.check(&proof_view, params, qparams, &fault);
}

/* The queue picked exists. */
static void proof_pick(void *state)
{
	uint64_t retry_ns = 0;
	uint32_t q = PROVED.pick(state, &proof_view, &retry_ns);

	//@ assert picked_in_range: q < QUEUES || q == LW_NONE;
	//@ assert retry_given: retry_ns == 0 || retry_ns == LW_NEVER;
}

static void proof_operate(void *state, const uint64_t *params, const uint64_t *qparams)
{
	uint32_t q = (uint32_t)proof_between(0, QUEUES - 1), bytes = (uint32_t)proof_between(0, LW_MAX_PACKET_BYTES - 1);
	enum lw_verdict verdict;
	int64_t values[8];

	switch (Frama_C_interval(0, 9)) {
	case 0:
		proof_pick(state);
		break;
	case 1:
		if (PROVED.enqueued)
			PROVED.enqueued(state, &proof_view, q, bytes);
		break;
	case 2:
		if (PROVED.sent)
			PROVED.sent(state, &proof_view, q, bytes);
		break;
	case 3:
		if (PROVED.dropped)
			PROVED.dropped(state, &proof_view, q, bytes);
		break;
	case 4:
		if (PROVED.rated)
			PROVED.rated(state, &proof_view);
		break;
	case 5:
		if (PROVED.change && proof_accepts(params, qparams)) {
			proof_view.link_bps = proof_rate();     /* check() saw the largest capacity; this is the present one */
			PROVED.change(state, &proof_view, params, qparams);
		}
		break;
	case 6:
		if (PROVED.victim) {
			q = PROVED.victim(state, &proof_view, q, bytes);
			if (q != LW_NONE)
				q &= ~LW_FROM_HEAD;
			//@ assert victim_in_range: q < QUEUES || q == LW_NONE;
		}
		break;
	case 7:
		if (PROVED.leaving) {
			verdict = PROVED.leaving(state, &proof_view, q, Frama_C_interval(0, 1));
			//@ assert verdict_known: verdict == LW_PASS || verdict == LW_MARK || verdict == LW_DROP;
		}
		break;
	case 8:
		if (PROVED.expired)
			PROVED.expired(state, &proof_view, q);
		break;
	default:
		if (PROVED.observe)
			PROVED.observe(state, &proof_view, q, values);
	}
}

#ifndef PROOF_STEP                      /* step.h has its own */
int main(void)
{
	static uint64_t params[16], qparams[QUEUES * 16];
	unsigned char state[STATE_BYTES];       /* on the stack: not initialised */
	size_t size;

	proof_look();
	proof_params(params, qparams);
	if (!proof_accepts(params, qparams))
		return 0;
	size = PROVED.state_size(QUEUES, params);
	//@ assert state_bytes_are_those_declared: size == STATE_BYTES;
	PROVED.init(state, &proof_view, params, qparams);
	/*@ loop widen_hints "all", PROOF_WIDEN;
	    loop unroll 0; */
	for (;;) {
		proof_look();
		proof_params(params, qparams);
		proof_operate(state, params, qparams);
	}
}
#endif
