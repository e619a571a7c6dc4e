// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the path is like: rounds, bandwidth, base RTT, aggregation of ACKs (tcp_bbr_model.h says
 * what this is written from).
 */
#include "tcp_bbr_model.h"

/* [D3] BBRStartRound: the round that ends when something sent from now on is acknowledged. */
void bbrm_start_round(struct sock *sk)
{
	bbrm_of(sk)->next_round_delivered = tcp_sk(sk)->delivered;
}

/* The sample's bandwidth; 0 if it has none. */
u32 bbrm_rate_of(const struct sock *sk, const struct rate_sample *rs)
{
	u64 volume = (u64)max(rs->delivered, 0) << BBRM_SCALE;

	if (rs->delivered <= 0 || rs->interval_us <= 0)
		return 0;
	if (bbrm_params_of(sk)->whole_packets)
		volume += rs->interval_us - 1;
	return min_t(u64, div_u64(volume, rs->interval_us), BBRM_INFINITE - 1);
}

/* [D3] BBRUpdateLatestDeliverySignals */
void bbrm_update_latest_delivery_signals(struct sock *sk, const struct rate_sample *rs, u32 rate)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbr->loss_round_start = 0;
	if (!bbrm_has_sample(rs))
		return;
	bbr->bw_latest = max(bbr->bw_latest, rate);
	bbr->inflight_latest = max_t(u32, bbr->inflight_latest, rs->delivered);
	if (!before(rs->prior_delivered, bbr->loss_round_delivered)) {
		bbr->loss_round_delivered = tcp_sk(sk)->delivered;
		bbr->loss_round_start = 1;
	}
}

/* [D3] BBRAdvanceLatestDeliverySignals */
void bbrm_advance_latest_delivery_signals(struct bbrm *bbr, const struct rate_sample *rs, u32 rate)
{
	if (bbr->loss_round_start) {
		bbr->bw_latest = rate;
		bbr->inflight_latest = rs->delivered;
	}
}

/* [D3] BBRUpdateRound */
static void bbrm_update_round(struct sock *sk, const struct rate_sample *rs)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbr->round_start = 0;
	if (bbrm_has_sample(rs) && !before(rs->prior_delivered, bbr->next_round_delivered)) {
		bbrm_start_round(sk);
		bbr->round_count++;
		bbr->rounds_since_probe++;
		bbr->round_start = 1;
	}
}

/* [D3] BBRUpdateCongestionSignals with BBRUpdateMaxBw */
void bbrm_update_congestion_signals(struct sock *sk, const struct rate_sample *rs, u32 rate)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbrm_update_round(sk, rs);
	if (rate && (rate >= bbrm_max_bw(bbr) || !rs->is_app_limited))
		bbr->bw_slots[1] = max(bbr->bw_slots[1], rate);
	bbrm_ecn_update(sk);
	if (!bbr->loss_round_start)
		return;
	bbrm_adapt_lower_bounds(sk, rs);
	bbr->loss_in_round = 0;
	bbr->ecn_in_round = 0;
}

/* [D3] BBRAdvanceMaxBwFilter. Not while this cycle has no sample, or two quiet cycles would leave
 * no estimate.
 */
void bbrm_advance_max_bw_filter(struct bbrm *bbr)
{
	if (!bbr->bw_slots[1])
		return;
	bbr->bw_slots[0] = bbr->bw_slots[1];
	bbr->bw_slots[1] = 0;
}

/* [D3] BBRUpdateACKAggregation */
void bbrm_update_ack_aggregation(struct sock *sk, const struct rate_sample *rs)
{
	const struct bbrm_params *params = bbrm_params_of(sk);
	struct bbrm *bbr = bbrm_of(sk);
	u64 now = bbrm_now_us(sk), expected;
	u32 rounds;

	if (!rs->acked_sacked || !params->extra_acked)
		return;
	expected = bbrm_bounded_bw(bbr) * (now - bbr->extra_acked_interval_start) >> BBRM_SCALE;
	if (bbr->extra_acked_delivered <= expected) {
		bbr->extra_acked_delivered = 0;
		bbr->extra_acked_interval_start = now;
		expected = 0;
	}
	bbr->extra_acked_delivered += rs->acked_sacked;
	rounds = bbr->full_bw_reached ? BBRM_EXTRA_ACKED_ROUNDS :
					params->startup_extra_acked_rounds;
	minmax_running_max(&bbr->extra_acked, rounds, bbr->round_count,
			   min_t(u64, bbr->extra_acked_delivered - expected,
				 tcp_snd_cwnd(tcp_sk(sk))));
}

/* [D3] BBRUpdateMinRTT */
void bbrm_update_min_rtt(struct sock *sk, const struct rate_sample *rs)
{
	const struct bbrm_params *params = bbrm_params_of(sk);
	struct bbrm *bbr = bbrm_of(sk);
	u64 now = bbrm_now_us(sk);

	/* In ProbeRTT it may fall, but not rise because the old minimum expires. */
	if (bbr->state == BBRM_PROBE_RTT)
		bbr->probe_rtt_base_us = min(bbr->probe_rtt_base_us, bbr->min_rtt_us);
	else
		bbr->probe_rtt_base_us = bbr->min_rtt_us;
	bbr->probe_rtt_expired = now > bbr->probe_rtt_min_stamp +
				       (u64)params->probe_rtt_interval_ms * USEC_PER_MSEC;
	if (rs->rtt_us >= 0 &&
	    (rs->rtt_us < bbr->probe_rtt_min_us ||
	     (params->equal_rtt_renews && rs->rtt_us == bbr->probe_rtt_min_us) ||
	     (bbr->probe_rtt_expired && !rs->is_ack_delayed))) {
		bbr->probe_rtt_min_us = rs->rtt_us;
		bbr->probe_rtt_min_stamp = now;
	}
	if (bbr->probe_rtt_min_us < bbr->min_rtt_us ||
	    now > bbr->min_rtt_stamp + BBRM_MIN_RTT_WINDOW_US) {
		bbr->min_rtt_us = bbr->probe_rtt_min_us;
		bbr->min_rtt_stamp = bbr->probe_rtt_min_stamp;
	}
}
