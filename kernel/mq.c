// SPDX-License-Identifier: GPL-2.0-only
/*
 * mq.c - the kinds NAME_mq, for the root of a device with many transmission queues: one configuration, and one scheduler.
 *
 * The root is the qdisc that tc shows and changes. Each transmission queue gets a qdisc of its own, as below mq, so that
 * processors can hand packets to the driver at the same time; tc does not show these. mq_plane.h is the packet path.
 *
 * While packets wait, a transmission queue must be about to ask the policy: the one with the next packet is running, scheduled, stopped
 * by its driver (which schedules it later), or has a timer for when the link is free. A queue that asks and learns that another queue
 * is next schedules that one.
 *
 * The device drops its references to the root and to the queues in any order. Each queue has a reference to the root, so that
 * the root is the last to go.
 */
#include <linux/rtnetlink.h>

#include "linkweir.h"

/* ---- the qdisc of a transmission queue ---- */

static int linkweir_mq_queue_init(struct Qdisc *queue, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct linkweir_mq_queue *mine = qdisc_priv(queue);

	qdisc_watchdog_init(&mine->watchdog, queue);
	return 0;
}

/* The packets of this queue are dropped; the others' may now be next. */
static void linkweir_mq_queue_reset(struct Qdisc *queue)
{
	struct linkweir_mq_queue *mine = qdisc_priv(queue);
	struct Qdisc *sch = mine->root;
	struct linkweir_mq *mq;

	qdisc_watchdog_cancel(&mine->watchdog);
	if (!sch || !READ_ONCE(sch->q.qlen))
		return;
	mq = qdisc_priv(sch);
	spin_lock_nested(qdisc_lock(sch), SINGLE_DEPTH_NESTING);
	linkweir_drop_waiting(sch, mine->index);
	linkweir_rest_pace(&mq->sched.pace);
	linkweir_mq_wake(sch, mq->sched.view.now_ns);
	spin_unlock(qdisc_lock(sch));
}

static void linkweir_mq_queue_destroy(struct Qdisc *queue)
{
	struct linkweir_mq_queue *mine = qdisc_priv(queue);
	struct Qdisc *sch = mine->root;
	struct linkweir_mq *mq;

	qdisc_watchdog_cancel(&mine->watchdog);
	if (!sch)
		return;
	mq = qdisc_priv(sch);
	mq->queues[mine->index] = NULL;
	if (mq->attached)
		qdisc_put(sch);
}

/* ---- the root ---- */

static int linkweir_mq_check(struct Qdisc *sch, struct netlink_ext_ack *extack)
{
	const char *why = NULL;

	if (sch->parent != TC_H_ROOT)
		why = "is the root of a device: below another qdisc use";
	else if (!netif_is_multiqueue(qdisc_dev(sch)))
		why = "is for many transmission queues: for one use";
	if (why)
		linkweir_refuse(extack, "%s %s %.*s", sch->ops->id, why, (int)(strlen(sch->ops->id) - strlen("_mq")), sch->ops->id);
	else if (rcu_access_pointer(sch->stab))
		linkweir_refuse(extack, "stab is not used for many transmission queues: use overhead, mpu or atm");
	else
		return 0;
	return -EOPNOTSUPP;
}

static int linkweir_mq_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct linkweir_mq_kind *kind = container_of(sch->ops, struct linkweir_mq_kind, ops);
	struct linkweir_mq *mq = qdisc_priv(sch);
	struct linkweir_mq_queue *its;
	struct Qdisc *queue;
	int err;
	u32 i;

	err = linkweir_make(sch, kind->policy, opt, extack);            /* first, as destroy needs what it initialises */
	if (!err)
		err = linkweir_mq_check(sch, extack);
	if (err)
		return err;
	sch->flags |= TCQ_F_MQROOT;
	mq->queues = kcalloc(qdisc_dev(sch)->num_tx_queues, sizeof(*mq->queues), GFP_KERNEL);
	if (!mq->queues)
		return -ENOMEM;
	mq->nqueues = qdisc_dev(sch)->num_tx_queues;
	for (i = 0; i < mq->nqueues; i++) {
		queue = qdisc_create_dflt(linkweir_mq_txq(sch, i), &kind->queue_ops, TC_H_MAKE(sch->handle, i + 1), extack);
		if (!queue)
			return -ENOMEM;
		queue->flags |= TCQ_F_ONETXQUEUE | TCQ_F_NOPARENT;
		its = qdisc_priv(queue);
		its->root = sch;
		its->index = i;
		mq->queues[i] = queue;
	}
	return 0;
}

/* The device takes the queues over; it is not running. */
static void linkweir_mq_attach(struct Qdisc *sch)
{
	struct linkweir_mq *mq = qdisc_priv(sch);
	u32 i;

	if (rcu_access_pointer(sch->stab))      /* older kernels set it after init() */
		netdev_warn(qdisc_dev(sch), "%s does not use the size table (stab)\n", sch->ops->id);
	for (i = 0; i < mq->nqueues; i++) {
		qdisc_refcount_inc(sch);
		qdisc_put(dev_graft_qdisc(linkweir_mq_txq(sch, i), mq->queues[i]));
	}
	mq->attached = true;
}

static void linkweir_mq_destroy(struct Qdisc *sch)
{
	struct linkweir_mq *mq = qdisc_priv(sch);
	u32 i;

	for (i = 0; i < mq->nqueues; i++)               /* none, if they were attached */
		qdisc_put(mq->queues[i]);
	kfree(mq->queues);
	linkweir_destroy(sch);
}

/* Before it is registered. */
int linkweir_mq_prepare(struct linkweir_mq_kind *kind)
{
	if (kind->policy->leaving)              /* the packet path does not ask for verdicts */
		return -EINVAL;
	kind->ops = linkweir_ops;
	kind->ops.priv_size = sizeof(struct linkweir_mq);
	kind->ops.peek = NULL;
	kind->ops.init = linkweir_mq_init;
	kind->ops.destroy = linkweir_mq_destroy;
	kind->ops.attach = linkweir_mq_attach;
	snprintf(kind->ops.id, sizeof(kind->ops.id), "%s_mq", kind->policy->name);
	kind->queue_ops = (struct Qdisc_ops){
		.priv_size = sizeof(struct linkweir_mq_queue),
		.enqueue = kind->enqueue,
		.dequeue = kind->dequeue,
		.peek = qdisc_peek_dequeued,
		.init = linkweir_mq_queue_init,
		.reset = linkweir_mq_queue_reset,
		.destroy = linkweir_mq_queue_destroy,
		.owner = THIS_MODULE,
	};
	strscpy(kind->queue_ops.id, kind->ops.id, sizeof(kind->queue_ops.id));
	return 0;
}
