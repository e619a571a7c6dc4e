"""Turns one point of a scenario and a seed into the plan that the guest carries out.

The plan (docs/plan.md) speaks of hosts, switch ports, tc words and iperf3 processes only: everything that needs a
decision or a random draw is decided here, so that the guest's code needs nothing of ours.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bbrlab.base.errors import UserError
from bbrlab.experiment.hosts import Hosts, loss_devices, switch_links, sysctls
from bbrlab.experiment.qdisc import qdisc_words
from bbrlab.scenario.draws import draw_rtts
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import MAX_STREAMS, Flow, Scenario

if TYPE_CHECKING:
    import pandas as pd


PLAN_FORMAT = 1
NS = 1_000_000_000
TRACE_RECORDS = 1 << 17  # ACKs that a module keeps until the next sample is taken
FIRST_PORT = 5201  # iperf3's own
# So much may lie unread at the receivers; each is woken for its part of it, within bounds.
RECEIVE_LOWAT_TOTAL_BYTES = 4 << 20
RECEIVE_LOWAT_BOUNDS_BYTES = (64 << 10, 512 << 10)
EAGER_TRANSFER_BYTES = 64 << 20
SHORT_FLOWS_PORT = 6201
SHORT_FLOWS_AT_ONCE = 64  # among how many the kernel's buffers are shared out


@dataclass(frozen=True)
class FlowPlan:
    """One TCP flow: which group it belongs to, which transfer carries it and as which of its streams."""

    flow: int
    group: int
    transfer: int
    stream: int
    rtt_ms: float


@dataclass(frozen=True)
class Plan:
    """The guest's plan and what the host must remember to read its results.

    Attributes:
        content: the JSON that the guest reads.
        flows: every flow, in order.
        kernel_arguments: module parameters for the guest kernel's command line.
        workloads: {group: chunks of its short flows} (bbrlab.workload.chunks.COLUMNS).
    """

    content: dict[str, Any]
    flows: list[FlowPlan]
    kernel_arguments: list[str]
    workloads: dict[int, pd.DataFrame] = field(default_factory=dict)


def _transfers(flow: Flow, rtts: list[float]) -> list[list[int]]:
    """Indices of the group's flows that one iperf3 process carries: equal RTT, at most 128, finite ones alone."""
    if flow.bytes is not None:  # iperf3 -n counts all streams together
        return [[i] for i in range(flow.count)]
    by_rtt: dict[float, list[int]] = {}
    for i, rtt in enumerate(rtts):
        by_rtt.setdefault(rtt, []).append(i)
    return [members[k : k + MAX_STREAMS] for members in by_rtt.values() for k in range(0, len(members), MAX_STREAMS)]


def make_plan(
    point: Point,
    seed: int,
    ccas: dict[str, str],
    *,
    virtual: bool = True,
    own_machine: bool = True,
    preload: str | None = None,
    traceable: Collection[str] = (),
) -> Plan:
    """The plan for one run.

    Args:
        point: what to run.
        seed: decides the drawn RTTs (and, elsewhere, the guest's entropy).
        ccas: the kernel's names of the CCAs: {"bbr1": "bbr", ...}.
        virtual: whether the guest runs in virtual time.
        own_machine: whether the guest is a machine of its own, not this one.
        preload: the iperf3 helper library as the guest sees it, or None.
        traceable: the kernel's names of the CCAs of which every ACK is to be recorded, if the scenario has them.

    Raises:
        UserError: for a CCA that the kernel lacks.
    """
    scenario = point.scenario
    network = scenario.network
    missing = sorted({f.cca for f in scenario.flows} - set(ccas))
    if missing:
        raise UserError(
            f"{scenario.name}: flows: this kernel has no {', '.join(missing)} (it has {', '.join(sorted(ccas))}); "
            "choose another kernel with --kernel (config/kernels.yaml lists them)"
        )
    rtts = draw_rtts(scenario, seed)
    hosts = Hosts(scenario)
    flows: list[FlowPlan] = []
    transfers: list[dict[str, Any]] = []
    short: list[dict[str, Any]] = []
    workloads: dict[int, pd.DataFrame] = {}
    end_ns = round(scenario.duration_s * NS)
    for g, flow in enumerate(scenario.flows):
        if flow.traffic is not None:
            from bbrlab.workload.workload import workload_of  # takes a second that other runs need not wait

            short.append(_short_flows(scenario, hosts, g, flow, rtts[g][0], ccas[flow.cca]))
            workloads[g] = workload_of(
                flow.traffic.mode, flow.traffic.trace, seed, scenario.duration_s, flow.traffic.offered_mbit
            )
            continue
        first = sum(f.count for f in scenario.flows[:g] if f.traffic is None)
        for members in _transfers(flow, rtts[g]):
            rtt = rtts[g][members[0]]
            client, server = hosts.sender(g, flow, rtt), hosts.receiver(flow)
            transfers.append({
                "id": len(transfers),
                "client": client["name"],
                "server": server["name"],
                "server_ip": server["ip"],
                "port": FIRST_PORT + len(transfers),
                "cca": ccas[flow.cca],
                "streams": len(members),
                "start_ns": round(flow.start_s * NS),
                "stop_ns": end_ns if flow.stop_s is None else round(flow.stop_s * NS),
                "bytes": flow.bytes,
                "receive_lowat_bytes": _receive_lowat_bytes(scenario, flow),
            })  # fmt: skip
            flows += [FlowPlan(first + i, g, len(transfers) - 1, k, rtt) for k, i in enumerate(members)]
    flows.sort(key=lambda f: f.flow)
    directions = {f.direction for f in scenario.flows}
    receivers = {d: hosts.by_key["receive", d] for d in directions}
    links = []
    for direction, device in (("forward", "s1-s2"), ("reverse", "s2-s1")):
        if direction in directions:
            sender = next(h for k, h in hosts.by_key.items() if k[0] == "send" and k[1] == direction)
            links.append({
                "direction": direction,
                "device": device,
                "rate_bps": round(network.rate_mbit * 1e6),
                "buffer_bytes": network.buffer_bytes,
                "qdisc": qdisc_words(network.qdisc, network.buffer_bytes, network.rate_mbit),
                "burst": network.qdisc.kind not in ("red", "cake"),
                "burst_from": sender["name"],
                "burst_to_ip": receivers[direction]["ip"],
            })  # fmt: skip
    senders = [h for h in hosts.specs if h["sends"]]
    other_end = {"s1": receivers.get("forward"), "s2": receivers.get("reverse")}
    pings = [{"host": h["name"], "address": other_end[h["side"]]["ip"]} for h in senders]  # type: ignore[index]
    changes = [
        {
            "at_ns": round(c.at_s * NS),
            "rate_bps": None if c.rate_mbit is None else round(c.rate_mbit * 1e6),
            "delay_us": None if c.rtt_ms is None else {h["name"]: c.rtt_ms * 1000 for h in senders if h["network_rtt"]},
            "loss": c.loss,
        }
        for c in network.changes
    ]
    traced = sorted({ccas[f.cca] for f in scenario.flows} & set(traceable))
    content = {
        "format": PLAN_FORMAT,
        "virtual": virtual,
        "own_machine": own_machine,
        "seed": seed,
        "sample_hz": scenario.sample_hz,
        "duration_ns": end_ns,
        "window_ns": [round(s * NS) for s in scenario.window_s],
        "switch_links": switch_links(hosts.specs),
        "hosts": hosts.specs,
        "bottlenecks": links,
        "segmentation": scenario.hosts.segmentation,
        "interrupt_delay_us": scenario.hosts.interrupt_delay_us,
        "sysctls": sysctls(scenario, max(max(r) for r in rtts), len(flows) + SHORT_FLOWS_AT_ONCE * len(short)),
        "loss": network.loss,
        "loss_devices": loss_devices(scenario, hosts.specs),
        "changes": changes,
        "pings": pings,
        "transfers": transfers,
        "short_flows": short,
        "preload": preload,
        "trace_acks": traced,
        "ccas": sorted({ccas[f.cca] for f in scenario.flows}),
    }
    arguments = []
    for name in sorted({f.cca for f in scenario.flows}):
        params = next(f.params for f in scenario.flows if f.cca == name)
        arguments += [f"tcp_{ccas[name]}.{k}={_module_value(v)}" for k, v in params.items()]
    arguments += [f"tcp_{name}.trace_acks={TRACE_RECORDS}" for name in traced]
    return Plan(content, flows, arguments, workloads)


def _short_flows(scenario: Scenario, hosts: Hosts, group: int, flow: Flow, rtt_ms: float, cca: str) -> dict[str, Any]:
    """The plan's entry for a group of short flows."""
    assert flow.traffic is not None
    clients = [hosts.sender(group, flow, rtt_ms, copy)["name"] for copy in range(flow.traffic.senders)]
    server = hosts.receiver(flow)
    return {
        "group": group,
        "clients": clients,
        "server": server["name"],
        "server_ip": server["ip"],
        "port": SHORT_FLOWS_PORT + group,
        "cca": cca,
        "rtt_ms": rtt_ms,
        "workload": f"short-{group}.csv",
    }


def _receive_lowat_bytes(scenario: Scenario, flow: Flow) -> int:
    """How much a receiver waits for before it reads; 0: for every packet.

    A window of the user's own size must be emptied at once. So must a finite transfer, or iperf3 would not count its
    last bytes; only where that would cost too much is it read like the others.
    """
    if scenario.hosts.rmem_max_bytes or (flow.bytes is not None and flow.bytes <= EAGER_TRANSFER_BYTES):
        return 0
    low, high = RECEIVE_LOWAT_BOUNDS_BYTES
    return max(low, min(high, RECEIVE_LOWAT_TOTAL_BYTES // sum(f.count for f in scenario.flows)))


def _module_value(value: Any) -> str:
    return {True: "Y", False: "N"}[value] if isinstance(value, bool) else str(value)
