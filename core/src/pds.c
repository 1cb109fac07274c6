/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * pds.c - proportional differentiation: delays in fixed ratios, losses in fixed ratios, whatever the load.
 *
 * Service: waiting-time priority (Kleinrock 1964; Dovrolis, Stiliadis and Ramanathan 1999). The eligible queue with the
 * largest d * waiting time of its head packet is served first, so mean delays tend to the ratios of 1/d.
 *
 * Loss: proportional loss rates (Dovrolis and Ramanathan 2000; Gaidioz, Goutelle and Primet 2002, where all queues share
 * one limit). When all queues together hold more than `limit` packets, the backlogged queue with the smallest
 * l * lost / received drops its tail packet, so loss rates tend to the ratios of 1/l. `received` and `lost` are counted
 * over a history:
 *   decayed   both are halved after every k-th arrival. It needs O(queues) of memory, has no stale entries, and is more
 *             accurate than the ring at equal k. Counts are in 1/256 of a packet: the queue that loses least has about ten
 *             losses in its history, and halving whole packets would cost it 4 % more losses.
 *   ring      exactly the last k arrivals, as in the report. An entry points to its queue's previous entry, so the entries
 *             of successive tail packets are found without touching a packet. A packet older than k arrivals no longer has
 *             an entry, so its loss is not counted; counted in the entry of a later arrival it would corrupt the counts.
 *   infinite  everything since the start; adapts ever more slowly.
 *
 * Early drops (early=peld; own design, after Gaidioz and Primet 2003, Aweya et al. 2004): above `qmin` packets each arrival
 * adds part of a token, up to one token per arrival at `limit`. A token is charged to the queue with the smallest loss
 * among all that have received anything, backlogged or not. A queue without backlog owes the drop (a debt) and pays it with
 * its next arrival. So losses keep their ratios even if the queue that must lose is mostly empty.
 *
 * Where ours deviates
 *   An overflow is total > limit with the new packet counted; the new packet may itself be dropped.
 *   One arrival costs at most two packets, so a limit lowered below the backlog is reached over several arrivals.
 *   The first eligible queue is accepted unconditionally, so a packet that has just arrived can be sent.
 *   A queue that received nothing has a loss rate of 0, and ties go to the smaller l: the queue meant to lose more.
 *   Ties in service go to the larger d (tie=lowest_index: as in the report).
 *
 * Steps: pick, a drop and a token look at every queue (an overflow with debts three times). An arrival is O(1); with
 * decayed history every k-th arrival looks at every queue as well. init() writes the queues, but no entry of the ring.
 */
#include "view.h"
#include <linkweir/math.h>

#define PDS_MAX_QUEUES 4096u
#define PDS_MAX_PKTS (1u << 20)
#define PDS_MAX_HISTORY (1u << 22)
#define PDS_MOST_DROPS 2u                       /* for one arrival */
#define PDS_FINE 256u                           /* decayed: what one packet counts */
#define PDS_MAX_WAIT_NS ((uint64_t)1 << 47)     /* 39 h; times a 16-bit coefficient stays below 2^63 */

enum { PDS_LIMIT, PDS_HISTORY, PDS_K, PDS_EARLY, PDS_QMIN, PDS_TIE, PDS_NPARAMS };
enum { PDS_DELAY, PDS_LOSS, PDS_NQPARAMS };
enum { PDS_DECAYED, PDS_RING, PDS_INFINITE };
enum { PDS_OFF, PDS_PELD };
enum { PDS_LARGER_DELAY, PDS_LOWEST_INDEX };

struct pds_state {
	uint64_t seen_ns;
	uint64_t total_pkts;            /* of all queues */
	uint64_t arrivals;              /* ring: since the start, the sequence number of the next */
	uint64_t ramp;                  /* 2^32 / (limit - qmin) */
	uint32_t token_q16;             /* part of an early drop that has accumulated; below one between calls */
	uint32_t slot;                  /* ring: entry of the next arrival; decayed: arrivals since the last halving */
	uint32_t pending;               /* the queue that must drop a packet for the last arrival, or LW_NONE */
	/* set by the user */
	uint32_t limit_pkts, qmin_pkts, k;
	uint32_t unit;                  /* what one packet counts in received and lost */
	uint8_t history, peld, lowest_index;
	uint8_t drops_left;             /* packets that the last arrival may still cost */
};

struct pds_queue {
	uint64_t received, lost;        /* within the history, in 1/unit packets */
	uint64_t tail_seq;              /* ring: arrival of the tail packet */
	uint32_t debt_pkts;
	uint16_t delay, loss;           /* set by the user: d and l */
};

/* ring: one arrival */
struct pds_entry {
	uint64_t before;                /* sequence number of this queue's tail packet before this one */
	uint32_t queue;
	uint32_t lost;
};

static struct pds_queue *pds_queues(struct pds_state *st)
{
	return (struct pds_queue *)(st + 1);
}

static struct pds_entry *pds_ring(struct pds_state *st, const struct lw_view *v)
{
	return (struct pds_entry *)(pds_queues(st) + v->nqueues);
}

static size_t pds_state_size(uint32_t nqueues, const uint64_t *params)
{
	size_t entries = params[PDS_HISTORY] == PDS_RING ? (size_t)params[PDS_K] : 0;

	return sizeof(struct pds_state) + nqueues * sizeof(struct pds_queue) + entries * sizeof(struct pds_entry);
}

static bool pds_check(const struct lw_view *v, const uint64_t *params, const uint64_t *qparams, struct lw_fault *fault)
{
	(void)v, (void)qparams;
	fault->queue = LW_NONE;
	if (params[PDS_EARLY] == PDS_PELD && params[PDS_HISTORY] != PDS_DECAYED) {
		fault->what = "early=peld needs history=decayed: choose that, or early=off";
		fault->param = "early";
		return false;
	}
	if (params[PDS_EARLY] == PDS_PELD && params[PDS_QMIN] >= params[PDS_LIMIT]) {
		fault->what = "qmin must be below limit: lower qmin or raise limit";
		fault->param = "qmin";
		return false;
	}
	return true;
}

/* ---- service ---- */

static uint32_t pds_pick(void *state, const struct lw_view *v, uint64_t *retry_ns)
{
	struct pds_state *st = (struct pds_state *)state;
	const struct pds_queue *queues = pds_queues(st);
	uint64_t now = lw_clock(&st->seen_ns, v), best_value = 0;
	uint32_t q, best = LW_NONE;

	for (q = 0; q < v->nqueues; q++) {
		uint64_t value;

		if (!lw_eligible(v, q))
			continue;
		value = lw_excess(now, v->queues[q].head_arrival_ns);
		value = queues[q].delay * (value < PDS_MAX_WAIT_NS ? value : PDS_MAX_WAIT_NS);
		if (value < best_value)
			continue;
		if (value > best_value || best == LW_NONE || (!st->lowest_index && queues[q].delay > queues[best].delay)) {
			best = q;
			best_value = value;
		}
	}
	return lw_answer(best, retry_ns);
}

/* ---- loss ---- */

/*
 * Does a lose before b? Compares l * (lost + debts) / received, exactly; ties go to the smaller l. A debt counts as `debt`.
 * The products fit into 64 bits: l has 16 bits, and counts stay below 2^48.
 */
static bool pds_loses_first(const struct pds_queue *a, const struct pds_queue *b, uint32_t debt)
{
	uint64_t lost_a = a->received ? a->lost + (uint64_t)debt * a->debt_pkts : 0;
	uint64_t lost_b = b->received ? b->lost + (uint64_t)debt * b->debt_pkts : 0;
	uint64_t received_a = a->received ? a->received : 1, received_b = b->received ? b->received : 1;

	if (lw_product_less(a->loss * lost_a, received_b, b->loss * lost_b, received_a))
		return true;
	if (lw_product_less(b->loss * lost_b, received_a, a->loss * lost_a, received_b))
		return false;
	return a->loss < b->loss;
}

/* The loss rule, applied to the backlogged queues. */
static uint32_t pds_loser(struct pds_state *st, const struct lw_view *v)
{
	const struct pds_queue *queues = pds_queues(st);
	uint32_t q, best = LW_NONE;

	for (q = 0; q < v->nqueues; q++)
		if (v->queues[q].backlog_pkts &&
		    (best == LW_NONE || pds_loses_first(queues + q, queues + best, 0)))
			best = q;
	return best;
}

/* The same with debts, applied to the queues (or to the backlogged ones only) that have received at least one packet more
 * than they lost and owe. */
static uint32_t pds_debtor(struct pds_state *st, const struct lw_view *v, bool backlogged)
{
	const struct pds_queue *queues = pds_queues(st);
	uint32_t q, best = LW_NONE;

	for (q = 0; q < v->nqueues; q++)
		if (queues[q].lost + (uint64_t)st->unit * ((uint64_t)queues[q].debt_pkts + 1) <= queues[q].received &&
		    (!backlogged || v->queues[q].backlog_pkts) &&
		    (best == LW_NONE || pds_loses_first(queues + q, queues + best, st->unit)))
			best = q;
	return best;
}

static void pds_token(struct pds_state *st, const struct lw_view *v)
{
	uint32_t q = pds_debtor(st, v, false);

	if (q == LW_NONE)
		return;
	if (v->queues[q].backlog_pkts)
		st->pending = q;
	else
		pds_queues(st)[q].debt_pkts++;
}

static void pds_overflow(struct pds_state *st, const struct lw_view *v)
{
	uint32_t q = pds_debtor(st, v, false);

	if (q != LW_NONE && !v->queues[q].backlog_pkts) {
		pds_queues(st)[q].debt_pkts++;          /* it has no packet to drop, so a backlogged queue makes room as well */
		q = pds_debtor(st, v, true);
	}
	st->pending = q != LW_NONE ? q : pds_loser(st, v);
}

/* ---- history ---- */

static void pds_halve(struct pds_state *st, const struct lw_view *v)
{
	struct pds_queue *queues = pds_queues(st);
	uint32_t q;

	for (q = 0; q < v->nqueues; q++) {
		queues[q].received >>= 1;
		queues[q].lost >>= 1;
		if (queues[q].received < st->unit)      /* less than one packet in the history cannot owe one */
			queues[q].debt_pkts = 0;
	}
}

static void pds_enter(struct pds_state *st, const struct lw_view *v, uint32_t q)
{
	struct pds_queue *queues = pds_queues(st);
	struct pds_entry *entry = pds_ring(st, v) + st->slot;

	if (st->arrivals >= st->k) {            /* the oldest leaves the history */
		queues[entry->queue].received--;
		queues[entry->queue].lost -= entry->lost;
	}
	entry->queue = q;
	entry->lost = 0;
	entry->before = queues[q].tail_seq;
	queues[q].tail_seq = st->arrivals++;
	st->slot = st->slot + 1 < st->k ? st->slot + 1 : 0;
}

/* The tail packet of q was dropped: its entry notes that, if it is among the last k arrivals and still has one. */
static void pds_strike(struct pds_state *st, const struct lw_view *v, uint32_t q)
{
	struct pds_queue *queue = pds_queues(st) + q;
	uint64_t age = st->arrivals - queue->tail_seq, slot = st->slot;
	struct pds_entry *entry;

	if (age > st->k)
		return;
	/* `age` entries back in the ring; 1 is the last arrival */
	slot = slot >= age ? slot - age : slot + st->k - age;
	//@ assert entry_in_ring: slot < st->k;
	entry = pds_ring(st, v) + slot;
	entry->lost = 1;
	queue->lost++;
	queue->tail_seq = entry->before;
}

/* ---- the calls ---- */

static void pds_enqueued(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct pds_state *st = (struct pds_state *)state;
	struct pds_queue *queue = pds_queues(st) + q;
	uint64_t above, step;

	(void)bytes;
	lw_clock(&st->seen_ns, v);
	st->total_pkts++;
	st->pending = LW_NONE;
	st->drops_left = PDS_MOST_DROPS;
	queue->received += st->unit;
	if (st->history == PDS_RING) {
		pds_enter(st, v, q);
	} else if (st->history == PDS_DECAYED && ++st->slot == st->k) {
		st->slot = 0;
		pds_halve(st, v);
	}
	if (!st->peld)
		return;
	if (queue->debt_pkts) {
		queue->debt_pkts--;
		st->pending = q;
		return;
	}
	/* the product stays below 2^53; an arrival adds one token at most, also far above the limit */
	above = lw_excess(st->total_pkts, st->qmin_pkts);
	step = ((above < 2 * PDS_MAX_PKTS ? above : 2 * PDS_MAX_PKTS) * st->ramp) >> 16;
	st->token_q16 += step < 65536 ? (uint32_t)step : 65536;
	if (st->token_q16 >= 65536) {
		st->token_q16 -= 65536;
		pds_token(st, v);
	}
	if (st->pending == LW_NONE && st->total_pkts > st->limit_pkts)
		pds_overflow(st, v);
}

static uint32_t pds_victim(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct pds_state *st = (struct pds_state *)state;

	(void)q, (void)bytes;
	if (!st->drops_left)
		return LW_NONE;
	if (st->pending != LW_NONE && v->queues[st->pending].backlog_pkts)
		return st->pending;
	return st->total_pkts > st->limit_pkts ? pds_loser(st, v) : LW_NONE;
}

static void pds_sent(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct pds_state *st = (struct pds_state *)state;

	(void)q, (void)bytes;
	lw_clock(&st->seen_ns, v);
	st->total_pkts = lw_excess(st->total_pkts, 1);
}

static void pds_dropped(void *state, const struct lw_view *v, uint32_t q, uint32_t bytes)
{
	struct pds_state *st = (struct pds_state *)state;

	(void)bytes;
	lw_clock(&st->seen_ns, v);
	st->total_pkts = lw_excess(st->total_pkts, 1);
	if (st->drops_left)
		st->drops_left--;
	if (st->pending == q)
		st->pending = LW_NONE;
	if (st->history == PDS_RING)
		pds_strike(st, v, q);
	else
		pds_queues(st)[q].lost += st->unit;
}

/* The history and k keep the values given to init(). */
static void pds_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct pds_state *st = (struct pds_state *)state;
	uint32_t q;

	st->limit_pkts = (uint32_t)params[PDS_LIMIT];
	st->qmin_pkts = (uint32_t)params[PDS_QMIN];
	st->peld = params[PDS_EARLY] == PDS_PELD;
	st->lowest_index = params[PDS_TIE] == PDS_LOWEST_INDEX;
	if (st->peld) {
		uint64_t height = lw_excess(st->limit_pkts, st->qmin_pkts);

		//@ assert ramp_has_height: 0 < height <= PDS_MAX_PKTS;
		st->ramp = LW_DIV64((uint64_t)1 << 32, height);
	} else {
		st->token_q16 = 0;
	}
	for (q = 0; q < v->nqueues; q++, qparams += PDS_NQPARAMS) {
		if (!st->peld)
			pds_queues(st)[q].debt_pkts = 0;        /* forgiven: a later early=peld starts without debts */
		pds_queues(st)[q].delay = (uint16_t)qparams[PDS_DELAY];
		pds_queues(st)[q].loss = (uint16_t)qparams[PDS_LOSS];
	}
}

static void pds_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	struct pds_state *st = (struct pds_state *)state;
	uint32_t q;

	memset(st, 0, sizeof(*st));
	st->seen_ns = v->now_ns;
	st->history = (uint8_t)params[PDS_HISTORY];
	st->k = (uint32_t)params[PDS_K];
	st->unit = st->history == PDS_DECAYED ? PDS_FINE : 1;
	st->pending = LW_NONE;
	for (q = 0; q < v->nqueues; q++) {
		memset(pds_queues(st) + q, 0, sizeof(struct pds_queue));
		st->total_pkts += v->queues[q].backlog_pkts;
		pds_queues(st)[q].tail_seq = UINT64_MAX - st->k;        /* its age modulo 2^64 is above k */
	}
	pds_change(st, v, params, qparams);
}

/* ---- statistics ---- */

enum { PDS_SEE_RECEIVED, PDS_SEE_LOST, PDS_SEE_DEBT, PDS_NSTATS };

static void pds_observe(const void *state, const struct lw_view *v, uint32_t q, int64_t *values)
{
	const struct pds_state *st = (const struct pds_state *)state;
	const struct pds_queue *queue = (const struct pds_queue *)(st + 1) + q;

	(void)v;
	values[PDS_SEE_RECEIVED] = (int64_t)LW_DIV64(queue->received, st->unit);
	values[PDS_SEE_LOST] = (int64_t)LW_DIV64(queue->lost, st->unit);
	values[PDS_SEE_DEBT] = queue->debt_pkts;
}

static const struct lw_param pds_params[PDS_NPARAMS] = {
	{ "limit", "packets of all queues together", NULL, 1, PDS_MAX_PKTS, 80, LW_PKTS, 0 },
	{ "history", "arrivals that loss rates are counted over: halved every k, exactly the last k, or all",
	  "decayed|ring|infinite", PDS_DECAYED, PDS_INFINITE, PDS_DECAYED, LW_CHOICE, LW_AT_INIT },
	{ "k", "length of the history in arrivals", NULL, 2, PDS_MAX_HISTORY, 1500, LW_PKTS, LW_AT_INIT },
	{ "early", "early drops: off, or peld: proportional early loss with debts", "off|peld", PDS_OFF, PDS_PELD, PDS_OFF,
	  LW_CHOICE, 0 },
	{ "qmin", "early drops begin above this many packets and reach one per arrival at limit", NULL, 0, PDS_MAX_PKTS, 20,
	  LW_PKTS, 0 },
	{ "tie", "which of equally urgent queues goes first", "larger_delay|lowest_index", PDS_LARGER_DELAY, PDS_LOWEST_INDEX,
	  PDS_LARGER_DELAY, LW_CHOICE, 0 },
};

static const struct lw_param pds_qparams[PDS_NQPARAMS] = {
	{ "delay", "delay coefficient: mean delays are in inverse ratio", NULL, 1, 65535, 1, LW_NUMBER, 0 },
	{ "loss", "loss coefficient: loss rates are in inverse ratio", NULL, 1, 65535, 1, LW_NUMBER, 0 },
};

static const struct lw_stat pds_stats[PDS_NSTATS] = {
	{ "received", "arrivals within the history", LW_PKTS },
	{ "lost", "of which lost", LW_PKTS },
	{ "debt", "early drops to be paid by the next arrivals; early=off forgives them", LW_PKTS },
};

const struct lw_policy lw_policy_pds = {
	.name = "pds",
	.help = "proportional differentiation: delays and losses of the queues in fixed ratios",
	.abi = LW_ABI,
	.traits = LW_IGNORES_RATES,
	.max_queues = PDS_MAX_QUEUES,
	.nparams = PDS_NPARAMS,
	.nqparams = PDS_NQPARAMS,
	.nstats = PDS_NSTATS,
	.params = pds_params,
	.qparams = pds_qparams,
	.stats = pds_stats,
	.shared_limit = "limit",
	.state_size = pds_state_size,
	.check = pds_check,
	.init = pds_init,
	.pick = pds_pick,
	.enqueued = pds_enqueued,
	.sent = pds_sent,
	.dropped = pds_dropped,
	.change = pds_change,
	.victim = pds_victim,
	.observe = pds_observe,
};
