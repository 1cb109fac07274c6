// SPDX-License-Identifier: GPL-2.0-only
/*
 * least.bpf.c - the least that a queueing discipline in BPF does for a packet: one queue of at most 128 packets, first in, first out,
 * without clock, classes, counters of its own, shaper or policy. guest/cost.sh measures it: what our disciplines cost above it is our code.
 *
 * Three disciplines, so that the differences tell what the kernel's functions cost: least has none of them; least_clock reads the clock
 * once in enqueue and once in dequeue; least_stats has that and the kernel's counters, as our disciplines have both.
 */
#include "../kernel.h"

#define PLACES 128u

struct waiting {
	struct sk_buff __kptr *skb;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, __u32);
	__type(value, struct waiting);
} packets SEC(".maps");

char least_license[] SEC("license") = "GPL";

static uint32_t first, last;            /* the place of the next packet to leave, and of the next to arrive */
static volatile uint64_t seen_ns;

static __always_inline struct sk_buff *take(struct Qdisc *sch)
{
	uint32_t place = first % PLACES;
	struct waiting *waiting;
	struct sk_buff *skb;

	if (first == last)
		return NULL;
	waiting = bpf_map_lookup_elem(&packets, &place);
	skb = waiting ? bpf_kptr_xchg(&waiting->skb, NULL) : NULL;
	first++;
	sch->q.qlen--;
	return skb;
}

static __always_inline int put(u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0], *old;
	struct Qdisc *sch = (struct Qdisc *)ctx[1];
	struct bpf_sk_buff_ptr *to_free = (struct bpf_sk_buff_ptr *)ctx[2];
	uint32_t place = last % PLACES;
	struct waiting *waiting = last - first < PLACES ? bpf_map_lookup_elem(&packets, &place) : NULL;

	if (!waiting) {
		bpf_qdisc_skb_drop(skb, to_free);
		return NET_XMIT_DROP;
	}
	old = bpf_kptr_xchg(&waiting->skb, skb);
	if (old)
		bpf_qdisc_skb_drop(old, to_free);
	last++;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

SEC("struct_ops/least_enqueue")
int least_enqueue(u64 *ctx)
{
	return put(ctx);
}

SEC("struct_ops/clock_enqueue")
int clock_enqueue(u64 *ctx)
{
	seen_ns = bpf_ktime_get_ns();
	return put(ctx);
}

SEC("struct_ops/least_dequeue")
struct sk_buff *least_dequeue(u64 *ctx)
{
	return take((struct Qdisc *)ctx[0]);
}

SEC("struct_ops/clock_dequeue")
struct sk_buff *clock_dequeue(u64 *ctx)
{
	seen_ns = bpf_ktime_get_ns();
	return take((struct Qdisc *)ctx[0]);
}

SEC("struct_ops/stats_dequeue")
struct sk_buff *stats_dequeue(u64 *ctx)
{
	struct Qdisc *sch = (struct Qdisc *)ctx[0];
	struct sk_buff *skb;

	seen_ns = bpf_ktime_get_ns();
	skb = take(sch);
	if (skb)
		bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

SEC("struct_ops/least_init")
int least_init(u64 *ctx)
{
	return 0;
}

SEC("struct_ops/least_reset")
void least_reset(u64 *ctx)
{
	uint32_t n;

	for (n = 0; n < PLACES && lw_again(); n++) {
		struct sk_buff *skb = take((struct Qdisc *)ctx[0]);

		if (skb)
			bpf_kfree_skb(skb);
	}
}

SEC("struct_ops/least_destroy")
void least_destroy(u64 *ctx)
{
}

#define DISCIPLINE(name, in, out)                       \
	SEC(".struct_ops") struct Qdisc_ops name = {    \
		.id = #name,                            \
		.enqueue = (void *)in,                  \
		.dequeue = (void *)out,                 \
		.init = (void *)least_init,             \
		.reset = (void *)least_reset,           \
		.destroy = (void *)least_destroy,       \
	}

DISCIPLINE(least, least_enqueue, least_dequeue);
DISCIPLINE(least_clock, clock_enqueue, clock_dequeue);
DISCIPLINE(least_stats, clock_enqueue, stats_dequeue);
