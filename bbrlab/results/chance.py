"""Whether chance decides anything of a run: without it one seed tells all, and a second shows that it does."""

from __future__ import annotations

from bbrlab.results.algorithms import ALGORITHMS
from bbrlab.scenario.schema import NO_NOISE, Scenario


def draws_nothing(scenario: Scenario) -> bool:
    """Whether no seed is expected to change what a run measures: neither algorithms nor path draw random numbers.

    What is left (ports, sequence numbers) can only decide which of several flows comes first.
    """
    network = scenario.network
    return (
        all(
            flow.cca in ALGORITHMS and not ALGORITHMS[flow.cca].draws and flow.traffic is None
            for flow in scenario.flows
        )
        and not any(isinstance(rtt_ms, list) for rtt_ms in (network.rtt_ms, *(f.rtt_ms for f in scenario.flows)))
        and network.loss == 0
        and not any(change.loss for change in network.changes)
        and network.jitter is None
        and network.qdisc.kind == "fifo"
        and scenario.hosts.noise == NO_NOISE
    )
