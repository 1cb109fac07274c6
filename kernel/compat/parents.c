// SPDX-License-Identifier: GPL-2.0-only
/*
 * parents.c - looks for an HTB among the parents, for kernels whose HTB crashes if a child becomes empty during its dequeue.
 */
#include <linux/hashtable.h>
#include <linux/rcupdate.h>
#include <linux/rtnetlink.h>
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

/* Takes the packets out of our counters and reports them; with the root lock. */
void linkweir_compat_settle(struct linkweir_compat_late *late)
{
	struct Qdisc *sch = late->sch;
	int pkts = late->pkts, bytes = late->bytes;

	linkweir_compat_late_reset(late);
	sch->q.qlen -= pkts;
	sch->qstats.backlog -= bytes;
	qdisc_tree_reduce_backlog(sch, pkts, bytes);
}

static void report(struct work_struct *work)
{
	struct linkweir_compat_late *late = container_of(to_delayed_work(work), struct linkweir_compat_late, work);

	if (!rtnl_trylock()) {          /* destroy() waits for us and holds it */
		schedule_delayed_work(&late->work, 1);
		return;
	}
	sch_tree_lock(late->sch);
	if (late->pkts)
		linkweir_compat_settle(late);
	sch_tree_unlock(late->sch);
	rtnl_unlock();
}

void linkweir_compat_late_init(struct linkweir_compat_late *late, struct Qdisc *sch)
{
	late->sch = sch;
	linkweir_compat_late_reset(late);
	INIT_DELAYED_WORK(&late->work, report);
}

/* in dequeue */
void linkweir_compat_later(struct linkweir_compat_late *late, int pkts, int bytes)
{
	late->pkts += pkts;
	late->bytes += bytes;
	late->sch->q.qlen += pkts;
	late->sch->qstats.backlog += bytes;
	schedule_delayed_work(&late->work, 1);
}

void linkweir_compat_late_exit(struct linkweir_compat_late *late)
{
	cancel_delayed_work_sync(&late->work);
}

#endif
