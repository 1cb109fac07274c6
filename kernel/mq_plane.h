/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mq_plane.h - the packet path of a kind NAME_mq: the policy of plane.h, which includes it first, for a device with many
 * transmission queues.
 *
 * The packets of all transmission queues wait in the root's classes, in the order of their arrival, so the policy sees what it would
 * see with one queue, and a class has its reservation once. A transmission queue's qdisc passes a packet on only if the policy
 * picks it and the packet belongs to that queue. If it belongs to another queue, that queue is scheduled.
 *
 * Two locks: the one of the transmission queue's qdisc, which the kernel holds here, and inside it the root's. Packets are
 * classified and split under the first alone, so processors do that at the same time.
 */
#include "plane.h"

/* What needs no lock of the root: the class that filters or the priority give, else LW_NONE and the code point's byte, or -1. */
static __always_inline u32 linkweir_mq_classify(struct sk_buff *skb, struct Qdisc *sch, int *dsfield)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 q = LW_NONE;

	if (TC_H_MAJ(skb->priority) == sch->handle || rcu_access_pointer(s->filters))
		q = linkweir_named_class(skb, sch);
	*dsfield = q == LW_NONE ? linkweir_dsfield(skb) : -1;
	return q;
}

static int linkweir_mq_refuse(struct sk_buff *skb, struct Qdisc *sch, u32 taken, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	if (taken & __NET_XMIT_BYPASS) {
		spin_lock_nested(qdisc_lock(sch), SINGLE_DEPTH_NESTING);
		s->filtered_pkts++;
		qdisc_qstats_drop(sch);
		spin_unlock(qdisc_lock(sch));
	}
	__qdisc_drop(skb, to_free);
	return taken & ~LINKWEIR_TAKEN;
}

static int __flatten linkweir_mq_enqueue(struct sk_buff *skb, struct Qdisc *queue, struct sk_buff **to_free)
{
	const struct linkweir_mq_queue *mine = qdisc_priv(queue);
	struct Qdisc *sch = mine->root;
	struct linkweir_sched *s = qdisc_priv(sch);
	struct sk_buff *segments;
	int dsfield, answer;
	u32 q = linkweir_mq_classify(skb, sch, &dsfield);

	if (unlikely(q != LW_NONE && q & LINKWEIR_TAKEN))
		return linkweir_mq_refuse(skb, sch, q, to_free);
	linkweir_cb(skb)->txq = mine->index;            /* segments inherit it */
	segments = linkweir_split(s, skb);
	spin_lock_nested(qdisc_lock(sch), SINGLE_DEPTH_NESTING);
	if (q >= s->view.nqueues)               /* or its class has just gone */
		q = dsfield < 0 ? s->settings->default_class : linkweir_by_dsfield(s->settings, dsfield);
	answer = linkweir_enter(skb, sch, q, segments, to_free);
	spin_unlock(qdisc_lock(sch));
	return answer;
}

static struct sk_buff * __flatten linkweir_mq_dequeue(struct Qdisc *queue)
{
	struct linkweir_mq_queue *mine = qdisc_priv(queue);
	struct Qdisc *sch = mine->root;
	struct linkweir_sched *s = qdisc_priv(sch);
	struct sk_buff *skb = NULL;
	u64 retry_ns = LW_NEVER;
	u32 q;

	/* a packet of this queue was counted before this queue was scheduled; other queues schedule themselves */
	if (!READ_ONCE(sch->q.qlen))
		return NULL;
	spin_lock_nested(qdisc_lock(sch), SINGLE_DEPTH_NESTING);
	linkweir_clock(s);
	q = linkweir_policy->pick(s->state, &s->view, &retry_ns);
	trace_linkweir_pick(sch, q, 0, false);
	if (q < s->view.nqueues && s->queues[q].backlog_pkts && linkweir_cb(s->classes[q].waiting.next)->txq == mine->index &&
	    !linkweir_must_wait(s)) {
		skb = linkweir_leave(sch, q, false);
		mine->sent_pkts++;
		if (!sch->q.qlen)
			goto unlock;
		/* now, as this queue may be stopped before it is asked again */
		q = linkweir_policy->pick(s->state, &s->view, &retry_ns);
		trace_linkweir_pick(sch, q, 0, false);
	}
	if (likely(q < s->view.nqueues && s->queues[q].backlog_pkts))
		linkweir_mq_next(sch, q, mine);
	else
		linkweir_rest(sch, q, retry_ns);
unlock:
	spin_unlock(qdisc_lock(sch));
	return skb;
}

struct linkweir_mq_kind __PASTE(linkweir_mq_kind_, LINKWEIR_POLICY) = {
	.policy = &__PASTE(lw_policy_, LINKWEIR_POLICY),
	.enqueue = linkweir_mq_enqueue,
	.dequeue = linkweir_mq_dequeue,
};
