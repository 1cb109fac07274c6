// SPDX-License-Identifier: GPL-2.0-only
/*
 * selftest.c - replays the vectors of every registered policy; part of the module linkweir_vectors.
 *
 * The vectors are built in as text (the format is in vectors/README.md; "file NAME" begins each) and freed after loading.
 */
#include <linux/ctype.h>
#include <linux/init.h>
#include <linux/list.h>
#include <linux/slab.h>

#include "linkweir.h"

extern const char linkweir_vectors[], linkweir_vectors_end[];

#define MOST_WORDS (6 + LW_MOST_DROPS)  /* of an arrival with all its drops */
#define MOST_LENGTH 512
#define MOST_STATS 16

struct packet {
	struct list_head list;
	u64 arrival_ns;
	u32 bytes;
};

struct replay {
	const struct lw_policy *policy;
	struct lw_view view;
	struct lw_queue *queues;
	struct list_head *fifos;
	u64 *params, *qparams;
	void *state;                    /* NULL before init */
	u64 link_bps, best_bps;
	u32 nqueues, picked;
	unsigned int line, nwords;
	unsigned long answers, files;
	char file[64], text[MOST_LENGTH];
	char *words[MOST_WORDS];
};

static int __init wrong(const struct replay *r, const char *what)
{
	pr_err("linkweir: self-test: %s:%u: %s\n", r->file, r->line, what);
	return -EINVAL;
}

static int __init number(struct replay *r, const char *word, u64 most, u64 *value)
{
	if (kstrtoull(word, 10, value) || *value > most)
		return wrong(r, "a number was expected");
	return 0;
}

static int __init queue_number(struct replay *r, const char *word, u32 *q)
{
	u64 value;
	int err = number(r, word, r->nqueues - 1, &value);

	*q = err ? 0 : value;
	return err;
}

/* ---- the data plane ---- */

static void __init show(struct replay *r, u32 q)
{
	const struct packet *head = list_first_entry_or_null(&r->fifos[q], struct packet, list);

	r->queues[q].head_bytes = head ? head->bytes : 0;
	r->queues[q].head_arrival_ns = head ? head->arrival_ns : 0;
}

static int __init push(struct replay *r, u32 q, u32 bytes)
{
	struct packet *packet = kmalloc(sizeof(*packet), GFP_KERNEL);

	if (!packet)
		return -ENOMEM;
	packet->arrival_ns = r->view.now_ns;
	packet->bytes = bytes;
	list_add_tail(&packet->list, &r->fifos[q]);
	r->queues[q].backlog_pkts++;
	r->queues[q].backlog_bytes += bytes;
	show(r, q);
	return 0;
}

/* takes the head or the tail packet of a queue that is not empty, and calls `event` */
static void __init take(struct replay *r, u32 q, bool head, void (*event)(void *, const struct lw_view *, u32, u32))
{
	struct packet *packet = head ? list_first_entry(&r->fifos[q], struct packet, list) :
				       list_last_entry(&r->fifos[q], struct packet, list);
	u32 bytes = packet->bytes;

	list_del(&packet->list);
	kfree(packet);
	r->queues[q].backlog_pkts--;
	r->queues[q].backlog_bytes -= bytes;
	show(r, q);
	if (event)
		event(r->state, &r->view, q, bytes);
}

static void __init close_plane(struct replay *r)
{
	u32 q;

	for (q = 0; r->fifos && q < r->nqueues; q++)
		while (!list_empty(&r->fifos[q]))
			take(r, q, true, NULL);
	kvfree(r->fifos);
	kvfree(r->queues);
	kvfree(r->params);
	kvfree(r->qparams);
	kvfree(r->state);
	r->fifos = NULL;
	r->queues = NULL;
	r->params = r->qparams = NULL;
	r->state = NULL;
}

static void __init set_defaults(struct replay *r)
{
	u32 q, i;

	for (i = 0; i < r->policy->nparams; i++)
		r->params[i] = r->policy->params[i].def;
	for (q = 0; q < r->nqueues; q++)
		for (i = 0; i < r->policy->nqparams; i++)
			r->qparams[q * r->policy->nqparams + i] = r->policy->qparams[i].def;
}

static int __init open_plane(struct replay *r)
{
	u32 q;

	if (r->fifos)
		return 0;
	if (!r->policy || !r->nqueues)
		return wrong(r, "policy, queues and link must come first");
	r->fifos = kvcalloc(r->nqueues, sizeof(*r->fifos), GFP_KERNEL);
	for (q = 0; r->fifos && q < r->nqueues; q++)    /* before anything can fail, since close_plane() walks them */
		INIT_LIST_HEAD(&r->fifos[q]);
	r->queues = kvcalloc(r->nqueues, sizeof(*r->queues), GFP_KERNEL);
	r->params = kvcalloc(r->policy->nparams + 1, sizeof(u64), GFP_KERNEL);
	r->qparams = kvcalloc(r->nqueues * r->policy->nqparams + 1, sizeof(u64), GFP_KERNEL);
	if (!r->fifos || !r->queues || !r->params || !r->qparams)
		return -ENOMEM;
	for (q = 0; q < r->nqueues; q++)
		r->queues[q].rate_bps = r->link_bps;
	set_defaults(r);
	r->view.queues = r->queues;
	r->view.nqueues = r->nqueues;
	r->view.link_bps = r->best_bps = r->link_bps;
	r->picked = LW_NONE;
	return 0;
}

/* ---- parameters ---- */

static bool __init fits(const struct lw_param *param, u64 value)
{
	return (value >= param->min && value <= param->max) || (value == LW_UNSET && param->def == LW_UNSET);
}

/* checks the ranges, then the policy's own rules */
static bool __init accepts(struct replay *r, struct lw_fault *fault)
{
	const struct lw_policy *policy = r->policy;
	struct lw_view view = r->view;
	u32 q, i;

	for (i = 0; i < policy->nparams; i++) {
		if (!fits(&policy->params[i], r->params[i])) {
			*fault = (struct lw_fault){ "range", policy->params[i].name, LW_NONE };
			return false;
		}
	}
	for (q = 0; q < r->nqueues; q++) {
		for (i = 0; i < policy->nqparams; i++) {
			if (!fits(&policy->qparams[i], r->qparams[q * policy->nqparams + i])) {
				*fault = (struct lw_fault){ "range", policy->qparams[i].name, q };
				return false;
			}
		}
	}
	view.link_bps = r->best_bps;
	return !policy->check || policy->check(&view, r->params, r->qparams, fault);
}

/* index of `word` in "a|b|c", or -1 */
static int __init choice(const char *choices, const char *word)
{
	size_t length = strlen(word);
	int index;

	for (index = 0; choices; index++) {
		const char *end = strchrnul(choices, '|');

		if (end - choices == length && !memcmp(choices, word, length))
			return index;
		choices = *end ? end + 1 : NULL;
	}
	return -1;
}

static int __init assign(struct replay *r, char *word, const struct lw_param *params, u32 nparams, u64 *row)
{
	char *value = strchr(word, '=');
	u32 i;
	int index;

	if (!value)
		return wrong(r, "name=value was expected");
	*value++ = 0;
	for (i = 0; i < nparams && strcmp(params[i].name, word); i++)
		;
	if (i == nparams)
		return wrong(r, "no such parameter");
	if (!strcmp(value, "unset")) {
		row[i] = LW_UNSET;
		return 0;
	}
	if (params[i].unit != LW_CHOICE)
		return number(r, value, U64_MAX - 1, &row[i]);
	index = choice(params[i].choices, value);
	row[i] = index;
	return index < 0 ? wrong(r, "no such choice") : 0;
}

/* [set] k=v... [queue N k=v...]... in words[first..last) */
static int __init configure(struct replay *r, u32 first, u32 last)
{
	const struct lw_policy *policy = r->policy;
	bool of_queue = false;
	u32 q = 0, i;
	int err = 0;

	for (i = first; i < last && !err; i++) {
		if (!strcmp(r->words[i], "set")) {
			of_queue = false;
		} else if (!strcmp(r->words[i], "queue") && i + 1 < last) {
			of_queue = true;
			err = queue_number(r, r->words[++i], &q);
		} else if (of_queue) {
			err = assign(r, r->words[i], policy->qparams, policy->nqparams,
				     r->qparams + q * policy->nqparams);
		} else {
			err = assign(r, r->words[i], policy->params, policy->nparams, r->params);
		}
	}
	return err;
}

/* refuse ... => PARAM QUEUE */
static int __init refuse(struct replay *r)
{
	struct lw_fault fault = {};
	u32 q = LW_NONE, n = r->nwords;
	int err;

	if (n < 4 || strcmp(r->words[n - 3], "=>"))
		return wrong(r, "refuse must end in => PARAM QUEUE");
	err = strcmp(r->words[n - 1], "-") ? queue_number(r, r->words[n - 1], &q) : 0;
	if (!err)
		err = configure(r, 1, n - 3);
	if (err)
		return err;
	if (accepts(r, &fault))
		return wrong(r, "accepted, but must be refused");
	if (strcmp(fault.param, r->words[n - 2]) || fault.queue != q)
		return wrong(r, "refused for another parameter or queue");
	set_defaults(r);
	r->answers++;
	return 0;
}

/* ---- operations ---- */

static int __init init(struct replay *r)
{
	struct lw_fault fault;
	size_t size;

	if (r->state || !accepts(r, &fault))
		return wrong(r, "init is refused");
	if (r->nqueues > r->policy->max_queues)
		return wrong(r, "the policy serves fewer queues");
	size = r->policy->state_size(r->nqueues, r->params);
	r->state = kvmalloc(size, GFP_KERNEL);
	if (!r->state)
		return -ENOMEM;
	memset(r->state, 0x5a, size);   /* init() must not rely on zeros */
	r->policy->init(r->state, &r->view, r->params, r->qparams);
	return 0;
}

static int __init enqueue(struct replay *r)
{
	u64 bytes;
	u32 q, i, victim, expected, from;
	int err;

	if (r->nwords < 5 || queue_number(r, r->words[3], &q) ||
	    number(r, r->words[4], LW_MAX_PACKET_BYTES - 1, &bytes))
		return -EINVAL;
	err = push(r, q, bytes);
	if (err || !r->state)
		return err;
	if (r->policy->enqueued)
		r->policy->enqueued(r->state, &r->view, q, bytes);
	for (i = 6; r->policy->victim || i < r->nwords; i++) {
		victim = expected = LW_NONE;
		if (r->policy->victim && i < 6 + LW_MOST_DROPS)
			victim = r->policy->victim(r->state, &r->view, q, bytes);
		if (i < r->nwords) {
			from = r->words[i][0] == 'h';
			if (queue_number(r, r->words[i] + from, &expected))
				return -EINVAL;
			expected |= from ? LW_FROM_HEAD : 0;
		}
		if (victim != expected)
			return wrong(r, "victim() names another queue");
		if (victim == LW_NONE)
			break;
		r->answers++;
		if (!r->queues[victim & ~LW_FROM_HEAD].backlog_pkts)
			return wrong(r, "victim() names an empty queue");
		take(r, victim & ~LW_FROM_HEAD, victim & LW_FROM_HEAD, r->policy->dropped);
	}
	return 0;
}

static int __init pick(struct replay *r)
{
	u32 q = LW_NONE;
	u64 retry_ns;

	if (r->nwords != 4 || (strcmp(r->words[3], "none") && queue_number(r, r->words[3], &q)))
		return wrong(r, "expected pick QUEUE or pick none");
	r->picked = r->policy->pick(r->state, &r->view, &retry_ns);
	r->answers++;
	return r->picked == q ? 0 : wrong(r, "pick() names another queue");
}

static int __init judge(struct replay *r)
{
	static const char * const verdicts[] = { "pass", "mark", "drop" };
	enum lw_verdict verdict = LW_PASS;

	if (r->nwords < 4 || r->picked == LW_NONE || !r->queues[r->picked].backlog_pkts)
		return wrong(r, "nothing to judge");
	if (r->policy->leaving)
		verdict = r->policy->leaving(r->state, &r->view, r->picked, r->nwords == 5);
	r->answers++;
	if (verdict > LW_DROP || strcmp(verdicts[verdict], r->words[3]))
		return wrong(r, "leaving() says otherwise");
	if (verdict == LW_DROP)
		take(r, r->picked, true, r->policy->dropped);
	return 0;
}

static int __init expire(struct replay *r)
{
	bool expired;
	u32 q;

	if (r->nwords != 5 || queue_number(r, r->words[3], &q) || !r->queues[q].backlog_pkts)
		return wrong(r, "expected expired QUEUE yes|no");
	expired = r->policy->expired && r->policy->expired(r->state, &r->view, q);
	r->answers++;
	if (strcmp(expired ? "yes" : "no", r->words[4]))
		return wrong(r, "expired() says otherwise");
	if (expired)
		take(r, q, true, r->policy->dropped);
	return 0;
}

static int __init observe(struct replay *r)
{
	s64 values[MOST_STATS], expected;
	u32 q, i, w;

	if (r->nwords < 5 || !r->policy->observe || r->policy->nstats > MOST_STATS || queue_number(r, r->words[3], &q))
		return wrong(r, "expected observe QUEUE NAME=VALUE...");
	r->policy->observe(r->state, &r->view, q, values);
	for (w = 4; w < r->nwords; w++) {
		char *value = strchr(r->words[w], '=');

		if (!value)
			return wrong(r, "name=value was expected");
		*value++ = 0;
		for (i = 0; i < r->policy->nstats && strcmp(r->policy->stats[i].name, r->words[w]); i++)
			;
		if (i == r->policy->nstats || kstrtoll(value, 10, &expected) || values[i] != expected)
			return wrong(r, "observe() shows another value");
		r->answers++;
	}
	return 0;
}

static int __init change(struct replay *r)
{
	struct lw_fault fault;
	int err = configure(r, 3, r->nwords);

	if (err)
		return err;
	if (!accepts(r, &fault))
		return wrong(r, "the change is refused");
	if (r->policy->change)
		r->policy->change(r->state, &r->view, r->params, r->qparams);
	return 0;
}

/* rate QUEUE BPS [QUEUE BPS]...: one rated() for all */
static int __init set_rate(struct replay *r)
{
	u64 value;
	u32 q, i;

	if (r->nwords < 5 || r->nwords % 2 == 0)
		return -EINVAL;
	for (i = 3; i < r->nwords; i += 2) {
		if (queue_number(r, r->words[i], &q) || number(r, r->words[i + 1], LW_MAX_RATE_BPS, &value))
			return -EINVAL;
		r->queues[q].rate_bps = value;
	}
	if (r->state && r->policy->rated)
		r->policy->rated(r->state, &r->view);
	return 0;
}

static int __init set_link(struct replay *r)
{
	u64 value;

	if (r->nwords != 4 || number(r, r->words[3], LW_MAX_RATE_BPS, &value))
		return -EINVAL;
	r->view.link_bps = value;
	r->best_bps = max(r->best_bps, value);
	if (r->policy->rated)
		r->policy->rated(r->state, &r->view);
	return 0;
}

/* lead QUEUE PLACE: that packet becomes the head without an event; rated() follows */
static int __init lead(struct replay *r)
{
	struct packet *packet;
	u64 place;
	u32 q;

	if (r->nwords != 5 || queue_number(r, r->words[3], &q) || number(r, r->words[4], U32_MAX, &place))
		return -EINVAL;
	list_for_each_entry(packet, &r->fifos[q], list) {
		if (place--)
			continue;
		list_move(&packet->list, &r->fifos[q]);
		show(r, q);
		if (r->policy->rated)
			r->policy->rated(r->state, &r->view);
		return 0;
	}
	return wrong(r, "there is no packet at that place");
}

static int __init send_or_drop(struct replay *r, bool send)
{
	u32 q = r->picked;

	if (r->nwords == 4 && queue_number(r, r->words[3], &q))
		return -EINVAL;
	if (q == LW_NONE || !r->queues[q].backlog_pkts)
		return wrong(r, "there is no packet to send or drop");
	take(r, q, send, send ? r->policy->sent : r->policy->dropped);
	return 0;
}

static int __init operation(struct replay *r)
{
	const char *what = r->words[2];
	int err = r->nwords < 3 ? wrong(r, "expected at TIME OPERATION") : number(r, r->words[1], LW_MAX_NOW_NS, &r->view.now_ns);

	if (err)
		return err;
	if (!strcmp(what, "init"))
		return init(r);
	if (!strcmp(what, "enqueue"))
		return enqueue(r);
	if (!strcmp(what, "rate"))
		return set_rate(r);
	if (!r->state)
		return wrong(r, "before init");
	if (!strcmp(what, "lead"))
		return lead(r);
	if (!strcmp(what, "pick"))
		return pick(r);
	if (!strcmp(what, "verdict"))
		return judge(r);
	if (!strcmp(what, "expired"))
		return expire(r);
	if (!strcmp(what, "observe"))
		return observe(r);
	if (!strcmp(what, "change"))
		return change(r);
	if (!strcmp(what, "link"))
		return set_link(r);
	if (!strcmp(what, "send") || !strcmp(what, "drop"))
		return send_or_drop(r, what[0] == 's');
	return wrong(r, "no such operation");
}

static int __init begin(struct replay *r, struct linkweir_kind *const *kinds, u32 nkinds)
{
	u64 value;
	u32 i;
	int err;

	if (r->nwords != 2)
		return wrong(r, "no such statement");
	if (!strcmp(r->words[0], "linkweir-vectors"))
		return strcmp(r->words[1], "1") ? wrong(r, "unknown version") : 0;
	if (!strcmp(r->words[0], "policy")) {
		for (i = 0; i < nkinds && strcmp(kinds[i]->policy->name, r->words[1]); i++)
			;
		if (i == nkinds)
			return wrong(r, "no such policy");
		r->policy = kinds[i]->policy;
		return 0;
	}
	err = number(r, r->words[1], U64_MAX, &value);
	if (!err && !strcmp(r->words[0], "queues") && value && value <= LW_MAX_QUEUES)
		r->nqueues = value;
	else if (!err && !strcmp(r->words[0], "link"))
		r->link_bps = value;
	else
		err = wrong(r, "no such statement");
	return err;
}

static int __init statement(struct replay *r, struct linkweir_kind *const *kinds, u32 nkinds)
{
	int err;

	if (!strcmp(r->words[0], "file")) {
		close_plane(r);
		strscpy(r->file, r->nwords > 1 ? r->words[1] : "", sizeof(r->file));
		r->policy = NULL;
		r->nqueues = 0;
		r->line = 0;
		r->files++;
		cond_resched();
		return 0;
	}
	if (strcmp(r->words[0], "at") && strcmp(r->words[0], "refuse") && strcmp(r->words[0], "set") &&
	    strcmp(r->words[0], "queue"))
		return begin(r, kinds, nkinds);
	err = open_plane(r);
	if (err)
		return err;
	if (!strcmp(r->words[0], "at"))
		return operation(r);
	return !strcmp(r->words[0], "refuse") ? refuse(r) : configure(r, 0, r->nwords);
}

/* splits the next line into words; returns the start of the following line, or NULL if this one is too long */
static const char * __init read_line(struct replay *r, const char *from)
{
	const char *end = memchr(from, '\n', linkweir_vectors_end - from);
	size_t length = (end ? end : linkweir_vectors_end) - from;
	char *rest = r->text, *word;

	r->nwords = 0;
	r->line++;
	if (length >= sizeof(r->text)) {
		wrong(r, "the line is too long");
		return NULL;
	}
	memcpy(r->text, from, length);
	r->text[length] = 0;
	while ((word = strsep(&rest, " \t"))) {
		if (!*word)
			continue;
		if (r->nwords == MOST_WORDS) {
			wrong(r, "the line has too many words");
			return NULL;
		}
		r->words[r->nwords++] = word;
	}
	return end ? end + 1 : linkweir_vectors_end;
}

int __init linkweir_selftest(struct linkweir_kind *const *kinds, u32 nkinds)
{
	struct replay *r = kzalloc(sizeof(*r), GFP_KERNEL);
	const char *at = linkweir_vectors;
	int err = 0;

	if (!r)
		return -ENOMEM;
	while (!err && at < linkweir_vectors_end) {
		at = read_line(r, at);
		if (!at)
			err = -EINVAL;
		else if (r->nwords)
			err = statement(r, kinds, nkinds);
	}
	close_plane(r);
	if (!err && !r->answers)
		err = wrong(r, "nothing was asked");
	if (!err)
		pr_info("linkweir: self-test: %lu files, %lu answers, all as expected\n", r->files, r->answers);
	kfree(r);
	return err;
}
