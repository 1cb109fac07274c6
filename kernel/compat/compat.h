/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compat.h - differences between kernel versions, and nowhere else. Each is found by what the headers have (Kbuild asks
 * them), since point releases carry later changes back.
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

/* A packet of its own, from a larger one: its length, and where a kernel counts them, that it is one. */
static inline void linkweir_compat_segment(struct sk_buff *skb)
{
	qdisc_skb_cb(skb)->pkt_len = skb->len;
#ifdef LINKWEIR_HAS_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

/* Frees a packet that was dropped in dequeue, and says why to those who watch. In enqueue, to_free, the kernel does both. */
static inline void linkweir_compat_drop(struct sk_buff *skb)
{
#ifdef LINKWEIR_HAS_DROP_REASON
	kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
#else
	kfree_skb(skb);
#endif
}

/*
 * May parents be told that we became empty, from inside of their dequeue? An HTB that has no other class with packets ran into a
 * BUG_ON then, until "Return NULL when htb_lookup_leaf encounters an empty rbtree". Its source is not among the headers, so versions
 * decide. Below such an HTB the parents are told in a later call, when something waits again; below others at once, since they
 * take us out of their turns then.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 147) || \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 100)) || \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 40)) || \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 8))
#define LINKWEIR_HTB_FEARS_EMPTY_ROWS
#endif
#ifdef LINKWEIR_HTB_FEARS_EMPTY_ROWS
bool linkweir_compat_may_tell(struct Qdisc *sch);
#else
static inline bool linkweir_compat_may_tell(struct Qdisc *sch)
{
	return true;
}
#endif

/* tc asks for a module by one or the other name */
#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id) MODULE_ALIAS("sch_" id)
#endif

/* Why a request is refused. */
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
