// SPDX-License-Identifier: GPL-2.0-only
/*
 * classify.c - which class a packet belongs to. The first of these that names a class decides: skb->priority, if it is a
 * class of this qdisc; the filters attached to the qdisc; the code point (RFC 2474); the default class.
 */
#include <linux/ipv6.h>

#include "classify.h"

int linkweir_dsfield_slow(struct sk_buff *skb)
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

bool linkweir_ecn_capable_slow(const struct sk_buff *skb)
{
	const unsigned char *header = skb_network_header(skb), *end = skb_tail_pointer(skb);

	switch (skb_protocol(skb, true)) {
	case htons(ETH_P_IP):
		return header + sizeof(struct iphdr) <= end && INET_ECN_is_capable(ip_hdr(skb)->tos);
	case htons(ETH_P_IPV6):
		return header + sizeof(struct ipv6hdr) <= end && INET_ECN_is_capable(ipv6_get_dsfield(ipv6_hdr(skb)));
	default:
		return false;
	}
}

/* index of the class that the filters choose, LW_NONE if it is none of ours, or LINKWEIR_TAKEN */
static u32 linkweir_filter(struct sk_buff *skb, const struct tcf_proto *filters, u32 nclasses)
{
	struct tcf_result result = {};
	int action = tcf_classify_qdisc(skb, filters, &result, false);
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

/* index of the class that the priority or a filter gives, LW_NONE, or LINKWEIR_TAKEN */
u32 linkweir_named_class(struct sk_buff *skb, struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	const struct tcf_proto *filters = rcu_dereference_bh(s->filters);
	u32 nclasses = READ_ONCE(s->view.nqueues);      /* below pss_mq, without the lock: see linkweir_mq_enqueue */
	u32 q;

	if (TC_H_MAJ(skb->priority) == sch->handle) {
		q = TC_H_MIN(skb->priority) - 1;
		if (q < nclasses)
			return q;
	}
	return filters ? linkweir_filter(skb, filters, nclasses) : LW_NONE;
}

u32 linkweir_classify_slow(struct sk_buff *skb, struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u32 q = linkweir_named_class(skb, sch);
	int dsfield;

	if (q != LW_NONE)
		return q;
	dsfield = linkweir_dsfield(skb);
	return dsfield < 0 ? s->settings->default_class : linkweir_by_dsfield(s->settings, dsfield);
}
