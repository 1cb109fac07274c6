/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compat.h - all differences between kernel versions. Kbuild finds them by looking into the headers, since point releases contain
 * backports; versions are compared only where the headers show nothing.
 */
#ifndef LINKWEIR_COMPAT_H
#define LINKWEIR_COMPAT_H

#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/version.h>
#include <net/sch_generic.h>

#if __has_include(<net/gso.h>)
#include <net/gso.h>
#endif

/* Makes a segment of a super-packet a packet of its own: its length and, if the kernel counts segments, their number. */
static inline void linkweir_compat_segment(struct sk_buff *skb)
{
	qdisc_skb_cb(skb)->pkt_len = skb->len;
#ifdef LINKWEIR_HAS_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

/* Frees a packet that was dropped in dequeue, with a reason for drop monitors. In enqueue the kernel does this for to_free. */
static inline void linkweir_compat_drop(struct sk_buff *skb)
{
#ifdef LINKWEIR_HAS_DROP_REASON
	kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
#else
	kfree_skb(skb);
#endif
}

/*
 * May we report to the parents from inside their dequeue that we became empty? Until the fix "Return NULL when htb_lookup_leaf
 * encounters an empty rbtree" an HTB without another backlogged class ran into a BUG_ON then. The headers do not show the fix, so
 * versions decide. Below other parents we report at once, so that they take us out of their lists. Below such an HTB the packets
 * that are gone stay in our own counters until they are reported: our counters and the parents' then agree at any time, also if a
 * reset or another qdisc comes in between. They are reported with the next packet that arrives, or by a work item, outside of dequeue.
 * The suite defines LINKWEIR_HTB_FAILS_ON_EMPTY to test this on a kernel that has the fix.
 */
#if !defined(LINKWEIR_HTB_FAILS_ON_EMPTY) && (LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 147) || \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 100)) || \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 40)) || \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 8)))
#define LINKWEIR_HTB_FAILS_ON_EMPTY
#endif
#ifdef LINKWEIR_HTB_FAILS_ON_EMPTY
#include <linux/workqueue.h>

struct linkweir_compat_late {
	struct delayed_work work;
	struct Qdisc *sch;
	int pkts, bytes;                /* gone, but still in our counters and the parents' */
};

bool linkweir_compat_may_report(struct Qdisc *sch);
void linkweir_compat_late_init(struct linkweir_compat_late *late, struct Qdisc *sch);
void linkweir_compat_later(struct linkweir_compat_late *late, int pkts, int bytes);
void linkweir_compat_settle(struct linkweir_compat_late *late);
void linkweir_compat_late_exit(struct linkweir_compat_late *late);

static inline void linkweir_compat_late_reset(struct linkweir_compat_late *late)
{
	late->pkts = 0;
	late->bytes = 0;
}

/* At the end of enqueue: with a packet that waits, no parent learns that we are empty. */
static __always_inline void linkweir_compat_arrived(struct linkweir_compat_late *late)
{
	if (unlikely(late->pkts) && late->sch->q.qlen > late->pkts)
		linkweir_compat_settle(late);
}
#else
struct linkweir_compat_late {
};

static inline bool linkweir_compat_may_report(struct Qdisc *sch)
{
	return true;
}

static inline void linkweir_compat_late_init(struct linkweir_compat_late *late, struct Qdisc *sch)
{
}

static inline void linkweir_compat_later(struct linkweir_compat_late *late, int pkts, int bytes)
{
}

static inline void linkweir_compat_late_exit(struct linkweir_compat_late *late)
{
}

static inline void linkweir_compat_late_reset(struct linkweir_compat_late *late)
{
}

static inline void linkweir_compat_arrived(struct linkweir_compat_late *late)
{
}
#endif

/* kernels load a qdisc's module by the name sch_KIND, newer ones by net-sch-KIND */
#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id) MODULE_ALIAS("sch_" id)
#endif

/* The text of a refusal. */
#define LINKWEIR_MAX_REFUSAL 79         /* characters */
#ifdef NL_SET_ERR_MSG_FMT
#define linkweir_refuse(extack, fmt, args...) NL_SET_ERR_MSG_FMT(extack, fmt, ##args)
static inline void linkweir_compat_exit(void)
{
}
#else
__printf(2, 3) void linkweir_refuse(struct netlink_ext_ack *extack, const char *fmt, ...);
void linkweir_compat_exit(void);
#endif

#endif
