/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * port.h - the only header that depends on the environment in which the core runs.
 *
 * It defines the same names in user space, in C++ and in the Linux kernel; no other file of the core has an #ifdef for its
 * host.
 */
#ifndef LINKWEIR_PORT_H
#define LINKWEIR_PORT_H

#ifdef __KERNEL__
#include <linux/compiler.h>
#include <linux/types.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/limits.h>
#include <linux/bitops.h>
#include <linux/math64.h>
#define LW_CTZ64(x) ((uint32_t)__ffs64(x))
#define LW_CLZ64(x) (64u - (uint32_t)fls64(x))
#define LW_NOINLINE noinline
#define LW_DIV64(a, b) div64_u64((a), (b))
#define LW_MOD64(a, b) lw_kernel_mod64((a), (b))
static inline u64 lw_kernel_mod64(u64 a, u64 b)
{
	u64 rest;

	div64_u64_rem(a, b, &rest);
	return rest;
}
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif
#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define LW_CTZ64(x) ((uint32_t)__builtin_ctzll(x))
#define LW_CLZ64(x) ((uint32_t)__builtin_clzll(x))
#define LW_NOINLINE __attribute__((noinline))
#define LW_DIV64(a, b) ((a) / (b))
#define LW_MOD64(a, b) ((a) % (b))
#endif

#endif
