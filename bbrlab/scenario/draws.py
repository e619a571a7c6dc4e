"""What a seed draws before the guest starts."""

from __future__ import annotations

import random

from bbrlab.scenario.schema import Scenario


def draw_rtts(scenario: Scenario, seed: int) -> list[list[float]]:
    """Base RTT in ms of each flow of each group; ranges are drawn uniformly, from a stream of the seed's own."""
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
