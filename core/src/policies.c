/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* policies.c - the registry, read from policies.def. */
#include <linkweir/policy.h>

#define LW_POLICY(name) &lw_policy_##name,
const struct lw_policy *const lw_policies[] = {
#include <linkweir/policies.def>
};
#undef LW_POLICY

const uint32_t lw_npolicies = sizeof(lw_policies) / sizeof(lw_policies[0]);
