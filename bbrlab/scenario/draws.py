"""What a seed draws before the guest starts."""

from __future__ import annotations

import random

from bbrlab.scenario.frames import FRAME_BYTES
from bbrlab.scenario.schema import Flow, Scenario

SMALLEST_RTT_MS = 0.001  # of a scenario


def draw_rtts(scenario: Scenario, seed: int) -> list[list[float]]:
    """Base RTT in ms of each flow of each group as it was asked for; ranges are drawn uniformly, from a stream of the seed's own."""
    drawn = []
    for g, flow in enumerate(scenario.flows):
        if flow.rtts_ms is not None:
            drawn.append([float(rtt_ms) for rtt_ms in flow.rtts_ms])
            continue
        value = flow.rtt_ms if flow.rtt_ms is not None else scenario.network.rtt_ms
        row = []
        for i in range(flow.count):
            if isinstance(value, list):
                # A string seed is hashed with SHA-512, so the draw is the same on every machine and Python.
                row.append(round(random.Random(f"rtt:{seed}:{g}:{i}").uniform(*value), 3))
            else:
                row.append(float(value))
        drawn.append(row)
    return drawn


def draw_base_rtts(scenario: Scenario, seed: int) -> list[list[float]]:
    """Base RTT in ms of each flow of each group, as a run has them: with the group's offset."""
    return [
        [round(rtt_ms + offset_ms, 3) for rtt_ms in row]
        for row, offset_ms in zip(draw_rtts(scenario, seed), draw_rtt_offsets(scenario, seed), strict=True)
    ]


def draw_rtt_offsets(scenario: Scenario, seed: int) -> list[float]:
    """By how much the base RTT of each group is moved, in ms: hosts.noise.rtt_offset_packets.

    Whole microseconds, uniform and as much below 0 as above, from a stream of the seed's own; never as much as the RTT itself.
    0 where each flow's RTT is drawn from a range anyway.
    """
    packet_ms = FRAME_BYTES * 8e-3 / scenario.network.rate_mbit
    widest_ms = scenario.hosts.noise.rtt_offset_packets * packet_ms
    offsets_ms = []
    for g, flow in enumerate(scenario.flows):
        half_ms = min(widest_ms / 2, _smallest_rtt_ms(scenario, flow) - SMALLEST_RTT_MS)
        if flow.rtts_ms is None and isinstance(flow.rtt_ms or scenario.network.rtt_ms, list):
            half_ms = 0.0
        offsets_ms.append(round(random.Random(f"rtt-offset:{seed}:{g}").uniform(-half_ms, half_ms), 3))
    return offsets_ms


def _smallest_rtt_ms(scenario: Scenario, flow: Flow) -> float:
    """The smallest base RTT that a group has at any time."""
    rtt_ms = flow.rtt_ms or scenario.network.rtt_ms
    rtts_ms = list(flow.rtts_ms or (rtt_ms if isinstance(rtt_ms, list) else [rtt_ms]))
    if flow.has_networks_rtt:
        rtts_ms += [c.rtt_ms for c in scenario.network.changes if c.rtt_ms is not None]
    return min(rtts_ms)
