// SPDX-License-Identifier: GPL-2.0-only
/*
 * labline - the simulator's link as a queueing discipline of the laboratory: capacity and propagation delay over time.
 *
 * It has one child, the policy. It takes a packet from the child when the link becomes free, and keeps it until the integral of the
 * capacity has reached its bits. Then the packet travels for the propagation delay of that instant; packets never overtake each other.
 * A capacity of opportunities, as mahimahi records them, lets a number of bytes leave at each instant; bytes without a packet are lost.
 *
 * Which packets are lost on the way, or held back for a time before they travel, so that later ones overtake them, is a list, too: the
 * simulator's, so that it loses the same ones.
 *
 * Capacity and delay are lists that were computed in advance (struct header and what follows it), so nothing polls: the only timer
 * is for the next instant at which a packet moves. HTB, which this replaces, cannot have a rate of 0, keeps its debts in units of time, so
 * that they are wrong when the rate changes, and releases a packet when its time on the link begins.
 *
 * Classes of its own show counters in the usual form, as `tc -s class show` prints bytes and packets:
 *
 *   1:1        what has left the link; leaf is the child
 *   1:100+D    what arrived with the DSCP D
 *   1:200+D    of that, what was taken from the child
 *   1:300+D    bytes: the time that these packets waited in the child, ns; packets: those that carried the mark CE
 *   1:400+D    of those that arrived, what the child dropped
 *
 * If the header asks for it, /proc/labline/DEVICE has the packets in the order in which they were taken (struct departure).
 */
#include <linux/ip.h>
#include <linux/kernel_read_file.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/vmalloc.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>

#define PATH "/job/line"
#define NEVER U64_MAX
#define MOST_BYTES (1 << 28)

enum { RATES, OPPORTUNITIES };
enum { LINK = 1, ARRIVED = 0x100, TAKEN = 0x200, NOTED = 0x300, DROPPED = 0x400, DSCPS = 64 };

/* Beginning of the file; numbers are little-endian, times in ns of the monotonic clock. Then come the steps or instants of the
 * capacity, then the steps of the delay. */
struct header {
	u64 kind;                       /* RATES or OPPORTUNITIES */
	u64 bytes;                      /* of an opportunity */
	u64 capacities;                 /* steps, or instants, u64 each */
	u64 delays;                     /* steps */
	u64 fates;                      /* bytes behind the steps: what becomes of each packet, in the order in which they leave */
	u64 held_ns;                    /* how long a packet is held back */
	u64 departures;                 /* how many packets are noted as they are taken */
};

/* What is noted of a packet as it is taken from the child. */
struct departure {
	u64 at_ns;
	u64 waited_ns;                  /* in the child */
	u32 bytes;                      /* as the link counts them */
	u32 dscp;
};

enum fate { PASSES, LOST, HELD };

struct step {
	u64 at_ns;                      /* rises; the value lasts until the next step, the last one for ever */
	u64 value;                      /* bit/s, or ns */
};

struct counters {
	u64 bytes, packets;
};

struct line {
	struct Qdisc *child;
	struct qdisc_watchdog watchdog;
	void *file;
	const struct step *rates, *delays;
	const u64 *instants;
	size_t nrates, ndelays, ninstants;
	size_t rate, delay, instant;    /* where in the lists the link is */
	struct sk_buff *held;           /* on the link; the child has given it up */
	u64 ends_ns;                    /* when it will have left; when the last one left */
	u64 surplus;                    /* what the link had carried at that time for the packet behind it, 1e-9 bit */
	u64 left_bytes;                 /* opportunities that `held` still needs */
	u64 opportunity_bytes;
	bool waiting;                   /* opportunities: a packet is here, so none passes unused */
	const u8 *fates;
	size_t nfates, fate;
	u64 held_ns;
	struct sk_buff_head late;       /* held back, with the time at which they travel as time stamp */
	struct Qdisc *sch;
	struct sk_buff_head flight;     /* on the way, with the time of their arrival as time stamp */
	u64 last_ns;                    /* that of the last of them */
	struct gnet_stats_basic_sync carried;
	struct departure *departures;
	size_t ndepartures, most_departures;
	struct proc_dir_entry *shown;
	struct counters arrived[DSCPS], taken[DSCPS], noted[DSCPS], dropped[DSCPS];
};

static int dscp_of(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IP) ? ip_hdr(skb)->tos >> 2 : 0;
}

static void count(struct counters *to, u64 bytes, u64 packets)
{
	to->bytes += bytes;
	to->packets += packets;
}

/* ---- the lists ---- */

/* The step at a time; times only rise. */
static const struct step *step_at(const struct step *steps, size_t n, size_t *at, u64 now_ns)
{
	while (*at + 1 < n && steps[*at + 1].at_ns <= now_ns)
		++*at;
	return steps + *at;
}

/* When a packet that begins at `from_ns` has left; NEVER if it never does. */
static u64 reached(struct line *line, u64 from_ns, u64 bytes)
{
	u64 left = bytes * 8 * NSEC_PER_SEC;    /* 1e-9 bit */

	if (line->surplus >= left) {
		line->surplus -= left;
		return from_ns;
	}
	left -= line->surplus;
	for (;;) {
		const struct step *step = step_at(line->rates, line->nrates, &line->rate, from_ns);
		bool last = line->rate + 1 == line->nrates;
		u64 until_ns = last ? NEVER : step[1].at_ns;

		if (step->value) {
			u64 takes_ns = DIV64_U64_ROUND_UP(left, step->value);

			if (takes_ns <= until_ns - from_ns) {
				line->surplus = takes_ns * step->value - left;
				return from_ns + takes_ns;
			}
			left -= (until_ns - from_ns) * step->value;
		}
		if (last)
			return NEVER;
		from_ns = until_ns;
	}
}

/* ---- packets ---- */

static struct Qdisc_ops labline_ops;

/* Destructor of the packets that are in the child: what frees one there has dropped it. A forwarded packet has no other. */
static void dropped(struct sk_buff *skb)
{
	struct Qdisc *root = rcu_access_pointer(skb->dev->qdisc);

	if (root->ops == &labline_ops) {
		struct line *line = qdisc_priv(root);

		count(line->dropped + dscp_of(skb), qdisc_pkt_len(skb), 1);
	}
}

static struct sk_buff *take(struct line *line, u64 now_ns)
{
	struct sk_buff *skb = line->child->ops->dequeue(line->child);
	u64 waited_ns;
	int dscp;

	if (!skb)
		return NULL;
	if (skb->destructor == dropped)
		skb->destructor = NULL;
	dscp = dscp_of(skb);
	waited_ns = now_ns - ktime_to_ns(skb->tstamp);
	count(line->taken + dscp, qdisc_pkt_len(skb), 1);
	count(line->noted + dscp, waited_ns,
	      skb->protocol == htons(ETH_P_IP) && INET_ECN_is_ce(ip_hdr(skb)->tos));
	if (line->ndepartures < line->most_departures)
		line->departures[line->ndepartures++] = (struct departure){ now_ns, waited_ns, qdisc_pkt_len(skb), dscp };
	return skb;
}

/* Sends a packet on its way at this time. */
static void travel(struct line *line, struct sk_buff *skb, u64 at_ns)
{
	u64 out_ns = at_ns + step_at(line->delays, line->ndelays, &line->delay, at_ns)->value;

	line->last_ns = max(line->last_ns, out_ns);
	skb->tstamp = ns_to_ktime(line->last_ns);
	__skb_queue_tail(&line->flight, skb);
}

/* Lets those travel that were held back long enough. */
static void release(struct line *line, u64 now_ns)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&line->late)) && ktime_to_ns(skb->tstamp) <= now_ns) {
		__skb_unlink(skb, &line->late);
		travel(line, skb, ktime_to_ns(skb->tstamp));
	}
}

static void lose(struct line *line, struct sk_buff *skb)
{
	qdisc_qstats_backlog_dec(line->sch, skb);
	line->sch->q.qlen--;
	kfree_skb(skb);
}

/* The packet on the link has left it at this time. */
static void send_on(struct line *line, u64 at_ns)
{
	struct sk_buff *skb = line->held;

	release(line, at_ns);
	bstats_update(&line->carried, skb);
	line->held = NULL;
	switch (line->nfates ? line->fates[line->fate++ % line->nfates] : PASSES) {
	case LOST:
		lose(line, skb);
		break;
	case HELD:
		skb->tstamp = ns_to_ktime(at_ns + line->held_ns);
		__skb_queue_tail(&line->late, skb);
		break;
	default:
		travel(line, skb, at_ns);
	}
}

/* Moves packets over the link up to now; returns when to come back. */
static u64 carry(struct line *line, u64 now_ns)
{
	for (;;) {
		u64 from_ns = now_ns;

		if (line->held) {
			if (line->ends_ns > now_ns)
				return line->ends_ns;
			from_ns = line->ends_ns;
			send_on(line, from_ns);
		} else {
			line->surplus = 0;
		}
		line->held = take(line, from_ns);
		if (!line->held)
			return NEVER;
		line->ends_ns = reached(line, from_ns, qdisc_pkt_len(line->held));
	}
}

static u64 spend(struct line *line, u64 now_ns)
{
	/* those at which nothing waited have passed */
	while (!line->waiting && line->instant < line->ninstants && line->instants[line->instant] < now_ns)
		line->instant++;
	for (; line->instant < line->ninstants && line->instants[line->instant] <= now_ns; line->instant++) {
		u64 budget = line->opportunity_bytes;

		while (budget) {
			u64 used;

			if (!line->held) {
				line->held = take(line, now_ns);
				if (!line->held)
					break;
				line->left_bytes = qdisc_pkt_len(line->held);
			}
			used = min(budget, line->left_bytes);
			budget -= used;
			line->left_bytes -= used;
			if (!line->left_bytes)
				send_on(line, line->instants[line->instant]);
		}
	}
	line->waiting = line->held || line->child->q.qlen;
	return line->waiting && line->instant < line->ninstants ? line->instants[line->instant] : NEVER;
}

static int labline_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct line *line = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	int ret;

	count(line->arrived + dscp_of(skb), bytes, 1);
	skb->tstamp = ktime_get();
	if (!skb->destructor && !skb->sk)
		skb->destructor = dropped;
	ret = qdisc_enqueue(skb, line->child, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += bytes;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *labline_dequeue(struct Qdisc *sch)
{
	struct line *line = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns(), next_ns = line->ninstants ? spend(line, now_ns) : carry(line, now_ns);
	struct sk_buff *skb, *late;

	release(line, now_ns);
	skb = skb_peek(&line->flight);
	late = skb_peek(&line->late);
	if (late)
		next_ns = min_t(u64, next_ns, ktime_to_ns(late->tstamp));
	if (skb && ktime_to_ns(skb->tstamp) <= now_ns) {
		__skb_unlink(skb, &line->flight);
		skb_clear_tstamp(skb);
		qdisc_qstats_backlog_dec(sch, skb);
		sch->q.qlen--;
		qdisc_bstats_update(sch, skb);
		return skb;
	}
	if (skb)
		next_ns = min_t(u64, next_ns, ktime_to_ns(skb->tstamp));
	if (next_ns != NEVER)
		qdisc_watchdog_schedule_ns(&line->watchdog, next_ns);
	return NULL;
}

/* ---- the departures ---- */

static struct proc_dir_entry *folder;

static ssize_t departures_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	const struct line *line = pde_data(file_inode(file));

	return simple_read_from_buffer(to, size, at, line->departures, line->ndepartures * sizeof(*line->departures));
}

static const struct proc_ops departures_ops = {
	.proc_read = departures_read,
	.proc_lseek = default_llseek,
};

/* Makes room for so many departures, and a file that shows them. */
static int note_departures(struct line *line, size_t most)
{
	if (!most)
		return 0;
	line->departures = vzalloc(array_size(most, sizeof(*line->departures)));
	if (!line->departures)
		return -ENOMEM;
	line->most_departures = most;
	line->shown = proc_create_data(qdisc_dev(line->sch)->name, 0400, folder, &departures_ops, line);
	return line->shown ? 0 : -ENOMEM;
}

/* ---- life ---- */

static void drop_all(struct line *line)
{
	kfree_skb(line->held);
	line->held = NULL;
	__skb_queue_purge(&line->late);
	__skb_queue_purge(&line->flight);
}

static void labline_reset(struct Qdisc *sch)
{
	struct line *line = qdisc_priv(sch);

	qdisc_watchdog_cancel(&line->watchdog);
	if (line->child)
		qdisc_reset(line->child);
	drop_all(line);
}

static void labline_destroy(struct Qdisc *sch)
{
	struct line *line = qdisc_priv(sch);

	qdisc_watchdog_cancel(&line->watchdog);
	drop_all(line);
	proc_remove(line->shown);
	vfree(line->departures);
	qdisc_put(line->child);
	vfree(line->file);
}

static int labline_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct line *line = qdisc_priv(sch);
	const struct header *header;
	ssize_t size, wanted;

	line->sch = sch;
	__skb_queue_head_init(&line->late);
	__skb_queue_head_init(&line->flight);
	qdisc_watchdog_init(&line->watchdog, sch);
	gnet_stats_basic_sync_init(&line->carried);
	line->child = &noop_qdisc;
	size = kernel_read_file_from_path(PATH, 0, &line->file, MOST_BYTES, NULL, READING_UNKNOWN);
	if (size < (ssize_t)sizeof(*header)) {
		NL_SET_ERR_MSG(extack, PATH " cannot be read");
		return -EINVAL;
	}
	header = line->file;
	line->opportunity_bytes = header->bytes;
	if (header->kind == RATES) {
		line->nrates = header->capacities;
		line->rates = (const void *)(header + 1);
		line->delays = line->rates + line->nrates;
	} else {
		line->ninstants = header->capacities;
		line->instants = (const void *)(header + 1);
		line->delays = (const void *)(line->instants + line->ninstants);
	}
	line->ndelays = header->delays;
	line->fates = (const void *)(line->delays + line->ndelays);
	line->nfates = header->fates;
	line->held_ns = header->held_ns;
	wanted = sizeof(*header) + line->ninstants * sizeof(u64) + (line->nrates + line->ndelays) * sizeof(struct step) + line->nfates;
	if (!header->capacities || !line->ndelays || size != wanted) {
		NL_SET_ERR_MSG(extack, PATH " has another length than its header says");
		return -EINVAL;
	}
	line->child = qdisc_create_dflt(sch->dev_queue, &pfifo_qdisc_ops, TC_H_MAKE(sch->handle, LINK), extack);
	if (!line->child) {
		line->child = &noop_qdisc;
		return -ENOMEM;
	}
	qdisc_hash_add(line->child, true);
	return note_departures(line, header->departures);
}

static int labline_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	return skb->len;
}

/* ---- classes ---- */

static int labline_graft(struct Qdisc *sch, unsigned long class, struct Qdisc *new, struct Qdisc **old,
			 struct netlink_ext_ack *extack)
{
	struct line *line = qdisc_priv(sch);

	if (class != LINK)
		return -EINVAL;
	*old = qdisc_replace(sch, new ? new : &noop_qdisc, &line->child);
	return 0;
}

static struct Qdisc *labline_leaf(struct Qdisc *sch, unsigned long class)
{
	struct line *line = qdisc_priv(sch);

	return class == LINK ? line->child : NULL;
}

static void labline_qlen_notify(struct Qdisc *sch, unsigned long class)
{
}

static unsigned long labline_find(struct Qdisc *sch, u32 classid)
{
	return TC_H_MIN(classid) == LINK ? LINK : 0;
}

static int labline_dump_class(struct Qdisc *sch, unsigned long class, struct sk_buff *skb, struct tcmsg *tcm)
{
	struct line *line = qdisc_priv(sch);

	tcm->tcm_parent = TC_H_ROOT;
	tcm->tcm_handle = TC_H_MAKE(sch->handle, class);
	tcm->tcm_info = class == LINK ? line->child->handle : 0;
	return 0;
}

static const struct counters *counters_of(const struct line *line, unsigned long class)
{
	static const struct counters none;
	unsigned long dscp = class & (DSCPS - 1);

	switch (class - dscp) {
	case ARRIVED:
		return line->arrived + dscp;
	case TAKEN:
		return line->taken + dscp;
	case NOTED:
		return line->noted + dscp;
	case DROPPED:
		return line->dropped + dscp;
	}
	return &none;
}

static int labline_dump_stats(struct Qdisc *sch, unsigned long class, struct gnet_dump *d)
{
	struct line *line = qdisc_priv(sch);
	struct gnet_stats_basic_sync shown;
	struct gnet_stats_queue queue = {};

	gnet_stats_basic_sync_init(&shown);
	if (class == LINK) {
		if (gnet_stats_copy_basic(d, NULL, &line->carried, true) < 0)
			return -1;
		return qdisc_qstats_copy(d, line->child);
	}
	_bstats_update(&shown, counters_of(line, class)->bytes, counters_of(line, class)->packets);
	if (gnet_stats_copy_basic(d, NULL, &shown, true) < 0)
		return -1;
	return gnet_stats_copy_queue(d, NULL, &queue, 0);
}

static void labline_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	struct line *line = qdisc_priv(sch);
	unsigned long kind, dscp;

	if (walker->stop || !tc_qdisc_stats_dump(sch, LINK, walker))
		return;
	for (kind = ARRIVED; kind <= DROPPED; kind += ARRIVED)
		for (dscp = 0; dscp < DSCPS; dscp++)
			if (line->arrived[dscp].packets && !tc_qdisc_stats_dump(sch, kind + dscp, walker))
				return;
}

static const struct Qdisc_class_ops labline_class_ops = {
	.graft = labline_graft,
	.leaf = labline_leaf,
	.qlen_notify = labline_qlen_notify,
	.find = labline_find,
	.walk = labline_walk,
	.dump = labline_dump_class,
	.dump_stats = labline_dump_stats,
};

static struct Qdisc_ops labline_ops = {
	.cl_ops = &labline_class_ops,
	.id = "labline",
	.priv_size = sizeof(struct line),
	.enqueue = labline_enqueue,
	.dequeue = labline_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = labline_init,
	.reset = labline_reset,
	.destroy = labline_destroy,
	.dump = labline_dump,
	.owner = THIS_MODULE,
};

static int __init labline_begin(void)
{
	int error;

	folder = proc_mkdir("labline", NULL);
	if (!folder)
		return -ENOMEM;
	error = register_qdisc(&labline_ops);
	if (error)
		proc_remove(folder);
	return error;
}

static void __exit labline_end(void)
{
	unregister_qdisc(&labline_ops);
	proc_remove(folder);
}

module_init(labline_begin);
module_exit(labline_end);
MODULE_DESCRIPTION("Link with capacity and delay over time, for the laboratory");
MODULE_LICENSE("GPL");
