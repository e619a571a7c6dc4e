// SPDX-License-Identifier: GPL-2.0-only
/*
 * A record of every ACK and every retransmission timeout of every connection, whatever its
 * congestion control, in a ring that /proc/tcp_ack_records empties.
 */
#include <linux/inet_diag.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include "tcp_ack_records.h"

#define ACK_RECORDS_FILE	"tcp_ack_records"

static unsigned int kept;
module_param(kept, uint, 0444);
MODULE_PARM_DESC(kept, "keep this many records for /proc/" ACK_RECORDS_FILE "; 0: none");

static bool changes;
module_param(changes, bool, 0444);
MODULE_PARM_DESC(changes, "keep those at which the state of a connection has changed");

enum { EVENT_ACK, EVENT_TIMEOUT };

enum {
	SAMPLE_APP_LIMITED	= 1 << 0,	/* sent while there was too little to send */
	SAMPLE_RETRANSMITTED	= 1 << 1,	/* of a packet that was sent more than once */
	ACK_DELAYED		= 1 << 2,	/* the receiver may have waited with it */
	CWND_LIMITED		= 1 << 3,
	SLOW_START		= 1 << 4,
};

struct tcp_ack_record {
	__u64 number;		/* counts all records, so that a lost one is noticed */
	__u64 time_ns;		/* CLOCK_MONOTONIC */
	struct in6_addr source_address, destination_address;	/* ::ffff:a.b.c.d of IPv4 */
	__u16 source_port, destination_port;			/* host byte order */
	__u8 event, ca_state, flags;
	__u8 info_kind;		/* INET_DIAG_...; 0: the algorithm says nothing of itself */
	__u32 info_bytes;
	/* Packets, as all below without a unit. */
	__u32 cwnd, ssthresh, in_flight, prior_in_flight;
	__u32 acked, losses, delivered, delivered_ce;
	__u32 lost, lost_out, sacked_out, retrans_out, total_retrans;
	__u32 rate_delivered, rate_interval_us, rtt_us;	/* all ones: there is none */
	__u32 srtt_us, rttvar_us, min_rtt_us, rto_us;
	__u32 snd_mss_bytes, snd_wnd_bytes, notsent_bytes;
	__u64 pacing_rate_bytes;
	__u64 bytes_sent, bytes_retrans, bytes_acked;
	__u8 info[96];
};

struct tcp_ack_record *tcp_ack_records;
static DEFINE_SPINLOCK(ack_records_lock);
static DEFINE_MUTEX(ack_records_readers);
/* Since the start; what is overwritten unread is lost. */
static u64 ack_records_written, ack_records_read_count;

static void ack_record_addresses(const struct sock *sk, struct tcp_ack_record *r)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		r->source_address = sk->sk_v6_rcv_saddr;
		r->destination_address = sk->sk_v6_daddr;
		return;
	}
#endif
	ipv6_addr_set_v4mapped(sk->sk_rcv_saddr, &r->source_address);
	ipv6_addr_set_v4mapped(sk->sk_daddr, &r->destination_address);
}

/* What the congestion control tells inet_diag. */
static void ack_record_info(struct sock *sk, struct tcp_ack_record *r)
{
	const struct tcp_congestion_ops *ca_ops = inet_csk(sk)->icsk_ca_ops;
	union tcp_cc_info info;
	int kind = 0;

	BUILD_BUG_ON(sizeof(info) > sizeof(r->info));
	if (!ca_ops->get_info)
		return;
	memset(&info, 0, sizeof(info));
	r->info_bytes = ca_ops->get_info(sk, 1 << (INET_DIAG_VEGASINFO - 1), &kind, &info);
	if (!r->info_bytes)
		return;
	r->info_bytes = min_t(u32, r->info_bytes, sizeof(info));
	r->info_kind = kind;
	memcpy(r->info, &info, r->info_bytes);
}

/* A number for the state that a connection is in: of recovery, of slow start, of BBR's cycle. */
static u64 ack_record_state(const struct tcp_ack_record *r)
{
	u64 state = 1 << 8 | r->ca_state << 1 | !!(r->flags & SLOW_START);
	struct tcp_bbr_info bbr;
	u8 model[3] = {};	/* the lab's: version, state, phase of the ACKs */

	if (r->info_kind != INET_DIAG_BBRINFO || r->info_bytes < sizeof(bbr))
		return state;
	memcpy(&bbr, r->info, sizeof(bbr));
	if (r->info_bytes >= sizeof(bbr) + sizeof(model))
		memcpy(model, r->info + sizeof(bbr), sizeof(model));
	state = state << 8 | model[1];
	state = state << 8 | model[2];
	state = state << 16 | (u16)bbr.bbr_pacing_gain;
	return state << 16 | (u16)bbr.bbr_cwnd_gain;
}

static void ack_record_fill(struct sock *sk, const struct rate_sample *rs,
			    struct tcp_ack_record *r)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	memset(r, 0, sizeof(*r));
	r->time_ns = tp->tcp_clock_cache;
	ack_record_addresses(sk, r);
	r->source_port = inet_sk(sk)->inet_num;
	r->destination_port = ntohs(inet_sk(sk)->inet_dport);
	r->ca_state = icsk->icsk_ca_state;
	r->flags = (tp->is_cwnd_limited ? CWND_LIMITED : 0) |
		   (tcp_in_slow_start(tp) ? SLOW_START : 0);
	r->cwnd = tcp_snd_cwnd(tp);
	r->ssthresh = tp->snd_ssthresh;
	r->in_flight = tcp_packets_in_flight(tp);
	r->delivered = tp->delivered;
	r->delivered_ce = tp->delivered_ce;
	r->lost = tp->lost;
	r->lost_out = tp->lost_out;
	r->sacked_out = tp->sacked_out;
	r->retrans_out = tp->retrans_out;
	r->total_retrans = tp->total_retrans;
	r->rate_delivered = -1;
	r->rate_interval_us = -1;
	r->rtt_us = -1;
	r->srtt_us = tp->srtt_us >> 3;
	r->rttvar_us = tp->mdev_us >> 2;
	r->min_rtt_us = tcp_min_rtt(tp);
	r->rto_us = jiffies_to_usecs(icsk->icsk_rto);
	r->snd_mss_bytes = tp->mss_cache;
	r->snd_wnd_bytes = tp->snd_wnd;
	r->notsent_bytes = max_t(int, 0, tp->write_seq - tp->snd_nxt);
	r->pacing_rate_bytes = READ_ONCE(sk->sk_pacing_rate);
	r->bytes_sent = tp->bytes_sent;
	r->bytes_retrans = tp->bytes_retrans;
	r->bytes_acked = tp->bytes_acked;
	ack_record_info(sk, r);
	if (!rs) {
		r->event = EVENT_TIMEOUT;
		r->prior_in_flight = r->in_flight;
		return;
	}
	r->flags |= (rs->is_app_limited ? SAMPLE_APP_LIMITED : 0) |
		    (rs->is_retrans ? SAMPLE_RETRANSMITTED : 0) |
		    (rs->is_ack_delayed ? ACK_DELAYED : 0);
	r->prior_in_flight = rs->prior_in_flight;
	r->acked = rs->acked_sacked;
	r->losses = rs->losses;
	r->rate_delivered = rs->delivered;
	r->rate_interval_us = rs->interval_us;
	r->rtt_us = rs->rtt_us;
}

/* rs: what the ACK told; NULL: the retransmission timer has expired. */
void __tcp_record_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_ack_record record;

	if (!icsk->icsk_ca_initialized)	/* the ACK of a SYN: nobody controls the connection yet */
		return;
	ack_record_fill(sk, rs, &record);
	if (changes) {
		u64 state = ack_record_state(&record);

		if (state == icsk->icsk_recorded_state)
			return;
		icsk->icsk_recorded_state = state;
	}
	spin_lock_bh(&ack_records_lock);
	record.number = ack_records_written++;
	tcp_ack_records[record.number % kept] = record;
	spin_unlock_bh(&ack_records_lock);
}

/* The oldest record that is still there, and how many were read before it; false: none is. */
static bool ack_records_oldest(struct tcp_ack_record *record, u64 *place)
{
	bool there;

	spin_lock_bh(&ack_records_lock);
	if (ack_records_written - ack_records_read_count > kept)
		ack_records_read_count = ack_records_written - kept;
	there = ack_records_read_count != ack_records_written;
	if (there)
		*record = tcp_ack_records[ack_records_read_count % kept];
	*place = ack_records_read_count;
	spin_unlock_bh(&ack_records_lock);
	return there;
}

/* Gives whole records, the oldest first, and forgets what has arrived. */
static ssize_t ack_records_read(struct file *file, char __user *to, size_t size, loff_t *position)
{
	struct tcp_ack_record record;
	ssize_t done = 0;
	u64 place;

	if (mutex_lock_interruptible(&ack_records_readers))
		return -EINTR;
	while (done + sizeof(record) <= size && ack_records_oldest(&record, &place)) {
		if (copy_to_user(to + done, &record, sizeof(record))) {
			done = done ?: -EFAULT;
			break;
		}
		ack_records_read_count = place + 1;
		done += sizeof(record);
	}
	mutex_unlock(&ack_records_readers);
	return done;
}

static const struct proc_ops ack_records_ops = { .proc_read = ack_records_read };

static int __init ack_records_init(void)
{
	if (!kept)
		return 0;
	tcp_ack_records = kvcalloc(kept, sizeof(*tcp_ack_records), GFP_KERNEL);
	if (!tcp_ack_records)
		return -ENOMEM;
	if (!proc_create(ACK_RECORDS_FILE, 0400, NULL, &ack_records_ops)) {
		kvfree(tcp_ack_records);
		tcp_ack_records = NULL;
		return -ENOMEM;
	}
	return 0;
}
late_initcall(ack_records_init);
