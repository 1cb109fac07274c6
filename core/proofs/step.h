/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * step.h - one call from every sound state, for Eva; data_plane.h makes all calls from the first state instead.
 *
 * Over many calls Eva loses track of which queue is where, as it does not relate two variables. Here each arrangement of
 * indices (which queue is in which list, or at which place of a heap) is analysed separately, for each call, each queue that
 * the call names and each set of eligible queues; all other numbers of the state, the view and the parameters are ranges. By
 * induction the arrangement is always sound: it is sound after init(), and after any one call from a sound arrangement.
 *
 * A file defines QUEUES, POLICY, STATE_BYTES, STEP_KINDS (2, or 3 if it matters why a queue is not eligible),
 * step_state(), which makes a state by step_choice(), step_rows(), which chooses the parameters that arrangements depend
 * on, step_split(), which lists the indices that are not exact after a call, and step_sound(), whether a state is sound.
 */
#include "__fc_builtin.h"
#include <linkweir/policy.h>

#define PROOF_STEP
#include "data_plane.h"

#ifndef STEP_FIRST                      /* by default all calls; else from STEP_FIRST to before STEP_LAST */
#define STEP_FIRST STEP_INIT
#define STEP_LAST STEP_CALLS
#endif
enum { STEP_INIT, STEP_PICK, STEP_ENQUEUED, STEP_SENT, STEP_DROPPED, STEP_LEAVING, STEP_RATED, STEP_CHANGE, STEP_CALLS };

static uint32_t step_left;              /* the number of the case; step_choice() takes digits from it */

/* one of 0 .. n - 1 */
static uint32_t step_choice(uint32_t n)
{
	uint32_t digit = step_left % n;

	step_left /= n;
	return digit;
}

/* From here on Eva analyses each queue that an index may name separately. A macro, since Eva joins states at a return. */
#define STEP_SPLIT(index) \
	do { \
		if ((index) == 0) \
			(index) = 0; \
		else if ((index) == 1) \
			(index) = 1; \
		else if ((index) == 2) \
			(index) = 2; \
		else if ((index) == LW_NONE) \
			(index) = LW_NONE; \
	} while (0)

/* kind 0: empty, 1: a packet and a channel, 2: a packet without a channel */
static void step_see(uint32_t q, uint32_t kind)
{
	struct lw_queue *queue = proof_queues + q;

	queue->backlog_pkts = kind ? (uint32_t)proof_between(1, UINT32_MAX) : 0;
	queue->rate_bps = kind == 0 ? proof_rate() : kind == 1 ? proof_between(LW_MIN_RATE_BPS, LW_MAX_RATE_BPS) : 0;
	queue->head_bytes = (uint32_t)proof_between(0, LW_MAX_PACKET_BYTES - 1);
	queue->head_arrival_ns = proof_between(0, UINT64_MAX);
}

/* The ordered subsets of the queues (9: no more); those of fewer queues come first. */
#define STEP_ORDERS (QUEUES == 1 ? 2 : QUEUES == 2 ? 5 : 16)
static const uint8_t step_orders[16][3] = {
	{ 9, 9, 9 }, { 0, 9, 9 }, { 1, 9, 9 }, { 0, 1, 9 }, { 1, 0, 9 }, { 2, 9, 9 }, { 0, 2, 9 }, { 2, 0, 9 },
	{ 1, 2, 9 }, { 2, 1, 9 }, { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
};

static void step_state(void *state);
static void step_rows(uint64_t *qparams);
static bool step_sound(const void *state);

int main(void)
{
	static uint64_t params[16], qparams[QUEUES * 16];
	unsigned char state[STATE_BYTES];
	uint32_t call, i, q, kinds, bytes;
	bool sound;

	proof_look();
	proof_params(params, qparams);
	//@ loop unroll STEP_CALLS;
	for (call = STEP_FIRST; call < STEP_LAST; call++) {
		//@ loop unroll 100000000;
		for (i = 0; i < UINT32_MAX; i++) {
			step_left = i;
			q = STEP_ENQUEUED <= call && call <= STEP_LEAVING ? step_choice(QUEUES) : 0;
			bytes = (uint32_t)proof_between(0, LW_MAX_PACKET_BYTES - 1);
			if (STEP_PICK <= call && call <= STEP_LEAVING) {
				step_see(q, step_choice(3));
			} else {
				//@ loop unroll QUEUES;
				for (kinds = 0; kinds < QUEUES; kinds++)
					step_see(kinds, step_choice(STEP_KINDS));
			}
			if (call == STEP_INIT || call == STEP_CHANGE)
				step_rows(qparams);
			if (call != STEP_INIT)
				step_state(state);
			if (step_left)
				break;          /* all cases of this call are done */
			switch (call) {
			case STEP_INIT:
				PROVED.init(state, &proof_view, params, qparams);
				break;
			case STEP_PICK:
				proof_pick(state);
				break;
			case STEP_RATED:
				if (PROVED.rated)
					PROVED.rated(state, &proof_view);
				break;
			case STEP_CHANGE:
				if (PROVED.change)
					PROVED.change(state, &proof_view, params, qparams);
				break;
			case STEP_ENQUEUED:
				if (PROVED.enqueued)
					PROVED.enqueued(state, &proof_view, q, bytes);
				break;
			case STEP_SENT:
				if (PROVED.sent)
					PROVED.sent(state, &proof_view, q, bytes);
				break;
			case STEP_DROPPED:
				if (PROVED.dropped)
					PROVED.dropped(state, &proof_view, q, bytes);
				break;
			default:
				if (PROVED.leaving)
					PROVED.leaving(state, &proof_view, q, Frama_C_interval(0, 1));
			}
			step_split(state);
			sound = step_sound(state);
			if (!sound)
				Frama_C_show_each_unsound(call, i);
			//@ assert still_sound: sound;
		}
	}
	return 0;
}

#ifdef LINKWEIR_LIST_H

/* Does `head` begin a circular list of queues that are not yet in `found`? Adds them. */
static bool step_list_sound(const struct lw_link *links, uint32_t head, uint32_t *found)
{
	uint32_t q = head, i;

	if (head == LW_NONE)
		return true;
	//@ loop unroll QUEUES;
	for (i = 0; i < QUEUES; i++) {
		if (q >= QUEUES || (*found >> q & 1) || links[q].next >= QUEUES || links[links[q].next].prev != q)
			return false;
		*found |= 1u << q;
		q = links[q].next;
		if (q == head)
			return true;
	}
	return false;
}

/* Are the links of all queues that are not in `found` cleared? */
static bool step_rest_sound(const struct lw_link *links, uint32_t found)
{
	uint32_t q;

	//@ loop unroll QUEUES;
	for (q = 0; q < QUEUES; q++)
		if (!(found >> q & 1) && (links[q].next != LW_NONE || links[q].prev != LW_NONE))
			return false;
	return true;
}
#endif
