// SPDX-License-Identifier: GPL-2.0-only
/*
 * parents.c - looks for an HTB among the parents, for kernels whose HTB crashes if a child becomes empty during its dequeue.
 */
#include <linux/hashtable.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "compat.h"

#ifdef LINKWEIR_HTB_FAILS_ON_EMPTY

static struct Qdisc *find(struct net_device *dev, u32 handle)
{
	struct Qdisc *q = rcu_dereference(dev->qdisc);

	if (q && q->handle == handle)
		return q;
	hash_for_each_possible_rcu(dev->qdisc_hash, q, hash, handle)
		if (q->handle == handle)
			return q;
	return NULL;
}

bool linkweir_compat_may_report(struct Qdisc *sch)
{
	const struct Qdisc *q = sch;
	bool htb = false;

	if (sch->q.qlen)
		return true;
	rcu_read_lock();
	while (!htb && q->parent && q->parent != TC_H_ROOT) {
		q = find(qdisc_dev(sch), TC_H_MAJ(q->parent));
		if (!q)
			break;
		htb = !strcmp(q->ops->id, "htb");
	}
	rcu_read_unlock();
	return !htb;
}

#endif
