// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz.c - adds, changes and shows qdiscs with attributes that are valid, at their bounds, outside them, or mangled.
 *
 *   fuzz [-k] [-o] [-p PARENT] DEVICE ADDRESS SEED MESSAGES KIND...
 *
 * Everything goes to handle 1: at the root of DEVICE, or to handle 10: below the class PARENT, such as 1:1; in between, datagrams go to
 * ADDRESS through it. With -k the qdisc is kept: it is neither deleted nor replaced. With -o all classes are open at the end and the
 * shaper is off, so that what waits can leave. Ends with
 *   sent N accepted N refused N absent N mute N nameless N datagrams N
 * where absent counts requests for a qdisc or class that does not exist, mute refusals without a text, and nameless those whose
 * text names no attribute; the first of these are printed. Exit code 0, or 1 with a message.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linkweir/policy.h>

#include "../linkweir_netlink.h"
#include "request.h"

#define ROOM 6000                       /* of options */
#define MOST_SHOWN 10
/* Messages between pauses: in virtual time the kernel gives memory back only while all programs wait. */
#define REST 100

static uint64_t seed;
static uint32_t parent = TC_H_ROOT, handle = 0x10000;
static bool keeps;                      /* the qdisc is neither deleted nor replaced */
static bool wild;                       /* this message may be malformed; otherwise only its values may contradict each other */

static uint64_t random64(void)          /* splitmix64 */
{
	uint64_t z = seed += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)(random64() >> 32) % n;
}

static bool one_in(uint32_t n)
{
	return !below(n);
}

static bool odd(uint32_t n)
{
	return wild && one_in(n);
}

static struct rtattr *begin(struct request *m, int type)
{
	return request_put(m, type | (odd(50) ? 0 : NLA_F_NESTED), NULL, 0);
}

static bool full(const struct request *m)
{
	return m->n.nlmsg_len > ROOM;
}

/* ---- values ---- */

static uint64_t value_near(uint64_t min, uint64_t max, uint64_t def)
{
	switch (wild ? below(20) : 4 + below(16)) {
	case 0:
		return min - 1;
	case 1:
		return max + 1;
	case 2:
		return UINT64_MAX;
	case 3:
		return random64();
	case 4:
	case 5:
		return min;
	case 6:
	case 7:
		return max;
	case 8:
	case 9:
	case 10:
		return min + random64() % (max - min ? max - min : 1);
	case 11:
	case 12:
	case 13:
	case 14:
	case 15:
		return min + below(max - min < 1000 ? (uint32_t)(max - min) + 1 : 1000);
	default:
		return def;
	}
}

/* of the right width, or sometimes of another */
static void put_number(struct request *m, int type, uint64_t value, size_t width)
{
	request_put(m, type, &value, odd(200) ? below(9) : width);
}

static void put_param(struct request *m, int type, const struct lw_param *params, uint32_t nparams)
{
	const struct lw_param *param = nparams ? &params[below(nparams)] : NULL;
	struct rtattr *nest = begin(m, type);
	const char *name = param && !odd(200) ? param->name : one_in(2) ? "" : "no_such_parameter_at_all_anywhere";

	if (!odd(200))
		request_put(m, TCA_LINKWEIR_PARAM_NAME, name, strlen(name) + !odd(200));
	if (!odd(200))
		put_number(m, TCA_LINKWEIR_PARAM_VALUE, param ? value_near(param->min, param->max, param->def) : random64(), 8);
	request_close(m, nest);
}

static void put_class_attrs(struct request *m, const struct lw_policy *policy)
{
	uint32_t n = below(4);

	if (one_in(3))
		put_number(m, TCA_LINKWEIR_CLASS_LIMIT, value_near(1, 100000000, 100), 4);
	if (one_in(4))
		put_number(m, TCA_LINKWEIR_CLASS_LIMIT_BYTES, value_near(1, 1000000000000, 100000), 8);
	if (one_in(3))
		put_number(m, TCA_LINKWEIR_CLASS_RATE, value_near(0, 1000000000000, 0), 8);
	while (n--)
		put_param(m, TCA_LINKWEIR_CLASS_PARAM, policy->qparams, policy->nqparams);
}

static void put_options(struct request *m, const struct lw_policy *policy, bool new)
{
	uint32_t classes = one_in(200) ? 4096 : !new ? 3 : 3 + below(10), n = below(4), i;

	if (new || odd(10))
		put_number(m, TCA_LINKWEIR_CLASSES, odd(20) ? value_near(1, 4096, 3) : classes, 4);
	if (new || one_in(3))
		put_number(m, TCA_LINKWEIR_LINK, one_in(5) ? value_near(1, 1000000000000, 20000000) : 20000000, 8);
	if (one_in(5))
		put_number(m, TCA_LINKWEIR_DEFAULT, value_near(1, classes, 1), 4);
	if (one_in(4))
		put_number(m, TCA_LINKWEIR_BANDWIDTH, one_in(2) ? value_near(0, 1000000000000, 20000000) : 20000000, 8);
	if (one_in(8))
		put_number(m, TCA_LINKWEIR_OVERHEAD, value_near(0, 256, 18), 4);
	if (one_in(8))
		put_number(m, TCA_LINKWEIR_MPU, value_near(0, 256, 64), 4);
	if (one_in(8))
		put_number(m, TCA_LINKWEIR_CELLS, value_near(0, 2, 1), 4);
	if (one_in(8) && !keeps)        /* whoever counts packets must know whether they are split */
		put_number(m, TCA_LINKWEIR_SPLIT_GSO, value_near(0, 1, 1), 4);
	if (one_in(8))
		put_number(m, TCA_LINKWEIR_MEMLIMIT, one_in(2) ? 0 : value_near(0, 1000000000000, 100000), 8);
	if (one_in(3)) {
		uint16_t numbers[LINKWEIR_CODE_POINTS];

		for (i = 0; i < LINKWEIR_CODE_POINTS; i++)
			numbers[i] = one_in(2) ? LINKWEIR_KEEP : (uint16_t)below(odd(500) ? 65536 : classes + 1);
		request_put(m, TCA_LINKWEIR_DSCP, numbers, odd(100) ? below(sizeof(numbers)) : sizeof(numbers));
	}
	while (n-- && !full(m))
		put_param(m, TCA_LINKWEIR_PARAM, policy->params, policy->nparams);
	for (n = below(classes + 1); n && !full(m); n--) {
		struct rtattr *nest = begin(m, TCA_LINKWEIR_CLASS);

		if (!odd(200))
			put_number(m, TCA_LINKWEIR_CLASS_NUMBER, odd(50) ? value_near(1, classes, 1) : 1 + below(classes), 4);
		put_class_attrs(m, policy);
		request_close(m, nest);
	}
	if (odd(20))
		put_number(m, below(20), random64(), 8);
	if (odd(20)) {                  /* nests in nests */
		struct rtattr *nests[8];

		for (i = 0; i < 8; i++)
			nests[i] = begin(m, below(8));
		while (i--)
			request_close(m, nests[i]);
	}
}

/* changes some bytes inside the options */
static void mangle(struct request *m, struct rtattr *options)
{
	unsigned char *bytes = RTA_DATA(options);
	uint32_t length = (uint32_t)RTA_PAYLOAD(options), n = 1 + below(4);

	while (length && n--)
		bytes[below(length)] = (unsigned char)(one_in(2) ? below(256) : below(12));
	(void)m;
}

/* ---- one message ---- */

static void make(struct request *m, uint32_t ifindex, const char *kind, const struct lw_policy *policy, bool other_kind)
{
	struct rtattr *options;
	uint32_t what = other_kind ? 0 : keeps ? 1 + below(99) : below(100);
	bool new = what >= 30 && what < 50 && !keeps;

	wild = one_in(3);
	request_begin(m, 0, 0, (int)ifindex, parent, handle);
	if (what < 1) {
		m->n.nlmsg_type = RTM_DELQDISC;
		return;
	}
	if (what < 3) {                 /* show */
		m->n.nlmsg_type = what == 1 ? RTM_GETQDISC : RTM_GETTCLASS;
		m->t.tcm_parent = what == 1 ? parent : handle;
		m->t.tcm_handle = handle + (what == 1 ? 0 : below(16));
		return;
	}
	request_put(m, TCA_KIND, kind, strlen(kind) + 1);
	if (what < 30) {
		m->n.nlmsg_type = RTM_NEWTCLASS;
		m->t.tcm_parent = handle;
		m->t.tcm_handle = handle + (odd(10) ? below(65536) : 1 + below(3));
		if (odd(20))
			m->n.nlmsg_flags |= NLM_F_CREATE;
	} else {
		m->n.nlmsg_type = RTM_NEWQDISC;
		m->n.nlmsg_flags |= new ? NLM_F_CREATE | NLM_F_REPLACE : 0;
	}
	if (odd(100))
		return;
	options = begin(m, TCA_OPTIONS);
	if (m->n.nlmsg_type == RTM_NEWTCLASS)
		put_class_attrs(m, policy);
	else
		put_options(m, policy, new);
	request_close(m, options);
	if (odd(3))
		mangle(m, options);
}

/* of a kind, which has its name, perhaps after lw_ or with _mq */
static const struct lw_policy *policy_of(const char *name)
{
	size_t length;
	uint32_t i;

	name += strncmp(name, "lw_", 3) ? 0 : 3;
	length = strlen(name);
	if (length > 3 && !strcmp(name + length - 3, "_mq"))
		length -= 3;
	for (i = 0; i < lw_npolicies; i++)
		if (!strncmp(lw_policies[i]->name, name, length) && !lw_policies[i]->name[length])
			return lw_policies[i];
	errno = EINVAL;
	request_fail(name);
	return NULL;
}

/* finds whole words only */
static bool has_words(const char *text, const char *words)
{
	const char *at = text;

	while ((at = strstr(at, words))) {
		const char *end = at + strlen(words);
		bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');

		if (begins && !(isalnum((unsigned char)*end) || *end == '_'))
			return true;
		at = end;
	}
	return false;
}

static bool names_one(const char *text, const struct lw_param *params, uint32_t nparams)
{
	uint32_t i;

	for (i = 0; i < nparams; i++)
		if (has_words(text, params[i].name))
			return true;
	return false;
}

/* Does a text name an attribute, or say that a parameter or attribute does not exist? */
static bool names_attribute(const char *text, const struct lw_policy *policy)
{
	static const char *const names[] = {
		"classes", "link", "bandwidth", "overhead", "mpu", "cells", "split_gso", "memlimit", "dscp", "default", "param",
		"name of a parameter", "value of a parameter", "options",
		"class must be", "class: the last", "class: there", "number of a class", "limit", "limit_bytes", "rate"
	};
	uint32_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (has_words(text, names[i]))
			return true;
	return names_one(text, policy->params, policy->nparams) || names_one(text, policy->qparams, policy->nqparams);
}

/* ends the shaper, and gives each class a channel, which messages may have taken from it */
static void open_all(int s, struct request *m, uint32_t ifindex)
{
	uint64_t rate_bps = 1000000000, off = 0;
	struct rtattr *options;
	uint32_t class;

	request_begin(m, RTM_NEWQDISC, 0, (int)ifindex, parent, handle);
	options = request_put(m, TCA_OPTIONS | NLA_F_NESTED, NULL, 0);
	request_put(m, TCA_LINKWEIR_BANDWIDTH, &off, sizeof(off));
	request_close(m, options);
	request_send(s, m);
	for (class = 1;; class++) {
		request_begin(m, RTM_NEWTCLASS, 0, (int)ifindex, handle, handle + class);
		options = request_put(m, TCA_OPTIONS | NLA_F_NESTED, NULL, 0);
		request_put(m, TCA_LINKWEIR_CLASS_RATE, &rate_bps, sizeof(rate_bps));
		request_close(m, options);
		if (request_send(s, m).error)
			return;
	}
}

int main(int argc, char **argv)
{
	static struct request m;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int s = request_socket(), u = socket(AF_INET, SOCK_DGRAM, 0);
	unsigned long sent, messages, accepted = 0, refused = 0, absent = 0, mute = 0, nameless = 0, datagrams = 0;
	const struct lw_policy *policy;
	const char *kind;
	uint32_t ifindex, major, minor;
	bool opens = false;
	int option;

	while ((option = getopt(argc, argv, "+kop:")) != -1) {
		keeps |= option == 'k';
		opens |= option == 'o';
		if (option == 'p' && sscanf(optarg, "%x:%x", &major, &minor) == 2) {
			parent = major << 16 | minor;
			handle = 0x100000;
		}
	}
	argv += optind - 1;
	argc -= optind - 1;
	if (argc < 6) {
		fprintf(stderr, "usage: fuzz [-k] [-o] [-p PARENT] DEVICE ADDRESS SEED MESSAGES KIND...\n");
		return 2;
	}
	ifindex = if_nametoindex(argv[1]);
	seed = strtoull(argv[3], NULL, 10);
	messages = strtoul(argv[4], NULL, 10);
	kind = argv[5];
	policy = policy_of(kind);
	if (u < 0 || !ifindex || inet_pton(AF_INET, argv[2], &to.sin_addr) != 1)
		request_fail("where to send");
	for (sent = 1; sent <= messages; sent++) {
		bool other_kind = one_in(100) && !keeps;
		struct answer answer;

		if (sent % REST == 0)
			usleep(1000);
		if (one_in(4)) {
			int tos = (int)below(256);

			setsockopt(u, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
			datagrams += sendto(u, m.attrs, below(1400), MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) >= 0;
		}
		make(&m, ifindex, kind, policy, other_kind);
		answer = request_send(s, &m);
		accepted += !answer.error;
		absent += answer.error == -ENOENT;      /* the kernel, not the module, refuses for a missing qdisc or class */
		refused += answer.error && answer.error != -ENOENT;
		if (answer.error && answer.error != -ENOENT) {
			bool has_some = m.n.nlmsg_type == RTM_NEWQDISC || m.n.nlmsg_type == RTM_NEWTCLASS;
			bool silent = !answer.text || !answer.text[0];
			bool named = !silent && (!has_some || names_attribute(answer.text, policy));

			mute += silent;
			nameless += !silent && !named;
			if (!named && mute + nameless <= MOST_SHOWN)
				printf("%s: %s: type %u flags %x kind %s handle %x\n", silent ? "without a text" : answer.text,
				       strerror(-answer.error), (unsigned int)m.n.nlmsg_type, (unsigned int)m.n.nlmsg_flags,
				       kind, m.t.tcm_handle);
		}
		if (other_kind) {
			kind = argv[5 + below((uint32_t)argc - 5)];
			policy = policy_of(kind);
		}
	}
	if (opens)
		open_all(s, &m, ifindex);
	printf("sent %lu accepted %lu refused %lu absent %lu mute %lu nameless %lu datagrams %lu\n", messages, accepted, refused, absent,
	       mute, nameless, datagrams);
	return 0;
}
