// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of the Priority Switching Scheduler.
 *
 * sch_pss_vectors.h contains lives of a scheduler: lines with an operation
 * each, and the answers that an independent model gives. They are replayed on
 * the functions of sch_pss.c, which includes this file; no packet, device or
 * clock is involved.
 */

#include <kunit/test.h>
#include <linux/slab.h>

struct pss_vector {
	const char *name;
	const char *const *lines;
	unsigned int nlines;
};

#include "sch_pss_vectors.h"

#define PSS_TEST_WORDS 40
#define PSS_TEST_LINE 512

struct pss_test_packet {
	struct list_head list;
	u32 bytes;
};

struct pss_test {
	struct kunit *test;
	const char *name;
	struct pss_state st;
	struct pss_params *params;
	struct list_head *queues;
	unsigned long *seen;
	u64 link_bps;
	u64 best_bps;
	u32 nqueues;
	u32 picked;
	bool begun;
	unsigned int line;
	unsigned int answers;
	unsigned int nwords;
	char text[PSS_TEST_LINE];
	char *words[PSS_TEST_WORDS];
};

static void pss_test_fail(struct pss_test *t, const char *what,
			  const char *which)
{
	KUNIT_FAIL_AND_ABORT(t->test, "%s, line %u: %s: %s", t->name, t->line,
			     what, which);
}

static const struct {
	const char *name;
	size_t offset;
	int type;
} pss_fields[] = {
@FIELDS@
};

static u64 *pss_field_of(struct pss_params *params, unsigned int i)
{
	return (u64 *)((char *)params + pss_fields[i].offset);
}

static u64 pss_test_number(struct pss_test *t, const char *word)
{
	u64 value;

	if (!strcmp(word, "unset"))
		return PSS_UNSET;
	if (kstrtou64(word, 10, &value))
		pss_test_fail(t, "not a number", word);
	return value;
}

static u32 pss_test_queue(struct pss_test *t, unsigned int word)
{
	u64 q = word < t->nwords ? pss_test_number(t, t->words[word]) : U64_MAX;

	if (q >= t->nqueues)
		pss_test_fail(t, "no such class", t->text);
	return q;
}

static void pss_test_defaults(struct pss_test *t)
{
	u32 q;

	for (q = 0; q < t->nqueues; q++)
		t->params[q] = pss_default_params;
}

/* Allocates what depends on the number of classes. */
static void pss_test_open(struct pss_test *t)
{
	struct pss_state *st = &t->st;
	u32 n = t->nqueues, q;

	st->nqueues = n;
	st->queues = kunit_kcalloc(t->test, n, sizeof(*st->queues), GFP_KERNEL);
	st->settings = kunit_kcalloc(t->test, n, sizeof(*st->settings),
				     GFP_KERNEL);
	st->holders = kunit_kcalloc(t->test, n, 2 * sizeof(*st->holders),
				    GFP_KERNEL);
	st->lows = kunit_kcalloc(t->test, n, sizeof(*st->lows), GFP_KERNEL);
	t->params = kunit_kcalloc(t->test, n, sizeof(*t->params), GFP_KERNEL);
	t->queues = kunit_kcalloc(t->test, n, sizeof(*t->queues), GFP_KERNEL);
	t->seen = kunit_kzalloc(t->test, BITS_TO_BYTES(PSS_MAX_LEVEL + 1),
				GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(t->test, st->queues);
	KUNIT_ASSERT_NOT_NULL(t->test, st->settings);
	KUNIT_ASSERT_NOT_NULL(t->test, st->holders);
	KUNIT_ASSERT_NOT_NULL(t->test, st->lows);
	KUNIT_ASSERT_NOT_NULL(t->test, t->params);
	KUNIT_ASSERT_NOT_NULL(t->test, t->queues);
	KUNIT_ASSERT_NOT_NULL(t->test, t->seen);
	for (q = 0; q < n; q++)
		INIT_LIST_HEAD(&t->queues[q]);
	st->capacity_bps = t->link_bps;
	t->best_bps = t->link_bps;
	t->picked = PSS_NONE;
	pss_test_defaults(t);
}

static void pss_test_assign(struct pss_test *t, u32 q, char *word)
{
	char *value = strchr(word, '=');
	unsigned int i;

	if (!value)
		pss_test_fail(t, "not an assignment", word);
	*value++ = '\0';
	for (i = 0; i < ARRAY_SIZE(pss_fields); i++) {
		if (strcmp(pss_fields[i].name, word))
			continue;
		*pss_field_of(&t->params[q], i) = pss_test_number(t, value);
		return;
	}
	pss_test_fail(t, "no such parameter", word);
}

/* queue N name=value... in words first to last - 1 */
static void pss_test_configure(struct pss_test *t, unsigned int first,
			       unsigned int last)
{
	unsigned int i;
	u32 q = 0;

	for (i = first; i < last; i++) {
		if (!strcmp(t->words[i], "queue"))
			q = pss_test_queue(t, ++i);
		else
			pss_test_assign(t, q, t->words[i]);
	}
}

/* Ranges are those of the netlink policy, as netlink would refuse. */
static bool pss_test_accepts(struct pss_test *t, struct pss_fault *fault)
{
	const struct netlink_range_validation *range;
	unsigned int i;
	u64 value;
	u32 q;

	for (q = 0; q < t->nqueues; q++) {
		for (i = 0; i < ARRAY_SIZE(pss_fields); i++) {
			range = pss_class_policy[pss_fields[i].type].range;
			value = *pss_field_of(&t->params[q], i);
			if (value >= range->min && value <= range->max)
				continue;
			if (value == PSS_UNSET)
				continue;
			*fault = (struct pss_fault){ "range",
				pss_fields[i].name, q };
			return false;
		}
	}
	bitmap_zero(t->seen, PSS_MAX_LEVEL + 1);
	return pss_check(t->best_bps, t->nqueues, t->params, t->seen, fault);
}

/* refuse ... => NAME QUEUE */
static void pss_test_refuse(struct pss_test *t)
{
	const char *name = t->words[t->nwords - 2];
	const char *where = t->words[t->nwords - 1];
	struct pss_fault fault = {};
	u32 q = PSS_NONE;

	if (strcmp(where, "-"))
		q = pss_test_queue(t, t->nwords - 1);
	pss_test_configure(t, 1, t->nwords - 3);
	if (pss_test_accepts(t, &fault))
		pss_test_fail(t, "accepted, but must be refused", name);
	if (strcmp(fault.param, name) || fault.queue != q)
		pss_test_fail(t, "refused because of", fault.param);
	/* "class 4096: " and the text must fit into an acknowledgment */
	KUNIT_EXPECT_LT(t->test, strlen(fault.what) + 12,
			NETLINK_MAX_FMTMSG_LEN);
	pss_test_defaults(t);
	t->answers++;
}

static void pss_test_enqueue(struct pss_test *t)
{
	u32 q = pss_test_queue(t, 3);
	struct pss_test_packet *packet;

	packet = kunit_kzalloc(t->test, sizeof(*packet), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(t->test, packet);
	packet->bytes = pss_test_number(t, t->words[4]);
	list_add_tail(&packet->list, &t->queues[q]);
	t->st.queues[q].qlen++;
	if (t->begun)
		pss_enqueued(&t->st, q);
}

/* send or drop [QUEUE]: the head leaves, or the tail is dropped */
static void pss_test_remove(struct pss_test *t, bool send)
{
	u32 q = t->nwords > 3 ? pss_test_queue(t, 3) : t->picked;
	struct pss_test_packet *packet;

	if (q == PSS_NONE || list_empty(&t->queues[q]))
		pss_test_fail(t, "there is no packet", t->words[2]);
	packet = send ? list_first_entry(&t->queues[q], struct pss_test_packet,
					 list) :
			list_last_entry(&t->queues[q], struct pss_test_packet,
					list);
	list_del(&packet->list);
	t->st.queues[q].qlen--;
	if (send)
		pss_sent(&t->st, q, packet->bytes);
	else
		pss_dropped(&t->st, q);
	kunit_kfree(t->test, packet);
}

static void pss_test_pick(struct pss_test *t)
{
	u32 q = PSS_NONE;

	if (strcmp(t->words[3], "none"))
		q = pss_test_queue(t, 3);
	t->picked = pss_pick(&t->st);
	if (t->picked != q)
		pss_test_fail(t, "another class was picked", t->words[3]);
	t->answers++;
}

static void pss_test_observe(struct pss_test *t)
{
	u32 q = pss_test_queue(t, 3);
	unsigned int i;
	u64 credit;

	pss_observe(&t->st, q, &credit);
	for (i = 4; i < t->nwords; i++) {
		u64 value = t->st.queues[q].low, expected;
		char *text = strchr(t->words[i], '=');

		if (!text)
			pss_test_fail(t, "not a value", t->words[i]);
		expected = pss_test_number(t, text + 1);
		if (strstarts(t->words[i], "credit="))
			value = credit;
		if (value != expected)
			pss_test_fail(t, "another value", t->words[i]);
		t->answers++;
	}
}

static void pss_test_change(struct pss_test *t)
{
	struct pss_fault fault;

	pss_test_configure(t, 3, t->nwords);
	if (!pss_test_accepts(t, &fault))
		pss_test_fail(t, "refused", fault.what);
	pss_change(&t->st, t->params);
}

static void pss_test_operation(struct pss_test *t)
{
	const char *what = t->words[2];

	t->st.now_ns = pss_test_number(t, t->words[1]);
	if (!strcmp(what, "init")) {
		struct pss_fault fault;

		if (!pss_test_accepts(t, &fault))
			pss_test_fail(t, "refused", fault.what);
		pss_init(&t->st, t->params);
		t->begun = true;
	} else if (!strcmp(what, "enqueue")) {
		pss_test_enqueue(t);
	} else if (!strcmp(what, "pick")) {
		pss_test_pick(t);
	} else if (!strcmp(what, "send") || !strcmp(what, "drop")) {
		pss_test_remove(t, what[0] == 's');
	} else if (!strcmp(what, "observe")) {
		pss_test_observe(t);
	} else if (!strcmp(what, "change")) {
		pss_test_change(t);
	} else if (!strcmp(what, "link")) {
		t->st.capacity_bps = pss_test_number(t, t->words[3]);
		t->best_bps = max(t->best_bps, t->st.capacity_bps);
		pss_rated(&t->st);
	} else {
		pss_test_fail(t, "no such operation", what);
	}
}

static void pss_test_statement(struct pss_test *t)
{
	const char *what = t->words[0];

	if (!strcmp(what, "linkweir-vectors") || !strcmp(what, "policy"))
		return;
	if (!strcmp(what, "link")) {
		t->link_bps = pss_test_number(t, t->words[1]);
		return;
	}
	if (!strcmp(what, "queues")) {
		t->nqueues = pss_test_number(t, t->words[1]);
		return;
	}
	if (!t->params)
		pss_test_open(t);
	if (!strcmp(what, "queue"))
		pss_test_configure(t, 0, t->nwords);
	else if (!strcmp(what, "refuse"))
		pss_test_refuse(t);
	else if (!strcmp(what, "at"))
		pss_test_operation(t);
	else
		pss_test_fail(t, "no such statement", what);
}

static void pss_test_line(struct pss_test *t, const char *line)
{
	char *rest = t->text, *word;

	t->line++;
	KUNIT_ASSERT_GT(t->test, strscpy(t->text, line), 0);
	t->nwords = 0;
	while ((word = strsep(&rest, " "))) {
		KUNIT_ASSERT_LT(t->test, t->nwords, PSS_TEST_WORDS);
		t->words[t->nwords++] = word;
	}
	pss_test_statement(t);
}

static void pss_test_replay(struct kunit *test)
{
	const struct pss_vector *vector = test->param_value;
	struct pss_test *t;
	unsigned int i;

	t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t);
	t->test = test;
	t->name = vector->name;
	for (i = 0; i < vector->nlines; i++)
		pss_test_line(t, vector->lines[i]);
	KUNIT_EXPECT_GT(test, t->answers, 0);
}

KUNIT_ARRAY_PARAM_DESC(pss_vector, pss_vectors, name);

static struct kunit_case pss_test_cases[] = {
	KUNIT_CASE_PARAM(pss_test_replay, pss_vector_gen_params),
	{}
};

static struct kunit_suite pss_test_suite = {
	.name = "sch_pss",
	.test_cases = pss_test_cases,
};

kunit_test_suites(&pss_test_suite);
