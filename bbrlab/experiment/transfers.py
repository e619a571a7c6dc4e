"""The plan's traffic: iperf3 processes with their flows, and the senders of short flows."""

from __future__ import annotations

from dataclasses import dataclass

from bbrlab.base.errors import UserError
from bbrlab.experiment.hosts import Hosts
from bbrlab.experiment.links import NS
from bbrlab.experiment.plan_types import ShortFlowsPlan, TransferPlan
from bbrlab.scenario.schema import MAX_STREAMS, Flow, Scenario

FIRST_PORT = 5201  # iperf3's own
SHORT_FLOWS_PORT = 6201
LAST_PORT = 65_535
# So much may lie unread at the receivers; each is woken for its part of it, within bounds.
RECEIVE_LOWAT_TOTAL_BYTES = 4 << 20
RECEIVE_LOWAT_BOUNDS_BYTES = (64 << 10, 512 << 10)
EAGER_TRANSFER_BYTES = 64 << 20


@dataclass(frozen=True)
class FlowPlan:
    """One TCP flow: its group, its transfer, and its number among the transfer's streams."""

    flow: int
    group: int
    transfer: int
    stream: int
    rtt_ms: float


def plan_traffic(
    scenario: Scenario, hosts: Hosts, rtts_ms: list[list[float]], names: list[str], together: str
) -> tuple[list[TransferPlan], list[FlowPlan], list[ShortFlowsPlan]]:
    """The iperf3 pairs, every long flow in order, and an entry for each group of short flows. UserError for more than there are ports.

    Args:
        rtts_ms: base RTT of each flow of each group.
        names: for each group what the kernel calls its CCA.
        together: the library for clients that open their streams together, as the guest sees it.
    """
    transfers: list[TransferPlan] = []
    flows: list[FlowPlan] = []
    short_flows: list[ShortFlowsPlan] = []
    first = 0
    for g, flow in enumerate(scenario.flows):
        cca = names[g]
        if flow.traffic is not None:
            short_flows.append(_short_flows(hosts, g, flow, rtts_ms[g][0], cca))
            continue
        for members in _members(flow, rtts_ms[g]):
            rtt_ms = rtts_ms[g][members[0]]
            number = len(transfers)
            transfer = _transfer(scenario, hosts, g, rtt_ms, cca, number, len(members))
            if flow.start == "together" and len(members) > 1:  # a stream alone waits for no other
                transfer["together"] = together
            transfers.append(transfer)
            flows += [FlowPlan(first + i, g, number, k, rtt_ms) for k, i in enumerate(members)]
        first += flow.count
    _check_ports(scenario.name, transfers, short_flows)
    return transfers, sorted(flows, key=lambda f: f.flow), short_flows


def _transfer(
    scenario: Scenario, hosts: Hosts, group: int, rtt_ms: float, cca: str, number: int, streams: int
) -> TransferPlan:
    flow = scenario.flows[group]
    client, server = hosts.sender(group, flow, rtt_ms), hosts.receiver(flow)
    return {
        "id": number,
        "client": client["name"],
        "server": server["name"],
        "server_ip": server["ip"],
        "port": FIRST_PORT + number,
        "cca": cca,
        "streams": streams,
        "start_ns": round(flow.start_s * NS),
        "stop_ns": round((scenario.duration_s if flow.stop_s is None else flow.stop_s) * NS),
        "bytes": flow.bytes,
        "receive_lowat_bytes": _receive_lowat_bytes(scenario, flow),
    }


def _short_flows(hosts: Hosts, group: int, flow: Flow, rtt_ms: float, cca: str) -> ShortFlowsPlan:
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


def _check_ports(name: str, transfers: list[TransferPlan], short_flows: list[ShortFlowsPlan]) -> None:
    groups = {(entry["server"], entry["port"]): entry["group"] for entry in short_flows}
    for number, transfer in enumerate(transfers):
        server, port = transfer["server"], transfer["port"]
        if (group := groups.get((server, port))) is not None:
            why = f"{server}:{port}, where the short flows of group {group} arrive"
        elif port > LAST_PORT:
            why = f"port {port}, and the last is {LAST_PORT}"
        else:
            continue
        raise UserError(
            f"{name}: flows: {len(transfers)} iperf3 servers, of which number {number + 1} would listen on {why}: at most {number} are "
            f"possible, one for each flow with bytes, or for up to {MAX_STREAMS} others of a group and RTT (choose fewer flows)"
        )


def _members(flow: Flow, rtts_ms: list[float]) -> list[list[int]]:
    """Indices of the group's flows that one iperf3 process carries: equal RTT, at most 128, finite ones alone."""
    if flow.bytes is not None:  # iperf3 -n counts all streams together
        return [[i] for i in range(flow.count)]
    by_rtt: dict[float, list[int]] = {}
    for i, rtt_ms in enumerate(rtts_ms):
        by_rtt.setdefault(rtt_ms, []).append(i)
    return [members[k : k + MAX_STREAMS] for members in by_rtt.values() for k in range(0, len(members), MAX_STREAMS)]


def _receive_lowat_bytes(scenario: Scenario, flow: Flow) -> int:
    """The bytes for which a receiver waits before it reads; 0 for every packet.

    A receive window of the user's size must be emptied at once, also for the kernel to see how fast it is read, by which it grows. So must
    a finite transfer, or iperf3 would not count its last bytes, unless that would cost too much.
    """
    hosts = scenario.hosts
    if (
        hosts.rmem_max_bytes
        or hosts.rmem_initial_bytes
        or (flow.bytes is not None and flow.bytes <= EAGER_TRANSFER_BYTES)
    ):
        return 0
    low, high = RECEIVE_LOWAT_BOUNDS_BYTES
    return max(low, min(high, RECEIVE_LOWAT_TOTAL_BYTES // sum(f.count for f in scenario.flows)))
