"""BBRv2 and BBRv3 in the burst model: the Internet-Drafts' state machine, once per ACK.

[D2] is draft-cardwell-iccrg-bbr-congestion-control-02, [D3] draft-ietf-ccwg-bbr; the functions' names are theirs. Where the
drafts leave something open or contradict each other, docs/explanation/bbr.md has the reading, which is that of the lab's kernel.
"""

from __future__ import annotations

import math
from typing import Any

from bbrlab.models._burst_bbr import (
    bdp,
    extra_acked,
    inflight_at_departure,
    save_cwnd,
    set_rate,
    update_round,
)  # fmt: skip
from bbrlab.models._burst_state import (
    AFTER_CUT_UP,
    ALWAYS,
    CRUISE,
    DOWN,
    DRAIN,
    FULL_BW_GROWTH,
    FULL_BW_ROUNDS,
    INFINITE,
    INIT,
    INITIAL_CWND,
    LOSSY_REFILL,
    MIN_CWND,
    MIN_RTT_WINDOW_S,
    PROBE_FEEDBACK,
    PROBE_RTT,
    PROBE_RTT_S,
    PROBE_STARTING,
    PROBE_STOPPING,
    PROBES_TOO,
    QUANTA_IN_FLIGHT,
    REFILL,
    REFILLING,
    STARTUP,
    UP,
    Record,
)  # fmt: skip
from bbrlab.models.jit import njit

UP_BONUS = 2.0  # packets more in flight in UP
PROBE_WAIT_S = 2.0
UP_ROUNDS_MAX = 30
EXTRA_ACKED_ROUNDS = 10


@njit(error_model="numpy")
def begin(f: Record) -> None:
    """The state before the first packet."""
    f.state = STARTUP
    f.bw_lo = f.inflight_lo = f.inflight_hi = f.up_acked_per_inc = INFINITE
    f.min_rtt = f.probe_rtt_min = f.min_rtt_before = f.rtt


@njit(error_model="numpy")
def on_ack(f: Record, a: Record, v: Record, draws: Any) -> None:
    """All of an ACK, in the drafts' order."""
    _update_latest_delivery_signals(f, a)
    _update_congestion_signals(f, a, v)
    _update_extra_acked(f, a, v)
    _check_full_bw_reached(f, a, v)
    _check_startup_done(f, a, v)
    if f.state == DRAIN and _inflight(f, a, v) <= _quantized(f, bdp(f, _bw(f), 1.0)):
        _start_down(f, a.now, draws)
    if f.full_bw_reached == 1:
        _update_probe_bw_cycle_phase(f, a, v, draws)
    _update_min_rtt(f, a, v)
    _check_probe_rtt(f, a, v, draws)
    if f.loss_round_start == 1:  # [D3] BBRAdvanceLatestDeliverySignals
        f.bw_latest = a.rate
        f.inflight_latest = a.delivered
    set_rate(f, v, _bw(f), v.pacing_gain[f.state])
    _set_cwnd(f, a, v)


@njit(error_model="numpy")
def on_loss(f: Record, b: Record, size: float, now: float, v: Record, draws: Any) -> None:
    """[D3] BBRHandleLostPacket, for the ``size`` lost packets of a burst, after the transport has counted them."""
    save_cwnd(f, f.state == PROBE_RTT)
    if f.loss_in_round == 0 and v.loss_anchors_round == 1:  # [D3] BBRNoteLoss
        f.loss_round_delivered = f.delivered
    f.loss_in_round = 1
    lost = f.lost - b.lost
    if f.is_probe_sample == 0 or lost <= v.loss_threshold * b.tx_in_flight:
        return
    # [D3] BBRInflightAtLoss: where in the burst the loss rate passed the threshold.
    before, lost_before = b.tx_in_flight - size, lost - size
    at_loss = before + math.floor(max(v.loss_threshold * before - lost_before, 0.0) / (1.0 - v.loss_threshold))
    # [D3] BBRHandleInflightTooHigh
    f.prev_too_high = 1
    f.is_probe_sample = 0
    if b.app_limited == 0:
        f.inflight_hi = max(at_loss, math.floor(v.beta * min(bdp(f, _bw(f), 1.0), f.cwnd)))
    if f.state == UP:
        _start_down(f, now, draws)


@njit(error_model="numpy")
def on_recovery(f: Record) -> None:
    """Recovery begins."""
    save_cwnd(f, f.state == PROBE_RTT)


@njit(error_model="numpy")
def on_repaired(f: Record) -> None:
    """[D3] BBRRestoreCwnd, when recovery ends; the model bounds it at the end of this ACK."""
    f.cwnd = max(f.cwnd, f.prior_cwnd)


@njit(error_model="numpy")
def _bw(f: Record) -> Any:
    return min(f.max_bw, f.bw_lo)


@njit(error_model="numpy")
def _inflight(f: Record, a: Record, v: Record) -> Any:
    return inflight_at_departure(f, a, _bw(f), v.pacing_gain[f.state])


@njit(error_model="numpy")
def _quantized(f: Record, inflight: float) -> Any:
    """[D3] BBRQuantizationBudget"""
    inflight = max(inflight, QUANTA_IN_FLIGHT * f.quantum, MIN_CWND)
    return inflight + UP_BONUS if f.state == UP else inflight


@njit(error_model="numpy")
def _with_headroom(f: Record, v: Record) -> Any:
    """[D3] BBRInflightWithHeadroom, in whole packets."""
    if f.inflight_hi == math.inf or v.headroom == 0.0:
        return f.inflight_hi
    return max(f.inflight_hi - max(1.0, math.floor(v.headroom * f.inflight_hi)), MIN_CWND)


@njit(error_model="numpy")
def _is_sample_too_high(a: Record, v: Record) -> bool:
    return bool(a.lost_since_sent > v.loss_threshold * a.tx_in_flight)


@njit(error_model="numpy")
def _reset_full_bw(f: Record, bw: float) -> None:
    f.full_bw = bw
    f.full_bw_count = 0
    f.full_bw_now = 0


@njit(error_model="numpy")
def _reset_lower_bounds(f: Record) -> None:
    f.bw_lo = f.inflight_lo = INFINITE


# ---- states


@njit(error_model="numpy")
def _start_down(f: Record, now: float, draws: Any) -> None:
    f.loss_in_round = 0
    f.bw_latest = f.inflight_latest = 0.0
    f.up_acked_per_inc = INFINITE
    f.rounds_since_probe = 1 if draws.random() < 0.5 else 0
    f.probe_wait = PROBE_WAIT_S + draws.random()
    f.cycle_stamp = now
    f.ack_phase = PROBE_STOPPING
    f.next_round_delivered = f.delivered
    f.state = DOWN


@njit(error_model="numpy")
def _start_refill(f: Record) -> None:
    _reset_lower_bounds(f)
    f.up_rounds = 0
    f.up_acked = 0.0
    f.prev_precautionary = 0
    f.ack_phase = REFILLING
    f.next_round_delivered = f.delivered
    f.state = REFILL


@njit(error_model="numpy")
def _start_up(f: Record, a: Record, v: Record) -> None:
    f.ack_phase = PROBE_STARTING
    f.next_round_delivered = f.delivered
    f.cycle_stamp = a.now
    if v.plateau_ends_up == 1:
        _reset_full_bw(f, a.rate)
    f.state = UP
    _raise_inflight_hi_slope(f)


@njit(error_model="numpy")
def _raise_inflight_hi_slope(f: Record) -> None:
    growth = 2.0**f.up_rounds
    f.up_rounds = min(f.up_rounds + 1, UP_ROUNDS_MAX)
    f.up_acked_per_inc = max(math.floor(f.cwnd / growth), 1.0)


# ---- an ACK's steps


@njit(error_model="numpy")
def _update_latest_delivery_signals(f: Record, a: Record) -> None:
    f.loss_round_start = 0
    f.bw_latest = max(f.bw_latest, a.rate)
    f.inflight_latest = max(f.inflight_latest, a.delivered)
    if a.prior_delivered >= f.loss_round_delivered:
        f.loss_round_delivered = f.delivered
        f.loss_round_start = 1


@njit(error_model="numpy")
def _update_congestion_signals(f: Record, a: Record, v: Record) -> None:
    update_round(f, a)
    f.rounds_since_probe += f.round_start
    if a.rate > f.bw_now and (a.rate >= f.max_bw or a.app_limited == 0):
        f.bw_now = a.rate
        f.max_bw = max(f.bw_before, f.bw_now)
    if f.loss_round_start == 0:
        return
    if f.loss_in_round == 1 and _adapts_lower_bounds(f, a, v):
        if f.bw_lo == math.inf:
            f.bw_lo = f.max_bw
        if f.inflight_lo == math.inf:
            f.inflight_lo = f.cwnd
        f.bw_lo = max(f.bw_latest, v.beta * f.bw_lo)
        f.inflight_lo = max(f.inflight_latest, math.floor(v.beta * f.inflight_lo))
    f.loss_in_round = 0


@njit(error_model="numpy")
def _update_extra_acked(f: Record, a: Record, v: Record) -> None:
    """[D3] BBRUpdateACKAggregation, the maximum over ten rounds (in Startup one) as Linux keeps it: the best three (win_minmax.c)."""
    rounds = EXTRA_ACKED_ROUNDS if f.full_bw_reached == 1 else 1
    now = f.round_count
    seen = v.extra_acked * extra_acked(f, a, _bw(f))
    most, since = f.extra_most, f.extra_round
    if seen >= most[0] or now - since[2] > rounds:
        most[:] = seen
        since[:] = now
        return
    if seen >= most[1]:
        most[1:] = seen
        since[1:] = now
    elif seen >= most[2]:
        most[2] = seen
        since[2] = now
    age = now - since[0]
    if age > rounds:
        for _ in range(2):
            if now - since[0] > rounds:
                most[0], most[1], most[2] = most[1], most[2], seen
                since[0], since[1], since[2] = since[1], since[2], now
    elif since[1] == since[0] and age > rounds // 4:
        most[1:] = seen
        since[1:] = now
    elif since[2] == since[1] and age > rounds // 2:
        most[2] = seen
        since[2] = now


@njit(error_model="numpy")
def _adapts_lower_bounds(f: Record, a: Record, v: Record) -> bool:
    """[D3] BBRAdaptLowerBoundsFromCongestion: not while probing for bandwidth, but for what a reading adds."""
    if f.state == REFILL and v.lower_bounds == LOSSY_REFILL and _is_sample_too_high(a, v):
        return True
    if f.state in (REFILL, UP):
        return bool(v.lower_bounds == PROBES_TOO)
    return bool(f.state != STARTUP)


@njit(error_model="numpy")
def _check_full_bw_reached(f: Record, a: Record, v: Record) -> None:
    """[D3] BBRCheckFullBWReached; [D2] BBRCheckStartupFullBandwidth, which looks at max_bw and only once."""
    if v.plateau_of_samples == 1:
        if f.full_bw_now == 1:
            return
        seen = a.rate
    else:
        if f.full_bw_reached == 1:
            return
        seen = f.max_bw
    if f.round_start == 0 or a.app_limited == 1:
        return
    if seen >= FULL_BW_GROWTH * f.full_bw:
        _reset_full_bw(f, seen)
        return
    f.full_bw_count += 1
    if f.full_bw_count >= FULL_BW_ROUNDS:
        f.full_bw_now = f.full_bw_reached = 1


@njit(error_model="numpy")
def _check_startup_done(f: Record, a: Record, v: Record) -> None:
    """[D3] BBRCheckStartupDone. Too much loss: at the end of a round that began with a loss, as a round of recovery does."""
    if f.full_bw_reached == 0:
        if a.newly_lost > 0.0:
            f.loss_events += 1
        if f.loss_round_start == 1:
            if f.loss_events >= v.full_loss_count and _is_sample_too_high(a, v):
                f.full_bw_reached = 1
                f.inflight_hi = math.floor(bdp(f, f.max_bw, 1.0))
                if v.loss_exit_looks_at_latest == 1:
                    f.inflight_hi = max(f.inflight_hi, f.inflight_latest)
            f.loss_events = 0
    if f.state == STARTUP and f.full_bw_reached == 1:
        f.state = DRAIN


@njit(error_model="numpy")
def _adapt_long_term_model(f: Record, a: Record, v: Record) -> bool:
    """[D3] BBRAdaptLongTermModel. Whether it went on to another state, which has this ACK's round still before it."""
    if f.round_start == 1:
        if f.ack_phase == PROBE_STARTING:
            f.ack_phase = PROBE_FEEDBACK
        elif f.ack_phase == PROBE_STOPPING:
            f.is_probe_sample = 0
            in_probe_bw = f.state != PROBE_RTT
            turns = in_probe_bw and a.app_limited == 0
            if turns or v.filter_after_probe_rtt != ALWAYS:
                f.ack_phase = INIT
            if turns:
                _advance_max_bw_filter(f)
            if in_probe_bw and f.prev_precautionary == 1 and f.prev_too_high == 0:
                _start_refill(f)
                return True
    if f.inflight_hi == math.inf or _is_sample_too_high(a, v):
        return False
    f.inflight_hi = max(f.inflight_hi, a.tx_in_flight)
    if f.state == UP and v.growth == 1.0 and f.cwnd >= f.inflight_hi and f.limited_at >= a.sent:
        # [D3] BBRProbeInflightLongtermUpward
        f.up_acked += a.acked
        steps = math.floor(f.up_acked / f.up_acked_per_inc)
        f.up_acked -= steps * f.up_acked_per_inc
        f.inflight_hi += steps
        if f.round_start == 1:
            _raise_inflight_hi_slope(f)
    return False


@njit(error_model="numpy")
def _advance_max_bw_filter(f: Record) -> None:
    """Not while this cycle has no sample, or two quiet cycles would leave no estimate."""
    if f.bw_now > 0.0:
        f.bw_before = f.bw_now
        f.bw_now = 0.0
        f.max_bw = f.bw_before


@njit(error_model="numpy")
def _update_probe_bw_cycle_phase(f: Record, a: Record, v: Record, draws: Any) -> None:
    if _adapt_long_term_model(f, a, v):
        return
    if f.state in (CRUISE, DOWN):
        rounds = min(bdp(f, _bw(f), 1.0), f.cwnd, v.reno_rounds) if v.reno_rounds < math.inf else math.inf
        if a.now > f.cycle_stamp + f.probe_wait or f.rounds_since_probe >= rounds:
            _start_refill(f)
        elif f.state == DOWN and _is_time_to_cruise(f, a, v):
            f.state = CRUISE
    elif f.state == REFILL:
        if f.round_start == 1:
            f.is_probe_sample = 1
            _start_up(f, a, v)
    elif f.state == UP and _is_time_to_go_down(f, a, v):
        f.prev_too_high = 0  # set again if the feedback shows too much loss
        _start_down(f, a.now, draws)


@njit(error_model="numpy")
def _is_time_to_cruise(f: Record, a: Record, v: Record) -> bool:
    inflight = _inflight(f, a, v)
    if inflight > _with_headroom(f, v):
        return False
    if v.min_rtt_ends_down == 1 and a.now > f.cycle_stamp + f.min_rtt:
        return True
    return bool(inflight <= _quantized(f, bdp(f, f.max_bw, 1.0)))


@njit(error_model="numpy")
def _is_time_to_go_down(f: Record, a: Record, v: Record) -> bool:
    if v.precautionary == 1 and f.prev_too_high == 1 and a.prior_inflight >= f.inflight_hi:
        f.prev_precautionary = 1
        return True
    if v.plateau_ends_up == 0:
        return bool(
            a.now > f.cycle_stamp + f.min_rtt
            and _inflight(f, a, v) > _quantized(f, bdp(f, f.max_bw, v.pacing_gain[f.state]))
        )
    if f.limited_at >= a.sent and f.cwnd >= f.inflight_hi:
        _reset_full_bw(f, a.rate)  # held by inflight_hi: a plateau would say nothing about the path
        return False
    return bool(f.full_bw_now == 1)


# ---- RTprop


@njit(error_model="numpy")
def _update_min_rtt(f: Record, a: Record, v: Record) -> None:
    if f.state != PROBE_RTT:
        f.min_rtt_before = f.min_rtt
    expired = a.now > f.probe_rtt_min_stamp + v.probe_rtt_interval_s
    f.probe_rtt_expired = 1 if expired else 0
    if a.rtt < f.probe_rtt_min or expired:
        f.probe_rtt_min = a.rtt
        f.probe_rtt_min_stamp = a.now
    if f.probe_rtt_min < f.min_rtt or a.now > f.min_rtt_stamp + MIN_RTT_WINDOW_S:
        f.min_rtt = f.probe_rtt_min
        f.min_rtt_stamp = f.probe_rtt_min_stamp


@njit(error_model="numpy")
def _probe_rtt_cwnd(f: Record, v: Record) -> float:
    """From the RTprop before it expired: it may on entry, and a window from a queue's RTT would not drain that queue."""
    rtt = min(f.min_rtt, f.min_rtt_before)
    window: float = max(math.floor(v.probe_rtt_gain * _bw(f) * rtt), MIN_CWND)
    return window


@njit(error_model="numpy")
def _check_probe_rtt(f: Record, a: Record, v: Record, draws: Any) -> None:
    if f.state != PROBE_RTT:
        if f.probe_rtt_expired == 0:
            return
        f.turn_after_probe_rtt = 0
        if v.filter_after_probe_rtt == AFTER_CUT_UP and (
            f.state == UP or (f.state == DOWN and f.ack_phase == PROBE_STOPPING)
        ):
            f.turn_after_probe_rtt = 1
        save_cwnd(f, False)
        f.state = PROBE_RTT
        f.probe_rtt_done_stamp = 0.0
        f.ack_phase = PROBE_STOPPING
        f.next_round_delivered = f.delivered
    f.app_limited = max(f.delivered + f.inflight, 1.0)
    if f.probe_rtt_done_stamp == 0.0:
        if f.inflight <= _probe_rtt_cwnd(f, v):
            f.probe_rtt_done_stamp = a.now + PROBE_RTT_S
            f.probe_rtt_round_done = 0
            f.next_round_delivered = f.delivered
        return
    if f.round_start == 1:
        f.probe_rtt_round_done = 1
    if f.probe_rtt_round_done == 0 or a.now <= f.probe_rtt_done_stamp:
        return
    f.probe_rtt_min_stamp = a.now
    f.cwnd = max(f.cwnd, f.prior_cwnd)
    _reset_lower_bounds(f)
    if f.turn_after_probe_rtt == 1:
        _advance_max_bw_filter(f)
    if f.full_bw_reached == 1:
        _start_down(f, a.now, draws)
        f.state = CRUISE
    else:
        f.state = STARTUP


@njit(error_model="numpy")
def _set_cwnd(f: Record, a: Record, v: Record) -> None:
    """[D3] BBRSetCwnd and BBRBoundCwndForModel, in whole packets; Drain has no upper bound (the pseudocode, not the drafts' table)."""
    volume = _quantized(f, bdp(f, _bw(f), v.cwnd_gain[f.state]) + f.extra_most[0])
    if f.full_bw_reached == 1:
        f.cwnd = min(f.cwnd + a.acked, math.floor(volume))
    elif f.cwnd < volume or f.delivered < INITIAL_CWND:
        f.cwnd += a.acked
    f.cwnd = max(f.cwnd, MIN_CWND)
    cap = f.inflight_lo
    if f.state == PROBE_RTT:
        f.cwnd = min(f.cwnd, _probe_rtt_cwnd(f, v))
        cap = min(cap, _with_headroom(f, v))
    elif f.state == CRUISE:
        cap = min(cap, _with_headroom(f, v))
    elif f.state not in (STARTUP, DRAIN):
        cap = min(cap, f.inflight_hi)
    f.cwnd = min(f.cwnd, max(cap, MIN_CWND))
