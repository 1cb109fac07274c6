/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel.h - the parts of the kernel's types and functions that the program uses.
 *
 * libbpf looks the fields up by name in the running kernel's BTF, so their offsets here do not matter.
 */
#ifndef LINKWEIR_BPF_KERNEL_H
#define LINKWEIR_BPF_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int32_t __s32;
typedef int64_t __s64;
typedef int16_t __s16;
typedef int8_t __s8;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u64 u64;
typedef __u32 u32;
typedef __u16 u16;
typedef __u8 u8;

#include <bpf/bpf_helpers.h>

#define __arena __attribute__((address_space(1)))

/* of uapi/linux/bpf.h */
enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_ARENA = 33 };
enum { BPF_F_MMAPABLE = 1 << 10 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sk_buff {
	unsigned int len;
	__u32 priority;
	__u32 mark;
	__be16 protocol;
	__u16 network_header;
	__u32 tail;                     /* bytes from head, as on all 64-bit kernels */
	unsigned char *head, *data;
	char cb[48];
};

struct iphdr {
	__u8 tos;
};

struct qdisc_skb_cb {
	unsigned int pkt_len;
};

struct qdisc_skb_head {
	__u32 qlen;
};

struct gnet_stats_queue {
	__u32 backlog, drops, overlimits;
};

struct Qdisc {
	__u32 limit, handle, parent;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

#pragma clang attribute pop

struct nlattr;
struct netlink_ext_ack;

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

/* libbpf matches its members by name with those of the kernel */
struct Qdisc_ops {
	char id[16];
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct bpf_sk_buff_ptr *);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	struct sk_buff *(*peek)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
};

struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

extern void __arena *bpf_arena_alloc_pages(void *map, void __arena *address, __u32 pages, int node, __u64 flags) __weak __ksym;
extern void bpf_arena_free_pages(void *map, void __arena *address, __u32 pages) __weak __ksym;
extern int bpf_dynptr_from_skb(struct sk_buff *skb, __u64 flags, struct bpf_dynptr *dynptr) __weak __ksym;
extern __u64 bpf_dynptr_size(const struct bpf_dynptr *dynptr) __weak __ksym;
extern void *bpf_dynptr_slice(const struct bpf_dynptr *dynptr, __u64 offset, void *buffer, __u64 bytes) __weak __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 type) __weak __ksym;
extern void bpf_kfree_skb(struct sk_buff *skb) __weak __ksym;
extern void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free) __weak __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, __u64 expire_ns, __u64 delta_ns) __weak __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __weak __ksym;

/* of bpf/bpf_core_read.h: the number of a type in the running kernel */
#define BPF_TYPE_ID_TARGET 1

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define TC_H_ROOT 0xffffffffu
#define EBUSY 16
#define ENOMEM 12
#define EOPNOTSUPP 95

/* A function that the verifier checks by itself, once, for any arguments. Weak, so that the compiler assumes nothing of them either. */
#define LW_VERIFIED __attribute__((noinline, weak))

/*
 * True once more. The verifier follows a loop whose end depends on memory only if its condition passes here: the instruction may_goto
 * ends a loop that runs for very long (a quarter of a second, or 8 million rounds). No loop of ours comes near.
 */
#define lw_again()                                                      \
	({                                                              \
		__label__ end, on;                                      \
		bool again = true;                                      \
		asm volatile goto("may_goto %l[end]" : : : : end);      \
		goto on;                                                \
	end:                                                            \
		again = false;                                          \
	on:;                                                            \
		again;                                                  \
	})

#endif
