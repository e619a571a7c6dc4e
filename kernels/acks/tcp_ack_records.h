/* SPDX-License-Identifier: GPL-2.0-only */
/* A record of each ACK and retransmission timeout, for /proc/tcp_ack_records. */
#ifndef _TCP_ACK_RECORDS_H
#define _TCP_ACK_RECORDS_H

struct rate_sample;
struct sock;

#ifdef CONFIG_TCP_ACK_RECORDS
struct tcp_ack_record;
extern struct tcp_ack_record *tcp_ack_records;	/* NULL: nobody asked for them */
void __tcp_record_ack(struct sock *sk, const struct rate_sample *rs);

/* After all reactions to an ACK. */
static inline void tcp_record_ack(struct sock *sk, const struct rate_sample *rs)
{
	if (unlikely(tcp_ack_records))
		__tcp_record_ack(sk, rs);
}
#else
static inline void tcp_record_ack(struct sock *sk, const struct rate_sample *rs)
{
}
#endif

/* After the first reactions to a retransmission timeout, before anything is sent. */
static inline void tcp_record_timeout(struct sock *sk)
{
	tcp_record_ack(sk, NULL);
}

#endif /* _TCP_ACK_RECORDS_H */
