/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * replay.c - replays vectors (the format is in vectors/README.md) through the data plane of plane.h.
 *
 *   replay FILE.vec...
 *
 * A wrong answer or a line that cannot be read is reported as file:line and ends that file. Exit code 0: all files held;
 * 1: one did not; 2: no file was given.
 */
#include "plane.h"

#include <errno.h>

#define MAX_WORDS 70000u

struct replay {
	struct plane plane;
	const char *file;
	unsigned long line;
	const struct lw_policy *policy;
	uint32_t nqueues;
	uint64_t link_bps;
	bool has_link, opened, configured;
	unsigned long picks, drops, verdicts, observations, refusals;
};

static char *words[MAX_WORDS + 1];

#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static bool wrong(const struct replay *r, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%lu: ", r->file, r->line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return false;
}

static bool number(const struct replay *r, const char *word, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(word, &end, 10);
	if (word[0] < '0' || word[0] > '9' || *end || errno || *value > most)
		return wrong(r, "\"%s\" is not a number from 0 to %" PRIu64, word, most);
	return true;
}

static bool queue_number(const struct replay *r, const char *word, uint32_t *q)
{
	uint64_t value;

	if (!number(r, word, r->nqueues - 1, &value))
		return false;
	*q = (uint32_t)value;
	return true;
}

/* index of `word` in "a|b|c", or -1 */
static int choice(const char *choices, const char *word)
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

/* stores name=value of words[first..last) in a row of parameters */
static bool assignments(const struct replay *r, uint32_t first, uint32_t last, const struct lw_param *params,
			uint32_t nparams, uint64_t *row)
{
	for (; first < last; first++) {
		char *equals = strchr(words[first], '=');
		uint32_t i;

		if (!equals)
			return wrong(r, "\"%s\" is not name=value", words[first]);
		*equals = 0;
		for (i = 0; i < nparams && strcmp(params[i].name, words[first]) != 0; i++)
			;
		if (i == nparams)
			return wrong(r, "no parameter is called \"%s\" here", words[first]);
		if (!strcmp(equals + 1, "unset")) {
			row[i] = LW_UNSET;
		} else if (params[i].unit == LW_CHOICE) {
			int index = choice(params[i].choices, equals + 1);

			if (index < 0)
				return wrong(r, "\"%s\" is none of %s", equals + 1, params[i].choices);
			row[i] = (uint64_t)index;
		} else if (!number(r, equals + 1, UINT64_MAX - 1, &row[i])) {
			return false;
		}
	}
	return true;
}

static bool open_plane(struct replay *r)
{
	if (r->opened)
		return true;
	if (!r->policy || !r->nqueues || !r->has_link)
		return wrong(r, "policy, queues and link must come first");
	plane_open(&r->plane, r->policy, r->nqueues, r->link_bps);
	r->opened = true;
	return true;
}

/* [set k=v...] [queue N k=v...]... in words[first..last) */
static bool configure(struct replay *r, struct plane *p, uint32_t first, uint32_t last)
{
	const struct lw_policy *policy = r->policy;

	while (first < last) {
		uint32_t end = first + 1, q;

		while (end < last && strcmp(words[end], "queue") != 0 && strcmp(words[end], "set") != 0)
			end++;
		if (!strcmp(words[first], "set")) {
			if (!assignments(r, first + 1, end, policy->params, policy->nparams, p->params))
				return false;
		} else if (!strcmp(words[first], "queue") && first + 1 < end) {
			if (!queue_number(r, words[first + 1], &q) ||
			    !assignments(r, first + 2, end, policy->qparams, policy->nqparams,
					 p->qparams + (size_t)q * policy->nqparams))
				return false;
		} else {
			return wrong(r, "expected set or queue, not \"%s\"", words[first]);
		}
		first = end;
	}
	return true;
}

/* refuse [set k=v...] [queue N k=v...]... => PARAM QUEUE; parameters set elsewhere in the file do not count */
static bool refuse(struct replay *r, uint32_t n)
{
	struct plane p;
	struct lw_fault fault = { NULL, NULL, LW_NONE };
	uint32_t q = LW_NONE;
	bool good = true;

	if (r->configured)
		return wrong(r, "refuse comes before set and queue");
	if (n < 4 || strcmp(words[n - 3], "=>") != 0)
		return wrong(r, "refuse must end in => PARAM QUEUE");
	if (!open_plane(r) || (strcmp(words[n - 1], "-") != 0 && !queue_number(r, words[n - 1], &q)))
		return false;
	plane_open(&p, r->policy, r->nqueues, r->link_bps);
	if (!configure(r, &p, 1, n - 3))
		good = false;
	else if (plane_accepts(&p, &fault))
		good = wrong(r, "accepted, but %s must be refused", words[n - 2]);
	else if (!fault.what || !fault.what[0] || !fault.param)
		good = wrong(r, "refused without saying why");
	else if (strcmp(fault.param, words[n - 2]) != 0 || fault.queue != q)
		good = wrong(r, "refused for %s of queue %" PRId32 " (%s), not for %s of queue %" PRId32, fault.param,
			     (int32_t)fault.queue, fault.what, words[n - 2], (int32_t)q);
	plane_close(&p);
	r->refusals++;
	return good;
}

static bool accepted(struct replay *r)
{
	struct lw_fault fault;

	if (!plane_accepts(&r->plane, &fault))
		return wrong(r, "%s of queue %" PRId32 " is refused: %s", fault.param, (int32_t)fault.queue, fault.what);
	return true;
}

static bool init(struct replay *r)
{
	if (r->plane.started)
		return wrong(r, "init comes once");
	return accepted(r) && plane_start(&r->plane);
}

static bool enqueue(struct replay *r, uint32_t n)
{
	struct plane *p = &r->plane;
	uint64_t bytes;
	uint32_t q, i;

	if (n < 5 || (n > 5 && strcmp(words[5], "drops") != 0) || n == 6)
		return wrong(r, "expected enqueue QUEUE BYTES [drops QUEUE...]");
	if (!queue_number(r, words[3], &q) || !number(r, words[4], LW_MAX_PACKET_BYTES - 1, &bytes))
		return false;
	if (!plane_enqueue(p, q, (uint32_t)bytes))
		return false;
	for (i = 6; i < n; i++) {
		bool head = words[i][0] == 'h';

		if (!queue_number(r, words[i] + head, &q))
			return false;
		q |= head ? LW_FROM_HEAD : 0;
		if (i - 6 >= p->ndrops)
			return wrong(r, "victim() names no queue as number %" PRIu32 ", expected queue %" PRIu32, i - 5, q);
		if (p->drops[i - 6] != q)
			return wrong(r, "victim() names queue %" PRIu32 " as number %" PRIu32 ", expected queue %" PRIu32,
				     p->drops[i - 6], i - 5, q);
	}
	if (p->ndrops > (n > 6 ? n - 6 : 0))
		return wrong(r, "victim() names queue %" PRIu32 " as number %" PRIu32 ", expected none",
			     p->drops[n > 6 ? n - 6 : 0], (n > 6 ? n - 6 : 0) + 1);
	r->drops += (unsigned long)p->ndrops;
	return true;
}

static bool pick(struct replay *r, uint32_t n)
{
	uint32_t q = LW_NONE;

	if (n != 4)
		return wrong(r, "expected pick QUEUE or pick none");
	if (strcmp(words[3], "none") != 0 && !queue_number(r, words[3], &q))
		return false;
	if (!plane_pick(&r->plane))
		return false;
	if (r->plane.picked != q)
		return wrong(r, "pick() answers %" PRId32 ", expected %s (-1 is none)", (int32_t)r->plane.picked, words[3]);
	r->picks++;
	return true;
}

/* verdict pass|mark|drop [ecn] */
static bool judge(struct replay *r, uint32_t n)
{
	static const char *const verdicts[] = { "pass", "mark", "drop" };
	bool ecn = n == 5 && !strcmp(words[4], "ecn");
	enum lw_verdict verdict;

	if (n < 4 || n > 5 || (n == 5 && !ecn))
		return wrong(r, "expected verdict pass|mark|drop [ecn]");
	if (r->plane.picked == LW_NONE)
		return wrong(r, "nothing was picked");
	if (!plane_verdict(&r->plane, ecn, &verdict))
		return false;
	if (strcmp(verdicts[verdict], words[3]) != 0)
		return wrong(r, "leaving() says %s, expected %s", verdicts[verdict], words[3]);
	r->verdicts++;
	return true;
}

/* expired QUEUE yes|no */
static bool expire(struct replay *r, uint32_t n)
{
	bool expired;
	uint32_t q;

	if (n != 5 || !queue_number(r, words[3], &q))
		return n != 5 ? wrong(r, "expected expired QUEUE yes|no") : false;
	if (!r->plane.queues[q].backlog_pkts)
		return wrong(r, "queue %" PRIu32 " is empty", q);
	if (!plane_expired(&r->plane, q, &expired))
		return false;
	if (strcmp(expired ? "yes" : "no", words[4]) != 0)
		return wrong(r, "expired() says %s, expected %s", expired ? "yes" : "no", words[4]);
	r->verdicts++;
	return true;
}

static bool observe(struct replay *r, uint32_t n)
{
	const struct lw_policy *policy = r->policy;
	int64_t values[PLANE_MAX_STATS];
	uint32_t q, i, w;

	if (n < 5)
		return wrong(r, "expected observe QUEUE NAME=VALUE...");
	if (!queue_number(r, words[3], &q) || !plane_observe_in(&r->plane, r->plane.state, q, values))
		return false;
	for (w = 4; w < n; w++) {
		char *equals = strchr(words[w], '='), *end;
		int64_t expected;

		if (!equals)
			return wrong(r, "\"%s\" is not name=value", words[w]);
		*equals = 0;
		errno = 0;
		expected = strtoll(equals + 1, &end, 10);
		if (end == equals + 1 || *end || errno)
			return wrong(r, "\"%s\" is not a number", equals + 1);
		for (i = 0; i < policy->nstats && strcmp(policy->stats[i].name, words[w]) != 0; i++)
			;
		if (i == policy->nstats)
			return wrong(r, "the policy shows no \"%s\"", words[w]);
		if (values[i] != expected)
			return wrong(r, "%s of queue %" PRIu32 " is %" PRId64 ", expected %" PRId64, words[w], q, values[i],
				     expected);
		r->observations++;
	}
	return true;
}

static bool change(struct replay *r, uint32_t n)
{
	bool good;

	if (n > 3 && strcmp(words[3], "queue") == 0) {
		good = configure(r, &r->plane, 3, n);
	} else {
		words[2] = (char *)(uintptr_t)"set";    /* a policy's parameters may follow without the word "set" */
		good = configure(r, &r->plane, 2, n);
	}
	return good && accepted(r) && plane_change(&r->plane);
}

/* rate QUEUE BPS [QUEUE BPS]...: one rated() for all */
static bool rates(struct replay *r, uint32_t n)
{
	uint64_t rate_bps = 0;
	uint32_t q = 0, i;

	for (i = 3; i < n; i += 2) {
		if (!queue_number(r, words[i], &q) || !number(r, words[i + 1], LW_MAX_RATE_BPS, &rate_bps))
			return false;
		r->plane.queues[q].rate_bps = rate_bps;
	}
	return plane_rate(&r->plane, q, rate_bps);
}

/* at TIME what ... */
static bool operation(struct replay *r, uint32_t n)
{
	struct plane *p = &r->plane;
	uint64_t value;
	uint32_t q;

	if (n < 3 || !number(r, words[1], LW_MAX_NOW_NS, &p->view.now_ns))
		return n < 3 ? wrong(r, "expected at TIME OPERATION") : false;
	if (!strcmp(words[2], "init") && n == 3)
		return init(r);
	if (!strcmp(words[2], "enqueue"))
		return enqueue(r, n);
	if (!strcmp(words[2], "rate") && n >= 5 && n % 2)
		return rates(r, n);
	if (!p->started)
		return wrong(r, "\"%s\" comes before init, or is not an operation", words[2]);
	if (!strcmp(words[2], "pick"))
		return pick(r, n);
	if (!strcmp(words[2], "verdict"))
		return judge(r, n);
	if (!strcmp(words[2], "expired"))
		return expire(r, n);
	if (!strcmp(words[2], "observe"))
		return observe(r, n);
	if (!strcmp(words[2], "change"))
		return change(r, n);
	if (!strcmp(words[2], "lead") && n == 5)
		return queue_number(r, words[3], &q) && number(r, words[4], UINT32_MAX, &value) && plane_lead(p, q, (size_t)value);
	if (!strcmp(words[2], "link") && n == 4)
		return number(r, words[3], LW_MAX_RATE_BPS, &value) && plane_link(p, value);
	if ((!strcmp(words[2], "send") && (n == 3 || n == 4)) || (!strcmp(words[2], "drop") && n == 4)) {
		q = p->picked;
		if (n == 4 && !queue_number(r, words[3], &q))
			return false;
		if (q == LW_NONE || !p->queues[q].backlog_pkts)
			return wrong(r, "there is no packet to %s", words[2]);
		return words[2][0] == 's' ? plane_send(p, q) : plane_drop(p, q);
	}
	return wrong(r, "\"%s\" with %" PRIu32 " words is not an operation", words[2], n);
}

static bool statement(struct replay *r, uint32_t n)
{
	uint64_t value;
	uint32_t i;

	if (r->line && !strcmp(words[0], "at"))
		return open_plane(r) && operation(r, n);
	if (!strcmp(words[0], "refuse"))
		return refuse(r, n);
	if (!strcmp(words[0], "set") || !strcmp(words[0], "queue")) {
		r->configured = true;
		if (r->plane.started)
			return wrong(r, "%s must come before init; later use change", words[0]);
		return open_plane(r) && configure(r, &r->plane, 0, n);
	}
	if (n != 2)
		return wrong(r, "\"%s\" with %" PRIu32 " words is not a statement", words[0], n);
	if (!strcmp(words[0], "linkweir-vectors"))
		return !strcmp(words[1], "1") || wrong(r, "version %s is unknown", words[1]);
	if (r->opened)
		return wrong(r, "\"%s\" is not a statement here", words[0]);
	if (!strcmp(words[0], "policy")) {
		for (i = 0; i < lw_npolicies && strcmp(lw_policies[i]->name, words[1]) != 0; i++)
			;
		if (i == lw_npolicies)
			return wrong(r, "no policy is called \"%s\"", words[1]);
		r->policy = lw_policies[i];
		return true;
	}
	if (!strcmp(words[0], "queues")) {
		if (!number(r, words[1], LW_MAX_QUEUES, &value) || !value)
			return value ? false : wrong(r, "there must be at least one queue");
		r->nqueues = (uint32_t)value;
		return true;
	}
	if (!strcmp(words[0], "link")) {
		r->has_link = true;
		return number(r, words[1], LW_MAX_RATE_BPS, &r->link_bps);
	}
	return wrong(r, "\"%s\" is not a statement", words[0]);
}

static bool replay_file(const char *name, struct replay *r)
{
	static char text[1 << 20];
	FILE *file = fopen(name, "r");
	bool good = true, versioned = false;

	memset(r, 0, sizeof(*r));
	r->file = name;
	if (!file)
		return wrong(r, "%s", strerror(errno));
	while (good && fgets(text, (int)sizeof(text), file)) {
		char *comment = strchr(text, '#'), *word;
		uint32_t n = 0;

		r->line++;
		if (!strchr(text, '\n') && !feof(file)) {
			good = wrong(r, "the line is too long");
			break;
		}
		if (comment)
			*comment = 0;
		for (word = strtok(text, " \t\r\n"); word && n < MAX_WORDS; word = strtok(NULL, " \t\r\n"))
			words[n++] = word;
		if (word) {
			good = wrong(r, "the line has more than %u words", MAX_WORDS);
			break;
		}
		if (!n)
			continue;
		if (!versioned && strcmp(words[0], "linkweir-vectors") != 0) {
			good = wrong(r, "the first statement must be: linkweir-vectors 1");
			break;
		}
		versioned = true;
		good = statement(r, n);
		if (r->plane.wrong[0])
			good = wrong(r, "%s", r->plane.wrong);
	}
	if (good && ferror(file))
		good = wrong(r, "%s", strerror(errno));
	fclose(file);
	if (good && !r->picks && !r->refusals && !r->drops && !r->observations)
		good = wrong(r, "the file checks no answer");
	if (r->opened)
		plane_close(&r->plane);
	return good;
}

int main(int argc, char **argv)
{
	static struct replay r;
	unsigned long picks = 0, drops = 0, verdicts = 0, observations = 0, refusals = 0;
	int i, bad = 0;

	for (i = 1; i < argc; i++) {
		bad += !replay_file(argv[i], &r);
		picks += r.picks;
		drops += r.drops;
		verdicts += r.verdicts;
		observations += r.observations;
		refusals += r.refusals;
	}
	printf("%d files, %d bad: %lu picks, %lu drops, %lu verdicts, %lu observed values, %lu refusals\n", argc - 1, bad,
	       picks, drops, verdicts, observations, refusals);
	if (argc < 2)
		return 2;
	return bad != 0;
}
