/* SPDX-License-Identifier: GPL-2.0-only */
/* classify.h - which class a packet belongs to, and whether it can carry a mark: the fast paths of classify.c. */
#ifndef LINKWEIR_CLASSIFY_H
#define LINKWEIR_CLASSIFY_H

#include <linux/ip.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>

#include "linkweir.h"

#define LINKWEIR_TAKEN 0x80000000u      /* instead of a class: a filter took the packet; the other bits are what enqueue returns */

int linkweir_dsfield_slow(struct sk_buff *skb);
bool __pure linkweir_ecn_capable_slow(const struct sk_buff *skb);
u32 linkweir_named_class(struct sk_buff *skb, struct Qdisc *sch);
u32 linkweir_classify_slow(struct sk_buff *skb, struct Qdisc *sch);

/* IPv4 with its header in the linear part, as nearly every packet is */
static __always_inline bool linkweir_plain(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IP) && skb_network_header(skb) + sizeof(struct iphdr) <= skb_tail_pointer(skb);
}

/* the byte with code point and ECN bits, or -1 if this is not an IP packet */
static __always_inline int linkweir_dsfield(struct sk_buff *skb)
{
	return likely(linkweir_plain(skb)) ? ipv4_get_dsfield(ip_hdr(skb)) : linkweir_dsfield_slow(skb);
}

/* Can INET_ECN_set_ce() mark it? Only reads; `__pure`, so that an unused call is left out. */
static __always_inline bool linkweir_ecn_capable(const struct sk_buff *skb)
{
	return likely(linkweir_plain(skb)) ? INET_ECN_is_capable(ip_hdr(skb)->tos) : linkweir_ecn_capable_slow(skb);
}

static __always_inline u32 linkweir_by_dsfield(const struct linkweir_settings *set, u32 dsfield)
{
	return set->class_of[dsfield >> 2];
}

/* index of the class, or LINKWEIR_TAKEN */
static __always_inline u32 linkweir_classify(struct sk_buff *skb, struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	if (TC_H_MAJ(skb->priority) == sch->handle || rcu_access_pointer(s->filters) || unlikely(!linkweir_plain(skb)))
		return linkweir_classify_slow(skb, sch);
	return linkweir_by_dsfield(s->settings, ipv4_get_dsfield(ip_hdr(skb)));
}

#endif
