/* SPDX-License-Identifier: GPL-2.0-only */
/* linkweir.h - declarations shared by the files of the module. */
#ifndef LINKWEIR_H
#define LINKWEIR_H

#include <linux/skbuff.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <linkweir/policy.h>

#include "compat/compat.h"
#include "linkweir_netlink.h"

/* one qdisc kind: a policy of the core, with the same name or, where that says too little among all qdiscs, lw_ before it */
struct linkweir_kind {
	const char *name;
	struct Qdisc_ops ops;
	const struct lw_policy *policy;
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
};

#define LINKWEIR_KIND(policy, kind) extern struct linkweir_kind linkweir_kind_##policy;
#include "kinds.h"
#undef LINKWEIR_KIND

struct linkweir_class_settings {
	u64 limit_bytes;
	u64 rate_bps;                   /* LW_UNSET: the link's */
	u32 limit_pkts;
};

/* What the user set: replaced as a whole, under RTNL and the qdisc's lock. */
struct linkweir_settings {
	u64 link_bps;                   /* 0: not known */
	u64 *params;                    /* of the policy */
	u64 *qparams;                   /* a row for each class */
	struct linkweir_class_settings *classes;
	u32 nclasses;
	u32 default_class;              /* index */
	u16 number_of[LINKWEIR_CODE_POINTS];    /* class number of a code point; 0: none */
};

enum linkweir_reason {
	LINKWEIR_LIMIT, LINKWEIR_VICTIM, LINKWEIR_EXPIRED, LINKWEIR_LEAVING, LINKWEIR_SPLIT, LINKWEIR_CLASS_REASONS,
	LINKWEIR_FILTER = LINKWEIR_CLASS_REASONS, LINKWEIR_REASONS
};

struct linkweir_counters {
	u64 dropped_pkts[LINKWEIR_REASONS];
	u64 marked_pkts;
	u64 sojourn_ns;                 /* of all packets that left */
	u64 sojourn_max_ns;
};

struct linkweir_class {
	struct sk_buff_head waiting;
	u64 limit_bytes;                /* copied from the settings: read for each packet */
	u32 limit_pkts;
	struct gnet_stats_basic_sync sent;
	struct linkweir_counters counters;
} ____cacheline_aligned;

struct linkweir_sched {
	const struct lw_policy *policy;
	void *state;                    /* of the policy */
	struct lw_view view;
	struct lw_queue *queues;        /* what the view shows */
	struct linkweir_class *classes;
	struct linkweir_settings *settings;
	u64 best_bps;                   /* the largest capacity reported to the policy */
	u32 arriving;                   /* class of the present enqueue, */
	u32 stay;                       /* and how many of its packets are queued, at the tail */
	int gone_pkts;                  /* packets that the parents count but are gone */
	int gone_bytes;
	u64 filtered_pkts;              /* that a filter dropped */
	struct tcf_proto __rcu *filters;
	struct tcf_block *block;
	struct qdisc_watchdog watchdog;
};

static inline u64 linkweir_now_ns(struct Qdisc *sch)
{
	return ((struct linkweir_sched *)qdisc_priv(sch))->view.now_ns;
}

/* in the control block of a queued packet */
struct linkweir_cb {
	u64 arrival_ns;
	u32 bytes;                      /* as the policy sees it */
};

static inline struct linkweir_cb *linkweir_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct linkweir_cb));
	return (struct linkweir_cb *)qdisc_skb_cb(skb)->data;
}

/* ---- the queues and the view ---- */

static __always_inline void linkweir_clock(struct linkweir_sched *s)
{
	s->view.now_ns = ktime_get_ns();        /* monotonic across processors */
}

static __always_inline bool linkweir_has_room(const struct linkweir_class *class, const struct lw_queue *queue, u32 bytes)
{
	return queue->backlog_pkts < class->limit_pkts && queue->backlog_bytes + bytes <= class->limit_bytes;
}

/* takes the head or the tail packet of a queue that is not empty */
static __always_inline struct sk_buff *linkweir_pop(struct Qdisc *sch, u32 q, bool head)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct sk_buff_head *waiting = &s->classes[q].waiting;
	struct lw_queue *queue = &s->queues[q];
	struct sk_buff *skb = head ? waiting->next : waiting->prev, *next;

	__skb_unlink(skb, waiting);
	queue->backlog_bytes -= linkweir_cb(skb)->bytes;
	if (--queue->backlog_pkts) {
		next = waiting->next;
		queue->head_arrival_ns = linkweir_cb(next)->arrival_ns;
		queue->head_bytes = linkweir_cb(next)->bytes;
	}
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	return skb;
}

/* Reports packets that the parents still count but are gone. False if there are none, or they must be reported in a later call. */
static inline bool linkweir_tell_parents(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	if ((!s->gone_pkts && !s->gone_bytes) || !linkweir_compat_may_report(sch))
		return false;
	qdisc_tree_reduce_backlog(sch, s->gone_pkts, s->gone_bytes);
	s->gone_pkts = 0;
	s->gone_bytes = 0;
	return true;
}

/* drop.c */
void linkweir_drop(struct Qdisc *sch, u32 q, bool head, enum linkweir_reason reason, struct sk_buff **to_free);
bool linkweir_make_room(struct Qdisc *sch, u32 q, struct sk_buff *skb, u32 bytes, struct sk_buff **to_free);
bool linkweir_drop_victim(struct Qdisc *sch, u32 victim, struct sk_buff **to_free);
void linkweir_mark(struct linkweir_class *class, struct sk_buff *skb);

/* qdisc.c */
struct sk_buff *linkweir_rest(struct Qdisc *sch, u32 q, u64 retry_ns);

/* netlink.c */
struct linkweir_settings *linkweir_parse(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack);
struct linkweir_settings *linkweir_parse_class(struct Qdisc *sch, u32 q, struct nlattr *opt,
					       struct netlink_ext_ack *extack);
int linkweir_put(struct Qdisc *sch, struct sk_buff *skb);
int linkweir_put_class(struct Qdisc *sch, u32 q, struct sk_buff *skb);
int linkweir_put_stats(const struct lw_policy *policy, const struct linkweir_counters *counters, u32 nreasons, u64 sent_pkts,
		       const s64 *values, struct gnet_dump *d);

/* all kinds of the module; linkweir_selftest replays their vectors */
extern struct linkweir_kind *const linkweir_kinds[];
extern const u32 linkweir_nkinds;

#endif
