"""The cost of a run: its packets, seconds, and bytes on disk."""

from __future__ import annotations

from bbrlab.run.memory import sending_hosts
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Flow, Scenario

# Wall-clock model of a run on one of two busy cores, the job around it included; how it was fitted: docs/reference/benchmarks.md.
SETUP_S = 1.8
SECONDS_PER_HOST = 0.03
SECONDS_PER_FLOW = 0.04
SECONDS_PER_PACKET = 2.6e-6
# For each group of packets that TCP hands over together: a millisecond of its rate, from two packets to 64 KiB (tcp_tso_autosize).
SECONDS_PER_SEGMENT = 4.6e-6
SEGMENT_MS, SEGMENT_PACKETS = 1.0, (2.0, 43.0)
SECONDS_PER_FLOW_SAMPLE = 8.6e-5
# For short flows, of the traffic model's mean size; and once for pandas and SciPy, which only they need.
SECONDS_PER_SHORT_FLOW = 1.1e-3
SHORT_FLOWS_S = 1.0
SHORT_FLOW_BYTES = 487e3


def estimate_s(point: Point) -> float:
    """Expected wall-clock seconds of one run on one core."""
    scenario = point.scenario
    samples = scenario.sample_hz * scenario.duration_s
    flows = sum(f.count for f in scenario.flows)
    short = sum(volume_bytes(f, scenario.duration_s) or 0.0 for f in scenario.flows if f.traffic is not None)
    return (
        SETUP_S
        + SECONDS_PER_HOST * (1 + sum(sending_hosts(f, scenario) for f in scenario.flows))
        + SECONDS_PER_FLOW * flows
        + (SECONDS_PER_PACKET + SECONDS_PER_SEGMENT / segment_packets(scenario)) * packets_of(scenario)
        + SECONDS_PER_FLOW_SAMPLE * samples * flows
        + (SHORT_FLOWS_S + SECONDS_PER_SHORT_FLOW * short / SHORT_FLOW_BYTES if short else 0.0)
    )


def segment_packets(scenario: Scenario) -> float:
    """Packets that TCP hands over together where each long flow has its share of the link.

    Without segmentation offload the smallest number: packets go one by one, but those of a burst at one instant.
    """
    low, high = SEGMENT_PACKETS
    if scenario.hosts.segmentation == "off":
        return low
    share_mbit = scenario.network.rate_mbit / max(1, sum(f.count for f in scenario.flows))
    return min(high, max(low, share_mbit * 1e6 / 8 * SEGMENT_MS * 1e-3 / scenario.network.frame_bytes))


# Bytes of a run on disk, fitted to the same runs: its four files, and samples.parquet for each flow and sample.
RUN_BYTES = 30e3
BYTES_PER_FLOW_SAMPLE = 60.0


def disk_bytes(point: Point) -> float:
    """Expected size of a run's folder."""
    scenario = point.scenario
    records = scenario.sample_hz * scenario.duration_s * sum(f.count for f in scenario.flows)
    return RUN_BYTES + records * BYTES_PER_FLOW_SAMPLE


def volume_bytes(flow: Flow, duration_s: float) -> float | None:
    """The bytes that a group of flows has to send; None if it never ends."""
    if flow.traffic is not None:
        return flow.traffic.offered_mbit * 1e6 / 8 * duration_s
    return None if flow.bytes is None else float(flow.count * flow.bytes)


def packets_of(scenario: Scenario) -> float:
    """Full-size packets that a run carries if its bottlenecks are busy throughout, or as many as its flows have to send."""
    carried = sum(link.rate_mbit for link in scenario.network.bottlenecks) * 1e6 / 8 * scenario.duration_s
    volumes = [volume_bytes(f, scenario.duration_s) for f in scenario.flows]
    if None not in volumes:
        carried = min(carried, sum(v for v in volumes if v is not None))
    return carried / scenario.network.frame_bytes
