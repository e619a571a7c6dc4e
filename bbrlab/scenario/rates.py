"""The bottleneck's nominal rate over a run."""

from __future__ import annotations

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.scenario.schema import Scenario


def capacity_mbit(scenario: Scenario, low_s: float, high_s: float) -> float:
    """Mean nominal bottleneck rate in Mbit/s between two instants, with ``changes`` taken into account."""
    network = scenario.network
    steps = [(0.0, network.rate_mbit)] + [
        (c.at_s, c.rate_mbit) for c in sorted(network.changes, key=lambda c: c.at_s) if c.rate_mbit
    ]
    total = 0.0
    for (start, rate), end in zip(steps, [s for s, _ in steps[1:]] + [high_s], strict=True):
        total += rate * max(0.0, min(end, high_s) - max(start, low_s))
    return total / (high_s - low_s)


def rate_at(scenario: Scenario, times_s: Array) -> Array:
    """Nominal bottleneck rate in Mbit/s at each of ``times_s``."""
    rates = np.full(len(times_s), scenario.network.rate_mbit)
    for change in sorted(scenario.network.changes, key=lambda c: c.at_s):
        if change.rate_mbit:
            rates[times_s >= change.at_s] = change.rate_mbit
    return rates
