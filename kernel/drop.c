// SPDX-License-Identifier: GPL-2.0-only
/*
 * drop.c - packets that do not leave as they came: no room, expired, a victim, judged; and those that leave with a mark.
 *
 * Rare beside the packets of plane.h, so the policy is called through its pointers.
 */
#include <net/inet_ecn.h>

#include "classify.h"
#include "linkweir.h"
#include "linkweir_trace.h"

/* to_free: where enqueue leaves what is to be freed without the lock; NULL in dequeue */
void linkweir_drop(struct Qdisc *sch, u32 q, bool head, enum linkweir_reason reason, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 fresh = q == s->arriving ? s->stay : 0;      /* at the tail of this queue */
	bool known = head ? fresh < s->queues[q].backlog_pkts : !fresh;
	struct sk_buff *skb = linkweir_pop(sch, q, head);
	u32 bytes = linkweir_cb(skb)->bytes;

	if (known) {
		s->gone_pkts++;
		s->gone_bytes += qdisc_pkt_len(skb);
	} else {
		s->stay--;
	}
	s->classes[q].counters.dropped_pkts[reason]++;
	qdisc_qstats_drop(sch);
	if (head)
		trace_linkweir_dropped_head(sch, q, bytes);
	else
		trace_linkweir_dropped_tail(sch, q, bytes);
	if (to_free)
		__qdisc_drop(skb, to_free);
	else
		linkweir_compat_drop(skb);
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

/* Room for a packet of class q, by what may expire, LW_MOST_DROPS packets at most; without any, the packet is dropped. */
bool linkweir_make_room(struct Qdisc *sch, u32 q, struct sk_buff *skb, u32 bytes, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 drops = 0;

	do {
		if (drops++ == LW_MOST_DROPS || !linkweir_expired(sch, q)) {
			s->classes[q].counters.dropped_pkts[LINKWEIR_LIMIT]++;
			trace_linkweir_dropped_limit(sch, q, bytes);
			qdisc_drop(skb, sch, to_free);
			return false;
		}
		linkweir_drop(sch, q, true, LINKWEIR_EXPIRED, to_free);
	} while (!linkweir_has_room(&s->classes[q], &s->queues[q], bytes));
	return true;
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
