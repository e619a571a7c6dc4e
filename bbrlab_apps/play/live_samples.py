"""What a run's samples say while the guest still writes them.

The guest takes them as it does in any run; who looks at them here costs it nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bbrlab.measure.bbr_record import STATES
from bbrlab.measure.netlink import HEAD, KIND_QDISC, KIND_SOCKETS, messages_of
from bbrlab.measure.queues import queue_counters
from bbrlab.measure.sockets import decode_stack
from bbrlab_apps.qlog.records import RECOVERY_STATES

SLOW_START, AVOIDANCE = "slow start", "avoidance"


@dataclass(frozen=True)
class FlowNow:
    """A connection's latest sample: bytes acknowledged so far, smoothed RTT, window, retransmissions so far, and what it is
    doing: BBR's state; of others slow start, congestion avoidance, or how it recovers."""

    bytes_acked: int
    rtt_ms: float
    cwnd_packets: int
    retransmits: int
    state: str


@dataclass(frozen=True)
class Now:
    """The latest whole sample: when, {port of the server: FlowNow}, and for each bottleneck (backlog in bytes, drops)."""

    time_s: float
    flows: dict[int, FlowNow]
    queues: list[tuple[int, int]]


class Follower:
    """Reads samples.raw as it grows."""

    def __init__(self, path: Path):
        self.path, self._offset, self._rest = path, 0, b""

    def latest(self) -> Now | None:
        """The latest whole sample; None if there is no new one. ValueError, KeyError or struct.error if what the guest wrote cannot
        be read."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset)
                new = file.read()
        except FileNotFoundError:
            return None
        self._offset += len(new)
        data = self._rest + new
        # Records of one sample have one time; the last one that another follows is whole.
        records: dict[int, list[tuple[int, int, int, int]]] = {}
        position = last = 0
        while position + HEAD.size <= len(data):
            time_ns, source, kind, length = HEAD.unpack_from(data, position)
            if position + HEAD.size + length > len(data):
                break
            if kind in (KIND_SOCKETS, KIND_QDISC):
                if time_ns not in records:
                    last = position
                records.setdefault(time_ns, []).append((source, kind, position + HEAD.size, length))
            position += HEAD.size + length
        times = sorted(records)
        if len(times) < 2:
            self._rest = data
            return None
        self._rest = data[last:]
        return _sample(data, times[-2], records[times[-2]])


def _sample(data: bytes, time_ns: int, records: Iterable[tuple[int, int, int, int]]) -> Now:
    raw = np.frombuffer(data, np.uint8)
    flows: dict[int, tuple[int, FlowNow]] = {}
    queues = []
    for _, kind, offset, length in records:
        if kind == KIND_QDISC:
            backlog, _, _, _, drops, _ = queue_counters(data, offset, length)
            queues.append((backlog, drops))
            continue
        block = raw[offset : offset + length][None, :]
        for start, size in messages_of(data, offset, offset + length):
            columns = decode_stack(block, data, offset, start - offset, size)
            if columns is None:
                continue
            value = {name: column[0] for name, column in columns.items() if name != "key"}
            port, inode = int(columns["key"][0, 2]), int(value["inode"])
            if inode > flows.get(port, (0, None))[0]:  # iperf3 opens its control connection before the data's
                flows[port] = (inode, FlowNow(int(value["bytes_acked"]), value["srtt_us"] / 1000, int(value["cwnd"]),
                                              int(value["total_retrans"]), _state(value)))  # fmt: skip
    return Now(time_ns / 1e9, {port: flow for port, (_, flow) in flows.items()}, queues)


def _state(value: dict[str, float]) -> str:
    if not np.isnan(value["bbr_state"]):
        return STATES[int(value["bbr_state"])]
    if value["ca_state"] > 1:
        return RECOVERY_STATES[min(int(value["ca_state"]), len(RECOVERY_STATES) - 1)]
    return SLOW_START if value["cwnd"] < value["ssthresh"] else AVOIDANCE
