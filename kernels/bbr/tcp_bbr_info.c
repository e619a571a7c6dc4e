// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the model tells of itself (INET_DIAG_BBRINFO).
 */
#include <linux/inet_diag.h>

#include "tcp_bbr_model.h"

static u64 bbrm_bytes(const struct sock *sk, u32 bw)
{
	return (u64)bw * tcp_sk(sk)->mss_cache * USEC_PER_SEC >> BBRM_SCALE;
}

static u32 bbrm_flags(const struct bbrm *bbr)
{
	return (bbr->full_bw_reached ? TCP_BBR_FULL_BW_REACHED : 0) |
	       (bbr->full_bw_now ? TCP_BBR_FULL_BW_NOW : 0) |
	       (bbr->is_bw_probe_sample ? TCP_BBR_PROBE_SAMPLE : 0) |
	       (bbr->prev_probe_too_high ? TCP_BBR_PROBE_TOO_HIGH : 0) |
	       (bbr->prev_probe_precautionary ? TCP_BBR_PROBE_PRECAUTIONARY : 0) |
	       (bbr->loss_in_round ? TCP_BBR_LOSS_IN_ROUND : 0) |
	       (bbr->idle_restart ? TCP_BBR_IDLE_RESTART : 0) |
	       (bbr->round_start ? TCP_BBR_ROUND_START : 0);
}

static void bbrm_fill_info(const struct sock *sk, struct tcp_bbr_model_info *info)
{
	const struct bbrm *bbr = bbrm_of(sk);
	u64 bw = bbrm_bytes(sk, bbrm_bounded_bw(bbr)), most = bbrm_bytes(sk, bbrm_max_bw(bbr));
	u64 least = bbr->bw_lo == BBRM_INFINITE ? U64_MAX : bbrm_bytes(sk, bbr->bw_lo);

	memset(info, 0, sizeof(*info));
	info->bbr.bbr_bw_lo = lower_32_bits(bw);
	info->bbr.bbr_bw_hi = upper_32_bits(bw);
	info->bbr.bbr_min_rtt = bbr->min_rtt_us;
	info->bbr.bbr_pacing_gain = bbrm_pacing_gain(sk);
	info->bbr.bbr_cwnd_gain = bbrm_cwnd_gain(sk);
	info->version = bbrm_params_of(sk)->version;
	info->state = bbr->state;
	info->ack_phase = bbr->ack_phase;
	info->full_bw_count = bbr->full_bw_count;
	info->flags = bbrm_flags(bbr);
	info->round_count = bbr->round_count;
	info->rounds_since_probe = bbr->rounds_since_probe;
	info->max_bw_low = lower_32_bits(most);
	info->max_bw_high = upper_32_bits(most);
	info->bw_lo_low = lower_32_bits(least);
	info->bw_lo_high = upper_32_bits(least);
	info->inflight_hi = bbr->inflight_hi;
	info->inflight_lo = bbr->inflight_lo;
	info->extra_acked = minmax_get(&bbr->extra_acked);
	info->ecn_alpha = bbr->ecn_alpha;
	info->losses_seen = bbr->losses_seen;
	info->undos = bbr->undos;
	info->probe_wait_us = bbr->probe_wait_us;
	info->tx_in_flight = bbr->last_tx_in_flight;
	info->lost = bbr->last_lost;
}

size_t bbrm_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	u32 asked = 1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1);

	if (!bbrm_of(sk)->initialized || !(ext & asked))
		return 0;
	bbrm_fill_info(sk, &info->bbr_model);
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr_model);
}
