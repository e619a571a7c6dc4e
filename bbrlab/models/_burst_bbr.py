"""What all versions of BBR have in common in the burst model."""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from bbrlab.models._burst_state import (
    BBR2,
    EXTRA_ACKED_BUCKET_ROUNDS,
    INITIAL_CWND,
    PACING_MARGIN,
    QUANTUM_MAX,
    QUANTUM_S,
    Record,
)  # fmt: skip
from bbrlab.scenario.frames import PAYLOAD_BYTES

# Below 1.2 Mbit/s of payload, BBRv1 and BBRv2 send single packets.
LOW_RATE = 1.2e6 / 8 / PAYLOAD_BYTES


@njit(error_model="numpy")
def set_rate(f: Record, v: Record, bw: float, gain: float) -> None:
    """Pacing rate and send quantum: the rate only rises until the pipe was full ([D3] BBRSetPacingRate, BBRSetSendQuantum)."""
    rate = gain * bw * PACING_MARGIN
    if rate > f.rate or f.full_bw_reached == 1:
        f.rate = rate
    least = 1.0 if v.single_packets == 1 and f.rate < LOW_RATE else 2.0
    f.quantum = min(max(math.floor(f.rate * QUANTUM_S), least), QUANTUM_MAX)


@njit(error_model="numpy")
def update_round(f: Record, a: Record) -> None:
    """A round ends when something is acknowledged that was sent after it began."""
    f.round_start = 0
    if a.prior_delivered >= f.next_round_delivered:
        f.next_round_delivered = f.delivered
        f.round_count += 1
        f.round_start = 1


@njit(error_model="numpy")
def bdp(f: Record, bw: float, gain: float) -> Any:
    """[D3] BBRBDPMultiple, a real number of packets."""
    if f.min_rtt == math.inf:
        return INITIAL_CWND
    return gain * bw * f.min_rtt


@njit(error_model="numpy")
def inflight_at_departure(f: Record, a: Record, bw: float, gain: float) -> Any:
    """In flight when the next packet may leave: before this ACK, less what will be delivered, plus a quantum while probing.

    The drafts leave open which in-flight they mean; mainline's BBRv1 takes this one.
    """
    inflight = a.prior_inflight
    if gain > 1.0:
        inflight += f.quantum
    if f.departure > a.now:
        inflight -= bw * (f.departure - a.now)
    return max(inflight, 0.0)


@njit(error_model="numpy")
def update_extra_acked(f: Record, a: Record, v: Record, bw: float) -> None:
    """How much more is acknowledged than the bandwidth explains; the maximum over two buckets of five rounds.

    In Startup, BBRv2 and BBRv3 look back one round.
    """
    if f.round_start == 1:
        f.extra_rounds += 1
        if f.extra_rounds >= EXTRA_ACKED_BUCKET_ROUNDS or (f.full_bw_reached == 0 and f.kind >= BBR2):
            f.extra_rounds = 0
            f.extra_before = f.extra_now if f.full_bw_reached == 1 else 0.0
            f.extra_now = 0.0
    expected = bw * (a.now - f.extra_start)
    if f.extra_delivered <= expected:
        f.extra_delivered = 0.0
        f.extra_start = a.now
        expected = 0.0
    f.extra_delivered += a.acked
    f.extra_now = max(f.extra_now, v.extra_acked * min(f.extra_delivered - expected, f.cwnd))


@njit(error_model="numpy")
def save_cwnd(f: Record, probing_rtt: bool) -> None:
    """[D3] BBRSaveCwnd"""
    f.prior_cwnd = max(f.prior_cwnd, f.cwnd) if f.recovery == 1 or probing_rtt else f.cwnd


@njit(error_model="numpy")
def end_recovery(f: Record, a: Record) -> bool:
    """Recovery ends with the first ACK of something that was sent after it began."""
    if f.recovery == 1 and a.sent >= f.recovery_start:
        f.recovery = 0
        return True
    return False
