"""What a testbed looks like by its recordings: RTT, rate, buffer, loss and algorithms, each with the evidence, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.results.algorithm_table import ALGORITHMS, label_of_cca
from bbrlab.scenario.frames import (
    FRAME_BYTES,
    IP_HEADER_BYTES,
    IP_VERSION,
    LINK_HEADER_BYTES,
    PAYLOAD_BYTES,
    TCP_HEADER_BYTES,
)
from bbrlab.scenario.schema import MAX_STREAMS
from bbrlab.scenario.windows import CONTROL_RTTS
from bbrlab_apps.testbed.fingerprint import (
    CUTS,
    FINE_S,
    FLOOR_PACKETS,
    PERIOD_1_S,
    PERIODS_23_S,
    Fingerprint,
    fingerprint_of,
)
from bbrlab_apps.testbed.recording import Flow, Recording, is_there
from bbrlab_apps.testbed.stated import CALLED, stated_in

WIRE_BYTES = 24  # of Ethernet on the wire beside a frame: preamble, check sum, gap
ETHERNET_MBIT = (10, 100, 1000, 2500, 10_000)
ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7.5, 8, 9)  # what people set as a rate, times a power of ten
ROUND_BY = (
    -0.03,
    0.01,
)  # how far from it a rate may be that is taken for it: ProbeRTT and losses take some, nothing adds
BINS = 40  # of a rate over time
STEADY = 0.8  # of the best quarter's rate, which a link has in each quarter that is full all the time
WINDOW = 0.2  # of the time in which all flows are there, before the metrics begin
TOGETHER_S = 1.0  # flows that begin closer than that begin together: iperf3 tells whole seconds
SAME_DATA = 0.02  # by how much what two tools count of one flow differs, at most
COMMON = 0.5  # of the longer recording of one flow that the other has, too, at least
FULL = 0.05  # of the base RTT that a queue adds at least, where the link was full
FULL_MS = 1.0


@dataclass(frozen=True)
class Finding:
    """A sentence of what something looks like: what of, what it is, and by what."""

    what: str
    value: str
    evidence: str


@dataclass(frozen=True)
class Group:
    """Flows that look alike: of one file, algorithm, begin, direction and RTT."""

    recording: Recording
    flows: list[Flow]
    cca: str  # of the lab
    # start_s, stop_s: of their data, on the clock of all files; stop_s is None where they last to the end
    start_s: float
    stop_s: float | None
    reverse: bool
    rtt_ms: float  # the smallest that there was; NaN if no file says
    # The same in the lab, on whose clock iperf3 starts and stops
    lab_start_s: float = 0.0
    lab_stop_s: float | None = None


@dataclass(frozen=True)
class Estimate:
    """What recordings look like."""

    groups: list[Group]
    rtt_ms: float
    own_rtts: bool  # whether groups have RTTs of their own; else all have rtt_ms
    rate_mbit: float
    buffer_bdp: float  # of rate_mbit x rtt_ms
    loss: float
    ip_version: Literal[4, 6]
    duration_s: float
    window_s: tuple[float, float]
    findings: list[Finding] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)  # of what files show with what they or their names say
    assumed: list[str] = field(default_factory=list)  # what no file says


def estimate_from(
    recordings: Sequence[Recording], ccas: Mapping[str, str] | None = None, rtt_ms: float | None = None
) -> Estimate:
    """What recordings look like. UserError if no file has an RTT, or a flow has an algorithm that the lab lacks.

    Args:
        ccas: algorithms of groups in place of what they look like, by the groups' names (``flows.1``).
        rtt_ms: the network's RTT in place of the smallest; the buffer is by how much RTTs rose above it.
    """
    estimate = Estimate([], math.nan, False, math.nan, math.nan, 0.0, IP_VERSION, math.nan, (math.nan, math.nan))
    _check_one_test(recordings)
    groups = _groups(recordings, estimate)
    chosen = [(ccas or {}).get(f"flows.{i}", "") for i in range(len(groups))]
    groups = [_with_algorithm(g, i, estimate, chosen[i]) for i, g in enumerate(groups)]
    named_in_vain = _named_in_vain(recordings, groups, chosen)
    groups = [replace(g, cca=cca or g.cca) for g, cca in zip(groups, chosen, strict=True)]
    end_s = max(at + flow.end_s for at, flow in _on_one_clock(recordings))
    groups = [replace(g, stop_s=g.stop_s if g.stop_s and g.stop_s < 0.98 * end_s else None) for g in groups]
    begin_s = max((g.start_s for g in groups if g.start_s < end_s / 2), default=0.0)
    zeros = zip(recordings, _zeros_s(recordings), strict=True)
    omitted = [at + one.omitted_s for one, at in zeros if one.omitted_s and at + one.start_s < end_s / 2]
    window_s = (round(max([begin_s + WINDOW * (end_s - begin_s), *omitted]), 1), math.floor(end_s * 10) / 10)
    estimate = replace(estimate, groups=groups, duration_s=math.ceil(end_s), window_s=window_s)
    if window_s[1] - window_s[0] < 1:
        without = ", with what iperf3 omits (-O)" if omitted else ""
        raise UserError(f"the files are of {end_s:.3g} s{without}: at least 2 s are needed to say anything")
    estimate.contradictions.extend(named_in_vain)
    estimate = _rtt(estimate, recordings, rtt_ms)
    estimate = _on_the_labs_clock(estimate)
    estimate = _ip_version(estimate)
    estimate, is_full = _rate(estimate, recordings)
    estimate = _buffer_and_loss(estimate, is_full)
    estimate.assumed.extend(_perhaps_twice(recordings))
    if not any(flow.of_receiver for g in groups for flow in g.flows):
        estimate.assumed.append(
            "goodput is what the sender's side says, which is ahead of the receiver by what is under way"
        )
    estimate.assumed.append(
        "the queue is FIFO, the hosts cut segments in their network cards, nothing else crosses the path"
    )
    return estimate


def _on_one_clock(recordings: Sequence[Recording]) -> list[tuple[float, Flow]]:
    """Each flow, and when its file's clock was 0 on that of all files."""
    zeros = zip(recordings, _zeros_s(recordings), strict=True)
    return [(at, flow) for one, at in zeros for flow in one.flows]


def _zeros_s(recordings: Sequence[Recording]) -> list[float]:
    """When each file's clock was 0, on that of all files, which begins with the first data."""
    stamps = [one.epoch_s for one in recordings if one.epoch_s is not None]
    if len(recordings) == 1 or len(stamps) < len(recordings):
        return [-one.start_s for one in recordings]
    begin = min(stamp + one.start_s for stamp, one in zip(stamps, recordings, strict=True))
    return [stamp - begin for stamp in stamps]


def _check_one_test(recordings: Sequence[Recording]) -> None:
    """UserError if a file begins when all before it have ended."""
    spans = [
        (at + one.start_s, at + one.end_s, one.file) for one, at in zip(recordings, _zeros_s(recordings), strict=True)
    ]
    spans.sort()
    for i, (start_s, _, file) in enumerate(spans[1:], 1):
        _, end_s, last = max(spans[:i], key=lambda span: span[1])
        if start_s > end_s - TOGETHER_S:
            when = f"{start_s - end_s:.0f} s after" if start_s - end_s >= TOGETHER_S else "when"
            if file == last:
                raise UserError(f"{file}: a test in it begins {when} the one before ends: keep one of them in the file")
            raise UserError(f"{file} begins {when} {last} ends: they are not of one test; give them one by one")


def _perhaps_twice(recordings: Sequence[Recording]) -> list[str]:
    """Files of two tools that may be of one test: flows of theirs got the same at the same time, and have no ends to tell them by.

    It is asked, not decided: different flows that share a link fairly get the same, too.
    """
    files = list(zip(recordings, _zeros_s(recordings), strict=True))
    asked = []
    for (one, at), (two, at_two) in combinations(files, 2):
        same = [a for a in one.flows if any(_may_be_one((at, a), (at_two, b)) for b in two.flows)]
        if same and one.kind != two.kind:
            asked.append(
                f"{one.file} and {two.file} are of different flows, though {number_of(len(same), 'flow')} of each got the same "
                "at the same time; if they are of one test, leave one of them out"
            )
    return asked


def _may_be_one(one: tuple[float, Flow], two: tuple[float, Flow]) -> bool:
    """Whether two flows, each with the time of its clock's 0, may be one: what they got while both were there is the same."""
    (at, a), (at_two, b) = one, two
    edges = np.array([max(at + a.start_s, at_two + b.start_s), min(at + a.end_s, at_two + b.end_s)])
    longer_s = max(a.end_s - a.start_s, b.end_s - b.start_s)
    if (a.ends and b.ends) or a.reverse != b.reverse or np.diff(edges) < COMMON * longer_s:
        return False
    return math.isclose(*(float(rates_between([flow], edges)[0]) for flow in (one, two)), rel_tol=SAME_DATA)


def _groups(recordings: Sequence[Recording], estimate: Estimate) -> list[Group]:
    groups: list[Group] = []
    if len(recordings) > 1 and any(one.epoch_s is None for one in recordings):
        estimate.assumed.append("all files begin together: not each says when it began")
    clock = _on_one_clock(recordings)
    of = [one for one in recordings for _ in one.flows]
    reverse_all = all(flow.reverse for _, flow in clock)
    for one, (at, flow) in zip(of, clock, strict=True):
        start_s, rtt_ms = max(0.0, at + flow.start_s), base_rtt_ms(flow)
        for i, group in enumerate(groups):
            same = (
                group.recording is one
                and group.flows[0].cca == flow.cca
                and group.reverse == (flow.reverse and not reverse_all)
            )
            if same and abs(group.start_s - start_s) <= TOGETHER_S and not _other_rtt(group.flows[0], flow):
                stop_s = max(group.stop_s or 0.0, at + flow.end_s)
                smallest = float(np.nanmin([group.rtt_ms, rtt_ms])) if is_there(rtt_ms) else group.rtt_ms
                groups[i] = replace(group, flows=[*group.flows, flow], stop_s=stop_s, rtt_ms=smallest)
                break
        else:
            groups.append(Group(one, [flow], "", start_s, at + flow.end_s, flow.reverse and not reverse_all, rtt_ms))
    first = min(g.start_s for g in groups)
    return [replace(g, start_s=0.0 if g.start_s - first <= TOGETHER_S else round(g.start_s - first, 1)) for g in groups]


def has_kernels_minimum(flow: Flow) -> bool:
    """Whether the file has the smallest RTT that the kernel met, beside smoothed ones."""
    return bool(flow.samples["min_rtt_ms"].notna().any())


def base_rtt_ms(flow: Flow) -> float:
    """The smallest RTT of a flow, which its base RTT is at most; NaN if there is none.

    The time that a packet takes at the bottleneck is not taken off: limiters of testbeds (tbf, HTB) let a lone packet pass at once.
    """
    smallest = flow.samples[["min_rtt_ms", "rtt_ms"]].min()
    return float(smallest.min())


def _other_rtt(one: Flow, two: Flow) -> bool:
    """Whether two flows have base RTTs that differ; smoothed ones are above theirs, and tell it from farther apart only."""
    a, b = base_rtt_ms(one), base_rtt_ms(two)
    kernels = has_kernels_minimum(one) and has_kernels_minimum(two)
    return abs(a - b) > max(0.10 * min(a, b), 1.0) if kernels else abs(a - b) > max(0.25 * min(a, b), 2.0)


def _rtt(estimate: Estimate, recordings: Sequence[Recording], known_ms: float | None) -> Estimate:
    pings = [ping for one in recordings for ping in one.ping_ms]
    with_rtts = [g for g in estimate.groups if is_there(g.rtt_ms)]
    measured = [g.rtt_ms for g in with_rtts]
    if known_ms is None and not measured and not pings:
        raise UserError(
            "no file has an RTT: record at the sender, with iperf3 -J or ss -tin, or say what you know, as in --set network.rtt_ms=40"
        )
    smallest = float(f"{min([*measured, *pings], default=math.inf):.3g}")
    kernels = any(has_kernels_minimum(f) for g in estimate.groups for f in g.flows)
    if known_ms is not None:
        how = "set by you"
        if known_ms > smallest:
            estimate.contradictions.append(
                f"you say an RTT of {known_ms:g} ms, and the files have one of {smallest:g} ms"
            )
        smallest = known_ms
    elif pings and smallest == min(pings):
        how = f"the smallest of {number_of(len(pings), 'ping')}"
    elif kernels:
        how = "the smallest RTT that the kernel met"
    else:
        how = "the smallest smoothed RTT, which is above the path's if the queue was never empty"
    own = any(_other_rtt(with_rtts[0].flows[0], g.flows[0]) for g in with_rtts[1:])
    groups = [_with_some_rtt(g, smallest, estimate) if own and not is_there(g.rtt_ms) else g for g in estimate.groups]
    apart = f"; the groups have {', '.join(f'{g.rtt_ms:.3g}' for g in groups)} ms" if own else ""
    estimate.findings.insert(0, Finding("RTT", f"{smallest:g} ms", how + apart))
    for one in recordings:
        for said_ms, words in stated_in(one).rtts_ms:
            rtts_ms = [g.rtt_ms for g in estimate.groups if g.recording is one and is_there(g.rtt_ms)] or [smallest]
            if any(abs(said_ms - ms) <= max(0.15 * said_ms, 2.0) for ms in rtts_ms):
                continue
            if said_ms > max(rtts_ms) or kernels:
                estimate.contradictions.append(f"{one.file}: {words}, and {how.split(',')[0]} is {min(rtts_ms):.3g} ms")
    return replace(estimate, groups=groups, rtt_ms=smallest, own_rtts=own)


def _with_some_rtt(group: Group, smallest_ms: float, estimate: Estimate) -> Group:
    """A group of a file without RTTs of its flows, beside groups of unlike RTTs: with its file's pings', else the smallest of all."""
    rtt_ms = min(group.recording.ping_ms, default=smallest_ms)
    by = "of its pings" if group.recording.ping_ms else "of all files"
    estimate.assumed.append(
        f"the flows of {group.recording.file} have an RTT of {rtt_ms:.3g} ms, the smallest {by}: the file has none of theirs"
    )
    return replace(group, rtt_ms=rtt_ms)


def _on_the_labs_clock(estimate: Estimate) -> Estimate:
    """When iperf3 has to start in the lab so that data begin as far apart as in the files: it first opens connections, each in a
    round trip through the queue that there is then."""
    rtts_ms = [_first_rtt_ms(g, g.rtt_ms if estimate.own_rtts else estimate.rtt_ms) for g in estimate.groups]
    rounds = [CONTROL_RTTS + min(len(g.flows), MAX_STREAMS) for g in estimate.groups]
    takes_s = [n * rtt_ms * 1e-3 for n, rtt_ms in zip(rounds, rtts_ms, strict=True)]
    ahead_s = min(t for g, t in zip(estimate.groups, takes_s, strict=True) if not g.start_s)
    groups = []
    for i, g in enumerate(estimate.groups):
        start_s = max(0.0, round(g.start_s + ahead_s - takes_s[i], 1)) if g.start_s else 0.0
        stop_s = None if g.stop_s is None else round(min(g.stop_s + ahead_s, estimate.duration_s), 1)
        groups.append(replace(g, lab_start_s=start_s, lab_stop_s=stop_s))
        if g.start_s:
            how = f"for data at {g.start_s:g} s: iperf3 first takes {rounds[i]} RTTs, of {rtts_ms[i]:.3g} ms then; the clock begins {ahead_s:.2g} s before the first data"
            estimate.findings.append(Finding(f"flows.{i}", f"start_s {start_s:g}", how))
    return replace(estimate, groups=groups)


def _first_rtt_ms(group: Group, base_ms: float) -> float:
    """The RTT when a group begins: what the files say of late ones, and that of an empty path for the first."""
    first = [float(f.samples["rtt_ms"].bfill().iloc[0]) for f in group.flows]
    return float(np.mean(first)) if group.start_s and all(map(is_there, first)) else base_ms


def _ip_version(estimate: Estimate) -> Estimate:
    versions = {flow.ip_version for group in estimate.groups for flow in group.flows}
    if 6 not in versions:
        return estimate
    if len(versions) > 1:
        estimate.assumed.append(
            "all packets are of IPv4, where some flows are of IPv6: a path of the lab has one of them"
        )
        return estimate
    estimate.findings.append(Finding("packets", "IPv6", "all flows go to addresses of it"))
    return replace(estimate, ip_version=6)


def rate_over_time(
    flows: Sequence[tuple[float, Flow]], begin_s: float, end_s: float, bins: int = BINS
) -> tuple[Array, Array]:
    """The sum of flows' goodput in bins between two times.

    Args:
        flows: each with the time of its clock's 0.

    Returns:
        The middles of the bins (s), and Mbit/s in each.
    """
    steps = [float(flow.samples["seconds"].median()) for _, flow in flows]
    wide_s = max((end_s - begin_s) / bins, 2 * max(steps, default=0.0))
    edges = np.linspace(begin_s, end_s, max(2, round((end_s - begin_s) / wide_s) + 1))
    return (edges[:-1] + edges[1:]) / 2, rates_between(flows, edges)


def rates_between(flows: Sequence[tuple[float, Flow]], edges: Array) -> Array:
    """The sum of flows' goodput (Mbit/s) between each two of some times (s), by what they had by then."""
    total = np.zeros(len(edges) - 1)
    for at, flow in flows:
        table = flow.samples
        times = np.concatenate([[flow.start_s], table["time_s"].to_numpy()]) + at
        sent = np.concatenate([[0.0], (table["goodput_mbit"].fillna(0) * table["seconds"]).cumsum().to_numpy()])
        total += np.diff(np.interp(edges, times, sent))
    return total / np.diff(edges)


def clock_of(group: Group) -> float:
    """When a group's file's clock was 0, on that of all files."""
    return group.start_s - min(flow.start_s for flow in group.flows)


def _rate(estimate: Estimate, recordings: Sequence[Recording]) -> tuple[Estimate, bool]:
    forward = [g for g in estimate.groups if not g.reverse]
    flows = [(clock_of(g), f) for g in forward for f in g.flows]
    _, rates = rate_over_time(flows, *estimate.window_s)
    typical, top = float(np.median(rates)), float(np.quantile(rates, 0.95))
    level, how = typical, f"goodput is {typical:.4g} Mbit/s in the median of {len(rates)} parts"
    if top > 1.1 * typical:
        # What is acknowledged behind a hole comes all at once, and a short time may have more than the link carries.
        quarters = rate_over_time(flows, *estimate.window_s, bins=4)[1]
        steady = quarters.min() > STEADY * quarters.max()
        level = float(quarters.mean() if steady else quarters.max())
        how = f"goodput varies, and is {level:.4g} Mbit/s {'on average' if steady else 'in its best quarter'}"
    if not level > 0:
        raise UserError("no data was delivered in the later part of the files: nothing to compare")
    heads = LINK_HEADER_BYTES + IP_HEADER_BYTES[estimate.ip_version] + TCP_HEADER_BYTES
    payload = FRAME_BYTES - heads
    mss = float(np.median([f.mss_bytes or payload for _, f in flows]))
    frame = mss + heads if mss <= 9000 else FRAME_BYTES * mss / payload
    rate = level * frame / mss
    queue_ms = max(_queues_ms(estimate), default=math.nan)
    lost = sum(float(f.samples["retransmits"].sum()) for _, f in flows)
    is_full = bool(queue_ms > max(FULL * estimate.rtt_ms, FULL_MS)) or lost > 0
    how += f", {rate:.4g} with the heads of frames"
    if targets_mbit := [g.recording.asked_mbit for g in forward for _ in g.flows if g.recording.asked_mbit]:
        how += f"; iperf3 was told to send at most {sum(targets_mbit):.4g} Mbit/s"
    if not is_full:
        how += ": at least that, as no queue and no loss show that the link was full"
    elif physical := next((e for e in ETHERNET_MBIT if abs(level * (frame + WIRE_BYTES) / mss / e - 1) < 0.005), None):
        if not abs(rate / _rounded(rate) - 1) < 0.002:
            how += f": what {physical:g} Mbit/s of Ethernet carry, preambles and gaps taken off"
    elif _rounded(rate) != rate:
        how += f", taken for {_rounded(rate):g}"
        rate = _rounded(rate)
    rate = float(f"{rate:.4g}")
    estimate.findings.insert(1, Finding("rate", f"{rate:g} Mbit/s", how))
    for one in recordings:
        for stated_mbit, words in stated_in(one).rates_mbit:
            own_flows = [(clock_of(g), f) for g in forward if g.recording is one for f in g.flows]
            alone = float(rate_over_time(own_flows, *estimate.window_s, bins=4)[1].max()) if own_flows else 0.0
            if alone > 1.02 * stated_mbit:
                estimate.contradictions.append(f"{one.file}: {words}, and its flows got {alone:.4g} Mbit/s")
            elif is_full and rate < 0.8 * stated_mbit:
                estimate.contradictions.append(
                    f"{one.file}: {words}, and all flows together got {level:.4g} Mbit/s though the link was full"
                )
    return replace(estimate, rate_mbit=rate), is_full


def _queues_ms(estimate: Estimate) -> list[float]:
    """The longest queue that each flow met on the way forward, above the base RTT of its path, in ms; none of flows without RTTs."""
    return [
        float((flow.samples["rtt_ms"] - (group.rtt_ms if estimate.own_rtts else estimate.rtt_ms)).max())
        for group in estimate.groups
        if not group.reverse
        for flow in group.flows
        if flow.samples["rtt_ms"].notna().any()
    ]


def _rounded(rate: float) -> float:
    """The rate that somebody may have set, or the rate itself."""
    power = 10.0 ** math.floor(math.log10(rate))
    close = [
        r for r in (n * p for n in ROUND for p in (power, 10 * power)) if ROUND_BY[0] <= rate / r - 1 <= ROUND_BY[1]
    ]
    return min(close, key=lambda r: abs(rate / r - 1)) if close else rate


def _buffer_and_loss(estimate: Estimate, is_full: bool) -> Estimate:
    """The queue at its longest, and whether losses are of it."""
    flows = [f for g in estimate.groups if not g.reverse for f in g.flows]
    longest_ms = max(_queues_ms(estimate), default=math.nan)
    counted = [f for f in flows if f.samples["retransmits"].notna().any()]
    packets = sum(
        float((f.samples["goodput_mbit"] * f.samples["seconds"]).sum()) * 1e6 / 8 / (f.mss_bytes or PAYLOAD_BYTES)
        for f in counted
    )
    lost = sum(float(f.samples["retransmits"].sum()) for f in counted)
    share = lost / packets if packets else 0.0
    frame_bdp = FRAME_BYTES * 8e-3 / (estimate.rate_mbit * estimate.rtt_ms)
    bdp, loss = max(longest_ms / estimate.rtt_ms, 10 * frame_bdp) if is_there(longest_ms) else 1.0, 0.0
    text = (
        f"{lost:.0f} of {packets:.0f} packets were sent again ({share:.2g})"
        if counted
        else "no file counts retransmissions"
    )
    if not is_there(longest_ms):
        value, how = "1 BDP", "assumed: no file has RTTs over time"
    elif counted and not lost:
        bdp = 2 * bdp
        value, how = (
            f"at least {bdp / 2:.2g} BDP",
            f"the queue took {longest_ms:.3g} ms at most, and nothing was lost; twice as much is assumed",
        )
    elif is_full and longest_ms > max(FULL * estimate.rtt_ms, FULL_MS):
        value, how = (
            f"{bdp:.2g} BDP",
            f"RTTs rose by {longest_ms:.3g} ms at most, the queue at its longest; losses are taken for its overflow",
        )
    else:
        bdp, loss = 1.0, float(f"{share:.2g}") if share > 1e-6 else 0.0
        value, how = (
            "1 BDP",
            "assumed: RTTs hardly rose, so that losses are random, or the buffer has a few packets; the files cannot tell which",
        )
    estimate.findings.insert(2, Finding("buffer", value, how))
    estimate.findings.insert(
        3, Finding("random loss", f"{loss:g}" if loss else "none", text + ("; taken for random" if loss else ""))
    )
    return replace(estimate, buffer_bdp=float(f"{bdp:.3g}"), loss=loss)


def _with_algorithm(group: Group, number: int, estimate: Estimate, chosen: str) -> Group:
    """The group with the algorithm that it looks like: what its samples show, else what the file says, else Linux's default.

    Args:
        chosen: what the user says instead, for the words; empty if nothing.
    """
    candidates, evidence = _shown([fingerprint_of(flow) for flow in group.flows])
    stated = group.flows[0].cca
    called = CALLED.get(stated)
    in_name = stated_in(group.recording).ccas
    name = f"flows.{number}"
    if stated and called is None and not chosen:
        raise UserError(
            f"{group.recording.file}: its flows are of '{stated}', which the lab lacks (it has {', '.join(ALGORITHMS)}); say what to run in "
            f"its place, for example --set {name}.cca=cubic"
        )
    if candidates:
        cca = called if called in candidates else next((c for c in candidates if c in in_name), candidates[-1])
        if called and called not in candidates:
            as_linux = ", which is BBRv1 in Linux, and BBRv3 in Google's kernel" if stated == "bbr" else ""
            estimate.contradictions.append(
                f"{group.recording.file}: says '{stated}'{as_linux}; its flows look like {_labels(candidates)}: {evidence}"
            )
        if len(candidates) > 1 and called not in candidates and cca == candidates[-1]:
            evidence += f"; {label_of_cca(cca)} is assumed"
    else:
        cca = called or (next(iter(in_name)) if len(in_name) == 1 else "cubic")
        why = (
            f"the file says '{stated}'"
            if called
            else next(iter(in_name.values()))
            if len(in_name) == 1
            else "assumed, as Linux's default"
        )
        if stated == "bbr":
            why += ", which is BBRv1 in Linux, and BBRv3 in Google's kernel"
        evidence = f"{why}; its samples do not show it: {evidence}"
    count = number_of(len(group.flows), "flow")
    times = f"from {group.start_s:g} s" if group.start_s else ""
    estimate.findings.append(Finding(name, " ".join(filter(None, [count, label_of_cca(chosen or cca), times])),
                                  f"{group.recording.file.name}: " + ("set by you; " if chosen else "") + evidence))  # fmt: skip
    return replace(group, cca=cca)


def _named_in_vain(recordings: Sequence[Recording], groups: Sequence[Group], chosen: Sequence[str]) -> list[str]:
    """Algorithms that names speak of and no flow of any file looks like.

    Args:
        groups: each with the algorithm that it looks like.
        chosen: what the user says that each is, who knows better than the names of its file; empty if nothing.
    """
    there = {group.cca for group in groups} | set(chosen)
    told = [group.recording for group, cca in zip(groups, chosen, strict=True) if cca]
    guessed = [one for one in recordings if not any(one is other for other in told)]
    named = {cca: (one.file, words) for one in guessed for cca, words in stated_in(one).ccas.items()}
    return [
        f"{file}: {words}, and no flow looks like {label_of_cca(cca)}"
        for cca, (file, words) in named.items()
        if cca not in there
    ]


def _labels(candidates: Sequence[str]) -> str:
    return " or ".join(label_of_cca(c) for c in candidates)


def _shown(fingerprints: Sequence[Fingerprint]) -> tuple[list[str], str]:
    """Which algorithms the samples of a group show, none if they show none, and by what."""
    gains = {name for m in fingerprints for name in m.gains}
    if gains == {"bbr3"}:
        return ["bbr3"], "its pacing gains (2.77, 0.9) are those of BBRv3 alone"
    drained = [m for m in fingerprints if is_there(m.period_s)]
    floors = [m.floor_packets for m in drained]
    period_s = min((m.period_s for m in drained), default=math.nan)
    if drained and max(floors) <= FLOOR_PACKETS and period_s >= PERIOD_1_S:
        return (
            ["bbr1"],
            f"its window falls to {max(floors):.3g} packets for a moment, at least {period_s:.3g} s apart: BBRv1's ProbeRTT",
        )
    if drained and min(floors) > FLOOR_PACKETS and PERIODS_23_S[0] <= period_s <= PERIODS_23_S[1]:
        how = f"its window falls by half for a moment every {period_s:.2g} s: ProbeRTT of BBRv2 and BBRv3"
        return (["bbr2"], how + ", with gains of BBRv2") if gains == {"bbr12"} else (["bbr2", "bbr3"], how)
    if gains == {"bbr12"}:
        return ["bbr2", "bbr1"], "its pacing gains (2.89, 0.75) are those of BBRv1 and BBRv2"
    fine = [m for m in fingerprints if m.fine]
    if not fine:
        return (
            [],
            f"they lack the window, last less than 25 s or are more than {FINE_S - 0.01:g} s apart (iperf3 -i 0.1), so that a ProbeRTT is missed",
        )
    cuts = np.concatenate([m.cuts for m in fine])
    if len(cuts) >= 3 and not any(len(m.dips_s) or m.jumps for m in fine):
        middle = float(np.median(cuts))
        for cca, (low, high) in CUTS.items():
            if low <= middle <= high:
                return [
                    cca
                ], f"its window falls to {middle:.2g} of itself after a loss ({len(cuts)} times), and never jumps up"
    return [], "nothing in them is one algorithm's alone"
