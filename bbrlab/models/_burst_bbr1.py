"""BBRv1 in the burst model, as mainline Linux has it (tcp_bbr.c), without its policer detection.

The policer detection needs a loss of a fifth over several rounds; the model leaves it out.
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
    BW_ROUNDS,
    CRUISE,
    DRAIN,
    FULL_BW_GROWTH,
    FULL_BW_ROUNDS,
    INITIAL_CWND,
    MIN_CWND,
    MIN_RTT_WINDOW_S,
    PROBE_RTT,
    PROBE_RTT_S,
    QUANTA_IN_FLIGHT,
    STARTUP,
    Record,
)  # fmt: skip
from bbrlab.models.jit import njit

PHASES = 8
UP_PHASE, DOWN_PHASE = 0, 1
UP_BONUS = 2.0
EXTRA_ACKED_BUCKET_ROUNDS = 5
EXTRA_ACKED_MAX_S = 0.1  # the aggregation that the window may allow for, as time at the estimated bandwidth


@njit(error_model="numpy")
def begin(f: Record) -> None:
    """The state before the first packet."""
    f.state = STARTUP
    f.min_rtt = f.rtt


@njit(error_model="numpy")
def on_ack(f: Record, a: Record, v: Record, draws: Any) -> None:
    """All of an ACK: model, pacing rate, window."""
    _update_bw(f, a)
    _update_extra_acked(f, a, v)
    if f.state == CRUISE:
        _update_cycle(f, a, v)
    _check_full_bw_reached(f, a)
    if f.state == STARTUP and f.full_bw_reached == 1:
        f.state = DRAIN
    if f.state == DRAIN and _inflight(f, a, v) <= _quantized(f, math.ceil(bdp(f, f.max_bw, 1.0))):
        _start_probe_bw(f, a.now, draws)
    _update_min_rtt(f, a, v, draws)
    set_rate(f, v, f.max_bw, _pacing_gain(f, v))
    _set_cwnd(f, a, v)


@njit(error_model="numpy")
def on_recovery(f: Record) -> None:
    """Recovery begins."""
    save_cwnd(f, f.state == PROBE_RTT)
    f.recovery_entered = 1


@njit(error_model="numpy")
def _pacing_gain(f: Record, v: Record) -> float:
    if f.state == CRUISE:
        if f.cycle == UP_PHASE:
            return 1.25
        return 0.75 if f.cycle == DOWN_PHASE else 1.0
    return float(v.pacing_gain[f.state])


@njit(error_model="numpy")
def _inflight(f: Record, a: Record, v: Record) -> Any:
    return inflight_at_departure(f, a, f.max_bw, _pacing_gain(f, v))


@njit(error_model="numpy")
def _quantized(f: Record, inflight: float) -> Any:
    """Three quanta more, rounded up to even, and two packets more while probing."""
    inflight = 2.0 * math.ceil((inflight + QUANTA_IN_FLIGHT * f.quantum) / 2.0)
    return inflight + UP_BONUS if f.state == CRUISE and f.cycle == UP_PHASE else inflight


@njit(error_model="numpy")
def _start_probe_bw(f: Record, now: float, draws: Any) -> None:
    """In any phase but the one that drains."""
    f.state = CRUISE
    f.cycle = (PHASES - int(draws.random() * (PHASES - 1))) % PHASES
    f.cycle_stamp = now


@njit(error_model="numpy")
def _update_bw(f: Record, a: Record) -> None:
    """The maximum over the round of the last sample that counted and the ten before it.

    As in Linux, old samples are dropped when a new one comes in, and one that the sender's want of data held down (all of ProbeRTT)
    only counts if it is larger. So the estimate outlives ProbeRTT, whose .2 s may be many rounds.
    """
    update_round(f, a)
    if f.round_start == 1:
        f.conservation = 0
    if a.app_limited == 1 and a.rate < f.max_bw:
        return
    passed = min(f.round_count - f.bw_round, BW_ROUNDS)
    for i in range(passed):
        f.bw_rounds[(f.round_count - i) % BW_ROUNDS] = 0.0
    f.bw_round = f.round_count
    now = f.round_count % BW_ROUNDS
    f.bw_rounds[now] = max(f.bw_rounds[now], a.rate)
    most = 0.0
    for i in range(BW_ROUNDS):
        most = max(most, f.bw_rounds[i])
    f.max_bw = most


@njit(error_model="numpy")
def _update_extra_acked(f: Record, a: Record, v: Record) -> None:
    """The maximum over two buckets of five rounds."""
    if f.round_start == 1:
        f.extra_rounds += 1
        if f.extra_rounds >= EXTRA_ACKED_BUCKET_ROUNDS:
            f.extra_rounds = 0
            f.extra_before = f.extra_now
            f.extra_now = 0.0
    f.extra_now = max(f.extra_now, v.extra_acked * extra_acked(f, a, f.max_bw))


@njit(error_model="numpy")
def _update_cycle(f: Record, a: Record, v: Record) -> None:
    full_length = a.now - f.cycle_stamp > f.min_rtt
    inflight = _inflight(f, a, v)
    if f.cycle == UP_PHASE:
        ends = full_length and (a.newly_lost > 0.0 or inflight >= _quantized(f, math.ceil(bdp(f, f.max_bw, 1.25))))
    elif f.cycle == DOWN_PHASE:
        ends = full_length or inflight <= _quantized(f, math.ceil(bdp(f, f.max_bw, 1.0)))
    else:
        ends = full_length
    if ends:
        f.cycle = (f.cycle + 1) % PHASES
        f.cycle_stamp = a.now


@njit(error_model="numpy")
def _check_full_bw_reached(f: Record, a: Record) -> None:
    if f.full_bw_reached == 1 or f.round_start == 0 or a.app_limited == 1:
        return
    if f.max_bw >= FULL_BW_GROWTH * f.full_bw:
        f.full_bw = f.max_bw
        f.full_bw_count = 0
        return
    f.full_bw_count += 1
    if f.full_bw_count >= FULL_BW_ROUNDS:
        f.full_bw_reached = 1


@njit(error_model="numpy")
def _update_min_rtt(f: Record, a: Record, v: Record, draws: Any) -> None:
    """RTprop, and ProbeRTT when it was not renewed for ten seconds."""
    expired = a.now > f.min_rtt_stamp + MIN_RTT_WINDOW_S
    if a.rtt < f.min_rtt or expired:
        f.min_rtt = a.rtt
        f.min_rtt_stamp = a.now
    if expired and f.state != PROBE_RTT:
        save_cwnd(f, False)
        f.state = PROBE_RTT
        f.probe_rtt_done_stamp = 0.0
    if f.state != PROBE_RTT:
        return
    f.app_limited = max(f.delivered + f.inflight, 1.0)
    if f.probe_rtt_done_stamp == 0.0:
        if f.inflight <= MIN_CWND:
            f.probe_rtt_done_stamp = a.now + PROBE_RTT_S
            f.probe_rtt_round_done = 0
            f.next_round_delivered = f.delivered
        return
    if f.round_start == 1:
        f.probe_rtt_round_done = 1
    if f.probe_rtt_round_done == 0 or a.now <= f.probe_rtt_done_stamp:
        return
    f.min_rtt_stamp = a.now
    f.cwnd = max(f.cwnd, f.prior_cwnd)
    if f.full_bw_reached == 1:
        _start_probe_bw(f, a.now, draws)
    else:
        f.state = STARTUP


@njit(error_model="numpy")
def _set_cwnd(f: Record, a: Record, v: Record) -> None:
    if not _conserves(f, a):
        extra = 0.0
        if f.full_bw_reached == 1:
            extra = min(max(f.extra_now, f.extra_before), math.floor(f.max_bw * EXTRA_ACKED_MAX_S))
        target = _quantized(f, math.ceil(bdp(f, f.max_bw, v.cwnd_gain[f.state])) + extra)
        if f.full_bw_reached == 1:
            f.cwnd = min(f.cwnd + a.acked, target)
        elif f.cwnd < target or f.delivered < INITIAL_CWND:
            f.cwnd += a.acked
        f.cwnd = max(f.cwnd, MIN_CWND)
    if f.state == PROBE_RTT:
        f.cwnd = min(f.cwnd, MIN_CWND)


@njit(error_model="numpy")
def _conserves(f: Record, a: Record) -> bool:
    """Losses take from the window; the first round of recovery sends one packet for each that arrived."""
    if a.newly_lost > 0.0:
        f.cwnd = max(f.cwnd - a.newly_lost, 1.0)
    if f.recovery_entered == 1:
        f.recovery_entered = 0
        f.conservation = 1
        f.next_round_delivered = f.delivered
        f.cwnd = f.inflight + a.acked
    elif a.recovery_ended == 1:
        f.conservation = 0
        f.cwnd = max(f.cwnd, f.prior_cwnd)
    if f.conservation == 1:
        f.cwnd = max(f.cwnd, f.inflight + a.acked)
        return True
    return False
