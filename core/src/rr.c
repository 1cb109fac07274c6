/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * rr.c - round robin: one packet of each eligible queue in turn.
 *
 * A circular list holds the eligible queues; its head is served and moves to the tail. A queue that becomes eligible
 * joins at the tail, one that empties or is blocked leaves. With n queues in the list at most n - 1 packets of others
 * go between two of a queue that stays in it, whatever their sizes (for fairness in bytes see drr). O(1) per call,
 * except rated(), which looks at every queue.
 */
#include "list.h"
#include "view.h"

struct rr_state {
	uint32_t head;                  /* of the list of eligible queues */
	uint32_t unused;
};

static struct lw_link *rr_links(struct rr_state *st)
{
	return (struct lw_link *)(st + 1);
}

static size_t rr_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct rr_state) + nqueues * sizeof(struct lw_link);
}

/* Holds between any two calls. */
/*@ logic struct lw_link *rr_rows(struct rr_state *st) = (struct lw_link *)(st + 1);
    predicate rr_sound{L}(struct rr_state *st) = lw_linked{L}(rr_rows(st)) && lw_headed{L}(rr_rows(st), \at(st->head, L)); */

/* join or leave */
static void rr_follow(struct rr_state *st, const struct lw_view *v, uint32_t q)
{
	struct lw_link *links = rr_links(st);
	bool eligible = lw_eligible(v, q);

	if (eligible == lw_listed(links, q))
		return;
	if (eligible)
		lw_append(links, &st->head, q);
	else
		lw_remove(links, &st->head, q);
}

static void rr_rated(void *state, const struct lw_view *v)
{
	uint32_t q;

	/*@ loop invariant q <= v->nqueues && v->nqueues == lw_n && rr_sound((struct rr_state *)state);
	    loop assigns q, *(struct rr_state *)state, rr_rows((struct rr_state *)state)[0 .. v->nqueues - 1];
	    loop variant v->nqueues - q; */
	for (q = 0; q < v->nqueues; q++)
		rr_follow((struct rr_state *)state, v, q);
}

static void rr_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct rr_state *st = (struct rr_state *)state;

	(void)params, (void)qparams;
	memset(st, 0, sizeof(*st));
	st->head = LW_NONE;
	lw_unlink_all(rr_links(st), v->nqueues);
	rr_rated(st, v);
}

static uint32_t rr_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	(void)v;
	return lw_answer(((struct rr_state *)state)->head, retry_ns);
}

static void rr_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct rr_state *st = (struct rr_state *)state;

	(void)bytes;
	if (lw_listed(rr_links(st), q))
		lw_move_to_tail(rr_links(st), &st->head, q);
	rr_follow(st, v, q);
}

/* enqueued and dropped */
static void rr_event(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	(void)bytes;
	rr_follow((struct rr_state *)state, v, q);
}

const struct lw_policy lw_policy_rr = {
	.name = "rr",
	.help = "round robin: one packet of each queue in turn",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES,
	.max_queues = LW_MAX_QUEUES,
	.state_size = rr_state_size,
	.init = rr_init,
	.pick = rr_pick,
	.enqueued = rr_event,
	.sent = rr_sent,
	.dropped = rr_event,
	.rated = rr_rated,
};
