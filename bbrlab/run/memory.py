"""The memory that a guest is given: measured needs, and room to spare.

Measured in guests in virtual time (Linux 6.12, /proc/meminfo at each sample, total less available) on 2026-11-27. Memory that a
guest does not touch costs the host nothing, and how much it has does not change a run's bytes (0.45, 1, 4 and 12 GB: equal).

| of | measured | planned |
|---|---|---|
| the guest itself, one flow | 40 MiB | 448 MiB |
| a host: namespace, veth, netem, sockets (250 hosts: 228 MiB with their servers) | 0.9 MiB with a server | 1 MiB |
| its fq with 65,536 buckets (``hosts.pacing: fq``) | 0.5 MiB by the kernel's source | 0.5 MiB |
| an iperf3 server and client (250 hosts: 941 MiB while they send) | 3.8 MiB with a host | 4 MiB |
| a flow: two sockets and what they hold beyond what is in flight (1000 flows: 115 MiB) | 0.12 MiB | 0.25 MiB |
"""

from __future__ import annotations

from collections.abc import Mapping

from bbrlab.experiment.plan import Plan
from bbrlab.scenario.point import Point
from bbrlab.scenario.rates import highest_mbit
from bbrlab.scenario.schema import MAX_STREAMS, Flow, Network, Scenario

WORKLOAD_BYTES = 100  # of a process for each row of its workload, with room to spare
FQ_FLOW_BYTES = 192  # struct fq_flow, with room to spare
LEAST_BYTES = 448 << 20
PER_FLIGHT = 4  # kernel memory per byte in flight or queued, with room to spare
ACK_MEMORY = 4  # in place of PER_FLIGHT 1: an ACK of 66 bytes takes up to 1 KiB
FLIGHT_BYTES_MAX = 1 << 30  # of the window that an ACK path lets grow
HOST_BYTES = 1 << 20
FQ_BYTES = 1 << 19
CLIENT_AND_SERVER_BYTES = 4 << 20
FLOW_BYTES = 1 << 18
# A block of each stream at each end, and the file in memory that backs it, where iperf3 is left alone: in real time. In virtual
# time all streams of a process share one block (mininet/iperf3_patience.c).
BLOCKS_BYTES = 4 << 20


def guest_bytes(point: Point, workload_bytes: float = 0, *, virtual: bool = True) -> int:
    """Memory of a guest."""
    return int(LEAST_BYTES + sum(parts_bytes(point, workload_bytes, virtual=virtual).values()))


def parts_bytes(point: Point, workload_bytes: float = 0, *, virtual: bool = True) -> Mapping[str, float]:
    """{fields of the scenario, in words: bytes that a guest needs for them beyond the least}."""
    scenario = point.scenario
    flows = sum(f.count for f in scenario.flows if f.traffic is None)
    hosts = sum(sending_hosts(f, scenario) for f in scenario.flows)
    clients = sum(_clients(f, scenario) for f in scenario.flows)
    host_bytes = HOST_BYTES + (FQ_BYTES if scenario.hosts.pacing == "fq" else 0)
    return {
        "flows (count)": flows * (FLOW_BYTES + (0 if virtual else BLOCKS_BYTES)),
        "flows with an iperf3 each (bytes, or RTTs of their own)": clients * CLIENT_AND_SERVER_BYTES
        + hosts * host_bytes,
        "data in flight and in the buffer (network.rate_mbit, rtt_ms, buffer)": PER_FLIGHT * flight_bytes(point),
        "short flows (traffic)": workload_bytes,
    }


def largest_part(point: Point, workload_bytes: float = 0, *, virtual: bool = True) -> str:
    """The fields that need most memory, and how much, in words."""
    name, size = max(parts_bytes(point, workload_bytes, virtual=virtual).items(), key=lambda item: item[1])
    return f"{name}: {size / (1 << 20):.0f} MiB"


def flight_bytes(point: Point) -> float:
    """Bytes that can be in flight and queued at once."""
    network = point.scenario.network
    rtts = [network.rtt_ms, *(c.rtt_ms for c in network.changes), *(f.rtt_ms for f in point.scenario.flows)]
    longest = [max(rtt_ms) if isinstance(rtt_ms, list) else rtt_ms or 0.0 for rtt_ms in rtts]
    longest += [rtt_ms for f in point.scenario.flows for rtt_ms in f.rtts_ms or ()]
    varies_ms = (network.jitter.ms if network.jitter else 0.0) + (
        network.data_path.varies_ms if network.data_path else 0.0
    )
    rtt_ms, bytes_per_s = max(longest) + varies_ms, highest_of_all_mbit(network) * 1e6 / 8
    if network.reverse is None:
        whole_ms = rtt_ms + network.links_rtt_ms
        return bytes_per_s * whole_ms * 1e-3 + sum(link.buffer_bytes for link in network.bottlenecks)
    acks = network.towards("reverse")
    waits_s = (rtt_ms + acks.grants_ms) * 1e-3 + acks.buffer_bytes * 8e-6 / acks.rate_mbit
    queues = network.buffer_bytes + ACK_MEMORY * acks.buffer_bytes
    return min(bytes_per_s * waits_s, FLIGHT_BYTES_MAX) + queues


def highest_of_all_mbit(network: Network) -> float:
    """The highest nominal rate in Mbit/s that any bottleneck of a network ever has, in either direction."""
    return max(map(highest_mbit, [*network.bottlenecks, network.towards("reverse")]))


def workload_bytes(plan: Plan) -> float:
    """The memory of the guest's processes for short flows, each with the whole workload (mininet/short_flows.py), and of fq's state of
    each connection at both ends."""
    return sum(
        len(plan.workloads[entry["group"]]) * (WORKLOAD_BYTES * (1 + len(entry["clients"])) + 2 * FQ_FLOW_BYTES)
        for entry in plan.content["short_flows"]
    )


def sending_hosts(flow: Flow, scenario: Scenario) -> int:
    """The hosts that a group of flows needs: one for each RTT, or the senders of short flows."""
    if flow.traffic is not None:
        return flow.traffic.senders
    if flow.rtts_ms is not None:
        return len(set(flow.rtts_ms))
    return flow.count if isinstance(flow.rtt_ms or scenario.network.rtt_ms, list) else 1


def _clients(flow: Flow, scenario: Scenario) -> int:
    """iperf3 clients of a group (experiment/transfers.py)."""
    if flow.traffic is not None:
        return 0
    if flow.bytes is not None:
        return flow.count
    return sending_hosts(flow, scenario) + flow.count // MAX_STREAMS
