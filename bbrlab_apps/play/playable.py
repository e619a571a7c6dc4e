"""What of a scenario can be played: steered by hand, in real time."""

from __future__ import annotations

from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.scenario.draws import draw_rtts
from bbrlab.scenario.frames import IP_VERSION
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import GRID, Network, Scenario

LONGEST_S = 3600.0
# What a guest carries in real time on one core of a laptop; a campaign's guest takes the time that it needs.
RATE_MBIT_MAX = 200.0
SAMPLE_HZ_MAX = 100.0
FLOWS_MAX = 32
RTT_MS_MAX = 1000.0  # with RATE_MBIT_MAX: 25 MB in flight


def playable(point: Point, seed: int) -> Point:
    """The point as a play has it: each flow a group of its own, with the RTT that the seed draws, up to LONGEST_S.

    Its last change, at the very end, stands for all that may be set at the prompt, so that the guest has the memory, the socket
    buffers and the place for random loss. UserError if it cannot be played; naming the field, and what can be done.
    """
    scenario = point.scenario
    wrong = _wrong(scenario)
    if wrong:
        raise UserError("\n".join(f"{scenario.name}: {text}" for text in wrong))
    content: dict[str, Any] = scenario.model_dump(exclude=GRID, exclude_unset=True)
    content |= {"duration_s": LONGEST_S, "window_s": [0.0, LONGEST_S]}
    flows = []
    for asked, written, rtts_ms in zip(scenario.flows, content["flows"], draw_rtts(scenario, seed), strict=True):
        own = {key: value for key, value in written.items() if key not in ("count", "stop_s", "rtts_ms")}
        if asked.stop_s is not None and asked.stop_s < min(scenario.duration_s, LONGEST_S):
            own["stop_s"] = asked.stop_s
        drawn = asked.rtts_ms is not None or isinstance(asked.rtt_ms or scenario.network.rtt_ms, list)
        flows += [own | ({"rtt_ms": rtt_ms} if drawn else {}) for rtt_ms in rtts_ms]
    content["flows"] = flows
    network = content["network"]
    most: dict[str, float] = {"at_s": LONGEST_S, "rtt_ms": RTT_MS_MAX}
    if scenario.network.links is None:  # several keep their rates
        most["rate_mbit"] = RATE_MBIT_MAX
    if scenario.hosts.segmentation != "router" or scenario.network.loss_place != "before":
        most["loss"] = scenario.network.loss
    network["changes"] = [c for c in network.get("changes", []) if c["at_s"] < LONGEST_S] + [most]
    return Point(validate(content, scenario.name, None, scenario.folder, scenario.sources), point.values)


def _wrong(scenario: Scenario) -> list[str]:
    """Why it cannot be played, field by field."""
    network = scenario.network
    problems = _wrong_path(network)
    for i, flow in enumerate(scenario.flows):
        if flow.traffic is not None:
            problems.append(
                f"flows.{i}.traffic: short flows cannot be played, they are laid out before a run; leave the group out"
            )
        if flow.bytes is not None:
            problems.append(
                f"flows.{i}.bytes {flow.bytes}: a flow that is played goes on until it is stopped; leave its size out"
            )
        if flow.start_s >= LONGEST_S:
            problems.append(f"flows.{i}.start_s {flow.start_s:g}: a play ends after {LONGEST_S:g} s; start it sooner")
    count = sum(flow.count for flow in scenario.flows)
    if count > FLOWS_MAX:
        problems.append(f"flows: {count} flows; at most {FLOWS_MAX} can be played (--set flows.0.count=...)")
    rates = [("network.rate_mbit", network.rate_mbit)]
    rates += [(f"network.links.{i}.rate_mbit", link.rate_mbit or 0) for i, link in enumerate(network.links or [])]
    rates += [(f"network.changes.{i}.rate_mbit", c.rate_mbit or 0) for i, c in enumerate(network.changes)]
    for name, rate in rates:
        if rate > RATE_MBIT_MAX:
            problems.append(
                f"{name} {rate:g}: in real time a guest carries at most {RATE_MBIT_MAX:g} Mbit/s (--set {name}=...; bbrlab run "
                "has no such limit)"
            )
    rtts: list[tuple[str, float | list[float] | None]] = [("network.rtt_ms", network.rtt_ms)]
    rtts += [(f"flows.{i}.rtt_ms", flow.rtt_ms) for i, flow in enumerate(scenario.flows)]
    rtts += [(f"flows.{i}.rtts_ms", flow.rtts_ms) for i, flow in enumerate(scenario.flows)]
    rtts += [(f"network.changes.{i}.rtt_ms", c.rtt_ms) for i, c in enumerate(network.changes)]
    for name, rtt in rtts:
        largest = max(rtt) if isinstance(rtt, list) else rtt or 0.0
        if largest > RTT_MS_MAX:
            problems.append(f"{name} {largest:g}: a play has RTTs of at most {RTT_MS_MAX:g} ms (--set {name}=...)")
    if scenario.sample_hz > SAMPLE_HZ_MAX:
        problems.append(
            f"sample_hz {scenario.sample_hz:g}: in real time at most {SAMPLE_HZ_MAX:g} samples a second are taken "
            "(--set sample_hz=10)"
        )
    return problems


# Of the path, what no play has: {field of the network: why}.
_NOT_PLAYED = {
    "trace": "a link that follows a trace cannot be played, whose rate may be set by hand",
    "ip_version": f"a play's hosts have addresses of IPv{IP_VERSION}, which its commands take",
    "data_path": "only the way of the ACKs can be played, whose RTT may be set by hand",
}


def _wrong_path(network: Network) -> list[str]:
    """Fields of the path that no play has."""
    problems = [
        f"network.{name}: {why}; leave it out"
        for name, why in _NOT_PLAYED.items()
        if getattr(network, name) != Network.model_fields[name].default
    ]
    if network.reverse and network.reverse.grants:
        problems.append(
            "network.reverse.grants: a link that sends at given times cannot be played, which begins before them; give network.reverse.rate_mbit"
        )
    if network.jitter is not None and network.jitter.group is not None:
        problems.append(
            "network.jitter.group: jitter of one group cannot be played, whose flows may be started anew; leave it out"
        )
    return problems
