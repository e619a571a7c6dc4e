"""Which flows are there for a part of the window only, of which the metrics are, by their times or by how long iperf3 takes to
begin; and which cannot have as much in flight as the path holds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import MAX_STREAMS, Flow, Scenario

# What an iperf3 client does, each in a round trip, before its data: it opens its control connection, sends its cookie, its
# parameters, and waits for two answers; and its streams' connections, all in one round trip or each in one of its own.
# Measured with 1 to 128 streams and 1 to 200 ms without a queue: data leaves at 5 x RTT of one stream, 104 x RTT of 100.
CONTROL_RTTS = 4
# Of the time that a group has before the window, or in it: more, and what is measured is no longer what was asked for.
LARGE_PART_BEFORE, LARGE_PART_WITHIN = 0.5, 0.05
# Of a connection: TCP's largest window is 1 GiB (RFC 7323, 2.3: 65535 << 14), for which Linux wants a buffer of twice as much,
# and its largest buffer here is 1 GiB (experiment/hosts.py).
LARGEST_FLIGHT_BYTES = 512 << 20


def partly_there(points: Sequence[Point]) -> list[str]:
    """In words, each once: the groups that start or stop within ``window_s``, are not there in it at all, or whose data begins
    near its start or later though they start before, or not before they stop; where TCP's largest window keeps the link from
    being filled; and where no sample lies between the window's edges.

    That may be meant. Flows of some ``bytes`` have metrics of their own, and only those are named that never send; short flows
    (``traffic``) are left out.
    """
    found = (
        words(i, flow, point.scenario)
        for point in points
        for i, flow in enumerate(point.scenario.flows)
        if flow.traffic is None
        for words in ((_words, _late, _too_long) if flow.bytes is None else (_never,))
    )
    return list(
        dict.fromkeys(words for words in (*found, *(_few_samples(point.scenario) for point in points)) if words)
    )


def _few_samples(scenario: Scenario) -> str:
    low_s, high_s = scenario.window_s
    between = math.ceil(high_s * scenario.sample_hz - 1e-9) - math.floor(low_s * scenario.sample_hz + 1e-9) - 1
    if between > 0:
        return ""
    return (
        f"window_s [{low_s:g}, {high_s:g}] has no sample but those at its edges at sample_hz {scenario.sample_hz:g}: means of the queue, "
        "RTT and window are of these alone (choose a higher sample_hz or a longer window_s, if that is not meant)"
    )


def first_data_s(flow: Flow, scenario: Scenario) -> float:
    """When the last of a group's flows sends its first data, in s from the start of the run: by the base RTT,
    where no queue delays the packets that open its connections and none of them is lost."""
    rtt_ms, streams = _slowest(flow, scenario)
    return flow.start_s + (CONTROL_RTTS + streams) * rtt_ms * 1e-3


def _slowest(flow: Flow, scenario: Scenario) -> tuple[float, int]:
    """Of the iperf3 client of a group that takes longest to begin: RTT in ms, and the streams that it opens one after another. Flows of
    one RTT share clients."""
    added_ms = scenario.links_rtt_ms(flow)
    most = 1 if flow.bytes is not None or flow.start == "together" else MAX_STREAMS
    if flow.rtts_ms is not None:
        clients = [(rtt_ms + added_ms, min(flow.rtts_ms.count(rtt_ms), most)) for rtt_ms in flow.rtts_ms]
        return max(clients, key=lambda client: (CONTROL_RTTS + client[1]) * client[0])
    value = flow.rtt_ms
    if value is None:
        changed = [c for c in scenario.network.changes if c.rtt_ms is not None and c.at_s <= flow.start_s]
        value = max(changed, key=lambda c: c.at_s).rtt_ms if changed else scenario.network.rtt_ms
    if isinstance(value, list):
        return value[1] + added_ms, 1  # drawn, so that each flow has one of its own
    assert value is not None
    return value + added_ms, min(flow.count, most)


def _words(i: int, flow: Flow, scenario: Scenario) -> str:
    low_s, high_s = scenario.window_s
    stop_s = _stop_s(flow, scenario)
    there_s = min(stop_s, high_s) - max(flow.start_s, low_s)
    if there_s >= high_s - low_s:
        return ""
    how = (
        f"is there for {there_s:g} s of the {high_s - low_s:g} s"
        if there_s > 0
        else f"is not there in the {high_s - low_s:g} s"
    )
    when = f"start_s {flow.start_s:g}" + ("" if flow.stop_s is None else f", stop_s {flow.stop_s:g}")
    return f"flows.{i} ({flow.cca}) {how} of window_s [{low_s:g}, {high_s:g}] ({when}): its goodput and share are means over the whole window"


def _late(i: int, flow: Flow, scenario: Scenario) -> str:
    low_s, high_s = scenario.window_s
    takes_s, before_s = first_data_s(flow, scenario) - flow.start_s, low_s - flow.start_s
    there_s = min(_stop_s(flow, scenario), high_s) - max(flow.start_s, low_s)
    if (never := _never(i, flow, scenario)) or there_s <= 0:
        return never
    if takes_s <= (LARGE_PART_BEFORE * before_s if before_s > 0 else LARGE_PART_WITHIN * there_s):
        return ""
    return _begins(i, flow, scenario, f"for window_s [{low_s:g}, {high_s:g}]", "a later window_s")


def _never(i: int, flow: Flow, scenario: Scenario) -> str:
    stop_s = _stop_s(flow, scenario)
    if first_data_s(flow, scenario) < stop_s:
        return ""
    ends, later = ("stops", "stop_s") if flow.stop_s is not None else ("the run ends", "duration_s")
    return _begins(i, flow, scenario, f"and {ends} at {stop_s:g} s, so that it may never send", f"a later {later}")


def _begins(i: int, flow: Flow, scenario: Scenario, but: str, remedy: str) -> str:
    first_s = first_data_s(flow, scenario)
    rtt_ms, streams = _slowest(flow, scenario)
    what = f"{streams} connections one after another" if streams > 1 else "its connections"
    return (
        f"flows.{i} ({flow.cca}) starts at {flow.start_s:g} s, but sends no data before about {first_s:.3g} s, {but}: "
        f"iperf3 first opens {what}, which takes {(first_s - flow.start_s) * 1e3 / rtt_ms:.0f} round trips of "
        f"{rtt_ms:g} ms (choose {'start: together, ' if streams > 1 else ''}{remedy} or an earlier start_s, if that is not meant)"
    )


def _too_long(i: int, flow: Flow, scenario: Scenario) -> str:
    rtt_ms = _slowest(flow, scenario)[0]
    rate_mbit = min(link.rate_mbit for link in scenario.towards(flow.direction).links_of(flow))
    at = "network.rate_mbit" if flow.direction == "forward" else "the bottleneck's"
    bdp_bytes = rate_mbit * 1e6 / 8 * rtt_ms * 1e-3
    flows = sum(f.count for f in scenario.flows if f.direction == flow.direction)
    if bdp_bytes <= flows * LARGEST_FLIGHT_BYTES or scenario.hosts.rmem_max_bytes or scenario.hosts.wmem_max_bytes:
        return ""
    return (
        f"flows.{i} ({flow.cca}): {at if scenario.network.links is None else 'the slowest of its links,'} {rate_mbit:g} x {rtt_ms:g} ms is {bdp_bytes / (1 << 20):.0f} MiB, but a "
        f"flow can have {LARGEST_FLIGHT_BYTES >> 20} MiB in flight at most (TCP's largest window), so that {flows} cannot fill the link"
    )


def _stop_s(flow: Flow, scenario: Scenario) -> float:
    return scenario.duration_s if flow.stop_s is None else flow.stop_s
