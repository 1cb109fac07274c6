// SPDX-License-Identifier: GPL-2.0-only
/*
 * bounds.c - prints facts from the policies' own tables, for the suite.
 *
 *   bounds KIND...               a line for each bound of each numeric parameter: KIND SCOPE NAME VALUE TEXT..., a value just
 *                                outside the range, as tc writes it, and the text of the refusal
 *   bounds --choices KIND...     a line for each parameter that is a choice: KIND SCOPE NAME a|b|c
 *   bounds --defaults KIND...    a line for each parameter: KIND SCOPE NAME VALUE, its default as tc writes it
 *
 * SCOPE is qdisc or class. A kind has its policy's name, perhaps after lw_.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <linkweir/policy.h>

static void write_value(const struct lw_param *param, uint64_t value)
{
	if (param->unit == LW_PPM)
		printf("%" PRIu64 ".%04" PRIu64 "%%", value / 10000, value % 10000);
	else
		printf("%" PRIu64 "%s", value, param->unit == LW_NS ? "ns" : "");
}

static void line(const char *kind, const char *scope, const struct lw_param *param, uint64_t value)
{
	const char *unit = param->unit == LW_BPS ? " bit/s" : param->unit == LW_NS ? " ns" : param->unit == LW_BYTES ? " bytes" :
			   param->unit == LW_BITS ? " bit" : param->unit == LW_PKTS ? " packets" : param->unit == LW_PPM ? " ppm" : "";

	printf("%s %s %s ", kind, scope, param->name);
	write_value(param, value);
	printf(" %s%s is outside %" PRIu64 " .. %" PRIu64 "%s\n", param->name, strcmp(scope, "class") ? "" : " of class 2", param->min,
	       param->max, unit);
}

static void choices(const char *kind, const char *scope, const struct lw_param *params, uint32_t nparams)
{
	uint32_t i;

	for (i = 0; i < nparams; i++)
		if (params[i].unit == LW_CHOICE)
			printf("%s %s %s %s\n", kind, scope, params[i].name, params[i].choices);
}

static void defaults(const char *kind, const char *scope, const struct lw_param *params, uint32_t nparams)
{
	uint32_t i;

	for (i = 0; i < nparams; i++) {
		const struct lw_param *param = &params[i];
		const char *choice = param->choices;
		uint64_t skip;

		printf("%s %s %s ", kind, scope, param->name);
		if (param->def == LW_UNSET) {
			printf("unset\n");
		} else if (param->unit == LW_CHOICE) {
			for (skip = param->def; skip; skip--)
				choice = strchr(choice, '|') + 1;
			printf("%.*s\n", (int)strcspn(choice, "|"), choice);
		} else {
			write_value(param, param->def);
			printf("\n");
		}
	}
}

static void lines(const char *kind, const char *scope, const struct lw_param *params, uint32_t nparams)
{
	uint32_t i;

	for (i = 0; i < nparams; i++) {
		if (params[i].unit == LW_CHOICE)
			continue;
		if (params[i].min > 0)
			line(kind, scope, &params[i], params[i].min - 1);
		line(kind, scope, &params[i], params[i].max + 1);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	void (*show)(const char *, const char *, const struct lw_param *, uint32_t) =
		!strcmp(what, "--choices") ? choices : !strcmp(what, "--defaults") ? defaults : lines;
	uint32_t i;
	int k;

	for (k = 1; k < argc; k++) {
		for (i = 0; i < lw_npolicies; i++) {
			if (strcmp(lw_policies[i]->name, argv[k] + (strncmp(argv[k], "lw_", 3) ? 0 : 3)) != 0)
				continue;
			show(argv[k], "qdisc", lw_policies[i]->params, lw_policies[i]->nparams);
			show(argv[k], "class", lw_policies[i]->qparams, lw_policies[i]->nqparams);
		}
	}
	return 0;
}
