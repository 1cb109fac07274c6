// SPDX-License-Identifier: GPL-2.0-only
/*
 * qdisc.c - the policies as qdiscs, one kind for each: create, change, dump and destroy. The packet path is in plane.h.
 *
 * All calls of a policy run under the root lock of the device's qdisc: enqueue, dequeue and reset are called with it, the control
 * path takes it. TCQ_F_CAN_BYPASS is not set, since credits and histories must see every packet.
 */
#include <linux/module.h>
#include <linux/rtnetlink.h>

#include "linkweir.h"
#define CREATE_TRACE_POINTS
#include "linkweir_trace.h"

/* Rate of channels if neither theirs nor the link's is known; policies only compare channels, so any number will do. */
#define LINKWEIR_ANY_RATE_BPS 1000000000u

/* Has the device ask again. */
static void linkweir_wake(struct Qdisc *sch, u64 at_ns)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	if (sch->flags & TCQ_F_MQROOT)
		linkweir_mq_wake(sch, at_ns);
	else
		qdisc_watchdog_schedule_ns(&s->watchdog, at_ns);
}

/* No packet to send now: q is LW_NONE, or the policy named an impossible queue. Arms the watchdog for when the policy says. */
struct sk_buff *linkweir_rest(struct Qdisc *sch, u32 q, u64 retry_ns)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	linkweir_rest_pace(&s->pace);
	if (WARN_ON_ONCE(q != LW_NONE))
		retry_ns = LW_NEVER;
	if (linkweir_tell_parents(sch))         /* some parents stop serving a child that had packets and returns none */
		retry_ns = s->view.now_ns;
	if (retry_ns != LW_NEVER)
		linkweir_wake(sch, retry_ns);
	return NULL;
}

/* ---- create, change, destroy ---- */

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

/*
 * The tracepoints of the packet path. Each call of a tracepoint takes more than 100 bytes, which the path of every kind would contain
 * several times. It calls these instead, and only while it is recorded.
 */
void linkweir_record_enqueued(struct Qdisc *sch, u32 q, u32 bytes)
{
	trace_linkweir_enqueued(sch, q, bytes);
}

void linkweir_record_sent(struct Qdisc *sch, u32 q, u32 bytes)
{
	trace_linkweir_sent(sch, q, bytes);
}

void linkweir_record_pick(struct Qdisc *sch, u32 q)
{
	trace_linkweir_pick(sch, q, 0, false);
}

void linkweir_record_verdict(struct Qdisc *sch, u32 q, enum lw_verdict verdict, bool ecn)
{
	trace_linkweir_verdict(sch, q, verdict, ecn);
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

DEFINE_STATIC_KEY_FALSE(linkweir_shaping);
DEFINE_STATIC_KEY_FALSE(linkweir_limiting_memory);

static bool linkweir_frames(const struct linkweir_settings *set)
{
	return set->framing.overhead != LINKWEIR_RAW || set->framing.mpu || set->framing.cells != LINKWEIR_NOATM;
}

/* Before the settings are in force and, as it may sleep, without the lock. */
static void linkweir_begin_shaping(struct linkweir_sched *s, const struct linkweir_settings *set)
{
	if (!s->shapes && (set->bandwidth_bps || linkweir_frames(set))) {
		s->shapes = true;
		static_branch_inc(&linkweir_shaping);
	}
	if (!s->limits_memory && set->memlimit_bytes) {
		s->limits_memory = true;
		static_branch_inc(&linkweir_limiting_memory);
	}
}

static void linkweir_end_shaping(struct linkweir_sched *s)
{
	if (s->shapes && !s->pace.bandwidth_bps && !s->framed) {
		s->shapes = false;
		static_branch_dec(&linkweir_shaping);
	}
	if (s->limits_memory && !s->memlimit_bytes) {
		s->limits_memory = false;
		static_branch_dec(&linkweir_limiting_memory);
	}
}

static void linkweir_count_memory(struct linkweir_sched *s)
{
	const struct sk_buff *skb;
	u32 q;

	s->memory_bytes = 0;
	for (q = 0; q < s->view.nqueues; q++)
		skb_queue_walk(&s->classes[q].waiting, skb)
			s->memory_bytes += skb->truesize;
}

static void linkweir_shape(struct linkweir_sched *s, const struct linkweir_settings *set)
{
	linkweir_set_bandwidth(s, set->bandwidth_bps);
	s->framing = set->framing;
	s->framed = linkweir_frames(set);
	WRITE_ONCE(s->whole, set->whole);
	if (set->memlimit_bytes && !s->memlimit_bytes)
		linkweir_count_memory(s);
	s->memlimit_bytes = set->memlimit_bytes;
}

/* Drops what is above new limits, the newest packets first, at most LW_MOST_DROPS while it holds the lock. */
static void linkweir_shed(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct sk_buff *to_free;
	u32 q = 0, drops;
	bool more;

	do {
		to_free = NULL;
		sch_tree_lock(sch);
		linkweir_clock(s);
		s->stay = 0;
		for (drops = 0; q < s->view.nqueues && drops < LW_MOST_DROPS;) {
			if (s->queues[q].backlog_pkts <= s->classes[q].limit_pkts &&
			    s->queues[q].backlog_bytes <= s->classes[q].limit_bytes) {
				q++;
				continue;
			}
			linkweir_drop(sch, q, false, LINKWEIR_LIMIT, &to_free);
			drops++;
		}
		if (!drops && linkweir_counts_memory(s) && s->memory_bytes > s->memlimit_bytes)
			linkweir_free_memory(sch, &to_free);
		linkweir_tell_parents(sch);
		more = q < s->view.nqueues || (linkweir_counts_memory(s) && s->memory_bytes > s->memlimit_bytes);
		sch_tree_unlock(sch);
		kfree_skb_list_reason(to_free, SKB_DROP_REASON_QDISC_DROP);
	} while (more);
}

/* ---- what has the size of the number of classes ---- */

struct linkweir_arrays {
	void *state;
	struct lw_queue *queues;
	void *class_memory;
	struct linkweir_class *classes; /* in class_memory */
};

static void linkweir_free_arrays(const struct linkweir_arrays *arrays)
{
	kvfree(arrays->class_memory);
	kvfree(arrays->queues);
	kvfree(arrays->state);
}

static int linkweir_new_arrays(const struct lw_policy *policy, const struct linkweir_settings *set, struct linkweir_arrays *arrays)
{
	u32 q;

	arrays->state = kvzalloc(policy->state_size(set->nclasses, set->params), GFP_KERNEL_ACCOUNT);
	arrays->queues = kvcalloc(set->nclasses, sizeof(*arrays->queues), GFP_KERNEL_ACCOUNT);
	/* kvcalloc() aligns an array less than its elements need */
	arrays->class_memory = kvcalloc(set->nclasses + 1, sizeof(*arrays->classes), GFP_KERNEL_ACCOUNT);
	if (!arrays->state || !arrays->queues || !arrays->class_memory) {
		linkweir_free_arrays(arrays);
		return -ENOMEM;
	}
	arrays->classes = PTR_ALIGN(arrays->class_memory, __alignof__(*arrays->classes));
	for (q = 0; q < set->nclasses; q++) {
		__skb_queue_head_init(&arrays->classes[q].waiting);
		gnet_stats_basic_sync_init(&arrays->classes[q].sent);
	}
	return 0;
}

/* Puts new arrays in place, and gives the old ones. */
static void linkweir_use_arrays(struct linkweir_sched *s, u32 nclasses, struct linkweir_arrays *arrays)
{
	swap(s->state, arrays->state);
	swap(s->queues, arrays->queues);
	swap(s->class_memory, arrays->class_memory);
	swap(s->classes, arrays->classes);
	s->view.queues = s->queues;
	WRITE_ONCE(s->view.nqueues, nclasses);          /* linkweir_named_class reads it without the lock */
}

static void linkweir_add_counters(struct linkweir_counters *sum, const struct linkweir_counters *one)
{
	u32 reason;

	for (reason = 0; reason < LINKWEIR_REASONS; reason++)
		sum->dropped_pkts[reason] += one->dropped_pkts[reason];
	sum->marked_pkts += one->marked_pkts;
	sum->sojourn_ns += one->sojourn_ns;
	sum->sojourn_max_ns = max(sum->sojourn_max_ns, one->sojourn_max_ns);
}

static void linkweir_begin(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	linkweir_clock(s);
	linkweir_trace_channels(sch);
	linkweir_trace_params(sch, s->settings);
	trace_linkweir_configured(sch, s->policy->name, "init", s->view.now_ns, s->view.nqueues);
	s->policy->init(s->state, &s->view, s->settings->params, s->settings->qparams);
}

/* Drops a class's packets of one transmission queue, or all, the newest first, onto a list that is freed when RTNL is released. */
static void linkweir_drop_class(struct Qdisc *sch, u32 q, u32 txq, struct sk_buff **first, struct sk_buff **last)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct sk_buff *skb, *older;
	u32 bytes;

	skb_queue_reverse_walk_safe(&s->classes[q].waiting, skb, older) {
		if (txq != LINKWEIR_ALL_QUEUES && linkweir_cb(skb)->txq != txq)
			continue;
		linkweir_take(sch, q, skb);
		bytes = linkweir_cb(skb)->bytes;
		skb->next = *first;
		*first = skb;
		if (!*last)
			*last = skb;
		s->classes[q].counters.dropped_pkts[LINKWEIR_RESET]++;
		qdisc_qstats_drop(sch);
		trace_linkweir_dropped_reset(sch, q, bytes);
		if (s->policy->dropped)
			s->policy->dropped(s->state, &s->view, q, bytes);
	}
}

/* A packet that parents and qdisc count already. */
static void linkweir_rejoin(struct Qdisc *sch, u32 q, struct sk_buff *skb)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct lw_queue *queue = &s->queues[q];
	u32 bytes = linkweir_cb(skb)->bytes;

	if (!queue->backlog_pkts++) {
		queue->head_arrival_ns = linkweir_cb(skb)->arrival_ns;
		queue->head_bytes = bytes;
	}
	queue->backlog_bytes += bytes;
	__skb_queue_tail(&s->classes[q].waiting, skb);
	trace_linkweir_enqueued(sch, q, bytes);
	if (s->policy->enqueued)
		s->policy->enqueued(s->state, &s->view, q, bytes);
}

/*
 * Another number of classes: packets stay in their classes, and those of classes that are gone are dropped. The policy begins
 * without state, and sees the packets arrive.
 */
static void linkweir_resize(struct Qdisc *sch, struct linkweir_settings *set, struct linkweir_arrays *arrays)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 kept = min(set->nclasses, s->view.nqueues), pkts = sch->q.qlen, bytes = sch->qstats.backlog, q;
	struct sk_buff *first = NULL, *last = NULL, *skb;
	struct linkweir_class *old;

	for (q = kept; q < s->view.nqueues; q++) {
		linkweir_drop_class(sch, q, LINKWEIR_ALL_QUEUES, &first, &last);
		linkweir_add_counters(&s->gone, &s->classes[q].counters);
		s->gone_sent_pkts += u64_stats_read(&s->classes[q].sent.packets);
	}
	rtnl_kfree_skbs(first, last);
	/* at once: if the next departure made us empty first, the parents would be told twice that we are */
	qdisc_tree_reduce_backlog(sch, pkts - sch->q.qlen, bytes - sch->qstats.backlog);
	linkweir_use_arrays(s, set->nclasses, arrays);
	for (q = 0; q < kept; q++) {
		old = &arrays->classes[q];
		s->classes[q].counters = old->counters;
		u64_stats_set(&s->classes[q].sent.bytes, u64_stats_read(&old->sent.bytes));
		u64_stats_set(&s->classes[q].sent.packets, u64_stats_read(&old->sent.packets));
	}
	s->settings = set;
	linkweir_rates(s, set);
	linkweir_begin(sch);
	for (q = 0; q < kept; q++)
		while ((skb = __skb_dequeue(&arrays->classes[q].waiting)))
			linkweir_rejoin(sch, q, skb);
}

/* Puts new settings in force while packets wait; first the rates, then the parameters, as if they had come separately. */
static void linkweir_renew(struct Qdisc *sch, struct linkweir_settings *set)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct lw_policy *policy = s->policy;
	const struct linkweir_settings *old = s->settings;

	if (linkweir_rates_differ(old, set)) {
		linkweir_rates(s, set);
		linkweir_trace_channels(sch);
		trace_linkweir_configured(sch, policy->name, "rated", s->view.now_ns, s->view.nqueues);
		if (policy->rated)
			policy->rated(s->state, &s->view);
	}
	if (memcmp(old->params, set->params, policy->nparams * sizeof(u64)) ||
	    memcmp(old->qparams, set->qparams, array3_size(set->nclasses, policy->nqparams, sizeof(u64)))) {
		linkweir_trace_params(sch, set);
		trace_linkweir_configured(sch, policy->name, "change", s->view.now_ns, s->view.nqueues);
		if (policy->change)
			policy->change(s->state, &s->view, set->params, set->qparams);
	}
	s->settings = set;
}

static int linkweir_apply(struct Qdisc *sch, struct linkweir_settings *set)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct linkweir_settings *old = s->settings;
	struct linkweir_arrays arrays = {};
	int err = old->nclasses != set->nclasses ? linkweir_new_arrays(s->policy, set, &arrays) : 0;

	if (err) {
		kvfree(set);
		return err;
	}
	linkweir_begin_shaping(s, set);
	sch_tree_lock(sch);
	linkweir_clock(s);
	if (arrays.state)
		linkweir_resize(sch, set, &arrays);
	else
		linkweir_renew(sch, set);
	linkweir_limits(s, set);
	linkweir_shape(s, set);
	linkweir_wake(sch, s->view.now_ns);     /* a class that was blocked may now send */
	sch_tree_unlock(sch);
	linkweir_end_shaping(s);
	kvfree(old);                    /* packets are classified under the lock, dumps made under RTNL: nothing reads it now */
	linkweir_free_arrays(&arrays);
	linkweir_shed(sch);
	return 0;
}

static int linkweir_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct linkweir_settings *set = linkweir_parse(sch, opt, extack);
	int err;

	if (IS_ERR(set))
		return PTR_ERR(set);
	err = linkweir_apply(sch, set);
	if (!err)
		linkweir_warn_of_parent(sch, set, extack);
	return err;
}

int linkweir_make(struct Qdisc *sch, const struct lw_policy *policy, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct linkweir_arrays arrays = {};
	struct linkweir_settings *set;
	int err;

	qdisc_watchdog_init(&s->watchdog, sch);         /* first, as destroy runs even if init fails */
	linkweir_compat_late_init(&s->late, sch);
	s->policy = policy;
	err = tcf_block_get(&s->block, &s->filters, sch, extack);
	if (err)
		return err;
	set = linkweir_parse(sch, opt, extack);
	if (IS_ERR(set))
		return PTR_ERR(set);
	s->settings = set;
	err = linkweir_new_arrays(policy, set, &arrays);
	if (err)
		return err;
	linkweir_use_arrays(s, set->nclasses, &arrays);
	sch->flags |= TCQ_F_WARN_NONWC; /* no warning if all waiting packets are of blocked classes */
	sch->flags |= TCQ_F_DEQUEUE_DROPS;
	linkweir_limits(s, set);
	linkweir_rates(s, set);
	linkweir_begin_shaping(s, set);
	linkweir_shape(s, set);
	linkweir_begin(sch);
	linkweir_warn_of_parent(sch, set, extack);
	return 0;
}

static int linkweir_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	return linkweir_make(sch, container_of(sch->ops, struct linkweir_kind, ops)->policy, opt, extack);
}

/*
 * The device lost its carrier or goes down, or a parent empties what is below it: the packets are dropped, and the policy is told
 * so, but it keeps its state. On a fading link that is the moment when credits and histories matter. Until packets come again, the
 * policy sees empty queues, so nothing accrues. Only init() makes a policy begin.
 */
void linkweir_drop_waiting(struct Qdisc *sch, u32 txq)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct sk_buff *first = NULL, *last = NULL;
	u32 q;

	linkweir_clock(s);
	s->stay = 0;
	for (q = 0; q < s->view.nqueues; q++)
		linkweir_drop_class(sch, q, txq, &first, &last);
	rtnl_kfree_skbs(first, last);
}

static void linkweir_reset(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	if (!s->view.nqueues)           /* init failed */
		return;
	linkweir_drop_waiting(sch, LINKWEIR_ALL_QUEUES);
	s->gone_pkts = 0;
	s->gone_bytes = 0;
	linkweir_compat_late_reset(&s->late);
	linkweir_rest_pace(&s->pace);
	qdisc_watchdog_cancel(&s->watchdog);
}

void linkweir_destroy(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	tcf_block_put(s->block);
	qdisc_watchdog_cancel(&s->watchdog);
	linkweir_compat_late_exit(&s->late);
	s->pace.bandwidth_bps = 0;
	s->framed = false;
	s->memlimit_bytes = 0;
	linkweir_end_shaping(s);
	linkweir_free_arrays(&(struct linkweir_arrays){ s->state, s->queues, s->class_memory });
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
	int err;

	if (tca[TCA_RATE]) {
		linkweir_refuse(extack, "est is not for a class: give it to the qdisc");
		return -EOPNOTSUPP;
	}
	if (!*class) {
		linkweir_refuse(extack, "classes are made with the qdisc: give classes there");
		return -EOPNOTSUPP;
	}
	set = linkweir_parse_class(sch, *class - 1, tca[TCA_OPTIONS], extack);
	if (IS_ERR(set))
		return PTR_ERR(set);
	err = linkweir_apply(sch, set);
	if (!err)
		linkweir_warn_of_parent(sch, set, extack);
	return err;
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

/* ---- dump ---- */

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
	u64 sent_pkts, memory_bytes, queue_pkts[LINKWEIR_SHOWN_QUEUES];
	struct linkweir_counters sum;
	u32 q, nqueues = 0;

	sch_tree_lock(sch);
	sum = s->gone;
	sent_pkts = s->gone_sent_pkts;
	for (q = 0; q < s->view.nqueues; q++) {
		linkweir_add_counters(&sum, &s->classes[q].counters);
		sent_pkts += u64_stats_read(&s->classes[q].sent.packets);
	}
	memory_bytes = linkweir_counts_memory(s) ? s->memory_bytes : 0;
	sum.dropped_pkts[LINKWEIR_FILTER] = s->filtered_pkts;
	if (sch->flags & TCQ_F_MQROOT)
		nqueues = linkweir_mq_sent(sch, queue_pkts);
	sch_tree_unlock(sch);
	return linkweir_put_stats(s->policy, &sum, LINKWEIR_REASONS, sent_pkts, memory_bytes, queue_pkts, nqueues, NULL, d);
}

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
	/* `values` has room: loading refuses policies with more statistics */
	if (s->policy->observe)
		s->policy->observe(s->state, &s->view, class - 1, values);
	sch_tree_unlock(sch);
	for (reason = 0; reason < LINKWEIR_CLASS_REASONS; reason++)
		waiting.drops += counters.dropped_pkts[reason];
	if (gnet_stats_copy_basic(d, NULL, &c->sent, true) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &waiting, waiting.qlen) < 0)
		return -1;
	return linkweir_put_stats(s->policy, &counters, LINKWEIR_CLASS_REASONS, sent_pkts, 0, NULL, 0,
				  s->policy->observe ? values : NULL, d);
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

/* common to all kinds; each adds its own packet path */
const struct Qdisc_ops linkweir_ops = {
	.cl_ops = &linkweir_class_ops,
	.priv_size = sizeof(struct linkweir_sched),
	.peek = qdisc_peek_dequeued,
	.init = linkweir_init,
	.reset = linkweir_reset,
	.destroy = linkweir_destroy,
	.change = linkweir_change,
	.dump = linkweir_dump,
	.dump_stats = linkweir_dump_stats,
	.owner = THIS_MODULE,
};

/* Before it is registered. */
void linkweir_prepare(struct linkweir_kind *kind)
{
	kind->ops = linkweir_ops;
	kind->ops.enqueue = kind->enqueue;
	kind->ops.dequeue = kind->dequeue;
	strscpy(kind->ops.id, kind->name, sizeof(kind->ops.id));
}
