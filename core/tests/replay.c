/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * replay.c - replays vectors (vector.h).
 *
 *   replay FILE.vec...
 *
 * A wrong answer or a line that cannot be read is reported as file:line and ends that file. Exit code 0: all files held;
 * 1: one did not; 2: no file was given.
 */
#define VECTOR_MOST_WORDS 70000u
#include "vector.h"

#include <errno.h>

static const struct lw_policy *vector_policy(const char *name)
{
	uint32_t i;

	for (i = 0; i < lw_npolicies; i++)
		if (!strcmp(lw_policies[i]->name, name))
			return lw_policies[i];
	return NULL;
}

static bool replay_file(const char *name, struct vector *v)
{
	static char line[1 << 20];
	FILE *file = fopen(name, "r");
	unsigned long number = 0;
	bool good = true;

	vector_begin(v);
	if (!file) {
		fprintf(stderr, "%s: %s\n", name, strerror(errno));
		return false;
	}
	while (good && fgets(line, (int)sizeof(line), file)) {
		number++;
		if (!strchr(line, '\n') && !feof(file))
			good = plane_wrong(&v->plane, "the line is too long");
		else
			good = vector_line(v, line);
	}
	if (good)
		good = ferror(file) ? plane_wrong(&v->plane, "%s", strerror(errno)) : vector_end(v);
	if (!good)
		fprintf(stderr, "%s:%lu: %s\n", name, number, v->plane.wrong);
	fclose(file);
	vector_close(v);
	return good;
}

int main(int argc, char **argv)
{
	static struct vector v;
	unsigned long picks = 0, drops = 0, verdicts = 0, observations = 0, refusals = 0;
	int i, bad = 0;

	for (i = 1; i < argc; i++) {
		bad += !replay_file(argv[i], &v);
		picks += v.picks;
		drops += v.drops;
		verdicts += v.verdicts;
		observations += v.observations;
		refusals += v.refusals;
	}
	printf("%d files, %d bad: %lu picks, %lu drops, %lu verdicts, %lu observed values, %lu refusals\n", argc - 1, bad,
	       picks, drops, verdicts, observations, refusals);
	if (argc < 2)
		return 2;
	return bad != 0;
}
