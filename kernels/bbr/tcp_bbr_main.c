// SPDX-License-Identifier: GPL-2.0-only
/*
 * BBRv2 and BBRv3: what TCP calls. Every callback may come before init(): an ACK of a SYN, or a
 * connect that failed. The private state is all zero then.
 */
#include <linux/module.h>

#include "tcp_bbr_compat.h"
#include "tcp_bbr_model.h"

/* [D3] BBRUpdateModelAndState, BBRUpdateControlParameters */
static void bbrm_on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct bbrm *bbr = bbrm_of(sk);
	u32 rate = bbrm_rate_of(sk, rs);

	if (!bbr->initialized)
		return;
	if (bbrm_has_sample(rs)) {
		bbr->last_tx_in_flight = rs->tx_in_flight;
		bbr->last_lost = rs->lost;
	}
	bbrm_update_latest_delivery_signals(sk, rs, rate);
	bbrm_update_congestion_signals(sk, rs, rate);
	bbrm_update_ack_aggregation(sk, rs);
	bbrm_check_full_bw_reached(sk, rs, rate);
	bbrm_check_startup_done(sk, rs);
	bbrm_check_drain_done(sk, rs);
	bbrm_ecn_check_probe(sk, rs);
	bbrm_update_probe_bw_cycle_phase(sk, rs, rate);
	bbrm_update_min_rtt(sk, rs);
	bbrm_check_probe_rtt(sk, rs);
	bbrm_advance_latest_delivery_signals(bbr, rs, rate);
	bbrm_set_pacing_rate(sk);
	bbrm_set_cwnd(sk, rs);
	bbrm_test_move_counters(sk);
}

static void bbrm_cong_control(struct sock *sk, BBRM_CONG_CONTROL_ARGS)
{
	bbrm_on_ack(sk, rs);
}

static void bbrm_set_state(struct sock *sk, u8 new_state)
{
	u8 old_state = inet_csk(sk)->icsk_ca_state;
	struct bbrm *bbr = bbrm_of(sk);

	if (!bbr->initialized)
		return;
	if (new_state == TCP_CA_Recovery && old_state != TCP_CA_Recovery)
		bbr->recovery_delivered = tcp_sk(sk)->delivered;
	if (old_state >= TCP_CA_Recovery && new_state < TCP_CA_Recovery)
		bbrm_restore_cwnd(sk);	/* the model bounds it at the end of this ACK */
}

static void bbrm_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (!bbrm_of(sk)->initialized)
		return;
	if (event == CA_EVENT_TLP_RECOVERY)
		bbrm_note_loss(sk);
	if (event == CA_EVENT_TX_START && tcp_sk(sk)->app_limited)
		bbrm_handle_restart_from_idle(sk);
}

static u32 bbrm_sndbuf_expand(struct sock *sk)
{
	return 3;	/* 2 BDP in flight, and one to be acknowledged */
}

static void bbrm_init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbrm *bbr = bbrm_of(sk);
	u64 now = bbrm_now_us(sk);

	*bbr = (struct bbrm){
		.initialized = 1,
		.state = BBRM_STARTUP,
		.min_rtt_us = tcp_min_rtt(tp),	/* U32_MAX if there is none */
		.probe_rtt_min_us = tcp_min_rtt(tp),
		.min_rtt_stamp = now,
		.probe_rtt_min_stamp = now,
		.cycle_stamp = now,
		.extra_acked_interval_start = now,
		.bw_lo = BBRM_INFINITE,
		.inflight_hi = BBRM_INFINITE,
		.inflight_lo = BBRM_INFINITE,
		.undo_bw_lo = BBRM_INFINITE,
		.undo_inflight_hi = BBRM_INFINITE,
		.undo_inflight_lo = BBRM_INFINITE,
		.up_acked_per_inc = BBRM_INFINITE,
		.initial_delivered = tp->delivered,
		.next_round_delivered = tp->delivered,
		.loss_round_delivered = tp->delivered,
		.initial_cwnd = tcp_snd_cwnd(tp),
	};
	bbrm_ecn_init(sk);
	minmax_reset(&bbr->extra_acked, 0, 0);
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	bbrm_init_pacing_rate(sk);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static const struct tcp_congestion_ops bbrm_ops = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.owner		= THIS_MODULE,
	.init		= bbrm_init,
	.cong_control	= bbrm_cong_control,
	.skb_marked_lost = bbrm_skb_marked_lost,
	.ssthresh	= bbrm_ssthresh,
	.set_state	= bbrm_set_state,
	.undo_cwnd	= bbrm_undo_cwnd,
	.cwnd_event	= bbrm_cwnd_event,
	.min_tso_segs	= bbrm_min_tso_segs,
	.sndbuf_expand	= bbrm_sndbuf_expand,
	.get_info	= bbrm_get_info,
};

static int __init bbrm_register(void)
{
	BUILD_BUG_ON(sizeof(struct bbrm) > ICSK_CA_PRIV_SIZE);
	return bbrm_register_sets(&bbrm_ops);
}

static void __exit bbrm_unregister(void)
{
	bbrm_unregister_sets();
}

module_init(bbrm_register);
module_exit(bbrm_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TCP BBRv2 and BBRv3, written from the Internet-Drafts");
