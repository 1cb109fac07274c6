/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * limits.c - what the contract requires of every policy besides its answers: how many queues it serves, that its state is
 * large enough for them and quick to initialise, and that its tables can drive a user interface.
 *
 *   limits [POLICY...]       all policies if none is named
 */
#include "named.h"

#include <linkweir/policy.h>

#include <stdio.h>
#include <stdlib.h>

#define GUARD_BYTES 64u
#define MOST_WRITTEN_BYTES 65536u       /* for one queue */

static const char *policy_name;

static bool wrong(const char *what, const char *name)
{
	fprintf(stderr, "%s: %s %s\n", policy_name, what, name);
	return false;
}

/* the defaults that only very long vectors could show */
static bool defaults_hold(const struct lw_policy *policy)
{
	static const struct { const char *policy, *param; uint64_t def; } expected[] = {
		{ "dualpi2", "limit", 10000 },
		{ "fq_codel", "limit", 10240 },
		{ "pds", "k", 1500 },
	};
	uint32_t i, j;

	for (i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		if (strcmp(policy->name, expected[i].policy) != 0)
			continue;
		for (j = 0; j < policy->nparams && strcmp(policy->params[j].name, expected[i].param) != 0; j++)
			;
		if (j == policy->nparams || policy->params[j].def != expected[i].def)
			return wrong("not the expected default:", expected[i].param);
	}
	return true;
}

static uint32_t choices_of(const struct lw_param *param)
{
	const char *c;
	uint32_t n = 1;

	for (c = param->choices; *c; c++)
		n += *c == '|';
	return n;
}

/* `flags`: that a parameter of this table may have */
static bool table_holds(const struct lw_param *table, uint32_t n, uint32_t flags)
{
	uint32_t i, j;

	for (i = 0; i < n; i++) {
		const struct lw_param *param = table + i;

		if (!param->name || !param->name[0] || !param->help || !param->help[0])
			return wrong("a parameter without name or help:", param->name ? param->name : "");
		for (j = 0; j < i; j++)
			if (!strcmp(param->name, table[j].name))
				return wrong("two parameters named", param->name);
		if (param->min > param->max || (param->def != LW_UNSET && (param->def < param->min || param->def > param->max)))
			return wrong("the default is outside the range:", param->name);
		if ((param->unit == LW_CHOICE) != (param->choices != NULL))
			return wrong("choices and unit do not agree:", param->name);
		if (param->flags & ~flags)
			return wrong("a flag that cannot be here:", param->name);
		if (param->choices && (param->min != 0 || param->max + 1 != choices_of(param)))
			return wrong("the range is not that of the choices:", param->name);
	}
	return true;
}

/* does the state's size depend on this parameter, with the present values of the others? */
static bool is_sized_by(const struct lw_policy *policy, uint64_t *params, uint32_t i)
{
	const struct lw_param *param = policy->params + i;
	uint64_t kept = params[i], value = param->min;
	size_t first;
	bool differs = false;

	params[i] = value;
	first = policy->state_size(3, params);
	while (value != param->max) {
		value = param->choices ? value + 1 : param->max;
		params[i] = value;
		differs = differs || policy->state_size(3, params) != first;
	}
	params[i] = kept;
	return differs;
}

/* Exactly the parameters with LW_AT_INIT size the state, with some value of the choices. */
static bool sizes_hold(const struct lw_policy *policy)
{
	uint64_t params[16] = { 0 };
	uint32_t i, j;

	for (i = 0; i < policy->nparams; i++)
		params[i] = policy->params[i].def;
	for (i = 0; i < policy->nparams; i++) {
		bool sized = is_sized_by(policy, params, i);

		for (j = 0; j < policy->nparams; j++) {
			uint64_t kept = params[j];

			for (params[j] = 0; policy->params[j].choices && params[j] <= policy->params[j].max; params[j]++)
				sized = is_sized_by(policy, params, i) || sized;
			params[j] = kept;
		}
		if (sized != !!(policy->params[i].flags & LW_AT_INIT))
			return wrong("the flag LW_AT_INIT is wrong for:", policy->params[i].name);
	}
	return true;
}

/* n queues with default parameters and a packet each; the state is not zero before init(), and guard bytes follow it. */
static bool house_holds(const struct lw_policy *policy, uint32_t n, uint64_t *params)
{
	size_t size = policy->state_size(n, params), i;
	struct lw_queue *queues = (struct lw_queue *)calloc(n, sizeof(*queues));
	uint64_t *qparams = (uint64_t *)calloc((size_t)n * policy->nqparams + 1, sizeof(*qparams));
	unsigned char *room = (unsigned char *)malloc(size + GUARD_BYTES);
	struct lw_view v = { 1000, 1000000000, queues, n };
	struct lw_fault fault = { NULL, NULL, LW_NONE };
	uint64_t retry_ns = 0;
	bool good = false;
	uint32_t q, picked;

	if (!queues || !qparams || !room || !size) {
		wrong("cannot serve as many queues as it should", "");
		goto out;
	}
	memset(room, 0x5a, size + GUARD_BYTES);
	for (q = 0; q < n; q++) {
		queues[q].rate_bps = v.link_bps;
		for (i = 0; i < policy->nqparams; i++)
			qparams[(size_t)q * policy->nqparams + i] = policy->qparams[i].def;
	}
	if (policy->check && !policy->check(&v, params, qparams, &fault)) {
		wrong("refuses its defaults:", fault.param);
		goto out;
	}
	policy->init(room, &v, params, qparams);
	if (policy->pick(room, &v, &retry_ns) != LW_NONE || retry_ns != LW_NEVER) {
		wrong("picks a queue though no packet waits", "");
		goto out;
	}
	for (q = n; q-- > 0;) {
		queues[q].backlog_pkts = 1;
		queues[q].backlog_bytes = queues[q].head_bytes = 100;
		queues[q].head_arrival_ns = v.now_ns;
		if (policy->enqueued)
			policy->enqueued(room, &v, q, 100);
	}
	for (i = 0; i < n; i++) {
		picked = policy->pick(room, &v, &retry_ns);
		if (picked >= n || !queues[picked].backlog_pkts) {
			wrong("picks a queue without a packet", "");
			goto out;
		}
		queues[picked].backlog_pkts = 0;
		queues[picked].backlog_bytes = 0;
		if (policy->sent)
			policy->sent(room, &v, picked, 100);
	}
	good = true;
	for (i = 0; i < GUARD_BYTES; i++)
		good = good && room[size + i] == 0x5a;
	if (!good)
		wrong("writes behind its state", "");
	if (policy->pick(room, &v, &retry_ns) != LW_NONE)
		good = wrong("picks a queue though no packet waits", "");
out:
	free(queues);
	free(qparams);
	free(room);
	return good;
}

/* how many bytes of a state have changed */
static size_t written_by(const unsigned char *state, const unsigned char *before, size_t size)
{
	size_t at, written = 0;

	for (at = 0; at < size; at++)
		written += state[at] != before[at];
	return written;
}

/* init() and change() may run under a lock: for one queue each writes a small part of the largest state. */
static bool is_short(const struct lw_policy *policy)
{
	struct lw_queue queue = { 0, 0, 1000000000, 0, 0 };
	struct lw_view v = { 1000, 1000000000, &queue, 1 };
	uint64_t params[16] = { 0 }, qparams[16] = { 0 }, choice;
	bool good = true;
	uint32_t i;

	for (i = 0; i < policy->nqparams; i++)
		qparams[i] = policy->qparams[i].def;
	for (choice = 0; choice < 4 && good; choice++) {
		unsigned char *state, *before;
		size_t size;

		for (i = 0; i < policy->nparams; i++) {
			const struct lw_param *param = policy->params + i;

			params[i] = param->def;
			if (param->flags & LW_AT_INIT)
				params[i] = param->choices && choice < param->max ? choice : param->max;
		}
		size = policy->state_size(1, params);
		state = (unsigned char *)malloc(size);
		before = (unsigned char *)malloc(size);
		if (!state || !before) {
			free(state);
			free(before);
			return wrong("no memory for the largest state", "");
		}
		memset(state, 0x5a, size);
		memcpy(before, state, size);
		policy->init(state, &v, params, qparams);
		good = written_by(state, before, size) <= MOST_WRITTEN_BYTES || wrong("init() writes more than it may", "");
		memcpy(before, state, size);
		if (policy->change)
			policy->change(state, &v, params, qparams);
		good = (written_by(state, before, size) <= MOST_WRITTEN_BYTES || wrong("change() writes more than it may", "")) && good;
		free(state);
		free(before);
	}
	return good;
}

/* Every value at an end of its range is accepted, or refused with a reason and a parameter of the tables. */
static bool refusal_holds(const struct lw_policy *policy, const struct lw_view *v, const uint64_t *params,
			  const uint64_t *qparams)
{
	struct lw_fault fault = { NULL, NULL, 77 };
	uint32_t i;

	if (policy->check(v, params, qparams, &fault))
		return true;
	if (!fault.what || !fault.what[0] || !fault.param)
		return wrong("refuses without a reason", "");
	for (i = 0; fault.queue == LW_NONE && i < policy->nparams; i++)
		if (!strcmp(policy->params[i].name, fault.param))
			return true;
	for (i = 0; fault.queue < v->nqueues && i < policy->nqparams; i++)
		if (!strcmp(policy->qparams[i].name, fault.param))
			return true;
	return wrong("refuses for a parameter it does not have:", fault.param);
}

static bool refusals_hold(const struct lw_policy *policy)
{
	struct lw_queue queues[2];
	uint64_t params[16] = { 0 }, qparams[2 * 16] = { 0 }, kept, other;
	struct lw_view v = { 0, 1000000000, queues, 2 };
	uint32_t i, j, end;

	memset(queues, 0, sizeof(queues));
	for (i = 0; i < policy->nparams; i++)
		params[i] = policy->params[i].def;
	for (i = 0; i < 2 * policy->nqparams; i++)
		qparams[i] = policy->qparams[i % policy->nqparams].def;
	for (i = 0; policy->check && i < policy->nparams; i++) {        /* in pairs, since rules may relate two of them */
		for (j = 0; j < i; j++) {
			for (end = 0, kept = params[i], other = params[j]; end < 4; end++) {
				params[i] = end & 1 ? policy->params[i].max : policy->params[i].min;
				params[j] = end & 2 ? policy->params[j].max : policy->params[j].min;
				if (!refusal_holds(policy, &v, params, qparams))
					return false;
			}
			params[i] = kept;
			params[j] = other;
		}
	}
	for (i = 0; policy->check && i < 2 * policy->nqparams; i++) {
		for (end = 0, kept = qparams[i]; end < 2; end++) {
			qparams[i] = end ? policy->qparams[i % policy->nqparams].max : policy->qparams[i % policy->nqparams].min;
			if (!refusal_holds(policy, &v, params, qparams))
				return false;
		}
		qparams[i] = kept;
	}
	return true;
}

/* A parameter of the table, or none. A policy that names victims has one: else nothing says when it does. */
static bool shared_limit_holds(const struct lw_policy *policy)
{
	uint32_t i;

	if (policy->victim && !policy->shared_limit)
		return false;
	for (i = 0; policy->shared_limit && i < policy->nparams; i++)
		if (!strcmp(policy->params[i].name, policy->shared_limit))
			return policy->params[i].unit == LW_PKTS;
	return !policy->shared_limit;
}

/* The data plane sorts by ECN into queues whose `l4s` is yes, so exactly the policies with that parameter ask for it. */
static bool sorting_holds(const struct lw_policy *policy)
{
	uint32_t i;

	for (i = 0; i < policy->nqparams && strcmp(policy->qparams[i].name, "l4s") != 0; i++)
		;
	return (i < policy->nqparams) == !!(policy->traits & LW_SORTED_BY_ECN);
}

static bool policy_holds(const struct lw_policy *policy)
{
	uint64_t params[16] = { 0 };
	uint32_t i, most = policy->max_queues;

	policy_name = policy->name;
	if (most < 1 || most > LW_MAX_QUEUES || policy->traits & ~(uint32_t)(LW_IGNORES_RATES | LW_SORTED_BY_ECN))
		return wrong("the table has a wrong largest number of queues or an unknown trait", "");
	if (policy->abi != LW_ABI || policy->nparams > 16 || policy->nqparams > 16 || !policy->help || !policy->help[0])
		return wrong("the table has another ABI, too many parameters or no help", "");
	for (i = 0; i < policy->nparams; i++)
		params[i] = policy->params[i].def;
	for (i = 0; i < policy->nstats; i++)
		if (!policy->stats[i].name || !policy->stats[i].help || !policy->observe)
			return wrong("a statistic without name, help or observe()", "");
	if (!sorting_holds(policy))
		return wrong("the trait LW_SORTED_BY_ECN without a parameter l4s of queues, or the reverse", "");
	if (!shared_limit_holds(policy))
		return wrong("a shared limit that is no parameter in packets, or victim() without one", "");
	return table_holds(policy->params, policy->nparams, LW_AT_INIT) &&
	       table_holds(policy->qparams, policy->nqparams, 0) &&
	       defaults_hold(policy) && sizes_hold(policy) && refusals_hold(policy) && is_short(policy) && house_holds(policy, 1, params) &&
	       house_holds(policy, 2, params) && house_holds(policy, 65, params) &&
	       house_holds(policy, most < 4096 ? most : 4096, params) &&
	       policy->state_size(most, params) >= policy->state_size(most - 1, params);
}

#define LW_POLICY(name) good = (!is_named(#name, argv + 1) || policy_holds(&lw_policy_##name)) && good;

int main(int argc, char **argv)
{
	bool good = true;

	(void)argc;

#include <linkweir/policies.def>
	return good ? 0 : 1;
}
