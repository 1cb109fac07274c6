// SPDX-License-Identifier: GPL-2.0-only
/* q_pss.c	Priority Switching Scheduler */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utils.h"
#include "tc_util.h"

/* of the requests that tc sends, less what it adds itself */
#define QDISC_ROOM 60000
#define CLASS_ROOM 1024

enum pss_unit {
	PSS_NUMBER, PSS_PACKETS, PSS_BYTES, PSS_BPS, PSS_PPM, PSS_NS, PSS_BITS
};

struct pss_param {
	const char *name;
	int attr;
	enum pss_unit unit;
};

/* of a class */
static const struct pss_param params[] = {
@PARAMETERS@
};

static const struct pss_param link_param = {
	@LINK@
};

static const struct pss_param bandwidth_param = {
	@BANDWIDTH@
};

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... pss classes N { link RATE | bandwidth RATE } [ default CLASS ]\n"
		"               [ class N CLASS-OPTIONS ]...\n"
		"CLASS-OPTIONS := [ reset ] [ limit PACKETS ] [ level N ] [ low_level N ]\n"
		"                 [ rate RATE | share PERCENT ] [ burst PACKETS ] [ mtu BYTES ]\n"
		"                 [ memory TIME ] [ lr BITS ] [ lm BITS ] [ credit BITS ]\n");
}

static void cexplain(void)
{
	fprintf(stderr, "Usage: tc class change ... classid CLASSID pss CLASS-OPTIONS\n");
}

static bool is_wide(enum pss_unit unit)
{
	return unit == PSS_BPS || unit == PSS_NS || unit == PSS_BITS;
}

static int get_ppm(__u64 *ppm, const char *arg)
{
	char *end;
	double percent = strtod(arg, &end);

	if (end == arg || strcmp(end, "%") || !(percent >= 0) || percent > 100)
		return -1;
	*ppm = (__u64)(percent * 10000 + 0.5);
	return 0;
}

static int get_value(__u64 *value, enum pss_unit unit, const char *arg)
{
	unsigned int size;
	__s64 time;
	int err;

	switch (unit) {
	case PSS_BPS:
		err = get_rate64(value, arg);
		*value *= 8;
		return err;
	case PSS_NS:
		err = get_time64(&time, arg);
		*value = time;
		return err ? err : time < 0;
	case PSS_PPM:
		return get_ppm(value, arg);
	case PSS_BYTES:
		err = get_size(&size, arg);
		*value = size;
		return err;
	default:
		return get_u64(value, arg, 10);
	}
}

static int add_value(struct nlmsghdr *n, int room,
		     const struct pss_param *param, const char *arg)
{
	__u64 value;

	if (get_value(&value, param->unit, arg)) {
		fprintf(stderr, "pss: illegal \"%s\": \"%s\"\n", param->name,
			arg);
		return -1;
	}
	if (is_wide(param->unit))
		return addattr64(n, room, param->attr, value);
	if (value > 0xffffffff)
		value = 0xffffffff;	/* beyond every range */
	return addattr32(n, room, param->attr, value);
}

static const struct pss_param *find_param(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(params); i++)
		if (!strcmp(params[i].name, name))
			return &params[i];
	return NULL;
}

/* The options of a class up to the next one; returns how many words they are. */
static int add_class(struct nlmsghdr *n, int room, __u32 number, int argc,
		     char **argv)
{
	struct rtattr *nest;
	int left = argc;

	nest = addattr_nest(n, room, TCA_PSS_CLASS | NLA_F_NESTED);
	if (addattr32(n, room, TCA_PSS_CLASS_NUMBER, number))
		return -1;
	while (left > 0) {
		const struct pss_param *param = find_param(*argv);

		if (!strcmp(*argv, "reset")) {
			if (addattr(n, room, TCA_PSS_CLASS_RESET))
				return -1;
			left--;
			argv++;
			continue;
		}
		if (!param)
			break;
		if (left < 2) {
			fprintf(stderr, "pss: \"%s\" needs a value\n", *argv);
			return -1;
		}
		if (add_value(n, room, param, argv[1]))
			return -1;
		left -= 2;
		argv += 2;
	}
	addattr_nest_end(n, nest);
	return argc - left;
}

static int pss_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			 struct nlmsghdr *n, const char *dev)
{
	struct rtattr *tail;
	__u32 number;
	int used;

	tail = addattr_nest(n, QDISC_ROOM, TCA_OPTIONS | NLA_F_NESTED);
	while (argc > 0) {
		const char *word = *argv;

		if (!strcmp(word, "help")) {
			explain();
			return -1;
		}
		if (strcmp(word, "classes") && strcmp(word, "link") &&
		    strcmp(word, "bandwidth") && strcmp(word, "default") &&
		    strcmp(word, "class")) {
			fprintf(stderr, "pss: unknown option \"%s\"\n", word);
			explain();
			return -1;
		}
		if (argc < 2) {
			fprintf(stderr, "pss: \"%s\" needs a value\n", word);
			return -1;
		}
		NEXT_ARG();
		if (!strcmp(word, "link") || !strcmp(word, "bandwidth")) {
			if (add_value(n, QDISC_ROOM, *word == 'l' ?
				      &link_param : &bandwidth_param, *argv))
				return -1;
			NEXT_ARG_FWD();
			continue;
		}
		if (get_u32(&number, *argv, 10)) {
			fprintf(stderr, "pss: illegal \"%s\": \"%s\"\n", word,
				*argv);
			return -1;
		}
		NEXT_ARG_FWD();
		if (!strcmp(word, "classes")) {
			addattr32(n, QDISC_ROOM, TCA_PSS_CLASSES, number);
		} else if (!strcmp(word, "default")) {
			addattr32(n, QDISC_ROOM, TCA_PSS_DEFAULT, number);
		} else {
			used = add_class(n, QDISC_ROOM, number, argc, argv);
			if (used < 0)
				return -1;
			argc -= used;
			argv += used;
		}
	}
	addattr_nest_end(n, tail);
	return 0;
}

static int pss_parse_copt(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev)
{
	struct tcmsg *t = NLMSG_DATA(n);
	struct rtattr *tail;

	if (!TC_H_MIN(t->tcm_handle)) {
		fprintf(stderr, "pss: classid must be given before the options\n");
		return -1;
	}
	tail = addattr_nest(n, CLASS_ROOM, TCA_OPTIONS | NLA_F_NESTED);
	if (add_class(n, CLASS_ROOM, TC_H_MIN(t->tcm_handle), argc,
		      argv) != argc) {
		cexplain();
		return -1;
	}
	addattr_nest_end(n, tail);
	return 0;
}

static void print_value(const struct pss_param *param, __u64 value)
{
	char format[32];

	SPRINT_BUF(buffer);

	if (is_json_context()) {
		print_u64(PRINT_JSON, param->name, NULL, value);
		return;
	}
	if (param->unit == PSS_BPS && value % 8 == 0) {
		snprintf(format, sizeof(format), "%s %%s ", param->name);
		tc_print_rate(PRINT_FP, NULL, format, value / 8);
	} else if (param->unit == PSS_NS) {
		fprintf(stdout, "%s %s ", param->name,
			sprint_time64(value, buffer));
	} else if (param->unit == PSS_PPM) {
		fprintf(stdout, "%s %g%% ", param->name, value / 10000.);
	} else {
		fprintf(stdout, "%s %llu%s ", param->name,
			(unsigned long long)value,
			param->unit == PSS_BPS ? "bit" :
			param->unit == PSS_BYTES ? "b" :
			param->unit == PSS_PACKETS ? "p" : "");
	}
}

static void print_class(struct rtattr *class)
{
	struct rtattr *tb[TCA_PSS_CLASS_MAX + 1];
	unsigned int i;

	parse_rtattr_nested(tb, TCA_PSS_CLASS_MAX, class);
	for (i = 0; i < ARRAY_SIZE(params); i++) {
		struct rtattr *attr = tb[params[i].attr];

		if (!attr)
			continue;
		print_value(&params[i], is_wide(params[i].unit) ?
			    rta_getattr_u64(attr) : rta_getattr_u32(attr));
	}
}

static int pss_print_opt(const struct qdisc_util *qu, FILE *f,
			 struct rtattr *opt)
{
	struct rtattr *tb[TCA_PSS_MAX + 1];

	if (!opt)
		return 0;
	parse_rtattr_nested(tb, TCA_PSS_MAX, opt);
	if (tb[TCA_PSS_CLASSES])
		print_uint(PRINT_ANY, "classes", "classes %u ",
			   rta_getattr_u32(tb[TCA_PSS_CLASSES]));
	if (tb[TCA_PSS_LINK])
		print_value(&link_param, rta_getattr_u64(tb[TCA_PSS_LINK]));
	if (tb[TCA_PSS_BANDWIDTH] && rta_getattr_u64(tb[TCA_PSS_BANDWIDTH]))
		print_value(&bandwidth_param,
			    rta_getattr_u64(tb[TCA_PSS_BANDWIDTH]));
	if (tb[TCA_PSS_DEFAULT])
		print_uint(PRINT_ANY, "default", "default %u ",
			   rta_getattr_u32(tb[TCA_PSS_DEFAULT]));
	if (tb[TCA_PSS_CLASS])
		print_class(tb[TCA_PSS_CLASS]);
	return 0;
}

static int pss_print_xstats(const struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats)
{
	const struct tc_pss_xstats *st;

	if (!xstats)
		return 0;
	if (RTA_PAYLOAD(xstats) < sizeof(*st))
		return -1;
	st = RTA_DATA(xstats);
	print_u64(PRINT_ANY, "credit", "  credit %llu", st->credit);
	print_uint(PRINT_ANY, "low", " low %u", st->low);
	return 0;
}

struct qdisc_util pss_qdisc_util = {
	.id		= "pss",
	.parse_qopt	= pss_parse_opt,
	.print_qopt	= pss_print_opt,
	.print_xstats	= pss_print_xstats,
	.parse_copt	= pss_parse_copt,
	.print_copt	= pss_print_opt,
};
