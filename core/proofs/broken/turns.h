/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * turns.h - what rr and drr guarantee: every backlogged queue once between two visits of another, and for drr bytes sent + deficit =
 * visits * quantum, with a deficit below the head's length when a visit ends.
 *
 * A data plane sees the packets of a visit, not the visit. Two kinds of lives of drr let it count visits. In one, every quantum is at
 * least the largest packet, so every visit sends. In the other, all queues fill while none sends, and then send until they are
 * empty: a queue that is picked has been visited just as often as its head's length takes, and the others, in the order in which they
 * were filled, as often or once less.
 */
#ifndef LINKWEIR_BROKEN_TURNS_H
#define LINKWEIR_BROKEN_TURNS_H

#include "plane.h"

#define MOST_LEVELS 3u

static struct {
	bool drr, counted;              /* counted: every quantum is at least LARGEST_BYTES */
	bool behind[MOST_QUEUES][MOST_QUEUES];  /* [p][x]: x has been visited while p waits */
	uint32_t visited[MOST_LEVELS];  /* the queue whose visit this is, of each level */
	int64_t deficit[MOST_QUEUES];   /* visits * quantum - bytes sent, since the queue became eligible */
	int64_t visits[MOST_QUEUES];
	uint32_t place[MOST_QUEUES];    /* in the order of filling */
} r;

static uint64_t quantum_of(uint32_t q)
{
	return r.drr ? *value_of(q, "quantum") : 0;
}

static uint32_t turn_level_of(uint32_t q)
{
	return r.drr ? (uint32_t)*value_of(q, "level") : 0;
}

/* A queue that can no longer send has no place, no visit and no deficit. */
static void settle(void)
{
	for (uint32_t q = 0; q < view.nqueues; q++) {
		if (eligible(q))
			continue;
		memset(r.behind[q], 0, sizeof(r.behind[q]));
		r.deficit[q] = 0;
		if (r.visited[turn_level_of(q)] == q)
			r.visited[turn_level_of(q)] = LW_NONE;
	}
}

/* A visit of x begins. */
static void visit(uint32_t x)
{
	memset(r.behind[x], 0, sizeof(r.behind[x]));
	for (uint32_t q = 0; q < view.nqueues; q++)
		if (q != x && eligible(q) && turn_level_of(q) == turn_level_of(x)) {
			at_most(TURN, "visits of one queue while another waits", 1 + r.behind[q][x], "one", 1);
			r.behind[q][x] = true;
		}
}

static bool alone(uint32_t x)
{
	for (uint32_t q = 0; q < view.nqueues; q++)
		if (q != x && eligible(q) && turn_level_of(q) == turn_level_of(x))
			return false;
	return true;
}

/* The visit of the level's queue has ended before x was picked. */
static void end_visit(uint32_t q)
{
	if (q != LW_NONE)
		at_most(DEFICIT, "the deficit after a visit", r.deficit[q], "the head's length less a byte",
			(wide)queues[q].head_bytes - 1);
}

static void pick_drr(uint32_t x)
{
	uint32_t *visited = r.visited + turn_level_of(x);

	for (uint32_t q = 0; q < view.nqueues; q++)
		if (eligible(q))
			at_most(ORDER, "the level of the queue picked", turn_level_of(x), "that of a queue that waits", turn_level_of(q));
	if (*visited == x && (!alone(x) || r.deficit[x] >= (int64_t)queues[x].head_bytes))
		return;
	end_visit(*visited);
	visit(x);
	r.deficit[x] += (int64_t)quantum_of(x);
	*visited = x;
}

static void sent_drr(uint32_t x, uint32_t bytes)
{
	r.deficit[x] -= bytes;
	if (r.counted)
		at_most(SPENT, "bytes sent, less the quanta of earlier visits", (wide)quantum_of(x) - r.deficit[x],
			"the quantum of this visit", (wide)quantum_of(x));
}

static void decide_turn(void)
{
	uint32_t x = pick(), bytes;

	if (x == LW_NONE)
		return;
	if (r.drr)
		pick_drr(x);
	else
		visit(x);
	if (r.drr && !any(8))
		at_most(ORDER, "picks that differ without an event", pick() != x, "none", 0);
	bytes = send(x);
	if (r.drr)
		sent_drr(x, bytes);
}

/* The queues have filled in the order of their places; x is picked. */
static void pick_filled(uint32_t x)
{
	int64_t quantum = (int64_t)quantum_of(x), lack = (int64_t)queues[x].head_bytes - r.deficit[x];
	bool begins = r.visited[0] != x || lack > 0;
	int64_t rounds = lack > quantum ? (lack + quantum - 1) / quantum : begins;

	r.visited[0] = x;
	r.visits[x] += rounds;
	r.deficit[x] += rounds * quantum;
	for (uint32_t q = 0; q < view.nqueues; q++) {
		int64_t visits = r.visits[x] - (r.place[q] > r.place[x]);

		if (q == x || !eligible(q))
			continue;
		at_most(TURN, "visits of a queue that waits", r.visits[q], "those of the queue picked, or one less", visits);
		r.deficit[q] += (visits - r.visits[q]) * (int64_t)quantum_of(q);
		r.visits[q] = visits;
		at_most(DEFICIT, "the deficit after a visit", r.deficit[q], "the head's length less a byte",
			(wide)queues[q].head_bytes - 1);
	}
}

/* All queues fill, and then send until they are empty. */
static void fill_and_empty(void)
{
	uint32_t x, shift = (uint32_t)any(view.nqueues);

	memset(r.deficit, 0, sizeof(r.deficit));
	memset(r.visits, 0, sizeof(r.visits));
	r.visited[0] = LW_NONE;
	for (uint32_t place = 0; place < view.nqueues; place++) {
		uint32_t q = (place + shift) % view.nqueues, count = (uint32_t)(1 + any(10));

		r.place[q] = place;
		while (count--)
			arrive(q, some_length());
	}
	while ((x = pick()) != LW_NONE) {
		pick_filled(x);
		r.deficit[x] -= send(x);
	}
}

static void turn_block(uint32_t q)
{
	queues[q].rate_bps = queues[q].rate_bps ? 0 : view.link_bps;
	called("rated", q);
	policy->rated(state, &view);
}

static void life_of_turns(uint64_t operations, bool drr)
{
	memset(&r, 0, sizeof(r));
	r.drr = drr;
	r.counted = life % 2;
	view.nqueues = (uint32_t)(2 + any(MOST_QUEUES - 1));
	view.link_bps = 100000000;
	for (uint32_t l = 0; l < MOST_LEVELS; l++)
		r.visited[l] = LW_NONE;
	for (uint32_t q = 0; q < view.nqueues; q++) {
		queues[q].rate_bps = view.link_bps;
		if (!drr)
			continue;
		*value_of(q, "quantum") = r.counted ? LARGEST_BYTES + any(3000) : 1 + any(LARGEST_BYTES);
		*value_of(q, "level") = r.counted ? any(2) * any(MOST_LEVELS) : 0;
	}
	start();
	for (uint64_t left = operations / 20; left && drr && !r.counted; left--)
		fill_and_empty();
	while (operations-- && (!drr || r.counted)) {
		uint32_t q = (uint32_t)any(view.nqueues);
		uint64_t what = any(100);

		view.now_ns += any(1000000);
		if (what < 50)
			arrive(q, some_length());
		else if (what < 97)
			decide_turn();
		else if (what < 98)
			drop(q);
		else
			turn_block(q);
		settle();
	}
}

#endif
