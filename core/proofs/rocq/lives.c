/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * lives.c - random lives of a policy of the C core, written as vectors (vectors/README.md) with the answers of the C code.
 *
 * lives POLICY SEED OPERATIONS. The model that the theorems are about replays them (replay.ml), so a C code that answers otherwise in
 * any of them is noticed. Levels are observed after every departure, where the policy reports any.
 */
#include "../queues.h"

static uint64_t best_bps;               /* the largest capacity so far */

/* Writes " name=value", as vectors have it. */
static void write_value(const struct lw_param *param, uint64_t value)
{
	printf(" %s=", param->name);
	if (value == LW_UNSET) {
		printf("unset");
	} else if (param->unit == LW_CHOICE) {
		const char *word = param->choices;

		while (value--)
			word = strchr(word, '|') + 1;
		printf("%.*s", (int)strcspn(word, "|"), word);
	} else {
		printf("%llu", (unsigned long long)value);
	}
}

static void write_queue(uint32_t q)
{
	printf("queue %u", q);
	for (uint32_t i = 0; i < policy->nqparams; i++)
		write_value(policy->qparams + i, qparams[q * policy->nqparams + i]);
	printf("\n");
}

static void choose_rules(void)
{
	for (uint32_t i = 0; i < policy->nparams; i++)
		params[i] = any(2) ? policy->params[i].def : policy->params[i].min + any(policy->params[i].max - policy->params[i].min + 1);
}

/* The settings of a policy with reservations: every level differs, every other queue is controlled. */
static void choose_pss(void)
{
	uint64_t left = view.link_bps;

	for (uint32_t q = 0; q < view.nqueues; q++) {
		uint64_t rate = left / 4 + any(left / 4);

		*value_of(q, "level") = q;
		if (any(2) || rate < 1000)
			continue;
		*value_of(q, "low_level") = 2 * MOST_QUEUES - q;
		*value_of(q, any(4) ? "rate" : "share") = rate;
		if (*value_of(q, "share"))
			*value_of(q, "share") = 1 + rate * 1000000 / view.link_bps;
		*value_of(q, "burst") = 2 + any(20);
		*value_of(q, "memory") = any(3) * any(50000000);
		left -= rate + left / 100 + 1;
	}
}

static void choose_drr(void)
{
	for (uint32_t q = 0; q < view.nqueues; q++) {
		*value_of(q, "quantum") = 1 + any(any(2) ? 300 : 4000);
		*value_of(q, "level") = any(3);
	}
}

static void choose(void)
{
	struct lw_fault fault;

	do {
		choose_rules();
		for (uint32_t q = 0; q < view.nqueues; q++)
			for (uint32_t i = 0; i < policy->nqparams; i++)
				qparams[q * policy->nqparams + i] = policy->qparams[i].def;
		if (!strcmp(policy->name, "pss"))
			choose_pss();
		else if (!strcmp(policy->name, "drr"))
			choose_drr();
	} while (policy->check && !policy->check(&view, params, qparams, &fault));
}

static void write_time(void)
{
	printf("at %llu ", (unsigned long long)view.now_ns);
}

static void write_values(uint32_t q)
{
	int64_t values[8];

	if (!policy->nstats)
		return;
	policy->observe(state, &view, q, values);
	write_time();
	printf("observe %u", q);
	for (uint32_t i = 0; i < policy->nstats; i++)
		printf(" %s=%lld", policy->stats[i].name, (long long)values[i]);
	printf("\n");
}

static void arrive(uint32_t q, bool begun)
{
	uint32_t bytes = any(3) ? 1500 : (uint32_t)(40 + any(2000));

	if (queues[q].backlog_pkts == ROOM)
		return;
	put_tail(q, bytes);
	write_time();
	printf("enqueue %u %u\n", q, bytes);
	if (begun && policy->enqueued)
		policy->enqueued(state, &view, q, bytes);
}

static uint32_t pick(void)
{
	uint64_t retry_ns;
	uint32_t q = policy->pick(state, &view, &retry_ns);

	write_time();
	if (q == LW_NONE)
		printf("pick none\n");
	else
		printf("pick %u\n", q);
	if (q != LW_NONE && (q >= view.nqueues || !queues[q].backlog_pkts)) {
		printf("at 0 wrong: the C code picked a queue that does not exist or is empty\n");
		exit(0);
	}
	return q;
}

static void send(uint32_t q)
{
	uint32_t bytes = take_head(q);

	write_time();
	printf("send %u\n", q);
	policy->sent(state, &view, q, bytes);
	write_values(q);
	if (view.now_ns < LW_MAX_NOW_NS / 2)
		view.now_ns += any(8) ? 8000000000u * (uint64_t)bytes / view.link_bps : any(1000);
}

static void drop(uint32_t q)
{
	uint32_t bytes;

	if (!queues[q].backlog_pkts)
		return;
	bytes = take_tail(q);
	write_time();
	printf("drop %u\n", q);
	if (policy->dropped)
		policy->dropped(state, &view, q, bytes);
}

static void block(uint32_t q)
{
	queues[q].rate_bps = queues[q].rate_bps ? 0 : view.link_bps;
	write_time();
	printf("rate %u %llu\n", q, (unsigned long long)queues[q].rate_bps);
	policy->rated(state, &view);
}

static void fade(void)
{
	view.link_bps = view.link_bps / 2 + any(view.link_bps) + 1000000;
	if (best_bps < view.link_bps)
		best_bps = view.link_bps;
	write_time();
	printf("link %llu\n", (unsigned long long)view.link_bps);
	policy->rated(state, &view);
}

/* pss checks against the largest capacity reported so far. */
static bool accepted(void)
{
	struct lw_view judged = view;
	struct lw_fault fault;

	judged.link_bps = best_bps;
	return !policy->check || policy->check(&judged, params, qparams, &fault);
}

/* A change of one queue: its quantum, or its burst, memory or rate. */
static void change(uint32_t q)
{
	static const char *const names[] = { "burst", "memory", "rate" };
	const char *name = !strcmp(policy->name, "drr") ? "quantum" : names[any(3)];
	uint64_t *value = value_of(q, name), old = *value;

	if (!strcmp(name, "memory"))
		*value = any(3) * any(50000000);
	else if (!strcmp(name, "rate"))
		*value = old ? 1000 + any(view.link_bps / 2) : 0;
	else
		*value = 2 + any(2000);
	if (!accepted()) {
		*value = old;
		return;
	}
	write_time();
	printf("change queue %u %s=%llu\n", q, name, (unsigned long long)*value);
	policy->change(state, &view, params, qparams);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	find_policy(argv[1]);
	seed = strtoull(argv[2], NULL, 10);
	view.nqueues = (uint32_t)(1 + any(MOST_QUEUES));
	view.link_bps = best_bps = 1000000 + any(50000000);
	view.queues = queues;
	choose();
	printf("# lives %s %s %s\nlinkweir-vectors 1\npolicy %s\nqueues %u\nlink %llu\n", argv[1], argv[2], argv[3], policy->name,
	       view.nqueues, (unsigned long long)view.link_bps);
	if (policy->nparams) {
		printf("set");
		for (uint32_t i = 0; i < policy->nparams; i++)
			write_value(policy->params + i, params[i]);
		printf("\n");
	}
	for (uint32_t q = 0; q < view.nqueues; q++) {
		queues[q].rate_bps = view.link_bps;
		if (policy->nqparams)
			write_queue(q);
	}
	state = calloc(1, policy->state_size(view.nqueues, params));
	if (any(2))
		arrive(0, false);
	policy->init(state, &view, params, qparams);
	printf("at 0 init\n");
	for (uint64_t left = strtoull(argv[3], NULL, 10); left; left--) {
		uint32_t q = (uint32_t)any(view.nqueues);
		uint64_t what = any(1000);

		if (what < 480)
			arrive(q, true);
		else if (what < 960 && (q = pick()) != LW_NONE)
			send(q);
		else if (what < 970)
			drop(q < view.nqueues ? q : 0);
		else if (what < 985)
			view.now_ns += any(any(2) ? 1000000 : 100000000);
		else if (what < 990)
			block(q);
		else if (what < 993 && !strcmp(policy->name, "pss"))
			fade();
		else if (what < 996 && policy->nqparams)
			change(q);
	}
	free(state);
	return 0;
}
