"""The bottleneck's nominal rate over a run, and what a backlog is in time at it.

A window, and a run, is [begin, end): a change at its beginning holds in all of it, one at its end in nothing of it, the sample at the
end included. before() says so for whatever is computed of what ends at an instant.
"""

from __future__ import annotations

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.scenario.link_trace import NS_PER_S, LinkTrace
from bbrlab.scenario.schema import Network, Scenario

TRACE_WINDOW_S = 1.0  # over which a trace's rate at a time is the mean
TRACE_CORNERS = 400  # of the curve of a full buffer


def capacity_mbit(scenario: Scenario, low_s: float, high_s: float) -> float:
    """Mean nominal bottleneck rate in Mbit/s between two instants, with ``changes`` taken into account."""
    if opportunities := scenario.network.opportunities:
        return opportunities.mbit(low_s, high_s)
    steps = _steps(scenario.network)
    total = 0.0
    for (start, rate), end in zip(steps, [s for s, _ in steps[1:]] + [high_s], strict=True):
        total += rate * max(0.0, min(end, high_s) - max(start, low_s))
    return total / (high_s - low_s)


def before(network: Network, end_s: float) -> Network:
    """The network as it was up to an instant: a change at it, or later, is none of what ends there."""
    return network.model_copy(update={"changes": [change for change in network.changes if change.at_s < end_s]})


def rates_at(network: Network, times_s: Array) -> Array:
    """Nominal bottleneck rate in Mbit/s at each of ``times_s``; of a trace the mean of a second around it."""
    if opportunities := network.opportunities:
        return _traced(opportunities, times_s)
    (_, first), *later = _steps(network)
    rates = np.full(len(times_s), first)
    for at_s, mbit in later:
        rates[times_s >= at_s] = mbit
    return rates


def queueing_delay_ms(network: Network, times_s: Array, backlog_bytes: Array) -> Array:
    """Queueing delay in ms of the backlog (bytes) at each of ``times_s``: by the nominal rate that the bottleneck has then; where it
    sends at given times only, how long the backlog takes to leave."""
    if opportunities := network.opportunities:
        return opportunities.delay_ms(times_s, backlog_bytes)
    delay: Array = backlog_bytes * 8e-3 / rates_at(network, times_s)
    return delay


def buffer_full_ms(network: Network, low_s: float, high_s: float, buffer_bytes: float) -> tuple[Array, Array]:
    """The queueing delay of a full buffer from one instant to another: a step where the rate changes.

    Returns:
        The corners of the curve: times in s and delays in ms; two of each without a change in between.
    """
    if opportunities := network.opportunities:
        times_s = np.linspace(low_s, high_s, TRACE_CORNERS)
        return times_s, opportunities.delay_ms(times_s, np.full(TRACE_CORNERS, buffer_bytes))
    inside = [(at_s, mbit) for at_s, mbit in _steps(network) if low_s < at_s < high_s]
    edges = [low_s, *(at_s for at_s, _ in inside), high_s]
    rates = [*rates_at(network, np.array([low_s])), *(mbit for _, mbit in inside)]
    return np.repeat(edges, 2)[1:-1], buffer_bytes * 8e-3 / np.repeat(rates, 2)


def highest_mbit(network: Network) -> float:
    """The highest nominal rate in Mbit/s that the bottleneck ever has."""
    if trace := network.opportunities:
        return float(_traced(trace, np.arange(0, trace.period_ns / NS_PER_S, TRACE_WINDOW_S)).max())
    return max(mbit for _, mbit in _steps(network))


def _steps(network: Network) -> list[tuple[float, float]]:
    """From when (s) which rate (Mbit/s) holds, in the order of the times."""
    changes = sorted(network.changes, key=lambda c: c.at_s)
    return [(0.0, network.rate_mbit), *((c.at_s, c.rate_mbit) for c in changes if c.rate_mbit)]


def _traced(trace: LinkTrace, times_s: Array) -> Array:
    """A trace's mean rate in Mbit/s around each time."""
    low_s = np.maximum(times_s - TRACE_WINDOW_S / 2, 0)
    found: Array = (trace.count(low_s + TRACE_WINDOW_S) - trace.count(low_s)) * trace.bytes * 8e-6 / TRACE_WINDOW_S
    return found
