/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * broken.c - broken POLICY FIRST LAST OPERATIONS [INEQUALITY]: the lives of seeds FIRST to LAST of pss, drr or rr. It ends at the first
 * inequality of a guarantee that does not hold (only INEQUALITY, if given), says where and by how much, and answers 3; otherwise it
 * says how often each was checked and answers 0.
 */
#include "pss.h"
#include "turns.h"

static void begin_life(void)
{
	seed = life;
	calls = 0;
	memset(queues, 0, sizeof(queues));
	memset(&view, 0, sizeof(view));
	view.queues = queues;
	view.nqueues = MOST_QUEUES;
	for (uint32_t i = 0; i < MOST_QUEUES * policy->nqparams; i++)
		qparams[i] = policy->qparams[i % policy->nqparams].def;
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	find_policy(argv[1]);
	wanted = argc > 5 ? argv[5] : NULL;
	for (life = strtoull(argv[2], NULL, 10); life <= strtoull(argv[3], NULL, 10); life++) {
		begin_life();
		if (!strcmp(policy->name, "pss"))
			life_of_pss(strtoull(argv[4], NULL, 10));
		else
			life_of_turns(strtoull(argv[4], NULL, 10), !strcmp(policy->name, "drr"));
		free(state);
	}
	for (uint32_t i = 0; i < NINEQUALITIES; i++)
		if (checks[i])
			printf("%s %llu, ", inequalities[i].name, (unsigned long long)checks[i]);
	printf("no breach\n");
	return 0;
}
