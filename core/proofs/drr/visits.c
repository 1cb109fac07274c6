/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * drr: what pick does to the queues of the most urgent level, for any number of queues and any order of the level's list. Each
 * visit adds at most one quantum, and a queue is passed over only if its head packet is longer than its deficit. After the call
 * each deficit is below the longest packet, or below that and a quantum where the visit goes on. Taken as given: the list is a
 * circle.
 */
#include "../any_queues.h"
#include "../ctz.h"
#include "../../src/drr.c"
#include "state.h"
#include "visit.h"

/*@ axiomatic bytes { // are rounds * quantum
      axiom some_bytes: \forall integer k, quantum; 0 <= k && 0 <= quantum ==> 0 <= drr_bytes(k, quantum);
      axiom one_more: \forall integer k, l, quantum; k == l + 1 ==> drr_bytes(k, quantum) == drr_bytes(l, quantum) + quantum;
      axiom one_round: \forall integer quantum; drr_bytes(1, quantum) == quantum;
      axiom fewer_bytes: \forall integer k, l, quantum; k <= l && 0 <= quantum ==> drr_bytes(k, quantum) <= drr_bytes(l, quantum);
    }
    predicate drr_given{L}(struct drr_state *st, struct lw_view *v) = drr_parts{L}(st, v) &&
	0 < drr_longest <= LW_MAX_PACKET_BYTES && drr_heads{L}(v->queues) && drr_circle{L}(drr_chain(st));
    predicate drr_all_good{L}(struct drr_queue *rows) =
	\forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) ==> drr_good{L}(rows + p);
    predicate drr_all_lack{L}(struct drr_queue *rows, integer rounds) = \forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) ==>
	drr_lacks{L}(rows + p, drr_length(p), rounds); */

/*@ axiomatic lowest { logic integer drr_lowest(integer x); }          // which bit of busy pick looks at
    predicate drr_first(integer q) = 0 <= q < lw_n && drr_place(q) == 0; */

/*@ ensures lowest: \result == drr_lowest(x); */
static inline int proof_ctz(unsigned long long x);

/*@ requires given: drr_given(st, v);
    requires good: drr_all_good(drr_rows(st));
    requires out: \valid(head) && \valid(rounds) && drr_first(*head) &&
	\separated(rounds, head, v, drr_rows(st) + (0 .. lw_n - 1), drr_chain(st) + (0 .. lw_n - 1), v->queues + (0 .. lw_n - 1));
    assigns *head, *rounds, drr_rows(st)[0 .. lw_n - 1];
    ensures kept: drr_kept{Pre,Post}(drr_rows(st));
    ensures circle: drr_circle(drr_chain(st));
    ensures heads: drr_heads(v->queues);
    ensures exists: \result == LW_NONE || (\result < lw_n && 0 <= drr_place(\result));
    ensures head: *head == (\result == LW_NONE ? \old(*head) : \result);
    ensures fits: \result != LW_NONE ==> drr_length(\result) <= drr_rows(st)[\result].deficit_bytes && drr_rows(st)[\result].fresh == 0;
    ensures others: \forall integer p; 0 <= p < lw_n && (drr_place(p) < 0 || (\result != LW_NONE && drr_place(\result) < drr_place(p))) ==>
	drr_same{Pre,Post}(drr_rows(st) + p);
    ensures visited: \forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) && (\result != LW_NONE ==> drr_place(p) <= drr_place(\result)) ==>
	drr_visited{Pre,Post}(drr_rows(st) + p);
    ensures good: drr_all_good(drr_rows(st));
    ensures passed: \result != LW_NONE ==> \forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) < drr_place(\result) ==>
	drr_rows(st)[p].fresh != 0 && drr_rows(st)[p].deficit_bytes < drr_length(p);
    ensures some: \result == LW_NONE ==> *rounds >= 1;
    ensures lacks: \result == LW_NONE ==> drr_all_lack(drr_rows(st), *rounds);
    ensures near: \result == LW_NONE ==> drr_some_near(drr_rows(st), drr_count, *rounds);
    ensures found: drr_some_near{Pre}(drr_rows(st), drr_count, 1) ==> \result != LW_NONE; */
static uint32_t drr_turn(struct drr_state *st, const struct lw_view *v, uint32_t *head, uint32_t *rounds);

/*@ requires given: drr_given(st, v) && drr_first(first) && 0 < rounds < UINT32_MAX;
    requires good: drr_all_good(drr_rows(st));
    requires lacks: drr_all_lack(drr_rows(st), rounds + 1);
    assigns drr_rows(st)[0 .. lw_n - 1];
    ensures kept: drr_kept{Pre,Post}(drr_rows(st));
    ensures circle: drr_circle(drr_chain(st));
    ensures heads: drr_heads(v->queues);
    ensures good: drr_all_good(drr_rows(st));
    ensures others: \forall integer p; 0 <= p < lw_n && drr_place(p) < 0 ==> drr_same{Pre,Post}(drr_rows(st) + p);
    ensures granted: \forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) ==> drr_granted{Pre,Post}(drr_rows(st) + p, rounds);
    ensures near: drr_some_near{Pre}(drr_rows(st), drr_count, rounds + 1) ==> drr_some_near(drr_rows(st), drr_count, 1); */
static void drr_skip(struct drr_state *st, const struct lw_view *v, uint32_t first, uint32_t rounds);

/*@ requires given: drr_given((struct drr_state *)state, v) && \valid(retry_ns);
    requires apart: \separated(retry_ns, (struct drr_state *)state, drr_rows((struct drr_state *)state) + (0 .. lw_n - 1),
	drr_chain((struct drr_state *)state) + (0 .. lw_n - 1), v, v->queues + (0 .. lw_n - 1));
    requires good: drr_all_good(drr_rows((struct drr_state *)state));
    requires level: ((struct drr_state *)state)->busy != 0 ==>
	drr_first(((struct drr_state *)state)->head[drr_lowest(((struct drr_state *)state)->busy)]);
    ensures kept: drr_kept{Pre,Post}(drr_rows((struct drr_state *)state));
    ensures exists: \result == LW_NONE || (\result < lw_n && 0 <= drr_place(\result));
    ensures none: \result == LW_NONE ==> \old(((struct drr_state *)state)->busy) == 0;
    ensures fits: \result != LW_NONE ==> drr_length(\result) <= drr_rows((struct drr_state *)state)[\result].deficit_bytes;
    ensures others: \forall integer p; 0 <= p < lw_n && drr_place(p) < 0 ==> drr_same{Pre,Post}(drr_rows((struct drr_state *)state) + p);
    ensures good: drr_all_good(drr_rows((struct drr_state *)state)); */
static uint32_t drr_pick(void *state, const struct lw_view *v, uint64_t *retry_ns);
