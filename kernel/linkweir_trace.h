/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * linkweir_trace.h - tracepoints: every question to a policy and every event reported to it, so that a run can be replayed
 * elsewhere.
 *
 * tests/trace_vectors.py turns a recording into vectors. Times are the policy's clock (now_ns). Classes are numbered from 1, as in
 * tc; calls pass the index, and the tracepoint adds 1 only while recording, so that it costs nothing otherwise. A recording is
 * complete if it begins before the qdisc is created and no event was lost.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM linkweir

#if !defined(LINKWEIR_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LINKWEIR_TRACE_H

#include <linux/tracepoint.h>
#include <net/sch_generic.h>

#include "linkweir.h"

/* a value that takes effect with the next linkweir_configured: a parameter of the policy (class 0) or of a class */
TRACE_EVENT(linkweir_param,
	TP_PROTO(struct Qdisc *sch, u32 class, const char *name, u64 value),
	TP_ARGS(sch, class, name, value),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(u32, class)
		__field(u64, value)
		__array(char, name, 32)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->class = class;
		__entry->value = value;
		strscpy(__entry->name, name, sizeof(__entry->name));
	),
	TP_printk("ifindex=%d handle=%x: class=%u name=%s value=%llu", __entry->ifindex, __entry->handle >> 16, __entry->class,
		  __entry->name, __entry->value)
);

/* the same for a rate: of the link (class 0) or of the channel of a class */
TRACE_EVENT(linkweir_channel,
	TP_PROTO(struct Qdisc *sch, u32 class, u64 rate_bps),
	TP_ARGS(sch, class, rate_bps),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(u32, class)
		__field(u64, rate_bps)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->class = class;
		__entry->rate_bps = rate_bps;
	),
	TP_printk("ifindex=%d handle=%x: class=%u rate_bps=%llu", __entry->ifindex, __entry->handle >> 16, __entry->class,
		  __entry->rate_bps)
);

/* init(), with which a replay begins, rated() or change() was called */
TRACE_EVENT(linkweir_configured,
	TP_PROTO(struct Qdisc *sch, const char *policy, const char *what, u64 now_ns, u32 classes),
	TP_ARGS(sch, policy, what, now_ns, classes),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(u64, now_ns)
		__field(u32, classes)
		__array(char, policy, 16)
		__array(char, what, 8)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->now_ns = now_ns;
		__entry->classes = classes;
		strscpy(__entry->policy, policy, sizeof(__entry->policy));
		strscpy(__entry->what, what, sizeof(__entry->what));
	),
	TP_printk("ifindex=%d handle=%x: now_ns=%llu policy=%s classes=%u what=%s", __entry->ifindex, __entry->handle >> 16,
		  __entry->now_ns, __entry->policy, __entry->classes, __entry->what)
);

/* a packet arrived, left or was dropped; after the update of the view, before the event to the policy */
DECLARE_EVENT_CLASS(linkweir_packet,
	TP_PROTO(struct Qdisc *sch, u32 q, u32 bytes),
	TP_ARGS(sch, q, bytes),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(u64, now_ns)
		__field(u32, class)
		__field(u32, bytes)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->now_ns = linkweir_now_ns(sch);
		__entry->class = q + 1;
		__entry->bytes = bytes;
	),
	TP_printk("ifindex=%d handle=%x: now_ns=%llu class=%u bytes=%u", __entry->ifindex, __entry->handle >> 16, __entry->now_ns,
		  __entry->class, __entry->bytes)
);
#define LINKWEIR_PACKET_EVENT(name) DEFINE_EVENT(linkweir_packet, name, \
	TP_PROTO(struct Qdisc *sch, u32 q, u32 bytes), TP_ARGS(sch, q, bytes))
LINKWEIR_PACKET_EVENT(linkweir_enqueued);
LINKWEIR_PACKET_EVENT(linkweir_sent);
LINKWEIR_PACKET_EVENT(linkweir_dropped_limit);
LINKWEIR_PACKET_EVENT(linkweir_dropped_head);
LINKWEIR_PACKET_EVENT(linkweir_dropped_tail);
LINKWEIR_PACKET_EVENT(linkweir_dropped_reset);          /* the tail, without a question to the policy */

/* an answer of the policy; a pick of class 0 means none */
DECLARE_EVENT_CLASS(linkweir_answer,
	TP_PROTO(struct Qdisc *sch, u32 q, u32 answer, bool ecn),
	TP_ARGS(sch, q, answer, ecn),
	TP_STRUCT__entry(
		__field(int, ifindex)
		__field(u32, handle)
		__field(u64, now_ns)
		__field(u32, class)
		__field(u32, answer)
		__field(bool, ecn)
	),
	TP_fast_assign(
		__entry->ifindex = qdisc_dev(sch)->ifindex;
		__entry->handle = sch->handle;
		__entry->now_ns = linkweir_now_ns(sch);
		__entry->class = q + 1;
		__entry->answer = answer;
		__entry->ecn = ecn;
	),
	TP_printk("ifindex=%d handle=%x: now_ns=%llu class=%u answer=%u ecn=%d", __entry->ifindex, __entry->handle >> 16,
		  __entry->now_ns, __entry->class, __entry->answer, __entry->ecn)
);
#define LINKWEIR_ANSWER_EVENT(name) DEFINE_EVENT(linkweir_answer, name, \
	TP_PROTO(struct Qdisc *sch, u32 q, u32 answer, bool ecn), TP_ARGS(sch, q, answer, ecn))
LINKWEIR_ANSWER_EVENT(linkweir_pick);
LINKWEIR_ANSWER_EVENT(linkweir_verdict);        /* enum lw_verdict */
LINKWEIR_ANSWER_EVENT(linkweir_expired);        /* 1: yes */

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE linkweir_trace
#include <trace/define_trace.h>
