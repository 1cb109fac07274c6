/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * codes.c - CoDeS: proportional fairness that drops packets which have waited too long.
 *
 * Tauran et al., 2018, section IV. Selection is that of pf.h. A packet that has waited longer than its queue's timeout is
 * dropped: when its turn comes, or when the queue's limit would refuse a new packet. A packet that has waited exactly the
 * timeout is sent. Queues are FIFOs, so the head packet is the oldest. A dropped packet does not count as service.
 */
#include "pf.h"

enum { CODES_TIMEOUT = PF_NQPARAMS, CODES_NQPARAMS };

static void codes_set(void *state, const struct lw_view *v, const uint64_t *qparams)
{
	uint32_t q;

	for (q = 0; q < v->nqueues; q++)
		pf_queues((struct pf_state *)state)[q].timeout_ns = qparams[(size_t)q * CODES_NQPARAMS + CODES_TIMEOUT];
}

static void codes_init(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	pf_start((struct pf_state *)state, v, params, qparams, CODES_NQPARAMS);
	codes_set(state, v, qparams);
}

static void codes_change(void *state, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams)
{
	pf_alter((struct pf_state *)state, v, params, qparams, CODES_NQPARAMS);
	codes_set(state, v, qparams);
}

static bool codes_expired(const void *state, const struct lw_view *v, uint32_t q)
{
	const struct pf_state *st = (const struct pf_state *)state;

	return lw_means_late(&st->means, v, q, ((const struct pf_queue *)(st + 1))[q].timeout_ns);
}

static enum lw_verdict codes_leaving(void *state, const struct lw_view *v, uint32_t q, bool ecn)
{
	(void)ecn;
	return codes_expired(state, v, q) ? LW_DROP : LW_PASS;
}

static const struct lw_param codes_params[PF_NPARAMS] = { LW_TC_PARAM, LW_UNIT_PARAM, LW_IDLE_PARAM };
static const struct lw_param codes_qparams[CODES_NQPARAMS] = {
	LW_WEIGHT_PARAM,
	{ "timeout", "a packet that waited longer is dropped; 0: none", NULL, 0, 3600000000000u, 100000000, LW_NS, 0 },
};
static const struct lw_stat codes_stats[] = { LW_MEAN_STAT };

const struct lw_policy lw_policy_codes = {
	.name = "codes",
	.help = "CoDeS: proportional fairness that drops what waited longer than a timeout",
	.abi = LW_ABI,
	.max_queues = LW_MAX_QUEUES,
	.nparams = PF_NPARAMS,
	.nqparams = CODES_NQPARAMS,
	.nstats = 1,
	.params = codes_params,
	.qparams = codes_qparams,
	.stats = codes_stats,
	.state_size = pf_state_size,
	.init = codes_init,
	.pick = pf_pick,
	.enqueued = pf_event,
	.sent = pf_sent,
	.dropped = pf_event,
	.rated = pf_rated,
	.change = codes_change,
	.leaving = codes_leaving,
	.expired = codes_expired,
	.observe = pf_observe,
};
