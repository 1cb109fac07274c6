// SPDX-License-Identifier: GPL-2.0-only
/*
 * netlink.c - from attributes to settings and back, by the parameter tables of the policies.
 *
 * Settings are parsed into a copy, checked as a whole, and only then replace the old ones. A refusal has a text that names the
 * attribute, the class and the range, also where netlink itself refuses, whose own texts name nothing. A refusal by a rule
 * across parameters has the text of the policy's check().
 */
#include <linux/rtnetlink.h>
#include <net/netlink.h>

#include "linkweir.h"

#define LINKWEIR_MAX_LIMIT_PKTS 100000000u
#define LINKWEIR_MAX_LIMIT_BYTES 1000000000000ull
#define LINKWEIR_MIN_OVERHEAD (-64)     /* as of cake */
#define LINKWEIR_MAX_OVERHEAD 256
#define LINKWEIR_LIMIT_PKTS 1000u       /* unless a limit is given */
#define LINKWEIR_NOT_GIVEN 0u           /* limit in packets while a new qdisc is parsed */

static const struct nla_policy linkweir_attrs[TCA_LINKWEIR_MAX + 1] = {
	[TCA_LINKWEIR_CLASSES] = { .type = NLA_U32 },
	[TCA_LINKWEIR_LINK] = { .type = NLA_U64 },
	[TCA_LINKWEIR_DSCP] = NLA_POLICY_EXACT_LEN(LINKWEIR_CODE_POINTS * sizeof(u16)),
	[TCA_LINKWEIR_DEFAULT] = { .type = NLA_U32 },
	[TCA_LINKWEIR_PARAM] = { .type = NLA_NESTED },
	[TCA_LINKWEIR_CLASS] = { .type = NLA_NESTED },
	[TCA_LINKWEIR_BANDWIDTH] = { .type = NLA_U64 },
	[TCA_LINKWEIR_OVERHEAD] = { .type = NLA_S32 },
	[TCA_LINKWEIR_MPU] = { .type = NLA_U32 },
	[TCA_LINKWEIR_CELLS] = { .type = NLA_U32 },
	[TCA_LINKWEIR_SPLIT_GSO] = { .type = NLA_U32 },
	[TCA_LINKWEIR_MEMLIMIT] = { .type = NLA_U64 },
};

static const struct nla_policy linkweir_class_attrs[TCA_LINKWEIR_CLASS_MAX + 1] = {
	[TCA_LINKWEIR_CLASS_NUMBER] = { .type = NLA_U32 },
	[TCA_LINKWEIR_CLASS_LIMIT] = { .type = NLA_U32 },
	[TCA_LINKWEIR_CLASS_LIMIT_BYTES] = { .type = NLA_U64 },
	[TCA_LINKWEIR_CLASS_RATE] = { .type = NLA_U64 },
	[TCA_LINKWEIR_CLASS_PARAM] = { .type = NLA_NESTED },
};

static const struct nla_policy linkweir_param_attrs[TCA_LINKWEIR_PARAM_MAX + 1] = {
	[TCA_LINKWEIR_PARAM_NAME] = { .type = NLA_NUL_STRING, .len = LINKWEIR_NAME_SIZE - 1 },
	[TCA_LINKWEIR_PARAM_VALUE] = { .type = NLA_U64 },
};

/* What an attribute must be, for the text of a refusal: a number within a range, or what `form` says. */
struct linkweir_field {
	const char *name;
	const char *unit;
	u64 min, max;
	const char *form;
};

static const struct linkweir_field linkweir_fields[TCA_LINKWEIR_MAX + 1] = {
	[TCA_LINKWEIR_CLASSES] = { "classes", "", 1, LINKWEIR_MAX_CLASSES },
	[TCA_LINKWEIR_LINK] = { "link", " bit/s", LW_MIN_RATE_BPS, LW_MAX_RATE_BPS },
	[TCA_LINKWEIR_DSCP] = { .name = "dscp", .form = "64 u16, each the number of a class or 0" },
	[TCA_LINKWEIR_DEFAULT] = { "default", "", 1, LINKWEIR_MAX_CLASSES },
	[TCA_LINKWEIR_PARAM] = { .name = "param", .form = "a nest of a name and a value" },
	[TCA_LINKWEIR_CLASS] = { .name = "class", .form = "a nest that begins with a number" },
	[TCA_LINKWEIR_BANDWIDTH] = { "bandwidth", " bit/s", 0, LW_MAX_RATE_BPS },
	[TCA_LINKWEIR_OVERHEAD] = { .name = "overhead", .form = "s32, -64 .. 256 bytes, or raw" },
	[TCA_LINKWEIR_MPU] = { "mpu", " bytes", 0, LINKWEIR_MAX_OVERHEAD },
	[TCA_LINKWEIR_CELLS] = { "cells", "", LINKWEIR_NOATM, LINKWEIR_PTM },
	[TCA_LINKWEIR_SPLIT_GSO] = { "split_gso", "", 0, 1 },
	[TCA_LINKWEIR_MEMLIMIT] = { "memlimit", " bytes", 0, LINKWEIR_MAX_LIMIT_BYTES },
};

static const struct linkweir_field linkweir_class_fields[TCA_LINKWEIR_CLASS_MAX + 1] = {
	[TCA_LINKWEIR_CLASS_NUMBER] = { "number of a class", "", 1, LINKWEIR_MAX_CLASSES },
	[TCA_LINKWEIR_CLASS_LIMIT] = { "limit", " packets", 1, LINKWEIR_MAX_LIMIT_PKTS },
	[TCA_LINKWEIR_CLASS_LIMIT_BYTES] = { "limit_bytes", " bytes", 1, LINKWEIR_MAX_LIMIT_BYTES },
	[TCA_LINKWEIR_CLASS_RATE] = { "rate", " bit/s", 0, LW_MAX_RATE_BPS },
	[TCA_LINKWEIR_CLASS_PARAM] = { .name = "param", .form = "a nest of a name and a value" },
};

/* ---- settings ---- */

static void linkweir_default_class(const struct lw_policy *policy, struct linkweir_settings *set, u32 q)
{
	u32 i;

	for (i = 0; i < policy->nqparams; i++)
		set->qparams[q * policy->nqparams + i] = policy->qparams[i].def;
	set->classes[q].limit_pkts = LINKWEIR_NOT_GIVEN;
	set->classes[q].limit_bytes = U64_MAX;
	set->classes[q].rate_bps = LW_UNSET;
}

/* in one block of memory; with the values of `old`, or the defaults. Of a class that is gone the code points go to the default. */
static struct linkweir_settings *linkweir_settings_new(const struct lw_policy *policy, u32 nclasses,
						       const struct linkweir_settings *old)
{
	size_t nqparams = (size_t)nclasses * policy->nqparams;  /* no overflow: at most LINKWEIR_MAX_CLASSES * 16 */
	struct linkweir_settings *set;
	u32 kept = old ? min(nclasses, old->nclasses) : 0, q, i;

	set = kvzalloc(sizeof(*set) + (policy->nparams + nqparams) * sizeof(u64) + nclasses * sizeof(*set->classes),
		       GFP_KERNEL_ACCOUNT);
	if (!set)
		return ERR_PTR(-ENOMEM);
	if (old)
		*set = *old;
	set->nclasses = nclasses;
	set->params = (u64 *)(set + 1);
	set->qparams = set->params + policy->nparams;
	set->classes = (struct linkweir_class_settings *)(set->qparams + nqparams);
	if (old) {
		memcpy(set->params, old->params, policy->nparams * sizeof(u64));
		memcpy(set->qparams, old->qparams, kept * policy->nqparams * sizeof(u64));
		memcpy(set->classes, old->classes, kept * sizeof(*set->classes));
		set->default_class = min(old->default_class, nclasses - 1);
		for (i = 0; i < LINKWEIR_CODE_POINTS; i++)
			if (set->number_of[i] > nclasses)
				set->number_of[i] = 0;
	} else {
		set->framing.overhead = LINKWEIR_RAW;
		set->default_class = nclasses - 1;
		for (i = 0; i < policy->nparams; i++)
			set->params[i] = policy->params[i].def;
	}
	for (q = kept; q < nclasses; q++)
		linkweir_default_class(policy, set, q);
	return set;
}

static const char *linkweir_unit(const struct lw_param *param)
{
	switch (param->unit) {
	case LW_BPS:
		return " bit/s";
	case LW_NS:
		return " ns";
	case LW_BYTES:
		return " bytes";
	case LW_BITS:
		return " bit";
	case LW_PKTS:
		return " packets";
	case LW_PPM:
		return " ppm";
	default:
		return "";
	}
}

/* ---- from attributes ---- */

/* " of class N" */
struct linkweir_owner {
	char text[24];
};

static struct linkweir_owner linkweir_owner(u32 number)
{
	struct linkweir_owner owner = {};

	if (number)
		snprintf(owner.text, sizeof(owner.text), " of class %u", number);
	return owner;
}

static int linkweir_in_range(u64 value, const struct linkweir_field *field, u32 number, const struct nlattr *attr,
			     struct netlink_ext_ack *extack)
{
	if (value >= field->min && value <= field->max)
		return 0;
	NL_SET_BAD_ATTR(extack, attr);
	linkweir_refuse(extack, "%s%s is outside %llu .. %llu%s", field->name, linkweir_owner(number).text, field->min, field->max,
			field->unit);
	return -ERANGE;
}

/* Refuses for what nla_parse_nested() found wrong in the nest `name`; `attr`: where, or NULL if the attribute is cut off. */
static void linkweir_malformed(const struct nlattr *attr, int max, const struct nlattr *nest, const char *name,
			       const struct nla_policy *policy, const struct linkweir_field *fields, u32 number,
			       struct netlink_ext_ack *extack)
{
	const struct linkweir_owner of = linkweir_owner(number);
	const struct linkweir_field *field = NULL;
	int type = attr ? nla_type(attr) : 0;

	NL_SET_BAD_ATTR(extack, attr ? attr : nest);
	/* the nest itself is reported if its flag is missing */
	if (attr == nest)
		linkweir_refuse(extack, "%s%s must be a nest (NLA_F_NESTED)", name, of.text);
	else if (!attr)
		linkweir_refuse(extack, "%s%s: the last attribute is cut off", name, of.text);
	else if (type > max || !fields[type].name)
		linkweir_refuse(extack, "%s%s: there is no attribute %u", name, of.text, type);
	else
		field = &fields[type];
	if (field && field->form)
		linkweir_refuse(extack, "%s%s must be %s", field->name, of.text, field->form);
	else if (field)
		linkweir_refuse(extack, "%s%s must be %s, %llu .. %llu%s", field->name, of.text,
				policy[type].type == NLA_U32 ? "u32" : "u64", field->min, field->max, field->unit);
}

static int linkweir_parse_nest(struct nlattr **tb, int max, const struct nlattr *nest, const char *name,
			       const struct nla_policy *policy, const struct linkweir_field *fields, u32 number,
			       struct netlink_ext_ack *extack)
{
	struct netlink_ext_ack found = {};      /* of netlink's refusal only the place is used, not the text */
	int err = nla_parse_nested(tb, max, nest, policy, &found);

	if (err)
		linkweir_malformed(found.bad_attr, max, nest, name, policy, fields, number, extack);
	return err;
}

static const struct lw_param *linkweir_param_of(const struct nlattr *name, const struct lw_param *params, u32 nparams)
{
	u32 i;

	for (i = 0; name && i < nparams; i++)
		if (!nla_strcmp(name, params[i].name))
			return &params[i];
	return NULL;
}

static struct linkweir_field linkweir_param_field(const struct lw_param *param)
{
	if (!param)
		return (struct linkweir_field){ "value of a parameter", "", 0, U64_MAX };
	return (struct linkweir_field){ param->name, linkweir_unit(param), param->min, param->max };
}

/* Parses one parameter into its row; `number`: of the class, or 0. `made`: the qdisc exists, so LW_AT_INIT parameters are fixed. */
static int linkweir_parse_param(const struct lw_policy *policy, const struct lw_param *params, u32 nparams, u64 *row,
				u32 number, bool made, struct nlattr *attr, struct netlink_ext_ack *extack)
{
	struct linkweir_field fields[TCA_LINKWEIR_PARAM_MAX + 1] = {
		[TCA_LINKWEIR_PARAM_NAME] = { .name = "name of a parameter", .form = "a string of 1 .. 31 bytes and 0" },
	};
	struct nlattr *tb[TCA_LINKWEIR_PARAM_MAX + 1], *name = nla_find_nested(attr, TCA_LINKWEIR_PARAM_NAME);
	const struct lw_param *param = linkweir_param_of(name, params, nparams);
	u64 value;
	int err;

	/* the name was looked up before the nest is parsed, so that a refusal of the value can give its range */
	fields[TCA_LINKWEIR_PARAM_VALUE] = linkweir_param_field(param);
	err = linkweir_parse_nest(tb, TCA_LINKWEIR_PARAM_MAX, attr, "param", linkweir_param_attrs, fields, number, extack);
	if (err)
		return err;
	if (!tb[TCA_LINKWEIR_PARAM_NAME] || !tb[TCA_LINKWEIR_PARAM_VALUE]) {
		NL_SET_BAD_ATTR(extack, attr);
		linkweir_refuse(extack, "param%s needs a name and a value", linkweir_owner(number).text);
		return -EINVAL;
	}
	param = linkweir_param_of(tb[TCA_LINKWEIR_PARAM_NAME], params, nparams);
	if (!param) {
		NL_SET_BAD_ATTR(extack, attr);
		linkweir_refuse(extack, "policy %s of this module has no %s param of that name", policy->name, number ? "class" : "qdisc");
		return -EINVAL;
	}
	value = nla_get_u64(tb[TCA_LINKWEIR_PARAM_VALUE]);
	if (value != LW_UNSET || param->def != LW_UNSET) {
		struct linkweir_field field = linkweir_param_field(param);

		err = linkweir_in_range(value, &field, number, tb[TCA_LINKWEIR_PARAM_VALUE], extack);
		if (err)
			return err;
	}
	if (made && (param->flags & LW_AT_INIT) && row[param - params] != value) {
		NL_SET_BAD_ATTR(extack, attr);
		linkweir_refuse(extack, "%s is fixed when the qdisc is made: delete it and add it again", param->name);
		return -EOPNOTSUPP;
	}
	row[param - params] = value;
	return 0;
}

static int linkweir_parse_class_attrs(const struct lw_policy *policy, struct linkweir_settings *set, u32 q, bool made,
				      struct nlattr *nest, struct nlattr **tb, struct netlink_ext_ack *extack)
{
	const struct linkweir_field *fields = linkweir_class_fields;
	struct linkweir_class_settings *class = &set->classes[q];
	struct nlattr *attr;
	int err = 0, rest;

	attr = tb[TCA_LINKWEIR_CLASS_LIMIT_BYTES];
	if (attr) {
		class->limit_bytes = nla_get_u64(attr);
		err = linkweir_in_range(class->limit_bytes, &fields[TCA_LINKWEIR_CLASS_LIMIT_BYTES], q + 1, attr, extack);
	}
	attr = tb[TCA_LINKWEIR_CLASS_LIMIT];
	if (!err && attr) {
		class->limit_pkts = nla_get_u32(attr);
		err = linkweir_in_range(class->limit_pkts, &fields[TCA_LINKWEIR_CLASS_LIMIT], q + 1, attr, extack);
	}
	attr = tb[TCA_LINKWEIR_CLASS_RATE];
	if (!err && attr) {
		class->rate_bps = nla_get_u64(attr);
		if (class->rate_bps != LW_UNSET)
			err = linkweir_in_range(class->rate_bps, &fields[TCA_LINKWEIR_CLASS_RATE], q + 1, attr, extack);
	}
	nla_for_each_nested(attr, nest, rest) {
		if (err)
			break;
		if (nla_type(attr) == TCA_LINKWEIR_CLASS_PARAM)
			err = linkweir_parse_param(policy, policy->qparams, policy->nqparams,
						   set->qparams + q * policy->nqparams, q + 1, made, attr, extack);
	}
	return err;
}

static int linkweir_parse_class_nest(const struct lw_policy *policy, struct linkweir_settings *set, bool made,
				     struct nlattr *nest, struct netlink_ext_ack *extack)
{
	/* read before the nest is parsed, so that a refusal can name the class; hence the check of its length */
	const struct nlattr *first = nla_find_nested(nest, TCA_LINKWEIR_CLASS_NUMBER);
	u32 number = first && nla_len(first) == sizeof(u32) ? nla_get_u32(first) : 0;
	struct linkweir_field field = linkweir_class_fields[TCA_LINKWEIR_CLASS_NUMBER];
	struct nlattr *tb[TCA_LINKWEIR_CLASS_MAX + 1];
	int err = linkweir_parse_nest(tb, TCA_LINKWEIR_CLASS_MAX, nest, number ? "options" : "class", linkweir_class_attrs,
				      linkweir_class_fields, number, extack);

	if (err)
		return err;
	field.max = set->nclasses;
	number = tb[TCA_LINKWEIR_CLASS_NUMBER] ? nla_get_u32(tb[TCA_LINKWEIR_CLASS_NUMBER]) : 0;
	err = linkweir_in_range(number, &field, 0, tb[TCA_LINKWEIR_CLASS_NUMBER] ? tb[TCA_LINKWEIR_CLASS_NUMBER] : nest, extack);
	return err ? err : linkweir_parse_class_attrs(policy, set, number - 1, made, nest, tb, extack);
}

static int linkweir_parse_dscp(struct linkweir_settings *set, const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	const u16 *numbers = nla_data(attr);
	u32 i;

	for (i = 0; i < LINKWEIR_CODE_POINTS; i++) {
		if (numbers[i] == LINKWEIR_KEEP)
			continue;
		if (numbers[i] > set->nclasses) {
			NL_SET_BAD_ATTR(extack, attr);
			linkweir_refuse(extack, "dscp %u: its class is outside 0 .. %u", i, set->nclasses);
			return -ERANGE;
		}
		set->number_of[i] = numbers[i];
	}
	return 0;
}

/*
 * Refuses with the text of check(), after the name of the parameter unless the text has it. The advice after ":" is left out if
 * the whole would be longer than an acknowledgement may be.
 */
static void linkweir_refuse_rule(const struct lw_fault *fault, struct netlink_ext_ack *extack)
{
	bool named = strstr(fault->what, fault->param);
	char place[LINKWEIR_NAME_SIZE + 24] = "";
	size_t room, length = strlen(fault->what);
	const char *cure;

	if (fault->queue == LW_NONE && !named)
		snprintf(place, sizeof(place), "%s: ", fault->param);
	else if (fault->queue != LW_NONE)
		snprintf(place, sizeof(place), "%s%sclass %u: ", named ? "" : fault->param, named ? "" : " of ", fault->queue + 1);
	room = LINKWEIR_MAX_REFUSAL - strlen(place);
	cure = strrchr(fault->what, ':');
	if (length > room && cure)
		length = cure - fault->what;
	linkweir_refuse(extack, "%s%.*s", place, (int)min(length, room), fault->what);
}

static int linkweir_check(struct linkweir_sched *s, const struct linkweir_settings *set, struct netlink_ext_ack *extack)
{
	struct lw_fault fault = {};
	/* not a copy of s->view: packets change that at the same time */
	struct lw_view view = { .link_bps = max(s->best_bps, set->link_bps), .nqueues = set->nclasses };

	if (!s->policy->check || s->policy->check(&view, set->params, set->qparams, &fault))
		return 0;
	linkweir_refuse_rule(&fault, extack);
	return -EINVAL;
}

/* The bandwidth is the capacity that the policy counts with; a `link` that contradicts it is refused. */
static int linkweir_parse_bandwidth(struct linkweir_settings *set, struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct nlattr *attr = tb[TCA_LINKWEIR_BANDWIDTH];
	int err;

	if (attr) {
		set->bandwidth_bps = nla_get_u64(attr);
		err = linkweir_in_range(set->bandwidth_bps, &linkweir_fields[TCA_LINKWEIR_BANDWIDTH], 0, attr, extack);
		if (err)
			return err;
	}
	if (!set->bandwidth_bps)
		return 0;
	if (tb[TCA_LINKWEIR_LINK] && set->link_bps != set->bandwidth_bps) {
		NL_SET_BAD_ATTR(extack, tb[TCA_LINKWEIR_LINK]);
		linkweir_refuse(extack, "link must be the bandwidth: leave it out");
		return -EINVAL;
	}
	set->link_bps = set->bandwidth_bps;
	return 0;
}

static int linkweir_parse_framing(struct linkweir_framing *framing, struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct nlattr *attr = tb[TCA_LINKWEIR_OVERHEAD];
	int err = 0;

	if (attr) {
		framing->overhead = nla_get_s32(attr);
		if (framing->overhead != LINKWEIR_RAW &&
		    (framing->overhead < LINKWEIR_MIN_OVERHEAD || framing->overhead > LINKWEIR_MAX_OVERHEAD)) {
			NL_SET_BAD_ATTR(extack, attr);
			linkweir_refuse(extack, "overhead is outside %d .. %d bytes", LINKWEIR_MIN_OVERHEAD, LINKWEIR_MAX_OVERHEAD);
			return -ERANGE;
		}
	}
	attr = tb[TCA_LINKWEIR_MPU];
	if (attr) {
		framing->mpu = nla_get_u32(attr);
		err = linkweir_in_range(framing->mpu, &linkweir_fields[TCA_LINKWEIR_MPU], 0, attr, extack);
	}
	attr = tb[TCA_LINKWEIR_CELLS];
	if (!err && attr) {
		framing->cells = nla_get_u32(attr);
		err = linkweir_in_range(framing->cells, &linkweir_fields[TCA_LINKWEIR_CELLS], 0, attr, extack);
	}
	return err;
}

static int linkweir_parse_others(struct linkweir_settings *set, struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct nlattr *attr = tb[TCA_LINKWEIR_SPLIT_GSO];
	int err = 0;

	if (attr) {
		err = linkweir_in_range(nla_get_u32(attr), &linkweir_fields[TCA_LINKWEIR_SPLIT_GSO], 0, attr, extack);
		set->whole = !nla_get_u32(attr);
	}
	attr = tb[TCA_LINKWEIR_MEMLIMIT];
	if (!err && attr) {
		set->memlimit_bytes = nla_get_u64(attr);
		err = linkweir_in_range(set->memlimit_bytes, &linkweir_fields[TCA_LINKWEIR_MEMLIMIT], 0, attr, extack);
	}
	return err;
}

/* parses every attribute of a qdisc into `set`, and checks the result */
static int linkweir_parse_attrs(struct linkweir_sched *s, struct linkweir_settings *set, bool made, struct nlattr *opt,
				struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct linkweir_field field = linkweir_fields[TCA_LINKWEIR_DEFAULT];
	struct nlattr *attr;
	int err = 0, rest;

	attr = tb[TCA_LINKWEIR_LINK];
	if (attr) {
		set->link_bps = nla_get_u64(attr);
		err = linkweir_in_range(set->link_bps, &linkweir_fields[TCA_LINKWEIR_LINK], 0, attr, extack);
	}
	if (!err)
		err = linkweir_parse_bandwidth(set, tb, extack);
	if (!err)
		err = linkweir_parse_framing(&set->framing, tb, extack);
	if (!err)
		err = linkweir_parse_others(set, tb, extack);
	attr = tb[TCA_LINKWEIR_DEFAULT];
	if (!err && attr) {
		field.max = set->nclasses;
		set->default_class = nla_get_u32(attr);
		err = linkweir_in_range(set->default_class, &field, 0, attr, extack);
		set->default_class--;           /* wraps if it was 0, which has been refused */
	}
	if (!err && tb[TCA_LINKWEIR_DSCP])
		err = linkweir_parse_dscp(set, tb[TCA_LINKWEIR_DSCP], extack);
	/* in the order of the request, as of two attributes with one name the last counts; tb[] has only one of each type */
	nla_for_each_nested(attr, opt, rest) {
		if (err)
			break;
		if (nla_type(attr) == TCA_LINKWEIR_PARAM)
			err = linkweir_parse_param(s->policy, s->policy->params, s->policy->nparams, set->params, 0, made, attr,
						   extack);
		else if (nla_type(attr) == TCA_LINKWEIR_CLASS)
			err = linkweir_parse_class_nest(s->policy, set, made, attr, extack);
	}
	return err ? err : linkweir_check(s, set, extack);
}

/* The class of each code point. Classes without a limit in packets: no such limit if their bytes are limited, else the default. */
static void linkweir_complete(struct linkweir_settings *set)
{
	u32 q, i;

	for (i = 0; i < LINKWEIR_CODE_POINTS; i++)
		set->class_of[i] = set->number_of[i] ? set->number_of[i] - 1 : set->default_class;
	for (q = 0; q < set->nclasses; q++)
		if (set->classes[q].limit_pkts == LINKWEIR_NOT_GIVEN)
			set->classes[q].limit_pkts = set->classes[q].limit_bytes != U64_MAX ? U32_MAX : LINKWEIR_LIMIT_PKTS;
}

/* the settings of a new qdisc, or of an existing one after a change */
struct linkweir_settings *linkweir_parse(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct linkweir_settings *old = s->settings;
	struct linkweir_field field = linkweir_fields[TCA_LINKWEIR_CLASSES];
	struct nlattr *tb[TCA_LINKWEIR_MAX + 1] = {};
	struct linkweir_settings *set;
	u32 nclasses = old ? old->nclasses : 0;
	int err = opt ? linkweir_parse_nest(tb, TCA_LINKWEIR_MAX, opt, "options", linkweir_attrs, linkweir_fields, 0, extack) : 0;

	if (err)
		return ERR_PTR(err);
	field.max = min_t(u64, field.max, s->policy->max_queues);
	if (!old && !tb[TCA_LINKWEIR_CLASSES]) {
		linkweir_refuse(extack, "classes is missing: give 1 .. %llu", field.max);
		return ERR_PTR(-EINVAL);
	}
	if (tb[TCA_LINKWEIR_CLASSES])
		nclasses = nla_get_u32(tb[TCA_LINKWEIR_CLASSES]);
	err = linkweir_in_range(nclasses, &field, 0, tb[TCA_LINKWEIR_CLASSES], extack);
	if (err)
		return ERR_PTR(err);
	set = linkweir_settings_new(s->policy, nclasses, old);
	if (IS_ERR(set))
		return set;
	/* with another number of classes the policy begins, so nothing is fixed */
	err = opt ? linkweir_parse_attrs(s, set, old && nclasses == old->nclasses, opt, tb, extack) : 0;
	linkweir_complete(set);
	if (!err)
		return set;
	kvfree(set);
	return ERR_PTR(err);
}

/* the settings after a change of one class */
struct linkweir_settings *linkweir_parse_class(struct Qdisc *sch, u32 q, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct nlattr *tb[TCA_LINKWEIR_CLASS_MAX + 1];
	struct linkweir_settings *set;
	int err;

	if (!opt) {
		linkweir_refuse(extack, "options are missing: nothing to change");
		return ERR_PTR(-EINVAL);
	}
	err = linkweir_parse_nest(tb, TCA_LINKWEIR_CLASS_MAX, opt, "options", linkweir_class_attrs, linkweir_class_fields, q + 1,
				  extack);
	if (err)
		return ERR_PTR(err);
	if (tb[TCA_LINKWEIR_CLASS_NUMBER] && nla_get_u32(tb[TCA_LINKWEIR_CLASS_NUMBER]) != q + 1) {
		NL_SET_BAD_ATTR(extack, tb[TCA_LINKWEIR_CLASS_NUMBER]);
		linkweir_refuse(extack, "number of a class must be %u here: leave it out", q + 1);
		return ERR_PTR(-EINVAL);
	}
	set = linkweir_settings_new(s->policy, s->settings->nclasses, s->settings);
	if (IS_ERR(set))
		return set;
	err = linkweir_parse_class_attrs(s->policy, set, q, true, opt, tb, extack);
	if (!err)
		err = linkweir_check(s, set, extack);
	if (!err)
		return set;
	kvfree(set);
	return ERR_PTR(err);
}

/* ---- to attributes ---- */

static int linkweir_put_params(struct sk_buff *skb, int type, const struct lw_param *params, u32 nparams, const u64 *row)
{
	u32 i;

	for (i = 0; i < nparams; i++) {
		struct nlattr *nest = nla_nest_start(skb, type);

		if (!nest || nla_put_string(skb, TCA_LINKWEIR_PARAM_NAME, params[i].name) ||
		    nla_put_u64_64bit(skb, TCA_LINKWEIR_PARAM_VALUE, row[i], TCA_LINKWEIR_PARAM_PAD))
			return -EMSGSIZE;
		nla_nest_end(skb, nest);
	}
	return 0;
}

int linkweir_put(struct Qdisc *sch, struct sk_buff *skb)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct linkweir_settings *set = s->settings;
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);

	if (!nest || nla_put_u32(skb, TCA_LINKWEIR_CLASSES, set->nclasses) ||
	    (set->link_bps && nla_put_u64_64bit(skb, TCA_LINKWEIR_LINK, set->link_bps, TCA_LINKWEIR_PAD)) ||
	    (set->bandwidth_bps && nla_put_u64_64bit(skb, TCA_LINKWEIR_BANDWIDTH, set->bandwidth_bps, TCA_LINKWEIR_PAD)) ||
	    (set->framing.overhead != LINKWEIR_RAW && nla_put_s32(skb, TCA_LINKWEIR_OVERHEAD, set->framing.overhead)) ||
	    (set->framing.mpu && nla_put_u32(skb, TCA_LINKWEIR_MPU, set->framing.mpu)) ||
	    (set->framing.cells != LINKWEIR_NOATM && nla_put_u32(skb, TCA_LINKWEIR_CELLS, set->framing.cells)) ||
	    (set->whole && nla_put_u32(skb, TCA_LINKWEIR_SPLIT_GSO, 0)) ||
	    (set->memlimit_bytes && nla_put_u64_64bit(skb, TCA_LINKWEIR_MEMLIMIT, set->memlimit_bytes, TCA_LINKWEIR_PAD)) ||
	    nla_put_u32(skb, TCA_LINKWEIR_DEFAULT, set->default_class + 1) ||
	    nla_put(skb, TCA_LINKWEIR_DSCP, sizeof(set->number_of), set->number_of) ||
	    linkweir_put_params(skb, TCA_LINKWEIR_PARAM, s->policy->params, s->policy->nparams, set->params)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

int linkweir_put_class(struct Qdisc *sch, u32 q, struct sk_buff *skb)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct lw_policy *policy = s->policy;
	const struct linkweir_class_settings *class = &s->settings->classes[q];
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);

	if (!nest ||
	    (class->limit_pkts != U32_MAX && nla_put_u32(skb, TCA_LINKWEIR_CLASS_LIMIT, class->limit_pkts)) ||
	    (class->limit_bytes != U64_MAX && nla_put_u64_64bit(skb, TCA_LINKWEIR_CLASS_LIMIT_BYTES, class->limit_bytes,
								TCA_LINKWEIR_CLASS_PAD)) ||
	    (class->rate_bps != LW_UNSET && nla_put_u64_64bit(skb, TCA_LINKWEIR_CLASS_RATE, class->rate_bps,
							      TCA_LINKWEIR_CLASS_PAD)) ||
	    linkweir_put_params(skb, TCA_LINKWEIR_CLASS_PARAM, policy->qparams, policy->nqparams,
				s->settings->qparams + q * policy->nqparams)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

/* `memory_bytes`: 0 if not counted; `queue_pkts`: sent by each of `nqueues` transmission queues; `values`: of the policy, or NULL */
int linkweir_put_stats(const struct lw_policy *policy, const struct linkweir_counters *counters, u32 nreasons, u64 sent_pkts,
		       u64 memory_bytes, const u64 *queue_pkts, u32 nqueues, const s64 *values, struct gnet_dump *d)
{
	static const int dropped[LINKWEIR_REASONS] = {
		[LINKWEIR_LIMIT] = TCA_LINKWEIR_STATS_DROPPED_LIMIT,
		[LINKWEIR_VICTIM] = TCA_LINKWEIR_STATS_DROPPED_VICTIM,
		[LINKWEIR_EXPIRED] = TCA_LINKWEIR_STATS_DROPPED_EXPIRED,
		[LINKWEIR_LEAVING] = TCA_LINKWEIR_STATS_DROPPED_LEAVING,
		[LINKWEIR_SPLIT] = TCA_LINKWEIR_STATS_DROPPED_SPLIT,
		[LINKWEIR_RESET] = TCA_LINKWEIR_STATS_DROPPED_RESET,
		[LINKWEIR_MEMORY] = TCA_LINKWEIR_STATS_DROPPED_MEMORY,
		[LINKWEIR_FILTER] = TCA_LINKWEIR_STATS_DROPPED_FILTER,
	};
	const struct {
		int type;
		u64 value;
	} others[] = {
		{ TCA_LINKWEIR_STATS_MARKED, counters->marked_pkts },
		{ TCA_LINKWEIR_STATS_SENT, sent_pkts },
		{ TCA_LINKWEIR_STATS_SOJOURN_NS, counters->sojourn_ns },
		{ TCA_LINKWEIR_STATS_SOJOURN_MAX_NS, counters->sojourn_max_ns },
	};
	struct nlattr *nest = nla_nest_start(d->skb, TCA_STATS_APP);
	u32 i;

	if (!nest)
		return -1;
	for (i = 0; i < nreasons; i++)
		if (nla_put_u64_64bit(d->skb, dropped[i], counters->dropped_pkts[i], TCA_LINKWEIR_STATS_PAD))
			goto full;
	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (nla_put_u64_64bit(d->skb, others[i].type, others[i].value, TCA_LINKWEIR_STATS_PAD))
			goto full;
	if (memory_bytes && nla_put_u64_64bit(d->skb, TCA_LINKWEIR_STATS_MEMORY, memory_bytes, TCA_LINKWEIR_STATS_PAD))
		goto full;
	if (nqueues && nla_put_64bit(d->skb, TCA_LINKWEIR_STATS_QUEUES, nqueues * sizeof(u64), queue_pkts, TCA_LINKWEIR_STATS_PAD))
		goto full;
	for (i = 0; values && i < policy->nstats; i++) {
		struct nlattr *value = nla_nest_start(d->skb, TCA_LINKWEIR_STATS_VALUE);

		if (!value || nla_put_string(d->skb, TCA_LINKWEIR_VALUE_NAME, policy->stats[i].name) ||
		    nla_put_s64(d->skb, TCA_LINKWEIR_VALUE_VALUE, values[i], TCA_LINKWEIR_VALUE_PAD))
			goto full;
		nla_nest_end(d->skb, value);
	}
	nla_nest_end(d->skb, nest);
	return 0;
full:
	nla_nest_cancel(d->skb, nest);
	return -1;
}
