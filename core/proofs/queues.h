/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* queues.h - for programs that drive one policy with random packets: its queues, its parameters, and random numbers. */
#ifndef LINKWEIR_PROOFS_QUEUES_H
#define LINKWEIR_PROOFS_QUEUES_H

#include <linkweir/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_QUEUES 6u
#define ROOM 64u

static const struct lw_policy *policy;
static struct lw_queue queues[MOST_QUEUES];
static uint32_t lengths[MOST_QUEUES][ROOM];             /* the head first */
static struct lw_view view;
static uint64_t params[8], qparams[MOST_QUEUES * 16], *state;
static uint64_t seed;

static uint64_t any(uint64_t below)
{
	seed += 0x9e3779b97f4a7c15u;                    /* splitmix64: Steele, Lea and Flood, 2014 */
	uint64_t x = seed;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return (x ^ (x >> 31)) % below;
}

static void find_policy(const char *name)
{
	for (uint32_t i = 0; i < lw_npolicies; i++)
		if (!strcmp(lw_policies[i]->name, name))
			policy = lw_policies[i];
	if (!policy)
		exit(2);
}

static uint64_t *value_of(uint32_t q, const char *name)
{
	for (uint32_t i = 0; i < policy->nqparams; i++)
		if (!strcmp(policy->qparams[i].name, name))
			return qparams + q * policy->nqparams + i;
	abort();
}

static void put_tail(uint32_t q, uint32_t bytes)
{
	lengths[q][queues[q].backlog_pkts++] = bytes;
	queues[q].backlog_bytes += bytes;
	queues[q].head_bytes = lengths[q][0];
}

static uint32_t take_head(uint32_t q)
{
	uint32_t bytes = lengths[q][0];

	queues[q].backlog_pkts--;
	queues[q].backlog_bytes -= bytes;
	memmove(lengths[q], lengths[q] + 1, sizeof(lengths[q]) - sizeof(lengths[q][0]));
	queues[q].head_bytes = lengths[q][0];
	return bytes;
}

static uint32_t take_tail(uint32_t q)
{
	uint32_t bytes = lengths[q][--queues[q].backlog_pkts];

	queues[q].backlog_bytes -= bytes;
	return bytes;
}

#endif
