/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BBRv2 and BBRv3, one model with a profile per version.
 *
 * Written from the Internet-Drafts, not from any implementation of these versions:
 *   [D2] draft-cardwell-iccrg-bbr-congestion-control-02      BBRv2
 *   [D3] draft-ietf-ccwg-bbr-00 ... -06                      BBRv3
 *   [#109] an issue of [D3]'s repository, open in November 2026: other windows of min_rtt
 * Functions that follow the drafts' pseudocode are named after it. Where the drafts are silent or
 * contradict each other, or the published versions differ from them, the comment says what was
 * chosen and why. How a congestion control talks to Linux TCP (when to ask for pacing, when the
 * first RTT is known, what to answer inet_diag) was learnt from mainline's BBRv1, tcp_bbr.c.
 *
 * Units: bandwidth in packets per us << BBRM_SCALE, time in us, volumes in packets, gains as
 * multiples of 1 / BBRM_UNIT. What the drafts compare as real numbers is compared in packets <<
 * BBRM_SCALE here (a u64 called volume).
 */
#ifndef _TCP_BBR_MODEL_H
#define _TCP_BBR_MODEL_H

#include <linux/win_minmax.h>
#include <net/tcp.h>

#define BBRM_SCALE		24
#define BBRM_UNIT		256		/* a gain of 1 */
#define BBRM_INFINITE		U32_MAX		/* no bound */
#define BBRM_ECN_UNIT		65536		/* a CE fraction of 1 */

/* [D3 2.4 to 2.9], [D2 2.4 to 2.9]: what no version changes. */
#define BBRM_FULL_BW_PERCENT		125
#define BBRM_FULL_BW_ROUNDS		3
#define BBRM_PACING_MARGIN_PERCENT	1
#define BBRM_LOSS_THRESHOLD_PERCENT	2
#define BBRM_BETA_PERCENT		70
#define BBRM_HEADROOM_PERCENT		15
#define BBRM_MIN_CWND			4
#define BBRM_MIN_RTT_WINDOW_US		(10 * USEC_PER_SEC)
#define BBRM_PROBE_RTT_INTERVAL_MS	5000
#define BBRM_PROBE_RTT_DURATION_US	(200 * USEC_PER_MSEC)
#define BBRM_PROBE_WAIT_US		(2 * USEC_PER_SEC)	/* plus up to a second at random */
#define BBRM_RENO_ROUNDS		63	/* Reno's time between losses at 25 Mbit/s, 30 ms */
#define BBRM_EXTRA_ACKED_ROUNDS		10
#define BBRM_LOSS_EVENTS_MAX		15	/* counted up to what the bit-field holds */

enum bbrm_state {
	BBRM_STARTUP, BBRM_DRAIN, BBRM_DOWN, BBRM_CRUISE, BBRM_REFILL, BBRM_UP, BBRM_PROBE_RTT
};

/* What the ACKs that arrive now are feedback for, one round behind the state. */
enum bbrm_ack_phase {
	BBRM_INIT, BBRM_REFILLING, BBRM_PROBE_STARTING, BBRM_PROBE_FEEDBACK, BBRM_PROBE_STOPPING
};

enum bbrm_undo { BBRM_UNDO_NONE, BBRM_UNDO_STARTUP, BBRM_UNDO_UP };

enum bbrm_ecn { BBRM_ECN_OFF, BBRM_ECN_IGNORE, BBRM_ECN_ON };

/* When bw_lo and inflight_lo fall after a round with losses. */
enum bbrm_lower_bounds {
	BBRM_OUTSIDE_PROBES,	/* the drafts: not in Startup, REFILL, UP */
	BBRM_LOSSY_REFILL,	/* also in REFILL, if more than 2 % were lost */
	BBRM_PROBES_TOO,	/* except in Startup */
};

/* When the max filter of the bandwidth rotates because of ProbeRTT. */
enum bbrm_filter {
	BBRM_KEPT,		/* [D3-06]: never, all its rounds are application-limited */
	BBRM_AFTER_CUT_UP,	/* when it ends, if it cut off UP or the round after it */
	BBRM_ALWAYS,		/* in the first round after it that is not application-limited */
};

/* What tells one version from another, and what a set of parameters may change in it. */
struct bbrm_params {
	const char *profile;
	u32 ecn_max_rtt_us;		/* respond to marks only up to this min_rtt; 0: always */
	u32 probe_rtt_interval_ms;	/* without a new minimum, until ProbeRTT */
#ifdef CONFIG_TCP_CONG_BBR_TEST
	u32 counters_start;		/* added to the counts of delivered and lost packets */
#endif
	u16 startup_pacing_gain, startup_cwnd_gain;
	u16 drain_pacing_gain, drain_cwnd_gain;
	u16 up_pacing_gain, up_cwnd_gain;
	u16 down_pacing_gain;
	u8 version;
	u8 ecn;				/* enum bbrm_ecn */
	u8 lower_bounds;		/* enum bbrm_lower_bounds */
	u8 filter_after_probe_rtt;	/* enum bbrm_filter */
	u8 drain_round_limit;		/* leave Drain after that many rounds; 0: never therefore */
	u8 full_loss_count;		/* loss events that end Startup */
	u8 startup_extra_acked_rounds;
	bool whole_packets;		/* rates and volumes are rounded up to their units */
	bool plateau_of_samples;	/* plateau of samples' rates (v3), not of max_bw (v2) */
	bool plateau_at_each_ack;	/* growth is looked for at each ACK, not at round starts */
	bool plateau_ends_up;		/* UP ends at a plateau, not at a min_rtt and 1.25 BDP */
	bool min_rtt_ends_down;		/* DOWN ends after one min_rtt if the headroom is free */
	bool loss_exit_sets_inflight_hi;
	bool loss_exit_looks_at_latest;	/* ... to what was delivered, if more than the BDP */
	bool loss_anchors_round;	/* a loss round begins with its first loss */
	bool precautionary;		/* the probe after one too high stops at inflight_hi */
	bool precaution_at_departure;	/* ... judged at the next departure, with a send quantum */
	bool whole_departures;		/* ... what leaves until then in whole packets */
	bool samples_cut;		/* an ACK's sample may cut inflight_hi, too [D2] */
	bool drain_after_ack;		/* Drain ends by what is in flight after the ACK */
	bool equal_rtt_renews;		/* a sample equal to the minimum puts ProbeRTT off */
	bool probe_rtt_cwnd_fixed;	/* ProbeRTT's window is that of its begin [#109] */
	bool undo_bounds;		/* a spurious loss gives the bounds back */
	bool undo_state;		/* ... and the state [D3-05] */
	bool small_quantum;		/* single segments at low rates */
	bool reno_exit;			/* no SACK: any loss in recovery is too much [D3-05] */
	bool extra_acked;		/* add the estimate of ACK aggregation to the window */
	bool offload_budget;		/* let at least three send quanta be in flight */
	bool headroom;			/* leave 15 % of inflight_hi free in CRUISE */
};

/* A congestion control: a socket's icsk_ca_ops is its way to its parameters. */
struct bbrm_set {
	struct tcp_congestion_ops ops;
	struct bbrm_params params;
	struct list_head list;
	u32 given;			/* which options its line gave, as bits */
};

/* A connection. */
struct bbrm {
	u64 cycle_stamp;		/* start of DOWN; v2: of UP, too */
	u64 min_rtt_stamp;
	u64 probe_rtt_min_stamp;
	u64 probe_rtt_done_stamp;	/* 0: in-flight has not fallen to ProbeRTT's window yet */
	u64 extra_acked_interval_start;

	u32 min_rtt_us;
	u32 probe_rtt_min_us;
	u32 probe_rtt_base_us;		/* min_rtt before it expired: sizes ProbeRTT's window */
	u32 probe_rtt_cwnd;		/* its window, if that is fixed; else 0 */

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

	u32 ecn_alpha;			/* / BBRM_ECN_UNIT */
	u32 ecn_round_delivered, ecn_round_ce;

	u32 losses_seen;		/* packets that skb_marked_lost() told of */
	u32 losses_judged;		/* ... up to the last ACK */
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
	    loss_events:4;		/* up to BBRM_LOSS_EVENTS_MAX */
	u32 up_rounds:5,
	    filter_due:1,		/* when ProbeRTT ends */
	    counters_moved:1;
};

/* ---- small helpers ---- */

static inline struct bbrm *bbrm_of(const struct sock *sk)
{
	return inet_csk_ca(sk);
}

static inline const struct bbrm_params *bbrm_params_of(const struct sock *sk)
{
	return &container_of(inet_csk(sk)->icsk_ca_ops, struct bbrm_set, ops)->params;
}

static inline u64 bbrm_now_us(const struct sock *sk)
{
	return tcp_sk(sk)->tcp_mstamp;
}

static inline u32 bbrm_max_bw(const struct bbrm *bbr)
{
	return max(bbr->bw_slots[0], bbr->bw_slots[1]);
}

/* [D3] BBRBoundBWForModel */
static inline u32 bbrm_bounded_bw(const struct bbrm *bbr)
{
	return min(bbrm_max_bw(bbr), bbr->bw_lo);
}

static inline bool bbrm_in_probe_bw(const struct bbrm *bbr)
{
	return bbr->state >= BBRM_DOWN && bbr->state <= BBRM_UP;
}

/* The packets of this ACK give a round and a volume even if they give no rate. */
static inline bool bbrm_has_sample(const struct rate_sample *rs)
{
	return rs->prior_mstamp && rs->delivered >= 0;
}

static inline void bbrm_reset_full_bw(struct bbrm *bbr)
{
	bbr->full_bw = 0;
	bbr->full_bw_count = 0;
	bbr->full_bw_now = 0;
}

static inline void bbrm_reset_lower_bounds(struct bbrm *bbr)
{
	bbr->bw_lo = BBRM_INFINITE;
	bbr->inflight_lo = BBRM_INFINITE;
}

/* tcp_bbr_path.c: rounds, bandwidth, RTT, aggregation */
void bbrm_start_round(struct sock *sk);
u32 bbrm_rate_of(const struct sock *sk, const struct rate_sample *rs);
void bbrm_update_latest_delivery_signals(struct sock *sk, const struct rate_sample *rs, u32 rate);
void bbrm_advance_latest_delivery_signals(struct bbrm *bbr, const struct rate_sample *rs, u32 rate);
void bbrm_update_congestion_signals(struct sock *sk, const struct rate_sample *rs, u32 rate);
void bbrm_advance_max_bw_filter(struct bbrm *bbr);
void bbrm_update_ack_aggregation(struct sock *sk, const struct rate_sample *rs);
void bbrm_update_min_rtt(struct sock *sk, const struct rate_sample *rs);

/* tcp_bbr_loss.c: what losses do to the model, and its bounds */
bool bbrm_is_too_high(const struct sock *sk, s64 lost, s64 tx_in_flight);
bool bbrm_is_sample_too_high(const struct sock *sk, const struct rate_sample *rs);
void bbrm_adapt_lower_bounds(struct sock *sk, const struct rate_sample *rs);
void bbrm_handle_inflight_too_high(struct sock *sk, u32 tx_in_flight, bool is_app_limited);
void bbrm_raise_inflight_hi_slope(struct sock *sk);
void bbrm_probe_inflight_hi_upward(struct sock *sk, const struct rate_sample *rs);
void bbrm_note_loss(struct sock *sk);
void bbrm_skb_marked_lost(struct sock *sk, const struct sk_buff *skb);
u32 bbrm_ssthresh(struct sock *sk);
u32 bbrm_undo_cwnd(struct sock *sk);

/* tcp_bbr_ecn.c: the response to marks */
void bbrm_ecn_init(struct sock *sk);
void bbrm_ecn_update(struct sock *sk);
u32 bbrm_ecn_cut(const struct bbrm *bbr);
bool bbrm_ecn_is_too_high(const struct sock *sk, const struct rate_sample *rs);
void bbrm_ecn_check_probe(struct sock *sk, const struct rate_sample *rs);

/* tcp_bbr_cycle.c: the states */
u16 bbrm_pacing_gain(const struct sock *sk);
u16 bbrm_cwnd_gain(const struct sock *sk);
bool bbrm_is_probing_bw(const struct bbrm *bbr);
void bbrm_start_down(struct sock *sk);
void bbrm_start_refill(struct sock *sk);
void bbrm_check_full_bw_reached(struct sock *sk, const struct rate_sample *rs, u32 rate);
void bbrm_check_startup_done(struct sock *sk, const struct rate_sample *rs);
void bbrm_check_drain_done(struct sock *sk, const struct rate_sample *rs);
void bbrm_update_probe_bw_cycle_phase(struct sock *sk, const struct rate_sample *rs, u32 rate);
void bbrm_check_probe_rtt(struct sock *sk, const struct rate_sample *rs);
void bbrm_handle_restart_from_idle(struct sock *sk);

/* tcp_bbr_control.c: pacing rate, volumes and window */
u32 bbrm_min_tso_segs(struct sock *sk);
u64 bbrm_bdp_multiple(const struct sock *sk, u32 bw, u32 gain);
u64 bbrm_inflight_for(struct sock *sk, u32 bw, u32 gain);
u64 bbrm_target_inflight(const struct sock *sk);
u64 bbrm_inflight_at_departure(struct sock *sk, u32 in_flight);
u32 bbrm_inflight_with_headroom(const struct sock *sk);
u32 bbrm_probe_rtt_cwnd(const struct sock *sk);
void bbrm_save_cwnd(struct sock *sk);
void bbrm_restore_cwnd(struct sock *sk);
void bbrm_pace_at(struct sock *sk, u32 bw, u32 gain);
void bbrm_init_pacing_rate(struct sock *sk);
void bbrm_set_pacing_rate(struct sock *sk);
void bbrm_set_cwnd(struct sock *sk, const struct rate_sample *rs);

/* tcp_bbr_info.c */
size_t bbrm_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info);

/* tcp_bbr_sets.c: profiles, and parameter sets that share them */
int bbrm_register_sets(const struct tcp_congestion_ops *ops);
void bbrm_unregister_sets(void);

/* tcp_bbr_test.c */
#ifdef CONFIG_TCP_CONG_BBR_TEST
void bbrm_test_move_counters(struct sock *sk);
#else
static inline void bbrm_test_move_counters(struct sock *sk)
{
}
#endif

#endif /* _TCP_BBR_MODEL_H */
