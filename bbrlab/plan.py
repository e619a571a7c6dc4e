"""Turns one point of a scenario and a seed into the plan that the guest carries out.

The plan (docs/plan.md) speaks of hosts, switch ports, tc words and iperf3 processes only: everything that needs a
decision or a random draw is decided here, so that the guest's code needs nothing of ours.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bbrlab.errors import UserError
from bbrlab.scenario import FRAME_BYTES, MAX_STREAMS, Flow, Point, Qdisc, Scenario

if TYPE_CHECKING:
    import pandas as pd

PLAN_FORMAT = 1
NS = 1_000_000_000
TRACE_RECORDS = 1 << 17  # ACKs that a module keeps until the next sample is taken
FIRST_PORT = 5201  # iperf3's own
# "Never the limit": room for this many times the largest possible flight (BDP + buffer) in the receiver's and sender's
# buffer, each byte of payload taking up to about twice its size in kernel memory.
WINDOW_FLIGHTS = 4
MIN_WINDOW_BYTES = 64 << 20
# A sender whose buffer starts large is woken seldom; shared among flows so that a guest's memory stays bounded.
SEND_BUFFER_TOTAL_BYTES = 8 << 20
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
        workloads: {group: chunks of its short flows} (bbrlab.short_flows.COLUMNS).
    """

    content: dict[str, Any]
    flows: list[FlowPlan]
    kernel_arguments: list[str]
    workloads: dict[int, pd.DataFrame] = field(default_factory=dict)


def qdisc_words(qdisc: Qdisc, buffer_bytes: int, rate_mbit: float) -> list[str]:
    """The tc words of the bottleneck queue with a limit of ``buffer_bytes``."""
    packets = str(max(1, buffer_bytes // FRAME_BYTES))
    ecn = [] if qdisc.ecn is None else ["ecn" if qdisc.ecn else "noecn"]

    def ms(name: str, value: float | None) -> list[str]:
        return [] if value is None else [name, f"{value * 1000:.3f}us"]

    def number(name: str, value: float | None) -> list[str]:
        return [] if value is None else [name, str(value)]

    if qdisc.kind == "fifo":
        return ["bfifo", "limit", str(buffer_bytes)]
    if qdisc.kind == "red":
        low = qdisc.min_bytes or max(FRAME_BYTES, buffer_bytes // 12)
        high = qdisc.max_bytes or max(low + FRAME_BYTES, buffer_bytes // 4)
        average = qdisc.avpkt_bytes or FRAME_BYTES
        burst = qdisc.burst_packets or -(-(2 * low + high) // (3 * average)) + 1  # tc-red(8)'s own advice
        flags = (["ecn"] if qdisc.ecn else []) + (["harddrop"] if qdisc.harddrop else []) + (["adaptive"] if qdisc.adaptive else [])  # fmt: skip
        return ["red", "limit", str(buffer_bytes), "min", str(low), "max", str(high), "avpkt", str(average), "burst",
                str(burst), "bandwidth", f"{rate_mbit * 1e6:.0f}bit",
                "probability", str(qdisc.probability or 0.02), *flags]  # fmt: skip
    if qdisc.kind == "codel":
        return ["codel", "limit", packets, *ms("target", qdisc.target_ms), *ms("interval", qdisc.interval_ms),
                *ms("ce_threshold", qdisc.ce_threshold_ms), *ecn]  # fmt: skip
    if qdisc.kind == "fq_codel":
        return ["fq_codel", "limit", packets, *number("flows", qdisc.flows), *number("quantum", qdisc.quantum_bytes),
                *ms("target", qdisc.target_ms), *ms("interval", qdisc.interval_ms),
                *ms("ce_threshold", qdisc.ce_threshold_ms), *ecn]  # fmt: skip
    if qdisc.kind == "pie":
        return ["pie", "limit", packets, *ms("target", qdisc.target_ms), *ms("tupdate", qdisc.tupdate_ms),
                *number("alpha", qdisc.alpha), *number("beta", qdisc.beta), *ecn]  # fmt: skip
    if qdisc.kind == "cake":
        return ["cake", "unlimited", "memlimit", f"{buffer_bytes}b", qdisc.isolation or "triple-isolate",
                *ms("rtt", qdisc.rtt_ms)]  # fmt: skip
    limit = str(qdisc.flow_limit_packets) if qdisc.flow_limit_packets else packets
    return ["fq", "limit", packets, "flow_limit", limit, *number("quantum", qdisc.quantum_bytes), "nopacing",
            *ms("ce_threshold", qdisc.ce_threshold_ms)]  # fmt: skip


def draw_rtts(scenario: Scenario, seed: int) -> list[list[float]]:
    """Base RTT in ms of each flow of each group; ranges are drawn uniformly, from a stream of the seed's own."""
    drawn = []
    for g, flow in enumerate(scenario.flows):
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


def _transfers(flow: Flow, rtts: list[float]) -> list[list[int]]:
    """Indices of the group's flows that one iperf3 process carries: equal RTT, at most 128, finite ones alone."""
    if flow.bytes is not None:  # iperf3 -n counts all streams together
        return [[i] for i in range(flow.count)]
    by_rtt: dict[float, list[int]] = {}
    for i, rtt in enumerate(rtts):
        by_rtt.setdefault(rtt, []).append(i)
    return [members[k : k + MAX_STREAMS] for members in by_rtt.values() for k in range(0, len(members), MAX_STREAMS)]


class _Hosts:
    """Hands out hosts: one per (direction, RTT, jitter, own RTT or the network's), which is one per delay path."""

    def __init__(self, scenario: Scenario):
        self.scenario = scenario
        self.specs: list[dict[str, Any]] = []
        self.by_key: dict[tuple[Any, ...], dict[str, Any]] = {}

    def _add(self, switch: str, **fields: Any) -> dict[str, Any]:
        side = {"s1": 1, "s2": 2}[switch]
        number = sum(h["switch"] == switch for h in self.specs) + 1
        spec = {
            "name": f"{'h' if side == 1 else 'r'}{number}",
            "switch": switch,
            "ip": f"10.0.{side * 16 + number // 250}.{number % 250 + 1}",
            "sends": False,
            "receives": False,
            "delay_us": 0.0,
            "jitter_kind": None,
            "jitter_us": 0.0,
            "pacing": self.scenario.hosts.pacing,
            **fields,
        }
        self.specs.append(spec)
        return spec

    def sender(self, group: int, flow: Flow, rtt_ms: float, copy: int = 0) -> dict[str, Any]:
        jitter = self.scenario.network.jitter
        shaken = jitter is not None and jitter.group in (None, group)
        key = ("send", flow.direction, rtt_ms, shaken, flow.rtt_ms is None, copy)
        if key not in self.by_key:
            self.by_key[key] = self._add(
                "s1" if flow.direction == "forward" else "s2",
                sends=True,
                delay_us=rtt_ms * 1000,
                jitter_kind=jitter.kind if shaken and jitter else None,
                jitter_us=jitter.ms * 1000 if shaken and jitter else 0.0,
                network_rtt=flow.rtt_ms is None,
            )
        return self.by_key[key]

    def receiver(self, flow: Flow) -> dict[str, Any]:
        key = ("receive", flow.direction)
        if key not in self.by_key:
            self.by_key[key] = self._add("s2" if flow.direction == "forward" else "s1", receives=True)
        return self.by_key[key]


def sysctls(scenario: Scenario, rtt_max_ms: float, flow_count: int) -> dict[str, Any]:
    """Kernel settings of every end host."""
    rates = [scenario.network.rate_mbit] + [c.rate_mbit for c in scenario.network.changes if c.rate_mbit]
    rtts = [rtt_max_ms] + [c.rtt_ms for c in scenario.network.changes if c.rtt_ms]
    flight = max(rates) * 1e6 / 8 * max(rtts) * 1e-3 + scenario.network.buffer_bytes
    window = min(1 << 30, max(MIN_WINDOW_BYTES, int(WINDOW_FLIGHTS * flight)))
    rmem, wmem = scenario.hosts.rmem_max_bytes, scenario.hosts.wmem_max_bytes
    start = max(64 << 10, SEND_BUFFER_TOTAL_BYTES // flow_count)
    return {
        "net.ipv4.tcp_ecn": 1 if scenario.hosts.ecn == "on" else 0,
        "net.ipv4.tcp_no_metrics_save": 1,
        "net.ipv4.tcp_rmem": f"4096 {rmem or window} {rmem or window}",
        "net.ipv4.tcp_wmem": f"4096 {min(start, wmem or window)} {wmem or window}",
    }


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
    hosts = _Hosts(scenario)
    flows: list[FlowPlan] = []
    transfers: list[dict[str, Any]] = []
    short: list[dict[str, Any]] = []
    workloads: dict[int, pd.DataFrame] = {}
    end_ns = round(scenario.duration_s * NS)
    for g, flow in enumerate(scenario.flows):
        if flow.traffic is not None:
            from bbrlab import short_flows  # takes a second that other runs need not wait

            short.append(_short_flows(scenario, hosts, g, flow, rtts[g][0], ccas[flow.cca]))
            workloads[g] = short_flows.workload(
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
    pings = [{"host": h["name"], "address": other_end[h["switch"]]["ip"]} for h in senders]  # type: ignore[index]
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
        "hosts": hosts.specs,
        "bottlenecks": links,
        "segmentation": scenario.hosts.segmentation,
        "sysctls": sysctls(scenario, max(max(r) for r in rtts), len(flows) + SHORT_FLOWS_AT_ONCE * len(short)),
        "loss": network.loss,
        "loss_hop": network.loss > 0 or any(c.loss is not None for c in network.changes),
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


def _short_flows(scenario: Scenario, hosts: _Hosts, group: int, flow: Flow, rtt_ms: float, cca: str) -> dict[str, Any]:
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
