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
from numba import njit

from bbrlab.models import _burst_bbr1 as bbr1
from bbrlab.models import _burst_bbr23 as bbr23
from bbrlab.models import _burst_loss_based as loss_based
from bbrlab.models._burst_state import (
    BBR1,
    BURST,
    INFINITE,
    INITIAL_CWND,
    NONE,
    QUANTUM_S,
    SRTT_GAIN,
    Record,
)  # fmt: skip

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
    f.first = f.live = f.last = NONE
    f.min_rtt_stamp = f.probe_rtt_min_stamp = f.extra_start = start
    if f.kind >= BBR1:
        if f.kind == BBR1:
            bbr1.begin(f)
        else:
            bbr23.begin(f)
        f.rate = v.pacing_gain[0] * INITIAL_CWND / f.rtt
        f.quantum = max(math.floor(f.rate * QUANTUM_S), 2.0)
    else:
        loss_based.begin(f)
        loss_based.set_quantum(f)


@njit(error_model="numpy")
def _enqueue(size: float, now: float, busy: float, tau: float, buffer: float) -> tuple[float, float]:
    """Packets that get through of a burst, one after the other, and when the link is free after them."""
    arriving = 0.0
    for _ in range(int(size)):
        if (busy - now) / tau <= buffer:
            busy = max(busy, now) + tau
            arriving += 1.0
    return arriving, busy


@njit(error_model="numpy")
def _more_places(bursts: Any, free: int) -> tuple[Any, int]:
    """Twice as many places for bursts; the new ones are free."""
    count = len(bursts)
    more = np.empty(2 * count, dtype=BURST)
    more[:count] = bursts
    for i in range(count, 2 * count):
        more[i].next = i + 1
    more[2 * count - 1].next = free
    return more, count


@njit(error_model="numpy")
def _lose(f: Record, b: Record, now: float, v: Record, draws: Any) -> float:
    """A burst's lost packets are noticed. Returns how many."""
    size: float = b.size - b.arriving
    f.lost += size
    f.inflight -= size
    if f.kind > BBR1:
        bbr23.on_loss(f, b, size, now, v, draws)
    elif f.kind == BBR1:
        bbr1.on_loss(f, b, now)
    else:
        loss_based.on_loss(f, b, now)
    return size


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
    free = 0
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
            b = bursts[f.live]
            a.prior_inflight = f.inflight
            a.newly_lost = 0.0
            while f.first != f.live:
                place = f.first
                a.newly_lost += _lose(f, bursts[place], now, v, draws)
                f.first = bursts[place].next
                bursts[place].next = free
                free = place
            f.delivered += b.arriving
            f.inflight -= b.arriving
            f.delivered_time = now
            f.first_send_time = b.sent
            if f.app_limited > 0.0 and f.delivered > f.app_limited:
                f.app_limited = 0.0
            a.now, a.sent, a.acked = now, b.sent, b.arriving
            a.rtt = now - b.sent
            a.delivered = f.delivered - b.delivered
            a.rate = a.delivered / max(b.sent - b.first_send_time, now - b.delivered_time)
            a.prior_delivered = b.delivered
            a.tx_in_flight = b.tx_in_flight
            a.lost_since_sent = f.lost - b.lost
            a.app_limited = b.app_limited
            f.srtt += SRTT_GAIN * (a.rtt - f.srtt)
            if counts:
                f.window_delivered += b.arriving
                at = int((a.rtt - f.rtt) * rtt_scale)
                histogram[i, min(max(at, 0), histogram.shape[1] - 1)] += b.arriving
            # The burst goes, or stays as its lost packets.
            following = b.next
            if b.arriving == b.size:
                place = f.first
                f.first = following
                if following == NONE:
                    f.last = NONE
                b.next = free
                free = place
            else:
                b.arriving, b.size = 0.0, b.size - b.arriving
            while following != NONE and bursts[following].arriving == 0.0:
                following = bursts[following].next
            f.live = following
            f.timer = INFINITE
            if f.kind > BBR1:
                bbr23.on_ack(f, a, v, draws)
            elif f.kind == BBR1:
                bbr1.on_ack(f, a, v, draws)
            else:
                loss_based.on_ack(f, a)
        elif f.timer <= now:
            while f.first != NONE:
                place = f.first
                _lose(f, bursts[place], now, v, draws)
                f.first = bursts[place].next
                bursts[place].next = free
                free = place
            f.last = NONE
            f.timer = INFINITE
            if f.kind < BBR1:
                loss_based.on_timer(f)

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
            arriving, busy = _enqueue(size, now, busy, tau, buffer)
            if free == NONE:
                bursts, free = _more_places(bursts, free)
            place = free
            b = bursts[place]
            free = b.next
            if f.delivered == 0.0 and f.inflight == 0.0:
                f.first_send_time = f.delivered_time = now
            f.inflight += size
            b.sent, b.acked_at, b.size, b.arriving = now, max(busy, now) + f.rtt, size, arriving
            b.delivered, b.delivered_time, b.first_send_time = f.delivered, f.delivered_time, f.first_send_time
            b.tx_in_flight, b.lost = f.inflight, f.lost
            b.app_limited = 1 if f.app_limited > 0.0 else 0
            b.next = NONE
            if f.last == NONE:
                f.first = place
            else:
                bursts[f.last].next = place
            f.last = place
            if arriving > 0.0:
                if f.live == NONE:
                    f.live = place
                f.timer = INFINITE
            elif f.live == NONE:
                f.timer = INFINITE  # begins anew
            if counts:
                f.window_sent += size
                f.window_lost += size - arriving
            if f.kind >= BBR1:
                gap = size / f.rate
                f.departure = now + gap - min(gap / 2.0, now - f.departure)
            elif f.recovery == 1:
                f.prr_out += size
        if f.live == NONE:
            if f.first != NONE and f.timer == INFINITE:
                f.timer = now + 2.0 * f.srtt
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
    def run(
        flows: Any, versions: Any, starts: Any, tau: float, buffer: float, end: float, window: Any, draws: Any,
        segments: bool, ack: Any, bursts: Any, histogram: Any, rtt_scale: float, totals: Any, sample_times: Any,
        samples: Any, queue_samples: Any,
    ) -> int:  # fmt: skip
        if sources == "":
            return -1
        return _loop(
            flows, versions, starts, tau, buffer, end, window, draws, segments, ack, bursts, histogram, rtt_scale,
            totals, sample_times, samples, queue_samples,
        )  # fmt: skip

    return run


run = _cached(_sources())
