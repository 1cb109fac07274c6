// SPDX-License-Identifier: GPL-2.0-only
/*
 * qdisc_cost.c - the cost of a packet in the root qdisc of a device: it calls enqueue and dequeue directly, without a driver.
 *
 *   insmod qdisc_cost.ko device=v0 classes=3 packets=20000 waiting=64 [priority=0x10000] [hashed=0] [rounds=1]
 *
 * Packets of 1000 bytes, of `classes` flows with the code points of tests/guest/cost.sh in turn; with `priority` they name class
 * priority | 1, 2, ...; with hashed=0 they have no flow hash, as from a device that computes none. Two costs are logged, in
 * ns: "in turn", one packet in an empty qdisc, and "loaded", with `waiting` packets there. Where the clock counts instructions, ns
 * are instructions. In real time the fastest of `rounds` measurements counts, which other programs disturbed least. Loading
 * fails on purpose, so the module need not be removed.
 */
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <net/pkt_sched.h>

#define MOST_WAITING 1024
#define PACKET_BYTES 1000

static char *device = "v0";
static unsigned int classes = 3, packets = 20000, waiting = 64, priority, hashed = 1, rounds = 1;
module_param(device, charp, 0);
module_param(classes, uint, 0);
module_param(packets, uint, 0);
module_param(waiting, uint, 0);
module_param(priority, uint, 0);
module_param(hashed, uint, 0);
module_param(rounds, uint, 0);

static const u8 dsfields[] = { 0xb8, 0x28, 0x00, 0x48, 0x68, 0x88, 0x20, 0x40 };   /* EF AF11 CS0 AF21 AF31 AF41 CS1 CS2 */

static struct sk_buff *make(struct net_device *dev, unsigned int number)
{
	unsigned int class = number % classes;
	struct sk_buff *skb = alloc_skb(PACKET_BYTES + 64, GFP_ATOMIC);
	struct iphdr *ip;
	struct udphdr *udp;

	if (!skb)
		return NULL;
	skb_reserve(skb, 32);
	skb_reset_mac_header(skb);
	eth_zero_addr(skb_put(skb, ETH_ALEN));
	eth_zero_addr(skb_put(skb, ETH_ALEN));
	*(__be16 *)skb_put(skb, 2) = htons(ETH_P_IP);
	skb_set_network_header(skb, ETH_HLEN);
	ip = skb_put_zero(skb, sizeof(*ip));
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = dsfields[class % ARRAY_SIZE(dsfields)];
	ip->tot_len = htons(PACKET_BYTES - ETH_HLEN);
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = htonl(0x0a000001);
	ip->daddr = htonl(0x0a000002);
	skb_set_transport_header(skb, ETH_HLEN + sizeof(*ip));
	udp = skb_put_zero(skb, sizeof(*udp));
	udp->source = htons(1000 + class);
	udp->dest = htons(2000);
	udp->len = htons(PACKET_BYTES - ETH_HLEN - sizeof(*ip));
	skb_put_zero(skb, PACKET_BYTES - skb->len);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = dev;
	skb->priority = priority ? priority | (class + 1) : 0;
	return skb;
}

static bool pass_in(struct Qdisc *q, struct sk_buff *skb)
{
	struct sk_buff *to_free = NULL;

	if (!hashed)
		skb_clear_hash(skb);
	qdisc_skb_cb(skb)->pkt_len = skb->len;
	q->enqueue(skb, q, &to_free);
	if (likely(!to_free))
		return true;
	kfree_skb_list(to_free);
	return false;
}

/* ns per packet with `stock` others in the queue, or 0 if one was lost; frees all */
static u64 cost(struct net_device *dev, struct Qdisc *q, unsigned int stock)
{
	struct sk_buff *skb = NULL;
	u64 begin, ns;
	unsigned int i;

	for (i = 0; i <= stock; i++) {
		skb = make(dev, i);
		if (!skb || (i < stock && !pass_in(q, skb)))
			return 0;
	}
	begin = ktime_get_ns();
	for (i = 0; i < packets; i++) {
		if (!pass_in(q, skb))
			return 0;
		skb = q->dequeue(q);
		if (!skb)
			return 0;
	}
	ns = ktime_get_ns() - begin;
	do
		kfree_skb(skb);
	while ((skb = q->dequeue(q)));
	return max(div_u64(ns, packets), 1ull);
}

/* the fastest of all rounds, or 0 if a packet was lost in one */
static u64 fastest(struct net_device *dev, struct Qdisc *q, unsigned int stock)
{
	u64 least = U64_MAX, ns;
	unsigned int i;

	for (i = 0; i < rounds && least; i++) {
		ns = cost(dev, q, stock);
		least = min(least, ns);
	}
	return least;
}

static int __init cost_init(void)
{
	struct net_device *dev = dev_get_by_name(&init_net, device);
	struct Qdisc *q;
	u64 in_turn, loaded;

	if (!dev || !classes || !rounds || waiting > MOST_WAITING)
		return -EINVAL;
	rtnl_lock();
	q = rtnl_dereference(netdev_get_tx_queue(dev, 0)->qdisc);
	local_bh_disable();
	cost(dev, q, 0);                /* warm up */
	in_turn = fastest(dev, q, 0);
	loaded = fastest(dev, q, waiting);
	local_bh_enable();
	rtnl_unlock();
	dev_put(dev);
	pr_info("cost %s in turn %llu loaded %llu\n", q->ops->id, in_turn, loaded);
	return -ECANCELED;
}
module_init(cost_init);

MODULE_DESCRIPTION("What a packet costs in a qdisc");
MODULE_LICENSE("GPL");
