// SPDX-License-Identifier: GPL-2.0-only
/*
 * mq_turn.c - of a device with many transmission queues: which of them sends the next packet, and what each sent.
 */
#include "linkweir.h"

struct netdev_queue *linkweir_mq_txq(struct Qdisc *sch, u32 index)
{
	return netdev_get_tx_queue(qdisc_dev(sch), index);
}

/* Class q has the next packet: its transmission queue must send it, now or when the link is free. `running`: it asks anyway. */
void linkweir_mq_next(struct Qdisc *sch, u32 q, const struct linkweir_mq_queue *running)
{
	struct linkweir_mq *mq = qdisc_priv(sch);
	struct linkweir_sched *s = &mq->sched;
	u32 index = linkweir_cb(s->classes[q].waiting.next)->txq;
	struct Qdisc *queue = index < mq->nqueues ? mq->queues[index] : NULL;
	struct linkweir_mq_queue *its;

	if (WARN_ON_ONCE(!queue))
		return;
	its = qdisc_priv(queue);
	if (linkweir_must_wait(s)) {
		s->pace.busy = true;
		qdisc_qstats_overlimit(sch);
		qdisc_watchdog_schedule_ns(&its->watchdog, s->pace.free_ns);
	} else if (its != running && !netif_xmit_frozen_or_stopped(linkweir_mq_txq(sch, index))) {
		__netif_schedule(queue);
	}
}

/*
 * A queue with a packet asks the policy at this time; with the root's lock. It need not be the queue that is next. If its driver has
 * stopped it, it asks when the driver wakes it, or another queue asks earlier for a packet that arrives.
 */
void linkweir_mq_wake(struct Qdisc *sch, u64 at_ns)
{
	struct linkweir_mq *mq = qdisc_priv(sch);
	struct linkweir_sched *s = &mq->sched;
	struct linkweir_mq_queue *its;
	u32 q;

	for (q = 0; q < s->view.nqueues && !s->queues[q].backlog_pkts; q++)
		;
	if (q == s->view.nqueues || at_ns == LW_NEVER)
		return;
	its = qdisc_priv(mq->queues[linkweir_cb(s->classes[q].waiting.next)->txq]);
	qdisc_watchdog_schedule_ns(&its->watchdog, at_ns);
}

/* Packets sent by the first queues; with the root's lock. Returns how many queues. */
u32 linkweir_mq_sent(struct Qdisc *sch, u64 *pkts)
{
	struct linkweir_mq *mq = qdisc_priv(sch);
	u32 i;

	for (i = 0; i < mq->nqueues && i < LINKWEIR_SHOWN_QUEUES; i++)
		pkts[i] = mq->queues[i] ? ((struct linkweir_mq_queue *)qdisc_priv(mq->queues[i]))->sent_pkts : 0;
	return i;
}
