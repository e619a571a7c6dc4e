"""The compiled inner loop of the fluid model: one pass over time, ring buffers for what delayed terms look back on.

The order of statements is part of the model: the published traces were made by explicit Euler steps in which some terms
already see a variable's new value and others its old one (tests/models/test_fluid.py compares the traces to 1e-11).
Names follow the paper's symbols where it has one; units are ms and packets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbrlab.models.jit import njit

Floats = NDArray[np.float64]
RENO, CUBIC, BBR1, BBR2 = 0, 1, 2, 3
SHARP, SMOOTH = 500.0, 5.0  # sharpness of the two sigmoids
NEGLIGIBLE = 37.0  # 1 / (1 + exp(-37)) is 1 in double precision, and exp(-37) vanishes beside 1
PROBE_RTT_MS = 200.0
PROBE_RTT_WINDOW = 4.0  # packets, BBRv1
RTPROP_WINDOW_MS = 10_000.0  # ProbeRTT, if RTprop is not lower than so long ago
UP_EXIT = 499 / 400  # BDPs in flight at which BBRv2 leaves UP
TOO_HIGH = 0.02  # loss at which BBRv2 reacts
ENDED_WELL = -1
# Columns of the totals over the window, per run and per flow.
TOTALS = ("steps", "arrived", "lost", "queue", "busy")
FLOW_TOTALS = ("sent", "delivered")
# exp(x) = 2^k exp(r) with |r| <= ln 2 / 2; ln 2 in two parts, so that k ln 2 is exact; Taylor's series of exp(r).
LN2_HIGH, LN2_LOW, PER_LN2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10, 1.0 / math.log(2.0)
POWER_OF_TWO = 2.0 ** np.arange(-64.0, 65.0)
C3, C4, C5, C6, C7, C8, C9, C10, C11, C12 = (1.0 / math.factorial(n) for n in range(3, 13))


@njit(inline="always", error_model="numpy", fastmath={"contract"})
def sigmoid(z: float) -> float:
    """1 / (1 + exp(-z)) to two units in the last place. The exponential is inlined: with the C library's, 33 flows take a third
    longer (docs/reference/benchmarks.md)."""
    if z > NEGLIGIBLE:
        return 1.0
    if z < -NEGLIGIBLE:
        return 0.0
    k = math.floor(0.5 - z * PER_LN2)
    r = (-z - k * LN2_HIGH) - k * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + (0.5 + C3 * r) * r2
    middle = (C4 + C5 * r) + (C6 + C7 * r) * r2
    high = ((C8 + C9 * r) + (C10 + C11 * r) * r2) + C12 * r4
    power: float = POWER_OF_TWO[int(k) + 64]
    return 1.0 / (1.0 + (low + (middle + high * r4) * r4) * power)


@njit(cache=True)
def change_before(step: Any, count: int, when: int) -> int:
    """Index of the last of ``count`` ascending steps that is not after ``when``, or 0."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if step[middle] <= when:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True)
def make_room(step: Any, value: Floats, count: Any, room: Any, flow: int, oldest: int) -> None:
    """Room for one more change of a flow: forget those that ended before step ``oldest``, or take twice as much of the arrays
    (shape (flows, most that can be needed)), of which what is not taken is not touched and costs no memory."""
    gone = change_before(step[flow], count[flow], oldest)
    if gone > count[flow] // 2 or room[flow] == step.shape[1]:
        count[flow] -= gone
        for k in range(count[flow]):
            step[flow, k], value[flow, k] = step[flow, k + gone], value[flow, k + gone]
    else:
        room[flow] = min(2 * room[flow], step.shape[1])


@njit(cache=True, error_model="numpy")
def steps(
    kind: Any, rtt: Floats, access: Floats, capacity: float, buffer: float, red: bool, h: float, count: int, every: int,
    cycle_start: Floats, first_probe_rtt: Floats, probe_rtt_every: Floats, delayed_timer: bool, early_queue: bool,
    own_delay: bool, v2_start_factor: float, kernel_cubic: bool, rtprop_expires: bool, window: Any, ring_x: int, ring_xmax: int,
    samples: Floats, totals: Floats, flow_totals: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Integrate ``count`` steps of ``h`` ms; see fluid.simulate().

    Args:
        kind, rtt, access, cycle_start, first_probe_rtt, probe_rtt_every: per flow.
        delayed_timer: whether ProbeRTT's timer looks back by the base RTT.
        early_queue: whether the queue that a delivered packet met is looked up by the base RTT, without its wait.
        v2_start_factor: BBRv2's inflight_hi at the start, in 1.25 windows.
        every: steps from one sample to the next.
        window: first step of the totals and the one after their last.
        ring_x, ring_xmax: powers of two, above the longest look back of any term, and of BBRv2's xmax.
        samples, totals, flow_totals: outputs; rows of (t, q, p, x_0, x_1, ...), TOTALS, and per flow FLOW_TOTALS.

    Returns:
        (ENDED_WELL, 0), or (step, flow) at which a rate was no longer finite.
    """
    flows = len(kind)
    # Unsigned, so that no index is tested for being negative.
    mask, mask_xmax = np.uint64(ring_x - 1), np.uint64(ring_xmax - 1)
    # Time first: flows with equal delays look back at neighbours.
    x = np.zeros((ring_x, flows))
    y = np.zeros(ring_x)  # arrival rate at the link
    q = np.zeros(ring_x)
    wait = np.zeros(ring_x)  # queueing delay q / C
    p = np.zeros(ring_x)  # loss that drives the queue, Reno and CUBIC
    pc = np.zeros(ring_x)  # smooth loss, which drives BBRv2 and is reported
    history = np.zeros((ring_x, flows))  # CUBIC: window; BBR: RTprop estimate
    any_v2 = False
    for i in range(flows):
        any_v2 = any_v2 or kind[i] == BBR2
    xmax_history = np.zeros((ring_xmax, flows if any_v2 else 1))

    w, v, s = np.zeros(flows), np.zeros(flows), np.zeros(flows)
    wmax, inflection = np.zeros(flows), np.zeros(flows)
    xmax, xbtl, tmin = np.zeros(flows), np.zeros(flows), rtt.copy()
    whi, wlo, down, cruise = np.zeros(flows), np.zeros(flows), np.zeros(flows), np.ones(flows)
    start, timer, mode = cycle_start.copy(), first_probe_rtt.copy(), np.zeros(flows)
    lowest = np.full(flows, np.inf)
    # Cut to whole steps each for itself, and the access delay rounded: sums of what was cut would be a step off.
    to_link_steps, rtt_steps = np.zeros(flows, dtype=np.int64), np.zeros(flows, dtype=np.int64)
    twice_rtt_steps, since_link_steps = np.zeros(flows, dtype=np.int64), np.zeros(flows, dtype=np.int64)
    # The delayed timer's past, kept while it is due or was so within the last RTT, and RTprop's changes of 10 s.
    ring_rtt = 1
    while ring_rtt < rtt.max() / h + 2:
        ring_rtt *= 2
    mask_rtt = np.uint64(ring_rtt - 1)
    timer_past, mode_past = np.zeros((ring_rtt, flows)), np.zeros((ring_rtt, flows))
    due_first, due_last = np.zeros(flows, dtype=np.int64), np.zeros(flows, dtype=np.int64)
    ten_s_steps = int(round(RTPROP_WINDOW_MS / h))
    rtprop_is_looked_up = count > ten_s_steps  # before, RTprop at the start is what it is compared with
    most = 5 * ten_s_steps // 4 + 64 if rtprop_is_looked_up else 1  # a quarter more than there can be
    rtprop_step, rtprop_value = np.empty((flows, most), dtype=np.int64), np.empty((flows, most))
    rtprop_count, rtprop_room = np.ones(flows, dtype=np.int64), np.full(flows, 64)
    y_0 = 0.0
    for i in range(flows):
        share = rtt[i] * capacity / flows
        to_link_steps[i], rtt_steps[i] = int(round(access[i] / h)), int(rtt[i] / h)
        twice_rtt_steps[i], since_link_steps[i] = int(2.0 * rtt[i] / h), int((rtt[i] - access[i]) / h)
        rtprop_step[i, 0], rtprop_value[i, 0] = 0, rtt[i]
        w[i] = v[i] = wlo[i] = share
        x_0 = share / rtt[i]
        if kind[i] == CUBIC or kind[i] == RENO:
            wmax[i] = 1.1 * share
            inflection[i] = -1.0
            history[:, i] = share
        else:
            xmax[i] = xbtl[i] = share / (rtt[i] if own_delay else rtt[0])
            history[:, i] = rtt[i]
            whi[i] = v2_start_factor * 1.25 * share
            if kind[i] == BBR1:
                w[i] = xbtl[i] * rtt[i]
                x_0 = w[i] / rtt[i]
            if any_v2:
                xmax_history[:, i] = xmax[i]
        x[:, i] = x_0
        y_0 += x_0
        samples[0, 3 + i] = x_0
    y[:] = y_0

    row, until_sample = 1, every
    queue = 0.0
    for n in range(1, count + 1):
        t = n * h
        now = np.uint64(n) & mask
        before = np.uint64(n - 1) & mask
        arriving = 0.0
        for i in range(flows):
            arriving += x[np.uint64(n - to_link_steps[i]) & mask, i]
        y[now] = arriving
        queue = min(max(queue + h * ((1.0 - p[before]) * arriving - capacity), 0.0), buffer)
        q[now] = queue
        wait[now] = queue / capacity
        loss, smooth_loss = 0.0, 0.0
        if red:
            loss = smooth_loss = queue / buffer
        elif arriving > capacity:
            excess = 1.0 - capacity / arriving
            if queue == buffer:
                loss = excess
            smooth_loss = excess * (queue / buffer) ** 100
        p[now], pc[now] = loss, smooth_loss
        counted = window[0] <= n < window[1]
        if counted:
            totals[0] += 1.0
            totals[1] += arriving
            totals[2] += smooth_loss * arriving
            totals[3] += queue
            totals[4] += 1.0 if queue > 0.0 else min(arriving / capacity, 1.0)

        for i in range(flows):
            tau = rtt[i] + wait[now]
            at_rtt = np.uint64(n - rtt_steps[i]) & mask
            tau_then = rtt[i] + wait[at_rtt]
            back = int(tau_then / h)
            sent_then = np.uint64(n - back) & mask
            at_link = np.uint64(n - int((tau_then - access[i]) / h)) & mask
            x_then = x[sent_then, i]
            delivered = x_then
            at_queue = np.uint64(n - since_link_steps[i]) & mask if early_queue else at_link
            if y[at_link] >= capacity or q[at_queue] > 0.0:
                delivered = x_then * capacity / y[at_link]

            if kind[i] == RENO:
                w[i] = max(w[i] + h * (x_then * (1.0 - p[at_link]) / w[i] - x_then * p[at_link] * w[i] / 2.0), 1.0)
                rate = w[i] / tau
            elif kind[i] == CUBIC:
                if p[at_link] >= 1e-6:
                    wmax[i] += h * (history[np.uint64(n - twice_rtt_steps[i]) & mask, i] - wmax[i])
                    s[i] += h * (1.0 - s[i])
                    inflection[i] = -1.0
                else:
                    s[i] += h
                if inflection[i] < 0.0:
                    inflection[i] = ((0.3 if kernel_cubic else 0.7) * wmax[i] / 0.4) ** (1 / 3)
                offset = 0.0 if kernel_cubic else 2.0
                w[i] = 0.4 * (s[i] / 1000.0 + offset - inflection[i]) ** 3 + wmax[i]
                if kernel_cubic:
                    w[i] = max(w[i], 1.0)
                history[now, i] = w[i]
                rate = w[i] / tau
            else:
                probed, left = mode[i] > 0.5, timer[i]
                timer[i] -= h
                if delayed_timer:
                    if timer[i] <= 0.0 or due_last[i] > 0:
                        then, last = np.uint64(n - rtt_steps[i]) & mask_rtt, np.uint64(n) & mask_rtt
                        if due_last[i] == 0:
                            due_first[i] = n
                        elif n - rtt_steps[i] >= due_first[i] and timer_past[then, i] <= 0.0:
                            past = change_before(rtprop_step[i], rtprop_count[i], n - ten_s_steps)
                            aim = 1.0 - mode_past[then, i] if tmin[i] >= rtprop_value[i, past] else 0.0
                            longest = probe_rtt_every[i]
                            timer[i] = left + h * (longest - (longest - PROBE_RTT_MS) * aim - left - 1.0)
                            mode[i] += h * (aim - mode[i])
                        if timer[i] <= 0.0:
                            due_last[i] = n
                        elif n - due_last[i] > rtt_steps[i]:
                            due_last[i] = 0
                        timer_past[last, i], mode_past[last, i] = timer[i], mode[i]
                elif timer[i] <= 0.0:
                    past = change_before(rtprop_step[i], rtprop_count[i], n - ten_s_steps)
                    starts = not probed and tmin[i] >= rtprop_value[i, past]
                    mode[i], timer[i] = (1.0, PROBE_RTT_MS) if starts else (0.0, probe_rtt_every[i])
                probing = mode[i] > 0.5
                if probing and not probed:
                    lowest[i] = np.inf
                if probed and not probing and rtprop_expires:
                    tmin[i] = lowest[i]
                rtprop = history[at_rtt, i]
                t_cycle = t - start[i]
                rise = tmin[i] - tau_then
                tmin[i] -= h * rise * sigmoid(SHARP * rise)
                if rtprop_is_looked_up and tmin[i] != history[before, i]:
                    if rtprop_count[i] == rtprop_room[i]:
                        make_room(rtprop_step, rtprop_value, rtprop_count, rtprop_room, i, n - ten_s_steps)
                    rtprop_step[i, rtprop_count[i]], rtprop_value[i, rtprop_count[i]] = n, tmin[i]
                    rtprop_count[i] += 1
                history[now, i] = tmin[i]
                old_btl, old_max = xbtl[i], xmax[i]
                above = delivered - old_max
                if probing:
                    lowest[i] = min(lowest[i], tau_then)
                else:
                    xmax[i] += h * (5.0 * above * sigmoid(SHARP * above) - sigmoid(SHARP * (10.0 - t_cycle)) * old_max)
                if kind[i] == BBR1:
                    cycle = 8.0 * rtprop
                    if not probing:  # the maximum is this step's
                        xbtl[i] += h * sigmoid(SHARP * (t_cycle - cycle + 10.0)) * (xmax[i] - old_btl)
                    w[i] = 2.0 * math.ceil(old_btl * rtprop)
                    probe_window = PROBE_RTT_WINDOW
                    slot = i % 6
                    gain = 1.0
                    since_up = SMOOTH * (t_cycle - slot * rtprop)
                    if since_up > -NEGLIGIBLE and since_up < SMOOTH * 2.0 * rtprop + NEGLIGIBLE:
                        edge = t_cycle - (slot + 1) * rtprop
                        gain += 0.25 * sigmoid(since_up) * sigmoid(-SMOOTH * edge)
                        gain -= 0.25 * sigmoid(SMOOTH * edge) * sigmoid(SMOOTH * ((slot + 2) * rtprop - t_cycle))
                    if not probing:
                        v[i] += h * (x[before, i] - delivered)
                    if t_cycle >= cycle:
                        start[i] = t
                else:
                    cycle = min(2000.0 + 1000.0 * i / flows, 63.0 * rtprop)
                    xmax_history[np.uint64(n) & mask_xmax, i] = xmax[i]
                    if down[i] == 1.0 and not probing:
                        xbtl[i] = max(xmax[i], xmax_history[np.uint64(n - int(cycle / h)) & mask_xmax, i])
                    bdp = old_btl * rtprop
                    probe_window = bdp / 2.0
                    if not probing:
                        v[i] += h * (min(bdp, 0.85 * whi[i]) - v[i] if cruise[i] == 1.0 else x[before, i] - delivered)
                    hi, lo, cruising = whi[i], wlo[i], cruise[i]
                    too_high = pc[at_link] >= TOO_HIGH
                    growth = 0.0
                    if cruising == 0.0 and t_cycle >= rtprop:
                        growth = sigmoid(SMOOTH * (v[i] - hi))
                        if growth > 0.0:
                            growth *= 2.0 ** (t_cycle / rtprop)
                    if too_high and cruising == 0.0:
                        growth -= 0.3 / rtt[i] * hi
                    whi[i] = max(hi + h * growth, 1.15 * (xbtl[i] * rtprop))  # the bandwidth is this step's
                    if cruising == 0.0:
                        wlo[i] = whi[i]
                    elif too_high:
                        wlo[i] = lo + h * math.log(0.9) / rtt[i] * lo
                    if cruising == 0.0 and down[i] == 0.0 and t_cycle >= rtprop:
                        if v[i] >= UP_EXIT * bdp or too_high:
                            down[i] = 1.0
                    elif down[i] == 1.0 and (v[i] <= min(bdp, 0.85 * hi) or t_cycle >= 10.0 * rtprop):
                        down[i] = 0.0
                        cruise[i] = 1.0
                    if t_cycle >= cycle:
                        start[i] = t
                        cruise[i] = down[i] = 0.0
                    up = (1.0 - cruising) * (1.0 - down[i]) * sigmoid(SHARP * (t_cycle - rtprop))
                    w[i] = min(2.0 * math.ceil(bdp), lo, (1.0 - 0.15 * cruising) * hi)
                    gain = 1.0 + 0.25 * up - 0.25 * down[i]
                if probing:
                    v[i] += h * (probe_window - v[i])
                    rate = v[i] / tau
                else:
                    rate = min(w[i] / tau_then, xbtl[i] * gain)

            if not (abs(rate) < 1e300):
                return n, i
            x[now, i] = rate
            if counted:
                flow_totals[i, 0] += rate
                flow_totals[i, 1] += delivered

        until_sample -= 1
        if until_sample == 0:
            until_sample = every
            samples[row, 0] = t
            samples[row, 1] = queue
            samples[row, 2] = loss
            for i in range(flows):
                samples[row, 3 + i] = x[now, i]
            row += 1
    return ENDED_WELL, 0
