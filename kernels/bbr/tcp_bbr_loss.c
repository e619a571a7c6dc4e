// SPDX-License-Identifier: GPL-2.0-only
/*
 * What losses say of the path: the bounds of the model, short-term (bw_lo, inflight_lo) and
 * long-term (inflight_hi), and what spurious losses give back.
 */
#include "tcp_bbr_model.h"

#define BBRM_UP_ROUNDS_MAX	30

/* [D3] IsInflightTooHigh */
bool bbrm_is_too_high(const struct sock *sk, s64 lost, s64 tx_in_flight)
{
	if (bbrm_params_of(sk)->reno_exit && !tcp_is_sack(tcp_sk(sk)))
		return lost > 0;
	return lost * 100 > tx_in_flight * BBRM_LOSS_THRESHOLD_PERCENT;
}

bool bbrm_is_sample_too_high(const struct sock *sk, const struct rate_sample *rs)
{
	return bbrm_ecn_is_too_high(sk, rs) ||
	       (rs->lost > 0 && bbrm_is_too_high(sk, rs->lost, rs->tx_in_flight));
}

/* ---- short-term ---- */

/* Whether the round that ends may bound the model. The drafts have losses of a probe judged by
 * inflight_hi alone. But a long round that began in CRUISE may end in REFILL, where nothing else
 * answers its losses.
 */
static bool bbrm_may_adapt_lower_bounds(struct sock *sk, const struct rate_sample *rs)
{
	const struct bbrm *bbr = bbrm_of(sk);

	if (!bbrm_is_probing_bw(bbr))
		return true;
	switch (bbrm_params_of(sk)->lower_bounds) {
	case BBRM_LOSSY_REFILL:
		return bbr->state == BBRM_REFILL && rs->lost > 0 &&
		       bbrm_is_too_high(sk, rs->lost, rs->tx_in_flight);
	case BBRM_PROBES_TOO:
		return bbr->state != BBRM_STARTUP;
	}
	return false;
}

/* [D3] BBRAdaptLowerBoundsFromCongestion */
void bbrm_adapt_lower_bounds(struct sock *sk, const struct rate_sample *rs)
{
	struct bbrm *bbr = bbrm_of(sk);
	u32 cut = BBRM_INFINITE;

	if (!bbrm_may_adapt_lower_bounds(sk, rs))
		return;
	if (bbr->inflight_lo == BBRM_INFINITE && (bbr->loss_in_round || bbr->ecn_in_round))
		bbr->inflight_lo = tcp_snd_cwnd(tcp_sk(sk));
	if (bbr->ecn_in_round)
		cut = bbrm_ecn_cut(bbr);
	if (bbr->loss_in_round) {
		if (bbr->bw_lo == BBRM_INFINITE)
			bbr->bw_lo = bbrm_max_bw(bbr);
		bbr->bw_lo = max_t(u32, bbr->bw_latest, (u64)bbr->bw_lo * BBRM_BETA_PERCENT / 100);
		bbr->bw_lo = max(bbr->bw_lo, 1U);	/* a pacing rate of 0 would mean none */
		bbr->inflight_lo = max_t(u32, bbr->inflight_latest,
					 (u64)bbr->inflight_lo * BBRM_BETA_PERCENT / 100);
	}
	bbr->inflight_lo = min(bbr->inflight_lo, cut);
}

/* ---- long-term ---- */

/* [D3] BBRRaiseInflightLongtermSlope */
void bbrm_raise_inflight_hi_slope(struct sock *sk)
{
	struct bbrm *bbr = bbrm_of(sk);
	u32 growth = 1U << bbr->up_rounds;

	bbr->up_rounds = min(bbr->up_rounds + 1, BBRM_UP_ROUNDS_MAX);
	bbr->up_acked_per_inc = max(tcp_snd_cwnd(tcp_sk(sk)) / growth, 1U);
}

/* [D3] BBRProbeInflightLongtermUpward */
void bbrm_probe_inflight_hi_upward(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbrm *bbr = bbrm_of(sk);
	u32 steps;

	if (!tp->is_cwnd_limited || tcp_snd_cwnd(tp) < bbr->inflight_hi)
		return;
	bbr->up_acked += rs->acked_sacked;
	steps = bbr->up_acked / bbr->up_acked_per_inc;
	bbr->up_acked -= steps * bbr->up_acked_per_inc;
	bbr->inflight_hi += steps;
	if (bbr->round_start)
		bbrm_raise_inflight_hi_slope(sk);
}

/* [D3] BBRHandleInflightTooHigh */
void bbrm_handle_inflight_too_high(struct sock *sk, u32 tx_in_flight, bool is_app_limited)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbr->prev_probe_too_high = 1;
	bbr->is_bw_probe_sample = 0;	/* react once per probe */
	if (!is_app_limited)
		bbr->inflight_hi = max_t(u32, tx_in_flight,
					 bbrm_target_inflight(sk) * BBRM_BETA_PERCENT / 100 >>
					 BBRM_SCALE);
	if (bbr->state == BBRM_UP) {
		if (bbrm_params_of(sk)->undo_state)
			bbr->undo_state = BBRM_UNDO_UP;
		bbrm_start_down(sk);
	}
}

/* [D3] BBRInflightAtLoss: how much was in flight when the loss rate passed the threshold, inside
 * this packet if it is a large segment. Returns whether that can be said: reordering can make the
 * differences negative.
 */
static bool bbrm_inflight_at_loss(const struct sock *sk, u32 tx_in_flight, u32 lost, u32 size,
				  u32 *inflight)
{
	s64 prev = (s64)tx_in_flight - size, lost_prev = (s64)lost - size, prefix;

	if (prev < 0 || lost_prev < 0)
		return false;
	prefix = BBRM_LOSS_THRESHOLD_PERCENT * prev;
	if (bbrm_params_of(sk)->whole_packets)
		prefix = 100 * DIV_ROUND_UP_ULL(prefix, 100);
	prefix -= 100 * lost_prev;
	*inflight = prev + (prefix > 0 ? div_s64(prefix, 100 - BBRM_LOSS_THRESHOLD_PERCENT) : 0);
	return true;
}

/* ---- events ---- */

/* [D3-05] BBRSaveStateUponLoss */
static void bbrm_save_state_upon_loss(struct bbrm *bbr)
{
	bbr->undo_state = BBRM_UNDO_NONE;
	bbr->undo_bw_lo = bbr->bw_lo;
	bbr->undo_inflight_lo = bbr->inflight_lo;
	bbr->undo_inflight_hi = bbr->inflight_hi;
}

/* [D3] BBRNoteLoss. The window is saved at every loss: TCP says nothing of a time-out within
 * Recovery before the window is gone.
 */
void bbrm_note_loss(struct sock *sk)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbrm_save_cwnd(sk);
	if (!bbr->loss_in_round) {
		bbrm_save_state_upon_loss(bbr);
		if (bbrm_params_of(sk)->loss_anchors_round)
			bbr->loss_round_delivered = tcp_sk(sk)->delivered;
	}
	bbr->loss_in_round = 1;
}

/* [D3] BBRHandleLostPacket, called when a packet is marked lost, whatever finds it: SACK, the RACK
 * timer, an RTO.
 */
void bbrm_skb_marked_lost(struct sock *sk, const struct sk_buff *skb)
{
	const struct tcp_skb_cb *scb = TCP_SKB_CB(skb);
	u32 lost = tcp_sk(sk)->lost - scb->tx_lost, size = tcp_skb_pcount(skb), inflight;
	struct bbrm *bbr = bbrm_of(sk);

	if (!bbr->initialized)
		return;
	bbr->losses_seen += size;
	bbrm_note_loss(sk);
	if (bbr->is_bw_probe_sample && scb->tx.delivered_mstamp &&
	    bbrm_is_too_high(sk, lost, scb->tx_in_flight) &&
	    bbrm_inflight_at_loss(sk, scb->tx_in_flight, lost, size, &inflight))
		bbrm_handle_inflight_too_high(sk, inflight, scb->tx.is_app_limited);
}

/* Recovery, or the answer to an RTO, begins. Nothing here uses the slow start threshold. */
u32 bbrm_ssthresh(struct sock *sk)
{
	if (bbrm_of(sk)->initialized) {
		bbrm_save_cwnd(sk);
		bbrm_save_state_upon_loss(bbrm_of(sk));
	}
	return tcp_sk(sk)->snd_ssthresh;
}

/* [D3-05] BBRHandleSpuriousLossDetection */
u32 bbrm_undo_cwnd(struct sock *sk)
{
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));
	struct bbrm *bbr = bbrm_of(sk);

	if (!bbr->initialized)
		return cwnd;
	bbr->undos++;
	bbr->loss_in_round = 0;
	bbrm_reset_full_bw(bbr);
	if (bbrm_params_of(sk)->undo_bounds) {
		bbr->bw_lo = max(bbr->bw_lo, bbr->undo_bw_lo);
		bbr->inflight_lo = max(bbr->inflight_lo, bbr->undo_inflight_lo);
		bbr->inflight_hi = max(bbr->inflight_hi, bbr->undo_inflight_hi);
	}
	if (bbr->undo_state == BBRM_UNDO_STARTUP && bbr->state != BBRM_STARTUP) {
		bbr->full_bw_reached = 0;
		if (bbr->state != BBRM_PROBE_RTT)
			bbr->state = BBRM_STARTUP;
	} else if (bbr->undo_state == BBRM_UNDO_UP && bbr->state != BBRM_UP &&
		   bbr->state != BBRM_PROBE_RTT) {
		bbrm_start_refill(sk);
	}
	bbr->undo_state = BBRM_UNDO_NONE;
	return max(cwnd, bbr->prior_cwnd);
}
