/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * rr: events, sent and pick change the order of the list as those of rocq/Rr.v do.
 *
 * The queues in the list before a call are rr_at(0), rr_at(1) and so on, rr_count of them, in the order in which they will be
 * picked; rr_place is the inverse. All three are any that fit the list.
 */
#include "../any_queues.h"
#include "../ctz.h"
#include "../../src/rr.c"

/*@ axiomatic order {
      logic integer rr_at(integer i);
      logic integer rr_place(integer q);
      logic integer rr_count;
    }
    predicate rr_listed{L}(struct lw_link *links, integer q) = \at(links[q].next, L) != LW_NONE;
    // the place after place i of a circle
    logic integer rr_after(integer i) = i + 1 == rr_count ? 0 : i + 1;
    predicate rr_order{L}(struct lw_link *links, integer head) = 0 <= rr_count &&
	(\forall integer i; 0 <= i < rr_count ==> 0 <= rr_at(i) < lw_n && rr_place(rr_at(i)) == i) &&
	(\forall integer p; 0 <= p < lw_n && rr_listed{L}(links, p) ==> 0 <= rr_place(p) < rr_count && rr_at(rr_place(p)) == p) &&
	(\forall integer i; 0 <= i < rr_count ==> \at(links[rr_at(i)].next, L) == rr_at(rr_after(i))) &&
	(rr_count > 0 ==> \at(links[rr_at(rr_count - 1)].next, L) == rr_at(0)) &&
	(\forall integer i; 0 <= i < rr_count - 1 ==> \at(links[rr_at(i)].next, L) == rr_at(i + 1) && rr_at(i) != rr_at(rr_count - 1)) &&
	head == (rr_count == 0 ? LW_NONE : rr_at(0));
    // order ++ [q]
    predicate rr_order_and{L}(struct lw_link *links, integer head, integer q) =
	(\forall integer i; 0 <= i < rr_count - 1 ==> \at(links[rr_at(i)].next, L) == rr_at(i + 1)) &&
	(rr_count > 0 ==> \at(links[rr_at(rr_count - 1)].next, L) == q) &&
	\at(links[q].next, L) == (rr_count == 0 ? q : rr_at(0)) && head == \at(links[q].next, L);
    // without q order, where q is in place k
    predicate rr_order_but{L}(struct lw_link *links, integer k) =
	\forall integer i; 0 <= i < rr_count && i != k ==> \at(links[rr_at(i)].next, L) ==
		(rr_after(i) == k ? rr_at(rr_after(k)) : rr_at(rr_after(i)));
    // without q order ++ [q], where q is the first
    predicate rr_order_moved{L}(struct lw_link *links, integer head) =
	(\forall integer i; 0 <= i < rr_count ==> \at(links[rr_at(i)].next, L) == rr_at(rr_after(i))) && head == rr_at(rr_after(0)); */

/*@ ensures order_rest: rr_order{Pre}(links, \old(*head)) ==>
	\forall integer i; 0 <= i < rr_count - 1 ==> links[rr_at(i)].next == rr_at(i + 1);
    ensures order_last: rr_order{Pre}(links, \old(*head)) && rr_count > 0 ==> links[rr_at(rr_count - 1)].next == q;
    ensures order_head: rr_order{Pre}(links, \old(*head)) ==>
	links[q].next == (rr_count == 0 ? q : rr_at(0)) && *head == links[q].next; */
static inline void lw_append(struct lw_link *links, uint32_t *head, uint32_t q);

/*@ predicate rr_same{K,L}(struct lw_link *links) =
	\forall integer i; 0 <= i < lw_n ==> \at(links[i].next, L) == \at(links[i].next, K);
    predicate rr_skipped{K,L}(struct lw_link *links, integer q) = \at(links[q].next, L) == LW_NONE &&
	\forall integer i; 0 <= i < lw_n && i != q ==> \at(links[i].next, L) ==
		(\at(links[i].next, K) == q ? \at(links[q].next, K) : \at(links[i].next, K));
    predicate rr_head_skipped{K}(struct lw_link *links, integer before, integer after, integer q) =
	after == (\at(links[q].next, K) == q ? LW_NONE : before == q ? \at(links[q].next, K) : before); */

/* What rr_same and rr_skipped say where q is the first in the order. */
/*@ lemma moved{K,L}: \forall struct lw_link *links, integer before, after;
	rr_order{K}(links, before) && rr_count > 0 && rr_same{K,L}(links) && after == \at(links[rr_at(0)].next, K) ==>
	rr_order_moved{L}(links, after);
    lemma without_first{K,L}: \forall struct lw_link *links, integer before;
	rr_order{K}(links, before) && rr_count > 0 && rr_skipped{K,L}(links, rr_at(0)) ==> rr_order_but{L}(links, 0);
    lemma same_same{K,M,L}: \forall struct lw_link *links; rr_same{K,M}(links) && rr_same{M,L}(links) ==> rr_same{K,L}(links);
    lemma same_skipped{K,M,L}: \forall struct lw_link *links, integer q;
	rr_same{K,M}(links) && rr_skipped{M,L}(links, q) && 0 <= q < lw_n ==> rr_skipped{K,L}(links, q);
    lemma without{K,L}: \forall struct lw_link *links, integer before, q;
	rr_order{K}(links, before) && 0 <= q < lw_n && rr_listed{K}(links, q) && rr_skipped{K,L}(links, q) ==>
	rr_order_but{L}(links, rr_place(q));
    lemma head_without{K}: \forall struct lw_link *links, integer before, after, q;
	rr_order{K}(links, before) && 0 <= q < lw_n && rr_listed{K}(links, q) && rr_place(q) > 0 &&
	rr_head_skipped{K}(links, before, after, q) ==> after == rr_at(0);
    lemma head_without_first{K}: \forall struct lw_link *links, integer before, after, q;
	rr_order{K}(links, before) && rr_count > 0 && q == rr_at(0) &&
	after == (\at(links[q].next, K) == q ? LW_NONE : \at(links[q].next, K)) ==> after == (rr_count == 1 ? LW_NONE : rr_at(1)); */

/*@ ensures skips: rr_skipped{Pre,Post}(links, q);
    ensures head_of: rr_head_skipped{Pre}(links, \old(*head), *head, q); */
static inline void lw_remove(struct lw_link *links, uint32_t *head, uint32_t q);

/*@ ensures turned: q == \old(*head) ==> *head == \old(links[q].next);
    ensures links: q == \old(*head) ==> rr_same{Pre,Post}(links); */
static inline void lw_move_to_tail(struct lw_link *links, uint32_t *head, uint32_t q);

/*@ assigns \nothing;
    ensures \result == rr_rows(st); */
static struct lw_link *rr_links(struct rr_state *st);

/*@ predicate rr_eligible{L}(struct lw_view *v, integer q) =
	\at(v->queues[q].backlog_pkts, L) != 0 && \at(v->queues[q].rate_bps, L) != 0;
    predicate rr_given{L}(struct rr_state *st, struct lw_view *v) =
	\valid{L}(st) && \valid{L}(rr_rows(st) + (0 .. v->nqueues - 1)) && v->nqueues == lw_n && lw_n <= LW_MAX_QUEUES &&
	\valid_read{L}(v) && \valid_read{L}(v->queues + (0 .. v->nqueues - 1)) &&
	\separated(v, st, rr_rows(st) + (0 .. v->nqueues - 1), v->queues + (0 .. v->nqueues - 1)); */

/*@ requires range: q < v->nqueues && \valid_read(v) && \valid_read(v->queues + q);
    assigns \nothing;
    ensures truth: \result == 0 || \result == 1;
    ensures eligible: \result != 0 <==> rr_eligible(v, q); */
static inline bool lw_eligible(const struct lw_view *v, uint32_t q);

/*@ requires given: rr_given(st, v) && q < v->nqueues;
    requires sound: rr_sound(st);
    assigns *st, rr_rows(st)[0 .. v->nqueues - 1];
    ensures agrees: rr_eligible{Pre}(v, q) <==> rr_listed(rr_rows(st), q);
    ensures others: \forall integer p; 0 <= p < lw_n && p != q ==> lw_same{Pre,Post}(rr_rows(st), p);
    ensures same: (rr_listed{Pre}(rr_rows(st), q) <==> rr_eligible{Pre}(v, q)) ==>
	st->head == \old(st->head) && rr_same{Pre,Post}(rr_rows(st));
    ensures joined: rr_order{Pre}(rr_rows(st), \old(st->head)) && !rr_listed{Pre}(rr_rows(st), q) && rr_eligible{Pre}(v, q) ==>
	rr_order_and(rr_rows(st), st->head, q);
    ensures skips: rr_listed{Pre}(rr_rows(st), q) && !rr_eligible{Pre}(v, q) ==> rr_skipped{Pre,Post}(rr_rows(st), q);
    ensures head_of: rr_listed{Pre}(rr_rows(st), q) && !rr_eligible{Pre}(v, q) ==>
	rr_head_skipped{Pre}(rr_rows(st), \old(st->head), st->head, q); */
static void rr_follow(struct rr_state *st, const struct lw_view *v, uint32_t q);

/*@ requires given: rr_given((struct rr_state *)state, v) && q < v->nqueues;
    requires sound: rr_sound((struct rr_state *)state);
    requires order: rr_order(rr_rows((struct rr_state *)state), ((struct rr_state *)state)->head);
    ensures agrees: rr_eligible{Pre}(v, q) <==> rr_listed(rr_rows((struct rr_state *)state), q);
    ensures others: \forall integer p; 0 <= p < lw_n && p != q ==> lw_same{Pre,Post}(rr_rows((struct rr_state *)state), p);
    ensures stayed: (rr_listed{Pre}(rr_rows((struct rr_state *)state), q) <==> rr_eligible{Pre}(v, q)) ==>
	rr_order(rr_rows((struct rr_state *)state), ((struct rr_state *)state)->head);
    ensures joined: !rr_listed{Pre}(rr_rows((struct rr_state *)state), q) && rr_eligible{Pre}(v, q) ==>
	rr_order_and(rr_rows((struct rr_state *)state), ((struct rr_state *)state)->head, q);
    ensures left: rr_listed{Pre}(rr_rows((struct rr_state *)state), q) && !rr_eligible{Pre}(v, q) ==>
	rr_order_but(rr_rows((struct rr_state *)state), rr_place(q));
    ensures left_head: rr_listed{Pre}(rr_rows((struct rr_state *)state), q) && !rr_eligible{Pre}(v, q) && rr_place(q) > 0 ==>
	((struct rr_state *)state)->head == rr_at(0);
    ensures left_first: rr_listed{Pre}(rr_rows((struct rr_state *)state), q) && !rr_eligible{Pre}(v, q) && rr_place(q) == 0 ==>
	((struct rr_state *)state)->head == (rr_count == 1 ? LW_NONE : rr_at(1)); */
static void rr_event(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);

/*@ requires given: rr_given((struct rr_state *)state, v) && \valid(retry_ns) && \separated(retry_ns, (struct rr_state *)state, v);
    requires order: rr_order(rr_rows((struct rr_state *)state), ((struct rr_state *)state)->head);
    ensures first: \result == (rr_count == 0 ? LW_NONE : rr_at(0)); */
static uint32_t rr_pick(void *state, const struct lw_view *v, uint64_t *retry_ns);

/*@ requires given: rr_given((struct rr_state *)state, v) && q < v->nqueues;
    requires sound: rr_sound((struct rr_state *)state);
    requires picked: q == ((struct rr_state *)state)->head;
    ensures same: rr_eligible{Pre}(v, q) ==> rr_same{Pre,Post}(rr_rows((struct rr_state *)state));
    ensures skips: !rr_eligible{Pre}(v, q) ==> rr_skipped{Pre,Post}(rr_rows((struct rr_state *)state), q);
    ensures turned: rr_eligible{Pre}(v, q) ==>
	((struct rr_state *)state)->head == \old(rr_rows((struct rr_state *)state)[q].next);
    ensures head_of: !rr_eligible{Pre}(v, q) ==> ((struct rr_state *)state)->head ==
	(\old(rr_rows((struct rr_state *)state)[q].next) == q ? LW_NONE : \old(rr_rows((struct rr_state *)state)[q].next));
    ensures agrees: rr_eligible{Pre}(v, q) <==> rr_listed(rr_rows((struct rr_state *)state), q);
    ensures others: \forall integer p; 0 <= p < lw_n && p != q ==> lw_same{Pre,Post}(rr_rows((struct rr_state *)state), p); */
static void rr_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);
