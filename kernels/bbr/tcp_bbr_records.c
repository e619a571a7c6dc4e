// SPDX-License-Identifier: GPL-2.0-only
/*
 * A record of every ACK of every connection, in a ring that /proc/tcp_bbr_model_acks empties.
 */
#include <linux/inet_diag.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>

#include "tcp_bbr_model.h"

#define BBRM_RECORDS_FILE	"tcp_bbr_model_acks"

static unsigned int trace_acks;
module_param(trace_acks, uint, 0444);
MODULE_PARM_DESC(trace_acks, "keep this many records for /proc/" BBRM_RECORDS_FILE "; 0: none");

struct bbrm_ack_record {
	__u64 number;			/* counts all records, so that a lost one is noticed */
	__u64 time_ns;			/* CLOCK_MONOTONIC */
	__u32 source_address, destination_address;	/* network byte order */
	__u16 source_port, destination_port;		/* host byte order */
	__u32 cwnd, in_flight, prior_in_flight;
	__u32 acked, losses, delivered, lost;
	__u32 rate_delivered, rate_interval_us, rtt_us;
	__u32 reserved;
	__u64 pacing_rate_bytes;
	struct tcp_bbr_model_info info;
};

static struct bbrm_ack_record *bbrm_records;
static DEFINE_SPINLOCK(bbrm_records_lock);
static DEFINE_MUTEX(bbrm_readers);
static u64 bbrm_written, bbrm_read;	/* since the start; what is overwritten unread is lost */

void bbrm_record_ack(const struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbrm_ack_record *r;

	if (!bbrm_records)
		return;
	spin_lock_bh(&bbrm_records_lock);
	r = &bbrm_records[bbrm_written % trace_acks];
	memset(r, 0, sizeof(*r));
	r->number = bbrm_written++;
	r->time_ns = tp->tcp_clock_cache;
	r->source_address = (__force u32)sk->sk_rcv_saddr;
	r->destination_address = (__force u32)sk->sk_daddr;
	r->source_port = sk->sk_num;
	r->destination_port = ntohs(sk->sk_dport);
	r->cwnd = tcp_snd_cwnd(tp);
	r->in_flight = tcp_packets_in_flight(tp);
	r->prior_in_flight = rs->prior_in_flight;
	r->acked = rs->acked_sacked;
	r->losses = rs->losses;
	r->delivered = tp->delivered;
	r->lost = tp->lost;
	r->rate_delivered = rs->delivered;
	r->rate_interval_us = rs->interval_us;
	r->rtt_us = rs->rtt_us;
	r->pacing_rate_bytes = READ_ONCE(sk->sk_pacing_rate);
	bbrm_fill_info(sk, &r->info);
	spin_unlock_bh(&bbrm_records_lock);
}

/* The oldest record that is still there, and how many were read before it; false: none is. */
static bool bbrm_oldest(struct bbrm_ack_record *record, u64 *place)
{
	bool found;

	spin_lock_bh(&bbrm_records_lock);
	if (bbrm_written - bbrm_read > trace_acks)
		bbrm_read = bbrm_written - trace_acks;
	found = bbrm_read != bbrm_written;
	if (found)
		*record = bbrm_records[bbrm_read % trace_acks];
	*place = bbrm_read;
	spin_unlock_bh(&bbrm_records_lock);
	return found;
}

/* Gives whole records, the oldest first, and forgets what has arrived. */
static ssize_t bbrm_records_read(struct file *file, char __user *to, size_t size, loff_t *position)
{
	struct bbrm_ack_record record;
	ssize_t done = 0;
	u64 place;

	if (mutex_lock_interruptible(&bbrm_readers))
		return -EINTR;
	while (done + sizeof(record) <= size && bbrm_oldest(&record, &place)) {
		if (copy_to_user(to + done, &record, sizeof(record))) {
			done = done ?: -EFAULT;
			break;
		}
		bbrm_read = place + 1;
		done += sizeof(record);
	}
	mutex_unlock(&bbrm_readers);
	return done;
}

static const struct proc_ops bbrm_records_ops = { .proc_read = bbrm_records_read };

int bbrm_records_init(void)
{
	if (!trace_acks)
		return 0;
	bbrm_records = kvcalloc(trace_acks, sizeof(*bbrm_records), GFP_KERNEL);
	if (!bbrm_records)
		return -ENOMEM;
	if (!proc_create(BBRM_RECORDS_FILE, 0400, NULL, &bbrm_records_ops)) {
		kvfree(bbrm_records);
		bbrm_records = NULL;
		return -ENOMEM;
	}
	return 0;
}

void bbrm_records_exit(void)
{
	if (!bbrm_records)
		return;
	remove_proc_entry(BBRM_RECORDS_FILE, NULL);
	kvfree(bbrm_records);
	bbrm_records = NULL;
}
