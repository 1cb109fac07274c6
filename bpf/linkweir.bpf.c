// SPDX-License-Identifier: GPL-2.0-only
/*
 * linkweir.bpf.c - one policy of the core as a queueing discipline in BPF (struct_ops of Qdisc_ops).
 *
 * Packets wait in the map `packets`. All else is in an arena (plane.h): which place of the map belongs to which class, the view, the
 * policy's state, settings and counters. The kernel calls enqueue and dequeue under the lock of the discipline.
 *
 * The loader gives commands by running `linkweir_command`, which has no lock. So a change is written to the settings at `next_at` and
 * applied by the next enqueue or dequeue. `linkweir_replay` makes single calls of the policy, for vectors; no discipline has it.
 *
 * With LW_RECORD all calls of the policy are noted down, for lab/agreement; the discipline that users get is built without it.
 *
 * Global functions (those without `static`) are verified once each, for any arguments. Arrivals and departures follow the protocol of
 * linkweir/policy.h.
 */
#include "kernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);         /* pages; the loader says how many */
} arena SEC(".maps");

/* Tells the verifier that the program uses the arena. */
#define lw_use_arena() asm volatile("" : : "r"(&arena))

#include "core.h"
#include "plane.h"

#define LW_NAME_(name) #name
#define LW_NAME(name) LW_NAME_(name)
#define LW_PAGE_BYTES 4096u

/* A kernel without BPF qdiscs can own no packet. It can still replay vectors, with an object for which LW_OWNED is empty. */
#ifndef LW_OWNED
#define LW_OWNED __kptr
#endif

struct lw_waiting {
	struct sk_buff LW_OWNED *skb;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);         /* as above */
	__type(key, __u32);
	__type(value, struct lw_waiting);
} packets SEC(".maps");

struct lw_exchange {
	__u64 words[LW_EXCHANGE_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lw_exchange);
} exchange SEC(".maps");

/* The settings as text, for the loader, which they outlive. */
struct lw_notes {
	char text[LW_NOTES_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LW_TEXTS);
	__type(key, __u32);
	__type(value, struct lw_notes);
} notes SEC(".maps");

char lw_license[] SEC("license") = "GPL";

#ifdef LW_RECORD
struct lw_page {
	struct lw_call calls[LW_CALLS_OF_PAGE];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16384);     /* 4 million calls */
	__type(key, __u32);
	__type(value, struct lw_page);
} calls SEC(".maps");

static uint32_t lw_ncalls;

static __always_inline void lw_record(uint64_t now_ns, enum lw_called called, uint32_t q, uint32_t value)
{
	uint32_t n = lw_ncalls, page_number = n / LW_CALLS_OF_PAGE;
	struct lw_page *page = bpf_map_lookup_elem(&calls, &page_number);
	struct lw_call call = { now_ns, called | q << 8, value };

	if (!page)
		return;                 /* full; the loader finds no end and says so */
	page->calls[n & (LW_CALLS_OF_PAGE - 1)] = call;
	lw_ncalls = n + 1;
}
#else
static __always_inline void lw_record(uint64_t now_ns, enum lw_called called, uint32_t q, uint32_t value)
{
}
#endif

static char __arena *lw_base;
static uint32_t lw_pages;
static volatile uint32_t lw_place;

static __always_inline struct lw_plane *lw_plane(void)
{
	return (struct lw_plane *)lw_base;
}

/* Not from lw_base: the compiler would read and cast that again after each write to memory. */
static __always_inline void *lw_at(const struct lw_plane *plane, uint32_t offset)
{
	return (char *)plane + offset;
}

static __always_inline struct lw_queue *lw_queues(const struct lw_plane *plane)
{
	return (struct lw_queue *)lw_at(plane, plane->queues_at);
}

static __always_inline struct lw_class *lw_classes(const struct lw_plane *plane)
{
	return (struct lw_class *)lw_at(plane, plane->classes_at);
}

static __always_inline struct lw_slot *lw_slots(const struct lw_plane *plane)
{
	return (struct lw_slot *)lw_at(plane, plane->slots_at);
}

static __always_inline struct lw_settings *lw_now(const struct lw_plane *plane)
{
	return (struct lw_settings *)lw_at(plane, plane->now_at);
}

static __always_inline struct lw_class_settings *lw_class_settings(const struct lw_plane *plane)
{
	return (struct lw_class_settings *)lw_at(plane, plane->now_at + sizeof(struct lw_settings));
}

static __always_inline uint64_t *lw_qparams(const struct lw_plane *plane)
{
	return (uint64_t *)lw_at(plane, plane->now_at + sizeof(struct lw_settings) + plane->nqueues * sizeof(struct lw_class_settings));
}

static __always_inline void *lw_state(const struct lw_plane *plane)
{
	return lw_at(plane, plane->state_at);
}

static __always_inline struct lw_view lw_view(const struct lw_plane *plane, uint64_t now_ns)
{
	struct lw_view view = { now_ns, plane->link_bps, lw_queues(plane), plane->nqueues };

	return view;
}

/* ---- calls of the policy, each verified by itself; lw_in_NAME is inlined where each packet passes ---- */

static __always_inline uint32_t lw_in_pick(struct lw_plane *plane, uint64_t now_ns)
{
	struct lw_view view = lw_view(plane, now_ns);
	uint64_t retry_ns = LW_NEVER;

	return lw_policy.pick(lw_state(plane), &view, &retry_ns);
}

LW_VERIFIED uint32_t lw_pick(uint64_t now_ns)
{
	lw_use_arena();
	return lw_in_pick(lw_plane(), now_ns);
}

#define LW_EVENT(event)                                                                                                 \
	static __always_inline void lw_in_##event(struct lw_plane *plane, uint64_t now_ns, uint32_t q, uint32_t bytes) \
	{                                                                                                               \
		struct lw_view view = lw_view(plane, now_ns);                                                           \
															\
		if (lw_policy.event)                                                                                    \
			lw_policy.event(lw_state(plane), &view, q, bytes);                                              \
	}                                                                                                               \
															\
	LW_VERIFIED int lw_##event(uint64_t now_ns, uint32_t q, uint32_t bytes)                                         \
	{                                                                                                               \
		lw_use_arena();                                                                                         \
		lw_in_##event(lw_plane(), now_ns, q, bytes);                                                            \
		return 0;                                                                                               \
	}

LW_EVENT(enqueued)
LW_EVENT(sent)
LW_EVENT(dropped)

LW_VERIFIED uint32_t lw_victim(uint64_t now_ns, uint32_t q, uint32_t bytes)
{
	struct lw_view view;
	struct lw_plane *plane;

	lw_use_arena();
	plane = lw_plane();
	view = lw_view(plane, now_ns);
	return lw_policy.victim ? lw_policy.victim(lw_state(plane), &view, q, bytes) : LW_NONE;
}

LW_VERIFIED uint32_t lw_leaving(uint64_t now_ns, uint32_t q, uint32_t ecn)
{
	struct lw_view view;
	struct lw_plane *plane;

	lw_use_arena();
	plane = lw_plane();
	view = lw_view(plane, now_ns);
	return lw_policy.leaving ? (uint32_t)lw_policy.leaving(lw_state(plane), &view, q, ecn) : LW_PASS;
}

LW_VERIFIED uint32_t lw_expired(uint64_t now_ns, uint32_t q)
{
	struct lw_view view;
	struct lw_plane *plane;

	lw_use_arena();
	plane = lw_plane();
	view = lw_view(plane, now_ns);
	return lw_policy.expired && lw_policy.expired(lw_state(plane), &view, q);
}

LW_VERIFIED int lw_rated(uint64_t now_ns)
{
	struct lw_view view;
	struct lw_plane *plane;

	lw_use_arena();
	plane = lw_plane();
	view = lw_view(plane, now_ns);
	if (lw_policy.rated)
		lw_policy.rated(lw_state(plane), &view);
	return 0;
}

LW_VERIFIED int lw_change(uint64_t now_ns)
{
	struct lw_view view;
	struct lw_plane *plane;

	lw_use_arena();
	plane = lw_plane();
	view = lw_view(plane, now_ns);
	if (lw_policy.change)
		lw_policy.change(lw_state(plane), &view, lw_now(plane)->params, lw_qparams(plane));
	return 0;
}

LW_VERIFIED int lw_init(uint64_t now_ns)
{
	struct lw_view view;
	struct lw_plane *plane;

	lw_use_arena();
	plane = lw_plane();
	view = lw_view(plane, now_ns);
	lw_policy.init(lw_state(plane), &view, lw_now(plane)->params, lw_qparams(plane));
	return 0;
}

/* ---- the shaper: as linkweir_occupy() and linkweir_set_bandwidth() of kernel/ ---- */

#define LW_LATE_NS 1000000ull
#define LW_OWED_NS 10000000ull
#define LW_SHORTER 7

static __always_inline void lw_occupy(struct lw_pacer *pacer, uint64_t now_ns, uint32_t bytes, bool more)
{
	uint64_t begin_ns = now_ns, work, long_ns, shorter_ns;

	if (pacer->busy && pacer->free_ns + LW_LATE_NS < begin_ns) {
		pacer->owed_ns += begin_ns - LW_LATE_NS - pacer->free_ns;
		if (pacer->owed_ns > LW_OWED_NS)
			pacer->owed_ns = LW_OWED_NS;
		begin_ns -= LW_LATE_NS;
	} else if (pacer->busy) {
		begin_ns = pacer->free_ns;
	}
	work = bytes * pacer->of.mult + pacer->frac;
	long_ns = work >> pacer->of.shift;
	pacer->frac = work & ((1ull << pacer->of.shift) - 1);
	shorter_ns = long_ns >> LW_SHORTER;
	if (shorter_ns > pacer->owed_ns)
		shorter_ns = pacer->owed_ns;
	pacer->owed_ns -= shorter_ns;
	pacer->free_ns = begin_ns + long_ns - shorter_ns;
	pacer->busy = more;
}

LW_VERIFIED int lw_set_bandwidth(uint64_t now_ns, uint64_t bandwidth_bps)
{
	struct lw_pacer *pacer;
	uint64_t left_ns;

	lw_use_arena();
	pacer = &lw_plane()->pacer;
	if (pacer->bandwidth_bps == bandwidth_bps)
		return 0;
	if (!pacer->bandwidth_bps || !bandwidth_bps) {
		pacer->free_ns = now_ns;
		pacer->busy = pacer->owed_ns = 0;
	} else if (pacer->free_ns > now_ns) {
		left_ns = lw_mul_div(pacer->free_ns - now_ns, pacer->bandwidth_bps, bandwidth_bps);
		pacer->free_ns = now_ns + (left_ns < LW_MAX_NOW_NS ? left_ns : LW_MAX_NOW_NS);
	}
	pacer->bandwidth_bps = bandwidth_bps;
	pacer->of = lw_pace_of(bandwidth_bps);
	pacer->frac = 0;
	return 0;
}

/* ---- settings ---- */

/* The rates of all channels and of the link, and the bandwidth, from the settings in force. */
static __always_inline void lw_follow(struct lw_plane *plane, uint64_t now_ns)
{
	struct lw_settings *set = lw_now(plane);
	uint32_t q;

	plane->link_bps = set->link_bps;
	for (q = 0; q < plane->nqueues && lw_again(); q++) {
		uint64_t rate_bps = lw_class_settings(plane)[q].rate_bps;

		lw_queues(plane)[q].rate_bps = rate_bps != LW_UNSET ? rate_bps : set->link_bps ? set->link_bps : LW_MAX_RATE_BPS;
	}
	lw_set_bandwidth(now_ns, set->bandwidth_bps);
}

/* Settings that the loader has handed over. */
LW_VERIFIED int lw_apply(uint64_t now_ns)
{
	struct lw_plane *plane;
	uint64_t *now, *next;
	uint32_t word;

	lw_use_arena();
	plane = lw_plane();
	if (__sync_val_compare_and_swap(&((struct lw_plane __arena *)lw_base)->turn, LW_READY, LW_APPLYING) != LW_READY)
		return 0;
	now = (uint64_t *)lw_at(plane, plane->now_at);
	next = (uint64_t *)lw_at(plane, plane->next_at);
	for (word = 0; word < plane->settings_words && lw_again(); word++)
		now[word] = next[word];
	lw_follow(plane, now_ns);
	lw_rated(now_ns);
	lw_change(now_ns);
	lw_record(now_ns, LW_CALLED_CHANGE, LW_NO_CALLED, 0);
	plane->applied++;
	__sync_lock_test_and_set(&((struct lw_plane __arena *)lw_base)->turn, LW_IDLE);
	return 0;
}

/* ---- packets ---- */

static __always_inline uint32_t lw_code_point_of(bool ipv4, uint32_t first, uint32_t second)
{
	return ipv4 ? second >> 2 : (first << 2 | second >> 6) & 63;
}

/* Of a header that is not in the linear part of the packet. */
static __always_inline uint32_t lw_code_point_elsewhere(struct sk_buff *skb, bool ipv4)
{
	uint64_t offset = (uint64_t)skb->head + skb->network_header - (uint64_t)skb->data;
	struct bpf_dynptr packet;
	uint8_t room[2], *head;

	asm volatile("" : "+r"(offset)); /* the verifier refuses 32 bits of a difference of addresses */
	if (bpf_dynptr_from_skb(skb, 0, &packet))
		return LW_CODE_POINTS;
	head = bpf_dynptr_slice(&packet, (uint32_t)offset, room, sizeof(room));
	return head ? lw_code_point_of(ipv4, head[0], head[1]) : LW_CODE_POINTS;
}

static __always_inline uint32_t lw_code_point(struct sk_buff *skb)
{
	bool ipv4 = skb->protocol == __builtin_bswap16(ETH_P_IP);
	uint32_t offset = skb->network_header;
	const struct iphdr *header;

	if (!ipv4 && skb->protocol != __builtin_bswap16(ETH_P_IPV6))
		return LW_CODE_POINTS;
	if (offset + 2 > skb->tail)
		return lw_code_point_elsewhere(skb, ipv4);
	header = bpf_rdonly_cast(skb->head + offset, __builtin_btf_type_id(*(struct iphdr *)0, BPF_TYPE_ID_TARGET));
	return lw_code_point_of(ipv4, *(const uint8_t *)header, header->tos);
}

/* ---- rules with more than code points, and marks ---- */

#define LW_MOST_EXTENSIONS 8
#define LW_FRAGMENT_OFFSET 0x1fff

enum { LW_HOP_BY_HOP = 0, LW_TCP = 6, LW_UDP = 17, LW_ROUTING = 43, LW_FRAGMENT = 44, LW_AUTHENTICATION = 51, LW_DESTINATION = 60,
       LW_SCTP = 132, LW_UDP_LITE = 136 };

/* What rules ask of a packet. Ports are 0 where the protocol has none, or they are in an earlier fragment. */
struct lw_header {
	uint32_t code_point;            /* LW_CODE_POINTS: not IP */
	uint32_t protocol;
	uint32_t source_port, destination_port;
};

static __always_inline uint32_t lw_be16(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 8 | bytes[1];
}

/* Follows the extension headers of IPv6 from `at` on, as the gateway does. False: the ports are not in this packet. */
static __always_inline bool lw_follow_extensions(const struct bpf_dynptr *packet, uint64_t *at, uint32_t *protocol)
{
	uint32_t n, length;

	for (n = lw_zero(); n < LW_MOST_EXTENSIONS && lw_again(); n++) {
		uint8_t room[8], *extension;
		uint32_t kind = *protocol;

		if (kind != LW_HOP_BY_HOP && kind != LW_ROUTING && kind != LW_DESTINATION && kind != LW_AUTHENTICATION &&
		    kind != LW_FRAGMENT)
			return true;
		extension = bpf_dynptr_slice(packet, (uint32_t)*at, room, sizeof(room));
		if (!extension)
			return false;
		length = kind == LW_FRAGMENT ? 8 : 8 + (kind == LW_AUTHENTICATION ? 4 : 8) * extension[1];
		if (*at + length > (uint32_t)bpf_dynptr_size(packet))
			return false;   /* the packet ends first, so its protocol stays that of this header */
		*protocol = extension[0];
		*at += length;
		if (kind == LW_FRAGMENT && lw_be16(extension + 2) >> 3)
			return false;
	}
	return true;
}

static __always_inline void lw_read_header(struct sk_buff *skb, struct lw_header *header)
{
	uint64_t at = (uint64_t)skb->head + skb->network_header - (uint64_t)skb->data;
	bool ipv4 = skb->protocol == __builtin_bswap16(ETH_P_IP), has_ports;
	uint8_t room[20], *bytes;
	struct bpf_dynptr packet;

	asm volatile("" : "+r"(at));    /* as in lw_code_point_elsewhere() */
	if (!ipv4 && skb->protocol != __builtin_bswap16(ETH_P_IPV6))
		return;
	if (bpf_dynptr_from_skb(skb, 0, &packet))
		return;
	bytes = bpf_dynptr_slice(&packet, (uint32_t)at, room, sizeof(room));
	if (!bytes)
		return;
	header->code_point = lw_code_point_of(ipv4, bytes[0], bytes[1]);
	if (ipv4) {
		header->protocol = bytes[9];
		has_ports = (bytes[0] & 15) >= 5 && !(lw_be16(bytes + 6) & LW_FRAGMENT_OFFSET);
		at += 4 * (bytes[0] & 15);
	} else {
		header->protocol = bytes[6];
		at += 40;
		has_ports = lw_follow_extensions(&packet, &at, &header->protocol);
	}
	if (!has_ports || (header->protocol != LW_TCP && header->protocol != LW_UDP && header->protocol != LW_SCTP &&
			   header->protocol != LW_UDP_LITE))
		return;
	bytes = bpf_dynptr_slice(&packet, (uint32_t)at, room, 4);
	if (!bytes)
		return;
	header->source_port = lw_be16(bytes);
	header->destination_port = lw_be16(bytes + 2);
}

static __always_inline bool lw_in_range(uint32_t port, uint32_t range)
{
	return port >= (range & 0xffff) && port <= range >> 16;
}

/* The class of the first rule that matches, or LW_NONE. */
LW_VERIFIED uint32_t lw_match(uint32_t code_point, uint32_t protocol, uint32_t source_port, uint32_t destination_port)
{
	const struct lw_settings *set;
	uint32_t n, nrules;

	lw_use_arena();
	set = lw_now(lw_plane());
	nrules = (uint32_t)(set->others >> 32);
	for (n = 0; n < nrules && lw_again(); n++) {
		const struct lw_rule *rule = set->rules + n;

		if (rule->code_points >> (code_point & 63) & 1 && rule->protocols[protocol >> 6 & 3] >> (protocol & 63) & 1 &&
		    (lw_in_range(source_port, rule->port) || lw_in_range(destination_port, rule->port)) &&
		    lw_in_range(source_port, rule->source_port) && lw_in_range(destination_port, rule->destination_port))
			return rule->class;
	}
	return LW_NONE;
}

/* The class of a mark, or LW_NONE. */
LW_VERIFIED uint32_t lw_class_of_mark(uint32_t mark)
{
	const struct lw_settings *set;
	uint32_t n, nmarks;

	lw_use_arena();
	set = lw_now(lw_plane());
	nmarks = (uint32_t)set->others;
	for (n = 0; n < nmarks && lw_again(); n++)
		if ((uint32_t)set->marks[n] == mark)
			return (uint32_t)(set->marks[n] >> 32);
	return LW_NONE;
}

static __always_inline uint32_t lw_classify_by_rules(const struct lw_settings *set, struct sk_buff *skb)
{
	struct lw_header header = { LW_CODE_POINTS, 0, 0, 0 };
	uint32_t q = skb->mark ? lw_class_of_mark(skb->mark) : LW_NONE;

	if (q != LW_NONE)
		return q;
	lw_read_header(skb, &header);
	if (header.code_point >= LW_CODE_POINTS)
		return (uint32_t)set->default_class;
	if (set->others >> 32)
		q = lw_match(header.code_point, header.protocol, header.source_port, header.destination_port);
	else
		q = (uint32_t)set->class_of[header.code_point & 63];
	return q == LW_NONE ? (uint32_t)set->default_class : q;
}

static __always_inline uint32_t lw_classify(const struct lw_plane *plane, struct sk_buff *skb)
{
	const struct lw_settings *set = lw_now(plane);
	uint32_t code;
	uint64_t q;

	if (set->others) {
		q = lw_classify_by_rules(set, skb);
	} else {
		code = lw_code_point(skb);
		q = code < LW_CODE_POINTS ? set->class_of[code] : set->default_class;
	}
	return q < plane->nqueues ? (uint32_t)q : 0;
}

/* Takes the packet at one end of a class, which is not empty, out of all lists. Returns its place. */
static __always_inline uint32_t lw_unlink(struct lw_plane *plane, uint32_t q, bool head)
{
	struct lw_class *class = lw_classes(plane) + q;
	struct lw_queue *queue = lw_queues(plane) + q;
	struct lw_slot *slots = lw_slots(plane);
	uint32_t slot = head ? class->first : class->last;

	queue->backlog_bytes -= slots[slot].bytes;
	if (--queue->backlog_pkts) {
		if (head) {
			class->first = slots[slot].next;
			queue->head_arrival_ns = slots[class->first].arrival_ns;
			queue->head_bytes = slots[class->first].bytes;
		} else {
			class->last = slots[slot].before;
		}
	}
	slots[slot].next = plane->free;
	plane->free = slot;
	plane->used--;
	return slot;
}

/* The packet in a place, which is empty afterwards. */
static __always_inline struct sk_buff *lw_take(uint32_t slot)
{
	struct lw_waiting *waiting = bpf_map_lookup_elem(&packets, &slot);

	return waiting ? bpf_kptr_xchg(&waiting->skb, NULL) : NULL;
}

/* Takes a packet that is to be dropped. The caller frees it. */
static __always_inline struct sk_buff *lw_evict(struct lw_plane *plane, struct Qdisc *sch, uint64_t now_ns, uint32_t q, bool head,
						enum lw_reason reason)
{
	uint32_t slot = lw_unlink(plane, q, head), bytes = lw_slots(plane)[slot].bytes;

	lw_classes(plane)[q].dropped_pkts[reason]++;
	sch->q.qlen--;
	sch->qstats.backlog -= bytes;
	sch->qstats.drops++;
	lw_dropped(now_ns, q, bytes);
	return lw_take(slot);
}

static __always_inline void lw_drop(struct lw_plane *plane, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free, uint64_t now_ns, uint32_t q,
				    bool head, enum lw_reason reason)
{
	struct sk_buff *skb = lw_evict(plane, sch, now_ns, q, head, reason);

	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	else
		plane->lost++;
}

static __always_inline bool lw_has_room(const struct lw_plane *plane, uint32_t q, uint32_t bytes)
{
	const struct lw_class_settings *limits = lw_class_settings(plane) + q;
	const struct lw_queue *queue = lw_queues(plane) + q;

	return queue->backlog_pkts < limits->limit_pkts && queue->backlog_bytes + bytes <= limits->limit_bytes;
}

static __always_inline bool lw_make_room(struct lw_plane *plane, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free, uint64_t now_ns,
					 uint32_t q, uint32_t bytes)
{
	uint32_t drops;

	if (!lw_policy.expired)
		return lw_has_room(plane, q, bytes);
	for (drops = 0; drops < LW_MOST_DROPS && lw_again(); drops++) {
		uint32_t expired;

		if (lw_has_room(plane, q, bytes))
			return true;
		if (!lw_queues(plane)[q].backlog_pkts)
			return false;
		expired = lw_expired(now_ns, q);
		lw_record(now_ns, LW_CALLED_EXPIRED, q, expired);
		if (!expired)
			return false;
		lw_drop(plane, sch, to_free, now_ns, q, true, LW_EXPIRED);
	}
	return lw_has_room(plane, q, bytes);
}

/* Puts a packet into a free place at the tail of its class. */
static __always_inline void lw_push(struct lw_plane *plane, struct Qdisc *sch, uint64_t now_ns, uint32_t q, uint32_t slot, uint32_t bytes)
{
	struct lw_class *class = lw_classes(plane) + q;
	struct lw_queue *queue = lw_queues(plane) + q;
	struct lw_slot *slots = lw_slots(plane);

	plane->free = slots[slot].next;
	plane->used++;
	slots[slot].arrival_ns = now_ns;
	slots[slot].bytes = bytes;
	if (!queue->backlog_pkts++) {
		queue->head_arrival_ns = now_ns;
		queue->head_bytes = bytes;
		class->first = slot;
	} else {
		slots[class->last].next = slot;
		slots[slot].before = class->last;
	}
	class->last = slot;
	queue->backlog_bytes += bytes;
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
}

SEC("struct_ops/linkweir_enqueue")
int linkweir_enqueue(u64 *ctx)
{
	struct sk_buff *skb = (struct sk_buff *)ctx[0], *old;
	struct Qdisc *sch = (struct Qdisc *)ctx[1];
	struct bpf_sk_buff_ptr *to_free = (struct bpf_sk_buff_ptr *)ctx[2];
	uint64_t now_ns = bpf_ktime_get_ns();
	struct lw_waiting *waiting;
	struct lw_plane *plane;
	uint32_t q, bytes, slot, drops, victim;

	lw_use_arena();
	plane = lw_plane();
	if (plane->turn == LW_READY)
		lw_apply(now_ns);
	bytes = ((struct qdisc_skb_cb *)skb->cb)->pkt_len;
	if (bytes >= LW_MAX_PACKET_BYTES)
		bytes = LW_MAX_PACKET_BYTES - 1;
	q = lw_classify(plane, skb);
	slot = plane->free;
	if (!lw_make_room(plane, sch, to_free, now_ns, q, bytes))
		goto refuse;
	waiting = bpf_map_lookup_elem(&packets, &slot);
	if (!waiting)                   /* no place is free */
		goto refuse;
	old = bpf_kptr_xchg(&waiting->skb, skb);
	if (old) {
		plane->lost++;
		bpf_qdisc_skb_drop(old, to_free);
	}
	lw_push(plane, sch, now_ns, q, slot, bytes);
	lw_record(now_ns, LW_CALLED_ENQUEUED, q, bytes);
	lw_in_enqueued(plane, now_ns, q, bytes);
	if (lw_policy.victim) {
		for (drops = 0; drops < LW_MOST_DROPS && lw_again(); drops++) {
			victim = lw_victim(now_ns, q, bytes);
			if (victim == LW_NONE)
				break;
			lw_record(now_ns, LW_CALLED_VICTIM, victim & ~LW_FROM_HEAD, !!(victim & LW_FROM_HEAD));
			lw_drop(plane, sch, to_free, now_ns, victim & ~LW_FROM_HEAD, victim & LW_FROM_HEAD, LW_VICTIM);
		}
	}
	return NET_XMIT_SUCCESS;
refuse:
	lw_classes(plane)[q].dropped_pkts[LW_LIMIT]++;
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

/* The queue whose head leaves now, or LW_NONE. Heads that the policy drops are gone. */
static __always_inline uint32_t lw_choose(struct lw_plane *plane, struct Qdisc *sch, uint64_t now_ns)
{
	uint32_t drops, verdict, q = LW_NONE;

	if (!lw_policy.leaving) {
		q = lw_in_pick(plane, now_ns);
		lw_record(now_ns, LW_CALLED_PICK, q & LW_NO_CALLED, 0);
		return q;
	}
	for (drops = 0; drops < LW_MOST_DROPS && lw_again(); drops++) {
		struct sk_buff *skb;

		q = lw_pick(now_ns);
		lw_record(now_ns, LW_CALLED_PICK, q & LW_NO_CALLED, 0);
		if (q == LW_NONE)
			return q;
		verdict = lw_leaving(now_ns, q, false);
		lw_record(now_ns, LW_CALLED_LEAVING, q, verdict);
		if (verdict != LW_DROP)
			return q;
		skb = lw_evict(plane, sch, now_ns, q, true, LW_LEAVING);
		if (skb)
			bpf_kfree_skb(skb);
		else
			plane->lost++;
	}
	bpf_qdisc_watchdog_schedule(sch, now_ns, 0);
	return LW_NONE;
}

SEC("struct_ops/linkweir_dequeue")
struct sk_buff *linkweir_dequeue(u64 *ctx)
{
	struct Qdisc *sch = (struct Qdisc *)ctx[0];
	uint64_t now_ns = bpf_ktime_get_ns(), sojourn_ns;
	struct lw_class *class;
	struct lw_plane *plane;
	struct lw_slot *slots;
	struct sk_buff *skb;
	uint32_t q, slot, bytes;

	lw_use_arena();
	plane = lw_plane();
	if (plane->turn == LW_READY)
		lw_apply(now_ns);
	if (plane->pacer.bandwidth_bps && plane->pacer.free_ns > now_ns) {
		if (!plane->used)
			return NULL;
		plane->pacer.busy = true;
		sch->qstats.overlimits++;
		bpf_qdisc_watchdog_schedule(sch, plane->pacer.free_ns, 0);
		return NULL;
	}
	q = lw_choose(plane, sch, now_ns);
	if (q >= plane->nqueues || !lw_queues(plane)[q].backlog_pkts) {
		plane->pacer.busy = plane->pacer.owed_ns = 0;
		return NULL;
	}
	slot = lw_unlink(plane, q, true);
	slots = lw_slots(plane);
	class = lw_classes(plane) + q;
	bytes = slots[slot].bytes;
	sojourn_ns = now_ns - slots[slot].arrival_ns;
	class->sojourn_ns += sojourn_ns;
	if (sojourn_ns > class->sojourn_max_ns)
		class->sojourn_max_ns = sojourn_ns;
	class->sent_pkts++;
	class->sent_bytes += bytes;
	sch->q.qlen--;
	sch->qstats.backlog -= bytes;
	if (plane->pacer.bandwidth_bps)
		lw_occupy(&plane->pacer, now_ns, bytes, plane->used);
	lw_record(now_ns, LW_CALLED_SENT, q, bytes);
	lw_in_sent(plane, now_ns, q, bytes);
	skb = lw_take(slot);
	if (!skb) {
		plane->lost++;
		return NULL;
	}
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
}

SEC("struct_ops/linkweir_init")
int linkweir_init(u64 *ctx)
{
	struct Qdisc *sch = (struct Qdisc *)ctx[0];

	lw_use_arena();
	if (sch->parent != TC_H_ROOT)
		return -EOPNOTSUPP;     /* each queue below mq has a lock of its own */
	if (!lw_base)
		return -ENOMEM;         /* the loader has not made the state */
	if (__sync_val_compare_and_swap(&((struct lw_plane __arena *)lw_base)->attached, 0, 1))
		return -EBUSY;
	return 0;
}

SEC("struct_ops/linkweir_reset")
void linkweir_reset(u64 *ctx)
{
	struct Qdisc *sch = (struct Qdisc *)ctx[0];
	uint64_t now_ns = bpf_ktime_get_ns();
	struct lw_plane *plane;
	struct sk_buff *skb;
	uint32_t q;

	lw_use_arena();
	if (!lw_base)
		return;
	plane = lw_plane();
	for (q = 0; q < plane->nqueues && lw_again(); q++) {
		while (lw_queues(plane)[q].backlog_pkts && lw_again()) {
			skb = lw_evict(plane, sch, now_ns, q, true, LW_RESET);
			if (skb)
				bpf_kfree_skb(skb);
			else
				plane->lost++;
		}
	}
	plane->pacer.free_ns = now_ns;
	plane->pacer.busy = plane->pacer.owed_ns = 0;
}

SEC("struct_ops/linkweir_destroy")
void linkweir_destroy(u64 *ctx)
{
	lw_use_arena();
	if (lw_base)
		__sync_lock_test_and_set(&((struct lw_plane __arena *)lw_base)->attached, 0);
}

SEC(".struct_ops.link")
struct Qdisc_ops linkweir = {
	.id = "linkweir",
	.enqueue = (void *)linkweir_enqueue,
	.dequeue = (void *)linkweir_dequeue,
	.init = (void *)linkweir_init,
	.reset = (void *)linkweir_reset,
	.destroy = (void *)linkweir_destroy,
};

/* ---- commands of the loader ---- */

static __always_inline uint32_t lw_round(uint32_t bytes)
{
	return (bytes + 63) & ~63u;
}

LW_VERIFIED int lw_layout(uint32_t nqueues, uint32_t nslots, uint32_t state_bytes)
{
	uint32_t settings = sizeof(struct lw_settings) + nqueues * (uint32_t)sizeof(struct lw_class_settings) +
			    nqueues * lw_policy.nqparams * 8;
	uint32_t end = lw_round(sizeof(struct lw_plane)), slot;
	struct lw_plane *plane;
	struct lw_slot *slots;
	char __arena *base;
	uint32_t pages = lw_round(sizeof(struct lw_plane)) + lw_round(nqueues * sizeof(struct lw_queue)) +
			 lw_round(nqueues * sizeof(struct lw_class)) + lw_round(nslots * sizeof(struct lw_slot)) + lw_round(state_bytes) +
			 2 * lw_round(settings) + LW_MOST_STATS * 8;

	lw_use_arena();
	pages = (pages + LW_PAGE_BYTES - 1) / LW_PAGE_BYTES;
	if (lw_base) {                  /* only where vectors are replayed */
		bpf_arena_free_pages(&arena, lw_base, lw_pages);
		lw_base = NULL;
	}
	base = bpf_arena_alloc_pages(&arena, NULL, pages, -1, 0);
	if (!base)
		return -ENOMEM;
	plane = (struct lw_plane *)base;
	plane->nqueues = nqueues;
	plane->nslots = nslots;
	plane->settings_words = settings / 8;
	plane->queues_at = end;
	end += lw_round(nqueues * sizeof(struct lw_queue));
	plane->classes_at = end;
	end += lw_round(nqueues * sizeof(struct lw_class));
	plane->slots_at = end;
	end += lw_round(nslots * sizeof(struct lw_slot));
	plane->state_at = end;
	end += lw_round(state_bytes);
	plane->now_at = end;
	end += lw_round(settings);
	plane->next_at = end;
	end += lw_round(settings);
	plane->stats_at = end;
	slots = (struct lw_slot *)(base + plane->slots_at);
	for (slot = 0; slot < nslots && lw_again(); slot++)
		slots[slot].next = slot + 1;    /* the last one's has no place in `packets` */
	lw_base = base;
	lw_pages = pages;
	return 0;
}

static __always_inline int lw_carry(struct lw_command *command)
{
	uint32_t zero = 0, word, words = command->words;
	struct lw_exchange *buffer = bpf_map_lookup_elem(&exchange, &zero);
	uint64_t *memory = (uint64_t *)lw_at(lw_plane(), (uint32_t)command->offset);
	bool write = command->op == LW_OP_WRITE;

	if (!buffer)
		return -ENOMEM;
	for (word = 0; word < words && lw_again(); word++) {
		uint32_t place;

		lw_place = word;        /* the verifier does not know it when it comes back, so it need not follow `word` */
		place = lw_place & (LW_EXCHANGE_WORDS - 1);
		if (write)
			memory[word] = buffer->words[place];
		else
			buffer->words[place] = memory[word];
	}
	return 0;
}

LW_VERIFIED int lw_observe(uint64_t now_ns, uint32_t q)
{
	struct lw_view view;
	struct lw_plane *plane;

	lw_use_arena();
	plane = lw_plane();
	view = lw_view(plane, now_ns);
	if (lw_policy.observe)
		lw_policy.observe(lw_state(plane), &view, q, (int64_t *)lw_at(plane, plane->stats_at));
	return 0;
}

SEC("syscall")
int linkweir_command(struct lw_command *command)
{
	uint64_t now_ns = command->now_ns;
	uint32_t q = command->q, bytes = command->bytes;
	struct lw_plane *plane;

	lw_use_arena();
	if (command->op == LW_OP_LAYOUT)
		return lw_layout(command->nqueues, command->nslots, bytes);
	if (!lw_base)
		return -ENOMEM;
	plane = lw_plane();
	switch (command->op) {
	case LW_OP_START:
		lw_follow(plane, now_ns);
		lw_record(now_ns, LW_CALLED_INIT, LW_NO_CALLED, 0);
		return lw_init(now_ns);
	case LW_OP_READ:
	case LW_OP_WRITE:
		return lw_carry(command);
	case LW_OP_TURN:
		command->answer = __sync_val_compare_and_swap(&((struct lw_plane __arena *)lw_base)->turn, command->from, command->to);
		return 0;
	case LW_OP_SHOW:
		return lw_observe(now_ns, q);
	}
	return -EOPNOTSUPP;
}

SEC("syscall")
int linkweir_replay(struct lw_command *command)
{
	uint64_t now_ns = command->now_ns;
	uint32_t q = command->q, bytes = command->bytes;
	struct lw_plane *plane;

	lw_use_arena();
	if (!lw_base)
		return -ENOMEM;
	plane = lw_plane();
	plane->link_bps = command->link_bps;
	if (q < plane->nqueues)
		lw_queues(plane)[q] = command->row;
	switch (command->op) {
	case LW_OP_PICK:
		command->answer = lw_pick(now_ns);
		return 0;
	case LW_OP_ENQUEUED:
		return lw_enqueued(now_ns, q, bytes);
	case LW_OP_SENT:
		return lw_sent(now_ns, q, bytes);
	case LW_OP_DROPPED:
		return lw_dropped(now_ns, q, bytes);
	case LW_OP_RATED:
		return lw_rated(now_ns);
	case LW_OP_CHANGE:
		return lw_change(now_ns);
	case LW_OP_VICTIM:
		command->answer = lw_victim(now_ns, q, bytes);
		return 0;
	case LW_OP_LEAVING:
		command->answer = lw_leaving(now_ns, q, bytes);
		return 0;
	case LW_OP_EXPIRED:
		command->answer = lw_expired(now_ns, q);
		return 0;
	case LW_OP_OBSERVE:
		return lw_observe(now_ns, q);
	case LW_OP_INIT:
		return lw_init(now_ns);
	}
	return -EOPNOTSUPP;
}
