/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * plane.h - the memory of one queueing discipline: an arena, which starts with struct lw_plane. The loader reads and writes it by
 * commands; crates/linkweir-bpf/src/layout.rs has the same structures.
 */
#ifndef LINKWEIR_BPF_PLANE_H
#define LINKWEIR_BPF_PLANE_H

#include <linkweir/policy.h>
#include <linkweir/math.h>

#define LW_MOST_PARAMS 16
#define LW_NO_SLOT UINT32_MAX
#define LW_CODE_POINTS 64
#define LW_EXCHANGE_WORDS 4096
#define LW_MOST_STATS 16
#define LW_NOTES_BYTES 65536
#define LW_TEXTS 2               /* settings in force, and those that are next */
#define LW_MOST_RULES 64
#define LW_MOST_MARKS 64

enum lw_reason { LW_LIMIT, LW_VICTIM, LW_EXPIRED, LW_LEAVING, LW_RESET, LW_MEMORY, LW_REASONS };

/* who may use `next`; the loader holds a lock of its own against other loaders */
enum lw_turn { LW_IDLE, LW_WRITING, LW_READY, LW_APPLYING };

struct lw_class_settings {
	uint64_t limit_bytes;
	uint64_t rate_bps;              /* LW_UNSET: the link's */
	uint64_t limit_pkts;
};

/* A packet matches if all of these hold; what the user left out holds for all packets. Ports: the first one, and the last << 16. */
struct lw_rule {
	uint64_t code_points;           /* a set of bits */
	uint64_t protocols[4];          /* a set of bits */
	uint32_t port, source_port, destination_port;   /* `port`: at either end */
	uint32_t class;
};

/* followed by classes[nqueues] and qparams[nqueues][nqparams] */
struct lw_settings {
	uint64_t link_bps;              /* 0: not known */
	uint64_t bandwidth_bps;         /* 0: packets leave as fast as the device takes them */
	uint64_t best_bps;              /* the largest capacity reported; of the loader's checks */
	uint64_t params[LW_MOST_PARAMS];
	uint64_t class_of[LW_CODE_POINTS];
	uint64_t default_class;         /* of packets that are not IP */
	uint64_t text;                  /* which entry of the map `notes` has these settings as text */
	uint64_t others;                /* number of marks, and of rules << 32; 0: only code points choose the class */
	uint64_t marks[LW_MOST_MARKS];  /* a mark of the firewall, and its class << 32; these come first */
	struct lw_rule rules[LW_MOST_RULES];    /* if there are any, they come in place of class_of */
};

struct lw_class {
	uint32_t first, last;           /* slots */
	uint64_t sent_pkts, sent_bytes;
	uint64_t dropped_pkts[LW_REASONS];
	uint64_t sojourn_ns, sojourn_max_ns;
};

/* A place for a packet. The packet is in the map `packets` at the same index. */
struct lw_slot {
	uint64_t arrival_ns;
	uint32_t bytes;
	uint32_t next, before;          /* in the class, or of the free places */
	uint32_t unused;
};

/* as in kernel/linkweir.h */
struct lw_pacer {
	uint64_t bandwidth_bps;
	struct lw_pace of;
	uint64_t free_ns, frac, owed_ns;
	uint64_t busy;
};

struct lw_plane {
	uint64_t link_bps;
	uint32_t nqueues, nslots;
	uint32_t turn;                  /* of enum lw_turn */
	uint32_t attached;              /* to a device */
	uint64_t applied;               /* changes so far */
	uint32_t free, used;            /* first free slot; slots that hold a packet */
	/* offsets of struct lw_queue[nqueues], struct lw_class[nqueues], struct lw_slot[nslots], ... */
	uint32_t queues_at, classes_at, slots_at, state_at, now_at, next_at, stats_at;
	uint32_t settings_words;
	uint64_t lost;                  /* places without a packet, or packets without a place: stays 0 */
	struct lw_pacer pacer;
};

/*
 * A call of the policy, as objects that are built with LW_RECORD note it down. `what`: of enum lw_called, and the queue << 8 (LW_NO_CALLED
 * for none); `value`: bytes of a packet, or the answer.
 */
enum lw_called { LW_CALLED_INIT, LW_CALLED_ENQUEUED, LW_CALLED_VICTIM, LW_CALLED_PICK, LW_CALLED_LEAVING, LW_CALLED_EXPIRED, LW_CALLED_SENT,
		 LW_CALLED_CHANGE };

#define LW_NO_CALLED 0xffffffu
#define LW_CALLS_OF_PAGE 256

struct lw_call {
	uint64_t now_ns;
	uint32_t what, value;
};

enum lw_op {
	LW_OP_LAYOUT,                   /* fetches memory: nqueues, nslots, bytes of state */
	LW_OP_START,                    /* init() with the settings at now_at */
	LW_OP_READ, LW_OP_WRITE,        /* words of the arena from or to the map `exchange` */
	LW_OP_TURN,                     /* compare and swap of `turn` */
	LW_OP_SHOW,                     /* the policy's statistics of q, to stats_at */
	/* of linkweir_replay */
	LW_OP_PICK, LW_OP_ENQUEUED, LW_OP_SENT, LW_OP_DROPPED, LW_OP_RATED, LW_OP_CHANGE, LW_OP_VICTIM, LW_OP_LEAVING,
	LW_OP_EXPIRED, LW_OP_OBSERVE, LW_OP_INIT
};

struct lw_command {
	uint32_t op, q;
	uint32_t bytes, words;          /* LW_OP_LAYOUT: bytes of state */
	uint32_t nqueues, nslots;
	uint32_t from, to;
	uint64_t now_ns, offset, link_bps;
	struct lw_queue row;            /* of q, written before a call of the policy */
	uint64_t answer;
};

/* as crates/linkweir-bpf/src/layout.rs has them */
_Static_assert(sizeof(struct lw_command) == 96 && offsetof(struct lw_command, row) == 56 && offsetof(struct lw_command, answer) == 88,
	       "struct lw_command");
_Static_assert(offsetof(struct lw_plane, turn) == 16 && offsetof(struct lw_plane, applied) == 24 && offsetof(struct lw_plane, used) == 36 &&
	       offsetof(struct lw_plane, queues_at) == 40 && offsetof(struct lw_plane, stats_at) == 64 && offsetof(struct lw_plane, lost) == 72,
	       "struct lw_plane");
_Static_assert(sizeof(struct lw_class) == 88 && offsetof(struct lw_class, sojourn_ns) == 72, "struct lw_class");
_Static_assert(sizeof(struct lw_settings) == 8 * (3 + LW_MOST_PARAMS + LW_CODE_POINTS + 3 + LW_MOST_MARKS + 7 * LW_MOST_RULES),
	       "struct lw_settings");
_Static_assert(sizeof(struct lw_rule) == 56 && offsetof(struct lw_rule, port) == 40 && offsetof(struct lw_rule, class) == 52, "struct lw_rule");
_Static_assert(sizeof(struct lw_class_settings) == 24 && sizeof(struct lw_slot) == 24, "rows");

#endif
