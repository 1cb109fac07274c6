// SPDX-License-Identifier: GPL-2.0-only
/*
 * classify.c - which class a packet belongs to. The first of these that says so decides: skb->priority, when it is a
 * class of this qdisc; the filters attached to it; its code point (RFC 2474); the default class.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>

#include "linkweir.h"

/* the byte with the code point and the mark of congestion, or -1 when this is no IP packet */
static noinline int linkweir_dsfield_slow(struct sk_buff *skb)
{
	switch (skb_protocol(skb, true)) {
	case htons(ETH_P_IP):
		return pskb_network_may_pull(skb, sizeof(struct iphdr)) ? ipv4_get_dsfield(ip_hdr(skb)) : -1;
	case htons(ETH_P_IPV6):
		return pskb_network_may_pull(skb, sizeof(struct ipv6hdr)) ? ipv6_get_dsfield(ipv6_hdr(skb)) : -1;
	default:
		return -1;
	}
}

/* nearly every packet is IPv4 with its header in the first piece */
static __always_inline bool linkweir_plain(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IP) && skb_network_offset(skb) + sizeof(struct iphdr) <= skb_headlen(skb);
}

static __always_inline int linkweir_dsfield(struct sk_buff *skb)
{
	return likely(linkweir_plain(skb)) ? ipv4_get_dsfield(ip_hdr(skb)) : linkweir_dsfield_slow(skb);
}

bool linkweir_ecn_capable(struct sk_buff *skb)
{
	int dsfield = linkweir_dsfield(skb);

	return dsfield >= 0 && INET_ECN_is_capable(dsfield);
}

/* index of the class of the filters, LW_NONE for none of ours, or LINKWEIR_TAKEN */
static noinline u32 linkweir_filter(struct sk_buff *skb, const struct tcf_proto *filters, u32 nclasses)
{
	struct tcf_result result = {};
	int action = tcf_classify(skb, NULL, filters, &result, false);
	u32 q;

	switch (action) {
#ifdef CONFIG_NET_CLS_ACT
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		return LINKWEIR_TAKEN | NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	case TC_ACT_SHOT:
		return LINKWEIR_TAKEN | NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
#endif
	}
	q = TC_H_MIN(result.classid) - 1;
	if (action >= 0 && q < nclasses)
		return q;
	return LW_NONE;
}

static __always_inline u32 linkweir_by_dsfield(const struct linkweir_settings *set, int dsfield)
{
	if (likely(dsfield >= 0) && set->number_of[dsfield >> 2])
		return set->number_of[dsfield >> 2] - 1;
	return set->default_class;
}

static noinline u32 linkweir_classify_slow(struct sk_buff *skb, struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct linkweir_settings *set = s->settings;
	const struct tcf_proto *filters = rcu_dereference_bh(s->filters);
	u32 q;

	if (TC_H_MAJ(skb->priority) == sch->handle) {
		q = TC_H_MIN(skb->priority) - 1;
		if (q < set->nclasses)
			return q;
	}
	if (filters) {
		q = linkweir_filter(skb, filters, set->nclasses);
		if (q != LW_NONE)
			return q;
	}
	return linkweir_by_dsfield(set, linkweir_dsfield(skb));
}

/* index of the class, or LINKWEIR_TAKEN */
u32 linkweir_classify(struct sk_buff *skb, struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	if (TC_H_MAJ(skb->priority) == sch->handle || rcu_access_pointer(s->filters) || unlikely(!linkweir_plain(skb)))
		return linkweir_classify_slow(skb, sch);
	return linkweir_by_dsfield(s->settings, ipv4_get_dsfield(ip_hdr(skb)));
}
