"""What became of short flows: completion times, slowdowns, and the bound that no order of service beats."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from bbrlab.base.arrays import Array


def ideal_s(sizes: Array, rate_mbit: float, rtt_ms: float) -> Array:
    """Completion times in an empty network: one base RTT and the bytes at the bottleneck's rate."""
    ideal: Array = np.asarray(sizes) * 8e-6 / rate_mbit + rtt_ms * 1e-3
    return ideal


def srpt_s(starts: Array, sizes: Array, rate_mbit: float, rtt_ms: float) -> Array:
    """Completion times if the bottleneck always served the transmission with the least bytes left (Schrage 1968).

    No order of service has a lower mean completion time, so this bounds what any congestion control can reach.

    Args:
        starts: s, shape (n,).
        sizes: bytes, shape (n,).
        rate_mbit: the bottleneck's.
        rtt_ms: added to each.

    Returns:
        Seconds from start to end, shape (n,).
    """
    import heapq

    order = np.argsort(starts, kind="stable")
    left: list[tuple[float, int]] = []
    done = np.zeros(len(starts))
    now, position, bytes_per_s = 0.0, 0, rate_mbit * 1e6 / 8
    while position < len(order) or left:
        if not left:
            now = max(now, float(starts[order[position]]))
        while position < len(order) and starts[order[position]] <= now:
            heapq.heappush(left, (float(sizes[order[position]]), int(order[position])))
            position += 1
        size, who = heapq.heappop(left)
        end = now + size / bytes_per_s
        following = float(starts[order[position]]) if position < len(order) else math.inf
        if end <= following:
            done[who], now = end, end
        else:
            heapq.heappush(left, (size - (following - now) * bytes_per_s, who))
            now = following
    taken: Array = done - np.asarray(starts) + rtt_ms * 1e-3
    return taken


def _record(paths: list[Path], name: str) -> pd.DataFrame:
    """The lines "flow chunk nanoseconds" of the guest's records."""
    names = ["flow", "chunk", name]
    parts = [pd.read_csv(p, sep=" ", names=names, dtype="int64") for p in paths if p.stat().st_size]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names, dtype="int64")


def chunk_outcomes(
    chunks: pd.DataFrame, sent: list[Path], received: list[Path], rate_mbit: float, rtt_ms: float
) -> pd.DataFrame:
    """What became of each chunk.

    Args:
        chunks: what was to be sent.
        sent: the senders' records: lines "flow chunk nanoseconds" at which each chunk was begun (of the first: connect).
        received: the receivers': the same, at which each chunk's last byte was read.
        rate_mbit, rtt_ms: bottleneck and base RTT.

    Returns:
        A row per chunk that was begun: ``flow``, ``chunk``, ``bytes``, ``begin_s``, ``end_s`` (the way back included: NaN if
        the run ended before), ``slowdown`` (completion time over that in an empty network) and ``srpt_slowdown``.
    """
    keys = ["flow", "chunk"]
    begun, ended = _record(sent, "begin_ns"), _record(received, "end_ns")
    table = chunks[[*keys, "bytes"]].merge(begun, on=keys).merge(ended, on=keys, how="left")
    table["begin_s"] = table.pop("begin_ns") / 1e9
    table["end_s"] = table.pop("end_ns") / 1e9 + rtt_ms * 1e-3
    ideal = ideal_s(table["bytes"].to_numpy(), rate_mbit, rtt_ms)
    table["slowdown"] = (table["end_s"] - table["begin_s"]) / ideal
    bound = srpt_s(table["begin_s"].to_numpy(), table["bytes"].to_numpy(), rate_mbit, rtt_ms)
    table["srpt_slowdown"] = bound / ideal
    return table.sort_values(["begin_s", *keys], ignore_index=True)


def concurrent_chunks(table: pd.DataFrame, end_s: float) -> int:
    """The largest number of chunks under way at once."""
    ends = table["end_s"].fillna(end_s).to_numpy()
    times = np.concatenate([table["begin_s"].to_numpy(), ends])
    steps = np.concatenate([np.ones(len(table)), -np.ones(len(table))])
    order = np.lexsort((steps, times))
    return int(np.cumsum(steps[order]).max()) if len(table) else 0
