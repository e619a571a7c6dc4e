// SPDX-License-Identifier: GPL-2.0-only
/*
 * The response to ECN marks, as BBRv2 ("v2alpha") is publicly described to have it: an average of
 * the marked fraction (gain 1/16) cuts inflight_lo by a third of itself, probes with more than
 * half of their packets marked were too high, and Startup ends after two such rounds. The drafts
 * specify none.
 */
#include "tcp_bbr_model.h"

#define BBRM_ECN_ALPHA_SHIFT	4
#define BBRM_ECN_DIVISOR	3
#define BBRM_ECN_STARTUP_ROUNDS	2

static bool bbrm_ecn_responds(const struct sock *sk)
{
	const struct bbrm_params *params = bbrm_params_of(sk);

	return params->ecn == BBRM_ECN_ON &&
	       (!params->ecn_max_rtt_us || bbrm_of(sk)->min_rtt_us <= params->ecn_max_rtt_us);
}

void bbrm_ecn_init(struct sock *sk)
{
	struct bbrm *bbr = bbrm_of(sk);

	bbr->ecn_alpha = BBRM_ECN_UNIT;
	bbr->ecn_round_delivered = tcp_sk(sk)->delivered;
	bbr->ecn_round_ce = tcp_sk(sk)->delivered_ce;
}

/* Two rounds of Startup in a row were mostly marked. */
static void bbrm_ecn_check_startup(struct sock *sk, bool mostly_marked)
{
	struct bbrm *bbr = bbrm_of(sk);

	if (bbr->full_bw_reached)
		return;
	if (!mostly_marked) {
		bbr->startup_ecn_rounds = 0;
	} else if (++bbr->startup_ecn_rounds >= BBRM_ECN_STARTUP_ROUNDS) {
		bbr->startup_ecn_rounds = 0;
		bbr->full_bw_reached = 1;
		bbr->inflight_hi = bbrm_bdp_multiple(sk, bbrm_max_bw(bbr), BBRM_UNIT) >>
				   BBRM_SCALE;
	}
}

/* Once a round: the fraction of packets that came back marked, and its moving average. */
void bbrm_ecn_update(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbrm *bbr = bbrm_of(sk);
	u32 delivered = tp->delivered - bbr->ecn_round_delivered;
	u32 marked = tp->delivered_ce - bbr->ecn_round_ce;
	s32 fraction;

	if (bbrm_params_of(sk)->ecn != BBRM_ECN_ON || !bbr->round_start || !delivered)
		return;
	fraction = div_u64((u64)marked * BBRM_ECN_UNIT, delivered);
	bbr->ecn_alpha += (fraction - (s32)bbr->ecn_alpha) / (1 << BBRM_ECN_ALPHA_SHIFT);
	bbr->ecn_round_delivered = tp->delivered;
	bbr->ecn_round_ce = tp->delivered_ce;
	if (!bbrm_ecn_responds(sk))
		return;
	if (marked)
		bbr->ecn_in_round = 1;
	bbrm_ecn_check_startup(sk, (u64)marked * 2 > delivered);
}

/* What inflight_lo is to be after a round with marks. */
u32 bbrm_ecn_cut(const struct bbrm *bbr)
{
	return (u64)bbr->inflight_lo * (BBRM_ECN_UNIT - bbr->ecn_alpha / BBRM_ECN_DIVISOR) /
	       BBRM_ECN_UNIT;
}

bool bbrm_ecn_is_too_high(const struct sock *sk, const struct rate_sample *rs)
{
	return bbrm_ecn_responds(sk) && rs->delivered_ce > 0 &&
	       2 * (s64)rs->delivered_ce > rs->delivered;
}

/* A probe whose samples come back mostly marked was too high, like one with too much loss. */
void bbrm_ecn_check_probe(struct sock *sk, const struct rate_sample *rs)
{
	if (bbrm_of(sk)->is_bw_probe_sample && bbrm_ecn_is_too_high(sk, rs))
		bbrm_handle_inflight_too_high(sk, rs->tx_in_flight, rs->is_app_limited);
}
