/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * plane.h - the packet path of a qdisc: the data plane of one policy, with a FIFO for each class.
 *
 * For each kind the Makefile writes a file that defines LINKWEIR_NAME and LINKWEIR_POLICY, and includes the policy's source and then
 * this file. So the compiler inlines the policy's functions into enqueue and dequeue, and leaves out optional functions that the
 * policy lacks. Indirect calls (retpolines) can cost as much as the policy itself. Rare cases are in drop.c, shared by all
 * policies.
 *
 * Arrivals and departures follow the protocol of linkweir/policy.h.
 *
 * Parents count the packets below them. The return value of enqueue covers the new packet only, so all other changes of a call are
 * reported to them by one qdisc_tree_reduce_backlog(), when our own counters are final.
 *
 * A super-packet (GSO) is split on arrival unless the user forbids it, because a policy that guarantees rates and delays must
 * schedule packets as they go on the wire. Segments count with their own lengths, without a size table, whose function is not
 * exported to modules.
 */
#include "classify.h"
#include "linkweir.h"
#include "linkweir_trace.h"

static const struct lw_policy *const linkweir_policy = &__PASTE(lw_policy_, LINKWEIR_POLICY);

/* the length as the policy sees it; clamped, as a size table may add any amount */
static __always_inline u32 linkweir_bytes(const struct linkweir_sched *s, const struct sk_buff *skb)
{
	u32 bytes = linkweir_is_framed(s) ? linkweir_framed_bytes(&s->framing, skb) : qdisc_pkt_len(skb);

	return min(bytes, LW_MAX_PACKET_BYTES - 1);
}

/* ---- arrivals ---- */

static __always_inline void linkweir_push(struct Qdisc *sch, struct linkweir_class *class, struct lw_queue *queue, struct sk_buff *skb,
					  u32 bytes)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u64 now_ns = s->view.now_ns;

	linkweir_cb(skb)->arrival_ns = now_ns;
	linkweir_cb(skb)->bytes = bytes;
	s->stay++;
	if (!queue->backlog_pkts++) {
		queue->head_arrival_ns = now_ns;
		queue->head_bytes = bytes;
	}
	queue->backlog_bytes += bytes;
	__skb_queue_tail(&class->waiting, skb);
	if (linkweir_counts_memory(s))
		s->memory_bytes += skb->truesize;
	qdisc_qstats_backlog_inc(sch, skb);
	qdisc_qlen_inc(sch);
}

static __always_inline bool linkweir_join(struct Qdisc *sch, u32 q, struct sk_buff *skb, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct linkweir_class *class = &s->classes[q];
	struct lw_queue *queue = &s->queues[q];
	u32 bytes = linkweir_bytes(s, skb), victim, drops;
	bool all = likely(linkweir_has_room(class, queue, bytes));

	if (!all && !linkweir_make_room(sch, q, skb, bytes, to_free))
		return false;
	linkweir_push(sch, class, queue, skb, bytes);
	if (trace_linkweir_enqueued_enabled())
		linkweir_record_enqueued(sch, q, bytes);
	if (linkweir_policy->enqueued)
		linkweir_policy->enqueued(s->state, &s->view, q, bytes);
	if (!linkweir_policy->victim)
		return all;
	/* bounded: the caller holds the root lock; later arrivals drop the rest */
	for (drops = 0; drops < LW_MOST_DROPS; drops++) {
		victim = linkweir_policy->victim(s->state, &s->view, q, bytes);
		if (likely(victim == LW_NONE) || !linkweir_drop_victim(sch, victim, to_free))
			break;
		all = false;
	}
	return all;
}

/* True if no packet at all was dropped. */
static __always_inline bool linkweir_arrive(struct Qdisc *sch, u32 q, struct sk_buff *skb, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	bool all = linkweir_join(sch, q, skb, to_free);

	if (!linkweir_counts_memory(s) || likely(s->memory_bytes <= s->memlimit_bytes))
		return all;
	linkweir_free_memory(sch, to_free);
	return false;
}

static noinline struct sk_buff *linkweir_segments(struct sk_buff *skb)
{
	struct sk_buff *segments = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);

	return segments ? segments : ERR_PTR(-EINVAL);
}

/* the segments of a super-packet, or an error; NULL if the packet stays whole */
static __always_inline struct sk_buff *linkweir_split(const struct linkweir_sched *s, struct sk_buff *skb)
{
	return unlikely(skb_is_gso(skb)) && !READ_ONCE(s->whole) ? linkweir_segments(skb) : NULL;
}

static noinline void linkweir_arrive_split(struct Qdisc *sch, u32 q, struct sk_buff *skb, struct sk_buff *segments,
					   struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	int pkts = sch->q.qlen + s->gone_pkts, bytes = sch->qstats.backlog + s->gone_bytes;
	struct sk_buff *segment, *next;

	if (IS_ERR(segments)) {
		s->classes[q].counters.dropped_pkts[LINKWEIR_SPLIT]++;
		qdisc_drop(skb, sch, to_free);
		return;
	}
	/* before and after: what the parents have counted, so the difference must be reported to them */
	skb_list_walk_safe(segments, segment, next) {
		skb_mark_not_on_list(segment);
		linkweir_compat_segment(segment);
		linkweir_arrive(sch, q, segment, to_free);
	}
	s->gone_pkts = pkts - (int)sch->q.qlen + !!s->stay;     /* on success the parents count one packet of the whole length */
	s->gone_bytes = bytes - (int)sch->qstats.backlog + (s->stay ? qdisc_pkt_len(skb) : 0);
	consume_skb(skb);
}

/* A packet, or with its segments a super-packet, of class q. Returns what enqueue returns. */
static __always_inline int linkweir_enter(struct sk_buff *skb, struct Qdisc *sch, u32 q, struct sk_buff *segments,
					  struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	linkweir_clock(s);
	/* from here on linkweir_drop() knows which packets the parents have not counted yet */
	s->arriving = q;
	s->stay = 0;
	if (unlikely(segments))
		linkweir_arrive_split(sch, q, skb, segments, to_free);
	else if (likely(linkweir_arrive(sch, q, skb, to_free))) {
		linkweir_compat_arrived(&s->late);
		return NET_XMIT_SUCCESS;
	}
	linkweir_tell_parents(sch);
	linkweir_compat_arrived(&s->late);
	return s->stay ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

static int __flatten linkweir_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 q = linkweir_classify(skb, sch);

	if (unlikely(q & LINKWEIR_TAKEN)) {
		if (q & __NET_XMIT_BYPASS) {
			s->filtered_pkts++;
			qdisc_qstats_drop(sch);
		}
		__qdisc_drop(skb, to_free);
		return q & ~LINKWEIR_TAKEN;
	}
	return linkweir_enter(skb, sch, q, linkweir_split(s, skb), to_free);
}

/* ---- departures ---- */

static __always_inline struct sk_buff *linkweir_leave(struct Qdisc *sch, u32 q, bool mark)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct linkweir_class *class = &s->classes[q];
	struct sk_buff *skb = linkweir_pop(sch, q, true);
	u64 sojourn_ns = s->view.now_ns - linkweir_cb(skb)->arrival_ns;
	u32 bytes = linkweir_cb(skb)->bytes, length = qdisc_pkt_len(skb);

	class->counters.sojourn_ns += sojourn_ns;
	if (unlikely(sojourn_ns > class->counters.sojourn_max_ns))
		class->counters.sojourn_max_ns = sojourn_ns;
	if (unlikely(mark))
		linkweir_mark(class, skb);
	_bstats_update(&class->sent, length, 1);
	_bstats_update(&sch->bstats, length, 1);
	if (trace_linkweir_sent_enabled())
		linkweir_record_sent(sch, q, bytes);
	if (linkweir_is_paced(s))
		linkweir_occupy(s, bytes, sch->q.qlen);
	if (linkweir_policy->sent)
		linkweir_policy->sent(s->state, &s->view, q, bytes);
	return skb;
}

static __always_inline enum lw_verdict linkweir_judge(struct Qdisc *sch, u32 q)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct sk_buff *skb = s->classes[q].waiting.next;
	enum lw_verdict verdict;

	/* evaluated twice on purpose: the first is left out if the policy ignores `ecn`, the second is only for tracing */
	verdict = linkweir_policy->leaving(s->state, &s->view, q, linkweir_ecn_capable(skb));
	if (trace_linkweir_verdict_enabled())
		linkweir_record_verdict(sch, q, verdict, linkweir_ecn_capable(skb));
	return verdict;
}

static struct sk_buff * __flatten linkweir_dequeue(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	enum lw_verdict verdict = LW_PASS;
	u64 retry_ns = LW_NEVER;
	u32 q, drops = 0;

	linkweir_clock(s);
	if (linkweir_must_wait(s))
		return linkweir_wait(sch);
	for (;;) {
		q = linkweir_policy->pick(s->state, &s->view, &retry_ns);
		if (trace_linkweir_pick_enabled())
			linkweir_record_pick(sch, q);
		if (unlikely(q >= s->view.nqueues || !s->queues[q].backlog_pkts))
			return linkweir_rest(sch, q, retry_ns);
		if (!linkweir_policy->leaving)
			break;
		verdict = linkweir_judge(sch, q);
		if (likely(verdict != LW_DROP))
			break;
		s->stay = 0;
		linkweir_drop(sch, q, true, LINKWEIR_LEAVING, NULL);
		/* bounded likewise; the watchdog asks again at once */
		if (unlikely(++drops == LW_MOST_DROPS))
			return linkweir_rest(sch, LW_NONE, s->view.now_ns);
	}
	/* before the packet leaves, so that this report does not make us empty: after it, parents handle an empty child themselves */
	if (unlikely(drops))
		linkweir_tell_parents(sch);
	return linkweir_leave(sch, q, verdict == LW_MARK);
}

struct linkweir_kind __PASTE(linkweir_kind_, LINKWEIR_NAME) = {
	.name = __stringify(LINKWEIR_NAME),
	.policy = &__PASTE(lw_policy_, LINKWEIR_POLICY),
	.enqueue = linkweir_enqueue,
	.dequeue = linkweir_dequeue,
};
