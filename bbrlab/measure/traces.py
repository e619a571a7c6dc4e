"""Decodes the guest's raw netlink replies into tables.

Kernel structures: ``struct inet_diag_msg`` (uapi/linux/inet_diag.h), ``struct tcp_info`` (uapi/linux/tcp.h), BBR's own
(bbrlab/measure/bbr_record.py), of each ACK (bbrlab/measure/ack_records.py); qdisc statistics: ``struct gnet_stats_basic``, ``gnet_stats_queue`` (uapi/linux/gen_stats.h).
The replies of one kind differ in nothing but their values from sample to sample, so whole stacks of equally long
replies are decoded at once.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from pathlib import Path

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.experiment.links import name_of
from bbrlab.experiment.plan import Plan
from bbrlab.measure import ack_records, netlink
from bbrlab.measure.netlink import KIND_ACKS, KIND_DESTROYED, KIND_QDISC, KIND_SOCKETS, stacks_of
from bbrlab.measure.queues import Queue, queue_of
from bbrlab.measure.sockets import Flows, concatenated, decode_stack, flows_of


def decode(path: Path, plan: Plan) -> tuple[Flows, dict[str, Queue]]:
    """The flows' table of samples.raw, and {name of a bottleneck (experiment.links.name_of()): its table}. ValueError if the file
    is cut off or has unknown content."""
    data = path.read_bytes()
    raw = np.frombuffer(data, np.uint8)
    groups: dict[tuple[int, int, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    queues: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    acks: list[Array] = []
    for time_ns, source, kind, offset, length in netlink.records(data):
        if kind == KIND_QDISC:
            queues[source].append((time_ns, offset, length))
        elif kind == KIND_ACKS:
            acks.append(raw[offset : offset + length])
        else:
            times, offsets = groups[kind, source, length]
            times.append(time_ns)
            offsets.append(offset)
    parts: dict[int, list[dict[str, Array]]] = {KIND_SOCKETS: [], KIND_DESTROYED: []}
    for (kind, source, length), (times, offsets) in groups.items():
        stamps = np.asarray(times)
        for chosen, block, messages in stacks_of(raw, data, offsets, length):
            first = offsets[chosen[0]]
            for offset, size in messages:
                columns = decode_stack(block, data, first, offset, size)
                if columns is not None:
                    columns["time_ns"] = stamps[chosen]
                    columns["key"][:, 0] = source
                    parts[kind].append(columns)
    flows, assigned = flows_of(concatenated(parts[KIND_SOCKETS]), concatenated(parts[KIND_DESTROYED]), plan)
    if plan.content["trace_acks"]:
        _add_acks(flows, np.concatenate([raw[:0], *acks]).view(ack_records.RECORD), assigned, plan)
    links = plan.content["bottlenecks"]
    queue_of_link: dict[str, Queue] = {name_of(link): queue_of(data, queues[i]) for i, link in enumerate(links)}
    _end_by_samples(flows, next(iter(queue_of_link.values())).columns["time_s"])
    return flows, queue_of_link


def _end_by_samples(flows: Flows, instants_s: Array) -> None:
    """Set the end of a destroyed socket to the first instant without a sample of it; the guest learns of the end up to a second later.

    Args:
        instants_s: at which samples were taken, ascending.
    """
    columns = flows.columns
    for flow, final in flows.final.items():
        sampled_s = columns["time_s"][columns["flow"] == flow]
        later = instants_s[instants_s > sampled_s[-1]] if len(sampled_s) else instants_s[:0]
        if len(later):
            final["time_ns"] = min(final["time_ns"], round(float(later[0]) * 1e9))


def _add_acks(flows: Flows, records: Array, assigned: dict[tuple[int, int, int], int], plan: Plan) -> None:
    """Add the records of the flows' ACKs."""
    address_of = [np.frombuffer(_mapped(h["ip"]), np.uint8) for h in plan.content["hosts"]]
    flow = np.full(len(records), -1, "<i4")
    for (source, local, remote), number in assigned.items():
        rows = np.flatnonzero((records["source_port"] == local) & (records["destination_port"] == remote))
        flow[rows[(records["source_address"][rows] == address_of[source]).all(axis=1)]] = number
    keep = flow >= 0  # the others are iperf3's control connections, and the receivers'
    chosen = records[keep]
    table: dict[str, Array] = {"time_ns": chosen["time_ns"].astype("<i8"), "flow": flow[keep]}
    table |= ack_records.columns(chosen)
    order = np.argsort(table["time_ns"], kind="stable")
    flows.acks = {name: values[order] for name, values in table.items()}
    flows.acks_missing = int(records["number"][-1]) + 1 - len(records) if len(records) else 0


def _mapped(address: str) -> bytes:
    """An address in 16 bytes, one of IPv4 as the kernel writes it into IPv6's: ::ffff:a.b.c.d."""
    packed = ipaddress.ip_address(address).packed
    return packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed
