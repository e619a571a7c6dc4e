// SPDX-License-Identifier: GPL-2.0-only
/*
 * A link that sends at given times only: opportunities, as traces of cellular, satellite and Wi-Fi
 * links have them. At each, up to so many bytes of what waits leave. What an opportunity has
 * left when nothing waits any more is lost, and so is one that finds nothing waiting; a packet that
 * is larger waits for the next ones, too. What waits is in the child, in any order and with any
 * drops.
 *
 * OPPORTUNITY_TIMES may come in several messages, each going on from the one before;
 * OPPORTUNITY_START starts the link. Until then nothing leaves.
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/skbuff.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#define OPPORTUNITIES_MAX	0x400000

enum {
	OPPORTUNITY_UNSPEC,
	OPPORTUNITY_BYTES,	/* u32: what leaves at each, at most */
	OPPORTUNITY_TIMES,	/* u64 each: ns from the start, ascending; two may be equal */
	OPPORTUNITY_PERIOD,	/* u64: ns after which they come again */
	OPPORTUNITY_START,	/* u64: CLOCK_MONOTONIC in ns */
	OPPORTUNITY_COUNT,	/* u32, told only: how many there are in a period */
	__OPPORTUNITY_MAX
};

struct opportunity_xstats {
	__u64 passed;		/* opportunities while something waited */
	__u64 lost_bytes;	/* what they had left when nothing waited any more */
};

struct opportunity_sched {
	struct Qdisc *child;
	struct qdisc_watchdog watchdog;
	u64 *times_ns;
	u64 period_ns, start_ns;
	u64 turn_ns;		/* when the present turn through the list began; 0: not started */
	u32 count, room, next, bytes;
	u32 credit;		/* bytes of past opportunities that the first packet waits with */
	struct opportunity_xstats xstats;
};

static const struct nla_policy opportunity_policy[__OPPORTUNITY_MAX] = {
	[OPPORTUNITY_BYTES]	= { .type = NLA_U32 },
	[OPPORTUNITY_TIMES]	= { .type = NLA_BINARY },
	[OPPORTUNITY_PERIOD]	= { .type = NLA_U64 },
	[OPPORTUNITY_START]	= { .type = NLA_U64 },
};

static u64 opportunity_next_ns(const struct opportunity_sched *q)
{
	return q->turn_ns + q->times_ns[q->next];
}

static void opportunity_advance(struct opportunity_sched *q)
{
	if (++q->next < q->count)
		return;
	q->next = 0;
	q->turn_ns += q->period_ns;
}

/* Nothing waits: the opportunities before now_ns are lost. */
static void opportunity_skip(struct opportunity_sched *q, u64 now_ns)
{
	u64 since_ns = now_ns - q->turn_ns;

	q->credit = 0;
	if (!q->turn_ns || now_ns < q->turn_ns)
		return;
	if (since_ns >= q->period_ns) {
		q->turn_ns += div64_u64(since_ns, q->period_ns) * q->period_ns;
		q->next = 0;
	}
	while (opportunity_next_ns(q) < now_ns)
		opportunity_advance(q);
}

static int opportunity_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct opportunity_sched *q = qdisc_priv(sch);
	unsigned int len = qdisc_pkt_len(skb);
	int ret;

	if (!q->child->q.qlen)
		opportunity_skip(q, ktime_get_ns());
	ret = qdisc_enqueue(skb, q->child, to_free);
	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			qdisc_qstats_drop(sch);
		return ret;
	}
	sch->qstats.backlog += len;
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static struct sk_buff *opportunity_dequeue(struct Qdisc *sch)
{
	struct opportunity_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = q->child->ops->peek(q->child);
	u64 now_ns = ktime_get_ns();
	unsigned int len;

	if (!skb || !q->turn_ns)
		return NULL;
	len = qdisc_pkt_len(skb);
	while (q->credit < len && opportunity_next_ns(q) <= now_ns) {
		q->credit += q->bytes;
		q->xstats.passed++;
		opportunity_advance(q);
	}
	if (q->credit < len) {
		qdisc_watchdog_schedule_ns(&q->watchdog, opportunity_next_ns(q));
		qdisc_qstats_overlimit(sch);
		return NULL;
	}
	skb = qdisc_dequeue_peeked(q->child);
	if (unlikely(!skb))
		return NULL;
	q->credit -= len;
	qdisc_qstats_backlog_dec(sch, skb);
	sch->q.qlen--;
	qdisc_bstats_update(sch, skb);
	if (!q->child->q.qlen) {
		q->xstats.lost_bytes += q->credit;
		q->credit = 0;
	}
	return skb;
}

static void opportunity_reset(struct Qdisc *sch)
{
	struct opportunity_sched *q = qdisc_priv(sch);

	qdisc_reset(q->child);
	q->credit = 0;
	qdisc_watchdog_cancel(&q->watchdog);
}

static int opportunity_append(struct opportunity_sched *q, const struct nlattr *times,
			      struct netlink_ext_ack *extack)
{
	const u64 *from = nla_data(times);
	u32 i, more = nla_len(times) / sizeof(u64);
	u64 time_ns, before_ns = q->count ? q->times_ns[q->count - 1] : 0;

	if (q->turn_ns || nla_len(times) % sizeof(u64) || more > OPPORTUNITIES_MAX - q->count) {
		NL_SET_ERR_MSG(extack, "times: already started, too many, or not whole numbers");
		return -EINVAL;
	}
	if (q->count + more > q->room) {
		u32 room = max(2 * q->room, q->count + more);
		u64 *larger = kvmalloc_array(room, sizeof(u64), GFP_KERNEL);

		if (!larger)
			return -ENOMEM;
		if (q->count)
			memcpy(larger, q->times_ns, q->count * sizeof(u64));
		kvfree(q->times_ns);
		q->times_ns = larger;
		q->room = room;
	}
	for (i = 0; i < more; i++) {
		memcpy(&time_ns, from + i, sizeof(time_ns));	/* may stand at any address */
		if (time_ns < before_ns) {
			NL_SET_ERR_MSG(extack, "times: they must ascend");
			return -EINVAL;
		}
		q->times_ns[q->count + i] = time_ns;
		before_ns = time_ns;
	}
	q->count += more;
	return 0;
}

static int opportunity_start(struct Qdisc *sch, u64 start_ns, struct netlink_ext_ack *extack)
{
	struct opportunity_sched *q = qdisc_priv(sch);

	if (q->turn_ns || !start_ns || !q->count || !q->bytes ||
	    q->period_ns <= q->times_ns[q->count - 1]) {
		NL_SET_ERR_MSG(extack, "start: needs times, bytes, a period above all times; once");
		return -EINVAL;
	}
	sch_tree_lock(sch);
	q->start_ns = start_ns;
	q->turn_ns = start_ns;
	sch_tree_unlock(sch);
	/* What waits already has no other reason to be looked at. */
	qdisc_watchdog_schedule_ns(&q->watchdog, start_ns + q->times_ns[0]);
	return 0;
}

static int opportunity_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct opportunity_sched *q = qdisc_priv(sch);
	struct nlattr *tb[__OPPORTUNITY_MAX];
	int err;

	err = nla_parse_nested_deprecated(tb, __OPPORTUNITY_MAX - 1, opt, opportunity_policy,
					  extack);
	if (err < 0)
		return err;
	if (q->turn_ns) {
		NL_SET_ERR_MSG(extack, "already started; add another in its place");
		return -EBUSY;
	}
	if (tb[OPPORTUNITY_BYTES])
		q->bytes = nla_get_u32(tb[OPPORTUNITY_BYTES]);
	if (tb[OPPORTUNITY_PERIOD])
		q->period_ns = nla_get_u64(tb[OPPORTUNITY_PERIOD]);
	if (tb[OPPORTUNITY_TIMES])
		err = opportunity_append(q, tb[OPPORTUNITY_TIMES], extack);
	if (err >= 0 && tb[OPPORTUNITY_START])
		err = opportunity_start(sch, nla_get_u64(tb[OPPORTUNITY_START]), extack);
	return err;
}

static int opportunity_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct opportunity_sched *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	q->child = qdisc_create_dflt(sch->dev_queue, &bfifo_qdisc_ops, sch->handle, extack);
	if (!q->child) {
		q->child = &noop_qdisc;
		return -ENOMEM;
	}
	qdisc_hash_add(q->child, true);
	return opt ? opportunity_change(sch, opt, extack) : 0;
}

static void opportunity_destroy(struct Qdisc *sch)
{
	struct opportunity_sched *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	qdisc_put(q->child);
	kvfree(q->times_ns);
}

static int opportunity_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct opportunity_sched *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, OPPORTUNITY_BYTES, q->bytes) ||
	    nla_put_u32(skb, OPPORTUNITY_COUNT, q->count) ||
	    nla_put_u64_64bit(skb, OPPORTUNITY_PERIOD, q->period_ns, OPPORTUNITY_UNSPEC) ||
	    nla_put_u64_64bit(skb, OPPORTUNITY_START, q->start_ns, OPPORTUNITY_UNSPEC)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

static int opportunity_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct opportunity_sched *q = qdisc_priv(sch);

	return gnet_stats_copy_app(d, &q->xstats, sizeof(q->xstats));
}

static int opportunity_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
			     struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct opportunity_sched *q = qdisc_priv(sch);

	*old = qdisc_replace(sch, new ?: &noop_qdisc, &q->child);
	return 0;
}

static struct Qdisc *opportunity_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct opportunity_sched *q = qdisc_priv(sch);

	return q->child;
}

/* One class, by any number. */
static unsigned long opportunity_find(struct Qdisc *sch, u32 classid)
{
	return 1;
}

static int opportunity_dump_class(struct Qdisc *sch, unsigned long cl, struct sk_buff *skb,
				  struct tcmsg *tcm)
{
	struct opportunity_sched *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->child->handle;
	return 0;
}

static void opportunity_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (walker->stop)
		return;
	if (walker->count >= walker->skip && walker->fn(sch, 1, walker) < 0) {
		walker->stop = 1;
		return;
	}
	walker->count++;
}

static const struct Qdisc_class_ops opportunity_class_ops = {
	.graft	= opportunity_graft,
	.leaf	= opportunity_leaf,
	.find	= opportunity_find,
	.walk	= opportunity_walk,
	.dump	= opportunity_dump_class,
};

static struct Qdisc_ops opportunity_ops __read_mostly = {
	.id		= "opportunity",
	.cl_ops		= &opportunity_class_ops,
	.priv_size	= sizeof(struct opportunity_sched),
	.enqueue	= opportunity_enqueue,
	.dequeue	= opportunity_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= opportunity_init,
	.change		= opportunity_change,
	.reset		= opportunity_reset,
	.destroy	= opportunity_destroy,
	.dump		= opportunity_dump,
	.dump_stats	= opportunity_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init opportunity_register(void)
{
	return register_qdisc(&opportunity_ops);
}

static void __exit opportunity_unregister(void)
{
	unregister_qdisc(&opportunity_ops);
}

module_init(opportunity_register);
module_exit(opportunity_unregister);
MODULE_DESCRIPTION("A link that sends at given times");
MODULE_LICENSE("GPL");
