/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
#include "../any_queues.h"
#include "../ctz.h"
#include "../../src/rr.c"

/*@ assigns \nothing;
    ensures \result == rr_rows(st); */
static struct lw_link *rr_links(struct rr_state *st);

/* What every call may rely on: a state of state_size() bytes, and a view that is not part of it. */
/*@ predicate rr_given{L}(struct rr_state *st, struct lw_view *v) =
	\valid{L}(st) && \valid{L}(rr_rows(st) + (0 .. v->nqueues - 1)) && v->nqueues == lw_n && lw_n <= LW_MAX_QUEUES &&
	\valid_read{L}(v) && \valid_read{L}(v->queues + (0 .. v->nqueues - 1)) &&
	\separated(v, st, rr_rows(st) + (0 .. v->nqueues - 1), v->queues + (0 .. v->nqueues - 1)); */

/*@ requires given: rr_given(st, v) && q < v->nqueues;
    requires sound: rr_sound(st);
    assigns *st, rr_rows(st)[0 .. v->nqueues - 1];
    ensures sound: rr_sound(st); */
static void rr_follow(struct rr_state *st, const struct lw_view *v, uint32_t q);

/*@ requires given: rr_given((struct rr_state *)state, v);
    requires sound: rr_sound((struct rr_state *)state);
    ensures sound: rr_sound((struct rr_state *)state); */
static void rr_rated(void *state, const struct lw_view *v);

/*@ requires given: rr_given((struct rr_state *)state, v);
    ensures sound: rr_sound((struct rr_state *)state); */
static void rr_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams);

/*@ requires given: rr_given((struct rr_state *)state, v);
    requires sound: rr_sound((struct rr_state *)state);
    requires retry: \valid(retry_ns) && \separated(retry_ns, (struct rr_state *)state, v);
    assigns *retry_ns;
    ensures range: \result < v->nqueues || \result == LW_NONE; */
static uint32_t rr_pick(void *state, const struct lw_view *v, uint64_t *retry_ns);

/*@ requires given: rr_given((struct rr_state *)state, v) && q < v->nqueues;
    requires sound: rr_sound((struct rr_state *)state);
    assigns *(struct rr_state *)state, rr_rows((struct rr_state *)state)[0 .. v->nqueues - 1];
    ensures sound: rr_sound((struct rr_state *)state); */
static void rr_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);

/*@ requires given: rr_given((struct rr_state *)state, v) && q < v->nqueues;
    requires sound: rr_sound((struct rr_state *)state);
    assigns *(struct rr_state *)state, rr_rows((struct rr_state *)state)[0 .. v->nqueues - 1];
    ensures sound: rr_sound((struct rr_state *)state); */
static void rr_event(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes);
