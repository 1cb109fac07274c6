/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * plane.h - a data plane for tests: real FIFOs, a correct view, and checks after every operation.
 *
 * The state block has exactly the size that the policy asked for, so AddressSanitizer notices an access beyond it. The first
 * fault found is kept in `wrong`; the caller stops at it.
 *
 * After every operation
 *   the view shows what the FIFOs hold, and every packet and byte that came in is queued, was sent or was dropped;
 *   the policy, asked on a copy of its state, picks an eligible queue if there is one, else none;
 *   the copy, asked again, gives the same answer.
 * At every pick the policy's own state, asked twice, must give the answer of the copy.
 */
#ifndef LINKWEIR_TESTS_PLANE_H
#define LINKWEIR_TESTS_PLANE_H

#include <linkweir/policy.h>

#ifdef __KERNEL__
#include <linux/mm.h>
#include <linux/slab.h>
#define PRIu32 "u"
#define PRId32 "d"
#define PRIu64 "llu"
#define PRId64 "lld"
#else
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#endif

#define PLANE_PROBE_BYTES 65536u        /* a larger state is not copied after every operation, only at every pick */
#define PLANE_MAX_STATS 16u
#define PLANE_UNTOUCHED ((uint64_t)0x123456789abcdef)   /* a retry that pick() has not set */

struct packet {
	uint64_t arrival_ns;
	uint32_t bytes;
};

struct fifo {
	struct packet *packets;         /* a ring of `room` */
	size_t head, count, room;
};

struct plane {
	const struct lw_policy *policy;
	struct lw_view view;
	uint64_t best_bps;              /* the largest capacity reported */
	struct lw_queue *queues;
	struct fifo *fifos;
	uint64_t *params, *qparams;
	unsigned char *state, *copy;
	size_t state_size;
	bool started;
	bool moving;                    /* the state moves to another address after every operation */
	uint64_t event_ns;              /* time of the last event reported to the policy */
	uint32_t picked;                /* the last answer */
	uint32_t drops[LW_MOST_DROPS];  /* victims of the last enqueue, in order */
	size_t ndrops;
	uint64_t in_pkts, in_bytes, out_pkts, out_bytes, lost_pkts, lost_bytes;
	char wrong[400];
};

/* n zeroed pieces; NULL, in the kernel only: there is no memory */
static void *plane_room(size_t n, size_t size)
{
#ifdef __KERNEL__
	return kvcalloc(n ? n : 1, size, GFP_KERNEL);
#else
	void *room = calloc(n ? n : 1, size);

	if (!room) {
		fputs("out of memory\n", stderr);
		exit(2);
	}
	return room;
#endif
}

static void plane_free(void *room)
{
#ifdef __KERNEL__
	kvfree(room);
#else
	free(room);
#endif
}

#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static bool plane_wrong(struct plane *p, const char *format, ...)
{
	va_list args;

	if (!p->wrong[0]) {
		va_start(args, format);
		vsnprintf(p->wrong, sizeof(p->wrong), format, args);
		va_end(args);
	}
	return false;
}

/* gives all parameters their defaults */
static void plane_default(struct plane *p)
{
	const struct lw_policy *policy = p->policy;
	uint32_t q, i;

	for (i = 0; i < policy->nparams; i++)
		p->params[i] = policy->params[i].def;
	for (q = 0; q < p->view.nqueues; q++)
		for (i = 0; i < policy->nqparams; i++)
			p->qparams[(size_t)q * policy->nqparams + i] = policy->qparams[i].def;
}

/* After a failure, for lack of memory, plane_close() must be called, too. */
static bool plane_open(struct plane *p, const struct lw_policy *policy, uint32_t nqueues, uint64_t link_bps)
{
	uint32_t q;

	memset(p, 0, sizeof(*p));
	p->policy = policy;
	p->queues = (struct lw_queue *)plane_room(nqueues, sizeof(*p->queues));
	p->fifos = (struct fifo *)plane_room(nqueues, sizeof(*p->fifos));
	p->params = (uint64_t *)plane_room(policy->nparams, sizeof(*p->params));
	p->qparams = (uint64_t *)plane_room((size_t)nqueues * policy->nqparams, sizeof(*p->qparams));
	p->view.link_bps = p->best_bps = link_bps;
	p->view.queues = p->queues;
	p->view.nqueues = nqueues;
	p->picked = LW_NONE;
	if (!p->queues || !p->fifos || !p->params || !p->qparams)
		return plane_wrong(p, "out of memory");
	for (q = 0; q < nqueues; q++)
		p->queues[q].rate_bps = link_bps;
	plane_default(p);
	return true;
}

static void plane_close(struct plane *p)
{
	uint32_t q;

	for (q = 0; p->fifos && q < p->view.nqueues; q++)
		plane_free(p->fifos[q].packets);
	plane_free(p->fifos);
	plane_free(p->queues);
	plane_free(p->params);
	plane_free(p->qparams);
	plane_free(p->state);
	plane_free(p->copy);
}

static bool plane_in_range(const struct lw_param *param, uint64_t value)
{
	return (value >= param->min && value <= param->max) || (value == LW_UNSET && param->def == LW_UNSET);
}

/* Checks the ranges, then asks the policy's check(), as every data plane does before init() and change(). */
static bool plane_accepts(const struct plane *p, struct lw_fault *fault)
{
	const struct lw_policy *policy = p->policy;
	struct lw_view judged = p->view;
	uint32_t q, i;

	fault->what = "outside its range";
	fault->param = NULL;
	fault->queue = LW_NONE;
	for (i = 0; i < policy->nparams; i++) {
		if (!plane_in_range(policy->params + i, p->params[i])) {
			fault->param = policy->params[i].name;
			return false;
		}
	}
	for (q = 0; q < p->view.nqueues; q++) {
		for (i = 0; i < policy->nqparams; i++) {
			if (!plane_in_range(policy->qparams + i, p->qparams[(size_t)q * policy->nqparams + i])) {
				fault->param = policy->qparams[i].name;
				fault->queue = q;
				return false;
			}
		}
	}
	judged.link_bps = p->best_bps;
	return !policy->check || policy->check(&judged, p->params, p->qparams, fault);
}

/* ---- checks ---- */

static bool plane_answer_is_right(struct plane *p, uint32_t picked, uint64_t retry_ns)
{
	uint32_t q, ready = LW_NONE;

	for (q = p->view.nqueues; q-- > 0;)
		if (p->queues[q].backlog_pkts && p->queues[q].rate_bps)
			ready = q;
	if (picked == LW_NONE) {
		if (ready != LW_NONE)
			return plane_wrong(p, "pick() answers none though queue %" PRIu32 " could send", ready);
		if (retry_ns != LW_NEVER)
			return plane_wrong(p, "pick() answers none with retry %" PRIu64 " instead of never", retry_ns);
		return true;
	}
	if (retry_ns != PLANE_UNTOUCHED)
		return plane_wrong(p, "pick() answers queue %" PRIu32 " and sets a retry", picked);
	if (picked >= p->view.nqueues)
		return plane_wrong(p, "pick() answers queue %" PRIu32 ", which does not exist", picked);
	if (!p->queues[picked].backlog_pkts)
		return plane_wrong(p, "pick() answers queue %" PRIu32 ", which is empty", picked);
	if (!p->queues[picked].rate_bps)
		return plane_wrong(p, "pick() answers queue %" PRIu32 ", which is blocked", picked);
	return true;
}

/* Asks a copy of the state twice, which must give one answer. */
static bool plane_ask_copy(struct plane *p, uint32_t *queue)
{
	uint64_t retry_ns = PLANE_UNTOUCHED, again_ns = PLANE_UNTOUCHED;
	uint32_t first, second;

	memcpy(p->copy, p->state, p->state_size);
	first = p->policy->pick(p->copy, &p->view, &retry_ns);
	second = p->policy->pick(p->copy, &p->view, &again_ns);
	if (first != second || retry_ns != again_ns)
		return plane_wrong(p, "two picks with nothing between them differ: %" PRId32 " and %" PRId32,
				   (int32_t)first, (int32_t)second);
	*queue = first;
	return plane_answer_is_right(p, first, retry_ns);
}

static bool plane_conserves(struct plane *p)
{
	uint64_t pkts = 0, bytes = 0;
	uint32_t q;

	for (q = 0; q < p->view.nqueues; q++) {
		const struct fifo *f = p->fifos + q;
		uint64_t queue_bytes = 0;
		size_t i;

		for (i = 0; i < f->count && p->view.nqueues <= 64; i++)
			queue_bytes += f->packets[(f->head + i) % f->room].bytes;
		if (f->count != p->queues[q].backlog_pkts ||
		    (p->view.nqueues <= 64 && queue_bytes != p->queues[q].backlog_bytes))
			return plane_wrong(p, "the view of queue %" PRIu32 " does not show what its FIFO holds", q);
		pkts += f->count;
		bytes += p->queues[q].backlog_bytes;
	}
	if (p->in_pkts != pkts + p->out_pkts + p->lost_pkts || p->in_bytes != bytes + p->out_bytes + p->lost_bytes)
		return plane_wrong(p, "packets are not conserved: %" PRIu64 " in, %" PRIu64 " queued, %" PRIu64
				   " sent, %" PRIu64 " dropped", p->in_pkts, pkts, p->out_pkts, p->lost_pkts);
	return true;
}

/* The checks after every operation. */
static bool plane_settle(struct plane *p)
{
	uint32_t queue;

	if (p->started && p->moving) {
		memcpy(p->copy, p->state, p->state_size);
		memset(p->state, 0xa5, p->state_size);
		plane_free(p->state);
		p->state = p->copy;
		p->copy = (unsigned char *)plane_room(1, p->state_size);
		if (!p->copy)
			return plane_wrong(p, "out of memory");
	}
	if (p->started && p->state_size <= PLANE_PROBE_BYTES && !plane_ask_copy(p, &queue))
		return false;
	return plane_conserves(p);
}

/* ---- the FIFOs and the view ---- */

static bool plane_push(struct plane *p, uint32_t q, uint32_t bytes)
{
	struct fifo *f = p->fifos + q;
	struct packet *packet;

	if (f->count == f->room) {
		size_t room = f->room ? 2 * f->room : 8, i;
		struct packet *packets = (struct packet *)plane_room(room, sizeof(*packets));

		if (!packets)
			return plane_wrong(p, "out of memory");
		for (i = 0; i < f->count; i++)
			packets[i] = f->packets[(f->head + i) % f->room];
		plane_free(f->packets);
		f->packets = packets;
		f->head = 0;
		f->room = room;
	}
	packet = f->packets + (f->head + f->count++) % f->room;
	packet->arrival_ns = p->view.now_ns;
	packet->bytes = bytes;
	p->in_pkts++;
	p->in_bytes += bytes;
	return true;
}

static void plane_show(struct plane *p, uint32_t q, uint64_t backlog_bytes)
{
	const struct fifo *f = p->fifos + q;

	p->queues[q].backlog_pkts = (uint32_t)f->count;
	p->queues[q].backlog_bytes = backlog_bytes;
	p->queues[q].head_bytes = f->count ? f->packets[f->head].bytes : 0;
	p->queues[q].head_arrival_ns = f->count ? f->packets[f->head].arrival_ns : 0;
}

/* drops the head or the tail packet of queue q from its FIFO */
static uint32_t plane_pop(struct plane *p, uint32_t q, bool head)
{
	struct fifo *f = p->fifos + q;
	uint32_t bytes;

	f->count--;
	if (head) {
		bytes = f->packets[f->head].bytes;
		f->head = (f->head + 1) % f->room;
	} else {
		bytes = f->packets[(f->head + f->count) % f->room].bytes;
	}
	p->lost_pkts++;
	p->lost_bytes += bytes;
	plane_show(p, q, p->queues[q].backlog_bytes - bytes);
	return bytes;
}

/* ---- operations ---- */

static bool plane_start(struct plane *p)
{
	if (p->view.nqueues > p->policy->max_queues)
		return plane_wrong(p, "the policy cannot serve %" PRIu32 " queues", p->view.nqueues);
	p->state_size = p->policy->state_size(p->view.nqueues, p->params);
	p->state = (unsigned char *)plane_room(1, p->state_size);
	p->copy = (unsigned char *)plane_room(1, p->state_size);
	if (!p->state || !p->copy)
		return plane_wrong(p, "out of memory");
	memset(p->state, 0x5a, p->state_size);          /* init() must not rely on zeros */
	p->policy->init(p->state, &p->view, p->params, p->qparams);
	p->event_ns = p->view.now_ns;
	p->started = true;
	return plane_settle(p);
}

static bool plane_dropped(struct plane *p, uint32_t q, bool head)
{
	uint32_t bytes = plane_pop(p, q, head);

	p->event_ns = p->view.now_ns;
	if (p->policy->dropped)
		p->policy->dropped(p->state, &p->view, q, bytes);
	return true;
}

/* Before plane_start() the packet just waits. Afterwards victim() is asked until it names no queue or LW_MOST_DROPS are gone. */
static bool plane_enqueue(struct plane *p, uint32_t q, uint32_t bytes)
{
	p->ndrops = 0;
	if (!plane_push(p, q, bytes))
		return false;
	plane_show(p, q, p->queues[q].backlog_bytes + bytes);
	if (!p->started)
		return plane_conserves(p);
	p->event_ns = p->view.now_ns;
	if (p->policy->enqueued)
		p->policy->enqueued(p->state, &p->view, q, bytes);
	while (p->policy->victim && p->ndrops < LW_MOST_DROPS) {
		uint32_t answer = p->policy->victim(p->state, &p->view, q, bytes), victim = answer & ~LW_FROM_HEAD;

		if (answer != p->policy->victim(p->state, &p->view, q, bytes))
			return plane_wrong(p, "victim() asked twice gives two answers");
		if (answer == LW_NONE)
			break;
		if (victim >= p->view.nqueues || !p->queues[victim].backlog_pkts)
			return plane_wrong(p, "victim() names queue %" PRIu32 ", which has no packet", victim);
		p->drops[p->ndrops++] = answer;
		plane_dropped(p, victim, answer != victim);
	}
	return plane_settle(p);
}

static bool plane_pick(struct plane *p)
{
	uint64_t retry_ns;
	uint32_t foretold, first, second;

	if (!plane_ask_copy(p, &foretold))
		return false;
	first = p->policy->pick(p->state, &p->view, &retry_ns);
	second = p->policy->pick(p->state, &p->view, &retry_ns);
	if (first != second || first != foretold)
		return plane_wrong(p, "picks differ: %" PRId32 " and %" PRId32 ", a copy of the state said %" PRId32,
				   (int32_t)first, (int32_t)second, (int32_t)foretold);
	p->picked = first;
	return plane_settle(p);
}

/* queue q must have a packet */
static bool plane_send(struct plane *p, uint32_t q)
{
	struct fifo *f = p->fifos + q;
	uint32_t bytes = f->packets[f->head].bytes;

	f->head = (f->head + 1) % f->room;
	f->count--;
	p->out_pkts++;
	p->out_bytes += bytes;
	plane_show(p, q, p->queues[q].backlog_bytes - bytes);
	p->event_ns = p->view.now_ns;
	if (p->policy->sent)
		p->policy->sent(p->state, &p->view, q, bytes);
	return plane_settle(p);
}

static bool plane_rate(struct plane *p, uint32_t q, uint64_t rate_bps)
{
	p->queues[q].rate_bps = rate_bps;
	if (!p->started)
		return true;
	p->event_ns = p->view.now_ns;
	if (p->policy->rated)
		p->policy->rated(p->state, &p->view);
	return plane_settle(p);
}

static bool plane_link(struct plane *p, uint64_t link_bps)
{
	p->view.link_bps = link_bps;
	if (p->best_bps < link_bps)
		p->best_bps = link_bps;
	p->event_ns = p->view.now_ns;
	if (p->policy->rated)
		p->policy->rated(p->state, &p->view);
	return plane_settle(p);
}

/* The packet at `place` of queue q, 0 the head, becomes its head without an event, as in a queue that is a scheduler itself. */
static bool plane_lead(struct plane *p, uint32_t q, size_t place)
{
	struct fifo *f = p->fifos + q;
	struct packet packet;
	size_t i;

	if (place >= f->count)
		return plane_wrong(p, "queue %" PRIu32 " has no packet at that place", q);
	packet = f->packets[(f->head + place) % f->room];
	for (i = place; i > 0; i--)
		f->packets[(f->head + i) % f->room] = f->packets[(f->head + i - 1) % f->room];
	f->packets[f->head] = packet;
	plane_show(p, q, p->queues[q].backlog_bytes);
	p->event_ns = p->view.now_ns;
	if (p->policy->rated)
		p->policy->rated(p->state, &p->view);
	return plane_settle(p);
}

/* the data plane drops the tail packet of queue q, which must have one */
static bool plane_drop(struct plane *p, uint32_t q)
{
	return plane_dropped(p, q, false) && plane_settle(p);
}

/* asks for the verdict on the head packet of the queue picked last, and drops it if so judged */
static bool plane_verdict(struct plane *p, bool ecn, enum lw_verdict *verdict)
{
	uint32_t q = p->picked;

	*verdict = LW_PASS;
	if (!p->policy->leaving)
		return true;
	memcpy(p->copy, p->state, p->state_size);
	*verdict = p->policy->leaving(p->copy, &p->view, q, ecn);
	if (*verdict != p->policy->leaving(p->state, &p->view, q, ecn))
		return plane_wrong(p, "a copy of the state judges otherwise");
	if (*verdict != LW_PASS && *verdict != LW_DROP && (*verdict != LW_MARK || !ecn))
		return plane_wrong(p, "verdict %d", (int)*verdict);
	if (*verdict != LW_DROP)
		return true;
	return plane_dropped(p, q, true) && plane_settle(p);
}

/* asks whether the head packet of queue q, which must have one, has expired, and drops it if so */
static bool plane_expired(struct plane *p, uint32_t q, bool *expired)
{
	*expired = p->policy->expired && p->policy->expired(p->state, &p->view, q);
	return !*expired || (plane_dropped(p, q, true) && plane_settle(p));
}

/* the new values are in params and qparams, and accepted */
static bool plane_change(struct plane *p)
{
	p->event_ns = p->view.now_ns;
	if (p->policy->change)
		p->policy->change(p->state, &p->view, p->params, p->qparams);
	return plane_settle(p);
}

/* values has room for PLANE_MAX_STATS; observe() must write exactly the policy's nstats of them */
static bool plane_observe_in(struct plane *p, const unsigned char *state, uint32_t q, int64_t *values)
{
	const int64_t untouched = -0x5555555555555555;
	uint32_t i;

	if (p->policy->nstats >= PLANE_MAX_STATS)
		return plane_wrong(p, "too many stats for the test");
	for (i = 0; i < PLANE_MAX_STATS; i++)
		values[i] = untouched;
	if (p->policy->observe)
		p->policy->observe(state, &p->view, q, values);
	for (i = 0; i < PLANE_MAX_STATS; i++)
		if ((values[i] == untouched) != (i >= p->policy->nstats))
			return plane_wrong(p, "observe() of queue %" PRIu32 " does not fill its %" PRIu32 " values", q,
					   p->policy->nstats);
	return true;
}

#endif
