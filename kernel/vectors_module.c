// SPDX-License-Identifier: GPL-2.0-only
/*
 * vectors_module.c - a module of its own that replays the vectors on the policies of sch_linkweir when it is loaded: it is four times as
 * large as the qdiscs, and a router needs it once, if at all. Loading fails on a wrong answer.
 */
#include <linux/module.h>

#include "linkweir.h"

#define LINKWEIR_KIND(name) &linkweir_kind_##name,
static struct linkweir_kind *const linkweir_tested_kinds[] __initconst = {
#include "kinds.h"
};
#undef LINKWEIR_KIND

static int __init linkweir_vectors_load(void)
{
	return linkweir_selftest(linkweir_tested_kinds, ARRAY_SIZE(linkweir_tested_kinds));
}

static void __exit linkweir_vectors_unload(void)
{
}

module_init(linkweir_vectors_load);
module_exit(linkweir_vectors_unload);

MODULE_DESCRIPTION("Test of Linkweir's scheduling policies");
MODULE_VERSION(LINKWEIR_VERSION);
MODULE_LICENSE("GPL");
