/* SPDX-License-Identifier: GPL-2.0-only */
/* classify.h - which class a packet belongs to, and whether it can carry a mark: the short ways of classify.c. */
#ifndef LINKWEIR_CLASSIFY_H
#define LINKWEIR_CLASSIFY_H

#include <linux/ip.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>

#include "linkweir.h"

#define LINKWEIR_TAKEN 0x80000000u      /* instead of a class: a filter has the packet; the rest is what enqueue answers */

int linkweir_dsfield_slow(struct sk_buff *skb);
u32 linkweir_classify_slow(struct sk_buff *skb, struct Qdisc *sch);

/* nearly every packet is IPv4 with its header in the first piece */
static __always_inline bool linkweir_plain(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IP) && skb_network_header(skb) + sizeof(struct iphdr) <= skb_tail_pointer(skb);
}

/* the byte with the code point and the mark of congestion, or -1 when this is no IP packet */
static __always_inline int linkweir_dsfield(struct sk_buff *skb)
{
	return likely(linkweir_plain(skb)) ? ipv4_get_dsfield(ip_hdr(skb)) : linkweir_dsfield_slow(skb);
}

static __always_inline bool linkweir_ecn_capable(struct sk_buff *skb)
{
	int dsfield = linkweir_dsfield(skb);

	return dsfield >= 0 && INET_ECN_is_capable(dsfield);
}

static __always_inline u32 linkweir_by_dsfield(const struct linkweir_settings *set, u8 dsfield)
{
	u32 number = set->number_of[dsfield >> 2];

	return number ? number - 1 : set->default_class;
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
