// SPDX-License-Identifier: GPL-2.0-only
/*
 * vectors_module.c - a module of its own that replays the vectors on the policies of sch_linkweir when it is loaded: it is four times as
 * large as the qdiscs, and a router needs it once, if at all. Loading fails on a wrong answer.
 *
 * The vectors are built in as text, without comments; "file NAME" begins each. The text is freed after loading.
 */
#include <linux/module.h>

#include "linkweir.h"

#define VECTOR_MOST_WORDS (6u + LW_MOST_DROPS)  /* of an arrival with all its drops */
#include "core/tests/vector.h"

#define MOST_LENGTH 512

extern const char linkweir_vectors[], linkweir_vectors_end[];

#define LINKWEIR_KIND(name) &linkweir_kind_##name,
static struct linkweir_kind *const linkweir_tested_kinds[] = {
#include "kinds.h"
};
#undef LINKWEIR_KIND

struct selftest {
	struct vector vector;
	unsigned long files, answers;
	unsigned int line;
	char file[64], text[MOST_LENGTH];
};

static const struct lw_policy *vector_policy(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(linkweir_tested_kinds); i++)
		if (!strcmp(linkweir_tested_kinds[i]->policy->name, name))
			return linkweir_tested_kinds[i]->policy;
	return NULL;
}

static bool __init end_file(struct selftest *t)
{
	struct vector *v = &t->vector;

	t->answers += v->picks + v->drops + v->verdicts + v->observations + v->refusals;
	return vector_end(v);
}

static bool __init begin_file(struct selftest *t)
{
	if (t->files && !end_file(t))
		return false;
	vector_close(&t->vector);
	vector_begin(&t->vector);
	strscpy(t->file, t->text + strlen("file "), sizeof(t->file));
	t->line = 0;
	t->files++;
	cond_resched();
	return true;
}

static bool __init replay_line(struct selftest *t, const char *line, size_t length)
{
	t->line++;
	if (length >= sizeof(t->text))
		return plane_wrong(&t->vector.plane, "the line is too long");
	memcpy(t->text, line, length);
	t->text[length] = 0;
	return strstarts(t->text, "file ") ? begin_file(t) : vector_line(&t->vector, t->text);
}

static int __init linkweir_vectors_load(void)
{
	struct selftest *t = kzalloc(sizeof(*t), GFP_KERNEL);
	const char *at = linkweir_vectors;
	bool good = true;

	if (!t)
		return -ENOMEM;
	while (good && at < linkweir_vectors_end) {
		const char *end = memchr(at, '\n', linkweir_vectors_end - at);

		good = replay_line(t, at, (end ?: linkweir_vectors_end) - at);
		at = end ? end + 1 : linkweir_vectors_end;
	}
	if (good && end_file(t))
		pr_info("linkweir: self-test: %lu files, %lu answers, all as expected\n", t->files, t->answers);
	else
		pr_err("linkweir: self-test: %s:%u: %s\n", t->file, t->line, t->vector.plane.wrong);
	good = !t->vector.plane.wrong[0];
	vector_close(&t->vector);
	kfree(t);
	return good ? 0 : -EINVAL;
}

static void __exit linkweir_vectors_unload(void)
{
}

module_init(linkweir_vectors_load);
module_exit(linkweir_vectors_unload);

MODULE_DESCRIPTION("Test of Linkweir's scheduling policies");
MODULE_VERSION(LINKWEIR_VERSION);
MODULE_LICENSE("GPL");
