/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * policy.h - the contract between a scheduling policy and the data plane that carries the packets.
 *
 * The data plane (simulator, gateway, qdisc, ns-3) owns clocks, packets and queues. It keeps a view of the queues up to
 * date, asks the policy questions (pick, victim, expired), reports events to it (enqueued, sent, dropped, rated), and asks
 * it for a verdict on each packet that is about to leave (leaving). The policy owns one block of state and nothing else: it
 * does not allocate memory, read a clock, call the data plane or access a packet. Random numbers come from a generator in its
 * state, which begins with a parameter.
 *
 * Rules
 *   State     owned by the caller, 8-byte aligned, without pointers: memcpy takes a snapshot.
 *   Time      view->now_ns should not decrease. If it does, the policy uses the largest value it has seen.
 *   Calls     are serialised by the data plane. A question may cache its answer, so it takes writable state; but the same
 *             question, asked twice with the same view and without an event in between, gives the same answer.
 *   Events    are reported after they happened: the view already includes them.
 *   Bounds    the number of steps of every call has a stated bound. 64-bit division happens only in init, change, rated and
 *             observe, and in a pick that looks at every queue anyway. The time of init() and change() depends on the number
 *             of queues only.
 *   Repeats   rated() with an unchanged view, or change() with the present values, does not change any later answer if it
 *             is called at the time of the last event. If it is called later, it may round means once more.
 *   Blocked   a queue with rate_bps == 0 is never picked.
 *   Heads     head_bytes and head_arrival_ns of a queue change only with an event of that queue. If the queues of a data
 *             plane are schedulers themselves, another packet may become the head as time passes; the data plane then calls
 *             rated().
 *   Numbers   the values in a view are bounded by the constants LW_MAX_* and LW_MIN_RATE_BPS below. Every data plane refuses,
 *             with a reason, settings that would exceed them; the proofs assume these bounds and nothing more.
 *   Stack     no call needs more than 512 bytes of stack. Memory is cleared queue by queue, never the whole state at once.
 *
 * An arrival, in every data plane:
 *   1. The packet is put at the tail of queue q. (If q's own limit refuses it, there is no event.)
 *   2. enqueued(q).
 *   3. While victim() names a queue, but at most LW_MOST_DROPS times, the data plane drops the TAIL packet of that queue
 *      (its HEAD if the answer has LW_FROM_HEAD) and calls dropped(). The queue may be q itself.
 * So one arrival takes bounded time, even if a limit was lowered far below the present backlog. Later arrivals drop the
 * rest: an arrival that leaves the backlog above the policy's limit has dropped at least two packets, so the backlog
 * shrinks. A super-packet that the kernel splits is one arrival per segment. The new packet is treated like any other: it
 * is queued, and it is dropped only if victim() names it.
 *
 * A departure, in every data plane:
 *   1. pick() names a queue.
 *   2. leaving(), if the policy has it, gives the verdict on the HEAD packet of that queue. On LW_DROP the data plane drops
 *      the packet, calls dropped() and starts again with pick(). The policy counts each verdict, so a packet that is not
 *      dropped must now leave. The kernel holds the root lock during these steps: after LW_MOST_DROPS drops it returns
 *      without a packet, and the device asks again at once. The gateway does the same, and receives packets in between. The
 *      simulator repeats until a packet leaves, because no simulated time passes.
 *   3. The data plane dequeues the HEAD packet and calls sent().
 *
 * When q's own limit is about to refuse a packet and the policy has expired(), the data plane asks expired(q) first. While
 * the answer is yes, but at most LW_MOST_DROPS times, it drops q's HEAD packet and calls dropped(). It refuses the new
 * packet only if there is still no room for it.
 */
#ifndef LINKWEIR_POLICY_H
#define LINKWEIR_POLICY_H

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LW_ABI 3u
#define LW_NONE UINT32_MAX
#define LW_NEVER UINT64_MAX             /* retry_ns when only an event can change the answer */
#define LW_FROM_HEAD 0x80000000u        /* flag in the answer of victim(): drop the head, not the tail */
#define LW_MOST_DROPS 64u               /* in one call of the data plane; also the size of fq_codel's batch */
#define LW_UNSET UINT64_MAX             /* a parameter that was not given */
#define LW_MAX_QUEUES 65536u
#define LW_MAX_PACKET_BYTES (1u << 20)  /* exclusive */
#define LW_MIN_RATE_BPS 1u              /* of a link, and of a channel that is not blocked */
#define LW_MAX_RATE_BPS 1000000000000u
#define LW_MAX_NOW_NS ((uint64_t)1 << 62)       /* 146 years */

struct lw_queue {                       /* written by the data plane only */
	uint64_t backlog_bytes;
	uint64_t head_arrival_ns;       /* valid while backlog_pkts != 0 */
	uint64_t rate_bps;              /* LW_MIN_RATE_BPS .. LW_MAX_RATE_BPS: present rate of this queue's channel; 0: blocked */
	uint32_t backlog_pkts;
	uint32_t head_bytes;            /* valid while backlog_pkts != 0 */
};

struct lw_view {
	uint64_t now_ns;                /* at most LW_MAX_NOW_NS */
	uint64_t link_bps;              /* capacity as reported to the scheduler: nominal, or updated through rated(); 0: not known */
	const struct lw_queue *queues;
	uint32_t nqueues;
};

enum lw_verdict {
	LW_PASS,                        /* send it */
	LW_MARK,                        /* send it with Congestion Experienced; only if the packet can carry that */
	LW_DROP
};

enum lw_unit {
	LW_NUMBER,                      /* a pure number */
	LW_BPS,                         /* bit per second */
	LW_NS,                          /* nanoseconds */
	LW_BYTES,
	LW_BITS,
	LW_PKTS,
	LW_PPM,                         /* a fraction in millionths */
	LW_CHOICE                       /* index into choices */
};

enum lw_param_flag {
	LW_AT_INIT = 1                  /* it determines state_size, so change() keeps the value given to init() */
};

/* The only place that declares a parameter's name, meaning, unit, range and default. */
struct lw_param {
	const char *name;
	const char *help;
	const char *choices;            /* LW_CHOICE: "exact|paper"; otherwise NULL */
	uint64_t min, max;              /* inclusive; LW_UNSET is accepted too if it is the default */
	uint64_t def;
	enum lw_unit unit;
	uint32_t flags;
};

/* One value of each queue's state that the policy reports, for time series and statistics. */
struct lw_stat {
	const char *name;
	const char *help;
	enum lw_unit unit;
};

/* Properties of a policy that data planes must know, in addition to its parameters. */
enum lw_trait {
	LW_IGNORES_RATES = 1,           /* link_bps and rate_bps do not influence its choices, except that a rate_bps of 0 blocks */
	LW_SORTED_BY_ECN = 2            /* queues whose `l4s` is yes hold the packets with ECT(1) or CE, all others the rest; a data
	                                 * plane that cannot sort packets so refuses the policy */
};

/* Why a set of parameters is refused. */
struct lw_fault {
	const char *what;               /* one sentence: what is wrong and what to do */
	const char *param;              /* name of the parameter at fault */
	uint32_t queue;                 /* queue at fault, or LW_NONE for a parameter of the policy */
};

/*
 * params has nparams values; qparams has nqueues rows of nqparams values. Before init and change the data plane checks
 * every value against its range and then asks check(); init and change are called with accepted values only. The
 * link_bps that check() sees is the largest capacity reported so far, so no setting is refused because the link is faded.
 * Of the view, check() may read link_bps and nqueues only: the data plane may be changing the rest.
 */
struct lw_policy {
	const char *name;
	const char *help;
	uint32_t abi;
	uint32_t traits;                /* of enum lw_trait */
	uint32_t max_queues;            /* 1 .. LW_MAX_QUEUES */
	uint32_t nparams, nqparams, nstats;
	const struct lw_param *params, *qparams;
	const struct lw_stat *stats;
	const char *shared_limit;       /* name of the parameter that limits all queues together, in packets; NULL: none */

	/* Bytes of state for 1 .. max_queues queues, at least 1. Of the parameters only those with LW_AT_INIT matter. */
	size_t (*state_size)(uint32_t nqueues, const uint64_t *params);
	/* optional: checks rules about several parameters; if one is broken, fills *fault and returns false */
	bool (*check)(const struct lw_view *v, const uint64_t *params, const uint64_t *qparams, struct lw_fault *fault);
	void (*init)(void *st, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams);
	/* The queue whose head packet is sent next. LW_NONE: nothing can be sent now, and *retry_ns is the latest time to ask again,
	 * or LW_NEVER. In all other cases *retry_ns is not written. */
	uint32_t (*pick)(void *st, const struct lw_view *v, uint64_t *retry_ns);

	/* optional events */
	void (*enqueued)(void *st, const struct lw_view *v, uint32_t q, uint32_t bytes);
	void (*sent)(void *st, const struct lw_view *v, uint32_t q, uint32_t bytes);
	void (*dropped)(void *st, const struct lw_view *v, uint32_t q, uint32_t bytes);
	void (*rated)(void *st, const struct lw_view *v);       /* link_bps, a rate_bps, or (without an event) a head changed */
	void (*change)(void *st, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams);

	/* optional: after a packet of `bytes` has joined q: the queue that must drop a packet (| LW_FROM_HEAD), or LW_NONE */
	uint32_t (*victim)(void *st, const struct lw_view *v, uint32_t q, uint32_t bytes);
	/* optional: the verdict on the head packet of q, which was picked; `ecn`: the packet can carry a mark */
	enum lw_verdict (*leaving)(void *st, const struct lw_view *v, uint32_t q, bool ecn);
	/* optional: may the head packet of q, which is not empty, be dropped to make room? */
	bool (*expired)(const void *st, const struct lw_view *v, uint32_t q);
	/* optional: nstats values of queue q, as declared in stats */
	void (*observe)(const void *st, const struct lw_view *v, uint32_t q, int64_t *values);
};

#define LW_POLICY(name) extern const struct lw_policy lw_policy_##name;
#include "policies.def"
#undef LW_POLICY

/* every policy, in the order of policies.def */
extern const struct lw_policy *const lw_policies[];
extern const uint32_t lw_npolicies;

#ifdef __cplusplus
}
#endif

#endif
