"""Decodes the guest's raw netlink replies into tables.

Kernel structures: ``struct inet_diag_msg`` (uapi/linux/inet_diag.h), ``struct tcp_info`` (uapi/linux/tcp.h), BBR's own
(bbrlab/bbr_record.py); qdisc statistics: ``struct gnet_stats_basic``, ``gnet_stats_queue`` (uapi/linux/gen_stats.h).
The replies of one kind differ in nothing but their values from sample to sample, so whole stacks of equally long
replies are decoded at once.
"""

from __future__ import annotations

import ipaddress
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbrlab import bbr_record
from bbrlab.plan import Plan

HEAD = struct.Struct("<qHHI")  # mininet/sampler.py
KIND_SOCKETS, KIND_DESTROYED, KIND_QDISC, KIND_ACKS = 0, 1, 2, 3
NLMSG_HEADER, DIAG_MESSAGE, TC_MESSAGE = 16, 72, 20
ATTR_INFO, ATTR_BBR = 2, 16
TCA_KIND, TCA_STATS2, TCA_STATS_APP = 1, 7, 4
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_PKT64 = 1, 3, 8

# name in the table: (offset in struct tcp_info, numpy type)
TCP_INFO = {
    "state": (0, "u1"),
    "ca_state": (1, "u1"),
    "rto_us": (8, "<u4"),
    "snd_mss": (16, "<u4"),
    "unacked": (24, "<u4"),
    "sacked": (28, "<u4"),
    "lost": (32, "<u4"),
    "retrans": (36, "<u4"),
    "srtt_us": (68, "<u4"),
    "rttvar_us": (72, "<u4"),
    "ssthresh": (76, "<u4"),
    "cwnd": (80, "<u4"),
    "total_retrans": (100, "<u4"),
    "pacing_rate": (104, "<u8"),
    "bytes_acked": (120, "<u8"),
    "bytes_received": (128, "<u8"),
    "segs_out": (136, "<u4"),
    "notsent_bytes": (144, "<u4"),
    "min_rtt_us": (148, "<u4"),
    "data_segs_out": (156, "<u4"),
    "delivery_rate": (160, "<u8"),
    "busy_us": (168, "<u8"),
    "rwnd_limited_us": (176, "<u8"),
    "sndbuf_limited_us": (184, "<u8"),
    "delivered": (192, "<u4"),
    "delivered_ce": (196, "<u4"),
    "bytes_sent": (200, "<u8"),
    "bytes_retrans": (208, "<u8"),
}
TCP_INFO_BYTES = 216  # what the fields above need; kernels append, they never move

Array = NDArray[Any]


@dataclass
class Flows:
    """All samples of all flows, sorted by time, then flow.

    Attributes:
        columns: {name: array of shape (samples,)}. ``time_s``: seconds since the experiment's start; ``flow``: index;
            tcp_info fields with units in their names; rates in bytes/s as the kernel gives them; ``bbr_*``
            (bbr_record.COLUMNS) are NaN for flows of other CCAs.
        final: {flow: {field: last value of the destroyed socket}}.
        acks: one row per ACK if they were traced, else None: ``time_ns`` on the guest's clock, ``flow``, the fields of
            bbr_record.ACK_RECORD and ``bbr_*``.
        acks_missing: how many ACKs came too fast to be kept.
    """

    columns: dict[str, Array]
    final: dict[int, dict[str, int]]
    acks: dict[str, Array] | None = None
    acks_missing: int = 0


@dataclass
class Queue:
    """All samples of one bottleneck: ``time_s``, ``bytes``, ``packets``, and the counters ``sent_bytes``,
    ``sent_packets``, ``drops``, ``marks``, each of shape (samples,)."""

    columns: dict[str, Array]


def _records(data: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """(time_ns, source, kind, offset, length) of each record."""
    position, end = 0, len(data)
    while position + HEAD.size <= end:
        time_ns, source, kind, length = HEAD.unpack_from(data, position)
        position += HEAD.size
        if position + length > end:
            raise ValueError(f"samples.raw is cut off at byte {position}")
        yield time_ns, source, kind, position, length
        position += length


def _attributes(data: bytes, start: int, end: int) -> dict[int, tuple[int, int]]:
    """{type: (offset, length)} of the netlink attributes in data[start:end]."""
    found = {}
    while start + 4 <= end:
        length, kind = struct.unpack_from("<HH", data, start)
        if length < 4:
            break
        found[kind & 0x3FFF] = (start + 4, length - 4)
        start += (length + 3) & ~3
    return found


def _messages(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """(offset, length) of each netlink message in data[start:end]."""
    while start + NLMSG_HEADER <= end:
        (length,) = struct.unpack_from("<I", data, start)
        if length < NLMSG_HEADER:
            break
        yield start, length
        start += (length + 3) & ~3


def _stacks(
    raw: Array, data: bytes, offsets: list[int], length: int
) -> Iterator[tuple[Array, Array, list[tuple[int, int]]]]:
    """Split equally long replies into stacks of equal message layout: (indices, matrix of bytes, messages)."""
    matrix = np.empty((len(offsets), length), np.uint8)
    for row, offset in enumerate(offsets):
        matrix[row] = raw[offset : offset + length]
    left = np.arange(len(offsets))
    while len(left):
        first = offsets[left[0]]
        messages = [(o - first, n) for o, n in _messages(data, first, first + length)]
        same = np.ones(len(left), dtype=bool)
        for offset, _ in messages:
            words = matrix[left, offset : offset + 4]
            same &= (words == words[0]).all(axis=1)
            # attribute headers too: every reply of the stack must hold the same attributes at the same places
            start, end = offset + NLMSG_HEADER + DIAG_MESSAGE, offset + _message_length(messages, offset)
            for at, _ in _attributes(data, first + start, first + end).values():
                head = matrix[left, at - first - 4 : at - first]
                same &= (head == head[0]).all(axis=1)
        chosen = left[same]
        yield chosen, matrix[chosen], messages
        left = left[~same]


def _message_length(messages: list[tuple[int, int]], offset: int) -> int:
    return next(n for o, n in messages if o == offset)


def _field(block: Array, offset: int, kind: str) -> Array:
    """Column of a matrix of bytes, read as numbers."""
    width = np.dtype(kind).itemsize
    return np.ascontiguousarray(block[:, offset : offset + width]).view(kind)[:, 0]


class _Sockets:
    """Tells the connections of each transfer apart.

    An iperf3 client opens its control connection first, and that is the only one on which it receives anything; the
    streams follow in order, so their socket inodes ascend.
    """

    def __init__(self, plan: Plan, host_names: list[str]):
        self.by_port = {t["port"]: t for t in plan.content["transfers"]}
        self.host_names = host_names
        self.flow_of = {(f.transfer, f.stream): f.flow for f in plan.flows}

    def assign(self, seen: dict[tuple[int, int, int], tuple[int, int]]) -> dict[tuple[int, int, int], int]:
        """{(source, local port, remote port): flow} from {...: (inode, bytes received)}."""
        result = {}
        by_transfer: dict[int, list[tuple[int, int, tuple[int, int, int]]]] = defaultdict(list)
        for key, (inode, received) in seen.items():
            source, _, remote = key
            transfer = self.by_port.get(remote)
            if transfer and transfer["client"] == self.host_names[source]:
                by_transfer[transfer["id"]].append((inode, received, key))
        for transfer, sockets in by_transfer.items():
            sockets.sort()
            control = max(sockets, key=lambda s: s[1]) if any(s[1] > 1 for s in sockets) else sockets[0]
            sockets.remove(control)
            for stream, (_, _, key) in enumerate(sockets):
                if (transfer, stream) in self.flow_of:
                    result[key] = self.flow_of[transfer, stream]
        return result


def _empty(count: int) -> dict[str, Array]:
    columns: dict[str, Array] = {
        "time_ns": np.zeros(count, "<i8"),
        "key": np.zeros((count, 3), "<i8"),
        "inode": np.zeros(count, "<i8"),
    }
    for name, (_, kind) in TCP_INFO.items():
        columns[name] = np.zeros(count, kind)
    for name in bbr_record.COLUMNS:
        columns[name] = np.full(count, np.nan)
    return columns


def _decode_stack(block: Array, data: bytes, first: int, offset: int, length: int) -> dict[str, Array] | None:
    """Columns of the message at ``offset`` of every reply in a stack; None if it carries no tcp_info."""
    attributes = _attributes(data, first + offset + NLMSG_HEADER + DIAG_MESSAGE, first + offset + length)
    if ATTR_INFO not in attributes or attributes[ATTR_INFO][1] < TCP_INFO_BYTES:
        return None
    base = offset + NLMSG_HEADER
    columns = _empty(len(block))
    columns["key"][:, 1] = _field(block, base + 4, ">u2")
    columns["key"][:, 2] = _field(block, base + 6, ">u2")
    columns["inode"] = _field(block, base + 68, "<u4").astype("<i8")
    info = attributes[ATTR_INFO][0] - first
    for name, (at, kind) in TCP_INFO.items():
        columns[name] = _field(block, info + at, kind)
    if ATTR_BBR in attributes:
        at, size = attributes[ATTR_BBR][0] - first, attributes[ATTR_BBR][1]
        columns |= bbr_record.columns(block[:, at : at + size])
    return columns


def _concatenate(parts: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]} if parts else _empty(0)


def decode(path: Path, plan: Plan) -> tuple[Flows, dict[str, Queue]]:
    """Decode samples.raw.

    Args:
        path: the file.
        plan: the plan that made it.

    Returns:
        The flows' table and {direction: the bottleneck's table}.

    Raises:
        ValueError: if the file is cut off or holds something unknown.
    """
    data = path.read_bytes()
    raw = np.frombuffer(data, np.uint8)
    groups: dict[tuple[int, int, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    queues: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    acks: dict[int, list[Array]] = defaultdict(list)
    for time_ns, source, kind, offset, length in _records(data):
        if kind == KIND_QDISC:
            queues[source].append((time_ns, offset, length))
        elif kind == KIND_ACKS:
            acks[source].append(raw[offset : offset + length])
        else:
            times, offsets = groups[kind, source, length]
            times.append(time_ns)
            offsets.append(offset)
    parts: dict[int, list[dict[str, Array]]] = {KIND_SOCKETS: [], KIND_DESTROYED: []}
    for (kind, source, length), (times, offsets) in groups.items():
        stamps = np.asarray(times)
        for chosen, block, messages in _stacks(raw, data, offsets, length):
            first = offsets[chosen[0]]
            for offset, size in messages:
                columns = _decode_stack(block, data, first, offset, size)
                if columns is not None:
                    columns["time_ns"] = stamps[chosen]
                    columns["key"][:, 0] = source
                    parts[kind].append(columns)
    flows, assigned = _flows(_concatenate(parts[KIND_SOCKETS]), _concatenate(parts[KIND_DESTROYED]), plan)
    if plan.content["trace_acks"]:
        modules = [np.concatenate(parts).view(bbr_record.ACK_RECORD) for parts in acks.values()]
        _add_acks(flows, modules, assigned, plan)
    links = plan.content["bottlenecks"]
    return flows, {links[i]["direction"]: _queue(data, records) for i, records in queues.items()}


def _code(keys: Array) -> Array:
    """(source, local port, remote port) as one number each."""
    return keys[:, 0] << 32 | keys[:, 1] << 16 | keys[:, 2]


def _flows(
    living: dict[str, Array], dead: dict[str, Array], plan: Plan
) -> tuple[Flows, dict[tuple[int, int, int], int]]:
    names = [h["name"] for h in plan.content["hosts"]]
    seen: dict[tuple[int, int, int], tuple[int, int]] = {}
    for table in (dead, living):  # a destroyed socket has no inode any more
        code = _code(table["key"])
        order = np.argsort(code, kind="stable")
        edges = np.flatnonzero(np.diff(code[order], prepend=-1))
        if not len(code):
            continue
        inodes = np.maximum.reduceat(table["inode"][order], edges)
        received = np.maximum.reduceat(table["bytes_received"][order], edges)
        for i, at in enumerate(order[edges]):
            source, local, remote = (int(v) for v in table["key"][at])
            old = seen.get((source, local, remote), (0, 0))
            seen[source, local, remote] = (max(old[0], int(inodes[i])), max(old[1], int(received[i])))
    assigned = _Sockets(plan, names).assign(seen)

    def flow_column(table: dict[str, Array]) -> Array:
        code = _code(table["key"])
        result = np.full(len(code), -1)
        for (source, local, remote), flow in assigned.items():
            result[code == (source << 32 | local << 16 | remote)] = flow
        return result

    flow = flow_column(living)
    keep = flow >= 0
    order = np.lexsort((flow[keep], living["time_ns"][keep]))
    columns: dict[str, Array] = {
        "time_s": (living["time_ns"][keep] / 1e9)[order],
        "flow": flow[keep][order].astype("<i4"),
    }
    for name in [*TCP_INFO, *bbr_record.COLUMNS]:
        columns[name] = living[name][keep][order]
    final: dict[int, dict[str, int]] = {}
    for i, f in enumerate(flow_column(dead)):
        if f >= 0:
            final[int(f)] = {name: int(dead[name][i]) for name in TCP_INFO} | {"time_ns": int(dead["time_ns"][i])}
    return Flows(columns, final), assigned


def _add_acks(flows: Flows, modules: list[Array], assigned: dict[tuple[int, int, int], int], plan: Plan) -> None:
    """Add the ACKs that each module recorded."""
    records = np.concatenate(modules) if modules else np.zeros(0, bbr_record.ACK_RECORD)
    address_of = [int(ipaddress.ip_address(h["ip"])) for h in plan.content["hosts"]]
    flow = np.full(len(records), -1, "<i4")
    for (source, local, remote), number in assigned.items():
        mine = (records["source_port"] == local) & (records["destination_port"] == remote)
        flow[mine & (records["source_address"] == address_of[source])] = number
    keep = flow >= 0  # the others are iperf3's control connections
    chosen = records[keep]
    columns: dict[str, Array] = {"time_ns": chosen["time_ns"].astype("<i8"), "flow": flow[keep]}
    columns |= {name: chosen[name].copy() for name in bbr_record.ACK_FIELDS}
    order = np.argsort(columns["time_ns"], kind="stable")
    flows.acks = {name: values[order] for name, values in (columns | bbr_record.lab_columns(chosen["info"])).items()}
    flows.acks_missing = sum(int(m["number"][-1]) + 1 - len(m) for m in modules)


def _queue(data: bytes, records: list[tuple[int, int, int]]) -> Queue:
    rows = []
    for time_ns, offset, length in records:
        rows.append((time_ns / 1e9, *queue_counters(data, offset, length)))
    names = ("time_s", "bytes", "packets", "sent_bytes", "sent_packets", "drops", "marks")
    table = np.array(rows, dtype=float).reshape(-1, len(names))
    return Queue({n: table[:, i] if n == "time_s" else table[:, i].astype("<i8") for i, n in enumerate(names)})


def queue_counters(data: bytes, offset: int, length: int) -> tuple[int, int, int, int, int, int]:
    """(backlog bytes, backlog packets, sent bytes, sent packets, drops, ECN marks) of a raw RTM_NEWQDISC message."""
    end = offset + length
    attributes = _attributes(data, offset + NLMSG_HEADER + TC_MESSAGE, end)
    at, size = attributes[TCA_STATS2]
    stats = _attributes(data, at, at + size)
    sent_bytes, sent_packets = struct.unpack_from("<QI", data, stats[TCA_STATS_BASIC][0])
    if TCA_STATS_PKT64 in stats:
        (sent_packets,) = struct.unpack_from("<Q", data, stats[TCA_STATS_PKT64][0])
    packets, backlog, drops = struct.unpack_from("<III", data, stats[TCA_STATS_QUEUE][0])
    kind_at, kind_size = attributes[TCA_KIND]
    kind = data[kind_at : kind_at + kind_size].rstrip(b"\0").decode()
    marks = _marks(kind, data, *stats[TCA_STATS_APP]) if TCA_STATS_APP in stats else 0
    return backlog, packets, sent_bytes, sent_packets, drops, marks


# Offset of the ECN-mark counter (u32) in each qdisc's own statistics (uapi/linux/pkt_sched.h):
# tc_red_xstats{early, pdrop, other, marked}; tc_codel_xstats{..., ecn_mark, ..., ce_mark};
# tc_fq_codel_xstats{type, union{qdisc{maxpacket, drop_overlimit, ecn_mark, new_flow_count, ..., ce_mark}}};
# tc_pie_xstats{prob u64, delay, avg_dq_rate, ..., ecn_mark}; tc_fq_qd_stats: ce_mark behind 8 u64 and 4 u32.
MARKS = {"red": (12,), "codel": (24, 32), "fq_codel": (12, 28), "pie": (36,), "fq": (80,)}
TCA_CAKE_STATS_TIN_STATS, TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS = 10, 8


def _marks(kind: str, data: bytes, offset: int, length: int) -> int:
    if kind == "cake":
        tins = _attributes(data, offset, offset + length).get(TCA_CAKE_STATS_TIN_STATS, (offset, 0))
        total = 0
        for at, size in _attributes(data, tins[0], tins[0] + tins[1]).values():
            found = _attributes(data, at, at + size).get(TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS)
            total += struct.unpack_from("<I", data, found[0])[0] if found else 0
        return total
    return sum(struct.unpack_from("<I", data, offset + at)[0] for at in MARKS.get(kind, ()) if at + 4 <= length)
