"""What a seed draws before the guest starts. The guest draws each packet's time itself (mininet/dumbbell.py, kernels/patches/lateness)."""

from __future__ import annotations

import random

from bbrlab.scenario.schema import Scenario


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
    """Base RTT in ms of each flow of each group, as a run has them: with what is added to the group's."""
    return [
        [round(rtt_ms + added_ms, 3) for rtt_ms in row]
        for row, added_ms in zip(draw_rtts(scenario, seed), draw_added_rtts(scenario, seed), strict=True)
    ]


def draw_added_rtts(scenario: Scenario, seed: int) -> list[float]:
    """What is added to the base RTT of each group, in ms: by the links that it crosses, and the group's offset."""
    offsets_ms = draw_rtt_offsets(scenario, seed)
    return [scenario.links_rtt_ms(flow) + ms for flow, ms in zip(scenario.flows, offsets_ms, strict=True)]


def draws_flows(scenario: Scenario) -> bool:
    """Whether the seed alone draws what the flows are: RTTs of a range, or the sizes and times of short flows.

    Then two scenarios with the same of these have the same flows with the same seed. What hosts, loss and jitter draw hits
    other packets in each.
    """
    if isinstance(scenario.network.rtt_ms, list) or any(isinstance(flow.rtt_ms, list) for flow in scenario.flows):
        return True
    traffics = [flow.traffic for flow in scenario.flows if flow.traffic is not None]
    return any(traffic.trace == "model" or traffic.mode == "synthetic" for traffic in traffics)


def draw_rtt_offsets(scenario: Scenario, seed: int) -> list[float]:
    """By how much the base RTT of each group is longer than asked for, in ms: hosts.noise.rtt_offset_us.

    Whole microseconds, uniform from 0 to that or to a packet's time at the slowest bottleneck of its path if that is less, from a
    stream of the seed's own. 0 where each flow's RTT is drawn from a range anyway.
    """
    offsets_ms = []
    for g, flow in enumerate(scenario.flows):
        links = scenario.towards(flow.direction).links_of(flow)
        packet_ms = scenario.network.frame_bytes * 8e-3 / min(link.rate_mbit for link in links)
        longest_ms = min(scenario.hosts.noise.rtt_offset_us / 1000, packet_ms)
        drawn_ms = random.Random(f"rtt-offset:{seed}:{g}").uniform(0, longest_ms)
        offsets_ms.append(0.0 if scenario.draws_rtt(flow) else round(drawn_ms, 3))
    return offsets_ms
