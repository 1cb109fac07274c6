// SPDX-License-Identifier: GPL-2.0-only
/*
 * qdisc.c - the data plane of the policies in the kernel: one qdisc kind for each, a FIFO for each class.
 *
 * The protocol of an arrival and of a departure is that of linkweir/policy.h. Everything a policy is asked or told runs under the
 * root lock of the device's qdisc, which enqueue, dequeue and reset come with and the control path takes.
 *
 * Parents count what waits below them. enqueue answers for the new packet alone, so whatever else became of the queues during the
 * call is told to them by one qdisc_tree_reduce_backlog(), when our own counters are final.
 *
 * A super-packet (GSO) is split on arrival: a policy that promises rates and delays decides about what goes on the wire. Its pieces
 * count what they are, without a size table, whose function no module may call.
 * TCQ_F_CAN_BYPASS is not set, since credits and histories have to see every packet.
 */
#include <linux/module.h>
#include <net/inet_ecn.h>

#include "linkweir.h"
#define CREATE_TRACE_POINTS
#include "linkweir_trace.h"

/* What a channel carries when neither its rate nor the link's is known; policies compare channels, so any number does. */
#define LINKWEIR_ANY_RATE_BPS 1000000000u

static const struct Qdisc_ops linkweir_ops;

#define LW_POLICY(name) { .policy = &lw_policy_##name },
static struct linkweir_kind linkweir_kinds[] = {
#include "kinds.h"
};
#undef LW_POLICY

static __always_inline void linkweir_clock(struct linkweir_sched *s)
{
	s->view.now_ns = ktime_get_ns();        /* never behind the last one, on any processor */
}

/* the length as the policy sees it: with what a size table adds, which knows no bound */
static u32 linkweir_bytes(const struct sk_buff *skb)
{
	return min(qdisc_pkt_len(skb), LW_MAX_PACKET_BYTES - 1);
}

/* what the parents still count and is no longer here */
static __always_inline void linkweir_tell_parents(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	if (likely(!s->gone_pkts && !s->gone_bytes))
		return;
	qdisc_tree_reduce_backlog(sch, s->gone_pkts, s->gone_bytes);
	s->gone_pkts = 0;
	s->gone_bytes = 0;
}

/* ---- the queues and the view ---- */

static bool linkweir_has_room(const struct linkweir_class *class, const struct lw_queue *queue, u32 bytes)
{
	return queue->backlog_pkts < class->limit_pkts && queue->backlog_bytes + bytes <= class->limit_bytes;
}

static __always_inline void linkweir_push(struct Qdisc *sch, u32 q, struct sk_buff *skb, u32 bytes)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct lw_queue *queue = &s->queues[q];
	u64 now_ns = s->view.now_ns;

	linkweir_cb(skb)->arrival_ns = now_ns;
	linkweir_cb(skb)->bytes = bytes;
	s->stay++;
	if (!queue->backlog_pkts++) {
		queue->head_arrival_ns = now_ns;
		queue->head_bytes = bytes;
	}
	queue->backlog_bytes += bytes;
	__skb_queue_tail(&s->classes[q].waiting, skb);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
}

/* the head or the tail of a queue that has one */
static __always_inline struct sk_buff *linkweir_pop(struct Qdisc *sch, u32 q, bool head)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct sk_buff_head *waiting = &s->classes[q].waiting;
	struct lw_queue *queue = &s->queues[q];
	struct sk_buff *skb = head ? waiting->next : waiting->prev;

	__skb_unlink(skb, waiting);
	queue->backlog_bytes -= linkweir_cb(skb)->bytes;
	if (--queue->backlog_pkts) {
		queue->head_arrival_ns = linkweir_cb(waiting->next)->arrival_ns;
		queue->head_bytes = linkweir_cb(waiting->next)->bytes;
	}
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	return skb;
}

/* to_free: where enqueue leaves what is to be freed without the lock; NULL in dequeue */
static noinline void linkweir_drop(struct Qdisc *sch, u32 q, bool head, enum linkweir_reason reason, struct sk_buff **to_free)
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
		kfree_skb(skb);
	if (s->policy->dropped)
		s->policy->dropped(s->state, &s->view, q, bytes);
}

/* ---- arrivals ---- */

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

/* Room for a packet of class q, by what may expire; without any, the packet is dropped. */
static noinline bool linkweir_make_room(struct Qdisc *sch, u32 q, struct sk_buff *skb, u32 bytes, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	do {
		if (!linkweir_expired(sch, q)) {
			s->classes[q].counters.dropped_pkts[LINKWEIR_LIMIT]++;
			trace_linkweir_dropped_limit(sch, q, bytes);
			qdisc_drop(skb, sch, to_free);
			return false;
		}
		linkweir_drop(sch, q, true, LINKWEIR_EXPIRED, to_free);
	} while (!linkweir_has_room(&s->classes[q], &s->queues[q], bytes));
	return true;
}

static noinline bool linkweir_drop_victim(struct Qdisc *sch, u32 victim, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 q = victim & ~LW_FROM_HEAD;

	if (WARN_ON_ONCE(q >= s->view.nqueues || !s->queues[q].backlog_pkts))
		return false;
	linkweir_drop(sch, q, victim & LW_FROM_HEAD, LINKWEIR_VICTIM, to_free);
	return true;
}

static __always_inline void linkweir_arrive(struct Qdisc *sch, u32 q, struct sk_buff *skb, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct lw_policy *policy = s->policy;
	u32 bytes = linkweir_bytes(skb), victim;

	if (unlikely(!linkweir_has_room(&s->classes[q], &s->queues[q], bytes)) &&
	    !linkweir_make_room(sch, q, skb, bytes, to_free))
		return;
	linkweir_push(sch, q, skb, bytes);
	trace_linkweir_enqueued(sch, q, bytes);
	if (policy->enqueued)
		policy->enqueued(s->state, &s->view, q, bytes);
	if (!policy->victim)
		return;
	do
		victim = policy->victim(s->state, &s->view, q, bytes);
	while (unlikely(victim != LW_NONE) && linkweir_drop_victim(sch, victim, to_free));
}

static noinline void linkweir_arrive_split(struct Qdisc *sch, u32 q, struct sk_buff *skb, struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	struct sk_buff *segments = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK), *segment, *next;
	struct linkweir_sched *s = qdisc_priv(sch);
	int pkts = sch->q.qlen, bytes = sch->qstats.backlog;

	if (IS_ERR_OR_NULL(segments)) {
		s->classes[q].counters.dropped_pkts[LINKWEIR_LIMIT]++;
		qdisc_drop(skb, sch, to_free);
		return;
	}
	skb_list_walk_safe(segments, segment, next) {
		skb_mark_not_on_list(segment);
		linkweir_compat_segment(segment);
		linkweir_arrive(sch, q, segment, to_free);
	}
	s->gone_pkts = pkts - (int)sch->q.qlen + !!s->stay;     /* the parents will count one packet, of the whole length */
	s->gone_bytes = bytes - (int)sch->qstats.backlog + (s->stay ? qdisc_pkt_len(skb) : 0);
	consume_skb(skb);
}

static int linkweir_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 q = linkweir_classify(skb, sch);

	if (unlikely(q & LINKWEIR_TAKEN)) {
		if (q & __NET_XMIT_BYPASS)
			qdisc_qstats_drop(sch);
		__qdisc_drop(skb, to_free);
		return q & ~LINKWEIR_TAKEN;
	}
	linkweir_clock(s);
	s->arriving = q;
	s->stay = 0;
	if (unlikely(skb_is_gso(skb)))
		linkweir_arrive_split(sch, q, skb, to_free);
	else
		linkweir_arrive(sch, q, skb, to_free);
	linkweir_tell_parents(sch);
	return likely(s->stay) ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

/* ---- departures ---- */

static noinline void linkweir_mark(struct linkweir_class *class, struct sk_buff *skb)
{
	if (INET_ECN_set_ce(skb))
		class->counters.marked_pkts++;
}

static __always_inline struct sk_buff *linkweir_leave(struct Qdisc *sch, u32 q, bool mark)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct linkweir_class *class = &s->classes[q];
	struct sk_buff *skb = linkweir_pop(sch, q, true);
	u64 sojourn_ns = s->view.now_ns - linkweir_cb(skb)->arrival_ns;
	u32 bytes = linkweir_cb(skb)->bytes;

	class->counters.sojourn_ns += sojourn_ns;
	class->counters.sojourn_max_ns = max(class->counters.sojourn_max_ns, sojourn_ns);
	if (unlikely(mark))
		linkweir_mark(class, skb);
	_bstats_update(&class->sent, qdisc_pkt_len(skb), 1);
	_bstats_update(&sch->bstats, qdisc_pkt_len(skb), 1);
	trace_linkweir_sent(sch, q, bytes);
	if (s->policy->sent)
		s->policy->sent(s->state, &s->view, q, bytes);
	return skb;
}

static noinline enum lw_verdict linkweir_judge(struct Qdisc *sch, u32 q)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	bool ecn = linkweir_ecn_capable(skb_peek(&s->classes[q].waiting));
	enum lw_verdict verdict = s->policy->leaving(s->state, &s->view, q, ecn);

	trace_linkweir_verdict(sch, q, verdict, ecn);
	return verdict;
}

/* nobody to send now: ask again when the policy says so */
static noinline struct sk_buff *linkweir_rest(struct Qdisc *sch, u64 retry_ns)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	if (retry_ns != LW_NEVER)
		qdisc_watchdog_schedule_ns(&s->watchdog, retry_ns);
	linkweir_tell_parents(sch);
	return NULL;
}

static struct sk_buff *linkweir_dequeue(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct lw_policy *policy = s->policy;
	enum lw_verdict verdict = LW_PASS;
	struct lw_pick pick;

	linkweir_clock(s);
	s->stay = 0;
	for (;;) {
		pick = policy->pick(s->state, &s->view);
		trace_linkweir_pick(sch, pick.queue, 0, false);
		if (unlikely(pick.queue == LW_NONE))
			return linkweir_rest(sch, pick.retry_ns);
		if (WARN_ON_ONCE(pick.queue >= s->view.nqueues || !s->queues[pick.queue].backlog_pkts))
			return linkweir_rest(sch, LW_NEVER);
		if (policy->leaving)
			verdict = linkweir_judge(sch, pick.queue);
		if (likely(verdict != LW_DROP))
			break;
		linkweir_drop(sch, pick.queue, true, LINKWEIR_LEAVING, NULL);
	}
	/* While the packet that leaves still counts as ours: parents deal by themselves with a child that it leaves empty. */
	linkweir_tell_parents(sch);
	return linkweir_leave(sch, pick.queue, verdict == LW_MARK);
}

/* ---- making, changing, removing ---- */

static void linkweir_rates(struct linkweir_sched *s, const struct linkweir_settings *set)
{
	u64 link_bps = set->link_bps ? set->link_bps : LINKWEIR_ANY_RATE_BPS;
	u32 q;

	s->view.link_bps = set->link_bps;
	s->best_bps = max(s->best_bps, set->link_bps);
	for (q = 0; q < set->nclasses; q++)
		s->queues[q].rate_bps = set->classes[q].rate_bps != LW_UNSET ? set->classes[q].rate_bps : link_bps;
}

static bool linkweir_rates_differ(const struct linkweir_settings *a, const struct linkweir_settings *b)
{
	u32 q;

	if (a->link_bps != b->link_bps)
		return true;
	for (q = 0; q < a->nclasses; q++)
		if (a->classes[q].rate_bps != b->classes[q].rate_bps)
			return true;
	return false;
}

static void linkweir_trace_channels(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 q;

	if (!trace_linkweir_channel_enabled())
		return;
	trace_linkweir_channel(sch, 0, s->view.link_bps);
	for (q = 0; q < s->view.nqueues; q++)
		trace_linkweir_channel(sch, q + 1, s->queues[q].rate_bps);
}

static void linkweir_trace_params(struct Qdisc *sch, const struct linkweir_settings *set)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct lw_policy *policy = s->policy;
	u32 q, i;

	if (!trace_linkweir_param_enabled())
		return;
	for (i = 0; i < policy->nparams; i++)
		trace_linkweir_param(sch, 0, policy->params[i].name, set->params[i]);
	for (q = 0; q < s->view.nqueues; q++)
		for (i = 0; i < policy->nqparams; i++)
			trace_linkweir_param(sch, q + 1, policy->qparams[i].name, set->qparams[q * policy->nqparams + i]);
}

static void linkweir_limits(struct linkweir_sched *s, const struct linkweir_settings *set)
{
	u32 q;

	for (q = 0; q < set->nclasses; q++) {
		s->classes[q].limit_pkts = set->classes[q].limit_pkts;
		s->classes[q].limit_bytes = set->classes[q].limit_bytes;
	}
}

/* New settings for queues that go on; the channels first, as they would have been told alone. */
static void linkweir_apply(struct Qdisc *sch, struct linkweir_settings *set)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct lw_policy *policy = s->policy;
	struct linkweir_settings *old = s->settings;
	bool rates = linkweir_rates_differ(old, set);
	bool params = memcmp(old->params, set->params, policy->nparams * sizeof(u64)) ||
		      memcmp(old->qparams, set->qparams, array3_size(set->nclasses, policy->nqparams, sizeof(u64)));

	sch_tree_lock(sch);
	linkweir_clock(s);
	if (rates) {
		linkweir_rates(s, set);
		linkweir_trace_channels(sch);
		trace_linkweir_told(sch, policy->name, "rated", s->view.now_ns, s->view.nqueues);
		if (policy->rated)
			policy->rated(s->state, &s->view);
	}
	if (params) {
		linkweir_trace_params(sch, set);
		trace_linkweir_told(sch, policy->name, "change", s->view.now_ns, s->view.nqueues);
		if (policy->change)
			policy->change(s->state, &s->view, set->params, set->qparams);
	}
	linkweir_limits(s, set);
	s->settings = set;
	sch_tree_unlock(sch);
	kvfree(old);
	if (rates)                      /* a class that was blocked may send: have the device ask again */
		qdisc_watchdog_schedule_ns(&s->watchdog, ktime_get_ns());
}

static int linkweir_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct linkweir_settings *set = linkweir_parse(sch, opt, extack);

	if (IS_ERR(set))
		return PTR_ERR(set);
	linkweir_apply(sch, set);
	return 0;
}

static void linkweir_begin(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	linkweir_clock(s);
	linkweir_trace_channels(sch);
	linkweir_trace_params(sch, s->settings);
	trace_linkweir_told(sch, s->policy->name, "init", s->view.now_ns, s->view.nqueues);
	s->policy->init(s->state, &s->view, s->settings->params, s->settings->qparams);
}

static int linkweir_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct linkweir_settings *set;
	size_t size;
	int err;
	u32 q;

	qdisc_watchdog_init(&s->watchdog, sch);         /* first: destroy follows a failure */
	s->policy = container_of(sch->ops, struct linkweir_kind, ops)->policy;
	err = tcf_block_get(&s->block, &s->filters, sch, extack);
	if (err)
		return err;
	set = linkweir_parse(sch, opt, extack);
	if (IS_ERR(set))
		return PTR_ERR(set);
	s->settings = set;
	size = s->policy->state_size(set->nclasses, set->params);
	if (!size) {
		linkweir_refuse(extack, "classes: %s cannot serve %u: give fewer", s->policy->name, set->nclasses);
		return -EINVAL;
	}
	s->state = kvzalloc(size, GFP_KERNEL_ACCOUNT);
	s->queues = kvcalloc(set->nclasses, sizeof(*s->queues), GFP_KERNEL_ACCOUNT);
	s->classes = kvcalloc(set->nclasses, sizeof(*s->classes), GFP_KERNEL_ACCOUNT);
	if (!s->state || !s->queues || !s->classes)
		return -ENOMEM;
	for (q = 0; q < set->nclasses; q++) {
		__skb_queue_head_init(&s->classes[q].waiting);
		gnet_stats_basic_sync_init(&s->classes[q].sent);
	}
	sch->flags |= TCQ_F_WARN_NONWC; /* having nothing to give while something waits is no fault here */
	s->view.queues = s->queues;
	s->view.nqueues = set->nclasses;
	linkweir_limits(s, set);
	linkweir_rates(s, set);
	linkweir_begin(sch);
	return 0;
}

/* Empty queues, and a policy that begins anew; what the user set stays. */
static void linkweir_reset(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 q;

	for (q = 0; q < s->view.nqueues; q++) {
		__skb_queue_purge(&s->classes[q].waiting);
		s->queues[q].backlog_pkts = 0;
		s->queues[q].backlog_bytes = 0;
	}
	linkweir_begin(sch);
	qdisc_watchdog_cancel(&s->watchdog);
}

static void linkweir_destroy(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	tcf_block_put(s->block);
	qdisc_watchdog_cancel(&s->watchdog);
	kvfree(s->classes);
	kvfree(s->queues);
	kvfree(s->state);
	kvfree(s->settings);
}

/* ---- classes ---- */

static unsigned long linkweir_find(struct Qdisc *sch, u32 classid)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 number = TC_H_MIN(classid);

	return number <= s->view.nqueues ? number : 0;
}

static unsigned long linkweir_bind(struct Qdisc *sch, unsigned long parent, u32 classid)
{
	return linkweir_find(sch, classid);
}

static void linkweir_unbind(struct Qdisc *sch, unsigned long class)
{
}

static struct Qdisc *linkweir_leaf(struct Qdisc *sch, unsigned long class)
{
	return NULL;
}

static struct tcf_block *linkweir_block(struct Qdisc *sch, unsigned long class, struct netlink_ext_ack *extack)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	if (class) {
		linkweir_refuse(extack, "filters belong to the qdisc: leave the class out of parent");
		return NULL;
	}
	return s->block;
}

static int linkweir_class_change(struct Qdisc *sch, u32 classid, u32 parentid, struct nlattr **tca, unsigned long *class,
				 struct netlink_ext_ack *extack)
{
	struct linkweir_settings *set;

	if (!*class) {
		linkweir_refuse(extack, "classes are made with the qdisc: give classes there");
		return -EOPNOTSUPP;
	}
	set = linkweir_parse_class(sch, *class - 1, tca[TCA_OPTIONS], extack);
	if (IS_ERR(set))
		return PTR_ERR(set);
	linkweir_apply(sch, set);
	return 0;
}

static void linkweir_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 q;

	if (arg->stop)
		return;
	for (q = 0; q < s->view.nqueues; q++)
		if (!tc_qdisc_stats_dump(sch, q + 1, arg))
			break;
}

/* ---- what is shown ---- */

static int linkweir_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return linkweir_put(sch, skb);
}

static int linkweir_class_dump(struct Qdisc *sch, unsigned long class, struct sk_buff *skb, struct tcmsg *tcm)
{
	tcm->tcm_handle |= TC_H_MIN(class);
	return linkweir_put_class(sch, class - 1, skb);
}

static int linkweir_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct linkweir_counters sum = {};
	u64 sent_pkts = 0;
	u32 q, reason;

	sch_tree_lock(sch);
	for (q = 0; q < s->view.nqueues; q++) {
		const struct linkweir_counters *one = &s->classes[q].counters;

		for (reason = 0; reason < LINKWEIR_REASONS; reason++)
			sum.dropped_pkts[reason] += one->dropped_pkts[reason];
		sum.marked_pkts += one->marked_pkts;
		sent_pkts += u64_stats_read(&s->classes[q].sent.packets);
		sum.sojourn_ns += one->sojourn_ns;
		sum.sojourn_max_ns = max(sum.sojourn_max_ns, one->sojourn_max_ns);
	}
	sch_tree_unlock(sch);
	return linkweir_put_stats(s->policy, &sum, sent_pkts, NULL, d);
}

#define LINKWEIR_MAX_STATS 16

static int linkweir_class_dump_stats(struct Qdisc *sch, unsigned long class, struct gnet_dump *d)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct linkweir_class *c = &s->classes[class - 1];
	struct gnet_stats_queue waiting = {};
	struct linkweir_counters counters;
	u64 sent_pkts;
	s64 values[LINKWEIR_MAX_STATS];
	u32 reason;

	sch_tree_lock(sch);
	linkweir_clock(s);
	counters = c->counters;
	sent_pkts = u64_stats_read(&c->sent.packets);
	waiting.qlen = s->queues[class - 1].backlog_pkts;
	waiting.backlog = s->queues[class - 1].backlog_bytes;
	if (s->policy->observe)
		s->policy->observe(s->state, &s->view, class - 1, values);
	sch_tree_unlock(sch);
	for (reason = 0; reason < LINKWEIR_REASONS; reason++)
		waiting.drops += counters.dropped_pkts[reason];
	if (gnet_stats_copy_basic(d, NULL, &c->sent, true) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &waiting, waiting.qlen) < 0)
		return -1;
	return linkweir_put_stats(s->policy, &counters, sent_pkts, s->policy->observe ? values : NULL, d);
}

static const struct Qdisc_class_ops linkweir_class_ops = {
	.leaf = linkweir_leaf,
	.find = linkweir_find,
	.change = linkweir_class_change,
	.walk = linkweir_walk,
	.tcf_block = linkweir_block,
	.bind_tcf = linkweir_bind,
	.unbind_tcf = linkweir_unbind,
	.dump = linkweir_class_dump,
	.dump_stats = linkweir_class_dump_stats,
};

static const struct Qdisc_ops linkweir_ops = {
	.cl_ops = &linkweir_class_ops,
	.priv_size = sizeof(struct linkweir_sched),
	.enqueue = linkweir_enqueue,
	.dequeue = linkweir_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = linkweir_init,
	.reset = linkweir_reset,
	.destroy = linkweir_destroy,
	.change = linkweir_change,
	.dump = linkweir_dump,
	.dump_stats = linkweir_dump_stats,
	.owner = THIS_MODULE,
};

/* ---- the module ---- */

static void linkweir_unregister(u32 n)
{
	while (n > 0)
		unregister_qdisc(&linkweir_kinds[--n].ops);
}

static int __init linkweir_load(void)
{
	u32 i;
	int err = linkweir_selftest(linkweir_kinds, ARRAY_SIZE(linkweir_kinds));

	for (i = 0; !err && i < ARRAY_SIZE(linkweir_kinds); i++) {
		struct linkweir_kind *kind = &linkweir_kinds[i];

		if (kind->policy->abi != LW_ABI || kind->policy->nstats > LINKWEIR_MAX_STATS) {
			err = -EINVAL;
			break;
		}
		kind->ops = linkweir_ops;
		strscpy(kind->ops.id, kind->policy->name, sizeof(kind->ops.id));
		err = register_qdisc(&kind->ops);
		if (err)
			break;
	}
	if (err) {
		linkweir_unregister(i);
		linkweir_compat_exit();
	}
	return err;
}

static void __exit linkweir_unload(void)
{
	linkweir_unregister(ARRAY_SIZE(linkweir_kinds));
	linkweir_compat_exit();
}

module_init(linkweir_load);
module_exit(linkweir_unload);

#define LW_POLICY(name) MODULE_ALIAS_NET_SCH(#name); MODULE_ALIAS("sch_" #name);
#include "kinds.h"
#undef LW_POLICY

MODULE_DESCRIPTION("Linkweir's scheduling policies as queueing disciplines");
MODULE_VERSION(LINKWEIR_VERSION);
MODULE_LICENSE("GPL");
