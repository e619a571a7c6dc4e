"""CUBIC and Reno in the burst model, in integers as Linux has them (tcp_cubic.c, tcp_cong.c, PRR of tcp_input.c).

CUBIC is RFC 9438 with fast convergence, the TCP-friendly region and HyStart by delay.
"""

from __future__ import annotations

import math

from bbrlab.models._burst_state import CUBIC, INFINITE, QUANTUM_MAX, QUANTUM_S, Record
from bbrlab.models.jit import njit

REDUCING, AFTER_TIMEOUT = 1, 2  # recovery, as CUBIC and Reno have it
CUBE = 0.4
CUBIC_BETA = 717 / 1024
FRIENDLY_ACKS = 15 / 8  # windows acknowledged per packet that Reno with CUBIC's beta would grow; Linux cuts to eighths
UPDATE_S = 1 / 32  # how long CUBIC keeps its growth per ACK while the window stands still
HYSTART_WINDOW, HYSTART_SAMPLES = 16.0, 8
HYSTART_LEAST_S, HYSTART_MOST_S = 4e-3, 16e-3
SLOW_START_PACING, PACING = 2.0, 1.2  # what sizes segments: the rate that Linux would pace at


@njit(error_model="numpy")
def begin(f: Record) -> None:
    """The state before the first packet."""
    f.ssthresh = f.delay_min = f.round_rtt = INFINITE


@njit(error_model="numpy")
def set_quantum(f: Record) -> None:
    """Segments have 1 ms of the rate that Linux would pace at."""
    ratio = SLOW_START_PACING if f.cwnd < f.ssthresh / 2.0 else PACING
    f.quantum = min(max(math.floor(QUANTUM_S * ratio * f.cwnd / f.srtt), 2.0), QUANTUM_MAX)


@njit(error_model="numpy")
def on_recovery(f: Record) -> None:
    """Recovery begins, with a smaller window."""
    f.prior_cwnd = f.cwnd
    if f.kind == CUBIC:
        f.epoch_start = 0.0
        if f.cwnd < f.last_max:
            f.last_max = math.floor(f.cwnd * (1.0 + CUBIC_BETA) / 2.0)
        else:
            f.last_max = f.cwnd
        f.ssthresh = max(math.floor(f.cwnd * CUBIC_BETA), 2.0)
    else:
        f.ssthresh = max(math.floor(f.cwnd / 2.0), 2.0)
    f.prr_delivered = f.prr_out = 0.0
    f.cwnd_count = 0.0


@njit(error_model="numpy")
def on_repaired(f: Record) -> None:
    """Recovery ends; after a timeout the window has grown already."""
    if f.recovery != AFTER_TIMEOUT:
        f.cwnd = f.ssthresh


@njit(error_model="numpy")
def on_ack(f: Record, a: Record) -> None:
    """The window after an ACK."""
    if f.kind == CUBIC:
        _hystart(f, a)
    if f.recovery == REDUCING:
        _reduce(f, a.acked, a.repaired > 0.0 and a.newly_lost == 0.0)
        set_quantum(f)
        return
    acked = a.acked
    if f.cwnd < f.ssthresh:
        grown = min(f.cwnd + acked, f.ssthresh)
        acked -= grown - f.cwnd
        f.cwnd = grown
    if acked > 0.0:
        if f.kind == CUBIC:
            _update_cubic(f, a.now, acked)
            _grow(f, f.count, acked)
        else:
            _grow(f, f.cwnd, acked)
    set_quantum(f)


@njit(error_model="numpy")
def on_probe(f: Record) -> None:
    """Nothing but lost packets was outstanding: one packet goes out."""
    _reduce(f, 0.0, False)


@njit(error_model="numpy")
def on_timeout(f: Record) -> None:
    """Slow start from one packet; CUBIC forgets what it knew (tcp_enter_loss, cubictcp_state)."""
    f.recovery = AFTER_TIMEOUT
    f.cwnd = 1.0
    f.cwnd_count = 0.0
    f.last_max = f.epoch_start = 0.0


@njit(error_model="numpy")
def _reduce(f: Record, acked: float, repaired: bool) -> None:
    """Proportional rate reduction (RFC 6937); a packet more when something was repaired and nothing new is missing."""
    f.prr_delivered += acked
    room = f.ssthresh - f.inflight
    if room < 0.0:
        send = math.ceil(f.ssthresh * f.prr_delivered / f.prior_cwnd) - f.prr_out
    else:
        send = min(room, max(f.prr_delivered - f.prr_out, acked) + (1.0 if repaired else 0.0))
    f.cwnd = f.inflight + max(send, 0.0 if f.prr_out > 0.0 else 1.0)


@njit(error_model="numpy")
def _grow(f: Record, per_packet: float, acked: float) -> None:
    """One packet more for each ``per_packet`` acknowledged."""
    if f.cwnd_count >= per_packet:
        f.cwnd_count = 0.0
        f.cwnd += 1.0
    f.cwnd_count += acked
    if f.cwnd_count >= per_packet:
        steps = math.floor(f.cwnd_count / per_packet)
        f.cwnd_count -= steps * per_packet
        f.cwnd += steps


@njit(error_model="numpy")
def _update_cubic(f: Record, now: float, acked: float) -> None:
    f.ack_count += acked
    if f.last_cwnd == f.cwnd and now - f.last_update <= UPDATE_S:
        return
    f.last_cwnd = f.cwnd
    f.last_update = now
    if f.epoch_start == 0.0:
        f.epoch_start = now
        f.ack_count = acked
        f.reno_cwnd = f.cwnd
        if f.last_max <= f.cwnd:
            f.k = 0.0
            f.origin = f.cwnd
        else:
            f.k = ((f.last_max - f.cwnd) / CUBE) ** (1.0 / 3.0)
            f.origin = f.last_max
    offset = now + f.delay_min - f.epoch_start - f.k
    change = math.floor(CUBE * abs(offset) ** 3)
    target = f.origin + change if offset >= 0.0 else f.origin - change
    f.count = math.floor(f.cwnd / (target - f.cwnd)) if target > f.cwnd else 100.0 * f.cwnd
    if f.last_max == 0.0:
        f.count = min(f.count, 20.0)
    per_packet = math.floor(f.cwnd * FRIENDLY_ACKS)
    steps = math.ceil(f.ack_count / per_packet) - 1.0
    if steps > 0.0:
        f.ack_count -= steps * per_packet
        f.reno_cwnd += steps
    if f.reno_cwnd > f.cwnd:
        f.count = min(f.count, math.floor(f.cwnd / (f.reno_cwnd - f.cwnd)))
    f.count = max(f.count, 2.0)


@njit(error_model="numpy")
def _hystart(f: Record, a: Record) -> None:
    """Slow start ends when a round's first RTTs are an eighth (4 to 16 ms) above the lowest ever."""
    f.delay_min = min(f.delay_min, a.rtt)
    if f.left_slow_start == 1 or f.cwnd >= f.ssthresh or f.cwnd < HYSTART_WINDOW:
        return
    if a.prior_delivered >= f.slow_start_round:
        f.slow_start_round = f.delivered
        f.round_rtt = INFINITE
        f.round_samples = 0
    if f.round_samples < HYSTART_SAMPLES:
        f.round_rtt = min(f.round_rtt, a.rtt)
        f.round_samples += 1
    elif f.round_rtt > f.delay_min + min(max(f.delay_min / 8.0, HYSTART_LEAST_S), HYSTART_MOST_S):
        f.left_slow_start = 1
        f.ssthresh = f.cwnd
