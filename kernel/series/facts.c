// SPDX-License-Identifier: GPL-2.0-only
/* facts.c - prints the parameters of a class of pss from the policy's own table: NAME, UNIT, MIN, MAX, DEFAULT, HELP, by tabs. */
#include <inttypes.h>
#include <stdio.h>
#include <linkweir/policy.h>

int main(void)
{
	static const char *const units[] = {
		[LW_NUMBER] = "number", [LW_BPS] = "bps", [LW_NS] = "ns", [LW_BYTES] = "bytes", [LW_BITS] = "bits",
		[LW_PKTS] = "packets", [LW_PPM] = "ppm", [LW_CHOICE] = "choice",
	};
	uint32_t i;

	for (i = 0; i < lw_policy_pss.nqparams; i++) {
		const struct lw_param *param = &lw_policy_pss.qparams[i];

		printf("%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\n", param->name, units[param->unit], param->min, param->max,
		       param->def, param->help);
	}
	return 0;
}
