/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * linkweir_netlink.h - the netlink attributes that the module and its tc plugins exchange.
 *
 * Parameters and statistics of a policy are sent by name, so that a plugin and a module of different versions either understand
 * each other or report the name they do not know. Values are in the unit of the policy's table: bit/s, ns, bytes, bits, packets,
 * millionths, or the index of a choice; U64_MAX is a value that is not given. Absent parameters keep their values. Classes are
 * numbered from 1, and the number is the minor part of the class's identifier.
 */
#ifndef LINKWEIR_NETLINK_H
#define LINKWEIR_NETLINK_H

#define LINKWEIR_MAX_CLASSES 4096
#define LINKWEIR_NAME_SIZE 32           /* with the final 0 */
#define LINKWEIR_CODE_POINTS 64
#define LINKWEIR_KEEP 0xffff            /* in TCA_LINKWEIR_DSCP: this code point keeps its class */

#define LINKWEIR_RAW (-2147483647 - 1)  /* in TCA_LINKWEIR_OVERHEAD: lengths as the kernel counts them, with the link header */

enum {
	LINKWEIR_NOATM,
	LINKWEIR_ATM,                   /* cells of 53 bytes carry 48 */
	LINKWEIR_PTM                    /* one byte more for each 64 or part of it */
};

/* TCA_OPTIONS of a qdisc */
enum {
	TCA_LINKWEIR_UNSPEC,
	TCA_LINKWEIR_PAD,
	TCA_LINKWEIR_CLASSES,           /* u32; if it changes, packets stay in their classes and the policy begins without state */
	TCA_LINKWEIR_LINK,              /* u64, bit/s: capacity as reported to the scheduler */
	TCA_LINKWEIR_DSCP,              /* u16[64]: class of a code point; 0: none, LINKWEIR_KEEP */
	TCA_LINKWEIR_DEFAULT,           /* u32: class of packets that nothing else classifies */
	TCA_LINKWEIR_PARAM,             /* nest, any number: a parameter of the policy */
	TCA_LINKWEIR_CLASS,             /* nest, any number: a class */
	TCA_LINKWEIR_BANDWIDTH,         /* u64, bit/s: packets leave at this rate, which is the link's; 0: at the parent's */
	TCA_LINKWEIR_OVERHEAD,          /* s32, bytes on the link beyond the network layer's, or LINKWEIR_RAW */
	TCA_LINKWEIR_MPU,               /* u32, bytes: least length on the link */
	TCA_LINKWEIR_CELLS,             /* u32: LINKWEIR_NOATM, LINKWEIR_ATM, LINKWEIR_PTM */
	TCA_LINKWEIR_SPLIT_GSO,         /* u32: 1: super-packets are split; 0: they stay whole */
	TCA_LINKWEIR_MEMLIMIT,          /* u64, bytes of memory that waiting packets use; 0: no limit */
	TCA_LINKWEIR_END
};
#define TCA_LINKWEIR_MAX (TCA_LINKWEIR_END - 1)

/* TCA_LINKWEIR_CLASS, and TCA_OPTIONS of a class */
enum {
	TCA_LINKWEIR_CLASS_UNSPEC,
	TCA_LINKWEIR_CLASS_PAD,
	TCA_LINKWEIR_CLASS_NUMBER,      /* u32 */
	TCA_LINKWEIR_CLASS_LIMIT,       /* u32, packets */
	TCA_LINKWEIR_CLASS_LIMIT_BYTES, /* u64 */
	TCA_LINKWEIR_CLASS_RATE,        /* u64, bit/s: present rate of the class's channel; 0 blocks it */
	TCA_LINKWEIR_CLASS_PARAM,       /* nest, any number */
	TCA_LINKWEIR_CLASS_END
};
#define TCA_LINKWEIR_CLASS_MAX (TCA_LINKWEIR_CLASS_END - 1)

/* a parameter */
enum {
	TCA_LINKWEIR_PARAM_UNSPEC,
	TCA_LINKWEIR_PARAM_PAD,
	TCA_LINKWEIR_PARAM_NAME,        /* string */
	TCA_LINKWEIR_PARAM_VALUE,       /* u64 */
	TCA_LINKWEIR_PARAM_END
};
#define TCA_LINKWEIR_PARAM_MAX (TCA_LINKWEIR_PARAM_END - 1)

/* TCA_STATS_APP of a qdisc (sums over its classes) and of a class */
enum {
	TCA_LINKWEIR_STATS_UNSPEC,
	TCA_LINKWEIR_STATS_PAD,
	TCA_LINKWEIR_STATS_DROPPED_LIMIT,       /* u64, packets: refused by the limit of their class */
	TCA_LINKWEIR_STATS_DROPPED_VICTIM,      /* u64: named by the policy when a packet arrived */
	TCA_LINKWEIR_STATS_DROPPED_EXPIRED,     /* u64: had waited too long and were dropped to make room */
	TCA_LINKWEIR_STATS_DROPPED_LEAVING,     /* u64: dropped by the policy when their turn came */
	TCA_LINKWEIR_STATS_MARKED,              /* u64: left with Congestion Experienced */
	TCA_LINKWEIR_STATS_SENT,                /* u64, packets */
	TCA_LINKWEIR_STATS_SOJOURN_NS,          /* u64: sum of the waiting times of sent packets */
	TCA_LINKWEIR_STATS_SOJOURN_MAX_NS,      /* u64 */
	TCA_LINKWEIR_STATS_VALUE,               /* nest, any number: a statistic of the policy for a class */
	TCA_LINKWEIR_STATS_DROPPED_SPLIT,       /* u64: super-packets that could not be split */
	TCA_LINKWEIR_STATS_DROPPED_FILTER,      /* u64: by a filter; of the qdisc only, as they have no class */
	TCA_LINKWEIR_STATS_DROPPED_RESET,       /* u64: waited when the carrier went, the device went down or a parent emptied it */
	TCA_LINKWEIR_STATS_DROPPED_MEMORY,      /* u64: the newest of the class with most bytes, when memlimit was exceeded */
	TCA_LINKWEIR_STATS_MEMORY,              /* u64, bytes: used by waiting packets; of a qdisc with memlimit only */
	TCA_LINKWEIR_STATS_QUEUES,              /* u64[]: packets sent by each transmission queue; of a qdisc NAME_mq only */
	TCA_LINKWEIR_STATS_END
};
#define TCA_LINKWEIR_STATS_MAX (TCA_LINKWEIR_STATS_END - 1)

/* a value */
enum {
	TCA_LINKWEIR_VALUE_UNSPEC,
	TCA_LINKWEIR_VALUE_PAD,
	TCA_LINKWEIR_VALUE_NAME,        /* string */
	TCA_LINKWEIR_VALUE_VALUE,       /* s64 */
	TCA_LINKWEIR_VALUE_END
};
#define TCA_LINKWEIR_VALUE_MAX (TCA_LINKWEIR_VALUE_END - 1)

#endif
