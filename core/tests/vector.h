/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * vector.h - replays a vector (the format is in vectors/README.md), line by line, through the data plane of plane.h.
 *
 * replay.c, ns-3's tests and the kernel's self-test read the lines and show what is wrong: after a false answer it is in
 * plane.wrong. They define VECTOR_MOST_WORDS and vector_policy() before they include this file.
 */
#ifndef LINKWEIR_TESTS_VECTOR_H
#define LINKWEIR_TESTS_VECTOR_H

#include "plane.h"

struct vector {
	struct plane plane;
	const struct lw_policy *policy;
	uint32_t nqueues;
	uint64_t link_bps;
	bool has_link, versioned, opened, configured;
	unsigned long picks, drops, verdicts, observations, refusals;
	uint32_t nwords;
	char *words[VECTOR_MOST_WORDS];         /* of the present line; not cleared, as they may be many */
};

/* The policy called `name`, or NULL. */
static const struct lw_policy *vector_policy(const char *name);

/* reads the digits of a number; false: there are none, other characters too, or it is greater than `most` */
static bool vector_digits(const char *word, uint64_t most, uint64_t *value)
{
	*value = 0;
	do {
		uint64_t digit = (uint64_t)(*word - '0');

		if (*word < '0' || *word > '9' || *value > UINT64_MAX / 10 || *value * 10 > UINT64_MAX - digit)
			return false;
		*value = *value * 10 + digit;
	} while (*++word);
	return *value <= most;
}

static bool vector_number(struct vector *v, const char *word, uint64_t most, uint64_t *value)
{
	return vector_digits(word, most, value) ||
	       plane_wrong(&v->plane, "\"%s\" is not a number from 0 to %" PRIu64, word, most);
}

static bool vector_queue(struct vector *v, const char *word, uint32_t *q)
{
	uint64_t value;

	if (!vector_number(v, word, v->nqueues - 1, &value))
		return false;
	*q = (uint32_t)value;
	return true;
}

/* index of `word` in "a|b|c", or -1 */
static int vector_choice(const char *choices, const char *word)
{
	size_t length = strlen(word);
	int index = 0;

	for (;; index++, choices++) {
		size_t one = strcspn(choices, "|");

		if (one == length && !memcmp(choices, word, length))
			return index;
		choices += one;
		if (!*choices)
			return -1;
	}
}

/* cuts name=value in two; the value, or NULL */
static char *vector_value(struct vector *v, char *word)
{
	char *equals = strchr(word, '=');

	if (!equals) {
		plane_wrong(&v->plane, "\"%s\" is not name=value", word);
		return NULL;
	}
	*equals = 0;
	return equals + 1;
}

/* stores name=value in a row of parameters */
static bool vector_assign(struct vector *v, char *word, const struct lw_param *params, uint32_t nparams, uint64_t *row)
{
	char *value = vector_value(v, word);
	uint32_t i;
	int index;

	if (!value)
		return false;
	for (i = 0; i < nparams && strcmp(params[i].name, word) != 0; i++)
		;
	if (i == nparams)
		return plane_wrong(&v->plane, "no parameter is called \"%s\" here", word);
	if (!strcmp(value, "unset")) {
		row[i] = LW_UNSET;
		return true;
	}
	if (params[i].unit != LW_CHOICE)
		return vector_number(v, value, UINT64_MAX - 1, row + i);
	index = vector_choice(params[i].choices, value);
	if (index < 0)
		return plane_wrong(&v->plane, "\"%s\" is none of %s", value, params[i].choices);
	row[i] = (uint64_t)index;
	return true;
}

/* the statements that must come first are there */
static bool vector_open(struct vector *v)
{
	if (v->opened)
		return true;
	if (!v->policy || !v->nqueues || !v->has_link)
		return plane_wrong(&v->plane, "policy, queues and link must come first");
	v->opened = true;
	return plane_open(&v->plane, v->policy, v->nqueues, v->link_bps);
}

/* [set] k=v... [queue N k=v...]... from word `first` to before `last` */
static bool vector_configure(struct vector *v, uint32_t first, uint32_t last)
{
	const struct lw_policy *policy = v->policy;
	bool of_queue = false, good = true;
	uint32_t q = 0, i;

	for (i = first; i < last && good; i++) {
		if (!strcmp(v->words[i], "set")) {
			of_queue = false;
		} else if (!strcmp(v->words[i], "queue") && i + 1 < last) {
			of_queue = true;
			good = vector_queue(v, v->words[++i], &q);
		} else if (of_queue) {
			good = vector_assign(v, v->words[i], policy->qparams, policy->nqparams,
					     v->plane.qparams + (size_t)q * policy->nqparams);
		} else {
			good = vector_assign(v, v->words[i], policy->params, policy->nparams, v->plane.params);
		}
	}
	return good;
}

/* refuse [set k=v...] [queue N k=v...]... => PARAM QUEUE; it comes before set and queue, and its values hold for itself only */
static bool vector_refuse(struct vector *v)
{
	struct plane *p = &v->plane;
	struct lw_fault fault = { NULL, NULL, LW_NONE };
	uint32_t q = LW_NONE, n = v->nwords;

	if (v->configured)
		return plane_wrong(p, "refuse comes before set and queue");
	if (n < 4 || strcmp(v->words[n - 3], "=>") != 0)
		return plane_wrong(p, "refuse must end in => PARAM QUEUE");
	if ((strcmp(v->words[n - 1], "-") != 0 && !vector_queue(v, v->words[n - 1], &q)) || !vector_configure(v, 1, n - 3))
		return false;
	if (plane_accepts(p, &fault))
		return plane_wrong(p, "accepted, but %s must be refused", v->words[n - 2]);
	if (!fault.what || !fault.what[0] || !fault.param)
		return plane_wrong(p, "refused without saying why");
	if (strcmp(fault.param, v->words[n - 2]) != 0 || fault.queue != q)
		return plane_wrong(p, "refused for %s of queue %" PRId32 " (%s), not for %s of queue %" PRId32, fault.param,
				   (int32_t)fault.queue, fault.what, v->words[n - 2], (int32_t)q);
	plane_default(p);
	v->refusals++;
	return true;
}

static bool vector_accepted(struct plane *p)
{
	struct lw_fault fault;

	return plane_accepts(p, &fault) ||
	       plane_wrong(p, "%s of queue %" PRId32 " is refused: %s", fault.param, (int32_t)fault.queue, fault.what);
}

/* init */
static bool vector_init(struct vector *v)
{
	if (v->plane.started)
		return plane_wrong(&v->plane, "init comes once");
	return vector_accepted(&v->plane) && plane_start(&v->plane);
}

/* enqueue QUEUE BYTES [drops QUEUE...] */
static bool vector_enqueue(struct vector *v)
{
	struct plane *p = &v->plane;
	uint32_t q, i, expected = v->nwords > 6 ? v->nwords - 6 : 0;
	uint64_t bytes;

	if (v->nwords < 5 || v->nwords == 6 || (expected && strcmp(v->words[5], "drops") != 0))
		return plane_wrong(p, "expected enqueue QUEUE BYTES [drops QUEUE...]");
	if (!vector_queue(v, v->words[3], &q) || !vector_number(v, v->words[4], LW_MAX_PACKET_BYTES - 1, &bytes) ||
	    !plane_enqueue(p, q, (uint32_t)bytes))
		return false;
	for (i = 0; i < expected; i++) {
		char *word = v->words[6 + i];
		bool head = *word == 'h';

		if (!vector_queue(v, word + head, &q))
			return false;
		q |= head ? LW_FROM_HEAD : 0;
		if (i >= p->ndrops)
			return plane_wrong(p, "victim() names no queue as number %" PRIu32 ", expected queue %" PRIu32, i + 1, q);
		if (p->drops[i] != q)
			return plane_wrong(p, "victim() names queue %" PRIu32 " as number %" PRIu32 ", expected queue %" PRIu32,
					   p->drops[i], i + 1, q);
	}
	if (p->ndrops > expected)
		return plane_wrong(p, "victim() names queue %" PRIu32 " as number %" PRIu32 ", expected none",
				   p->drops[expected], expected + 1);
	v->drops += expected;
	return true;
}

/* pick QUEUE|none */
static bool vector_pick(struct vector *v)
{
	struct plane *p = &v->plane;
	uint32_t q = LW_NONE;

	if (v->nwords != 4)
		return plane_wrong(p, "expected pick QUEUE or pick none");
	if ((strcmp(v->words[3], "none") != 0 && !vector_queue(v, v->words[3], &q)) || !plane_pick(p))
		return false;
	if (p->picked != q)
		return plane_wrong(p, "pick() answers %" PRId32 ", expected %s (-1 is none)", (int32_t)p->picked, v->words[3]);
	v->picks++;
	return true;
}

/* verdict pass|mark|drop [ecn] */
static bool vector_judge(struct vector *v)
{
	static const char *const verdicts[] = { "pass", "mark", "drop" };
	struct plane *p = &v->plane;
	bool ecn = v->nwords == 5 && !strcmp(v->words[4], "ecn");
	enum lw_verdict verdict;

	if (v->nwords < 4 || v->nwords > 5 || (v->nwords == 5 && !ecn))
		return plane_wrong(p, "expected verdict pass|mark|drop [ecn]");
	if (p->picked == LW_NONE || !p->queues[p->picked].backlog_pkts)
		return plane_wrong(p, "nothing was picked");
	if (!plane_verdict(p, ecn, &verdict))
		return false;
	if (strcmp(verdicts[verdict], v->words[3]) != 0)
		return plane_wrong(p, "leaving() says %s, expected %s", verdicts[verdict], v->words[3]);
	v->verdicts++;
	return true;
}

/* expired QUEUE yes|no */
static bool vector_expire(struct vector *v)
{
	struct plane *p = &v->plane;
	bool expired;
	uint32_t q;

	if (v->nwords != 5)
		return plane_wrong(p, "expected expired QUEUE yes|no");
	if (!vector_queue(v, v->words[3], &q))
		return false;
	if (!p->queues[q].backlog_pkts)
		return plane_wrong(p, "queue %" PRIu32 " is empty", q);
	if (!plane_expired(p, q, &expired))
		return false;
	if (strcmp(expired ? "yes" : "no", v->words[4]) != 0)
		return plane_wrong(p, "expired() says %s, expected %s", expired ? "yes" : "no", v->words[4]);
	v->verdicts++;
	return true;
}

/* observe QUEUE NAME=VALUE... */
static bool vector_observe(struct vector *v)
{
	const struct lw_policy *policy = v->policy;
	struct plane *p = &v->plane;
	int64_t values[PLANE_MAX_STATS];
	uint32_t q, i, w;

	if (v->nwords < 5)
		return plane_wrong(p, "expected observe QUEUE NAME=VALUE...");
	if (!vector_queue(v, v->words[3], &q) || !plane_observe_in(p, p->state, q, values))
		return false;
	for (w = 4; w < v->nwords; w++) {
		char *value = vector_value(v, v->words[w]);
		bool negative = value && *value == '-';
		uint64_t expected;

		if (!value)
			return false;
		if (!vector_number(v, value + negative, UINT64_MAX / 2, &expected))
			return false;
		for (i = 0; i < policy->nstats && strcmp(policy->stats[i].name, v->words[w]) != 0; i++)
			;
		if (i == policy->nstats)
			return plane_wrong(p, "the policy shows no \"%s\"", v->words[w]);
		if (values[i] != (negative ? -(int64_t)expected : (int64_t)expected))
			return plane_wrong(p, "%s of queue %" PRIu32 " is %" PRId64 ", expected %s", v->words[w], q, values[i], value);
		v->observations++;
	}
	return true;
}

/* change [set] k=v... [queue N k=v...]... */
static bool vector_change(struct vector *v)
{
	return vector_configure(v, 3, v->nwords) && vector_accepted(&v->plane) && plane_change(&v->plane);
}

/* rate QUEUE BPS [QUEUE BPS]...: one rated() for all */
static bool vector_rates(struct vector *v)
{
	uint64_t rate_bps = 0;
	uint32_t q = 0, i;

	for (i = 3; i < v->nwords; i += 2) {
		if (!vector_queue(v, v->words[i], &q) || !vector_number(v, v->words[i + 1], LW_MAX_RATE_BPS, &rate_bps))
			return false;
		v->plane.queues[q].rate_bps = rate_bps;
	}
	return plane_rate(&v->plane, q, rate_bps);
}

/* send [QUEUE] or drop QUEUE */
static bool vector_take(struct vector *v, bool send)
{
	struct plane *p = &v->plane;
	uint32_t q = p->picked;

	if (v->nwords == 4 && !vector_queue(v, v->words[3], &q))
		return false;
	if (q == LW_NONE || !p->queues[q].backlog_pkts)
		return plane_wrong(p, "there is no packet to %s", v->words[2]);
	return send ? plane_send(p, q) : plane_drop(p, q);
}

/* at TIME OPERATION */
static bool vector_operation(struct vector *v)
{
	struct plane *p = &v->plane;
	uint32_t q, n = v->nwords;
	const char *what = v->words[2];
	uint64_t value;

	if (n < 3)
		return plane_wrong(p, "expected at TIME OPERATION");
	if (!vector_number(v, v->words[1], LW_MAX_NOW_NS, &p->view.now_ns))
		return false;
	if (!strcmp(what, "init") && n == 3)
		return vector_init(v);
	if (!strcmp(what, "enqueue"))
		return vector_enqueue(v);
	if (!strcmp(what, "rate") && n >= 5 && n % 2)
		return vector_rates(v);
	if (!p->started)
		return plane_wrong(p, "\"%s\" comes before init, or is not an operation", what);
	if (!strcmp(what, "pick"))
		return vector_pick(v);
	if (!strcmp(what, "verdict"))
		return vector_judge(v);
	if (!strcmp(what, "expired"))
		return vector_expire(v);
	if (!strcmp(what, "observe"))
		return vector_observe(v);
	if (!strcmp(what, "change"))
		return vector_change(v);
	if (!strcmp(what, "lead") && n == 5)
		return vector_queue(v, v->words[3], &q) && vector_number(v, v->words[4], UINT32_MAX, &value) &&
		       plane_lead(p, q, (size_t)value);
	if (!strcmp(what, "link") && n == 4)
		return vector_number(v, v->words[3], LW_MAX_RATE_BPS, &value) && plane_link(p, value);
	if (!strcmp(what, "send") && n <= 4)
		return vector_take(v, true);
	if (!strcmp(what, "drop") && n == 4)
		return vector_take(v, false);
	return plane_wrong(p, "\"%s\" with %" PRIu32 " words is not an operation", what, n);
}

static bool vector_statement(struct vector *v)
{
	struct plane *p = &v->plane;
	const char *what = v->words[0], *word = v->words[1];
	uint64_t value;

	if (!v->versioned)
		return (v->versioned = v->nwords == 2 && !strcmp(what, "linkweir-vectors") && !strcmp(word, "1")) ||
		       plane_wrong(p, "the first statement must be: linkweir-vectors 1");
	if (!strcmp(what, "at"))
		return vector_open(v) && vector_operation(v);
	if (!strcmp(what, "refuse"))
		return vector_open(v) && vector_refuse(v);
	if (!strcmp(what, "set") || !strcmp(what, "queue")) {
		v->configured = true;
		if (p->started)
			return plane_wrong(p, "%s must come before init; later use change", what);
		return vector_open(v) && vector_configure(v, 0, v->nwords);
	}
	if (v->nwords != 2 || v->opened)
		return plane_wrong(p, "\"%s\" with %" PRIu32 " words is not a statement here", what, v->nwords);
	if (!strcmp(what, "policy")) {
		v->policy = vector_policy(word);
		return v->policy || plane_wrong(p, "no policy is called \"%s\"", word);
	}
	if (!strcmp(what, "queues")) {
		if (!vector_number(v, word, LW_MAX_QUEUES, &value))
			return false;
		v->nqueues = (uint32_t)value;
		return value || plane_wrong(p, "there must be at least one queue");
	}
	if (!strcmp(what, "link")) {
		v->has_link = true;
		return vector_number(v, word, LW_MAX_RATE_BPS, &v->link_bps);
	}
	return plane_wrong(p, "\"%s\" is not a statement", what);
}

static void vector_begin(struct vector *v)
{
	memset(v, 0, offsetof(struct vector, words));
}

/* Cuts the next line into words; false: they are too many. */
static bool vector_words(struct vector *v, char *line)
{
	static const char between[] = " \t\r\n";

	line[strcspn(line, "#")] = 0;
	v->nwords = 0;
	for (line += strspn(line, between); *line; line += strspn(line, between)) {
		if (v->nwords == VECTOR_MOST_WORDS)
			return plane_wrong(&v->plane, "the line has more than %u words", VECTOR_MOST_WORDS);
		v->words[v->nwords++] = line;
		line += strcspn(line, between);
		if (*line)
			*line++ = 0;
	}
	return true;
}

/* Replays the next line; false: plane.wrong says what is wrong. */
static bool vector_line(struct vector *v, char *line)
{
	return vector_words(v, line) && (!v->nwords || vector_statement(v));
}

/* After the last line: whether it asked for anything. */
static bool vector_end(struct vector *v)
{
	return v->picks || v->refusals || v->drops || v->observations || plane_wrong(&v->plane, "the file checks no answer");
}

static void vector_close(struct vector *v)
{
	if (v->opened)
		plane_close(&v->plane);
}

#endif
