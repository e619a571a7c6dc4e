"""The burst model's compiled loop: send bursts through one first-in-first-out queue, and what their ACKs do.

A burst of packets sent at once is the only thing that happens: the queue is the time at which the link will be free, and the
time at which a burst's ACK arrives is known when it is sent. The next event is a flow's next ACK, its next paced departure
or its timer for lost packets that no ACK will tell of.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np

from bbrlab.models import _burst_bbr1, _burst_bbr23, _burst_loss_based
from bbrlab.models._burst_state import (
    BBR1,
    BUCKET_BYTES,
    BURST,
    DELAYED_ACK_S,
    INFINITE,
    INITIAL_CWND,
    NONE,
    QUANTUM_S,
    SRTT_GAIN,
    Record,
)  # fmt: skip
from bbrlab.models.jit import njit
from bbrlab.scenario.frames import FRAME_BYTES

RTO_VARIANCE_S = 0.2  # what Linux adds to the smoothed RTT at least for its retransmission timeout

# Columns of a flow's sample.
SAMPLE = ("delivered", "cwnd", "inflight", "inflight_hi", "max_bw", "min_rtt", "state")


@njit(error_model="numpy")
def _begin(f: Record, v: Record, start: float) -> None:
    """A flow before its first packet: it knows its path's RTT from the handshake."""
    f.cwnd = INITIAL_CWND
    f.srtt = f.rtt
    f.timer = INFINITE
    f.limited_at = -1.0
    f.departure = f.delivered_time = f.first_send_time = start
    f.first = f.live = f.last = f.waiting = NONE
    f.min_rtt_stamp = f.probe_rtt_min_stamp = f.extra_start = start
    if f.kind >= BBR1:
        if f.kind == BBR1:
            _burst_bbr1.begin(f)
        else:
            _burst_bbr23.begin(f)
        f.rate = v.pacing_gain[0] * INITIAL_CWND / f.rtt
        f.quantum = max(math.floor(f.rate * QUANTUM_S), 2.0)
    else:
        _burst_loss_based.begin(f)
        _burst_loss_based.set_quantum(f)


@njit(error_model="numpy")
def _more_places(bursts: Any, free: int, least: int) -> tuple[Any, int]:
    """Twice as many places for bursts, or ``least`` more; the new ones are free."""
    count = len(bursts)
    wanted = count + max(count, least)
    more = np.empty(wanted, dtype=BURST)
    more[:count] = bursts
    for i in range(count, wanted):
        more[i].next = i + 1
    more[wanted - 1].next = free
    return more, count


@njit(error_model="numpy")
def _append(bursts: Any, place: int, f: Record) -> int:
    """A free place becomes the last of the flow's. Returns the next free one."""
    free: int = bursts[place].next
    bursts[place].next = NONE
    if f.last == NONE:
        f.first = place
    else:
        bursts[f.last].next = place
    f.last = place
    return free


@njit(error_model="numpy")
def _remember(b: Record, f: Record, now: float, repairs: float, below: float) -> None:
    """What packets remember of the moment they are sent, as the last that the flow has in flight."""
    b.sent, b.number = now, f.packets
    b.size, b.repairs, b.below = 1.0, repairs, below
    b.delivered, b.delivered_time, b.first_send_time = f.delivered, f.delivered_time, f.first_send_time
    b.tx_in_flight, b.lost = f.inflight, f.lost
    b.app_limited = 1 if f.app_limited > 0.0 else 0


@njit(error_model="numpy")
def _send(
    f: Record, size: float, now: float, busy: float, tau: float, buffer: float, bursts: Any, free: int
) -> tuple[int, int, float, float]:
    """Send a burst: what was lost goes first, packet by packet into the queue, on to the receiver, which answers each second one.

    The link lets a packet go at once while it has saved tokens, as a token bucket does. The receiver answers at once while
    something is missing, and a packet that no second one follows after DELAYED_ACK_S.

    Returns:
        The next free place, how many were taken, when the link has tokens again, and how many packets were lost.
    """
    repairs, below = min(size, f.to_repair), min(size, f.to_repair_below)
    f.to_repair -= repairs
    f.to_repair_below -= below
    missing = f.holes > 0.0
    saved = BUCKET_BYTES / FRAME_BYTES * tau
    taken = 0
    own = NONE  # where packets of this burst are of which the receiver has not answered the last
    through = 0.0
    while through < size and (busy - now) / tau <= buffer:
        departure = max(busy, now)
        busy = max(busy, now - saved) + tau
        repair = 1.0 if through < repairs else 0.0
        waited_for = 1.0 if through < below else 0.0
        through += 1.0
        second = f.waiting != NONE and departure <= f.waits_until
        if second and f.waiting == own:
            b = bursts[own]
            b.size += 1.0
            b.repairs += repair
            b.below += waited_for
            b.acked_at = departure + f.rtt
        else:
            if second:
                bursts[f.waiting].acked_at = departure + f.rtt
            own = free
            free = _append(bursts, own, f)
            taken += 1
            b = bursts[own]
            _remember(b, f, now, repair, waited_for)
            b.arrives = 1
            b.acked_at = departure + f.rtt
            if f.live == NONE:
                f.live = own
        f.waiting = NONE
        if not (second or missing):
            f.waiting = own
            f.waits_until = departure + DELAYED_ACK_S
            b.acked_at += DELAYED_ACK_S
    lost = size - through
    f.holes += lost - max(repairs - through, 0.0) - min(repairs, through)
    if lost > 0.0:
        place = free
        free = _append(bursts, place, f)
        taken += 1
        _remember(bursts[place], f, now, max(repairs - through, 0.0), max(below - through, 0.0))
        bursts[place].size = lost
        bursts[place].arrives = 0
    return free, taken, busy, lost


@njit(error_model="numpy")
def _enter_recovery(f: Record) -> None:
    """All that is outstanding has to be delivered before recovery ends."""
    if f.kind > BBR1:
        _burst_bbr23.on_recovery(f)
    elif f.kind == BBR1:
        _burst_bbr1.on_recovery(f)
    else:
        _burst_loss_based.on_recovery(f)
    f.recovery = 1
    f.recovery_mark = f.packets
    f.below = f.inflight + f.to_repair
    f.to_repair_below = f.to_repair


@njit(error_model="numpy")
def _lose(f: Record, b: Record, now: float, v: Record, draws: Any) -> float:
    """A burst's lost packets are noticed. Returns how many."""
    size: float = b.size
    f.lost += size
    f.inflight -= size
    f.lost_out += size - b.repairs
    f.to_repair += size
    if f.kind > BBR1:
        _burst_bbr23.on_loss(f, b, size, now, v, draws)
    if f.recovery == 0:
        _enter_recovery(f)
    else:
        f.to_repair_below += size if b.number <= f.recovery_mark else b.below
    return size


@njit(error_model="numpy")
def _deliver(f: Record, b: Record) -> None:
    """Packets of a burst are acknowledged."""
    f.delivered += b.size
    f.inflight -= b.size
    f.lost_out -= b.repairs
    if f.recovery != 0:
        f.below -= b.size if b.number <= f.recovery_mark else b.below


@njit(error_model="numpy")
def _check_repaired(f: Record) -> bool:
    """Recovery ends when all is delivered that was sent before it began; what was lost since then begins another."""
    if f.recovery == 0 or f.below > 0.0:
        return False
    if f.kind > BBR1:
        f.recovery = 0
        _burst_bbr23.on_repaired(f)
    elif f.kind < BBR1:
        _burst_loss_based.on_repaired(f)
    f.recovery = 0
    if f.lost_out > 0.0:
        entered = f.recovery_entered
        _enter_recovery(f)
        f.recovery_entered = entered  # mainline's BBRv1 looks at the state after the ACK, which is the same
        return False
    return True


@njit(error_model="numpy")
def _loop(
    flows: Any, versions: Any, starts: Any, tau: float, buffer: float, end: float, window: Any, draws: Any,
    segments: bool, ack: Any, bursts: Any, histogram: Any, rtt_scale: float, totals: Any, sample_times: Any,
    samples: Any, queue_samples: Any,
) -> int:  # fmt: skip
    """Run until ``end``; burst.simulate() has the arguments' meaning. Returns the number of events."""
    count = len(flows)
    low, high = window[0], window[1]
    due = starts.copy()
    for i in range(count):
        _begin(flows[i], versions[flows[i].kind], starts[i])
    for i in range(len(bursts)):
        bursts[i].next = i + 1
    bursts[len(bursts) - 1].next = NONE
    free, left_places = 0, len(bursts)
    busy = 0.0
    queue_since = low  # from when on the queue's integral is still to be taken
    next_sample = 0
    events = 0
    a = ack[0]

    while True:
        i = 0
        now = due[0]
        for j in range(1, count):
            if due[j] < now:
                now = due[j]
                i = j
        while next_sample < len(sample_times) and sample_times[next_sample] <= now:
            queue_samples[next_sample] = max(busy - sample_times[next_sample], 0.0) / tau
            for j in range(count):
                g = flows[j]
                row = samples[next_sample, j]
                row[0], row[1], row[2], row[3] = g.delivered, g.cwnd, g.inflight, g.inflight_hi
                row[4], row[5], row[6] = g.max_bw, g.min_rtt, g.state
            next_sample += 1
        if now > end:
            break
        events += 1
        f = flows[i]
        v = versions[f.kind]
        counts = low <= now < high

        if f.live != NONE and bursts[f.live].acked_at <= now:
            # An ACK. What was lost before it is noticed first.
            a.prior_inflight = f.inflight
            a.acked = a.newly_lost = a.repaired = 0.0
            f.srtt += SRTT_GAIN * (now - bursts[f.live].sent - f.srtt)
            last = f.live
            while f.live != NONE and bursts[f.live].acked_at <= now:
                while f.first != f.live:
                    place = f.first
                    a.newly_lost += _lose(f, bursts[place], now, v, draws)
                    f.first = bursts[place].next
                    bursts[place].next = free
                    free = place
                    left_places += 1
                last = f.live
                b = bursts[last]
                _deliver(f, b)
                a.acked += b.size
                a.repaired += b.repairs
                if counts:
                    f.window_delivered += b.size
                    at = int((now - b.sent - f.rtt) * rtt_scale)
                    histogram[i, min(max(at, 0), histogram.shape[1] - 1)] += b.size
                if f.waiting == last:
                    f.waiting = NONE
                f.first = b.next
                if f.first == NONE:
                    f.last = NONE
                b.next = free
                free = last
                left_places += 1
                f.live = f.first
                while f.live != NONE and bursts[f.live].arrives == 0:
                    f.live = bursts[f.live].next
            b = bursts[last]
            f.delivered_time = now
            f.first_send_time = b.sent
            if f.app_limited > 0.0 and f.delivered > f.app_limited:
                f.app_limited = 0.0
            a.now, a.sent = now, b.sent
            a.rtt = now - b.sent
            a.delivered = f.delivered - b.delivered
            a.rate = a.delivered / max(b.sent - b.first_send_time, now - b.delivered_time)
            a.prior_delivered = b.delivered
            a.tx_in_flight = b.tx_in_flight
            a.lost_since_sent = f.lost - b.lost
            a.app_limited = b.app_limited
            a.recovery_ended = 1 if _check_repaired(f) else 0
            f.timer = INFINITE
            if f.kind > BBR1:
                _burst_bbr23.on_ack(f, a, v, draws)
            elif f.kind == BBR1:
                _burst_bbr1.on_ack(f, a, v, draws)
            else:
                _burst_loss_based.on_ack(f, a)
        elif f.timer <= now:
            while f.first != NONE:
                place = f.first
                _lose(f, bursts[place], now, v, draws)
                f.first = bursts[place].next
                bursts[place].next = free
                free = place
                left_places += 1
            if f.kind < BBR1:
                if f.last == NONE:
                    _burst_loss_based.on_timeout(f)
                else:
                    _burst_loss_based.on_probe(f)
            f.last = NONE
            f.timer = INFINITE

        # Send while the window and the pacing rate allow it.
        waits_until = INFINITE
        while True:
            quota = math.floor(f.cwnd) - f.inflight
            if quota < 1.0:
                f.limited_at = now
                break
            if f.kind >= BBR1 and now < f.departure:
                waits_until = f.departure
                break
            size = min(f.quantum, quota) if segments else 1.0
            if now > queue_since:
                if busy > queue_since:
                    until = min(now, high)
                    if until > queue_since:
                        waiting, left = busy - queue_since, max(busy - until, 0.0)
                        totals[0] += (waiting * waiting - left * left) / 2.0
                queue_since = now
            if f.delivered == 0.0 and f.inflight == 0.0:
                f.first_send_time = f.delivered_time = now
            f.inflight += size
            f.packets += size
            alive = f.live != NONE
            if left_places <= size:
                before = len(bursts)
                bursts, free = _more_places(bursts, free, int(size) + 1)
                left_places += len(bursts) - before
            free, taken, busy, lost = _send(f, size, now, busy, tau, buffer, bursts, free)
            left_places -= taken
            if alive or f.live != NONE or lost > 0.0:
                f.timer = INFINITE  # begins anew
            if counts:
                f.window_sent += size
                f.window_lost += lost
            if f.kind >= BBR1:
                gap = size / f.rate
                f.departure = now + gap - min(gap / 2.0, now - f.departure)
            else:
                f.prr_out += size
        if f.live == NONE:
            if f.timer == INFINITE:
                if f.first != NONE:
                    f.timer = now + 2.0 * f.srtt
                elif waits_until == INFINITE:  # all that was sent is known to be lost, and the window is closed
                    f.timer = now + f.srtt + RTO_VARIANCE_S
            due[i] = min(waits_until, f.timer)
        else:
            due[i] = min(waits_until, bursts[f.live].acked_at)
    if high > queue_since and busy > queue_since:
        waiting, left = busy - queue_since, max(busy - high, 0.0)
        totals[0] += (waiting * waiting - left * left) / 2.0
    return events


def _sources() -> str:
    """What the compiled loop is made of. Numba's cache looks at the file of the cached function alone."""
    files = sorted(Path(__file__).parent.glob("_burst_*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _cached(sources: str) -> Any:
    """The loop under a cache whose key has ``sources``: a function's free variables are part of it."""

    @njit(cache=True, error_model="numpy")
    def run(*arguments: Any) -> int:
        return -1 if sources == "" else _loop(*arguments)

    return run


run = _cached(_sources())
