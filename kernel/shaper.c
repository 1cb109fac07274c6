// SPDX-License-Identifier: GPL-2.0-only
/*
 * shaper.c - the rare parts of pacing: waiting for the link, a new bandwidth, lengths on the link, and the shaper of a parent.
 *
 * Lengths on the link have cake's meaning: `overhead` replaces what lies in front of the network header, `mpu` is the least length,
 * and `atm` or `ptm` add what the cells of a DSL line cost.
 */
#include <linux/tcp.h>
#include <linux/udp.h>
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

/* What is left of the packet on the link now takes the time that its bits need at the new bandwidth: none, if there is none. */
void linkweir_set_bandwidth(struct linkweir_sched *s, u64 bandwidth_bps)
{
	struct linkweir_pace *pace = &s->pace;
	u64 now_ns = s->view.now_ns, left_ns;

	if (pace->bandwidth_bps == bandwidth_bps)
		return;
	if (!pace->bandwidth_bps || !bandwidth_bps) {
		pace->free_ns = now_ns;
		linkweir_rest_pace(pace);
	} else if (pace->free_ns > now_ns) {
		left_ns = lw_mul_div(pace->free_ns - now_ns, pace->bandwidth_bps, bandwidth_bps);
		pace->free_ns = now_ns + min(left_ns, LW_MAX_NOW_NS);
	}
	pace->bandwidth_bps = bandwidth_bps;
	pace->of = lw_pace_of(bandwidth_bps);
	pace->frac = 0;
}

/* `offset`: of the network header */
static u32 linkweir_frame(const struct linkweir_framing *framing, s64 bytes, int offset)
{
	if (framing->overhead != LINKWEIR_RAW)
		bytes += framing->overhead - offset;
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

/* bytes of headers that each frame of a super-packet has, as qdisc_pkt_len_init() counts them */
static u32 linkweir_header_bytes(const struct sk_buff *skb)
{
	int offset = skb->encapsulation ? skb_inner_transport_offset(skb) : skb_transport_offset(skb);
	const struct tcphdr *header;
	struct tcphdr copy;

	if (!(skb_shinfo(skb)->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)))
		return offset + sizeof(struct udphdr);
	header = skb_header_pointer(skb, offset, sizeof(copy), &copy);
	return offset + (header ? __tcp_hdrlen(header) : 0);
}

/*
 * A super-packet that stays whole is several frames: all of one length, but for the last. Their number is computed, as that of a packet
 * socket or a virtual machine has none with it. SCTP has frames of any length, which are taken for equal.
 */
u32 linkweir_framed_bytes(const struct linkweir_framing *framing, const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	int offset = skb_network_offset(skb);
	u32 headers, data, each, frames;

	if (!skb_is_gso(skb))
		return linkweir_frame(framing, qdisc_pkt_len(skb), offset);
	headers = min(linkweir_header_bytes(skb), skb->len - 1);
	data = skb->len - headers;
	each = info->gso_size == GSO_BY_FRAGS ? DIV_ROUND_UP(data, max_t(u32, info->gso_segs, 1)) : info->gso_size;
	frames = DIV_ROUND_UP(data, each);
	return (frames - 1) * linkweir_frame(framing, (s64)headers + each, offset) +
	       linkweir_frame(framing, (s64)headers + data - (s64)(frames - 1) * each, offset);
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
static void linkweir_warn_of_htb(struct Qdisc *htb, u32 classid, const struct linkweir_settings *set, struct netlink_ext_ack *extack)
{
	u64 rate_bps, ceil_bps, link_bps = set->link_bps;

	if (!set->link_bps || !linkweir_htb_rates(htb, classid, &rate_bps, &ceil_bps))
		return;
	if (set->bandwidth_bps && set->bandwidth_bps <= ceil_bps)
		return;                 /* we are the bottleneck */
	/* HTB counts bytes, so up to 7 bit/s are lost */
	if (link_bps < rate_bps || link_bps > ceil_bps + 7)
		linkweir_refuse(extack, "link is not the rate of the htb class above: change that one, too");
}

static const u64 *linkweir_row_value(const struct lw_policy *policy, const u64 *row, const char *name)
{
	u32 i;

	for (i = 0; i < policy->nqparams; i++)
		if (!strcmp(policy->qparams[i].name, name))
			return &row[i];
	return NULL;
}

/* bit/s that the classes of pss reserve of `link_bps` */
static u64 linkweir_reserved_bps(const struct lw_policy *policy, const struct linkweir_settings *set, u64 link_bps)
{
	u64 sum_bps = 0;
	u32 q;

	for (q = 0; q < set->nclasses; q++) {
		const u64 *row = set->qparams + q * policy->nqparams;
		const u64 *rate_bps = linkweir_row_value(policy, row, "rate"), *share_ppm = linkweir_row_value(policy, row, "share");

		if (rate_bps && share_ppm)
			sum_bps += *rate_bps ? *rate_bps : lw_mul_div(link_bps, *share_ppm, 1000000);
	}
	return sum_bps;
}

/*
 * Each transmission queue below mq has a qdisc of its own, and what it reserves is of the same link. One with a bandwidth has a part
 * of the link for itself. Not refused either, as a user may know that a class has its flows in one queue.
 */
static void linkweir_warn_of_mq(struct Qdisc *sch, const struct linkweir_settings *set, struct netlink_ext_ack *extack)
{
	struct linkweir_sched *s = qdisc_priv(sch);
	u64 link_bps = set->link_bps, sum_bps;
	u32 txq, mine = TC_H_MIN(sch->parent) - 1;

	if (set->bandwidth_bps || !set->link_bps)
		return;
	sum_bps = linkweir_reserved_bps(s->policy, set, link_bps);
	for (txq = 0; txq < qdisc_dev(sch)->num_tx_queues; txq++) {
		struct Qdisc *other = rtnl_dereference(netdev_get_tx_queue(qdisc_dev(sch), txq)->qdisc_sleeping);
		struct linkweir_sched *its;

		if (txq == mine || !other || other->ops->init != sch->ops->init || other->ops->enqueue != sch->ops->enqueue)
			continue;
		its = qdisc_priv(other);
		if (its->settings->bandwidth_bps)
			continue;
		link_bps = max(link_bps, its->settings->link_bps);
		sum_bps += linkweir_reserved_bps(its->policy, its->settings, its->settings->link_bps);
	}
	if (sum_bps > link_bps)
		linkweir_refuse(extack, "qdiscs below mq reserve %llu of %llu bit/s: use %s_mq as root", sum_bps, link_bps, sch->ops->id);
}

void linkweir_warn_of_parent(struct Qdisc *sch, const struct linkweir_settings *set, struct netlink_ext_ack *extack)
{
	struct Qdisc *parent = linkweir_parent(sch);

	if (!parent)
		return;
	if (!strcmp(parent->ops->id, "htb"))
		linkweir_warn_of_htb(parent, sch->parent, set, extack);
	else if (!strncmp(parent->ops->id, "mq", 2))            /* or mqprio */
		linkweir_warn_of_mq(sch, set, extack);
}
