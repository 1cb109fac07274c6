// SPDX-License-Identifier: GPL-2.0-only
/* replay.c - replays the vectors of sch_pss_vectors.h on the functions of sch_pss.c, as KUnit does. */
#include "kernel.h"
#include "pss_algorithm.c"
#include "sch_pss_test.c"

static int replay_all(void (*run)(struct kunit *test))
{
	unsigned int i, bad = 0;

	for (i = 0; i < ARRAY_SIZE(pss_vectors); i++) {
		struct kunit test = { .param_value = &pss_vectors[i] };

		if (!setjmp(test.abort))
			run(&test);
		bad += test.failed;
		printf("%sok %u %s\n", test.failed ? "not " : "", i + 1, pss_vectors[i].name);
	}
	return bad != 0;
}
