// SPDX-License-Identifier: GPL-2.0-only
/*
 * Priority Switching Scheduler
 *
 * Reserved rates between strict priorities, kept on a link whose capacity
 * changes.
 *
 * A plain class has one priority level. A controlled class has a reserved
 * rate, two levels, and a credit that falls by the rate as time passes and
 * rises by the bits it sends. It is at its high level until the credit reaches
 * LM, then at its low level until the credit is back at LR. So it receives its
 * rate with priority over the classes between its two levels, plus what they
 * leave over. LR is a memory: credit below it is service owed from a time when
 * more urgent classes or a fading link left too little.
 *
 * Credits are divided by the rate and so become times: `tat` is the instant at
 * which the credit will be 0, the level is tat - now, and LR and LM become TR
 * and TM. So passing time needs no arithmetic, an idle gap of days cannot
 * overflow, and the fraction of a nanosecond that a packet costs is carried
 * over, so rates do not drift. While a class is empty, its credit does not
 * fall below min(credit, LR).
 *
 * A reservation is a share of the link, which follows its present capacity, or
 * a rate, whose LR and LM come from the largest capacity reported so far. When
 * a capacity or a setting changes LR and LM, the credit's distance from LR
 * keeps its bits: what the class is owed, up to the new LR, or is ahead.
 *
 * When the device loses its carrier or a parent is reset, packets are dropped
 * but credits stay, as if the classes had been empty meanwhile.
 *
 * Enqueue and dequeue take O(1) steps, plus a pass over all classes at their
 * low level whenever one of them is due to return.
 *
 * References:
 * - F. Baker, A. Finzi, F. Frances, N. Kuhn, E. Lochin, A. Mifdaoui: Priority
 *   Switching Scheduler, draft-finzi-priority-switching-scheduler, 2018
 * - A. Finzi, R. Perrier, F. Frances, E. Lochin: the scheduler on links whose
 *   capacity varies, 2023
 */

#include <linux/bitmap.h>
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sort.h>
#include <net/gso.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>

#define PSS_UNSET U64_MAX	/* of an optional parameter */
#define PSS_NONE U32_MAX	/* instead of a class */
#define PSS_MAX_CLASSES PSS_BITMAP_SIZE
#define PSS_DEFAULT_LIMIT 1000u
#define PSS_MAX_PACKET_BYTES BIT(20)
#define PSS_MAX_NOW_NS BIT_ULL(62)

/* What the user sets for a class; PSS_UNSET where the default is derived. */
struct pss_params {
@FIELDS@
};

/* Why settings are refused. */
struct pss_fault {
	const char *what;
	const char *param;
	u32 queue;	/* or PSS_NONE */
};

/* floor(a * b / c), or U64_MAX if that does not fit or c is 0 */
static u64 pss_mul_div(u64 a, u64 b, u64 c)
{
	if (mul_u64_u64_shr(a, b, 64) >= c)
		return U64_MAX;
	return mul_u64_u64_div_u64(a, b, c);
}

static int pss_cmp(const void *a, const void *b)
{
	return cmp_int(*(const u32 *)a, *(const u32 *)b);
}

@ALGORITHM@
/* ---- the qdisc ---- */

/* What the user set; replaced as a whole. */
struct pss_config {
	u64 link_bps;
	u64 bandwidth_bps;	/* 0: not shaped */
	u32 default_class;
	u32 nclasses;
	u32 *limits;		/* packets, for each class */
	struct pss_params params[];
};

struct pss_class {
	struct sk_buff_head packets;
	struct gnet_stats_basic_sync bstats;
	u64 drops;
	u32 backlog;		/* bytes */
};

struct pss_sched {
	struct pss_state st;
	struct pss_shaper shaper;
	struct pss_class *classes;
	struct pss_config *config;
	struct tcf_proto __rcu *filters;
	struct tcf_block *block;
	struct qdisc_watchdog watchdog;
};

@RANGES@

static const struct nla_policy pss_policy[TCA_PSS_MAX + 1] = {
@POLICY@
	[TCA_PSS_CLASS] = { .type = NLA_NESTED },
};

static const struct nla_policy pss_class_policy[TCA_PSS_CLASS_MAX + 1] = {
@CLASS_POLICY@
};

/* ---- packets ---- */

static u32 pss_bytes(const struct sk_buff *skb)
{
	return min(qdisc_pkt_len(skb), PSS_MAX_PACKET_BYTES - 1);
}

/* Returns NET_XMIT_SUCCESS and the class's index, or what a filter decided. */
static int pss_classify(struct sk_buff *skb, struct Qdisc *sch, u32 *index)
{
	struct pss_sched *q = qdisc_priv(sch);
	u32 class = skb->priority;
	struct tcf_result res = {};
	struct tcf_proto *fl;

	if (TC_H_MAJ(skb->priority) != sch->handle) {
		class = 0;
		fl = rcu_dereference_bh(q->filters);
		switch (fl ? tcf_classify_qdisc(skb, fl, &res, false) : -1) {
		case -1:
			break;
#ifdef CONFIG_NET_CLS_ACT
		case TC_ACT_STOLEN:
		case TC_ACT_QUEUED:
		case TC_ACT_TRAP:
			return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
		case TC_ACT_SHOT:
			return NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
#endif
		default:
			class = res.classid;
		}
	}
	*index = TC_H_MIN(class) - 1;
	if (*index >= q->st.nqueues)
		*index = q->config->default_class;
	return NET_XMIT_SUCCESS;
}

static int pss_enqueue_one(struct sk_buff *skb, struct Qdisc *sch, u32 index,
			   struct sk_buff **to_free)
{
	struct pss_sched *q = qdisc_priv(sch);
	struct pss_queue *queue = &q->st.queues[index];
	struct pss_class *cl = &q->classes[index];

	if (unlikely(queue->qlen >= q->config->limits[index])) {
		cl->drops++;
		return qdisc_drop_reason(skb, sch, to_free,
					 QDISC_DROP_BAND_LIMIT);
	}
	cl->backlog += qdisc_pkt_len(skb);
	queue->qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
	qdisc_qlen_inc(sch);
	__skb_queue_tail(&cl->packets, skb);
	pss_enqueued(&q->st, index);
	return NET_XMIT_SUCCESS;
}

/* Rates and delays are guaranteed for packets as they go on the wire. */
static int pss_enqueue_split(struct sk_buff *skb, struct Qdisc *sch, u32 index,
			     struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	unsigned int len = 0, whole = qdisc_pkt_len(skb), segment;
	struct pss_sched *q = qdisc_priv(sch);
	struct sk_buff *segs, *nskb;
	int nb = 0;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs)) {
		q->classes[index].drops++;
		return qdisc_drop(skb, sch, to_free);
	}
	skb_list_walk_safe(segs, segs, nskb) {
		skb_mark_not_on_list(segs);
		segment = segs->len;
		qdisc_skb_cb(segs)->pkt_len = segment;
		qdisc_skb_cb(segs)->pkt_segs = 1;
		if (pss_enqueue_one(segs, sch, index, to_free))
			continue;
		nb++;
		len += segment;
	}
	consume_skb(skb);
	if (!nb)
		return NET_XMIT_DROP;
	qdisc_tree_reduce_backlog(sch, 1 - nb, whole - len);
	return NET_XMIT_SUCCESS;
}

static int pss_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	struct pss_sched *q = qdisc_priv(sch);
	u32 index;
	int err;

	err = pss_classify(skb, sch, &index);
	if (err != NET_XMIT_SUCCESS) {
		if (err & __NET_XMIT_BYPASS)
			qdisc_qstats_drop(sch);
		__qdisc_drop(skb, to_free);
		return err;
	}
	q->st.now_ns = ktime_get_ns();
	if (skb_is_gso(skb))
		return pss_enqueue_split(skb, sch, index, to_free);
	return pss_enqueue_one(skb, sch, index, to_free);
}

static struct sk_buff *pss_dequeue(struct Qdisc *sch)
{
	struct pss_sched *q = qdisc_priv(sch);
	struct pss_class *cl;
	struct sk_buff *skb;
	u32 index, bytes;

	q->st.now_ns = ktime_get_ns();
	if (q->shaper.bandwidth_bps && q->shaper.free_ns > q->st.now_ns) {
		if (!sch->q.qlen)
			return NULL;
		q->shaper.busy = true;
		qdisc_qstats_overlimit(sch);
		qdisc_watchdog_schedule_ns(&q->watchdog, q->shaper.free_ns);
		return NULL;
	}
	index = pss_pick(&q->st);
	if (index == PSS_NONE) {
		pss_rest_shaper(&q->shaper);
		return NULL;
	}
	cl = &q->classes[index];
	skb = __skb_dequeue(&cl->packets);
	bytes = pss_bytes(skb);
	cl->backlog -= qdisc_pkt_len(skb);
	q->st.queues[index].qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_qlen_dec(sch);
	bstats_update(&cl->bstats, skb);
	qdisc_bstats_update(sch, skb);
	if (q->shaper.bandwidth_bps)
		pss_occupy(&q->shaper, q->st.now_ns, bytes, sch->q.qlen);
	pss_sent(&q->st, index, bytes);
	return skb;
}

/*
 * Packets go, credits stay: on a fading link the carrier's loss is when they
 * matter. Only a new qdisc begins without them.
 */
static void pss_reset(struct Qdisc *sch)
{
	struct pss_sched *q = qdisc_priv(sch);
	u32 i;

	qdisc_watchdog_cancel(&q->watchdog);
	if (!q->classes)
		return;
	q->st.now_ns = ktime_get_ns();
	for (i = 0; i < q->st.nqueues; i++) {
		struct pss_class *cl = &q->classes[i];

		if (skb_queue_empty(&cl->packets))
			continue;
		cl->drops += cl->packets.qlen;
		WRITE_ONCE(sch->qstats.drops,
			   sch->qstats.drops + cl->packets.qlen);
		rtnl_kfree_skbs(skb_peek(&cl->packets),
				skb_peek_tail(&cl->packets));
		__skb_queue_head_init(&cl->packets);
		cl->backlog = 0;
		q->st.queues[i].qlen = 0;
		pss_dropped(&q->st, i);
	}
	pss_rest_shaper(&q->shaper);
}

/* ---- settings ---- */

static struct pss_config *pss_config_alloc(u32 nclasses)
{
	struct pss_config *config;
	u32 i;

	config = kvzalloc(struct_size(config, params, nclasses) +
			  array_size(nclasses, sizeof(*config->limits)),
			  GFP_KERNEL_ACCOUNT);
	if (!config)
		return NULL;
	config->nclasses = nclasses;
	config->limits = (u32 *)&config->params[nclasses];
	config->default_class = nclasses - 1;
	for (i = 0; i < nclasses; i++) {
		config->limits[i] = PSS_DEFAULT_LIMIT;
		config->params[i] = pss_default_params;
	}
	return config;
}

static void pss_config_copy(struct pss_config *to,
			    const struct pss_config *from)
{
	to->link_bps = from->link_bps;
	to->bandwidth_bps = from->bandwidth_bps;
	to->default_class = from->default_class;
	memcpy(to->limits, from->limits,
	       array_size(from->nclasses, sizeof(*from->limits)));
	memcpy(to->params, from->params,
	       array_size(from->nclasses, sizeof(*from->params)));
}

static void pss_set_class(struct pss_config *config, u32 index,
			  struct nlattr **tb)
{
	struct pss_params *params = &config->params[index];

	if (nla_get_flag(tb[TCA_PSS_CLASS_RESET])) {
		*params = pss_default_params;
		config->limits[index] = PSS_DEFAULT_LIMIT;
	}
	if (tb[TCA_PSS_CLASS_LIMIT])
		config->limits[index] = nla_get_u32(tb[TCA_PSS_CLASS_LIMIT]);
@SET_CLASS@
}

/* `only`: the number that the class must have, or 0 */
static int pss_parse_class(struct pss_config *config, struct nlattr *attr,
			   u32 only, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_PSS_CLASS_MAX + 1];
	u32 number;
	int err;

	err = nla_parse_nested(tb, TCA_PSS_CLASS_MAX, attr, pss_class_policy,
			       extack);
	if (err)
		return err;
	if (NL_REQ_ATTR_CHECK(extack, attr, tb, TCA_PSS_CLASS_NUMBER))
		return -EINVAL;
	number = nla_get_u32(tb[TCA_PSS_CLASS_NUMBER]);
	if (number > config->nclasses || (only && number != only)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_PSS_CLASS_NUMBER],
				    "There is no class of this number");
		return -EINVAL;
	}
	pss_set_class(config, number - 1, tb);
	return 0;
}

static int pss_set_link(struct pss_config *config, struct nlattr **tb,
			struct netlink_ext_ack *extack)
{
	if (tb[TCA_PSS_BANDWIDTH]) {
		config->bandwidth_bps = nla_get_u64(tb[TCA_PSS_BANDWIDTH]);
		if (config->bandwidth_bps)
			config->link_bps = config->bandwidth_bps;
	}
	if (tb[TCA_PSS_LINK])
		config->link_bps = nla_get_u64(tb[TCA_PSS_LINK]);
	if (config->bandwidth_bps && config->link_bps != config->bandwidth_bps) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_PSS_LINK],
				    "The bandwidth is the capacity: give only one of them");
		return -EINVAL;
	}
	if (tb[TCA_PSS_DEFAULT])
		config->default_class = nla_get_u32(tb[TCA_PSS_DEFAULT]) - 1;
	if (config->default_class >= config->nclasses) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_PSS_DEFAULT],
				    "There is no class of this number");
		return -EINVAL;
	}
	return 0;
}

static int pss_check_config(const struct pss_sched *q,
			    const struct pss_config *config,
			    struct netlink_ext_ack *extack)
{
	u64 link_bps = max(q->st.best_bps, config->link_bps);
	struct pss_fault fault = {};
	unsigned long *seen;
	bool good;

	seen = bitmap_zalloc(PSS_MAX_LEVEL + 1, GFP_KERNEL);
	if (!seen)
		return -ENOMEM;
	good = pss_check(link_bps, config->nclasses, config->params, seen,
			 &fault);
	bitmap_free(seen);
	if (good)
		return 0;
	if (fault.queue == PSS_NONE)
		NL_SET_ERR_MSG_FMT(extack, "%s", fault.what);
	else
		NL_SET_ERR_MSG_FMT(extack, "class %u: %s", fault.queue + 1,
				   fault.what);
	return -EINVAL;
}

static struct pss_config *pss_parse(struct Qdisc *sch, struct nlattr *opt,
				    struct netlink_ext_ack *extack)
{
	struct pss_sched *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_PSS_MAX + 1], *attr;
	struct pss_config *config;
	u32 nclasses = q->st.nqueues;
	int err, rem;

	if (!opt) {
		NL_SET_ERR_MSG(extack, "PSS options are required");
		return ERR_PTR(-EINVAL);
	}
	err = nla_parse_nested(tb, TCA_PSS_MAX, opt, pss_policy, extack);
	if (err)
		return ERR_PTR(err);
	if (!q->config && NL_REQ_ATTR_CHECK(extack, opt, tb, TCA_PSS_CLASSES))
		return ERR_PTR(-EINVAL);
	nclasses = nla_get_u32_default(tb[TCA_PSS_CLASSES], nclasses);
	if (q->config && nclasses != q->st.nqueues) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_PSS_CLASSES],
				    "The number of classes cannot be changed");
		return ERR_PTR(-EOPNOTSUPP);
	}
	config = pss_config_alloc(nclasses);
	if (!config)
		return ERR_PTR(-ENOMEM);
	if (q->config)
		pss_config_copy(config, q->config);
	err = pss_set_link(config, tb, extack);
	nla_for_each_nested_type(attr, TCA_PSS_CLASS, opt, rem) {
		if (err)
			break;
		err = pss_parse_class(config, attr, 0, extack);
	}
	if (!err)
		err = pss_check_config(q, config, extack);
	if (!err)
		return config;
	kvfree(config);
	return ERR_PTR(err);
}

/* Packets that wait beyond a smaller limit stay; the class accepts no more. */
static void pss_apply(struct Qdisc *sch, struct pss_config *config)
{
	struct pss_sched *q = qdisc_priv(sch);
	struct pss_config *old = q->config;

	sch_tree_lock(sch);
	q->st.now_ns = ktime_get_ns();
	if (q->st.capacity_bps != config->link_bps) {
		q->st.capacity_bps = config->link_bps;
		pss_rated(&q->st);
	}
	if (memcmp(old->params, config->params,
		   array_size(config->nclasses, sizeof(*config->params))))
		pss_change(&q->st, config->params);
	pss_set_bandwidth(&q->shaper, q->st.now_ns, config->bandwidth_bps);
	q->config = config;
	sch_tree_unlock(sch);
	/* classified under the lock, dumped under RTNL: nobody reads it now */
	kvfree(old);
	qdisc_watchdog_schedule_ns(&q->watchdog, ktime_get_ns());
}

static int pss_change_qdisc(struct Qdisc *sch, struct nlattr *opt,
			    struct netlink_ext_ack *extack)
{
	struct pss_config *config = pss_parse(sch, opt, extack);

	if (IS_ERR(config))
		return PTR_ERR(config);
	pss_apply(sch, config);
	return 0;
}

/* The arrays of a state, with no packet; pss_free_state() on failure, too. */
static int pss_alloc_state(struct pss_state *st, u32 nclasses)
{
	st->nqueues = nclasses;
	st->queues = kvcalloc(nclasses, sizeof(*st->queues),
			      GFP_KERNEL_ACCOUNT);
	st->settings = kvcalloc(nclasses, sizeof(*st->settings),
				GFP_KERNEL_ACCOUNT);
	st->holders = kvcalloc(nclasses, 2 * sizeof(*st->holders),
			       GFP_KERNEL_ACCOUNT);
	st->lows = kvcalloc(nclasses, sizeof(*st->lows), GFP_KERNEL_ACCOUNT);
	if (!st->queues || !st->settings || !st->holders || !st->lows)
		return -ENOMEM;
	return 0;
}

static void pss_free_state(struct pss_state *st)
{
	kvfree(st->queues);
	kvfree(st->settings);
	kvfree(st->holders);
	kvfree(st->lows);
}

static int pss_init_qdisc(struct Qdisc *sch, struct nlattr *opt,
			  struct netlink_ext_ack *extack)
{
	struct pss_sched *q = qdisc_priv(sch);
	struct pss_config *config;
	u32 i;
	int err;

	/* destroy runs even if this fails */
	qdisc_watchdog_init(&q->watchdog, sch);
	err = tcf_block_get(&q->block, &q->filters, sch, extack);
	if (err)
		return err;
	config = pss_parse(sch, opt, extack);
	if (IS_ERR(config))
		return PTR_ERR(config);
	q->config = config;
	err = pss_alloc_state(&q->st, config->nclasses);
	if (err)
		return err;
	q->classes = kvcalloc(config->nclasses, sizeof(*q->classes),
			      GFP_KERNEL_ACCOUNT);
	if (!q->classes)
		return -ENOMEM;
	for (i = 0; i < config->nclasses; i++) {
		__skb_queue_head_init(&q->classes[i].packets);
		gnet_stats_basic_sync_init(&q->classes[i].bstats);
	}
	q->st.now_ns = ktime_get_ns();
	q->st.capacity_bps = config->link_bps;
	pss_init(&q->st, config->params);
	pss_set_bandwidth(&q->shaper, q->st.now_ns, config->bandwidth_bps);
	return 0;
}

static void pss_destroy(struct Qdisc *sch)
{
	struct pss_sched *q = qdisc_priv(sch);

	tcf_block_put(q->block);
	qdisc_watchdog_cancel(&q->watchdog);
	pss_free_state(&q->st);
	kvfree(q->classes);
	kvfree(q->config);
}

/* ---- classes ---- */

static unsigned long pss_find(struct Qdisc *sch, u32 classid)
{
	struct pss_sched *q = qdisc_priv(sch);
	u32 number = TC_H_MIN(classid);

	return number <= q->st.nqueues ? number : 0;
}

static unsigned long pss_bind(struct Qdisc *sch, unsigned long parent,
			      u32 classid)
{
	return pss_find(sch, classid);
}

static void pss_unbind(struct Qdisc *sch, unsigned long arg)
{
}

static struct Qdisc *pss_leaf(struct Qdisc *sch, unsigned long arg)
{
	return NULL;
}

static struct tcf_block *pss_tcf_block(struct Qdisc *sch, unsigned long arg,
				       struct netlink_ext_ack *extack)
{
	struct pss_sched *q = qdisc_priv(sch);

	if (arg) {
		NL_SET_ERR_MSG(extack, "PSS classid must be zero");
		return NULL;
	}
	return q->block;
}

static int pss_change_class(struct Qdisc *sch, u32 classid, u32 parentid,
			    struct nlattr **tca, unsigned long *arg,
			    struct netlink_ext_ack *extack)
{
	struct nlattr *opt = tca[TCA_OPTIONS], *tb[TCA_PSS_MAX + 1];
	struct pss_sched *q = qdisc_priv(sch);
	struct pss_config *config;
	int err;

	if (!*arg) {
		NL_SET_ERR_MSG(extack, "Classes are made with the qdisc");
		return -EOPNOTSUPP;
	}
	if (!opt) {
		NL_SET_ERR_MSG(extack, "PSS options are required");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, TCA_PSS_MAX, opt, pss_policy, extack);
	if (err)
		return err;
	if (NL_REQ_ATTR_CHECK(extack, opt, tb, TCA_PSS_CLASS))
		return -EINVAL;
	config = pss_config_alloc(q->config->nclasses);
	if (!config)
		return -ENOMEM;
	pss_config_copy(config, q->config);
	err = pss_parse_class(config, tb[TCA_PSS_CLASS], *arg, extack);
	if (!err)
		err = pss_check_config(q, config, extack);
	if (err) {
		kvfree(config);
		return err;
	}
	pss_apply(sch, config);
	return 0;
}

static void pss_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct pss_sched *q = qdisc_priv(sch);
	u32 i;

	if (arg->stop)
		return;
	for (i = 0; i < q->st.nqueues; i++)
		if (!tc_qdisc_stats_dump(sch, i + 1, arg))
			break;
}

static int pss_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct pss_sched *q = qdisc_priv(sch);
	const struct pss_config *config = q->config;
	struct nlattr *nest;

	nest = nla_nest_start(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, TCA_PSS_CLASSES, config->nclasses) ||
	    nla_put_u64_64bit(skb, TCA_PSS_LINK, config->link_bps,
			      TCA_PSS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_PSS_BANDWIDTH, config->bandwidth_bps,
			      TCA_PSS_PAD) ||
	    nla_put_u32(skb, TCA_PSS_DEFAULT, config->default_class + 1)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

/* An optional parameter that was not given is left out. */
static int pss_put_u32(struct sk_buff *skb, int type, u64 value)
{
	return value == PSS_UNSET ? 0 : nla_put_u32(skb, type, value);
}

static int pss_put_u64(struct sk_buff *skb, int type, u64 value)
{
	if (value == PSS_UNSET)
		return 0;
	return nla_put_u64_64bit(skb, type, value, TCA_PSS_CLASS_PAD);
}

static int pss_dump_class(struct Qdisc *sch, unsigned long arg,
			  struct sk_buff *skb, struct tcmsg *tcm)
{
	struct pss_sched *q = qdisc_priv(sch);
	const struct pss_params *params = &q->config->params[arg - 1];
	struct nlattr *nest, *class;

	tcm->tcm_handle |= TC_H_MIN(arg);
	nest = nla_nest_start(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	class = nla_nest_start(skb, TCA_PSS_CLASS);
	if (!class || nla_put_u32(skb, TCA_PSS_CLASS_NUMBER, arg) ||
	    nla_put_u32(skb, TCA_PSS_CLASS_LIMIT, q->config->limits[arg - 1]) ||
@PUT_CLASS@) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, class);
	return nla_nest_end(skb, nest);
}

static int pss_dump_class_stats(struct Qdisc *sch, unsigned long arg,
				struct gnet_dump *d)
{
	struct pss_sched *q = qdisc_priv(sch);
	struct pss_class *cl = &q->classes[arg - 1];
	struct gnet_stats_queue qstats = {};
	struct tc_pss_xstats xstats = {};

	sch_tree_lock(sch);
	q->st.now_ns = ktime_get_ns();
	pss_observe(&q->st, arg - 1, &xstats.credit);
	xstats.low = q->st.queues[arg - 1].low;
	qstats.qlen = q->st.queues[arg - 1].qlen;
	qstats.backlog = cl->backlog;
	qstats.drops = cl->drops;
	sch_tree_unlock(sch);
	if (gnet_stats_copy_basic(d, NULL, &cl->bstats, true) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &qstats, qstats.qlen) < 0)
		return -1;
	return gnet_stats_copy_app(d, &xstats, sizeof(xstats));
}

static const struct Qdisc_class_ops pss_class_ops = {
	.leaf		= pss_leaf,
	.find		= pss_find,
	.change		= pss_change_class,
	.walk		= pss_walk,
	.tcf_block	= pss_tcf_block,
	.bind_tcf	= pss_bind,
	.unbind_tcf	= pss_unbind,
	.dump		= pss_dump_class,
	.dump_stats	= pss_dump_class_stats,
};

static struct Qdisc_ops pss_qdisc_ops __read_mostly = {
	.cl_ops		= &pss_class_ops,
	.id		= "pss",
	.priv_size	= sizeof(struct pss_sched),
	.enqueue	= pss_enqueue,
	.dequeue	= pss_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= pss_init_qdisc,
	.reset		= pss_reset,
	.destroy	= pss_destroy,
	.change		= pss_change_qdisc,
	.dump		= pss_dump,
	.owner		= THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("pss");

static int __init pss_module_init(void)
{
	return register_qdisc(&pss_qdisc_ops);
}

static void __exit pss_module_exit(void)
{
	unregister_qdisc(&pss_qdisc_ops);
}

module_init(pss_module_init);
module_exit(pss_module_exit);
MODULE_DESCRIPTION("Priority Switching Scheduler");
MODULE_LICENSE("GPL");
