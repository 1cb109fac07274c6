/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * drr.c - deficit round robin, within strict levels.
 *
 * Shreedhar and Varghese, 1996, section III; Lenzini, Mingozzi and Stea, 2004, on small quanta. The eligible queues of
 * a level form a circular list. A visit adds the queue's quantum to its deficit. While the head packet is no longer than
 * the deficit, it is sent and charged; otherwise the queue moves to the tail and the next one is visited. Long-run shares
 * are in the ratio of the quanta, whatever the packet sizes. Levels are strict among each other; a visit interrupted by a
 * more urgent level resumes where it stopped, without a second quantum. EF at level 0 over AF and CS0 at level 1 is the
 * router of RFC 5865.
 *
 * Where ours differs
 *   sent() charges the deficit, not pick(), which may be asked twice. pick() does rotate the list for good, so the next
 *   pick() finds the same answer at once.
 *   A quantum smaller than a packet needs several rounds. pick() skips the rounds in which no queue could send: it adds
 *   their quanta in one step, with the same result. So a pick takes at most 3 steps per queue of the level: one rotation,
 *   one addition, one rotation. It is O(1) if no quantum is smaller than a packet.
 *   A deficit saturates at its quantum + 2^20 bytes. Only a head packet that grew while it waited could bring it there.
 */
#include "list.h"
#include "view.h"

#define DRR_LEVELS 64u

enum { DRR_QUANTUM, DRR_LEVEL, DRR_NQPARAMS };

struct drr_state {
	uint64_t busy;                  /* bit l: level l has an eligible queue */
	uint32_t head[DRR_LEVELS];
};

struct drr_queue {
	uint32_t quantum_bytes;         /* set by the user */
	uint32_t deficit_bytes;         /* what this queue may still send in this visit */
	uint8_t level;                  /* set by the user */
	uint8_t fresh;                  /* its next visit begins with a quantum */
	uint8_t unused[2];
};

static struct drr_queue *drr_queues(struct drr_state *st)
{
	return (struct drr_queue *)(st + 1);
}

static struct lw_link *drr_links(struct drr_state *st, const struct lw_view *v)
{
	return (struct lw_link *)(drr_queues(st) + v->nqueues);
}

static size_t drr_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct drr_state) + nqueues * (sizeof(struct drr_queue) + sizeof(struct lw_link));
}

static void drr_add(struct drr_queue *queue, uint64_t bytes)
{
	uint32_t most = queue->quantum_bytes + LW_MAX_PACKET_BYTES;
	uint64_t sum = queue->deficit_bytes + bytes;

	queue->deficit_bytes = sum < most ? (uint32_t)sum : most;
}

/* Visits a queue whose head packet has this length: 0 if it can send, otherwise how many more rounds it needs. */
static uint32_t drr_visit(struct drr_queue *queue, uint32_t length)
{
	uint32_t lack;

	if (queue->fresh) {
		drr_add(queue, queue->quantum_bytes);
		queue->fresh = 0;
	}
	if (length <= queue->deficit_bytes)
		return 0;
	lack = length - queue->deficit_bytes;
	queue->fresh = 1;
	/* rounded up */
	return lack <= queue->quantum_bytes ? 1 : (lack - 1) / queue->quantum_bytes + 1;
}

static void drr_grant(struct drr_queue *queue, uint32_t rounds)
{
	drr_add(queue, (uint64_t)rounds * queue->quantum_bytes);
}

/*
 * For the proofs of drr_turn, drr_skip and drr_pick. The level's list is any circle: drr_at(0) is its head and drr_count its
 * length; drr_place is the inverse, negative for a queue of another level. drr_longest is any bound of the packets, and
 * drr_length(q) the length of q's head.
 */
/*@ axiomatic drr_list {
      logic integer drr_at(integer i);
      logic integer drr_place(integer q);
      logic integer drr_count;
      logic integer drr_longest;
      logic integer drr_length(integer q);
      logic integer drr_bytes(integer rounds, integer quantum);         // of these rounds
    }
    logic struct drr_queue *drr_rows(struct drr_state *st) = (struct drr_queue *)(st + 1);
    logic struct lw_link *drr_chain(struct drr_state *st) = (struct lw_link *)((struct drr_queue *)(st + 1) + lw_n);
    predicate drr_kept{K,L}(struct drr_queue *rows) = \forall integer q; 0 <= q < lw_n ==>
	\at(rows[q].quantum_bytes, L) == \at(rows[q].quantum_bytes, K) && \at(rows[q].level, L) == \at(rows[q].level, K);
    predicate drr_circle{L}(struct lw_link *links) = 0 < drr_count && \forall integer q; 0 <= q < lw_n && 0 <= drr_place(q) ==>
	drr_place(q) < drr_count && drr_at(drr_place(q)) == q && 0 <= \at(links[q].next, L) < lw_n &&
	(drr_place(q) + 1 < drr_count ==> drr_place(\at(links[q].next, L)) == drr_place(q) + 1) &&
	(drr_place(q) + 1 == drr_count ==> drr_place(\at(links[q].next, L)) == 0);
    predicate drr_heads{L}(struct lw_queue *queues) = \forall integer q; 0 <= q < lw_n ==>
	\at(queues[q].head_bytes, L) == drr_length(q) && drr_length(q) <= drr_longest;
    // as good, visit and lacks of rocq/Drr.v
    predicate drr_good{L}(struct drr_queue *queue) = 0 < \at(queue->quantum_bytes, L) < LW_MAX_PACKET_BYTES &&
	\at(queue->deficit_bytes, L) < drr_longest + \at(queue->quantum_bytes, L) &&
	(\at(queue->fresh, L) != 0 ==> \at(queue->deficit_bytes, L) < drr_longest);
    predicate drr_visited{K,L}(struct drr_queue *queue) =
	(\at(queue->fresh, K) != 0 ==> \at(queue->deficit_bytes, L) == \at(queue->deficit_bytes, K) + \at(queue->quantum_bytes, K)) &&
	(\at(queue->fresh, K) == 0 ==> \at(queue->deficit_bytes, L) == \at(queue->deficit_bytes, K));
    predicate drr_granted{K,L}(struct drr_queue *queue, integer rounds) = \at(queue->deficit_bytes, L) ==
	\at(queue->deficit_bytes, K) + drr_bytes(rounds, \at(queue->quantum_bytes, K));
    predicate drr_lacks{L}(struct drr_queue *queue, integer length, integer rounds) = \at(queue->fresh, L) != 0 &&
	\at(queue->deficit_bytes, L) + drr_bytes(rounds - 1, \at(queue->quantum_bytes, L)) < length;
    predicate drr_near{L}(struct drr_queue *queue, integer length, integer rounds) = \at(queue->fresh, L) != 0 &&
	length <= \at(queue->deficit_bytes, L) + drr_bytes(rounds, \at(queue->quantum_bytes, L));
    predicate drr_some_near{L}(struct drr_queue *rows, integer places, integer rounds) = \exists integer p; 0 <= p < lw_n &&
	0 <= drr_place(p) < places && drr_near{L}(rows + p, drr_length(p), rounds);
    predicate drr_same{K,L}(struct drr_queue *queue) = \at(queue->deficit_bytes, L) == \at(queue->deficit_bytes, K) &&
	\at(queue->fresh, L) == \at(queue->fresh, K); */

/* Visits queues, beginning with the list's head, until a head packet fits. If none fits in one rotation: LW_NONE, and in
 * *rounds how many more rounds the first to send needs. */
static uint32_t drr_turn(struct drr_state *st, const struct lw_view *v, uint32_t *head, uint32_t *rounds)
{
	struct lw_link *links = drr_links(st, v);
	uint32_t first = *head, q = first;

	*rounds = UINT32_MAX;
	/*@ loop invariant kept: drr_kept{Pre,Here}(drr_rows(st));
	    loop invariant circle: drr_circle(links);
	    loop invariant heads: drr_heads(v->queues);
	    loop invariant exists: q < lw_n;
	    loop invariant place: 0 <= drr_place(q);
	    loop invariant some: *rounds >= 1;
	    loop invariant same: \forall integer p; 0 <= p < lw_n && (drr_place(p) < 0 || drr_place(q) <= drr_place(p)) ==>
		drr_same{Pre,Here}(drr_rows(st) + p);
	    loop invariant visited: \forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) < drr_place(q) ==>
		drr_visited{Pre,Here}(drr_rows(st) + p);
	    loop invariant good: \forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) < drr_place(q) ==>
		drr_good(drr_rows(st) + p);
	    loop invariant lacks: \forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) < drr_place(q) ==>
		drr_lacks(drr_rows(st) + p, drr_length(p), *rounds);
	    loop invariant nearest: (drr_place(q) == 0 ==> *rounds == UINT32_MAX) &&
		(drr_place(q) > 0 ==> drr_some_near(drr_rows(st), drr_place(q), *rounds));
	    loop assigns q, *rounds, drr_rows(st)[0 .. lw_n - 1]; */
	do {
		uint32_t lack;

		//@ assert visited_exists: q < lw_n;
		lack = drr_visit(drr_queues(st) + q, v->queues[q].head_bytes);
		if (!lack) {
			*head = q;
			return q;
		}
		/*@ assert fewer: \forall integer quantum; 0 <= quantum && lack <= *rounds ==>
			drr_bytes(lack - 1, quantum) <= drr_bytes(*rounds - 1, quantum); */
		if (lack < *rounds)
			*rounds = lack;
		/*@ assert lacking: \forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) <= drr_place(q) ==>
			drr_lacks(drr_rows(st) + p, drr_length(p), *rounds); */
		//@ assert nearer: drr_some_near(drr_rows(st), drr_place(q) + 1, *rounds);
		q = links[q].next;
	} while (q != first);
	return LW_NONE;
}

/* Adds the quanta of rounds in which no queue of the list can send: no deficit reaches its head packet, so none overflows. */
static void drr_skip(struct drr_state *st, const struct lw_view *v, uint32_t first, uint32_t rounds)
{
	uint32_t q = first;

	/*@ loop invariant kept: drr_kept{Pre,Here}(drr_rows(st));
	    loop invariant circle: drr_circle(drr_chain(st));
	    loop invariant exists: q < lw_n;
	    loop invariant place: 0 <= drr_place(q);
	    loop invariant fresh: \forall integer p; 0 <= p < lw_n ==> drr_rows(st)[p].fresh == \at(drr_rows(st)[p].fresh, Pre);
	    loop invariant same: \forall integer p; 0 <= p < lw_n && (drr_place(p) < 0 || drr_place(q) <= drr_place(p)) ==>
		drr_same{Pre,Here}(drr_rows(st) + p);
	    loop invariant granted: \forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) < drr_place(q) ==>
		drr_granted{Pre,Here}(drr_rows(st) + p, rounds);
	    loop invariant good: \forall integer p; 0 <= p < lw_n && 0 <= drr_place(p) < drr_place(q) ==> drr_good(drr_rows(st) + p);
	    loop assigns q, drr_rows(st)[0 .. lw_n - 1]; */
	do {
		//@ assert skipped_exists: q < lw_n;
		drr_grant(drr_queues(st) + q, rounds);
		q = drr_links(st, v)[q].next;
	} while (q != first);
}

static uint32_t drr_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct drr_state *st = (struct drr_state *)state;
	uint32_t *head, q, rounds;

	if (!st->busy)
		return lw_answer(LW_NONE, retry_ns);
	head = &st->head[LW_CTZ64(st->busy)];
	q = drr_turn(st, v, head, &rounds);
	if (q != LW_NONE)
		return lw_answer(q, retry_ns);
	if (rounds > 1)
		drr_skip(st, v, *head, rounds - 1);
	/* this rotation adds the last quantum, so the queue that lacked least can send */
	return lw_answer(drr_turn(st, v, head, &rounds), retry_ns);
}

static void drr_leave(struct drr_state *st, const struct lw_view *v, uint32_t q)
{
	uint32_t level = drr_queues(st)[q].level;

	lw_remove(drr_links(st, v), &st->head[level], q);
	if (st->head[level] == LW_NONE)
		st->busy &= ~((uint64_t)1 << level);
}

/* join or leave; a queue that leaves forfeits its deficit */
static void drr_follow(struct drr_state *st, const struct lw_view *v, uint32_t q)
{
	struct drr_queue *queue = drr_queues(st) + q;
	bool eligible = lw_eligible(v, q);

	if (eligible == lw_listed(drr_links(st, v), q))
		return;
	queue->deficit_bytes = 0;
	queue->fresh = 1;
	if (eligible) {
		lw_append(drr_links(st, v), &st->head[queue->level], q);
		st->busy |= (uint64_t)1 << queue->level;
	} else {
		drr_leave(st, v, q);
	}
}

static void drr_rated(void *state, const struct lw_view *v)
{
	uint32_t q;

	for (q = 0; q < v->nqueues; q++)
		drr_follow((struct drr_state *)state, v, q);
}

static void drr_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct drr_state *st = (struct drr_state *)state;
	uint32_t l, q;

	(void)params;
	st->busy = 0;
	for (l = 0; l < DRR_LEVELS; l++)
		st->head[l] = LW_NONE;
	for (q = 0; q < v->nqueues; q++, qparams += DRR_NQPARAMS) {
		struct drr_queue *queue = drr_queues(st) + q;

		memset(queue, 0, sizeof(*queue));
		queue->quantum_bytes = (uint32_t)qparams[DRR_QUANTUM];
		queue->level = (uint8_t)qparams[DRR_LEVEL];
	}
	lw_unlink_all(drr_links(st, v), v->nqueues);
	drr_rated(st, v);
}

/* Deficits are kept. A queue whose level changed joins the new one as if it had just become eligible. */
static void drr_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct drr_state *st = (struct drr_state *)state;
	uint32_t q;

	(void)params;
	for (q = 0; q < v->nqueues; q++, qparams += DRR_NQPARAMS) {
		struct drr_queue *queue = drr_queues(st) + q;
		uint8_t level = (uint8_t)qparams[DRR_LEVEL];

		queue->quantum_bytes = (uint32_t)qparams[DRR_QUANTUM];
		drr_add(queue, 0);              /* a smaller quantum lowers the bound of the deficit */
		if (queue->level == level)
			continue;
		if (lw_listed(drr_links(st, v), q))
			drr_leave(st, v, q);
		queue->level = level;
		drr_follow(st, v, q);
	}
}

static void drr_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct drr_state *st = (struct drr_state *)state;
	struct drr_queue *queue = drr_queues(st) + q;

	/* a packet sent out of turn may be longer than the deficit */
	queue->deficit_bytes = queue->deficit_bytes > bytes ? queue->deficit_bytes - bytes : 0;
	drr_follow(st, v, q);
}

/* enqueued and dropped */
static void drr_event(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	(void)bytes;
	drr_follow((struct drr_state *)state, v, q);
}

static const struct lw_param drr_qparams[DRR_NQPARAMS] = {
	{ "quantum", "bytes per round; a quantum of at least the largest packet makes every pick O(1)", NULL, 1,
	  LW_MAX_PACKET_BYTES - 1, 1514, LW_BYTES, 0 },
	{ "level", "priority, 0 the most urgent; queues of one level share it by quantum", NULL, 0, DRR_LEVELS - 1, 0,
	  LW_NUMBER, 0 },
};

const struct lw_policy lw_policy_drr = {
	.name = "drr",
	.help = "deficit round robin in bytes, within strict levels",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES,
	.max_queues = LW_MAX_QUEUES,
	.nqparams = DRR_NQPARAMS,
	.qparams = drr_qparams,
	.state_size = drr_state_size,
	.init = drr_init,
	.pick = drr_pick,
	.enqueued = drr_event,
	.sent = drr_sent,
	.dropped = drr_event,
	.rated = drr_rated,
	.change = drr_change,
};
