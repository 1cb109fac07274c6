// SPDX-License-Identifier: GPL-2.0-only
/*
 * drop.c - packets that are dropped (no room, expired, a victim, or by verdict) or marked.
 *
 * They are rare compared with the packets of plane.h, so the policy is called through its function pointers.
 */
#include <net/inet_ecn.h>

#include "classify.h"
#include "linkweir.h"
#include "linkweir_trace.h"

/* what drop monitors see; packets dropped by a reset are freed without a reason */
static const enum qdisc_drop_reason linkweir_kernel_reasons[LINKWEIR_CLASS_REASONS] = {
	[LINKWEIR_LIMIT] = QDISC_DROP_BAND_LIMIT,
	[LINKWEIR_VICTIM] = QDISC_DROP_OVERLIMIT,
	[LINKWEIR_EXPIRED] = QDISC_DROP_CONGESTED,
	[LINKWEIR_LEAVING] = QDISC_DROP_CONGESTED,
	[LINKWEIR_SPLIT] = QDISC_DROP_GENERIC,
	[LINKWEIR_RESET] = QDISC_DROP_GENERIC,
};

/* to_free: the list of packets that enqueue frees after the lock is released; NULL in dequeue */
void linkweir_drop(struct Qdisc *sch, u32 q, bool head, enum linkweir_reason reason, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 fresh = q == s->arriving ? s->stay : 0;      /* packets of this call at the tail of q */
	bool known = head ? fresh < s->queues[q].backlog_pkts : !fresh;
	struct sk_buff *skb = linkweir_pop(sch, q, head);
	u32 bytes = linkweir_cb(skb)->bytes;

	/* parents have not counted a packet of this call yet, so it must not be reported as gone */
	if (known) {
		s->gone_pkts++;
		s->gone_bytes += qdisc_pkt_len(skb);
	} else {
		s->stay--;
	}
	s->classes[q].counters.dropped_pkts[reason]++;
	qdisc_qstats_drop(sch);
	if (reason == LINKWEIR_MEMORY || reason == LINKWEIR_LIMIT)      /* not by an answer of the policy */
		trace_linkweir_dropped_reset(sch, q, bytes);
	else if (head)
		trace_linkweir_dropped_head(sch, q, bytes);
	else
		trace_linkweir_dropped_tail(sch, q, bytes);
	if (to_free) {
		tcf_set_qdisc_drop_reason(skb, linkweir_kernel_reasons[reason]);
		__qdisc_drop(skb, to_free);
	} else {
		qdisc_dequeue_drop(sch, skb, linkweir_kernel_reasons[reason]);
	}
	if (s->policy->dropped)
		s->policy->dropped(s->state, &s->view, q, bytes);
}

static bool linkweir_expired(struct Qdisc *sch, u32 q)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	bool expired;

	if (!s->queues[q].backlog_pkts || !s->policy->expired)
		return false;
	expired = s->policy->expired(s->state, &s->view, q);
	trace_linkweir_expired(sch, q, expired, false);
	return expired;
}

/* Makes room for a packet of class q by dropping at most LW_MOST_DROPS expired ones; if that fails, drops the packet itself. */
bool linkweir_make_room(struct Qdisc *sch, u32 q, struct sk_buff *skb, u32 bytes, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 drops = 0;

	do {
		if (drops++ == LW_MOST_DROPS || !linkweir_expired(sch, q)) {
			s->classes[q].counters.dropped_pkts[LINKWEIR_LIMIT]++;
			trace_linkweir_dropped_limit(sch, q, bytes);
			tcf_set_qdisc_drop_reason(skb, linkweir_kernel_reasons[LINKWEIR_LIMIT]);
			qdisc_drop(skb, sch, to_free);
			return false;
		}
		linkweir_drop(sch, q, true, LINKWEIR_EXPIRED, to_free);
	} while (!linkweir_has_room(&s->classes[q], &s->queues[q], bytes));
	return true;
}

/* Waiting packets use too much memory: the class with most bytes loses its newest, at most LW_MOST_DROPS; later arrivals go on. */
void linkweir_free_memory(struct Qdisc *sch, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 q, most = 0, drops;

	for (q = 1; q < s->view.nqueues; q++)
		if (s->queues[q].backlog_bytes > s->queues[most].backlog_bytes)
			most = q;
	for (drops = 0; drops < LW_MOST_DROPS && s->memory_bytes > s->memlimit_bytes && s->queues[most].backlog_pkts; drops++)
		linkweir_drop(sch, most, false, LINKWEIR_MEMORY, to_free);
}

bool linkweir_drop_victim(struct Qdisc *sch, u32 victim, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 q = victim & ~LW_FROM_HEAD;

	if (WARN_ON_ONCE(q >= s->view.nqueues || !s->queues[q].backlog_pkts))
		return false;
	linkweir_drop(sch, q, victim & LW_FROM_HEAD, LINKWEIR_VICTIM, to_free);
	return true;
}

void linkweir_mark(struct linkweir_class *class, struct sk_buff *skb)
{
	if (INET_ECN_set_ce(skb))
		class->counters.marked_pkts++;
}
