/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compare.c - dualpi2 of the core and of the kernel side by side: the same arrivals, times and random numbers, and every
 * verdict compared.
 *
 *   compare PACKETS CLASSES SEED [NAME=VALUE...]    settings of the policy, in its own units
 *
 * The kernel's file is compiled into this program (little_kernel.h). Two senders, an L4S one and a classic one, answer marks and
 * drops, so that the probability stays in its middle; phases without an answer, in which more comes than the link carries,
 * hardly anything or nothing at all, bring the controller to both of its ends. The link changes its rate every half second. CLASSES queues
 * of the policy hold the packets of each of the two kinds, which is one queue in the kernel. Some L4S packets come with CE, which no
 * verdict can change; others cannot carry a mark, as retransmissions.
 *
 * The first difference is printed and ends the program with 1. Otherwise it prints what was compared, a line each.
 */
#include "little_kernel.h"

#include KERNEL_SOURCE

#include "plane.h"

#include <linkweir/policy.h>
#include <math.h>

#define MOST_CLASSES 8u
#define RTT_S 0.02
#define PACKET_BYTES 1514u
#define ROOM (1u << 16)                 /* packets that a queue's numbers have room for */

enum { CLASSIC, L4S, KINDS };

struct numbers {                        /* of the packets in a queue of the policy */
	struct { u64 number; u8 tos; } *at;
	u32 first, count;
};

struct verdict {
	u64 number;
	bool dropped, marked;
};

static struct verdict *kernel_said, *core_said;
static size_t kernel_count, core_count;
static struct plane plane;
static struct numbers numbers[2 * MOST_CLASSES];
static struct Qdisc qdisc;
static u64 draws;                       /* state of the generator of arrivals */
static double rate_bps[KINDS] = { 5e6, 5e6 }, cut_s[KINDS];
static u64 arrived[KINDS], marked[KINDS], dropped_leaving[KINDS], refused[KINDS];

static _Noreturn void fail(const char *what, u64 number)
{
	fprintf(stderr, "compare: at %" PRIu64 " ns, packet %" PRIu64 ": %s\n", (uint64_t)kernel_now_ns, (uint64_t)number, what);
	exit(1);
}

static void check(bool ok)
{
	if (!ok)
		fail(plane.wrong, 0);
}

static double draw(void)
{
	u64 z = draws += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)(((z ^ z >> 31) >> 11) + 1) / 9007199254740993.0;
}

static void say(struct verdict **said, size_t *count, u64 number, bool drop, bool mark)
{
	if (*count == 2 * ROOM)
		fail("too many verdicts at once", number);
	(*said)[(*count)++] = (struct verdict){ number, drop, mark };
}

static void kernel_dropped(struct sk_buff *skb)
{
	say(&kernel_said, &kernel_count, skb->number, true, false);
	free(skb);
}

/* ---- both sides ---- */

static void run_timer(void)
{
	struct hrtimer *timer = &((struct dualpi2_sched_data *)qdisc_priv(&qdisc))->pi2_timer;
	u64 now_ns = kernel_now_ns;

	while (timer->set && timer->expires_ns <= now_ns) {
		kernel_now_ns = timer->expires_ns;
		if (timer->function(timer) != HRTIMER_RESTART)
			timer->set = false;
	}
	kernel_now_ns = now_ns;
}

static void come(u64 number, u32 queue, u32 bytes, u8 tos)
{
	struct sk_buff *skb = calloc(1, sizeof(*skb)), *to_free = NULL;
	struct numbers *held = numbers + queue;
	size_t i;

	if (!skb || held->count == ROOM)
		fail("no room", number);
	skb->number = number;
	skb->len = skb->truesize = bytes;
	skb->header.tos = tos;
	skb->priority = queue & 1;      /* names the kernel's queue where the codepoint does not */
	dualpi2_qdisc_ops.enqueue(skb, &qdisc, &to_free);

	held->at[(held->first + held->count) % ROOM].number = number;
	held->at[(held->first + held->count++) % ROOM].tos = tos;
	check(plane_enqueue(&plane, queue, bytes));
	for (i = 0; i < plane.ndrops; i++) {
		held = numbers + plane.drops[i];
		say(&core_said, &core_count, held->at[(held->first + --held->count) % ROOM].number, true, false);
	}
}

/* one packet leaves, or none is left; the bytes of that packet */
static u32 leave_kernel(void)
{
	struct sk_buff *skb = dualpi2_qdisc_ops.dequeue(&qdisc);
	u32 bytes = 0;

	if (skb) {
		bytes = skb->len;
		say(&kernel_said, &kernel_count, skb->number, false, skb->header.tos == INET_ECN_CE);
		free(skb);
	}
	/* A device asks again until it gets nothing, which resets the kernel's credit. */
	if (!qdisc_qlen(&qdisc) && dualpi2_qdisc_ops.dequeue(&qdisc))
		fail("the kernel counts wrongly", 0);
	return bytes;
}

static void leave_core(void)
{
	for (;;) {
		enum lw_verdict verdict;
		struct numbers *held;
		u64 number;
		u8 tos;

		check(plane_pick(&plane));
		if (plane.picked == LW_NONE)
			return;
		held = numbers + plane.picked;
		number = held->at[held->first].number;
		tos = held->at[held->first].tos;
		held->first = (held->first + 1) % ROOM;
		held->count--;
		check(plane_verdict(&plane, tos != INET_ECN_NOT_ECT, &verdict));
		say(&core_said, &core_count, number, verdict == LW_DROP, verdict != LW_DROP && (verdict == LW_MARK || tos == INET_ECN_CE));
		if (verdict == LW_DROP)
			continue;
		check(plane_send(&plane, plane.picked));
		return;
	}
}

/* A packet's number has its kind in the lowest bit, and in the next whether it came with CE. */
#define NUMBER(n, ce, kind) ((n) << 2 | (u64)(ce) << 1 | (kind))

/* what both said since the last call, which must be the same */
static void compare(bool leaving)
{
	u64 number = 0;
	size_t i;

	for (i = 0; i < kernel_count && i < core_count; i++) {
		const struct verdict *k = kernel_said + i, *c = core_said + i;
		u32 kind = k->number & 1;
		bool set = k->marked && !(k->number & 2);
		double s = (double)kernel_now_ns / 1e9;

		number = k->number;
		if (k->number != c->number)
			fail("another packet is next in the core", number >> 2);
		if (k->dropped != c->dropped)
			fail(k->dropped ? "the kernel drops it, the core does not" : "the core drops it, the kernel does not", number >> 2);
		if (k->marked != c->marked)
			fail(k->marked ? "the kernel marks it, the core does not" : "the core marks it, the kernel does not", number >> 2);
		marked[kind] += set;
		*(leaving ? dropped_leaving + kind : refused + kind) += k->dropped;
		if (kind == L4S && set)
			rate_bps[kind] -= 0.5 * 8 * PACKET_BYTES / RTT_S;
		else if ((set || k->dropped) && s > cut_s[kind] + RTT_S)
			rate_bps[kind] *= 0.7, cut_s[kind] = s;
		if (rate_bps[kind] < 2e5)
			rate_bps[kind] = 2e5;
	}
	if (kernel_count != core_count)
		fail(kernel_count > core_count ? "the kernel says more" : "the core says more", number >> 2);
	kernel_count = core_count = 0;
}

/* ---- settings ---- */

static const struct {
	const char *name;
	u32 option, units;              /* of the policy in one of the kernel */
} settings[] = {
	{ "target", TCA_DUALPI2_TARGET, 1000 },
	{ "tupdate", TCA_DUALPI2_TUPDATE, 1000 },
	{ "alpha", TCA_DUALPI2_ALPHA, 1 },
	{ "beta", TCA_DUALPI2_BETA, 1 },
	{ "coupling", TCA_DUALPI2_COUPLING, 1 },
	{ "step", TCA_DUALPI2_STEP_THRESH_US, 1000 },
	{ "classic_share", TCA_DUALPI2_C_PROTECTION, 10000 },
	{ "overload", TCA_DUALPI2_DROP_OVERLOAD, 1 },
	{ "limit", TCA_DUALPI2_LIMIT, 1 },
	{ "memory", TCA_DUALPI2_MEMORY_LIMIT, 1 },
};

static void set(struct nlattr *options, const char *words)
{
	size_t length = strcspn(words, "=");
	u32 i, j;
	char *end;

	for (i = 0; words[length] && i < plane.policy->nparams; i++) {
		const char *name = plane.policy->params[i].name;

		if (strlen(name) != length || strncmp(words, name, length) != 0)
			continue;
		for (j = 0; j < sizeof(settings) / sizeof(*settings); j++) {
			u64 value = strtoull(words + length + 1, &end, 10);

			if (strcmp(settings[j].name, name) != 0)
				continue;
			if (end == words + length + 1 || *end || value % settings[j].units || value / settings[j].units > U32_MAX)
				break;
			plane.params[i] = value;
			options[settings[j].option].given = true;
			options[settings[j].option].value = (u32)(value / settings[j].units);
			if (settings[j].option == TCA_DUALPI2_DROP_OVERLOAD)
				options[settings[j].option].value = !value;
			return;
		}
	}
	fprintf(stderr, "compare: %s: not NAME=VALUE of a setting that both have, with a value that Linux's unit divides\n", words);
	exit(2);
}

/* ---- the run ---- */

/* how much comes of a kind at a time, in bits per second */
static double offered(u32 kind, double s, double link_bps)
{
	double in_phase = fmod(s, 5);

	if (in_phase < 0.4)
		return 0.8 * link_bps;          /* of both: 1.6 times the link */
	if (in_phase > 2 && in_phase < 2.3)
		return 0.05 * link_bps;
	return rate_bps[kind] < 1.5 * link_bps ? rate_bps[kind] : 1.5 * link_bps;
}

/* nothing comes from 3 to 4.5 s of each 25 s, in which many updates find empty queues */
static double after_silence(double s, u32 kind)
{
	double in_phase = fmod(s, 25);

	return in_phase < 3 || in_phase >= 4.5 ? s : s - in_phase + 4.5 + 0.001 * kind;
}

static void run(u64 packets, u32 classes)
{
	static const double links_bps[] = { 20e6, 100e6, 8e6, 40e6, 14e6 };
	double next_s[KINDS] = { 1.001, 1.002 }, free_s = 1, last_s = 1;
	bool departed = false;          /* and the probability has begun to rise */
	u64 number = 0, longest = 0, overloaded = 0;
	u32 least = U32_MAX, most = 0;
	struct dualpi2_sched_data *q = qdisc_priv(&qdisc);

	while (number < packets || qdisc_qlen(&qdisc)) {
		double link_bps = links_bps[(u64)(free_s * 2) % 5];
		u32 kind = next_s[L4S] < next_s[CLASSIC];
		bool leaving = qdisc_qlen(&qdisc) && (number == packets || free_s <= next_s[kind]);
		double s = leaving ? free_s : next_s[kind];

		if (s < last_s)
			s = last_s;
		last_s = s;
		plane.view.now_ns = kernel_now_ns = (u64)(s * 1e9);
		run_timer();
		if (leaving) {
			u32 bytes = leave_kernel();

			leave_core();
			free_s = s + 8.0 * bytes / link_bps;
		} else {
			u32 bytes = draw() < 0.2 ? 64 + (u32)(draw() * 400) : PACKET_BYTES;
			double chance = draw();
			u8 tos = kind == CLASSIC ? (chance < 0.5 ? INET_ECN_NOT_ECT : INET_ECN_ECT_0)
						 : (chance < 0.02 ? INET_ECN_CE : chance < 0.05 ? INET_ECN_NOT_ECT : INET_ECN_ECT_1);

			if (free_s < s)
				free_s = s;
			come(NUMBER(number, tos == INET_ECN_CE, kind), 2 * (u32)(draw() * classes * 0.999999) + kind, bytes, tos);
			number++;
			arrived[kind]++;
			next_s[kind] = after_silence(s - log(draw()) * 8 * bytes / offered(kind, s, link_bps), kind);
			rate_bps[kind] += 8.0 * PACKET_BYTES / RTT_S * (8.0 * bytes / offered(kind, s, link_bps)) / RTT_S;
		}
		compare(leaving);
		departed |= leaving && most + q->pi2_prob > 0;
		if (qdisc_qlen(&qdisc) > longest)
			longest = qdisc_qlen(&qdisc);
		if (departed) {
			least = min_t(u32, least, q->pi2_prob);
			most = max(most, q->pi2_prob);
		}
		overloaded += (u64)q->pi2_prob * q->coupling_factor > MAX_PROB;
	}
	printf("packets %" PRIu64 "\nl4s %" PRIu64 "\nmarked_l4s %" PRIu64 "\nby_step %u\nmarked_classic %" PRIu64 "\n", number, arrived[L4S],
	       marked[L4S], q->step_marks, marked[CLASSIC]);
	printf("dropped_l4s %" PRIu64 "\ndropped_classic %" PRIu64 "\nrefused %" PRIu64 "\noverloaded_events %" PRIu64 "\nlongest %" PRIu64
	       "\nleast %.6f\nmost %.6f\n", dropped_leaving[L4S], dropped_leaving[CLASSIC], refused[L4S] + refused[CLASSIC], overloaded, longest, least / 4294967296.0,
	       most / 4294967296.0);
}

int main(int argc, char **argv)
{
	struct nlattr options[KERNEL_OPTIONS] = { { 0 } }, all = { .options = options };
	struct lw_fault fault;
	u32 classes, i;

	if (argc < 4 || !(classes = (u32)strtoul(argv[2], NULL, 10)) || classes > MOST_CLASSES) {
		fprintf(stderr, "usage: compare PACKETS CLASSES SEED [NAME=VALUE...]; CLASSES is 1 to %u\n", MOST_CLASSES);
		return 2;
	}
	kernel_said = calloc(2 * ROOM, sizeof(*kernel_said));
	core_said = calloc(2 * ROOM, sizeof(*core_said));
	draws = strtoull(argv[3], NULL, 10);
	check(plane_open(&plane, &lw_policy_dualpi2, 2 * classes, 0));
	for (i = 0; i < 2 * classes; i++) {
		numbers[i].at = calloc(ROOM, sizeof(*numbers[i].at));
		plane.queues[i].rate_bps = LW_MAX_RATE_BPS;
		plane.qparams[i] = i & 1;
	}
	for (i = 4; i < (u32)argc; i++)
		set(options, argv[i]);
	if (!plane_accepts(&plane, &fault)) {
		fprintf(stderr, "compare: %s: %s\n", fault.param, fault.what);
		return 2;
	}
	plane.view.now_ns = kernel_now_ns = 1000000000;
	kernel_random = 1;              /* the policy's default seed */
	if (dualpi2_qdisc_ops.init(&qdisc, &all, NULL) != 0) {
		fprintf(stderr, "compare: the kernel refuses the settings\n");
		return 2;
	}
	check(plane_start(&plane));
	run(strtoull(argv[1], NULL, 10), classes);
	return 0;
}
