/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BBRv2 and BBRv3, one model with a profile per version (tcp_bbr_profile.h): tcp_bbr2.c and tcp_bbr3.c give a module's
 * name and its profiles, then include this file.
 *
 * Written from the Internet-Drafts, not from any implementation:
 *   [D2] draft-cardwell-iccrg-bbr-congestion-control-02      BBRv2
 *   [D3] draft-ietf-ccwg-bbr-00 ... -06                      BBRv3
 * Function names follow the drafts' pseudocode, in lower case. Where the drafts are silent or contradict each other, or
 * the published versions differ from them, the comment says what was chosen and why.
 *
 * Units: bandwidth in packets per us << BW_SCALE, time in us, volumes in packets, gains as multiples of UNIT.
 * Needs the hooks of kernels/patches/bbr.
 */
#include <linux/inet_diag.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/random.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/win_minmax.h>
#include <net/tcp.h>

#define BW_SCALE	24
#define UNIT		256		/* a gain of 1 */
#define INFINITE	U32_MAX		/* no bound */
#define ECN_UNIT	(1 << 16)	/* a CE fraction of 1 */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define random_below(n)	prandom_u32_max(n)
#else
#define random_below(n)	get_random_u32_below(n)
#endif

/* [D3 2.4 to 2.9], [D2 2.4 to 2.9]: what no version changes. */
#define FULL_BW_GROWTH_PERCENT	125
#define FULL_BW_ROUNDS		3
#define PACING_MARGIN_PERCENT	1
#define LOSS_THRESHOLD_PERCENT	2
#define BETA_PERCENT		70
#define HEADROOM_PERCENT	15
#define MIN_CWND		4
#define MIN_RTT_WINDOW_US	(10 * USEC_PER_SEC)
#define PROBE_RTT_INTERVAL_US	(5 * USEC_PER_SEC)
#define PROBE_RTT_DURATION_US	(200 * USEC_PER_MSEC)
#define PROBE_WAIT_US		(2 * USEC_PER_SEC)	/* plus up to a second at random */
#define RENO_ROUNDS		63			/* Reno's time between losses at 25 Mbit/s, 30 ms */
#define QUANTA_IN_FLIGHT	3	/* one in the sender, one in the receiver's offload, one in its ACKs */
#define QUANTUM_MAX_BYTES	65536
#define LOW_RATE_BYTES		150000	/* 1.2 Mbit/s, below which v2 sends single segments */
#define UP_ROUNDS_MAX		30
/* ECN as publicly described of BBRv2 ("v2alpha"); the drafts specify no response. */
#define ECN_ALPHA_SHIFT		4	/* gain 1/16 */
#define ECN_FACTOR_DIVISOR	3	/* cut by alpha/3 */
#define ECN_STARTUP_ROUNDS	2	/* rounds with more than half marked that end Startup */

enum state { STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT };

/* What the ACKs that arrive now are feedback for, one round behind the state. */
enum ack_phase { INIT, REFILLING, PROBE_STARTING, PROBE_FEEDBACK, PROBE_STOPPING };

enum undo_state { UNDO_NONE, UNDO_STARTUP, UNDO_UP };

enum ecn_mode { ECN_OFF, ECN_IGNORE, ECN_ON };

struct bbr {
	u64 cycle_stamp;		/* start of DOWN; v2: of UP, too */
	u64 min_rtt_stamp;
	u64 probe_rtt_min_stamp;
	u64 probe_rtt_done_stamp;	/* 0: in-flight has not fallen to the ProbeRTT window yet */
	u64 extra_acked_interval_start;

	u32 min_rtt_us;
	u32 probe_rtt_min_us;
	u32 probe_rtt_base_us;		/* min_rtt before it expired: sizes the ProbeRTT window */

	u32 bw_slots[2];		/* max of the previous and of this probing cycle */
	u32 bw_lo, bw_latest;
	u32 full_bw;
	u32 inflight_hi, inflight_lo, inflight_latest;

	u32 round_count, next_round_delivered, loss_round_delivered, recovery_delivered;
	u32 initial_delivered;
	u32 drain_start_round;
	u32 rounds_since_probe;
	u32 probe_wait_us;
	u32 up_acked, up_acked_per_inc;

	struct minmax extra_acked;
	u32 extra_acked_delivered;

	u32 prior_cwnd, initial_cwnd;
	u32 undo_bw_lo, undo_inflight_lo, undo_inflight_hi;

	u32 ecn_alpha;			/* / ECN_UNIT */
	u32 ecn_round_delivered, ecn_round_ce;

	u32 losses_seen;		/* packets that skb_marked_lost() told of */
	u32 undos;			/* losses that turned out to be none */
	u32 last_tx_in_flight, last_lost;

	u32 initialized:1,
	    state:3,
	    ack_phase:3,
	    undo_state:2,
	    round_start:1,
	    idle_restart:1,
	    has_seen_rtt:1,
	    loss_round_start:1,
	    loss_in_round:1,
	    ecn_in_round:1,
	    full_bw_now:1,
	    full_bw_reached:1,
	    full_bw_count:2,
	    is_bw_probe_sample:1,
	    prev_probe_too_high:1,
	    prev_probe_precautionary:1,
	    probe_rtt_expired:1,
	    probe_rtt_round_done:1,
	    startup_ecn_rounds:2,
	    loss_events:4;
	u32 up_rounds:5,
	    counters_moved:1;
};

/* ---- parameters ---- */

static char *profile = PROFILES_DEFAULT;
module_param(profile, charp, 0444);
MODULE_PARM_DESC(profile, "which published version's constants");

static char *ecn = "off";
module_param(ecn, charp, 0444);
MODULE_PARM_DESC(ecn, "off: no ECT; ignore: ECT but no response to marks; on: respond as v2alpha is described to");

static int ecn_max_rtt_us = ECN_MAX_RTT_US_DEFAULT;
module_param(ecn_max_rtt_us, int, 0444);
MODULE_PARM_DESC(ecn_max_rtt_us, "respond to marks only up to this min_rtt; 0: always");

static int up_pacing_gain_percent = -1;
module_param(up_pacing_gain_percent, int, 0444);
MODULE_PARM_DESC(up_pacing_gain_percent, "pacing gain in UP; -1: the profile's");

static int down_pacing_gain_percent = -1;
module_param(down_pacing_gain_percent, int, 0444);
MODULE_PARM_DESC(down_pacing_gain_percent, "pacing gain in DOWN; -1: the profile's");

static bool extra_acked = true;
module_param(extra_acked, bool, 0444);
MODULE_PARM_DESC(extra_acked, "add the estimate of ACK aggregation to the window");

static bool offload_budget = true;
module_param(offload_budget, bool, 0444);
MODULE_PARM_DESC(offload_budget, "let at least three send quanta be in flight");

static bool headroom = true;
module_param(headroom, bool, 0444);
MODULE_PARM_DESC(headroom, "leave 15 % of inflight_hi free in CRUISE");

static bool precautionary = true;
module_param(precautionary, bool, 0444);
MODULE_PARM_DESC(precautionary, "after a probe that was too high, stop the next one at inflight_hi, where the profile does");

static unsigned int trace_acks;
module_param(trace_acks, uint, 0444);
MODULE_PARM_DESC(trace_acks, "keep this many records, one per ACK, for /proc/" BBR_NAME "_acks; 0: none");

static unsigned int counters_start;
module_param(counters_start, uint, 0444);
MODULE_PARM_DESC(counters_start, "for tests: add this to the counts of delivered and lost packets, so that they wrap");

static const struct profile *params;
static enum ecn_mode ecn_mode;
static u16 up_pacing_gain, down_pacing_gain;

/* ---- small helpers ---- */

static u64 now_us(const struct tcp_sock *tp)
{
	return tp->tcp_mstamp;
}

static u32 max_bw(const struct bbr *bbr)
{
	return max(bbr->bw_slots[0], bbr->bw_slots[1]);
}

/* [D3] BBRBoundBWForModel */
static u32 bounded_bw(const struct bbr *bbr)
{
	return min(max_bw(bbr), bbr->bw_lo);
}

static bool in_probe_bw(const struct bbr *bbr)
{
	return bbr->state >= DOWN && bbr->state <= UP;
}

/* Undefined in [D2]; [D3] BBRIsProbingBW */
static bool is_probing_bw(const struct bbr *bbr)
{
	return bbr->state == STARTUP || bbr->state == REFILL || bbr->state == UP;
}

static u16 pacing_gain(const struct bbr *bbr)
{
	switch (bbr->state) {
	case STARTUP:
		return params->startup_pacing_gain;
	case DRAIN:
		return params->drain_pacing_gain;
	case UP:
		return up_pacing_gain;
	case DOWN:
		return down_pacing_gain;
	}
	return UNIT;
}

static u16 cwnd_gain(const struct bbr *bbr)
{
	switch (bbr->state) {
	case STARTUP:
		return params->startup_cwnd_gain;
	case DRAIN:
		return params->drain_cwnd_gain;
	case UP:
		return params->up_cwnd_gain;
	case PROBE_RTT:
		return UNIT / 2;
	}
	return 2 * UNIT;
}

static u32 min_tso_segs(struct sock *sk)
{
	return params->small_quantum && READ_ONCE(sk->sk_pacing_rate) < LOW_RATE_BYTES ? 1 : 2;
}

/* [D3] BBRSetSendQuantum: what tcp_tso_autosize() will make of the pacing rate, in packets. */
static u32 send_quantum(struct sock *sk)
{
	u64 bytes = min_t(u64, READ_ONCE(sk->sk_pacing_rate) >> READ_ONCE(sk->sk_pacing_shift), QUANTUM_MAX_BYTES);

	return max_t(u32, div_u64(bytes, tcp_sk(sk)->mss_cache), min_tso_segs(sk));
}

/* gain * bw * rtt, rounded up to packets. */
static u32 bdp_of(u32 bw, u32 rtt_us, u32 gain)
{
	u64 volume = (u64)bw * rtt_us;

	/* At most 2^32 * 2^30, of which the gain is taken in the coarser unit when it is large. */
	volume = volume >> 48 ? (volume >> 8) * gain : volume * gain >> 8;
	return min_t(u64, (volume + (1ULL << BW_SCALE) - 1) >> BW_SCALE, INT_MAX);
}

/* [D3] BBRBDPMultiple */
static u32 bdp_multiple(const struct bbr *bbr, u32 bw, u32 gain)
{
	if (bbr->min_rtt_us == INFINITE)
		return bbr->initial_cwnd;
	return bdp_of(bw, bbr->min_rtt_us, gain);
}

/* [D3] BBRQuantizationBudget */
static u32 quantized(struct sock *sk, u32 inflight)
{
	const struct bbr *bbr = inet_csk_ca(sk);

	if (offload_budget)
		inflight = max(inflight, QUANTA_IN_FLIGHT * send_quantum(sk));
	inflight = max_t(u32, inflight, MIN_CWND);
	return bbr->state == UP ? inflight + 2 : inflight;
}

/* [D3] BBRInflight */
static u32 inflight_for(struct sock *sk, u32 bw, u32 gain)
{
	return quantized(sk, bdp_multiple(inet_csk_ca(sk), bw, gain));
}

static u32 target_inflight(struct sock *sk)
{
	const struct bbr *bbr = inet_csk_ca(sk);

	return min(bdp_multiple(bbr, bounded_bw(bbr), UNIT), tcp_snd_cwnd(tcp_sk(sk)));
}

/* [D3] BBRInflightWithHeadroom */
static u32 inflight_with_headroom(const struct bbr *bbr)
{
	u32 room;

	if (bbr->inflight_hi == INFINITE || !headroom)
		return bbr->inflight_hi;
	room = max_t(u32, 1, (u64)bbr->inflight_hi * HEADROOM_PERCENT / 100);
	return max_t(s32, bbr->inflight_hi - room, MIN_CWND);
}

/*
 * The drafts say "inflight" and leave open when. Here it is what was in flight before this ACK, less what will have been
 * delivered when the next packet may leave, plus that packet's quantum while the gain is above 1: what the path will
 * hold when a change of the pacing rate takes effect. The value after the ACK ends v2's UP much later.
 */
static u32 inflight_at_departure(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr *bbr = inet_csk_ca(sk);
	u64 wait_us = tp->tcp_wstamp_ns > tp->tcp_clock_cache ?
		      div_u64(tp->tcp_wstamp_ns - tp->tcp_clock_cache, NSEC_PER_USEC) : 0;
	u64 delivered = bounded_bw(bbr) * wait_us >> BW_SCALE;
	u32 inflight = rs->prior_in_flight;

	if (pacing_gain(bbr) > UNIT)
		inflight += send_quantum(sk);
	return inflight > delivered ? inflight - delivered : 0;
}

/* [D3] IsInflightTooHigh */
static bool is_too_high(const struct tcp_sock *tp, s64 lost, s64 tx_in_flight)
{
	if (params->reno_exit && !tcp_is_sack(tp))
		return lost > 0;
	return lost * 100 > tx_in_flight * LOSS_THRESHOLD_PERCENT;
}

static bool responds_to_ecn(const struct bbr *bbr)
{
	return ecn_mode == ECN_ON && (!ecn_max_rtt_us || bbr->min_rtt_us <= ecn_max_rtt_us);
}

static bool is_sample_too_high(struct sock *sk, const struct rate_sample *rs)
{
	if (responds_to_ecn(inet_csk_ca(sk)) && rs->delivered_ce > 0 && 2 * rs->delivered_ce > rs->delivered)
		return true;
	return rs->lost > 0 && is_too_high(tcp_sk(sk), rs->lost, rs->tx_in_flight);
}

/* ---- states ---- */

/* [D3] BBRStartRound: the round that ends when something sent from now on is acknowledged. */
static void start_round(struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);

	bbr->next_round_delivered = tcp_sk(sk)->delivered;
}

static void reset_full_bw(struct bbr *bbr)
{
	bbr->full_bw = 0;
	bbr->full_bw_count = 0;
	bbr->full_bw_now = 0;
}

static void reset_lower_bounds(struct bbr *bbr)
{
	bbr->bw_lo = INFINITE;
	bbr->inflight_lo = INFINITE;
}

/* [D3] BBRRaiseInflightLongtermSlope */
static void raise_inflight_hi_slope(struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);
	u32 growth = 1U << bbr->up_rounds;

	bbr->up_rounds = min(bbr->up_rounds + 1, UP_ROUNDS_MAX);
	bbr->up_acked_per_inc = max(tcp_snd_cwnd(tcp_sk(sk)) / growth, 1U);
}

/* [D3] BBRStartProbeBW_DOWN with BBRPickProbeWait */
static void start_down(struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);

	bbr->loss_in_round = 0;
	bbr->ecn_in_round = 0;
	bbr->bw_latest = 0;
	bbr->inflight_latest = 0;
	bbr->up_acked_per_inc = INFINITE;
	bbr->rounds_since_probe = random_below(2);
	bbr->probe_wait_us = PROBE_WAIT_US + random_below(USEC_PER_SEC);
	bbr->cycle_stamp = now_us(tcp_sk(sk));
	bbr->ack_phase = PROBE_STOPPING;
	start_round(sk);
	bbr->state = DOWN;
}

static void start_refill(struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);

	reset_lower_bounds(bbr);
	bbr->up_rounds = 0;
	bbr->up_acked = 0;
	bbr->prev_probe_precautionary = 0;
	bbr->ack_phase = REFILLING;
	start_round(sk);
	bbr->state = REFILL;
}

static void start_up(struct sock *sk, u32 rate)
{
	struct bbr *bbr = inet_csk_ca(sk);

	bbr->ack_phase = PROBE_STARTING;
	start_round(sk);
	bbr->cycle_stamp = now_us(tcp_sk(sk));
	if (params->plateau_ends_up) {
		reset_full_bw(bbr);
		bbr->full_bw = rate;
	}
	bbr->state = UP;
	raise_inflight_hi_slope(sk);
}

/* ---- signals of one ACK, in the order in which they are used ---- */

/* The packets of this ACK give a round and a volume even if they give no rate. */
static bool has_sample(const struct rate_sample *rs)
{
	return rs->prior_mstamp && rs->delivered >= 0;
}

static u32 rate_of(const struct rate_sample *rs)
{
	if (rs->delivered <= 0 || rs->interval_us <= 0)
		return 0;
	return min_t(u64, div_u64((u64)rs->delivered << BW_SCALE, rs->interval_us), INFINITE - 1);
}

/* [D3] BBRUpdateLatestDeliverySignals */
static void update_latest_delivery_signals(struct sock *sk, const struct rate_sample *rs, u32 rate)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);

	bbr->loss_round_start = 0;
	if (!has_sample(rs))
		return;
	bbr->bw_latest = max(bbr->bw_latest, rate);
	bbr->inflight_latest = max_t(u32, bbr->inflight_latest, rs->delivered);
	if (!before(rs->prior_delivered, bbr->loss_round_delivered)) {
		bbr->loss_round_delivered = tp->delivered;
		bbr->loss_round_start = 1;
	}
}

/* [D3] BBRAdvanceLatestDeliverySignals */
static void advance_latest_delivery_signals(struct bbr *bbr, const struct rate_sample *rs, u32 rate)
{
	if (bbr->loss_round_start) {
		bbr->bw_latest = rate;
		bbr->inflight_latest = rs->delivered;
	}
}

/* [D3] BBRUpdateRound */
static void update_round(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr *bbr = inet_csk_ca(sk);

	bbr->round_start = 0;
	if (has_sample(rs) && !before(rs->prior_delivered, bbr->next_round_delivered)) {
		start_round(sk);
		bbr->round_count++;
		bbr->rounds_since_probe++;
		bbr->round_start = 1;
	}
}

/* Once a round: the fraction of packets that came back marked, and its moving average. */
static void update_ecn(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);
	u32 delivered = tp->delivered - bbr->ecn_round_delivered;
	u32 marked = tp->delivered_ce - bbr->ecn_round_ce;
	u64 fraction;

	if (ecn_mode != ECN_ON || !bbr->round_start || !delivered)
		return;
	fraction = div_u64((u64)marked * ECN_UNIT, delivered);
	bbr->ecn_alpha += ((s64)fraction - bbr->ecn_alpha) / (1 << ECN_ALPHA_SHIFT);
	bbr->ecn_round_delivered = tp->delivered;
	bbr->ecn_round_ce = tp->delivered_ce;
	if (!responds_to_ecn(bbr))
		return;
	if (marked)
		bbr->ecn_in_round = 1;
	if (bbr->full_bw_reached)
		return;
	bbr->startup_ecn_rounds = 2 * marked > delivered ? bbr->startup_ecn_rounds + 1 : 0;
	if (bbr->startup_ecn_rounds >= ECN_STARTUP_ROUNDS) {
		bbr->full_bw_reached = 1;
		bbr->inflight_hi = bdp_multiple(bbr, max_bw(bbr), UNIT);
	}
}

/* [D3] BBRAdaptLowerBoundsFromCongestion */
static void adapt_lower_bounds(struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);
	u32 cut = INFINITE;

	if (is_probing_bw(bbr))
		return;
	if (bbr->inflight_lo == INFINITE && (bbr->loss_in_round || bbr->ecn_in_round))
		bbr->inflight_lo = tcp_snd_cwnd(tcp_sk(sk));
	if (bbr->ecn_in_round)
		cut = (u64)bbr->inflight_lo * (ECN_UNIT - bbr->ecn_alpha / ECN_FACTOR_DIVISOR) / ECN_UNIT;
	if (bbr->loss_in_round) {
		if (bbr->bw_lo == INFINITE)
			bbr->bw_lo = max_bw(bbr);
		bbr->bw_lo = max_t(u32, bbr->bw_latest, (u64)bbr->bw_lo * BETA_PERCENT / 100);
		bbr->inflight_lo = max_t(u32, bbr->inflight_latest, (u64)bbr->inflight_lo * BETA_PERCENT / 100);
	}
	bbr->inflight_lo = min(bbr->inflight_lo, cut);
}

/* [D3] BBRUpdateCongestionSignals with BBRUpdateMaxBw */
static void update_congestion_signals(struct sock *sk, const struct rate_sample *rs, u32 rate)
{
	struct bbr *bbr = inet_csk_ca(sk);

	update_round(sk, rs);
	if (rate && (rate >= max_bw(bbr) || !rs->is_app_limited))
		bbr->bw_slots[1] = max(bbr->bw_slots[1], rate);
	update_ecn(sk);
	if (!bbr->loss_round_start)
		return;
	adapt_lower_bounds(sk);
	bbr->loss_in_round = 0;
	bbr->ecn_in_round = 0;
}

/*
 * [D3] BBRAdvanceMaxBwFilter. Not while this cycle has no sample, or two quiet cycles would leave no estimate.
 */
static void advance_max_bw_filter(struct bbr *bbr)
{
	if (!bbr->bw_slots[1])
		return;
	bbr->bw_slots[0] = bbr->bw_slots[1];
	bbr->bw_slots[1] = 0;
}

/* [D3] BBRUpdateACKAggregation */
static void update_ack_aggregation(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);
	u64 expected = bounded_bw(bbr) * (now_us(tp) - bbr->extra_acked_interval_start) >> BW_SCALE;
	u32 rounds = bbr->full_bw_reached ? EXTRA_ACKED_ROUNDS : params->startup_extra_acked_rounds;

	if (!rs->acked_sacked || !extra_acked)
		return;
	if (bbr->extra_acked_delivered <= expected) {
		bbr->extra_acked_delivered = 0;
		bbr->extra_acked_interval_start = now_us(tp);
		expected = 0;
	}
	bbr->extra_acked_delivered += rs->acked_sacked;
	minmax_running_max(&bbr->extra_acked, rounds, bbr->round_count,
			   min_t(u64, bbr->extra_acked_delivered - expected, tcp_snd_cwnd(tp)));
}

/* [D3] BBRCheckFullBWReached, [D2] BBRCheckStartupFullBandwidth */
static void check_full_bw_reached(struct bbr *bbr, const struct rate_sample *rs, u32 rate)
{
	u32 seen = params->plateau_of_samples ? rate : max_bw(bbr);

	if (params->plateau_of_samples ? bbr->full_bw_now : bbr->full_bw_reached)
		return;
	if (!bbr->round_start || rs->is_app_limited || !seen)
		return;
	if ((u64)seen * 100 >= (u64)bbr->full_bw * FULL_BW_GROWTH_PERCENT) {
		reset_full_bw(bbr);
		bbr->full_bw = seen;
		return;
	}
	if (++bbr->full_bw_count < FULL_BW_ROUNDS)
		return;
	bbr->full_bw_now = 1;
	bbr->full_bw_reached = 1;
}

/*
 * [D3 5.3.1.3], prose only: out of Startup after a round in recovery with too much loss in too many places. One event is
 * an ACK that reports newly lost data.
 */
static void check_startup_high_loss(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);
	bool in_recovery = inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery;
	bool exit;

	if (rs->losses > 0 && bbr->loss_events < 15)
		bbr->loss_events++;
	exit = bbr->loss_round_start && in_recovery && !before(rs->prior_delivered, bbr->recovery_delivered) &&
	       bbr->loss_events >= params->full_loss_count && is_sample_too_high(sk, rs);
	if (params->reno_exit && !tcp_is_sack(tp) && in_recovery && rs->losses > 0)
		exit = true;
	if (bbr->loss_round_start)
		bbr->loss_events = 0;
	if (bbr->full_bw_reached || !exit)
		return;
	bbr->full_bw_reached = 1;
	if (params->loss_exit_sets_inflight_hi) {
		bbr->inflight_hi = bdp_multiple(bbr, max_bw(bbr), UNIT);
		if (params->loss_exit_looks_at_latest)
			bbr->inflight_hi = max(bbr->inflight_hi, bbr->inflight_latest);
	}
	if (params->undo_state)
		bbr->undo_state = UNDO_STARTUP;
}

/* [D3] BBRCheckStartupDone, BBREnterDrain */
static void check_startup_done(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr *bbr = inet_csk_ca(sk);

	check_startup_high_loss(sk, rs);
	if (bbr->state == STARTUP && bbr->full_bw_reached) {
		bbr->state = DRAIN;
		bbr->drain_start_round = bbr->round_count;
	}
}

/* [D3] BBRCheckDrainDone */
static void check_drain_done(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr *bbr = inet_csk_ca(sk);

	if (bbr->state != DRAIN)
		return;
	if (inflight_at_departure(sk, rs) <= inflight_for(sk, bounded_bw(bbr), UNIT) ||
	    (params->drain_round_limit && bbr->round_count - bbr->drain_start_round > params->drain_round_limit))
		start_down(sk);
}

/* ---- ProbeBW ---- */

/* [D3] BBRIsTimeToProbeBW. Rounds are counted in packets: the drafts' text compares bytes with 63 [D2]. */
static bool is_time_to_probe(struct sock *sk)
{
	const struct bbr *bbr = inet_csk_ca(sk);

	return now_us(tcp_sk(sk)) > bbr->cycle_stamp + bbr->probe_wait_us ||
	       bbr->rounds_since_probe >= min_t(u32, target_inflight(sk), RENO_ROUNDS);
}

/* [D3] BBRProbeInflightLongtermUpward */
static void probe_inflight_hi_upward(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);
	u32 steps;

	if (!tp->is_cwnd_limited || tcp_snd_cwnd(tp) < bbr->inflight_hi)
		return;
	bbr->up_acked += rs->acked_sacked;
	steps = bbr->up_acked / bbr->up_acked_per_inc;
	bbr->up_acked -= steps * bbr->up_acked_per_inc;
	bbr->inflight_hi += steps;
	if (bbr->round_start)
		raise_inflight_hi_slope(sk);
}

/*
 * [D3] BBRAdaptLongTermModel, [D2] BBRAdaptUpperBounds. Two readings:
 * - PROBE_STOPPING ends with its round, as -06 has it; the drafts before never leave it, so that the filter would rotate
 *   every round. ProbeRTT's rounds are app-limited and do not rotate the filter: it holds two probes, not two intervals.
 * - [D2] raises inflight_hi only if bw_hi is finite, too, which it never is: bw_hi is left out.
 *
 * Returns whether it went on to another state, which then has this ACK's round still before it: a REFILL that began here
 * and ended with the same ACK would not last the round that it is for.
 */
static bool adapt_long_term_model(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr *bbr = inet_csk_ca(sk);

	if (bbr->round_start && bbr->ack_phase == PROBE_STARTING)
		bbr->ack_phase = PROBE_FEEDBACK;
	if (bbr->round_start && bbr->ack_phase == PROBE_STOPPING) {
		bbr->is_bw_probe_sample = 0;
		bbr->ack_phase = INIT;
		if (in_probe_bw(bbr)) {
			if (!rs->is_app_limited)
				advance_max_bw_filter(bbr);
			if (bbr->prev_probe_precautionary && !bbr->prev_probe_too_high) {
				start_refill(sk);
				return true;
			}
		}
	}
	if (bbr->inflight_hi == INFINITE || !has_sample(rs) || is_sample_too_high(sk, rs))
		return false;
	bbr->inflight_hi = max(bbr->inflight_hi, rs->tx_in_flight);
	if (bbr->state == UP)
		probe_inflight_hi_upward(sk, rs);
	return false;
}

/* [D3] BBRIsTimeToGoDown; [D2] the test in BBRUpdateProbeBWCyclePhase */
static bool is_time_to_go_down(struct sock *sk, const struct rate_sample *rs, u32 rate)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);
	u32 inflight = inflight_at_departure(sk, rs);

	if (precautionary && params->precautionary && bbr->prev_probe_too_high && inflight >= bbr->inflight_hi) {
		bbr->prev_probe_precautionary = 1;
		return true;
	}
	if (!params->plateau_ends_up)
		return now_us(tp) > bbr->cycle_stamp + bbr->min_rtt_us &&
		       inflight > inflight_for(sk, max_bw(bbr), up_pacing_gain);
	if (tp->is_cwnd_limited && tcp_snd_cwnd(tp) >= bbr->inflight_hi) {
		/* Held by inflight_hi: a plateau would say nothing about the path. */
		reset_full_bw(bbr);
		bbr->full_bw = rate;
		return false;
	}
	return bbr->full_bw_now;
}

static bool is_time_to_cruise(struct sock *sk, const struct rate_sample *rs)
{
	const struct bbr *bbr = inet_csk_ca(sk);
	u32 inflight = inflight_at_departure(sk, rs);

	if (inflight > inflight_with_headroom(bbr))
		return false;
	if (params->min_rtt_ends_down && now_us(tcp_sk(sk)) > bbr->cycle_stamp + bbr->min_rtt_us)
		return true;
	return inflight <= inflight_for(sk, max_bw(bbr), UNIT);
}

/* [D3] BBRUpdateProbeBWCyclePhase */
static void update_probe_bw_cycle_phase(struct sock *sk, const struct rate_sample *rs, u32 rate)
{
	struct bbr *bbr = inet_csk_ca(sk);

	if (!bbr->full_bw_reached)
		return;
	if (adapt_long_term_model(sk, rs))
		return;
	switch (bbr->state) {
	case DOWN:
		if (is_time_to_probe(sk))
			start_refill(sk);
		else if (is_time_to_cruise(sk, rs))
			bbr->state = CRUISE;
		break;
	case CRUISE:
		if (is_time_to_probe(sk))
			start_refill(sk);
		break;
	case REFILL:
		if (bbr->round_start) {
			bbr->is_bw_probe_sample = 1;
			start_up(sk, rate);
		}
		break;
	case UP:
		if (is_time_to_go_down(sk, rs, rate)) {
			bbr->prev_probe_too_high = 0;	/* set again if the feedback shows too much loss */
			start_down(sk);
		}
		break;
	}
}

/* ---- losses ---- */

/* [D3-05] BBRSaveStateUponLoss */
static void save_state_upon_loss(struct bbr *bbr)
{
	bbr->undo_state = UNDO_NONE;
	bbr->undo_bw_lo = bbr->bw_lo;
	bbr->undo_inflight_lo = bbr->inflight_lo;
	bbr->undo_inflight_hi = bbr->inflight_hi;
}

/* [D3] BBRNoteLoss */
static void note_loss(struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);

	if (!bbr->loss_in_round) {
		save_state_upon_loss(bbr);
		if (params->loss_anchors_round)
			bbr->loss_round_delivered = tcp_sk(sk)->delivered;
	}
	bbr->loss_in_round = 1;
}

/*
 * [D3] BBRInflightAtLoss: how much was in flight when the loss rate passed the threshold, inside this packet if it is a
 * large segment. Saturates where reordering makes the differences negative.
 */
static u32 inflight_at_loss(u32 tx_in_flight, u32 lost, u32 size)
{
	s64 prev = (s64)tx_in_flight - size, lost_prev = (s64)lost - size, prefix;

	if (prev < 0 || lost_prev < 0)
		return tx_in_flight;
	prefix = LOSS_THRESHOLD_PERCENT * prev - 100 * lost_prev;
	return prev + (prefix > 0 ? div_s64(prefix, 100 - LOSS_THRESHOLD_PERCENT) : 0);
}

/* [D3] BBRHandleInflightTooHigh */
static void handle_inflight_too_high(struct sock *sk, u32 tx_in_flight, bool is_app_limited)
{
	struct bbr *bbr = inet_csk_ca(sk);

	bbr->prev_probe_too_high = 1;
	bbr->is_bw_probe_sample = 0;	/* react once per probe */
	if (!is_app_limited)
		bbr->inflight_hi = max_t(u32, tx_in_flight, (u64)target_inflight(sk) * BETA_PERCENT / 100);
	if (bbr->state == UP) {
		if (params->undo_state)
			bbr->undo_state = UNDO_UP;
		start_down(sk);
	}
}

/* [D3] BBRHandleLostPacket, called when a packet is marked lost, whatever finds it: SACK, the RACK timer, an RTO. */
static void skb_marked_lost(struct sock *sk, const struct sk_buff *skb)
{
	const struct tcp_skb_cb *scb = TCP_SKB_CB(skb);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);
	u32 lost = tp->lost - scb->tx_lost;

	if (!bbr->initialized)
		return;
	bbr->losses_seen += tcp_skb_pcount(skb);
	note_loss(sk);
	if (!bbr->is_bw_probe_sample || !scb->tx.delivered_mstamp || !is_too_high(tp, lost, scb->tx_in_flight))
		return;
	handle_inflight_too_high(sk, inflight_at_loss(scb->tx_in_flight, lost, tcp_skb_pcount(skb)),
				 scb->tx.is_app_limited);
}

/* A probe whose samples come back mostly marked was too high, like one with too much loss. */
static void check_ecn_too_high(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr *bbr = inet_csk_ca(sk);

	if (bbr->is_bw_probe_sample && responds_to_ecn(bbr) && rs->delivered_ce > 0 &&
	    2 * rs->delivered_ce > rs->delivered)
		handle_inflight_too_high(sk, rs->tx_in_flight, rs->is_app_limited);
}

/* [D3] BBRSaveCwnd. Before any change of state, or ProbeRTT would keep the larger of old and new. */
static void save_cwnd(struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	if (inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery && bbr->state != PROBE_RTT)
		bbr->prior_cwnd = cwnd;
	else
		bbr->prior_cwnd = max(bbr->prior_cwnd, cwnd);
}

/* [D3] BBRRestoreCwnd */
static void restore_cwnd(struct sock *sk)
{
	const struct bbr *bbr = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp), bbr->prior_cwnd));
}

/* ---- min_rtt and ProbeRTT ---- */

/* [D3] BBRUpdateMinRTT */
static void update_min_rtt(struct sock *sk, const struct rate_sample *rs)
{
	u64 now = now_us(tcp_sk(sk));
	struct bbr *bbr = inet_csk_ca(sk);

	bbr->probe_rtt_base_us = bbr->state == PROBE_RTT ? bbr->probe_rtt_base_us : bbr->min_rtt_us;
	bbr->probe_rtt_expired = now > bbr->probe_rtt_min_stamp + PROBE_RTT_INTERVAL_US;
	if (rs->rtt_us >= 0 &&
	    (rs->rtt_us < bbr->probe_rtt_min_us || (bbr->probe_rtt_expired && !rs->is_ack_delayed))) {
		bbr->probe_rtt_min_us = rs->rtt_us;
		bbr->probe_rtt_min_stamp = now;
	}
	if (bbr->probe_rtt_min_us < bbr->min_rtt_us || now > bbr->min_rtt_stamp + MIN_RTT_WINDOW_US) {
		bbr->min_rtt_us = bbr->probe_rtt_min_us;
		bbr->min_rtt_stamp = bbr->probe_rtt_min_stamp;
	}
}

/*
 * [D3] BBRProbeRTTCwnd, from the min_rtt that held when ProbeRTT began: on entry it may expire at the same moment, and a
 * window from a queue's RTT would not drain that queue.
 */
static u32 probe_rtt_cwnd(const struct bbr *bbr)
{
	if (bbr->probe_rtt_base_us == INFINITE)
		return MIN_CWND;
	return max_t(u32, bdp_of(bounded_bw(bbr), bbr->probe_rtt_base_us, cwnd_gain(bbr)), MIN_CWND);
}

/* [D3] BBRCheckProbeRTTDone, BBRExitProbeRTT */
static void check_probe_rtt_done(struct sock *sk)
{
	u64 now = now_us(tcp_sk(sk));
	struct bbr *bbr = inet_csk_ca(sk);

	if (!bbr->probe_rtt_done_stamp || now <= bbr->probe_rtt_done_stamp)
		return;
	bbr->probe_rtt_min_stamp = now;
	restore_cwnd(sk);
	reset_lower_bounds(bbr);
	if (bbr->full_bw_reached) {
		start_down(sk);
		bbr->state = CRUISE;
	} else {
		bbr->state = STARTUP;
	}
}

/* [D3] BBRCheckProbeRTT, BBREnterProbeRTT, BBRHandleProbeRTT */
static void check_probe_rtt(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);

	if (bbr->state != PROBE_RTT && bbr->probe_rtt_expired && !bbr->idle_restart) {
		save_cwnd(sk);
		bbr->state = PROBE_RTT;
		bbr->probe_rtt_done_stamp = 0;
		bbr->ack_phase = PROBE_STOPPING;
		start_round(sk);
	}
	if (bbr->state == PROBE_RTT) {
		tp->app_limited = tp->delivered + tcp_packets_in_flight(tp) ?: 1;
		if (!bbr->probe_rtt_done_stamp) {
			if (tcp_packets_in_flight(tp) <= probe_rtt_cwnd(bbr)) {
				bbr->probe_rtt_done_stamp = now_us(tp) + PROBE_RTT_DURATION_US;
				bbr->probe_rtt_round_done = 0;
				start_round(sk);
			}
		} else {
			if (bbr->round_start)
				bbr->probe_rtt_round_done = 1;
			if (bbr->probe_rtt_round_done)
				check_probe_rtt_done(sk);
		}
	}
	if (rs->delivered > 0)
		bbr->idle_restart = 0;
}

/* ---- pacing rate and window ---- */

static u64 rate_bytes(const struct sock *sk, u32 bw, u32 gain)
{
	u64 rate = (u64)bw * tcp_sk(sk)->mss_cache * gain >> 8;

	return rate * (USEC_PER_SEC / 100 * (100 - PACING_MARGIN_PERCENT)) >> BW_SCALE;
}

static void set_rate(struct sock *sk, u64 rate)
{
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

/* [D3] BBRInitPacingRate */
static void init_pacing_rate(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);
	u32 rtt_us = tp->srtt_us ? max(tp->srtt_us >> 3, 1U) : USEC_PER_MSEC;
	u64 bw = div_u64((u64)bbr->initial_cwnd << BW_SCALE, rtt_us);

	bbr->has_seen_rtt = !!tp->srtt_us;
	set_rate(sk, rate_bytes(sk, min_t(u64, bw, INFINITE - 1), params->startup_pacing_gain));
}

/* [D3] BBRSetPacingRate */
static void set_pacing_rate(struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);
	u64 rate;

	if (!bbr->has_seen_rtt && tcp_sk(sk)->srtt_us)
		init_pacing_rate(sk);
	rate = rate_bytes(sk, bounded_bw(bbr), pacing_gain(bbr));
	if (bbr->full_bw_reached || rate > READ_ONCE(sk->sk_pacing_rate))
		set_rate(sk, rate);
}

/*
 * [D3] BBRBoundCwndForModel. Drain has no upper bound: the drafts' table gives it one, their pseudocode does not.
 */
static u32 model_cap(const struct bbr *bbr)
{
	u32 cap = INFINITE;

	if (bbr->state == CRUISE || bbr->state == PROBE_RTT)
		cap = inflight_with_headroom(bbr);
	else if (in_probe_bw(bbr))
		cap = bbr->inflight_hi;
	return max_t(u32, min(cap, bbr->inflight_lo), MIN_CWND);
}

/* [D3] BBRSetCwnd */
static void set_cwnd(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr *bbr = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tp), acked = rs->acked_sacked, most;

	most = bdp_multiple(bbr, bounded_bw(bbr), cwnd_gain(bbr));
	if (extra_acked)
		most += minmax_get(&bbr->extra_acked);
	most = quantized(sk, most);
	if (bbr->full_bw_reached)
		cwnd = min(cwnd + acked, most);
	else if (cwnd < most || tp->delivered - bbr->initial_delivered < bbr->initial_cwnd)
		cwnd += acked;
	cwnd = max_t(u32, cwnd, MIN_CWND);
	if (bbr->state == PROBE_RTT)
		cwnd = min(cwnd, probe_rtt_cwnd(bbr));
	cwnd = min3(cwnd, model_cap(bbr), tp->snd_cwnd_clamp);
	tcp_snd_cwnd_set(tp, max(cwnd, 1U));
}

/* ---- one record per ACK, for whoever asks ---- */

static void fill_info(struct sock *sk, struct tcp_bbr_lab_info *info)
{
	const struct bbr *bbr = inet_csk_ca(sk);
	u32 mss = tcp_sk(sk)->mss_cache;
	u64 bw = (u64)bounded_bw(bbr) * mss * USEC_PER_SEC >> BW_SCALE;
	u64 most = (u64)max_bw(bbr) * mss * USEC_PER_SEC >> BW_SCALE;
	u64 low = bbr->bw_lo == INFINITE ? U64_MAX : (u64)bbr->bw_lo * mss * USEC_PER_SEC >> BW_SCALE;

	*info = (struct tcp_bbr_lab_info){
		.bbr = {
			.bbr_bw_lo = (u32)bw,
			.bbr_bw_hi = (u32)(bw >> 32),
			.bbr_min_rtt = bbr->min_rtt_us,
			.bbr_pacing_gain = pacing_gain(bbr),
			.bbr_cwnd_gain = cwnd_gain(bbr),
		},
		.magic = TCP_BBR_LAB_MAGIC,
		.state = bbr->state,
		.ack_phase = bbr->ack_phase,
		.full_bw_count = bbr->full_bw_count,
		.flags = bbr->full_bw_reached << 0 | bbr->full_bw_now << 1 | bbr->is_bw_probe_sample << 2 |
			 bbr->prev_probe_too_high << 3 | bbr->prev_probe_precautionary << 4 |
			 bbr->loss_in_round << 5 | bbr->idle_restart << 6 | bbr->round_start << 7,
		.round_count = bbr->round_count,
		.rounds_since_probe = bbr->rounds_since_probe,
		.max_bw_low = (u32)most,
		.max_bw_high = (u32)(most >> 32),
		.bw_lo_low = (u32)low,
		.bw_lo_high = (u32)(low >> 32),
		.inflight_hi = bbr->inflight_hi,
		.inflight_lo = bbr->inflight_lo,
		.extra_acked = minmax_get(&bbr->extra_acked),
		.ecn_alpha = bbr->ecn_alpha,
		.losses_seen = bbr->losses_seen,
		.undos = bbr->undos,
		.probe_wait_us = bbr->probe_wait_us,
		.tx_in_flight = bbr->last_tx_in_flight,
		.lost = bbr->last_lost,
	};
}

struct ack_record {			/* bbrlab/bbr_record.py decodes it */
	__u64 number;			/* counts all records, so that a lost one is noticed */
	__u64 time_ns;			/* CLOCK_MONOTONIC */
	__u32 source_address, destination_address;	/* network byte order */
	__u16 source_port, destination_port;		/* host byte order */
	__u32 cwnd, in_flight, prior_in_flight;
	__u32 acked, losses, delivered, lost;
	__u32 rate_delivered, rate_interval_us, rtt_us;
	__u64 pacing_rate_bytes;
	struct tcp_bbr_lab_info info;
};

static struct ack_record *records;
static DEFINE_SPINLOCK(records_lock);
static u64 records_written, records_read;	/* since the start; what is overwritten unread is lost */

static void trace_ack(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ack_record *r;

	spin_lock_bh(&records_lock);
	r = &records[records_written % trace_acks];
	*r = (struct ack_record){
		.number = records_written++,
		.time_ns = tp->tcp_clock_cache,
		.source_address = (__force u32)sk->sk_rcv_saddr,
		.destination_address = (__force u32)sk->sk_daddr,
		.source_port = sk->sk_num,
		.destination_port = ntohs(sk->sk_dport),
		.cwnd = tcp_snd_cwnd(tp),
		.in_flight = tcp_packets_in_flight(tp),
		.prior_in_flight = rs->prior_in_flight,
		.acked = rs->acked_sacked,
		.losses = rs->losses,
		.delivered = tp->delivered,
		.lost = tp->lost,
		.rate_delivered = rs->delivered,
		.rate_interval_us = rs->interval_us,
		.rtt_us = rs->rtt_us,
		.pacing_rate_bytes = READ_ONCE(sk->sk_pacing_rate),
	};
	fill_info(sk, &r->info);
	spin_unlock_bh(&records_lock);
}

/* Gives whole records, the oldest first, and forgets them. */
static ssize_t read_records(struct file *file, char __user *to, size_t size, loff_t *position)
{
	struct ack_record record;
	size_t done = 0;

	while (done + sizeof(record) <= size) {
		spin_lock_bh(&records_lock);
		if (records_written - records_read > trace_acks)
			records_read = records_written - trace_acks;
		if (records_read == records_written) {
			spin_unlock_bh(&records_lock);
			break;
		}
		record = records[records_read++ % trace_acks];
		spin_unlock_bh(&records_lock);
		if (copy_to_user(to + done, &record, sizeof(record)))
			return -EFAULT;
		done += sizeof(record);
	}
	return done;
}

static const struct proc_ops records_ops = { .proc_read = read_records };

/* ---- what TCP calls; every one may come before init (an ACK of a SYN, a connect that failed) ---- */

/* For tests, while no packet is out that remembers the old counts. */
static void move_counters(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);

	if (bbr->counters_moved || tp->packets_out)
		return;
	bbr->counters_moved = 1;
	tp->delivered += counters_start;
	tp->lost += counters_start;
	if (tp->app_limited)
		tp->app_limited = tp->app_limited + counters_start ?: 1;
	bbr->initial_delivered += counters_start;
	bbr->next_round_delivered += counters_start;
	bbr->loss_round_delivered += counters_start;
	bbr->recovery_delivered += counters_start;
	bbr->ecn_round_delivered += counters_start;
}

static void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct bbr *bbr = inet_csk_ca(sk);
	u32 rate = rate_of(rs);

	if (!bbr->initialized)
		return;
	if (has_sample(rs)) {
		bbr->last_tx_in_flight = rs->tx_in_flight;
		bbr->last_lost = rs->lost;
	}
	update_latest_delivery_signals(sk, rs, rate);
	update_congestion_signals(sk, rs, rate);
	update_ack_aggregation(sk, rs);
	if (params->plateau_of_samples || bbr->state == STARTUP)
		check_full_bw_reached(bbr, rs, rate);
	check_startup_done(sk, rs);
	check_drain_done(sk, rs);
	check_ecn_too_high(sk, rs);
	update_probe_bw_cycle_phase(sk, rs, rate);
	update_min_rtt(sk, rs);
	check_probe_rtt(sk, rs);
	advance_latest_delivery_signals(bbr, rs, rate);
	set_pacing_rate(sk);
	set_cwnd(sk, rs);
	if (records)
		trace_ack(sk, rs);
	if (counters_start)
		move_counters(sk);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
static void cong_control(struct sock *sk, const struct rate_sample *rs)
#else
static void cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#endif
{
	on_ack(sk, rs);
}

static u32 ssthresh(struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);

	if (bbr->initialized) {
		save_cwnd(sk);
		save_state_upon_loss(bbr);
	}
	return tcp_sk(sk)->snd_ssthresh;	/* which nothing here uses */
}

static void set_state(struct sock *sk, u8 new_state)
{
	struct bbr *bbr = inet_csk_ca(sk);
	u8 old_state = inet_csk(sk)->icsk_ca_state;

	if (!bbr->initialized)
		return;
	if (new_state == TCP_CA_Recovery && old_state != TCP_CA_Recovery)
		bbr->recovery_delivered = tcp_sk(sk)->delivered;
	if (old_state >= TCP_CA_Recovery && new_state < TCP_CA_Recovery)
		restore_cwnd(sk);	/* the model bounds it at the end of this ACK */
}

/* [D3-05] BBRHandleSpuriousLossDetection */
static u32 undo_cwnd(struct sock *sk)
{
	struct bbr *bbr = inet_csk_ca(sk);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	if (!bbr->initialized)
		return cwnd;
	bbr->undos++;
	bbr->loss_in_round = 0;
	reset_full_bw(bbr);
	if (params->undo_bounds) {
		bbr->bw_lo = max(bbr->bw_lo, bbr->undo_bw_lo);
		bbr->inflight_lo = max(bbr->inflight_lo, bbr->undo_inflight_lo);
		bbr->inflight_hi = max(bbr->inflight_hi, bbr->undo_inflight_hi);
	}
	if (bbr->undo_state == UNDO_STARTUP && bbr->state != STARTUP) {
		bbr->full_bw_reached = 0;
		if (bbr->state != PROBE_RTT)
			bbr->state = STARTUP;
	} else if (bbr->undo_state == UNDO_UP && bbr->state != UP && bbr->state != PROBE_RTT) {
		start_refill(sk);
	}
	bbr->undo_state = UNDO_NONE;
	return max(cwnd, bbr->prior_cwnd);
}

static void cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);

	if (!bbr->initialized)
		return;
	if (event == CA_EVENT_TLP_RECOVERY)
		note_loss(sk);
	if (event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	/* [D3] BBRHandleRestartFromIdle */
	bbr->idle_restart = 1;
	bbr->extra_acked_interval_start = now_us(tp);
	bbr->extra_acked_delivered = 0;
	if (in_probe_bw(bbr))
		set_rate(sk, rate_bytes(sk, bounded_bw(bbr), UNIT));
	else if (bbr->state == PROBE_RTT)
		check_probe_rtt_done(sk);
}

static u32 sndbuf_expand(struct sock *sk)
{
	return 3;	/* 2 BDP in flight, and one to be acknowledged */
}

static size_t get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct bbr *bbr = inet_csk_ca(sk);

	if (!bbr->initialized || !(ext & (1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	fill_info(sk, &info->bbr_lab);
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr_lab);
}

static void init(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr *bbr = inet_csk_ca(sk);
	u64 now = now_us(tp);

	*bbr = (struct bbr){
		.initialized = 1,
		.state = STARTUP,
		.min_rtt_us = tcp_min_rtt(tp),	/* U32_MAX if there is none */
		.probe_rtt_min_us = tcp_min_rtt(tp),
		.min_rtt_stamp = now,
		.probe_rtt_min_stamp = now,
		.cycle_stamp = now,
		.extra_acked_interval_start = now,
		.bw_lo = INFINITE,
		.inflight_hi = INFINITE,
		.inflight_lo = INFINITE,
		.undo_bw_lo = INFINITE,
		.undo_inflight_hi = INFINITE,
		.undo_inflight_lo = INFINITE,
		.up_acked_per_inc = INFINITE,
		.initial_delivered = tp->delivered,
		.next_round_delivered = tp->delivered,
		.loss_round_delivered = tp->delivered,
		.initial_cwnd = tcp_snd_cwnd(tp),
		.ecn_alpha = ECN_UNIT,
		.ecn_round_delivered = tp->delivered,
		.ecn_round_ce = tp->delivered_ce,
	};
	minmax_reset(&bbr->extra_acked, 0, 0);
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (ecn_mode == ECN_OFF && tp->ecn_flags & TCP_ECN_OK) {
		tp->ecn_flags &= ~TCP_ECN_OK;
		INET_ECN_dontxmit(sk);
	}
	init_pacing_rate(sk);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static struct tcp_congestion_ops ops __read_mostly = {
	.flags		= TCP_CONG_NON_RESTRICTED,
	.name		= BBR_NAME,
	.owner		= THIS_MODULE,
	.init		= init,
	.cong_control	= cong_control,
	.skb_marked_lost = skb_marked_lost,
	.ssthresh	= ssthresh,
	.set_state	= set_state,
	.undo_cwnd	= undo_cwnd,
	.cwnd_event	= cwnd_event,
	.min_tso_segs	= min_tso_segs,
	.sndbuf_expand	= sndbuf_expand,
	.get_info	= get_info,
};

static int __init register_module(void)
{
	static const char * const ecn_names[] = { "off", "ignore", "on" };
	int mode, i;

	BUILD_BUG_ON(sizeof(struct bbr) > ICSK_CA_PRIV_SIZE);
	for (i = 0; i < ARRAY_SIZE(profiles); i++)
		if (!strcmp(profile, profiles[i].name))
			params = &profiles[i];
	mode = match_string(ecn_names, ARRAY_SIZE(ecn_names), ecn);
	if (!params || mode < 0) {
		pr_err(BBR_NAME ": unknown %s '%s'\n", params ? "ecn" : "profile", params ? ecn : profile);
		return -EINVAL;
	}
	ecn_mode = mode;
	up_pacing_gain = up_pacing_gain_percent < 0 ? params->up_pacing_gain : up_pacing_gain_percent * UNIT / 100;
	down_pacing_gain =
		down_pacing_gain_percent < 0 ? params->down_pacing_gain : down_pacing_gain_percent * UNIT / 100;
	if (trace_acks) {
		records = kvcalloc(trace_acks, sizeof(*records), GFP_KERNEL);
		if (!records || !proc_create(BBR_NAME "_acks", 0400, NULL, &records_ops)) {
			kvfree(records);
			return -ENOMEM;
		}
	}
	return tcp_register_congestion_control(&ops);
}

static void __exit unregister_module(void)
{
	tcp_unregister_congestion_control(&ops);
	if (records)
		remove_proc_entry(BBR_NAME "_acks", NULL);
	kvfree(records);
}

module_init(register_module);
module_exit(unregister_module);

MODULE_LICENSE("GPL v2");
