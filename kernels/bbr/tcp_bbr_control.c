// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the model to what TCP sends: volumes, pacing rate, window.
 */
#include <linux/bits.h>

#include "tcp_bbr_model.h"

#define BBRM_QUANTA_IN_FLIGHT	3	/* at the sender, in the receiver's offload, in its ACKs */
#define BBRM_QUANTUM_MAX_BYTES	65536
#define BBRM_LOW_RATE_BYTES	150000	/* 1.2 Mbit/s, below which v2 sends single segments */

/* ---- volumes, in packets << BBRM_SCALE ---- */

static u64 bbrm_packets(u32 packets)
{
	return (u64)packets << BBRM_SCALE;
}

u32 bbrm_min_tso_segs(struct sock *sk)
{
	return bbrm_params_of(sk)->small_quantum &&
	       READ_ONCE(sk->sk_pacing_rate) < BBRM_LOW_RATE_BYTES ? 1 : 2;
}

/* [D3] BBRSetSendQuantum, in packets: 1 ms of the pacing rate, which is what TCP makes of it from
 * a min_rtt of some 3 ms on. Below, it builds larger segments.
 */
static u32 bbrm_send_quantum(struct sock *sk)
{
	u64 bytes = READ_ONCE(sk->sk_pacing_rate) >> READ_ONCE(sk->sk_pacing_shift);

	bytes = min_t(u64, bytes, BBRM_QUANTUM_MAX_BYTES);
	return max_t(u32, div_u64(bytes, tcp_sk(sk)->mss_cache), bbrm_min_tso_segs(sk));
}

/* gain * bw * rtt, at most INT_MAX packets. */
static u64 bbrm_volume(const struct sock *sk, u32 bw, u32 rtt_us, u32 gain)
{
	u64 volume = (u64)bw * rtt_us;

	/* The gain is taken in the coarser unit when the volume is large. */
	volume = volume >> 48 ? (volume >> 8) * gain : volume * gain >> 8;
	volume = min(volume, bbrm_packets(INT_MAX));
	return bbrm_params_of(sk)->whole_packets ? round_up(volume, bbrm_packets(1)) : volume;
}

/* [D3] BBRBDPMultiple */
u64 bbrm_bdp_multiple(const struct sock *sk, u32 bw, u32 gain)
{
	const struct bbrm *bbr = bbrm_of(sk);

	if (bbr->min_rtt_us == BBRM_INFINITE)
		return bbrm_packets(bbr->initial_cwnd);
	return bbrm_volume(sk, bw, bbr->min_rtt_us, gain);
}

/* [D3] BBRQuantizationBudget */
static u64 bbrm_quantized(struct sock *sk, u64 volume)
{
	if (bbrm_params_of(sk)->offload_budget)
		volume = max(volume, bbrm_packets(BBRM_QUANTA_IN_FLIGHT * bbrm_send_quantum(sk)));
	volume = max(volume, bbrm_packets(BBRM_MIN_CWND));
	return bbrm_of(sk)->state == BBRM_UP ? volume + bbrm_packets(2) : volume;
}

/* [D3] BBRInflight */
u64 bbrm_inflight_for(struct sock *sk, u32 bw, u32 gain)
{
	return bbrm_quantized(sk, bbrm_bdp_multiple(sk, bw, gain));
}

/* [D3] BBRTargetInflight */
u64 bbrm_target_inflight(const struct sock *sk)
{
	const struct bbrm *bbr = bbrm_of(sk);

	return min(bbrm_bdp_multiple(sk, bbrm_bounded_bw(bbr), BBRM_UNIT),
		   bbrm_packets(tcp_snd_cwnd(tcp_sk(sk))));
}

/* [D3] BBRInflightWithHeadroom, in packets. inflight_hi is a number of packets here, and so is the
 * room: its whole packets, at least one. Small windows notice (docs/explanation/bbr.md).
 */
u32 bbrm_inflight_with_headroom(const struct sock *sk)
{
	u32 bound = bbrm_of(sk)->inflight_hi, room;

	if (bound == BBRM_INFINITE || !bbrm_params_of(sk)->headroom)
		return bound;
	room = max_t(u32, (u64)bound * BBRM_HEADROOM_PERCENT / 100, 1);
	return max_t(u32, bound - min(bound, room), BBRM_MIN_CWND);
}

/* The drafts say "inflight" and leave open when. What is to be judged is how full the path will be
 * once a new pacing rate can take effect, which is when the next packet may leave: until then the
 * path delivers, and while the gain is above 1 a send quantum is let out to find what is there.
 * BBRv1 in mainline judges by the same instant, and counts what leaves until then in whole packets,
 * as the released v2 does. The value after this ACK, which comes to mind first, ends v2's UP much
 * later.
 */
u64 bbrm_inflight_at_departure(struct sock *sk, u32 in_flight)
{
	s64 wait_ns = tcp_sk(sk)->tcp_wstamp_ns - tcp_sk(sk)->tcp_clock_cache;
	u64 inflight = bbrm_packets(in_flight), leaves = 0;

	if (wait_ns > 0)
		leaves = bbrm_bounded_bw(bbrm_of(sk)) * div_u64(wait_ns, NSEC_PER_USEC);
	if (bbrm_params_of(sk)->whole_departures)
		leaves = round_down(leaves, bbrm_packets(1));
	if (bbrm_pacing_gain(sk) > BBRM_UNIT)
		inflight += bbrm_packets(bbrm_send_quantum(sk));
	return inflight - min(inflight, leaves);
}

/* ---- pacing rate ---- */

/* A multiple of a bandwidth, less the margin [D3 2.5], in bytes/s. TCP's pacing charges a segment
 * with its payload, so that packets count as mss_cache bytes.
 */
static u64 bbrm_bytes_per_s(const struct sock *sk, u32 bw, u32 gain)
{
	u64 bytes = (u64)bw * tcp_sk(sk)->mss_cache * gain / BBRM_UNIT;	/* per us << BBRM_SCALE */

	return bytes * (USEC_PER_SEC / 100 * (100 - BBRM_PACING_MARGIN_PERCENT)) >> BBRM_SCALE;
}

static void bbrm_pace(struct sock *sk, u64 bytes_per_s)
{
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, bytes_per_s, READ_ONCE(sk->sk_max_pacing_rate)));
}

void bbrm_pace_at(struct sock *sk, u32 bw, u32 gain)
{
	bbrm_pace(sk, bbrm_bytes_per_s(sk, bw, gain));
}

/* [D3] BBRInitPacingRate: the first window in the first RTT, or in 1 ms while none is known. */
void bbrm_init_pacing_rate(struct sock *sk)
{
	u32 srtt_us = tcp_sk(sk)->srtt_us >> 3;
	struct bbrm *bbr = bbrm_of(sk);
	u64 bw = bbrm_packets(bbr->initial_cwnd);

	bbr->has_seen_rtt = tcp_sk(sk)->srtt_us != 0;
	bw = div_u64(bw, bbr->has_seen_rtt ? max(srtt_us, 1U) : USEC_PER_MSEC);
	bbrm_pace_at(sk, min_t(u64, bw, BBRM_INFINITE - 1),
		     bbrm_params_of(sk)->startup_pacing_gain);
}

/* [D3] BBRSetPacingRate: until the pipe was full once, the rate only rises. */
void bbrm_set_pacing_rate(struct sock *sk)
{
	struct bbrm *bbr = bbrm_of(sk);
	u64 rate;

	if (!bbr->has_seen_rtt && tcp_sk(sk)->srtt_us)
		bbrm_init_pacing_rate(sk);
	rate = bbrm_bytes_per_s(sk, bbrm_bounded_bw(bbr), bbrm_pacing_gain(sk));
	if (bbr->full_bw_reached || rate > READ_ONCE(sk->sk_pacing_rate))
		bbrm_pace(sk, rate);
}

/* ---- window ---- */

/* [D3] BBRSaveCwnd. To be called before any change of state: the window within Recovery or ProbeRTT
 * is not one to come back to.
 */
void bbrm_save_cwnd(struct sock *sk)
{
	struct bbrm *bbr = bbrm_of(sk);

	if (inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery || bbr->state == BBRM_PROBE_RTT)
		bbr->prior_cwnd = max(bbr->prior_cwnd, tcp_snd_cwnd(tcp_sk(sk)));
	else
		bbr->prior_cwnd = tcp_snd_cwnd(tcp_sk(sk));
}

/* [D3] BBRRestoreCwnd */
void bbrm_restore_cwnd(struct sock *sk)
{
	if (bbrm_of(sk)->prior_cwnd > tcp_snd_cwnd(tcp_sk(sk)))
		tcp_snd_cwnd_set(tcp_sk(sk), bbrm_of(sk)->prior_cwnd);
}

/* [D3] BBRProbeRTTCwnd, from the min_rtt that held when ProbeRTT began: on entry it may expire at
 * the same moment, and a window from a queue's RTT would not drain that queue.
 */
u32 bbrm_probe_rtt_cwnd(const struct sock *sk)
{
	const struct bbrm *bbr = bbrm_of(sk);
	u64 volume;

	if (bbr->probe_rtt_cwnd)
		return bbr->probe_rtt_cwnd;
	if (bbr->probe_rtt_base_us == BBRM_INFINITE)
		return BBRM_MIN_CWND;
	volume = bbrm_volume(sk, bbrm_bounded_bw(bbr), bbr->probe_rtt_base_us, bbrm_cwnd_gain(sk));
	return max_t(u32, volume >> BBRM_SCALE, BBRM_MIN_CWND);
}

/* [D3] BBRBoundCwndForModel. Drain has no upper bound: the drafts' table gives it one, their
 * pseudocode does not.
 */
static u32 bbrm_model_cap(const struct sock *sk)
{
	const struct bbrm *bbr = bbrm_of(sk);
	u32 cap = BBRM_INFINITE;

	if (bbr->state == BBRM_CRUISE || bbr->state == BBRM_PROBE_RTT)
		cap = bbrm_inflight_with_headroom(sk);
	else if (bbrm_in_probe_bw(bbr))
		cap = bbr->inflight_hi;
	return max_t(u32, min(cap, bbr->inflight_lo), BBRM_MIN_CWND);
}

/* [D3] BBRSetCwnd. A volume that is no whole number of packets leaves room for its whole ones. */
void bbrm_set_cwnd(struct sock *sk, const struct rate_sample *rs)
{
	const struct bbrm *bbr = bbrm_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp), acked = rs->acked_sacked;
	u64 volume;

	volume = bbrm_bdp_multiple(sk, bbrm_bounded_bw(bbr), bbrm_cwnd_gain(sk));
	if (bbrm_params_of(sk)->extra_acked)
		volume += bbrm_packets(minmax_get(&bbr->extra_acked));
	volume = bbrm_quantized(sk, volume);
	if (bbr->full_bw_reached)
		cwnd = min_t(u64, cwnd + acked, volume >> BBRM_SCALE);
	else if (bbrm_packets(cwnd) < volume ||
		 tp->delivered - bbr->initial_delivered < bbr->initial_cwnd)
		cwnd += acked;
	cwnd = max_t(u32, cwnd, BBRM_MIN_CWND);
	if (bbr->state == BBRM_PROBE_RTT)
		cwnd = min(cwnd, bbrm_probe_rtt_cwnd(sk));
	cwnd = min3(cwnd, bbrm_model_cap(sk), tp->snd_cwnd_clamp);
	tcp_snd_cwnd_set(tp, max(cwnd, 1U));
}
