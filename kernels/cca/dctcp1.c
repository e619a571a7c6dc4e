// SPDX-License-Identifier: GPL-2.0-only
/*
 * DCTCP as a scalable flow of L4S: Linux's own code, AccECN, and ECT(1)
 * (docs/howto/l4s.md).
 *
 * Linux 7.3 sends ECT(0) on all data, also for an algorithm with
 * TCP_CONG_ECT_1_NEGOTIATION, which has ECT(1) in its handshake only. So what TCP
 * hands to IP goes through dctcp1_xmit() here, which makes ECT(1) of it.
 *
 * The response to marks is DCTCP's: it is no TCP Prague, which besides paces, is less
 * dependent on the RTT, and falls back where a queue is classic.
 */
#include <net/inet6_connection_sock.h>
#include <net/ip.h>
#include <net/tcp.h>

#ifndef TCP_CONG_ECT_1_NEGOTIATION
#error "this kernel has no AccECN: give --kernel lab-7.3"
#endif

/* Its registration is below, under another name. */
#undef module_init
#undef module_exit
#define module_init(function) static inline void dctcp1_without_init(void) { (void)(function); }
#define module_exit(function) static inline void dctcp1_without_exit(void) { (void)(function); }
#include "tcp_dctcp.c"

static struct tcp_congestion_ops dctcp1 __read_mostly;
static struct inet_connection_sock_af_ops dctcp1_ipv4 __read_mostly;
static struct inet_connection_sock_af_ops dctcp1_ipv6 __read_mostly;

static int dctcp1_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl)
{
	if ((inet_sk(sk)->tos & INET_ECN_MASK) == INET_ECN_ECT_0)
		__INET_ECN_xmit(sk, true);
	if (inet_csk(sk)->icsk_af_ops == &dctcp1_ipv6)
		return inet6_csk_xmit(sk, skb, fl);
	return ip_queue_xmit(sk, skb, fl);
}

static void dctcp1_init(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	/* Without AccECN or ECN on the other side Reno takes over, with dctcp's own operations. */
	dctcp.init(sk);
	if (icsk->icsk_ca_ops != &dctcp1)
		return;
	if (icsk->icsk_af_ops == &ipv4_specific)
		icsk->icsk_af_ops = &dctcp1_ipv4;
	else if (icsk->icsk_af_ops == &ipv6_specific)
		icsk->icsk_af_ops = &dctcp1_ipv6;
}

static void dctcp1_release(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (icsk->icsk_af_ops == &dctcp1_ipv4)
		icsk->icsk_af_ops = &ipv4_specific;
	else if (icsk->icsk_af_ops == &dctcp1_ipv6)
		icsk->icsk_af_ops = &ipv6_specific;
}

static int __init dctcp1_register(void)
{
	BUILD_BUG_ON(sizeof(struct dctcp) > ICSK_CA_PRIV_SIZE);
	dctcp1_ipv4 = ipv4_specific;
	dctcp1_ipv4.queue_xmit = dctcp1_xmit;
	dctcp1_ipv6 = ipv6_specific;
	dctcp1_ipv6.queue_xmit = dctcp1_xmit;
	dctcp1 = dctcp;
	dctcp1.flags |= TCP_CONG_NEEDS_ACCECN | TCP_CONG_ECT_1_NEGOTIATION;
	dctcp1.init = dctcp1_init;
	dctcp1.release = dctcp1_release;
	strscpy(dctcp1.name, "dctcp1", sizeof(dctcp1.name));
	return tcp_register_congestion_control(&dctcp1);
}
late_initcall(dctcp1_register);
