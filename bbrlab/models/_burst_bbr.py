"""What all versions of BBR have in common in the burst model."""

from __future__ import annotations

import math
from typing import Any

from bbrlab.models._burst_state import (
    INITIAL_CWND,
    PACING_MARGIN,
    QUANTUM_MAX,
    QUANTUM_S,
    Record,
)  # fmt: skip
from bbrlab.models.jit import njit
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
def extra_acked(f: Record, a: Record, bw: float) -> Any:
    """How many packets more are acknowledged than the bandwidth explains, in whole packets."""
    expected = math.floor(bw * (a.now - f.extra_start))
    if f.extra_delivered <= expected:
        f.extra_delivered = 0.0
        f.extra_start = a.now
        expected = 0
    f.extra_delivered += a.acked
    return min(f.extra_delivered - expected, f.cwnd)


@njit(error_model="numpy")
def save_cwnd(f: Record, probing_rtt: bool) -> None:
    """[D3] BBRSaveCwnd"""
    f.prior_cwnd = max(f.prior_cwnd, f.cwnd) if f.recovery == 1 or probing_rtt else f.cwnd
