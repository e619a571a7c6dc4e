"""What a run costs, whatever the machine: the full-size packets that its bottleneck carries at most."""

from __future__ import annotations

from bbrlab.scenario.frames import FRAME_BYTES
from bbrlab.scenario.schema import Flow, Scenario


def volume_bytes(flow: Flow, duration_s: float) -> float | None:
    """How much a group of flows has to send; None if there is no end to it."""
    if flow.traffic is not None:
        return flow.traffic.offered_mbit * 1e6 / 8 * duration_s
    return None if flow.bytes is None else float(flow.count * flow.bytes)


def packets_of(scenario: Scenario) -> float:
    """Full-size packets that a run carries if its bottleneck is busy throughout, or as many as its flows have to send."""
    carried = scenario.network.rate_mbit * 1e6 / 8 * scenario.duration_s
    volumes = [volume_bytes(f, scenario.duration_s) for f in scenario.flows]
    if None not in volumes:
        carried = min(carried, sum(v for v in volumes if v is not None))
    return carried / FRAME_BYTES
