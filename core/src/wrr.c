/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * wrr.c - weighted round robin in packets, within strict levels.
 *
 * Katevenis, Sidiropoulos and Courcoubetis, 1991. A queue of weight W gets W packets per cycle. Shares are packets, so
 * they are shares of the link only where packets have one size (see drr for bytes).
 *
 *   burst    a visit sends up to W packets of one queue back to back, then the next queue is visited. A queue that empties
 *            or is blocked ends its visit and loses the rest of it.
 *   smooth   a cycle is made of rounds r = 1, 2...; round r serves one packet of each queue with W >= r. Weights 3, 1, 2
 *            give A B C A C A.
 *
 * Levels are strict among each other: a level is served while every more urgent one is empty. A visit or round interrupted
 * by a more urgent level resumes where it stopped.
 *
 * Lists of the eligible queues replace a search for the next one. So every call is O(1), except rated() and change(), which
 * look at every queue. pick() begins a new round, so a queue that becomes eligible between the last packet of a cycle and the
 * next pick() still joins the cycle that begins. Within a level, a queue that stays eligible waits for at most the other
 * queues' weights in packets (smooth: one packet more of each, as it may have been early in one cycle and late in the next).
 */
#include "list.h"
#include "view.h"

#define WRR_LEVELS 64u

enum { WRR_MODE, WRR_NPARAMS };
enum { WRR_WEIGHT, WRR_LEVEL, WRR_NQPARAMS };
enum { WRR_BURST, WRR_SMOOTH };

/* What the lists of a level are for. Roles move from list to list, so that no list is ever copied. */
enum wrr_role {
	WRR_NOW,                        /* burst: the queues in turn, the head being visited; smooth: this round */
	WRR_NEXT,                       /* smooth: the next round of this cycle */
	WRR_PARKED,                     /* smooth: the next cycle */
	WRR_ROLES
};

struct wrr_level {
	uint32_t head[WRR_ROLES];       /* the lists */
	uint8_t list[WRR_ROLES];        /* which of them has this role */
	uint8_t unused;
};

struct wrr_state {
	uint64_t busy;                  /* bit l: level l has an eligible queue */
	uint32_t smooth;
	uint32_t unused;
	struct wrr_level levels[WRR_LEVELS];
};

struct wrr_queue {
	uint32_t weight;                /* set by the user, packets */
	uint32_t sent;                  /* smooth: packets in this cycle */
	uint32_t left;                  /* burst: packets until the end of this visit; 0 before its first */
	uint8_t level;                  /* set by the user */
	uint8_t list;                   /* of its level, while in one */
	uint8_t unused[2];
};

static struct wrr_queue *wrr_queues(struct wrr_state *st)
{
	return (struct wrr_queue *)(st + 1);
}

static struct lw_link *wrr_links(struct wrr_state *st, const struct lw_view *v)
{
	return (struct lw_link *)(wrr_queues(st) + v->nqueues);
}

static size_t wrr_state_size(uint32_t nqueues, const uint64_t *params)
{
	(void)params;
	return sizeof(struct wrr_state) + nqueues * (sizeof(struct wrr_queue) + sizeof(struct lw_link));
}

static void wrr_join(struct wrr_state *st, const struct lw_view *v, uint32_t q, enum wrr_role role)
{
	struct wrr_queue *queue = wrr_queues(st) + q;
	struct wrr_level *level = st->levels + queue->level;

	queue->list = level->list[role];
	lw_append(wrr_links(st, v), &level->head[queue->list], q);
	st->busy |= (uint64_t)1 << queue->level;
}

static void wrr_leave(struct wrr_state *st, const struct lw_view *v, uint32_t q)
{
	struct wrr_queue *queue = wrr_queues(st) + q;
	struct wrr_level *level = st->levels + queue->level;

	lw_remove(wrr_links(st, v), &level->head[queue->list], q);
	/* LW_NONE has all bits set: the three lists are empty */
	if ((level->head[0] & level->head[1] & level->head[2]) == LW_NONE)
		st->busy &= ~((uint64_t)1 << queue->level);
}

/* The head of this round; when the round is over, the next one begins, or else the next cycle. */
static uint32_t wrr_head(struct wrr_level *level)
{
	uint8_t now = level->list[WRR_NOW];
	enum wrr_role role = level->head[level->list[WRR_NEXT]] != LW_NONE ? WRR_NEXT : WRR_PARKED;

	if (level->head[now] != LW_NONE)
		return level->head[now];
	level->list[WRR_NOW] = level->list[role];
	level->list[role] = now;
	return level->head[level->list[WRR_NOW]];
}

/* join or leave */
static void wrr_follow(struct wrr_state *st, const struct lw_view *v, uint32_t q)
{
	bool eligible = lw_eligible(v, q);

	if (eligible == lw_listed(wrr_links(st, v), q))
		return;
	wrr_queues(st)[q].sent = wrr_queues(st)[q].left = 0;
	if (eligible)
		wrr_join(st, v, q, st->smooth ? WRR_PARKED : WRR_NOW);
	else
		wrr_leave(st, v, q);
}

static void wrr_rated(void *state, const struct lw_view *v)
{
	uint32_t q;

	for (q = 0; q < v->nqueues; q++)
		wrr_follow((struct wrr_state *)state, v, q);
}

static void wrr_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct wrr_state *st = (struct wrr_state *)state;
	uint32_t l, r, q;

	memset(st, 0, sizeof(*st));
	st->smooth = params[WRR_MODE] == WRR_SMOOTH;
	for (l = 0; l < WRR_LEVELS; l++) {
		for (r = 0; r < WRR_ROLES; r++) {
			st->levels[l].head[r] = LW_NONE;
			st->levels[l].list[r] = (uint8_t)r;
		}
	}
	for (q = 0; q < v->nqueues; q++, qparams += WRR_NQPARAMS) {
		struct wrr_queue *queue = wrr_queues(st) + q;

		memset(queue, 0, sizeof(*queue));
		queue->weight = (uint32_t)qparams[WRR_WEIGHT];
		queue->level = (uint8_t)qparams[WRR_LEVEL];
	}
	lw_unlink_all(wrr_links(st, v), v->nqueues);
	wrr_rated(st, v);
}

/*
 * A visit in progress keeps its weight. A queue whose level changed joins the new level as if it had just become eligible;
 * after a change of mode all queues do so.
 */
static void wrr_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct wrr_state *st = (struct wrr_state *)state;
	uint32_t q;

	if (st->smooth != (params[WRR_MODE] == WRR_SMOOTH)) {
		wrr_init(st, v, params, qparams);
		return;
	}
	for (q = 0; q < v->nqueues; q++, qparams += WRR_NQPARAMS) {
		struct wrr_queue *queue = wrr_queues(st) + q;
		uint8_t level = (uint8_t)qparams[WRR_LEVEL];

		queue->weight = (uint32_t)qparams[WRR_WEIGHT];
		if (queue->level == level)
			continue;
		if (lw_listed(wrr_links(st, v), q))
			wrr_leave(st, v, q);
		queue->level = level;
		wrr_follow(st, v, q);
	}
}

static uint32_t wrr_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct wrr_state *st = (struct wrr_state *)state;

	(void)v;
	return lw_answer(st->busy ? wrr_head(st->levels + LW_CTZ64(st->busy)) : LW_NONE, retry_ns);
}

static void wrr_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct wrr_state *st = (struct wrr_state *)state;
	struct wrr_queue *queue = wrr_queues(st) + q;
	enum wrr_role role = WRR_NOW;

	(void)bytes;
	if (!lw_listed(wrr_links(st, v), q) || !lw_eligible(v, q)) {
		wrr_follow(st, v, q);
		return;
	}
	if (st->smooth) {
		uint32_t sent = queue->sent + 1;

		role = sent < queue->weight ? WRR_NEXT : WRR_PARKED;
		queue->sent = sent < queue->weight ? sent : 0;
	} else {
		/* the first packet begins the visit, with the weight of this moment */
		if (!queue->left)
			queue->left = queue->weight;
		if (--queue->left)
			return;                         /* the visit continues */
	}
	wrr_leave(st, v, q);
	wrr_join(st, v, q, role);
}

/* enqueued and dropped */
static void wrr_event(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	(void)bytes;
	wrr_follow((struct wrr_state *)state, v, q);
}

static const struct lw_param wrr_params[WRR_NPARAMS] = {
	{ "mode", "burst: all packets of a visit back to back; smooth: one packet of each queue per round", "burst|smooth",
	  WRR_BURST, WRR_SMOOTH, WRR_BURST, LW_CHOICE, 0 },
};

static const struct lw_param wrr_qparams[WRR_NQPARAMS] = {
	{ "weight", "packets per visit", NULL, 1, 65535, 1, LW_PKTS, 0 },
	{ "level", "priority, 0 the most urgent; queues of one level share it by weight", NULL, 0, WRR_LEVELS - 1, 0,
	  LW_NUMBER, 0 },
};

const struct lw_policy lw_policy_wrr = {
	.name = "wrr",
	.help = "weighted round robin in packets, within strict levels",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES,
	.max_queues = LW_MAX_QUEUES,
	.nparams = WRR_NPARAMS,
	.nqparams = WRR_NQPARAMS,
	.params = wrr_params,
	.qparams = wrr_qparams,
	.state_size = wrr_state_size,
	.init = wrr_init,
	.pick = wrr_pick,
	.enqueued = wrr_event,
	.sent = wrr_sent,
	.dropped = wrr_event,
	.rated = wrr_rated,
	.change = wrr_change,
};
