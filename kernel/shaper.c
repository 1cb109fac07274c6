// SPDX-License-Identifier: GPL-2.0-only
/*
 * shaper.c - the rare parts of pacing: waiting for the link, a new bandwidth, lengths on the link, and the shaper of a parent.
 *
 * Lengths on the link have cake's meaning: `overhead` replaces what lies in front of the network header, `mpu` is the least length,
 * and `atm` or `ptm` add what the cells of a DSL line cost.
 */
#include <net/netlink.h>
#include <uapi/linux/pkt_sched.h>

#include "linkweir.h"

/* The link still carries the last packet. */
struct sk_buff *linkweir_wait(struct Qdisc *sch)
{
	struct linkweir_sched *s = qdisc_priv(sch);

	if (!sch->q.qlen)
		return NULL;
	s->pace.busy = true;
	qdisc_qstats_overlimit(sch);
	qdisc_watchdog_schedule_ns(&s->watchdog, s->pace.free_ns);
	return NULL;
}

/* What is left of the packet on the link now takes the time that its bits need at the new bandwidth. */
void linkweir_set_bandwidth(struct linkweir_sched *s, u64 bandwidth_bps)
{
	struct linkweir_pace *pace = &s->pace;
	u64 now_ns = s->view.now_ns, left_ns;

	if (pace->bandwidth_bps == bandwidth_bps)
		return;
	if (pace->bandwidth_bps && bandwidth_bps && pace->free_ns > now_ns) {
		left_ns = lw_mul_div(pace->free_ns - now_ns, pace->bandwidth_bps, bandwidth_bps);
		pace->free_ns = now_ns + min(left_ns, LW_MAX_NOW_NS);
	}
	pace->bandwidth_bps = bandwidth_bps;
	pace->of = lw_pace_of(bandwidth_bps);
	pace->frac = 0;
}

u32 linkweir_framed_bytes(const struct linkweir_framing *framing, const struct sk_buff *skb)
{
	s64 bytes = qdisc_pkt_len(skb);

	if (framing->overhead != LINKWEIR_RAW)
		bytes += framing->overhead - skb_network_offset(skb);
	bytes = max3(bytes, (s64)framing->mpu, (s64)1);
	bytes = min(bytes, (s64)LW_MAX_PACKET_BYTES);
	switch (framing->cells) {
	case LINKWEIR_ATM:
		return DIV_ROUND_UP((u32)bytes, 48) * 53;
	case LINKWEIR_PTM:
		return bytes + DIV_ROUND_UP((u32)bytes, 64);
	default:
		return bytes;
	}
}

/* ---- the shaper of a parent ---- */

static struct Qdisc *linkweir_parent(struct Qdisc *sch)
{
	u32 handle = TC_H_MAJ(sch->parent);
	struct net_device *dev = qdisc_dev(sch);
	struct Qdisc *q = rtnl_dereference(dev->qdisc);

	if (!sch->parent || sch->parent == TC_H_ROOT)
		return NULL;
	if (q && q->handle == handle)
		return q;
	hash_for_each_possible(dev->qdisc_hash, q, hash, handle)
		if (q->handle == handle)
			return q;
	return NULL;
}

/* Reads the rates of an HTB class from what it shows to tc; its structures are not for modules. */
static bool linkweir_htb_rates(struct Qdisc *htb, u32 classid, u64 *rate_bps, u64 *ceil_bps)
{
	const struct Qdisc_class_ops *ops = htb->ops->cl_ops;
	struct nlattr *tb[TCA_HTB_MAX + 1], *options;
	const struct tc_htb_opt *opt;
	struct tcmsg tcm = {};
	struct sk_buff *skb;
	unsigned long class;
	bool found = false;

	class = ops->find(htb, classid);
	skb = class ? nlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL) : NULL;
	if (!skb)
		return false;
	if (ops->dump(htb, class, skb, &tcm) >= 0) {
		options = nla_find((struct nlattr *)skb->data, skb->len, TCA_OPTIONS);
		if (options && !nla_parse_nested_deprecated(tb, TCA_HTB_MAX, options, NULL, NULL) && tb[TCA_HTB_PARMS] &&
		    nla_len(tb[TCA_HTB_PARMS]) >= sizeof(*opt)) {
			opt = nla_data(tb[TCA_HTB_PARMS]);
			*rate_bps = 8 * (tb[TCA_HTB_RATE64] ? nla_get_u64(tb[TCA_HTB_RATE64]) : opt->rate.rate);
			*ceil_bps = 8 * (tb[TCA_HTB_CEIL64] ? nla_get_u64(tb[TCA_HTB_CEIL64]) : opt->ceil.rate);
			found = true;
		}
	}
	kfree_skb(skb);
	return found;
}

/* `link` must be what the HTB class above sends. It is not refused, because the two are changed one after the other. */
void linkweir_warn_of_parent(struct Qdisc *sch, const struct linkweir_settings *set, struct netlink_ext_ack *extack)
{
	struct Qdisc *parent = linkweir_parent(sch);
	u64 rate_bps, ceil_bps, link_bps = set->link_bps;

	if (!parent || !set->link_bps || strcmp(parent->ops->id, "htb") ||
	    !linkweir_htb_rates(parent, sch->parent, &rate_bps, &ceil_bps))
		return;
	if (set->bandwidth_bps && set->bandwidth_bps <= ceil_bps)
		return;                 /* we are the bottleneck */
	/* HTB counts bytes, so up to 7 bit/s are lost */
	if (link_bps < rate_bps || link_bps > ceil_bps + 7)
		linkweir_refuse(extack, "link is not the rate of the htb class above: change that one, too");
}
