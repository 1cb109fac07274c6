// SPDX-License-Identifier: GPL-2.0-only
/*
 * module.c - the module: registers a qdisc for each kind (qdisc.c), and those for devices with many transmission queues (mq.c).
 */
#include <linux/module.h>

#include "linkweir.h"

#define LINKWEIR_KIND(name) &linkweir_kind_##name,
static struct linkweir_kind *const linkweir_kinds[] = {
#include "kinds.h"
};
#undef LINKWEIR_KIND

#define LINKWEIR_KIND(name) &linkweir_mq_kind_##name,
static struct linkweir_mq_kind *const linkweir_mq_kinds[] = {
#include "mq_kinds.h"
};
#undef LINKWEIR_KIND

static void linkweir_unregister(u32 n, u32 nmq)
{
	while (nmq > 0)
		unregister_qdisc(&linkweir_mq_kinds[--nmq]->ops);
	while (n > 0)
		unregister_qdisc(&linkweir_kinds[--n]->ops);
}

static int __init linkweir_load(void)
{
	u32 i, nmq = 0;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(linkweir_kinds); i++)
		if (linkweir_kinds[i]->policy->abi != LW_ABI || linkweir_kinds[i]->policy->nstats > LINKWEIR_MAX_STATS)
			return -EINVAL;
	for (i = 0; !err && i < ARRAY_SIZE(linkweir_kinds); i++) {
		linkweir_prepare(linkweir_kinds[i]);
		err = register_qdisc(&linkweir_kinds[i]->ops);
		if (err)
			break;
	}
	while (!err && nmq < ARRAY_SIZE(linkweir_mq_kinds)) {
		err = linkweir_mq_prepare(linkweir_mq_kinds[nmq]);
		if (!err)
			err = register_qdisc(&linkweir_mq_kinds[nmq]->ops);
		nmq += !err;
	}
	if (err) {
		linkweir_unregister(i, nmq);
		linkweir_compat_exit();
	}
	return err;
}

static void __exit linkweir_unload(void)
{
	linkweir_unregister(ARRAY_SIZE(linkweir_kinds), ARRAY_SIZE(linkweir_mq_kinds));
	linkweir_compat_exit();
}

module_init(linkweir_load);
module_exit(linkweir_unload);

/* exported for linkweir_vectors */
#define LINKWEIR_KIND(name) MODULE_ALIAS_NET_SCH(#name); MODULE_ALIAS("sch_" #name); EXPORT_SYMBOL_GPL(linkweir_kind_##name);
#include "kinds.h"
#undef LINKWEIR_KIND

#define LINKWEIR_KIND(name) MODULE_ALIAS_NET_SCH(#name "_mq"); MODULE_ALIAS("sch_" #name "_mq");
#include "mq_kinds.h"
#undef LINKWEIR_KIND

MODULE_DESCRIPTION("Linkweir's scheduling policies as queueing disciplines");
MODULE_VERSION(LINKWEIR_VERSION);
MODULE_LICENSE("GPL");
