"""Decodes the sockets' values (tcp_info, BBR's record), and assigns sockets to flows."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.experiment.plan import Plan
from bbrlab.measure import bbr_record
from bbrlab.measure.netlink import DIAG_MESSAGE, NLMSG_HEADER, attributes_of, field_of
from bbrlab.measure.sample_schema import BBR_COLUMNS, ONLY_READ, TCP_INFO

ATTR_INFO, ATTR_BBR = 2, 16
_READ = TCP_INFO | ONLY_READ
TCP_INFO_BYTES = 216  # what the fields above need; kernels append, they never move


@dataclass
class Flows:
    """All samples of all flows, sorted by time, then flow."""

    # {name: array of shape (samples,)}. ``time_s``: seconds since the experiment's start; ``flow``: index; tcp_info fields with
    # units in their names; rates in bytes/s as the kernel gives them; ``bbr_*`` (sample_schema.BBR_COLUMNS) are NaN for flows of
    # other CCAs
    columns: dict[str, Array]
    final: dict[int, dict[str, int]]  # {flow: {field: last value of the destroyed socket}}
    # One row per ACK and timeout if they were traced, else None: ``time_ns`` on the guest's clock, ``flow``, and the columns of
    # sample_schema.ACKS
    acks: dict[str, Array] | None = None
    acks_missing: int = 0  # the number of records that were lost
    # {flow: the lengths of its CCA's records (bbr_record.py)}
    record_bytes: dict[int, list[int]] = field(default_factory=dict)


class Sockets:
    """Assigns the connections of each transfer to flows.

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
        for number, sockets in by_transfer.items():
            sockets.sort()
            control = max(sockets, key=lambda s: s[1]) if any(s[1] > 1 for s in sockets) else sockets[0]
            sockets.remove(control)
            for stream, (_, _, key) in enumerate(sockets):
                if (number, stream) in self.flow_of:
                    result[key] = self.flow_of[number, stream]
        return result


def _empty(count: int) -> dict[str, Array]:
    columns: dict[str, Array] = {
        "time_ns": np.zeros(count, "<i8"),
        "key": np.zeros((count, 3), "<i8"),
        "inode": np.zeros(count, "<i8"),
        "record_bytes": np.zeros(count, "<i4"),
    }
    for name, (_, kind) in _READ.items():
        columns[name] = np.zeros(count, kind)
    for name in BBR_COLUMNS:
        columns[name] = np.full(count, np.nan)
    return columns


def decode_stack(block: Array, data: bytes, first: int, offset: int, length: int) -> dict[str, Array] | None:
    """Columns of the message at ``offset`` of every reply in a stack; None if it carries no tcp_info."""
    attributes = attributes_of(data, first + offset + NLMSG_HEADER + DIAG_MESSAGE, first + offset + length)
    if ATTR_INFO not in attributes or attributes[ATTR_INFO][1] < TCP_INFO_BYTES:
        return None
    base = offset + NLMSG_HEADER
    columns = _empty(len(block))
    columns["key"][:, 1] = field_of(block, base + 4, ">u2")
    columns["key"][:, 2] = field_of(block, base + 6, ">u2")
    columns["inode"] = field_of(block, base + 68, "<u4").astype("<i8")
    info = attributes[ATTR_INFO][0] - first
    for name, (at, kind) in _READ.items():
        columns[name] = field_of(block, info + at, kind)
    if ATTR_BBR in attributes:
        at, size = attributes[ATTR_BBR][0] - first, attributes[ATTR_BBR][1]
        columns |= bbr_record.columns(block[:, at : at + size])
        columns["record_bytes"][:] = size
    return columns


def concatenated(parts: list[dict[str, Array]]) -> dict[str, Array]:
    """Tables of the same columns as one."""
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]} if parts else _empty(0)


def socket_code(keys: Array) -> Array:
    """(source, local port, remote port) as one number each."""
    return keys[:, 0] << 32 | keys[:, 1] << 16 | keys[:, 2]


def flows_of(
    living: dict[str, Array], dead: dict[str, Array], plan: Plan
) -> tuple[Flows, dict[tuple[int, int, int], int]]:
    """The samples of the plan's flows, and {(source, local port, remote port): flow}."""
    names = [h["name"] for h in plan.content["hosts"]]
    seen: dict[tuple[int, int, int], tuple[int, int]] = {}
    for table in (dead, living):  # a destroyed socket has no inode any more
        code = socket_code(table["key"])
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
    assigned = Sockets(plan, names).assign(seen)

    def flow_column(table: dict[str, Array]) -> Array:
        code = socket_code(table["key"])
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
    for name in [*TCP_INFO, *BBR_COLUMNS]:
        columns[name] = living[name][keep][order]
    final: dict[int, dict[str, int]] = {}
    for i, f in enumerate(flow_column(dead)):
        if f >= 0:
            final[int(f)] = {name: int(dead[name][i]) for name in _READ} | {"time_ns": int(dead["time_ns"][i])}
    lengths = np.unique(np.stack([flow[keep], living["record_bytes"][keep]]), axis=1)
    record_lengths = {int(f): [int(n) for n in lengths[1][lengths[0] == f] if n] for f in np.unique(lengths[0])}
    return Flows(columns, final, record_bytes={f: n for f, n in record_lengths.items() if n}), assigned
