/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * policy.h - the contract between a scheduling policy and whatever carries the packets.
 *
 * The data plane (simulator, gateway, qdisc, ns-3) owns clocks, packets and queues. It keeps a view of the queues true,
 * asks the policy questions and tells it what happened. The policy owns one block of state and nothing else: it does not
 * allocate, read a clock, draw random numbers, call back or touch a packet.
 *
 * Rules
 *   State     caller-owned, 8-byte aligned, free of pointers: memcpy is a snapshot.
 *   Time      view->now_ns never decreases; a policy takes a smaller value as the last one it saw.
 *   Calls     serialised. A question may cache its answer, so it takes the state writable, but two questions with
 *             nothing between them and the same view agree.
 *   Events    are told after they happened: the view already shows them.
 *   Bounds    every call has a stated bound of steps; 64-bit division happens only in init, change, rated and observe, and
 *             in a pick that looks at every queue anyway. init() and change() take time by the number of queues only.
 *   Repeats   rated() with a view that has not changed, and change() with the values in force, change no later answer when
 *             they come at the time of the last event; at a later time they may round means once more.
 *   Blocked   a queue with rate_bps == 0 is never picked.
 *   Numbers   packet lengths are below LW_MAX_PACKET_BYTES; queues are at most LW_MAX_QUEUES.
 *
 * An arrival, in every data plane:
 *   1. The packet is put at the tail of queue q (unless q's own limit refuses it: then the policy never hears of it).
 *   2. enqueued(q).
 *   3. While victim() names a queue, but at most LW_MOST_DROPS times, its TAIL packet is dropped (its HEAD when the answer
 *      has LW_FROM_HEAD), and dropped() is told. It may name q itself.
 * So the time an arrival takes is bounded, also where much more waits than a limit that was lowered allows. Later arrivals drop
 * the rest: an arrival after which still more waits than the policy's limit has dropped at least two packets, so that fewer
 * wait than before. A super-packet that the kernel splits is as many arrivals as it has segments.
 * The new packet is treated like any other meanwhile: it is queued, and dropped only if it is named.
 * A departure, in every data plane:
 *   1. pick() names a queue.
 *   2. leaving(), where the policy has it, judges that queue's HEAD packet. LW_DROP: it is dropped, dropped() is told, and all
 *      begins anew. A verdict counts once, so what was not dropped must now leave. The kernel, which holds the root lock
 *      meanwhile, ends the call after LW_MOST_DROPS drops without a packet, and the device asks again at once. So does the
 *      gateway, which receives in between. The simulator goes on until a packet leaves: nobody waits for it.
 *   3. The HEAD packet is taken; sent().
 * When q's own limit is about to refuse a packet, the data plane asks expired(q), where the policy has it, and as long as the
 * answer is yes, but at most LW_MOST_DROPS times, drops q's HEAD instead, and tells dropped(). The packet is refused when that
 * makes no room.
 */
#ifndef LINKWEIR_POLICY_H
#define LINKWEIR_POLICY_H

#include "port.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LW_ABI 2u
#define LW_NONE UINT32_MAX
#define LW_NEVER UINT64_MAX             /* retry_ns when only an event can change the answer */
#define LW_FROM_HEAD 0x80000000u        /* beside a victim: the head goes, not the tail */
#define LW_MOST_DROPS 64u               /* in one call of the data plane; a batch of fq_codel's */
#define LW_UNSET UINT64_MAX             /* a parameter that was not given */
#define LW_MAX_QUEUES 65536u
#define LW_MAX_PACKET_BYTES (1u << 20)  /* exclusive */

struct lw_queue {                       /* written by the data plane only */
	uint64_t backlog_bytes;
	uint64_t head_arrival_ns;       /* valid while backlog_pkts != 0 */
	uint64_t rate_bps;              /* what the channel gives this queue now; 0: blocked */
	uint32_t backlog_pkts;
	uint32_t head_bytes;            /* valid while backlog_pkts != 0 */
};

struct lw_view {
	uint64_t now_ns;
	uint64_t link_bps;              /* the capacity the scheduler is told: nominal, or followed through rated() */
	const struct lw_queue *queues;
	uint32_t nqueues;
};

struct lw_pick {
	uint64_t retry_ns;              /* with LW_NONE: when to ask again at the latest, or LW_NEVER */
	uint32_t queue;                 /* LW_NONE: nothing to send now */
};

enum lw_verdict {
	LW_PASS,                        /* send it */
	LW_MARK,                        /* send it with Congestion Experienced; only where the packet can carry that */
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
	LW_AT_INIT = 1                  /* change() keeps the value given to init(): it sizes the state */
};

/* The only home of a parameter's name, meaning, unit, range and default. */
struct lw_param {
	const char *name;
	const char *help;
	const char *choices;            /* LW_CHOICE: "exact|paper"; otherwise NULL */
	uint64_t min, max;              /* inclusive; LW_UNSET passes as well where it is the default */
	uint64_t def;
	enum lw_unit unit;
	uint32_t flags;
};

/* One value a policy shows of each queue, for traces and statistics. */
struct lw_stat {
	const char *name;
	const char *help;
	enum lw_unit unit;
};

/* Why a set of parameters is refused. */
struct lw_fault {
	const char *what;               /* one sentence that says the cure */
	const char *param;              /* name of the parameter at fault */
	uint32_t queue;                 /* queue at fault, or LW_NONE for a parameter of the policy */
};

/*
 * params has nparams values; qparams has nqueues rows of nqparams values. Before init and change the data plane checks
 * every value against its range and then asks check(); init and change are called with accepted values only. What
 * check() sees as link_bps is the largest capacity the policy was told so far, so a fade refuses nothing.
 */
struct lw_policy {
	const char *name;
	const char *help;
	uint32_t abi, nparams, nqparams, nstats;
	const struct lw_param *params, *qparams;
	const struct lw_stat *stats;

	/* Bytes of state for nqueues queues; 0 when this policy cannot serve so many. */
	size_t (*state_size)(uint32_t nqueues, const uint64_t *params);
	/* optional: rules across parameters; false and *fault filled when refused */
	bool (*check)(const struct lw_view *v, const uint64_t *params, const uint64_t *qparams, struct lw_fault *fault);
	void (*init)(void *st, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams);
	struct lw_pick (*pick)(void *st, const struct lw_view *v);

	/* optional events */
	void (*enqueued)(void *st, const struct lw_view *v, uint32_t q, uint32_t bytes);
	void (*sent)(void *st, const struct lw_view *v, uint32_t q, uint32_t bytes);
	void (*dropped)(void *st, const struct lw_view *v, uint32_t q, uint32_t bytes);
	void (*rated)(void *st, const struct lw_view *v);       /* link_bps or some rate_bps changed */
	void (*change)(void *st, const struct lw_view *v, const uint64_t *params, const uint64_t *qparams);

	/* optional: q has just taken a packet of `bytes`; the queue that must give one up (| LW_FROM_HEAD), or LW_NONE */
	uint32_t (*victim)(void *st, const struct lw_view *v, uint32_t q, uint32_t bytes);
	/* optional: what becomes of the head of q, which was picked; `ecn`: it can carry a mark */
	enum lw_verdict (*leaving)(void *st, const struct lw_view *v, uint32_t q, bool ecn);
	/* optional: may the head of q, which has a packet, be dropped to make room? */
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
