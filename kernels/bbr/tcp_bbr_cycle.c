// SPDX-License-Identifier: GPL-2.0-only
/*
 * The states: Startup, Drain, the cycle of ProbeBW (DOWN, CRUISE, REFILL, UP), ProbeRTT.
 */
#include "tcp_bbr_compat.h"
#include "tcp_bbr_model.h"

u16 bbrm_pacing_gain(const struct sock *sk)
{
	const struct bbrm_params *params = bbrm_params_of(sk);

	switch (bbrm_of(sk)->state) {
	case BBRM_STARTUP:
		return params->startup_pacing_gain;
	case BBRM_DRAIN:
		return params->drain_pacing_gain;
	case BBRM_UP:
		return params->up_pacing_gain;
	case BBRM_DOWN:
		return params->down_pacing_gain;
	}
	return BBRM_UNIT;
}

u16 bbrm_cwnd_gain(const struct sock *sk)
{
	const struct bbrm_params *params = bbrm_params_of(sk);

	switch (bbrm_of(sk)->state) {
	case BBRM_STARTUP:
		return params->startup_cwnd_gain;
	case BBRM_DRAIN:
		return params->drain_cwnd_gain;
	case BBRM_UP:
		return params->up_cwnd_gain;
	case BBRM_PROBE_RTT:
		return BBRM_UNIT / 2;
	}
	return 2 * BBRM_UNIT;
}

/* Undefined in [D2]; [D3] BBRIsProbingBW */
bool bbrm_is_probing_bw(const struct bbrm *bbr)
{
	return bbr->state == BBRM_STARTUP || bbr->state == BBRM_REFILL || bbr->state == BBRM_UP;
}

/* [D3] BBRStartProbeBW_DOWN with BBRPickProbeWait */
void bbrm_start_down(struct sock *sk)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbr->loss_in_round = 0;
	bbr->ecn_in_round = 0;
	bbr->bw_latest = 0;
	bbr->inflight_latest = 0;
	bbr->up_acked_per_inc = BBRM_INFINITE;
	bbr->rounds_since_probe = get_random_u32_below(2);
	bbr->probe_wait_us = BBRM_PROBE_WAIT_US + get_random_u32_below(USEC_PER_SEC);
	bbr->cycle_stamp = bbrm_now_us(sk);
	bbr->ack_phase = BBRM_PROBE_STOPPING;
	bbrm_start_round(sk);
	bbr->state = BBRM_DOWN;
}

/* [D3] BBRStartProbeBW_REFILL */
void bbrm_start_refill(struct sock *sk)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbrm_reset_lower_bounds(bbr);
	bbr->up_rounds = 0;
	bbr->up_acked = 0;
	bbr->prev_probe_precautionary = 0;
	bbr->ack_phase = BBRM_REFILLING;
	bbrm_start_round(sk);
	bbr->state = BBRM_REFILL;
}

/* [D3] BBRStartProbeBW_UP */
static void bbrm_start_up(struct sock *sk, u32 rate)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbr->ack_phase = BBRM_PROBE_STARTING;
	bbrm_start_round(sk);
	bbr->cycle_stamp = bbrm_now_us(sk);
	if (bbrm_params_of(sk)->plateau_ends_up) {
		bbrm_reset_full_bw(bbr);
		bbr->full_bw = rate;
	}
	bbr->state = BBRM_UP;
	bbrm_raise_inflight_hi_slope(sk);
}

/* ---- Startup and Drain ---- */

/* [D3] BBRCheckFullBWReached, [D2] BBRCheckStartupFullBandwidth */
void bbrm_check_full_bw_reached(struct sock *sk, const struct rate_sample *rs, u32 rate)
{
	const struct bbrm_params *params = bbrm_params_of(sk);
	bool of_samples = params->plateau_of_samples;
	struct bbrm *bbr = bbrm_of(sk);
	u32 seen = of_samples ? rate : bbrm_max_bw(bbr);

	if (of_samples ? bbr->full_bw_now : (bbr->full_bw_reached || bbr->state != BBRM_STARTUP))
		return;
	if (rs->is_app_limited || !seen)
		return;
	if (!bbr->round_start && !params->plateau_at_each_ack)
		return;
	if ((u64)seen * 100 >= (u64)bbr->full_bw * BBRM_FULL_BW_PERCENT) {
		bbrm_reset_full_bw(bbr);
		bbr->full_bw = seen;
		return;
	}
	if (!bbr->round_start || ++bbr->full_bw_count < BBRM_FULL_BW_ROUNDS)
		return;
	bbr->full_bw_now = 1;
	bbr->full_bw_reached = 1;
}

/* [D3 5.3.1.3], prose only: out of Startup after a round in recovery with too much loss in too many
 * places. One event is an ACK before which something new was found lost, be it by the ACK itself or
 * by a timer.
 */
static void bbrm_check_startup_high_loss(struct sock *sk, const struct rate_sample *rs)
{
	bool in_recovery = inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery;
	const struct bbrm_params *params = bbrm_params_of(sk);
	struct bbrm *bbr = bbrm_of(sk);
	bool exit;

	if (bbr->losses_seen != bbr->losses_judged && bbr->loss_events < BBRM_LOSS_EVENTS_MAX)
		bbr->loss_events++;
	bbr->losses_judged = bbr->losses_seen;
	exit = bbr->loss_round_start && in_recovery &&
	       !before(rs->prior_delivered, bbr->recovery_delivered) &&
	       bbr->loss_events >= params->full_loss_count && bbrm_is_sample_too_high(sk, rs);
	if (params->reno_exit && !tcp_is_sack(tcp_sk(sk)) && in_recovery && rs->losses > 0)
		exit = true;
	if (bbr->loss_round_start)
		bbr->loss_events = 0;
	if (bbr->full_bw_reached || !exit)
		return;
	bbr->full_bw_reached = 1;
	if (params->loss_exit_sets_inflight_hi) {
		bbr->inflight_hi = bbrm_bdp_multiple(sk, bbrm_max_bw(bbr), BBRM_UNIT) >>
				   BBRM_SCALE;
		if (params->loss_exit_looks_at_latest)
			bbr->inflight_hi = max(bbr->inflight_hi, bbr->inflight_latest);
	}
	if (params->undo_state)
		bbr->undo_state = BBRM_UNDO_STARTUP;
}

/* [D3] BBRCheckStartupDone, BBREnterDrain */
void bbrm_check_startup_done(struct sock *sk, const struct rate_sample *rs)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbrm_check_startup_high_loss(sk, rs);
	if (bbr->state == BBRM_STARTUP && bbr->full_bw_reached) {
		bbr->state = BBRM_DRAIN;
		bbr->drain_start_round = bbr->round_count;
	}
}

/* [D3] BBRCheckDrainDone */
void bbrm_check_drain_done(struct sock *sk, const struct rate_sample *rs)
{
	const struct bbrm_params *params = bbrm_params_of(sk);
	u32 in_flight = params->drain_after_ack ? tcp_packets_in_flight(tcp_sk(sk)) :
						  rs->prior_in_flight;
	u8 limit = params->drain_round_limit;
	struct bbrm *bbr = bbrm_of(sk);

	if (bbr->state != BBRM_DRAIN)
		return;
	if (bbrm_inflight_at_departure(sk, in_flight) <=
	    bbrm_inflight_for(sk, bbrm_bounded_bw(bbr), BBRM_UNIT) ||
	    (limit && bbr->round_count - bbr->drain_start_round > limit))
		bbrm_start_down(sk);
}

/* ---- ProbeBW ---- */

/* [D3] BBRIsTimeToProbeBW. Rounds are counted in packets: the drafts' text compares bytes with 63
 * [D2].
 */
static bool bbrm_is_time_to_probe(struct sock *sk)
{
	const struct bbrm *bbr = bbrm_of(sk);

	return bbrm_now_us(sk) > bbr->cycle_stamp + bbr->probe_wait_us ||
	       bbr->rounds_since_probe >= BBRM_RENO_ROUNDS ||
	       (u64)bbr->rounds_since_probe << BBRM_SCALE >= bbrm_target_inflight(sk);
}

/* The round of feedback after a probe has ended, and PROBE_STOPPING with it: as -06 has it; in the
 * drafts before it never ends, so that the filter would rotate every round. ProbeRTT's rounds are
 * app-limited and do not rotate the filter (unless the parameters say so): it holds two probes, not
 * two intervals. Returns whether a REFILL began.
 */
static bool bbrm_end_stopping(struct sock *sk, const struct rate_sample *rs)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbr->is_bw_probe_sample = 0;
	if (bbrm_params_of(sk)->filter_after_probe_rtt == BBRM_ALWAYS && rs->is_app_limited &&
	    bbrm_in_probe_bw(bbr))
		return false;
	bbr->ack_phase = BBRM_INIT;
	if (!bbrm_in_probe_bw(bbr))
		return false;
	if (!rs->is_app_limited)
		bbrm_advance_max_bw_filter(bbr);
	if (!bbr->prev_probe_precautionary || bbr->prev_probe_too_high)
		return false;
	bbrm_start_refill(sk);
	return true;
}

/* [D3] BBRAdaptLongTermModel, [D2] BBRAdaptUpperBounds. A reading:
 * - [D2] raises inflight_hi only if bw_hi is finite, too, which it never is: bw_hi is left out.
 *
 * Returns whether it went on to another state, which then has this ACK's round still before it: a
 * REFILL that began here and ended with the same ACK would not last the round that it is for.
 */
static bool bbrm_adapt_long_term_model(struct sock *sk, const struct rate_sample *rs)
{
	struct bbrm *bbr = bbrm_of(sk);

	if (bbr->round_start && bbr->ack_phase == BBRM_PROBE_STARTING)
		bbr->ack_phase = BBRM_PROBE_FEEDBACK;
	if (bbr->round_start && bbr->ack_phase == BBRM_PROBE_STOPPING && bbrm_end_stopping(sk, rs))
		return true;
	if (!bbrm_has_sample(rs))
		return false;
	if (bbrm_is_sample_too_high(sk, rs)) {
		/* What was lost in the round of REFILL is in the first samples of UP. */
		if (bbrm_params_of(sk)->samples_cut && bbr->is_bw_probe_sample)
			bbrm_handle_inflight_too_high(sk, rs->tx_in_flight, rs->is_app_limited);
		return false;
	}
	if (bbr->inflight_hi == BBRM_INFINITE)
		return false;
	bbr->inflight_hi = max(bbr->inflight_hi, rs->tx_in_flight);
	if (bbr->state == BBRM_UP)
		bbrm_probe_inflight_hi_upward(sk, rs);
	return false;
}

/* The precautionary test: has this probe, after one that was too high, come to inflight_hi? The
 * drafts' "inflight" is what was in flight before this ACK; the released version looks at the next
 * departure.
 */
static bool bbrm_is_at_inflight_hi(struct sock *sk, const struct rate_sample *rs)
{
	const struct bbrm *bbr = bbrm_of(sk);

	if (bbrm_params_of(sk)->precaution_at_departure)
		return bbrm_inflight_at_departure(sk, rs->prior_in_flight) >=
		       (u64)bbr->inflight_hi << BBRM_SCALE;
	return rs->prior_in_flight >= bbr->inflight_hi;
}

/* [D2]: "inflight > BBRInflight(BBR.max_bw, 1.25)". In whole packets, where both can be equal, the
 * released version ends UP then, as BBRv1 in mainline does.
 */
static bool bbrm_is_up_full(struct sock *sk, const struct rate_sample *rs)
{
	const struct bbrm_params *params = bbrm_params_of(sk);
	u64 inflight = bbrm_inflight_at_departure(sk, rs->prior_in_flight);
	u64 full = bbrm_inflight_for(sk, bbrm_max_bw(bbrm_of(sk)), params->up_pacing_gain);

	return params->whole_departures ? inflight >= full : inflight > full;
}

/* [D3] BBRIsTimeToGoDown; [D2] the test in BBRUpdateProbeBWCyclePhase */
static bool bbrm_is_time_to_go_down(struct sock *sk, const struct rate_sample *rs, u32 rate)
{
	const struct bbrm_params *params = bbrm_params_of(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbrm *bbr = bbrm_of(sk);

	if (params->precautionary && bbr->prev_probe_too_high && bbrm_is_at_inflight_hi(sk, rs)) {
		bbr->prev_probe_precautionary = 1;
		return true;
	}
	if (!params->plateau_ends_up)
		return bbrm_now_us(sk) > bbr->cycle_stamp + bbr->min_rtt_us &&
		       bbrm_is_up_full(sk, rs);
	if (tp->is_cwnd_limited && tcp_snd_cwnd(tp) >= bbr->inflight_hi) {
		/* Held by inflight_hi: a plateau would say nothing about the path. */
		bbrm_reset_full_bw(bbr);
		bbr->full_bw = rate;
		return false;
	}
	return bbr->full_bw_now;
}

/* [D3] BBRIsTimeToCruise */
static bool bbrm_is_time_to_cruise(struct sock *sk, const struct rate_sample *rs)
{
	const struct bbrm *bbr = bbrm_of(sk);
	u64 inflight = bbrm_inflight_at_departure(sk, rs->prior_in_flight);

	if (inflight > (u64)bbrm_inflight_with_headroom(sk) << BBRM_SCALE)
		return false;
	if (bbrm_params_of(sk)->min_rtt_ends_down &&
	    bbrm_now_us(sk) > bbr->cycle_stamp + bbr->min_rtt_us)
		return true;
	return inflight <= bbrm_inflight_for(sk, bbrm_max_bw(bbr), BBRM_UNIT);
}

/* [D3] BBRUpdateProbeBWCyclePhase */
void bbrm_update_probe_bw_cycle_phase(struct sock *sk, const struct rate_sample *rs, u32 rate)
{
	struct bbrm *bbr = bbrm_of(sk);

	if (!bbr->full_bw_reached || bbrm_adapt_long_term_model(sk, rs))
		return;
	switch (bbr->state) {
	case BBRM_DOWN:
		if (bbrm_is_time_to_probe(sk))
			bbrm_start_refill(sk);
		else if (bbrm_is_time_to_cruise(sk, rs))
			bbr->state = BBRM_CRUISE;
		break;
	case BBRM_CRUISE:
		if (bbrm_is_time_to_probe(sk))
			bbrm_start_refill(sk);
		break;
	case BBRM_REFILL:
		if (bbr->round_start) {
			bbr->is_bw_probe_sample = 1;
			bbrm_start_up(sk, rate);
		}
		break;
	case BBRM_UP:
		if (bbrm_is_time_to_go_down(sk, rs, rate)) {
			bbr->prev_probe_too_high = 0;	/* set again if the feedback shows it */
			bbrm_start_down(sk);
		}
		break;
	}
}

/* ---- ProbeRTT ---- */

/* [D3] BBREnterProbeRTT */
static void bbrm_enter_probe_rtt(struct sock *sk)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbr->filter_due = bbrm_params_of(sk)->filter_after_probe_rtt == BBRM_AFTER_CUT_UP &&
			  (bbr->state == BBRM_UP || (bbr->state == BBRM_DOWN &&
						     bbr->ack_phase == BBRM_PROBE_STOPPING));
	bbrm_save_cwnd(sk);
	bbr->state = BBRM_PROBE_RTT;
	bbr->probe_rtt_cwnd = 0;
	if (bbrm_params_of(sk)->probe_rtt_cwnd_fixed)
		bbr->probe_rtt_cwnd = bbrm_probe_rtt_cwnd(sk);
	bbr->probe_rtt_done_stamp = 0;
	bbr->ack_phase = BBRM_PROBE_STOPPING;
	bbrm_start_round(sk);
}

/* [D3] BBRCheckProbeRTTDone, BBRExitProbeRTT */
static void bbrm_check_probe_rtt_done(struct sock *sk)
{
	struct bbrm *bbr = bbrm_of(sk);
	u64 now = bbrm_now_us(sk);

	if (!bbr->probe_rtt_done_stamp || now <= bbr->probe_rtt_done_stamp)
		return;
	bbr->probe_rtt_min_stamp = now;
	bbrm_restore_cwnd(sk);
	bbrm_reset_lower_bounds(bbr);
	if (bbr->filter_due)
		bbrm_advance_max_bw_filter(bbr);
	bbr->filter_due = 0;
	if (bbr->full_bw_reached) {
		bbrm_start_down(sk);
		bbr->state = BBRM_CRUISE;
	} else {
		bbr->state = BBRM_STARTUP;
	}
}

/* [D3] BBRHandleProbeRTT */
static void bbrm_handle_probe_rtt(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbrm *bbr = bbrm_of(sk);

	/* What is delivered now says nothing of the bandwidth. */
	tp->app_limited = tp->delivered + tcp_packets_in_flight(tp) ?: 1;
	if (bbr->probe_rtt_done_stamp) {
		if (bbr->round_start)
			bbr->probe_rtt_round_done = 1;
		if (bbr->probe_rtt_round_done)
			bbrm_check_probe_rtt_done(sk);
	} else if (tcp_packets_in_flight(tp) <= bbrm_probe_rtt_cwnd(sk)) {
		bbr->probe_rtt_done_stamp = bbrm_now_us(sk) + BBRM_PROBE_RTT_DURATION_US;
		bbr->probe_rtt_round_done = 0;
		bbrm_start_round(sk);
	}
}

/* [D3] BBRCheckProbeRTT */
void bbrm_check_probe_rtt(struct sock *sk, const struct rate_sample *rs)
{
	struct bbrm *bbr = bbrm_of(sk);

	if (bbr->state != BBRM_PROBE_RTT && bbr->probe_rtt_expired && !bbr->idle_restart)
		bbrm_enter_probe_rtt(sk);
	if (bbr->state == BBRM_PROBE_RTT)
		bbrm_handle_probe_rtt(sk);
	if (rs->delivered > 0)
		bbr->idle_restart = 0;
}

/* [D3] BBRHandleRestartFromIdle */
void bbrm_handle_restart_from_idle(struct sock *sk)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbr->idle_restart = 1;
	bbr->extra_acked_interval_start = bbrm_now_us(sk);
	bbr->extra_acked_delivered = 0;
	if (bbrm_in_probe_bw(bbr))
		bbrm_pace_at(sk, bbrm_bounded_bw(bbr), BBRM_UNIT);
	else if (bbr->state == BBRM_PROBE_RTT)
		bbrm_check_probe_rtt_done(sk);
}
