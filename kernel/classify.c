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
static int linkweir_dsfield(struct sk_buff *skb)
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

bool linkweir_ecn_capable(struct sk_buff *skb)
{
	int dsfield = linkweir_dsfield(skb);

	return dsfield >= 0 && INET_ECN_is_capable(dsfield);
}

/* index of the class, or LW_NONE when a filter took or dropped the packet: *verdict is what enqueue answers then */
u32 linkweir_classify(struct sk_buff *skb, struct Qdisc *sch, int *verdict)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct linkweir_settings *set = s->settings;
	struct tcf_proto *filters = rcu_dereference_bh(s->filters);
	u32 q = TC_H_MIN(skb->priority) - 1;
	int dsfield;

	if (TC_H_MAJ(skb->priority) == sch->handle && q < set->nclasses)
		return q;
	if (filters) {
		struct tcf_result result = {};
		int action = tcf_classify(skb, NULL, filters, &result, false);

		*verdict = NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
		switch (action) {
#ifdef CONFIG_NET_CLS_ACT
		case TC_ACT_STOLEN:
		case TC_ACT_QUEUED:
		case TC_ACT_TRAP:
			*verdict = NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
			fallthrough;
		case TC_ACT_SHOT:
			return LW_NONE;
#endif
		}
		q = TC_H_MIN(result.classid) - 1;
		if (action >= 0 && q < set->nclasses)
			return q;
	}
	dsfield = linkweir_dsfield(skb);
	if (dsfield >= 0 && set->number_of[dsfield >> 2])
		return set->number_of[dsfield >> 2] - 1;
	return set->default_class;
}
