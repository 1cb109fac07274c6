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
#include <net/pkt_cls.h>
#include <net/sch_generic.h>

#ifdef LINKWEIR_HAS_GSO_HEADER
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

/* ---- functions of newer kernels, under their names there ---- */

#ifndef LINKWEIR_HAS_QLEN_INC
static inline void qdisc_qlen_inc(struct Qdisc *q)
{
	WRITE_ONCE(q->q.qlen, q->q.qlen + 1);
}

static inline void qdisc_qlen_dec(struct Qdisc *q)
{
	WRITE_ONCE(q->q.qlen, q->q.qlen - 1);
}
#endif

#ifndef LINKWEIR_HAS_CLASSIFY_QDISC
/* A filter of a qdisc cannot redirect. */
static inline int tcf_classify_qdisc(struct sk_buff *skb, const struct tcf_proto *tp, struct tcf_result *res, bool compat_mode)
{
	int action = tcf_classify(skb, NULL, tp, res, compat_mode);

	return action == TC_ACT_REDIRECT ? TC_ACT_SHOT : action;
}
#endif

/* Kernels without reasons of qdiscs report every drop as one of a qdisc; in enqueue they set this reason before they call us. */
#ifndef LINKWEIR_HAS_QDISC_DROP_REASON
#ifndef LINKWEIR_HAS_DROP_REASON
enum skb_drop_reason { SKB_DROP_REASON_QDISC_DROP };
#define kfree_skb_reason(skb, reason) kfree_skb(skb)
#endif
enum qdisc_drop_reason {
	QDISC_DROP_GENERIC = SKB_DROP_REASON_QDISC_DROP,
	QDISC_DROP_OVERLIMIT = SKB_DROP_REASON_QDISC_DROP,
	QDISC_DROP_CONGESTED = SKB_DROP_REASON_QDISC_DROP,
	QDISC_DROP_BAND_LIMIT = SKB_DROP_REASON_QDISC_DROP
};

static inline void tcf_set_qdisc_drop_reason(const struct sk_buff *skb, enum qdisc_drop_reason reason)
{
}
#endif

/* frees a packet that was dropped in dequeue */
#ifndef LINKWEIR_HAS_DEQUEUE_DROP
#define TCQ_F_DEQUEUE_DROPS 0
static inline void qdisc_dequeue_drop(struct Qdisc *q, struct sk_buff *skb, enum qdisc_drop_reason reason)
{
	kfree_skb_reason(skb, (enum skb_drop_reason)reason);
}
#elif !defined(LINKWEIR_HAS_QDISC_DROP_REASON)
#define qdisc_dequeue_drop(q, skb, reason) qdisc_dequeue_drop(q, skb, (enum skb_drop_reason)(reason))
#endif

/* ---- HTB and empty children ---- */

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

/* ---- names and texts ---- */

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
