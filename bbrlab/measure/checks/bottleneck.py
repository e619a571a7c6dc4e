"""Checks of a bottleneck's rate and buffer: by a burst before the experiment, and by its queue during it."""

from __future__ import annotations

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.experiment.report import Burst
from bbrlab.measure.checks.check import Check, Tolerance, not_checked, suffix_of
from bbrlab.measure.lateness import EDGE_TOLERANCE_S
from bbrlab.measure.queues import Queue
from bbrlab.scenario.frames import frame_memory_bytes
from bbrlab.scenario.rates import highest_mbit, rates_at
from bbrlab.scenario.schema import Scenario

BUSY_RATE_TOLERANCE = 0.005
MIN_BUSY_INTERVALS = 10
SEGMENT_BYTES = 70_000  # more than 64 KiB in a segment and the headers of all its packets, as tc counts them
DROPS_WAITING = ("codel", "fq_codel", "cake", "dualpi2")  # packets that wait; the others drop what comes
FQ_CODEL_DROP_BATCH = 64  # net/sched/sch_fq_codel.c, drop_batch_size
SKB_BYTES, DATA_ENDS_BYTES = (
    256,
    352,
)  # struct sk_buff; what else stands where data lies, struct skb_shared_info for the most part
FQ_FAST_PATH = 8  # net/sched/sch_fq.c, fq_fastpath_check()
# What a queue holds beyond its limit: fq's first packets; and the one that tbf, where the rate changes, has taken out of CAKE's
# memory until it may leave (the others count such a packet as theirs).
BEYOND_LIMIT_PACKETS = {"fq": FQ_FAST_PATH, "cake": 1}


def burst_checks(scenario: Scenario, bottleneck: str, burst: Burst | None, tolerance: Tolerance) -> list[Check]:
    """``rate`` and ``buffer``: how fast an overflowing burst leaves, and how much of it was held."""
    rate, limit, frame = scenario.network.rate_mbit, scenario.network.buffer_bytes, scenario.network.frame_bytes
    names = ("rate" + suffix_of(bottleneck), "buffer" + suffix_of(bottleneck))
    if burst is None:
        why = f"{scenario.network.qdisc.kind} drops a burst before the buffer is full"
        return [not_checked(names[0], rate, why), not_checked(names[1], limit, why)]
    low, high, how = _buffer_bounds(scenario, limit)
    low -= int(tolerance.burst_s * rate * 1e6 / 8)
    # The burst should overflow the buffer, but did not; in virtual time, where a burst takes no time, that is an error.
    carried_off = bool(tolerance.burst_s) and not burst["filled"] and burst["packets"] * frame > high
    carried_words = "in real time the link carried packets away while the burst was sent: the buffer was never full"
    if scenario.network.opportunities:
        what = "has grants only" if scenario.network.grants_ms else "follows a trace"
        checks = [not_checked(names[0], None, f"the link {what} from the start on; busy_rate compares them")]
    elif burst["rate_bps"] is None:
        why = carried_words if carried_off else "the buffer holds too few packets to time their departures"
        checks = [not_checked(names[0], rate, why)]
    else:
        measured = burst["rate_bps"] / 1e6
        ok = abs(measured / rate - 1) <= tolerance.rate
        leaves = "Mbit/s at which a burst leaves the bottleneck before the experiment"
        checks = [Check(names[0], rate, round(measured, 6), ok, leaves)]
    if carried_off and burst["buffer_bytes"] <= high:
        return [*checks, not_checked(names[1], limit, carried_words, burst["buffer_bytes"])]
    if not burst["filled"]:  # a buffer too large to be filled before every experiment: all that was sent must be there
        low, how = int(0.9 * (burst["packets"] - 3) * frame), "bytes of a burst that all fit"
    size = burst["buffer_bytes"]
    return [*checks, Check(names[1], limit, size, low <= size <= high, how)]


def _buffer_bounds(scenario: Scenario, limit: int) -> tuple[int, int, str]:
    """What an overflowing burst of one flow may leave in the buffer, in bytes, and why."""
    qdisc, frame = scenario.network.qdisc, scenario.network.frame_bytes
    packets = limit // frame
    if qdisc.kind == "fifo":  # one that overflowed holds its limit less at most one frame
        return limit - frame + 1, limit, "bytes that an overflowing burst leaves in the buffer"
    if qdisc.kind == "fq_codel":  # overflowing, it drops up to 64 packets of the longest queue at once
        low = (packets - FQ_CODEL_DROP_BATCH) * frame
        return low, limit, "bytes left of an overflowing burst, of which fq_codel drops up to 64 packets at once"
    if qdisc.kind == "cake":  # it counts memory, of which the burst's packets take other amounts than TCP's
        held = packets * frame_memory_bytes(scenario.network.payload_bytes) // _burst_memory_bytes(scenario)
        return (held - 1) * frame, max(held, packets) * frame, "bytes that an overflowing burst leaves in the buffer"
    if qdisc.kind == "fq":  # its first packets do not count against the limit of a flow
        packets = min(packets, qdisc.flow_limit_packets or packets)
        high = (packets + FQ_FAST_PATH) * frame
        return packets * frame, high, "bytes that an overflowing burst leaves; fq lets 8 packets more in"
    return (packets - 1) * frame, packets * frame, "bytes that an overflowing burst leaves in the buffer"


def _burst_memory_bytes(scenario: Scenario) -> int:
    """skb->truesize of a UDP packet of the burst: struct sk_buff, and data of a power of two (its headers and ends included)."""
    return SKB_BYTES + (1 << (scenario.network.frame_bytes + DATA_ENDS_BYTES - 1).bit_length())


def queue_checks(scenario: Scenario, bottleneck: str, queue: Queue, tolerance: Tolerance) -> list[Check]:
    """``queue_peak`` and ``busy_rate``: no backlog beyond the buffer, no more carried than the rate allows."""
    limit, frame = scenario.network.buffer_bytes, scenario.network.frame_bytes
    columns, times = queue.columns, queue.columns["time_s"]
    names = ("queue_peak" + suffix_of(bottleneck), "busy_rate" + suffix_of(bottleneck))
    if len(times):
        room = limit + BEYOND_LIMIT_PACKETS.get(scenario.network.qdisc.kind, 0) * frame
        largest = int(columns["bytes"].max())
        peak = Check(names[0], limit, largest, largest <= room, "largest backlog sampled, bytes")
    else:
        peak = not_checked(names[0], limit, "no sample of the queue")
    busy = (columns["bytes"][:-1] > 2 * frame) & (columns["bytes"][1:] > 2 * frame) & (np.diff(times) > 0)
    trace = scenario.network.opportunities
    rates = rates_at(scenario.network, times + EDGE_TOLERANCE_S)
    if trace is None:
        busy &= rates[:-1] == rates[1:]
    if busy.sum() < MIN_BUSY_INTERVALS:
        why = (
            f"the queue was busy at both ends of {int(busy.sum())} sampling intervals, {MIN_BUSY_INTERVALS} are needed"
        )
        return [peak, not_checked(names[1], 1.0, why)]
    # A queue can run empty between two samples; what cannot be is a link that carries more than its rate, but for one
    # packet in each stretch of busy intervals, which counts as sent when it begins to leave.
    carried = np.diff(columns["sent_bytes"])[busy] * 8e-6
    possible = (rates[:-1] * np.diff(times))[busy].sum()
    if trace is not None:
        possible = (np.diff(trace.count(times)) * trace.bytes * 8e-6)[busy].sum()
        if not possible:
            return [peak, not_checked(names[1], 1.0, "no time to send lies in an interval with a queue at both ends")]
    measured = float(carried.sum() / possible)
    how = "bytes carried while the queue was busy, over what the rate allows"
    stretches = busy[0] + int((busy[1:] & ~busy[:-1]).sum())
    most = 1 + max(BUSY_RATE_TOLERANCE, tolerance.rate) + stretches * _at_once_bytes(scenario) * 8e-6 / possible
    return [peak, Check(names[1], 1.0, round(measured, 6), bool(measured <= most), how)]


def sends_check(scenario: Scenario, bottleneck: str, queue: Queue, tolerance: Tolerance) -> Check:
    """``queue_sends``: a link with a queue that waits carries what its rate allows.

    Between two samples at least what waited at the first leaves, or all that the rate allows (the least, if it changes there).
    While every interval has more waiting than it can carry, the link never rests, and what was missing adds up: so a rate
    below one packet an interval is checked, too. What may be missing: two packets, as one is under way at either end, and
    one more where the rate changes, since that limiter takes a packet out of some queues before it may leave.
    """
    name, columns = "queue_sends" + suffix_of(bottleneck), queue.columns
    times = columns["time_s"]
    changing = any(c.rate_mbit is not None for c in scenario.network.changes)
    allowed = (3 if changing else 2) * _at_once_bytes(scenario)
    allowed += round(tolerance.rest_s * highest_mbit(scenario.network) * 1e6 / 8)
    possible = _least_mbit(scenario, times) * 1e6 / 8 * np.diff(times) * (1 - max(BUSY_RATE_TOLERANCE, tolerance.rate))
    if trace := scenario.network.opportunities:  # to a packet: one may be larger than what an opportunity has left
        possible = np.diff(trace.count(times)) * float(trace.bytes)
    waiting = columns["bytes"][:-1].astype(float)
    if scenario.network.qdisc.kind in DROPS_WAITING:
        waiting = np.maximum(waiting - np.diff(columns["drops"]) * _packet_bytes(scenario), 0)
    if not (waiting > 0).any():
        return not_checked(name, allowed, "no queue was ever waiting")
    missing = np.minimum(possible, waiting) - np.diff(columns["sent_bytes"])
    worst, low, high = _largest_sum(missing, waiting >= possible)
    how = f"bytes that a waiting queue did not send, though the rate allows them, from {times[low]:g} to {times[high]:g} s"
    return Check(name, allowed, round(max(worst, 0)), bool(worst <= allowed), how)


def _least_mbit(scenario: Scenario, times_s: Array) -> Array:
    """The least rate between each two samples."""
    rates = rates_at(scenario.network, times_s + EDGE_TOLERANCE_S)
    least: Array = np.minimum(rates[:-1], rates[1:])
    for change in scenario.network.changes:
        index = int(np.searchsorted(times_s, change.at_s)) - 1
        if change.rate_mbit is not None and 0 <= index < len(least):
            least[index] = min(least[index], change.rate_mbit)
    return least


def _largest_sum(values: Array, joined: Array) -> tuple[float, int, int]:
    """The largest sum of consecutive values, and of which: from, to (exclusive). Values that are not joined stand alone."""
    worst, span = float(values[0]), (0, 1)
    total, start = 0.0, 0
    for i, value in enumerate(values.tolist()):
        if total <= 0 or not (joined[i] and joined[i - 1]):
            total, start = 0.0, i
        total += value
        if total > worst:
            worst, span = total, (start, i + 1)
    return worst, *span


def _at_once_bytes(scenario: Scenario) -> int:
    """What leaves at one instant at most."""
    trace = scenario.network.opportunities
    return max(_packet_bytes(scenario), trace.bytes if trace else 0)


def _packet_bytes(scenario: Scenario) -> int:
    """The largest packet in the queue."""
    return SEGMENT_BYTES if scenario.hosts.segmentation == "router" else scenario.network.frame_bytes
