/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.c - looks at the table of a user's policy before anyone relies on it.
 *
 * Compiled with -DLW_USER_POLICY=lw_policy_NAME and -DLW_USER_NAME="NAME".
 */
#include <stdarg.h>
#include <stdio.h>

#include "linkweir/policy.h"

#define MOST_ROWS 64u

extern const struct lw_policy LW_USER_POLICY;

static char fault_text[256];

static const char *fault(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(fault_text, sizeof(fault_text), format, values);
	va_end(values);
	return fault_text;
}

/* A name that can be a key of a scenario and is none already. */
static bool good_key(const char *name)
{
	static const char *const taken[] = { "policy", "name", "count", "limit", "limit_bytes" };
	size_t i;

	if (name == NULL || *name < 'a' || *name > 'z')
		return false;
	for (i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (strcmp(name, taken[i]) == 0)
			return false;
	for (; *name != '\0'; name++)
		if (strchr("abcdefghijklmnopqrstuvwxyz0123456789_", *name) == NULL)
			return false;
	return true;
}

/* How many words "a|b|c" has. */
static uint64_t words(const char *choices)
{
	uint64_t count = 1;

	for (; *choices != '\0'; choices++)
		if (*choices == '|')
			count++;
	return count;
}

static const char *param_fault(const char *list, uint32_t i, const struct lw_param *p)
{
	if (!good_key(p->name))
		return fault("%s[%u].name must be lower-case letters, digits and _, and no key of scenarios (policy, name, count, limit)",
			     list, (unsigned)i);
	if ((unsigned)p->unit > LW_CHOICE)
		return fault("%s: unit %u is not one of enum lw_unit", p->name, (unsigned)p->unit);
	if ((p->unit == LW_CHOICE) != (p->choices != NULL))
		return fault("%s: choices are for the unit LW_CHOICE, which needs them", p->name);
	if (p->choices != NULL && (p->min != 0 || p->max != words(p->choices) - 1))
		return fault("%s: min and max of a choice are 0 and %u, the places of \"%s\"", p->name,
			     (unsigned)(words(p->choices) - 1), p->choices);
	if (p->min > p->max)
		return fault("%s: min is greater than max", p->name);
	if (p->def != LW_UNSET && (p->def < p->min || p->def > p->max))
		return fault("%s: def is outside min .. max", p->name);
	return NULL;
}

static const char *params_fault(const char *list, const struct lw_param *params, uint32_t count)
{
	uint32_t i, j;

	if (count > MOST_ROWS)
		return fault("%s: %u rows; at most %u are possible", list, (unsigned)count, MOST_ROWS);
	if (count > 0 && params == NULL)
		return fault("%s is NULL, but its number is %u", list, (unsigned)count);
	for (i = 0; i < count; i++) {
		const char *text = param_fault(list, i, &params[i]);

		if (text != NULL)
			return text;
		for (j = 0; j < i; j++)
			if (strcmp(params[i].name, params[j].name) == 0)
				return fault("%s: %s is there twice", list, params[i].name);
	}
	return NULL;
}

static const char *stats_fault(const struct lw_policy *p)
{
	uint32_t i, j;

	if (p->nstats > MOST_ROWS)
		return fault("nstats = %u; at most %u are possible", (unsigned)p->nstats, MOST_ROWS);
	if (p->nstats > 0 && (p->stats == NULL || p->observe == NULL))
		return fault("nstats = %u needs stats and observe", (unsigned)p->nstats);
	for (i = 0; i < p->nstats; i++) {
		if (!good_key(p->stats[i].name) || (unsigned)p->stats[i].unit >= LW_CHOICE)
			return fault("stats[%u] needs a name of lower-case letters, digits and _, and a unit, which is not LW_CHOICE",
				     (unsigned)i);
		for (j = 0; j < i; j++)
			if (strcmp(p->stats[i].name, p->stats[j].name) == 0)
				return fault("stats: %s is there twice", p->stats[i].name);
	}
	return NULL;
}

/* What is wrong with the table, or NULL. */
const char *linkweir_fault(void)
{
	const struct lw_policy *p = &LW_USER_POLICY;
	const char *text;
	uint32_t i;

	if (p->abi != LW_ABI)
		return fault(".abi = %u; it must be LW_ABI, which is %u here", (unsigned)p->abi, LW_ABI);
	if (p->name == NULL || strcmp(p->name, LW_USER_NAME) != 0)
		return fault(".name must be \"%s\", as the file is called", LW_USER_NAME);
	if (p->state_size == NULL || p->init == NULL || p->pick == NULL)
		return fault("state_size, init and pick must not be NULL");
	if (p->max_queues < 1 || p->max_queues > LW_MAX_QUEUES)
		return fault(".max_queues = %u; it must be 1 .. LW_MAX_QUEUES (%u)", (unsigned)p->max_queues, LW_MAX_QUEUES);
	text = params_fault("params", p->params, p->nparams);
	if (text == NULL)
		text = params_fault("qparams", p->qparams, p->nqparams);
	if (text == NULL)
		text = stats_fault(p);
	if (text != NULL || p->shared_limit == NULL)
		return text;
	for (i = 0; i < p->nparams; i++)
		if (strcmp(p->shared_limit, p->params[i].name) == 0)
			return NULL;
	return fault(".shared_limit = \"%s\" is none of params", p->shared_limit);
}

const struct lw_policy *linkweir_table(void)
{
	return &LW_USER_POLICY;
}
