/* SPDX-License-Identifier: GPL-2.0-only */
/* linkweir.h - declarations shared by the files of the module. */
#ifndef LINKWEIR_H
#define LINKWEIR_H

#include <linux/jump_label.h>
#include <linux/skbuff.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <linkweir/math.h>
#include <linkweir/policy.h>

#include "compat/compat.h"
#include "linkweir_netlink.h"

/* one qdisc kind: a policy of the core, with the same name or lw_NAME */
struct linkweir_kind {
	const char *name;
	struct Qdisc_ops ops;
	const struct lw_policy *policy;
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
};

#define LINKWEIR_KIND(name) extern struct linkweir_kind linkweir_kind_##name;
#include "kinds.h"
#undef LINKWEIR_KIND

/* the kind NAME_mq of a policy: one scheduler for all transmission queues of a device (mq.c) */
struct linkweir_mq_kind {
	struct Qdisc_ops ops;           /* of the root */
	struct Qdisc_ops queue_ops;     /* of the qdisc of each transmission queue */
	const struct lw_policy *policy;
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *queue, struct sk_buff **to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *queue);
};

#define LINKWEIR_KIND(name) extern struct linkweir_mq_kind linkweir_mq_kind_##name;
#include "mq_kinds.h"
#undef LINKWEIR_KIND

struct linkweir_class_settings {
	u64 limit_bytes;
	u64 rate_bps;                   /* LW_UNSET: the link's */
	u32 limit_pkts;
};

/* How long a packet is on the link, as for cake. */
struct linkweir_framing {
	s32 overhead;                   /* bytes beyond the network layer's; LINKWEIR_RAW: the link header counts as it is */
	u32 mpu;                        /* least bytes */
	u32 cells;                      /* LINKWEIR_NOATM, LINKWEIR_ATM or LINKWEIR_PTM */
};

/* What the user set: replaced as a whole, under RTNL and the qdisc's lock. */
struct linkweir_settings {
	u64 link_bps;                   /* 0: not known */
	u64 bandwidth_bps;              /* 0: packets leave as fast as the parent takes them */
	u64 memlimit_bytes;             /* 0: none */
	struct linkweir_framing framing;
	bool whole;                     /* super-packets are not split */
	u64 *params;                    /* of the policy */
	u64 *qparams;                   /* a row for each class */
	struct linkweir_class_settings *classes;
	u32 nclasses;
	u32 default_class;              /* index */
	u16 number_of[LINKWEIR_CODE_POINTS];    /* class number of a code point; 0: none */
	u16 class_of[LINKWEIR_CODE_POINTS];     /* index, computed from number_of and default_class */
};

enum linkweir_reason {
	LINKWEIR_LIMIT, LINKWEIR_VICTIM, LINKWEIR_EXPIRED, LINKWEIR_LEAVING, LINKWEIR_SPLIT, LINKWEIR_RESET, LINKWEIR_MEMORY,
	LINKWEIR_CLASS_REASONS,
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

/*
 * When the link is free for the next packet. A packet occupies it for its bits at the bandwidth. The timer is always a little late,
 * so while packets wait the next one begins where the last one ended. Making good more than LINKWEIR_LATE_NS at once would be a burst
 * that queues below us, in front of urgent packets. The rest becomes a debt: packets occupy the link a little shorter until it is paid.
 */
struct linkweir_pace {
	u64 bandwidth_bps;              /* 0: off */
	struct lw_pace of;
	u64 free_ns;
	u64 frac;                       /* of a nanosecond, in 2^-shift, that the last packet ended later */
	u64 owed_ns;
	bool busy;                      /* packets have waited since the link was free */
};

#define LINKWEIR_LATE_NS 1000000ull     /* how late a packet may be and still begin where the one before it ended */
#define LINKWEIR_OWED_NS 10000000ull    /* greatest debt */
#define LINKWEIR_SHORTER 7              /* a packet is at most 1/128 shorter while there is a debt */

struct linkweir_sched {
	const struct lw_policy *policy;
	void *state;                    /* of the policy */
	struct lw_view view;
	struct lw_queue *queues;        /* what the view shows */
	struct linkweir_class *classes; /* aligned, in: */
	void *class_memory;
	struct linkweir_settings *settings;
	struct linkweir_pace pace;
	struct linkweir_framing framing;        /* copied from the settings, likewise: */
	bool framed;                            /* it matters */
	bool whole;                             /* copied, too */
	u64 memlimit_bytes;
	u64 memory_bytes;                       /* used by waiting packets, while there is a limit */
	struct linkweir_counters gone;          /* of classes that are no more */
	u64 gone_sent_pkts;
	bool shapes;                            /* counted in linkweir_shaping, */
	bool limits_memory;                     /* and in linkweir_limiting_memory */
	u64 best_bps;                   /* the largest capacity reported to the policy */
	u32 arriving;                   /* class of the present enqueue, */
	u32 stay;                       /* and how many of its packets are queued, at the tail */
	int gone_pkts;                  /* packets that the parents count but are gone; 0 while the lock is free */
	int gone_bytes;
	struct linkweir_compat_late late;
	u64 filtered_pkts;              /* that a filter dropped */
	struct tcf_proto __rcu *filters;
	struct tcf_block *block;
	struct qdisc_watchdog watchdog;
};

/*
 * A kind NAME_mq. The root has the scheduler and all waiting packets, under its own lock, which sch_tree_lock() takes. The qdiscs of
 * the transmission queues have no packets, but pass those of their queue in and out.
 */
struct linkweir_mq {
	struct linkweir_sched sched;    /* first: all other files know only this */
	struct Qdisc **queues;          /* of each transmission queue; NULL: gone */
	u32 nqueues;
	bool attached;                  /* the queues belong to the device, and each has a reference to the root */
};

struct linkweir_mq_queue {
	struct Qdisc *root;
	u32 index;
	u64 sent_pkts;
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
	u32 txq;                        /* index of the transmission queue; of the kinds NAME_mq only */
};

static inline struct linkweir_cb *linkweir_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct linkweir_cb));
	return (struct linkweir_cb *)qdisc_skb_cb(skb)->data;
}

/* Some qdisc has a bandwidth or framing, or a memlimit; while none has, each question costs the packet path one instruction. */
DECLARE_STATIC_KEY_FALSE(linkweir_shaping);
DECLARE_STATIC_KEY_FALSE(linkweir_limiting_memory);

/* ---- the queues and the view ---- */

static __always_inline void linkweir_clock(struct linkweir_sched *s)
{
	s->view.now_ns = ktime_get_ns();        /* monotonic across processors */
}

static __always_inline bool linkweir_has_room(const struct linkweir_class *class, const struct lw_queue *queue, u32 bytes)
{
	return queue->backlog_pkts < class->limit_pkts && queue->backlog_bytes + bytes <= class->limit_bytes;
}

static __always_inline bool linkweir_counts_memory(const struct linkweir_sched *s)
{
	return static_branch_unlikely(&linkweir_limiting_memory) && s->memlimit_bytes;
}

static __always_inline void linkweir_take(struct Qdisc *sch, u32 q, struct sk_buff *skb)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct sk_buff_head *waiting = &s->classes[q].waiting;
	struct lw_queue *queue = &s->queues[q];
	struct sk_buff *next;

	__skb_unlink(skb, waiting);
	if (linkweir_counts_memory(s))
		s->memory_bytes -= skb->truesize;
	queue->backlog_bytes -= linkweir_cb(skb)->bytes;
	if (--queue->backlog_pkts) {
		next = waiting->next;
		queue->head_arrival_ns = linkweir_cb(next)->arrival_ns;
		queue->head_bytes = linkweir_cb(next)->bytes;
	}
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_qlen_dec(sch);
}

/* takes the head or the tail packet of a queue that is not empty */
static __always_inline struct sk_buff *linkweir_pop(struct Qdisc *sch, u32 q, bool head)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	struct sk_buff *skb = head ? s->classes[q].waiting.next : s->classes[q].waiting.prev;

	linkweir_take(sch, q, skb);
	return skb;
}

/* Reports packets that the parents still count but are gone. False if there are none, or they must be reported later. */
static inline bool linkweir_tell_parents(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	int pkts = s->gone_pkts, bytes = s->gone_bytes;

	if (!pkts && !bytes)
		return false;
	s->gone_pkts = 0;
	s->gone_bytes = 0;
	if (!linkweir_compat_may_report(sch)) {
		linkweir_compat_later(&s->late, pkts, bytes);
		return false;
	}
	qdisc_tree_reduce_backlog(sch, pkts, bytes);
	return true;
}

/* ---- the shaper ---- */

static __always_inline bool linkweir_is_framed(const struct linkweir_sched *s)
{
	return static_branch_unlikely(&linkweir_shaping) && s->framed;
}

static __always_inline bool linkweir_is_paced(const struct linkweir_sched *s)
{
	return static_branch_unlikely(&linkweir_shaping) && s->pace.bandwidth_bps;
}

static __always_inline bool linkweir_must_wait(const struct linkweir_sched *s)
{
	return linkweir_is_paced(s) && s->pace.free_ns > s->view.now_ns;
}

/* The link carries these bytes from now on, or from when it was free if packets have waited since; `more`: packets wait for their end. */
static __always_inline void linkweir_occupy(struct linkweir_sched *s, u32 bytes, bool more)
{
	struct linkweir_pace *pace = &s->pace;
	u64 begin_ns = s->view.now_ns, work, long_ns, shorter_ns;

	if (pace->busy && pace->free_ns + LINKWEIR_LATE_NS < begin_ns) {
		pace->owed_ns = min(pace->owed_ns + begin_ns - LINKWEIR_LATE_NS - pace->free_ns, LINKWEIR_OWED_NS);
		begin_ns -= LINKWEIR_LATE_NS;
	} else if (pace->busy) {
		begin_ns = pace->free_ns;
	}
	work = bytes * pace->of.mult + pace->frac;
	long_ns = work >> pace->of.shift;
	pace->frac = work & ((1ull << pace->of.shift) - 1);
	shorter_ns = min(pace->owed_ns, long_ns >> LINKWEIR_SHORTER);
	pace->owed_ns -= shorter_ns;
	pace->free_ns = begin_ns + long_ns - shorter_ns;
	pace->busy = more;
}

/* No packet waits, or none may be sent: the next begins when it comes, and nothing is made good. */
static inline void linkweir_rest_pace(struct linkweir_pace *pace)
{
	pace->busy = false;
	pace->owed_ns = 0;
}

/* shaper.c */
struct sk_buff *linkweir_wait(struct Qdisc *sch);
void linkweir_set_bandwidth(struct linkweir_sched *s, u64 bandwidth_bps);
u32 linkweir_framed_bytes(const struct linkweir_framing *framing, const struct sk_buff *skb);
void linkweir_warn_of_parent(struct Qdisc *sch, const struct linkweir_settings *set, struct netlink_ext_ack *extack);

/* drop.c */
void linkweir_drop(struct Qdisc *sch, u32 q, bool head, enum linkweir_reason reason, struct sk_buff **to_free);
bool linkweir_make_room(struct Qdisc *sch, u32 q, struct sk_buff *skb, u32 bytes, struct sk_buff **to_free);
void linkweir_free_memory(struct Qdisc *sch, struct sk_buff **to_free);
bool linkweir_drop_victim(struct Qdisc *sch, u32 victim, struct sk_buff **to_free);
void linkweir_mark(struct linkweir_class *class, struct sk_buff *skb);

/* qdisc.c */
void linkweir_record_enqueued(struct Qdisc *sch, u32 q, u32 bytes);
void linkweir_record_sent(struct Qdisc *sch, u32 q, u32 bytes);
void linkweir_record_pick(struct Qdisc *sch, u32 q);
void linkweir_record_verdict(struct Qdisc *sch, u32 q, enum lw_verdict verdict, bool ecn);
extern const struct Qdisc_ops linkweir_ops;
struct sk_buff *linkweir_rest(struct Qdisc *sch, u32 q, u64 retry_ns);
int linkweir_make(struct Qdisc *sch, const struct lw_policy *policy, struct nlattr *opt, struct netlink_ext_ack *extack);
void linkweir_drop_waiting(struct Qdisc *sch, u32 txq);
void linkweir_destroy(struct Qdisc *sch);
#define LINKWEIR_MAX_STATS 16           /* of a policy */
void linkweir_prepare(struct linkweir_kind *kind);

/* mq.c */
int linkweir_mq_prepare(struct linkweir_mq_kind *kind);

/* mq_turn.c */
#define LINKWEIR_SHOWN_QUEUES 32        /* of which the packets sent are shown */
#define LINKWEIR_ALL_QUEUES U32_MAX     /* instead of a transmission queue */
struct netdev_queue *linkweir_mq_txq(struct Qdisc *sch, u32 index);
u32 linkweir_mq_sent(struct Qdisc *sch, u64 *pkts);
void linkweir_mq_next(struct Qdisc *sch, u32 q, const struct linkweir_mq_queue *running);
void linkweir_mq_wake(struct Qdisc *sch, u64 at_ns);

/* netlink.c */
struct linkweir_settings *linkweir_parse(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack);
struct linkweir_settings *linkweir_parse_class(struct Qdisc *sch, u32 q, struct nlattr *opt,
					       struct netlink_ext_ack *extack);
int linkweir_put(struct Qdisc *sch, struct sk_buff *skb);
int linkweir_put_class(struct Qdisc *sch, u32 q, struct sk_buff *skb);
int linkweir_put_stats(const struct lw_policy *policy, const struct linkweir_counters *counters, u32 nreasons, u64 sent_pkts,
		       u64 memory_bytes, const u64 *queue_pkts, u32 nqueues, const s64 *values, struct gnet_dump *d);

#endif
