/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * little_kernel.h - what net/sched/sch_dualpi2.c needs of a kernel, so that it runs in a program: a clock and a timer that
 * the program sets, random numbers of the policy's generator, and packets that are a length and an ECN codepoint. The
 * headers that the file includes are empty, or this system's.
 *
 * Left out: filters, aggregated packets, dumps. A packet takes as much memory as it has bytes.
 */
#ifndef LINKWEIR_DUALPI2_KERNEL_H
#define LINKWEIR_DUALPI2_KERNEL_H

#include <errno.h>
#include <linux/pkt_sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
typedef s64 ktime_t;
typedef u64 netdev_features_t;
typedef int spinlock_t;

#define __rcu
#define __init
#define __exit
#define __read_mostly
#define U32_MAX UINT32_MAX
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define likely(x) (x)
#define unlikely(x) (x)
#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define clamp_t(type, n, least, most) min_t(type, max((type)(n), (type)(least)), most)
#define max(a, b) ((a) > (b) ? (a) : (b))
#define upper_32_bits(n) ((u32)((n) >> 32))
#define lower_32_bits(n) ((u32)(n))
#define mul_u32_u32(a, b) ((u64)(u32)(a) * (u32)(b))
#define do_div(n, base) ((n) /= (base))
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - __builtin_offsetof(type, member)))
#define timer_container_of(var, timer, member) container_of(timer, __typeof__(*(var)), member)
#define IS_ERR_OR_NULL(ptr) (!(ptr))

/* ---- time and chance ---- */

static u64 kernel_now_ns;
static u64 kernel_random;

static u64 ktime_get_ns(void)
{
	return kernel_now_ns;
}

#define ktime_add_ns(time, ns) ((time) + (ktime_t)(ns))

/* the generator of the policy: SplitMix64 (Steele, Lea and Flood, 2014), upper halves */
static u32 get_random_u32(void)
{
	u64 z = kernel_random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (u32)((z ^ z >> 31) >> 32);
}

enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
enum { HRTIMER_MODE_ABS_PINNED, HRTIMER_MODE_ABS_PINNED_SOFT, HRTIMER_MODE_ABS_SOFT, CLOCK_MONOTONIC_OF_KERNEL };
#define CLOCK_MONOTONIC CLOCK_MONOTONIC_OF_KERNEL

struct hrtimer {
	u64 expires_ns;
	bool set;
	enum hrtimer_restart (*function)(struct hrtimer *timer);
};

#define hrtimer_setup(timer, call, clock, mode) ((timer)->function = (call))
#define hrtimer_start(timer, at, mode) ((timer)->expires_ns = (u64)(at), (timer)->set = true)
#define hrtimer_set_expires(timer, at) ((timer)->expires_ns = (u64)(at))
#define hrtimer_cancel(timer) ((timer)->set = false)

/* ---- packets ---- */

enum { INET_ECN_NOT_ECT, INET_ECN_ECT_1, INET_ECN_ECT_0, INET_ECN_CE, INET_ECN_MASK = 3 };

struct iphdr { u8 tos; };
struct ipv6hdr { u8 tos; };

struct sk_buff {
	struct sk_buff *next;
	u64 number;                     /* of the packet, for the comparison */
	u32 len, truesize, priority;
	struct iphdr header;
	_Alignas(8) unsigned char cb[48];
};

struct qdisc_skb_cb {
	u32 pkt_len;
	u16 pkt_segs;
	unsigned char data[32] __attribute__((aligned(8)));
};

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define htons(n) (n)
#define skb_network_offset(skb) 0
#define skb_protocol(skb, skip_vlan) ETH_P_IP
#define pskb_may_pull(skb, len) true
#define skb_try_make_writable(skb, len) 0
#define ip_hdr(skb) (&(skb)->header)
#define ipv6_hdr(skb) ((struct ipv6hdr *)&(skb)->header)
#define ipv4_get_dsfield(header) ((header)->tos)
#define ipv6_get_dsfield(header) ((header)->tos)
#define qdisc_skb_cb(skb) ((struct qdisc_skb_cb *)(skb)->cb)
#define qdisc_cb_private_validate(skb, size) ((void)0)
#define qdisc_pkt_len(skb) ((skb)->len)
#define skb_is_gso(skb) false
#define skb_gso_segment(skb, features) NULL
#define netif_skb_features(skb) 0
#define NETIF_F_GSO_MASK 0
#define skb_list_walk_safe(first, skb, next) for (; (skb);)
#define skb_mark_not_on_list(skb) ((void)0)
#define consume_skb(skb) free(skb)

static int INET_ECN_set_ce(struct sk_buff *skb)
{
	if (skb->header.tos == INET_ECN_NOT_ECT)
		return 0;
	skb->header.tos = INET_ECN_CE;
	return 1;
}

/* the program notes what is dropped */
static void kernel_dropped(struct sk_buff *skb);

enum qdisc_drop_reason { QDISC_DROP_OVERLIMIT, QDISC_DROP_CONGESTED, QDISC_DROP_L4S_STEP_NON_ECN };
#define WARN_ON_ONCE(condition) ((condition) ? abort() : (void)0)

/* ---- queueing disciplines ---- */

struct Qdisc;
struct nlattr;
struct netlink_ext_ack;
struct gnet_dump;
struct qdisc_walker;

struct qdisc_skb_head {
	struct sk_buff *head, *tail;
	u32 qlen;
};

struct sk_buff_head { struct sk_buff *first; };
struct gnet_stats_queue { u32 qlen, backlog, drops, requeues, overlimits; };

struct Qdisc {
	unsigned int flags;
	u32 limit, handle;
	struct qdisc_skb_head q;
	struct sk_buff_head gso_skb;    /* what was peeked at: nothing here */
	struct gnet_stats_queue qstats;
	void *dev_queue;
	_Alignas(8) unsigned char private_data[1024];
};

struct tcf_proto { int unused; };
struct tcf_block { int unused; };
struct tcf_result { u32 classid; };
struct qdisc_walker {
	int stop, skip, count;
	int (*fn)(struct Qdisc *sch, unsigned long cl, struct qdisc_walker *walker);
};

enum { NET_XMIT_SUCCESS, NET_XMIT_DROP, __NET_XMIT_STOLEN = 0x10000, __NET_XMIT_BYPASS = 0x20000 };

#define MTU_WITH_HEADER 1514
#define qdisc_priv(sch) ((void *)(sch)->private_data)
#define qdisc_dev(sch) (sch)
#define psched_mtu(dev) MTU_WITH_HEADER
#define TCQ_F_DEQUEUE_DROPS 0
#define qdisc_qlen(sch) ((sch)->q.qlen)
#define qdisc_qlen_inc(sch) ((void)(sch)->q.qlen++)
#define qdisc_qlen_dec(sch) ((void)(sch)->q.qlen--)
#define skb_peek(list) ((list)->first)
#define __skb_queue_head(list, skb) ((list)->first = (skb))
#define qdisc_peek_head(sch) ((sch)->q.head)
#define qdisc_qstats_overlimit(sch) ((void)(sch)->qstats.overlimits++)
#define qdisc_qstats_drop(sch) ((void)(sch)->qstats.drops++)
#define qdisc_qstats_backlog_inc(sch, skb) ((void)((sch)->qstats.backlog += qdisc_pkt_len(skb)))
#define qdisc_qstats_backlog_dec(sch, skb) ((void)((sch)->qstats.backlog -= qdisc_pkt_len(skb)))
#define qdisc_bstats_update(sch, skb) ((void)0)
#define qdisc_tree_reduce_backlog(sch, packets, bytes) ((void)0)
#define sch_tree_lock(sch) ((void)0)
#define sch_tree_unlock(sch) ((void)0)
#define qdisc_lock(sch) ((spinlock_t *)NULL)
#define qdisc_root_sleeping(sch) (sch)
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_dereference_bh(x) (x)
#define spin_lock(lock) ((void)(lock))
#define spin_unlock(lock) ((void)(lock))
#define tcf_classify_qdisc(...) (-1)
#define tcf_classify(...) (-1)
#define tcf_block_get(block, filters, sch, extack) 0
#define tcf_block_put(block) ((void)0)
#define pfifo_qdisc_ops kernel_pfifo
#define rtnl_qdisc_drop(skb, sch) kernel_dropped(skb)
#define qdisc_reset_queue(sch) ((void)0)
#define qdisc_put(sch) free(sch)

static int kernel_pfifo;

static struct Qdisc *qdisc_create_dflt(void *dev_queue, const int *ops, u32 handle, struct netlink_ext_ack *extack)
{
	(void)dev_queue;
	(void)ops;
	(void)handle;
	(void)extack;
	return calloc(1, sizeof(struct Qdisc));
}

static int qdisc_enqueue_tail(struct sk_buff *skb, struct Qdisc *sch)
{
	skb->next = NULL;
	if (sch->q.tail)
		sch->q.tail->next = skb;
	else
		sch->q.head = skb;
	sch->q.tail = skb;
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *__qdisc_dequeue_head(struct qdisc_skb_head *q)
{
	struct sk_buff *skb = q->head;

	if (!skb)
		return NULL;
	q->head = skb->next;
	if (!q->head)
		q->tail = NULL;
	q->qlen--;
	return skb;
}

static int kernel_refuse(struct sk_buff *skb, struct Qdisc *sch)
{
	qdisc_qstats_drop(sch);
	kernel_dropped(skb);
	return NET_XMIT_DROP;
}

#define qdisc_dequeue_drop(sch, skb, reason) kernel_dropped(skb)
#define qdisc_drop(skb, sch, to_free) kernel_refuse(skb, sch)
#define qdisc_drop_reason(skb, sch, to_free, reason) kernel_refuse(skb, sch)
#define __qdisc_drop(skb, to_free) kernel_dropped(skb)
#define qdisc_dequeue_internal(sch, direct) __qdisc_dequeue_head(&(sch)->q)

struct Qdisc_class_ops {
	struct Qdisc *(*leaf)(struct Qdisc *sch, unsigned long cl);
	unsigned long (*find)(struct Qdisc *sch, u32 classid);
	struct tcf_block *(*tcf_block)(struct Qdisc *sch, unsigned long cl, struct netlink_ext_ack *extack);
	unsigned long (*bind_tcf)(struct Qdisc *sch, unsigned long parent, u32 classid);
	void (*unbind_tcf)(struct Qdisc *sch, unsigned long cl);
	void (*walk)(struct Qdisc *sch, struct qdisc_walker *walker);
};

struct Qdisc_ops {
	const struct Qdisc_class_ops *cl_ops;
	char id[16];
	size_t priv_size;
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
	struct sk_buff *(*peek)(struct Qdisc *sch);
	int (*init)(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack);
	void (*reset)(struct Qdisc *sch);
	void (*destroy)(struct Qdisc *sch);
	int (*change)(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack);
	int (*dump)(struct Qdisc *sch, struct sk_buff *skb);
	int (*dump_stats)(struct Qdisc *sch, struct gnet_dump *dump);
	void *owner;
};

#define THIS_MODULE NULL
#define MODULE_DESCRIPTION(text)
#define MODULE_LICENSE(text)
#define MODULE_AUTHOR(text)
#define MODULE_VERSION(text)
#define MODULE_ALIAS_NET_SCH(name)
#define module_init(call) static int (*const kernel_module_init)(void) __attribute__((unused)) = call;
#define module_exit(call) static void (*const kernel_module_exit)(void) __attribute__((unused)) = call;
#define register_qdisc(ops) ((void)(ops), 0)
#define unregister_qdisc(ops) ((void)(ops))

/* ---- netlink: options are a table of values ---- */

#define KERNEL_OPTIONS 32

struct nlattr {
	u32 value;
	bool given;
	struct nlattr *options;         /* KERNEL_OPTIONS of them, or NULL for a single one */
};

struct nla_policy { int type; };
struct netlink_range_validation { u64 min, max; };
enum { NLA_U8 = 1, NLA_U32 };
#define NLA_POLICY_MIN(type_, least) { .type = (type_) }
#define NLA_POLICY_MAX(type_, most) { .type = (type_) }
#define NLA_POLICY_RANGE(type_, least, most) { .type = (type_) }
#define NLA_POLICY_FULL_RANGE(type_, range) { .type = (type_) }
#define NL_SET_ERR_MSG_MOD(extack, text) ((void)(extack))
#define nla_len(attribute) 1
#define nla_get_u8(attribute) ((u8)(attribute)->value)
#define nla_get_u32(attribute) ((attribute)->value)

static int nla_parse_nested(struct nlattr **tb, int most, struct nlattr *options, const struct nla_policy *policy,
			    struct netlink_ext_ack *extack)
{
	int i;

	(void)policy;
	(void)extack;
	for (i = 0; i <= most; i++)
		tb[i] = options->options[i].given ? options->options + i : NULL;
	return 0;
}

#define nla_nest_start_noflag(skb, kind) NULL
#define nla_put_u8(skb, kind, value) ((void)(value), 0)
#define nla_put_u32(skb, kind, value) ((void)(value), 0)
#define nla_nest_end(skb, nest) 0
#define nla_nest_cancel(skb, nest) ((void)(nest))
#define gnet_stats_copy_app(dump, stats, size) ((void)(stats), 0)

#endif
