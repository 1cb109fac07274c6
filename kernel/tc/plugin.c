// SPDX-License-Identifier: GPL-2.0-only
/*
 * plugin.c - tc's part of a Linkweir qdisc: converts words to attributes and back, driven by the policy's parameter tables.
 *
 * Compiled once for each kind, with KIND its name and POLICY its policy, whose source it is linked with. tc looks up KIND_qdisc_util in
 * q_KIND.so.
 */
#include "tc_abi.h"
#include "units.h"
#include "../linkweir_netlink.h"

#define PASTE(a, b) a##b
#define NAMED(a, b) PASTE(a, b)
#define QUOTE(a) #a
#define TEXT(a) QUOTE(a)

/* sizes of tc's request buffers, less room for what tc adds itself */
#define QDISC_ROOM 60000
#define CLASS_ROOM 4000

static const struct lw_policy *const policy = &POLICY;
static const char kind[] = TEXT(KIND);

static const struct lw_param limit_param = {
	"limit", "packets the class holds; 1000, or no bound with limit_bytes", NULL, 1, 100000000, 0, LW_PKTS, 0
};
static const struct lw_param limit_bytes_param = {
	"limit_bytes", "bytes the class holds", NULL, 1, 1000000000000, 0, LW_BYTES, 0
};
static const struct lw_param rate_param = {
	"rate", "present rate of the class's channel; 0 blocks it; unset: the link's", NULL, 0, LW_MAX_RATE_BPS, LW_UNSET, LW_BPS, 0
};
static const struct lw_param link_param = {
	"link", "capacity that the scheduler assumes; shapes nothing", NULL, LW_MIN_RATE_BPS, LW_MAX_RATE_BPS, 0, LW_BPS, 0
};

static const struct lw_param bandwidth_param = {
	"bandwidth", "packets leave at this rate, which is the link's; 0 or unlimited: as fast as the parent takes them", NULL, 0,
	LW_MAX_RATE_BPS, 0, LW_BPS, 0
};
static const struct lw_param memlimit_param = {
	"memlimit", "memory that waiting packets may use; 0: no limit", NULL, 0, 1000000000000, 0, LW_BYTES, 0
};
static const struct lw_param mpu_param = { "mpu", "least length on the link", NULL, 0, 256, 0, LW_BYTES, 0 };

/* ---- names of code points ---- */

static void write_dscp(unsigned int dscp, char *text, size_t size)
{
	if (dscp == 46)
		snprintf(text, size, "EF");
	else if (dscp == 44)
		snprintf(text, size, "VA");
	else if (dscp == 1)
		snprintf(text, size, "LE");
	else if (dscp % 8 == 0)
		snprintf(text, size, "CS%u", dscp / 8);
	else if (dscp / 8 >= 1 && dscp / 8 <= 4 && dscp % 2 == 0)
		snprintf(text, size, "AF%u%u", dscp / 8, dscp % 8 / 2);
	else
		snprintf(text, size, "%u", dscp);
}

/* a number, a name, or AF for all of AF11 .. AF43 */
static bool set_dscp(const char *word, uint16_t number, uint16_t *numbers)
{
	bool found = false;
	unsigned int dscp;
	char name[16];
	uint64_t value;

	if (read_value(LW_NUMBER, word, &value)) {
		if (value >= LINKWEIR_CODE_POINTS)
			return false;
		numbers[value] = number;
		return true;
	}
	for (dscp = 0; dscp < LINKWEIR_CODE_POINTS; dscp++) {
		write_dscp(dscp, name, sizeof(name));
		if (!strcasecmp(word, name) || (!strcasecmp(word, "AF") && !strncmp(name, "AF", 2))) {
			numbers[dscp] = number;
			found = true;
		}
	}
	return found;
}

/* EF=1,AF=2,0=3 */
static bool read_dscps(const char *text, uint16_t *numbers)
{
	char *copy = strdup(text), *word, *state = NULL;
	bool good = copy && *copy;

	for (word = good ? strtok_r(copy, ",", &state) : NULL; word && good; word = strtok_r(NULL, ",", &state)) {
		char *equals = strchr(word, '=');
		uint64_t number;

		good = equals && read_value(LW_NUMBER, equals + 1, &number) && number < LINKWEIR_KEEP;
		if (good) {
			*equals = 0;
			good = set_dscp(word, (uint16_t)number, numbers);
		}
	}
	free(copy);
	return good;
}

/* ---- help ---- */

static void write_limit(const struct lw_param *param, uint64_t value, char *text, size_t size)
{
	if (value == LW_UNSET)
		snprintf(text, size, "unset");
	else
		write_value(param->unit, value, text, size);
}

static void explain(const struct lw_param *param, bool has_default)
{
	char low[48], high[48], def[48];

	fprintf(stderr, "  %-11s %s\n              ", param->name, param->help);
	if (param->unit == LW_CHOICE) {
		const char *choice = param->choices;
		uint64_t i;

		fprintf(stderr, "%s", param->choices);
		for (i = 0; i < param->def; i++)
			choice = strchr(choice, '|') + 1;
		fprintf(stderr, ", default %.*s\n", (int)strcspn(choice, "|"), choice);
		return;
	}
	write_limit(param, param->min, low, sizeof(low));
	write_limit(param, param->max, high, sizeof(high));
	write_limit(param, param->def, def, sizeof(def));
	fprintf(stderr, "%s .. %s", low, high);
	fprintf(stderr, has_default ? ", default %s\n" : "\n", def);
}

static bool policy_has(const char *name)
{
	uint32_t i;

	for (i = 0; i < policy->nqparams; i++)
		if (!strcmp(policy->qparams[i].name, name))
			return true;
	return false;
}

static void help(void)
{
	uint32_t i;

	fprintf(stderr,
		"Usage: ... %s classes N [bandwidth RATE | link RATE] [overhead BYTES | raw] [mpu BYTES] [atm | ptm | noatm]\n"
		"           [split-gso | no-split-gso] [memlimit SIZE]\n"
		"           %s[default CLASS] [dscp CODE=CLASS,...] [PARAMETER VALUE]...\n"
		"           [class NUMBER [limit PACKETS] [limit_bytes SIZE]%s [PARAMETER VALUE]...]...\n"
		"%s.\n"
		"classes are numbered from 1; CODE is EF, VA, LE, CS0-CS7, AF11-AF43, AF (all of these) or a number, CLASS 0 is none.\n"
		"change keeps what is not named, and waiting packets. tc class change ... classid MAJOR:CLASS %s ... sets one class.\n",
		kind, strcmp(policy->name, "pss") ? "" : "[preset voice] ", policy_has("rate") ? "" : " [rate RATE]", policy->help, kind);
	fprintf(stderr, "PARAMETER of the qdisc:\n");
	explain(&bandwidth_param, false);
	explain(&link_param, false);
	fprintf(stderr, "  overhead    bytes on the link beyond those of the network layer, as for cake\n"
			"              -64 .. 256; raw: lengths as the kernel counts them, with the link header\n");
	explain(&mpu_param, false);
	fprintf(stderr, "  atm, ptm    the cells of ATM (53 bytes for 48), or the 65th byte of PTM; noatm: neither\n");
	fprintf(stderr, "  no-split-gso\n              super-packets (GSO) stay whole; split-gso, the default: they are split on arrival\n");
	explain(&memlimit_param, false);
	for (i = 0; i < policy->nparams; i++)
		explain(&policy->params[i], true);
	fprintf(stderr, "of a class:\n");
	explain(&limit_param, false);
	explain(&limit_bytes_param, false);
	if (!policy_has("rate"))
		explain(&rate_param, false);
	for (i = 0; i < policy->nqparams; i++)
		explain(&policy->qparams[i], true);
}

/* ---- from words ---- */

static int wrong(const char *what, const char *word)
{
	fprintf(stderr, "%s: %s \"%s\", see: tc qdisc add %s help\n", kind, what, word, kind);
	return -1;
}

static bool read_choice(const char *choices, const char *word, uint64_t *value)
{
	size_t length = strlen(word);

	for (*value = 0; choices; (*value)++) {
		size_t one = strcspn(choices, "|");

		if (one == length && !strncmp(choices, word, one))
			return true;
		choices = choices[one] ? choices + one + 1 : NULL;
	}
	return false;
}

static bool read_param(const struct lw_param *param, const char *word, uint64_t *value)
{
	if (param->unit == LW_CHOICE)
		return read_choice(param->choices, word, value);
	if (param->def == LW_UNSET && !strcmp(word, "unset")) {
		*value = LW_UNSET;
		return true;
	}
	return read_value(param->unit, word, value);
}

struct request {
	struct nlmsghdr *n;
	int room;
	int argc;
	char **argv;
};

static const char *next(struct request *r)
{
	r->argc--;
	return *++r->argv;
}

static int add(struct request *r, int type, const void *data, int size)
{
	return addattr_l(r->n, r->room, type, data, size) ? wrong("the command is too long at", r->argc > 0 ? *r->argv : "its end") : 0;
}

static struct rtattr *begin(struct request *r, int type)
{
	struct rtattr *nest = (struct rtattr *)((char *)r->n + NLMSG_ALIGN(r->n->nlmsg_len));

	return add(r, type | NLA_F_NESTED, NULL, 0) ? NULL : nest;
}

/* the word after this one, as a value of `param` */
static int read_next(struct request *r, const struct lw_param *param, uint64_t *value)
{
	char what[96];

	if (r->argc < 2)
		return wrong("a value must follow", *r->argv);
	next(r);
	if (read_param(param, *r->argv, value))
		return 0;
	snprintf(what, sizeof(what), "%s takes %s, not", param->name,
		 param->unit == LW_CHOICE ? param->choices : unit_example(param->unit));
	return wrong(what, *r->argv);
}

/* 1: the word is none of these parameters */
static int read_named(struct request *r, int type, const struct lw_param *params, uint32_t nparams)
{
	struct rtattr *nest;
	uint64_t value;
	uint32_t i;

	for (i = 0; i < nparams && strcmp(params[i].name, *r->argv); i++)
		;
	if (i == nparams)
		return 1;
	if (read_next(r, &params[i], &value))
		return -1;
	nest = begin(r, type);
	if (!nest || add(r, TCA_LINKWEIR_PARAM_NAME, params[i].name, (int)strlen(params[i].name) + 1) ||
	    add(r, TCA_LINKWEIR_PARAM_VALUE, &value, sizeof(value)))
		return -1;
	addattr_nest_end(r->n, nest);
	return 0;
}

/* the words of one class, up to the next class */
static int read_class(struct request *r)
{
	while (r->argc > 0 && strcmp(*r->argv, "class")) {
		int done = read_named(r, TCA_LINKWEIR_CLASS_PARAM, policy->qparams, policy->nqparams);
		uint64_t value;
		uint32_t pkts;

		if (done < 0)
			return -1;
		if (!done) {
			next(r);
			continue;
		}
		if (!strcmp(*r->argv, "limit")) {
			if (read_next(r, &limit_param, &value))
				return -1;
			pkts = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
			if (add(r, TCA_LINKWEIR_CLASS_LIMIT, &pkts, sizeof(pkts)))
				return -1;
		} else if (!strcmp(*r->argv, "limit_bytes")) {
			if (read_next(r, &limit_bytes_param, &value) ||
			    add(r, TCA_LINKWEIR_CLASS_LIMIT_BYTES, &value, sizeof(value)))
				return -1;
		} else if (!strcmp(*r->argv, "rate")) {
			if (read_next(r, &rate_param, &value) || add(r, TCA_LINKWEIR_CLASS_RATE, &value, sizeof(value)))
				return -1;
		} else if (!strcmp(*r->argv, "help")) {
			help();
			return -1;
		} else {
			return wrong("a class has no", *r->argv);
		}
		next(r);
	}
	return 0;
}

static int read_number(struct request *r, const char *name, int type)
{
	struct lw_param param = { name, NULL, NULL, 0, 0, 0, LW_NUMBER, 0 };
	uint64_t value;
	uint32_t number;

	if (read_next(r, &param, &value))
		return -1;
	number = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
	return add(r, type, &number, sizeof(number));
}

/* class NUMBER ... */
static int read_class_nest(struct request *r)
{
	struct rtattr *nest = begin(r, TCA_LINKWEIR_CLASS);

	if (!nest || read_number(r, "class", TCA_LINKWEIR_CLASS_NUMBER))
		return -1;
	next(r);
	if (read_class(r))
		return -1;
	addattr_nest_end(r->n, nest);
	return 0;
}

static int read_dscp_map(struct request *r)
{
	uint16_t numbers[LINKWEIR_CODE_POINTS];

	memset(numbers, 0xff, sizeof(numbers));
	if (r->argc < 2)
		return wrong("a value must follow", *r->argv);
	next(r);
	if (!read_dscps(*r->argv, numbers))
		return wrong("dscp takes CODE=CLASS,..., not", *r->argv);
	return add(r, TCA_LINKWEIR_DSCP, numbers, sizeof(numbers));
}

static int read_bandwidth(struct request *r)
{
	uint64_t value = 0;

	if (r->argc > 1 && !strcmp(r->argv[1], "unlimited"))
		next(r);
	else if (read_next(r, &bandwidth_param, &value))
		return -1;
	return add(r, TCA_LINKWEIR_BANDWIDTH, &value, sizeof(value));
}

static int read_overhead(struct request *r)
{
	int32_t bytes;
	uint64_t value;
	bool minus;

	if (r->argc < 2)
		return wrong("a value must follow", *r->argv);
	next(r);
	minus = **r->argv == '-';
	if (!read_value(LW_NUMBER, *r->argv + minus, &value) || value > 1000000)
		return wrong("overhead takes bytes, -64 .. 256, not", *r->argv);
	bytes = minus ? -(int32_t)value : (int32_t)value;
	return add(r, TCA_LINKWEIR_OVERHEAD, &bytes, sizeof(bytes));
}

/* words of the link: 1 if this is none */
static int read_framing(struct request *r)
{
	static const char *const cells[] = { [LINKWEIR_NOATM] = "noatm", [LINKWEIR_ATM] = "atm", [LINKWEIR_PTM] = "ptm" };
	const int32_t raw = LINKWEIR_RAW;
	uint64_t value;
	uint32_t i;

	if (!strcmp(*r->argv, "overhead"))
		return read_overhead(r);
	if (!strcmp(*r->argv, "raw"))
		return add(r, TCA_LINKWEIR_OVERHEAD, &raw, sizeof(raw));
	if (!strcmp(*r->argv, "mpu")) {
		if (read_next(r, &mpu_param, &value))
			return -1;
		i = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
		return add(r, TCA_LINKWEIR_MPU, &i, sizeof(i));
	}
	if (!strcmp(*r->argv, "memlimit"))
		return read_next(r, &memlimit_param, &value) ? -1 : add(r, TCA_LINKWEIR_MEMLIMIT, &value, sizeof(value));
	i = !strcmp(*r->argv, "split-gso");
	if (i || !strcmp(*r->argv, "no-split-gso"))
		return add(r, TCA_LINKWEIR_SPLIT_GSO, &i, sizeof(i));
	for (i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
		if (!strcmp(*r->argv, cells[i]))
			return add(r, TCA_LINKWEIR_CELLS, &i, sizeof(i));
	return 1;
}

static int read_words(struct request *r);

/* Words that stand for others; those that follow may change each of them. */
static int read_preset(struct request *r)
{
	/* voice and control before all; interactive classes of RFC 4594 with 40 % of the link; the rest */
	static const char *const voice[] = {
		"classes", "3", "dscp", "EF=1,VA=1,CS5=1,CS6=1,CS7=1,AF=2,CS2=2,CS3=2,CS4=2",
		"class", "2", "level", "1", "low_level", "3", "share", "40%", "class", "3", "level", "2",
	};
	const char *words[sizeof(voice) / sizeof(voice[0])];
	struct request inner = { r->n, r->room, sizeof(voice) / sizeof(voice[0]), (char **)words };

	if (r->argc < 2)
		return wrong("a value must follow", *r->argv);
	next(r);
	if (strcmp(policy->name, "pss") || strcmp(*r->argv, "voice"))
		return wrong(strcmp(policy->name, "pss") ? "there is no preset" : "preset takes voice, not", *r->argv);
	memcpy(words, voice, sizeof(words));
	return read_words(&inner);
}

static int read_qdisc_word(struct request *r)
{
	int done = read_named(r, TCA_LINKWEIR_PARAM, policy->params, policy->nparams);
	uint64_t value;

	if (done <= 0)
		return done;
	done = read_framing(r);
	if (done <= 0)
		return done;
	if (!strcmp(*r->argv, "preset"))
		return read_preset(r);
	if (!strcmp(*r->argv, "bandwidth"))
		return read_bandwidth(r);
	if (!strcmp(*r->argv, "classes"))
		return read_number(r, "classes", TCA_LINKWEIR_CLASSES);
	if (!strcmp(*r->argv, "default"))
		return read_number(r, "default", TCA_LINKWEIR_DEFAULT);
	if (!strcmp(*r->argv, "dscp"))
		return read_dscp_map(r);
	if (!strcmp(*r->argv, "link"))
		return read_next(r, &link_param, &value) ? -1 : add(r, TCA_LINKWEIR_LINK, &value, sizeof(value));
	if (!strcmp(*r->argv, "help")) {
		help();
		return -1;
	}
	return wrong("a qdisc has no", *r->argv);
}

static int read_words(struct request *r)
{
	while (r->argc > 0) {
		if (!strcmp(*r->argv, "class")) {
			if (read_class_nest(r))
				return -1;
		} else {
			if (read_qdisc_word(r))
				return -1;
			next(r);
		}
	}
	return 0;
}

static int parse_qdisc(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n, const char *dev)
{
	struct request r = { n, QDISC_ROOM, argc, argv };
	struct rtattr *nest = begin(&r, TCA_OPTIONS);

	(void)qu, (void)dev;
	if (!nest || read_words(&r))
		return -1;
	addattr_nest_end(n, nest);
	return 0;
}

static int parse_class(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n, const char *dev)
{
	struct request r = { n, CLASS_ROOM, argc, argv };
	struct rtattr *nest = begin(&r, TCA_OPTIONS);

	(void)qu, (void)dev;
	if (!nest || read_class(&r))
		return -1;
	if (r.argc > 0)
		return wrong("tc class change takes one class, not", *r.argv);
	addattr_nest_end(n, nest);
	return 0;
}

/* ---- to text and JSON ---- */

static void parse(struct rtattr **tb, int max, struct rtattr *nest)
{
	parse_rtattr_flags(tb, max, RTA_DATA(nest), (int)RTA_PAYLOAD(nest), NLA_F_NESTED);
}

static uint64_t get_u64(const struct rtattr *attr)
{
	uint64_t value;

	memcpy(&value, RTA_DATA(attr), sizeof(value));
	return value;
}

static uint32_t get_u32(const struct rtattr *attr)
{
	uint32_t value;

	memcpy(&value, RTA_DATA(attr), sizeof(value));
	return value;
}

/* "name 20Mbit " or "name_bps": 20000000 */
static void show(const char *name, enum lw_unit unit, uint64_t value)
{
	char key[64], text[64], format[96];

	snprintf(key, sizeof(key), "%s%s", name, unit_suffix(unit));
	print_color_u64(PRINT_JSON, COLOR_NONE, key, NULL, value);
	snprintf(format, sizeof(format), "%s %%s ", name);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, format, write_value(unit, value, text, sizeof(text)));
}

static void show_choice(const struct lw_param *param, uint64_t value)
{
	const char *choice = param->choices;
	char word[32], format[64];

	while (value-- && choice)
		choice = strchr(choice, '|') ? strchr(choice, '|') + 1 : NULL;
	if (!choice)
		return;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(choice, "|"), choice);
	snprintf(format, sizeof(format), "%s %%s ", param->name);
	print_color_string(PRINT_ANY, COLOR_NONE, param->name, format, word);
}

/* a parameter this plugin does not know is shown as a number */
static void show_param(struct rtattr *nest, const struct lw_param *params, uint32_t nparams)
{
	struct rtattr *tb[TCA_LINKWEIR_PARAM_MAX + 1];
	const char *name;
	uint64_t value;
	uint32_t i;

	parse(tb, TCA_LINKWEIR_PARAM_MAX, nest);
	if (!tb[TCA_LINKWEIR_PARAM_NAME] || !tb[TCA_LINKWEIR_PARAM_VALUE])
		return;
	name = RTA_DATA(tb[TCA_LINKWEIR_PARAM_NAME]);
	value = get_u64(tb[TCA_LINKWEIR_PARAM_VALUE]);
	if (value == LW_UNSET)
		return;
	for (i = 0; i < nparams && strcmp(params[i].name, name); i++)
		;
	if (i < nparams && params[i].unit == LW_CHOICE)
		show_choice(&params[i], value);
	else
		show(name, i < nparams ? params[i].unit : LW_NUMBER, value);
}

/* RTA_NEXT, for every attribute of one type in a nest */
static void show_params(struct rtattr *nest, int type, const struct lw_param *params, uint32_t nparams)
{
	struct rtattr *attr = RTA_DATA(nest);
	int rest = (int)RTA_PAYLOAD(nest);

	for (; RTA_OK(attr, rest); attr = RTA_NEXT(attr, rest))
		if ((attr->rta_type & NLA_TYPE_MASK) == type)
			show_param(attr, params, nparams);
}

static void show_dscps(const struct rtattr *attr)
{
	const uint16_t *numbers = RTA_DATA(attr);
	unsigned int dscp;
	bool any = false;
	char name[16], text[32];

	open_json_object("dscp");
	for (dscp = 0; dscp < LINKWEIR_CODE_POINTS; dscp++) {
		if (!numbers[dscp])
			continue;
		write_dscp(dscp, name, sizeof(name));
		print_color_u64(PRINT_JSON, COLOR_NONE, name, NULL, numbers[dscp]);
		snprintf(text, sizeof(text), "%s%s=%u", any ? "," : "dscp ", name, numbers[dscp]);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", text);
		any = true;
	}
	close_json_object();
	if (any)
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", " ");
}

static void show_framing(struct rtattr **tb)
{
	uint32_t cells = tb[TCA_LINKWEIR_CELLS] ? get_u32(tb[TCA_LINKWEIR_CELLS]) : LINKWEIR_NOATM;

	if (tb[TCA_LINKWEIR_OVERHEAD])
		print_color_s64(PRINT_ANY, COLOR_NONE, "overhead_bytes", "overhead %lld ", (int32_t)get_u32(tb[TCA_LINKWEIR_OVERHEAD]));
	if (tb[TCA_LINKWEIR_MPU])
		print_color_u64(PRINT_ANY, COLOR_NONE, "mpu_bytes", "mpu %llu ", get_u32(tb[TCA_LINKWEIR_MPU]));
	if (cells != LINKWEIR_NOATM)
		print_color_string(PRINT_ANY, COLOR_NONE, "cells", "%s ", cells == LINKWEIR_ATM ? "atm" : "ptm");
}

static int print_qdisc(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_LINKWEIR_MAX + 1];

	(void)qu, (void)f;
	if (!opt)
		return 0;
	parse(tb, TCA_LINKWEIR_MAX, opt);
	if (tb[TCA_LINKWEIR_CLASSES])
		show("classes", LW_NUMBER, get_u32(tb[TCA_LINKWEIR_CLASSES]));
	if (tb[TCA_LINKWEIR_LINK])
		show("link", LW_BPS, get_u64(tb[TCA_LINKWEIR_LINK]));
	if (tb[TCA_LINKWEIR_BANDWIDTH])
		show("bandwidth", LW_BPS, get_u64(tb[TCA_LINKWEIR_BANDWIDTH]));
	show_framing(tb);
	if (tb[TCA_LINKWEIR_SPLIT_GSO])
		print_color_string(PRINT_ANY, COLOR_NONE, "gso", "%s ", get_u32(tb[TCA_LINKWEIR_SPLIT_GSO]) ? "split-gso" : "no-split-gso");
	if (tb[TCA_LINKWEIR_MEMLIMIT])
		show("memlimit", LW_BYTES, get_u64(tb[TCA_LINKWEIR_MEMLIMIT]));
	if (tb[TCA_LINKWEIR_DEFAULT])
		show("default", LW_NUMBER, get_u32(tb[TCA_LINKWEIR_DEFAULT]));
	if (tb[TCA_LINKWEIR_DSCP] && RTA_PAYLOAD(tb[TCA_LINKWEIR_DSCP]) >= LINKWEIR_CODE_POINTS * sizeof(uint16_t))
		show_dscps(tb[TCA_LINKWEIR_DSCP]);
	show_params(opt, TCA_LINKWEIR_PARAM, policy->params, policy->nparams);
	return 0;
}

static int print_class(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_LINKWEIR_CLASS_MAX + 1];

	(void)qu, (void)f;
	if (!opt)
		return 0;
	parse(tb, TCA_LINKWEIR_CLASS_MAX, opt);
	if (tb[TCA_LINKWEIR_CLASS_LIMIT])
		show("limit", LW_PKTS, get_u32(tb[TCA_LINKWEIR_CLASS_LIMIT]));
	if (tb[TCA_LINKWEIR_CLASS_LIMIT_BYTES])
		show("limit_bytes", LW_BYTES, get_u64(tb[TCA_LINKWEIR_CLASS_LIMIT_BYTES]));
	if (tb[TCA_LINKWEIR_CLASS_RATE])
		show("rate", LW_BPS, get_u64(tb[TCA_LINKWEIR_CLASS_RATE]));
	show_params(opt, TCA_LINKWEIR_CLASS_PARAM, policy->qparams, policy->nqparams);
	return 0;
}

static void show_value(struct rtattr *nest)
{
	struct rtattr *tb[TCA_LINKWEIR_VALUE_MAX + 1];
	enum lw_unit unit = LW_NUMBER;
	const char *name;
	int64_t value;
	uint32_t i;

	parse(tb, TCA_LINKWEIR_VALUE_MAX, nest);
	if (!tb[TCA_LINKWEIR_VALUE_NAME] || !tb[TCA_LINKWEIR_VALUE_VALUE])
		return;
	name = RTA_DATA(tb[TCA_LINKWEIR_VALUE_NAME]);
	value = (int64_t)get_u64(tb[TCA_LINKWEIR_VALUE_VALUE]);
	for (i = 0; i < policy->nstats; i++)
		if (!strcmp(policy->stats[i].name, name))
			unit = policy->stats[i].unit;
	if (value >= 0) {
		show(name, unit, (uint64_t)value);
	} else {
		char key[64], format[64];

		snprintf(key, sizeof(key), "%s%s", name, unit_suffix(unit));
		snprintf(format, sizeof(format), "%s %%lld ", name);
		print_color_s64(PRINT_ANY, COLOR_NONE, key, format, value);
	}
}

/* packets sent by each transmission queue */
static void show_queues(const struct rtattr *attr)
{
	size_t count = RTA_PAYLOAD(attr) / sizeof(uint64_t), i;
	const char *sent = RTA_DATA(attr);
	uint64_t pkts;
	char text[32];

	open_json_array(PRINT_JSON, "sent_by_queue_pkts");
	for (i = 0; i < count; i++) {
		memcpy(&pkts, sent + i * sizeof(pkts), sizeof(pkts));
		print_color_u64(PRINT_JSON, COLOR_NONE, NULL, NULL, pkts);
		snprintf(text, sizeof(text), "%s%llup", i ? "," : "sent_by_queue ", (unsigned long long)pkts);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", text);
	}
	close_json_array(PRINT_JSON, NULL);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", " ");
}

static int print_stats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	static const struct {
		int type;
		const char *name;
	} drops[] = {
		{ TCA_LINKWEIR_STATS_DROPPED_LIMIT, "dropped_limit" },
		{ TCA_LINKWEIR_STATS_DROPPED_VICTIM, "dropped_victim" },
		{ TCA_LINKWEIR_STATS_DROPPED_EXPIRED, "dropped_expired" },
		{ TCA_LINKWEIR_STATS_DROPPED_LEAVING, "dropped_leaving" },
		{ TCA_LINKWEIR_STATS_DROPPED_SPLIT, "dropped_split" },
		{ TCA_LINKWEIR_STATS_DROPPED_FILTER, "dropped_filter" },
		{ TCA_LINKWEIR_STATS_DROPPED_RESET, "dropped_reset" },
		{ TCA_LINKWEIR_STATS_DROPPED_MEMORY, "dropped_memory" },
		{ TCA_LINKWEIR_STATS_MARKED, "marked" },
	};
	struct rtattr *tb[TCA_LINKWEIR_STATS_MAX + 1], *attr;
	int rest;
	size_t i;

	(void)qu, (void)f;
	if (!xstats)
		return 0;
	parse(tb, TCA_LINKWEIR_STATS_MAX, xstats);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", "  ");
	for (i = 0; i < sizeof(drops) / sizeof(drops[0]); i++)
		if (tb[drops[i].type])
			show(drops[i].name, LW_PKTS, get_u64(tb[drops[i].type]));
	if (tb[TCA_LINKWEIR_STATS_SENT] && tb[TCA_LINKWEIR_STATS_SOJOURN_NS] && get_u64(tb[TCA_LINKWEIR_STATS_SENT]))
		show("sojourn_mean", LW_NS,
		     get_u64(tb[TCA_LINKWEIR_STATS_SOJOURN_NS]) / get_u64(tb[TCA_LINKWEIR_STATS_SENT]));
	if (tb[TCA_LINKWEIR_STATS_SOJOURN_MAX_NS])
		show("sojourn_max", LW_NS, get_u64(tb[TCA_LINKWEIR_STATS_SOJOURN_MAX_NS]));
	if (tb[TCA_LINKWEIR_STATS_MEMORY])
		show("memory", LW_BYTES, get_u64(tb[TCA_LINKWEIR_STATS_MEMORY]));
	if (tb[TCA_LINKWEIR_STATS_QUEUES])
		show_queues(tb[TCA_LINKWEIR_STATS_QUEUES]);
	attr = RTA_DATA(xstats);
	rest = (int)RTA_PAYLOAD(xstats);
	for (; RTA_OK(attr, rest); attr = RTA_NEXT(attr, rest))
		if ((attr->rta_type & NLA_TYPE_MASK) == TCA_LINKWEIR_STATS_VALUE)
			show_value(attr);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", "\n");
	return 0;
}

__attribute__((visibility("default"))) struct qdisc_util NAMED(KIND, _qdisc_util) = {
	.id = TEXT(KIND),
	.parse_qopt = parse_qdisc,
	.print_qopt = print_qdisc,
	.print_xstats = print_stats,
	.parse_copt = parse_class,
	.print_copt = print_class,
};
