"""Decodes a bottleneck's backlog and counters from its qdisc's statistics."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.measure.lateness import EDGE_TOLERANCE_S
from bbrlab.measure.netlink import NLMSG_HEADER, TC_MESSAGE, attributes_of

TCA_KIND, TCA_STATS2, TCA_STATS_APP = 1, 7, 4
TCA_STATS_BASIC, TCA_STATS_QUEUE, TCA_STATS_PKT64 = 1, 3, 8


@dataclass
class Queue:
    """All samples of one bottleneck: ``time_s``, ``bytes``, ``packets``, and the counters ``sent_bytes``,
    ``sent_packets``, ``drops``, ``marks``, each of shape (samples,); of DualPI2 TWO_QUEUES, too. ``late_s``: how long after
    its instant a sample may have been taken (lateness.lateness_s())."""

    columns: dict[str, Array]
    late_s: float = EDGE_TOLERANCE_S


def queue_of(data: bytes, records: list[tuple[int, int, int]]) -> Queue:
    """The samples of one bottleneck, from (time in ns, offset, length) of each reply in ``data``."""
    rows = []
    names: tuple[str, ...] = ("time_s", "bytes", "packets", "sent_bytes", "sent_packets", "drops", "marks")
    for time_ns, offset, length in records:
        rows.append((time_ns / 1e9, *queue_counters(data, offset, length), *two_queues(data, offset, length)))
    if rows and len(rows[0]) > len(names):
        names += TWO_QUEUES
    table = np.array(rows, dtype=float).reshape(-1, len(names))
    return Queue({n: table[:, i] if n == "time_s" else table[:, i].astype("<i8") for i, n in enumerate(names)})


def queue_counters(data: bytes, offset: int, length: int) -> tuple[int, int, int, int, int, int]:
    """(backlog bytes, backlog packets, sent bytes, sent packets, drops, ECN marks) of a raw RTM_NEWQDISC message."""
    kind, stats = _statistics(data, offset, length)
    sent_bytes, sent_packets = struct.unpack_from("<QI", data, stats[TCA_STATS_BASIC][0])
    if TCA_STATS_PKT64 in stats:
        (sent_packets,) = struct.unpack_from("<Q", data, stats[TCA_STATS_PKT64][0])
    packets, backlog, drops = struct.unpack_from("<III", data, stats[TCA_STATS_QUEUE][0])
    marks = _marks(kind, data, *stats[TCA_STATS_APP]) if TCA_STATS_APP in stats else 0
    return backlog, packets, sent_bytes, sent_packets, drops, marks


def _statistics(data: bytes, offset: int, length: int) -> tuple[str, dict[int, tuple[int, int]]]:
    """Of a raw RTM_NEWQDISC message: the qdisc's kind, and where each part of its statistics is."""
    attributes = attributes_of(data, offset + NLMSG_HEADER + TC_MESSAGE, offset + length)
    at, size = attributes[TCA_STATS2]
    kind_at, kind_size = attributes[TCA_KIND]
    return data[kind_at : kind_at + kind_size].rstrip(b"\0").decode(), attributes_of(data, at, at + size)


# Of DualPI2: its probability in parts of 2^32, how long the first packet of either queue has waited (0: empty), and the packets
# that came into it.
TWO_QUEUES = ("probability", "classic_us", "l4s_us", "classic_packets", "l4s_packets")


def two_queues(data: bytes, offset: int, length: int) -> tuple[int, ...]:
    """TWO_QUEUES of a raw RTM_NEWQDISC message of DualPI2, from its tc_dualpi2_xstats; empty for other qdiscs."""
    kind, stats = _statistics(data, offset, length)
    return struct.unpack_from("<5I", data, stats[TCA_STATS_APP][0]) if kind == "dualpi2" else ()


# Offsets of the ECN-mark counters (u32) in each qdisc's own statistics (uapi/linux/pkt_sched.h):
# tc_red_xstats{early, pdrop, other, marked}; tc_codel_xstats{..., ecn_mark, ..., ce_mark};
# tc_fq_codel_xstats{type, union{qdisc{maxpacket, drop_overlimit, ecn_mark, new_flow_count, ..., ce_mark}}};
# CoDel's ecn_mark are marks in place of drops, ce_mark those beyond ce_threshold; codel_dequeue() (net/codel_impl.h) takes a
# packet that it has just marked through the threshold, too, and INET_ECN_set_ce() is true of a marked one, so that both may
# count it: the larger is how many were marked at least, and exactly without a threshold or with one below the target.
# tc_pie_xstats{prob u64, delay, avg_dq_rate, ..., ecn_mark}; tc_fq_qd_stats: ce_mark behind 8 u64 and 4 u32.
MARKS = {"red": (12,), "codel": (24, 32), "fq_codel": (12, 28), "pie": (36,), "fq": (80,), "dualpi2": (24,)}
# tc_dualpi2_xstats{prob, delay_c, delay_l, packets_in_c, packets_in_l, maxq, ecn_mark, ...}: of both queues.
TCA_CAKE_STATS_TIN_STATS, TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS = 10, 8


def _marks(kind: str, data: bytes, offset: int, length: int) -> int:
    if kind == "cake":
        tins = attributes_of(data, offset, offset + length).get(TCA_CAKE_STATS_TIN_STATS, (offset, 0))
        total = 0
        for at, size in attributes_of(data, tins[0], tins[0] + tins[1]).values():
            counter = attributes_of(data, at, at + size).get(TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS)
            total += struct.unpack_from("<I", data, counter[0])[0] if counter else 0
        return total
    counts = [struct.unpack_from("<I", data, offset + at)[0] for at in MARKS.get(kind, ()) if at + 4 <= length]
    return max(counts, default=0)
