"""Metrics of short flows: completion times, slowdowns, and the bound of the best order of service."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from bbrlab.base.arrays import Array
from bbrlab.measure import metrics
from bbrlab.measure.lateness import EDGE_TOLERANCE_S
from bbrlab.measure.numbers import Value, mean, ratio, rounded, spread_of
from bbrlab.measure.registry import Registry
from bbrlab.scenario.rates import before, capacity_mbit, highest_mbit
from bbrlab.scenario.schema import Scenario

SHORT: Registry[ShortGroup] = Registry(metrics.GROUP)


def set_up_s(chunk: Array, rtt_ms: float) -> Array:
    """The time for each chunk's connection set-up: one base RTT for a flow's first, 0 for the others.

    Args:
        chunk: number of the chunk within its flow, shape (n,).

    Returns:
        s, shape (n,).
    """
    waits: Array = np.where(np.asarray(chunk) == 0, rtt_ms * 1e-3, 0.0)
    return waits


def ideal_s(chunk: Array, sizes: Array, rate_mbit: float, rtt_ms: float) -> Array:
    """Completion times in an empty network: the connection's set-up, one base RTT, and the bytes at the bottleneck's rate.

    Args:
        chunk: number of the chunk within its flow, shape (n,).
        sizes: bytes, shape (n,).

    Returns:
        s, shape (n,).
    """
    ideal: Array = set_up_s(chunk, rtt_ms) + np.asarray(sizes) * 8e-6 / rate_mbit + rtt_ms * 1e-3
    return ideal


def srpt_s(starts: Array, sizes: Array, rate_mbit: float) -> Array:
    """Completion times if the bottleneck always served the transmission with the least bytes left (Schrage 1968).

    At every instant no order of service has fewer transmissions under way, so that none has a lower mean completion time,
    also if the time of each is cut off at a common end: this bounds what any congestion control can reach.

    Args:
        starts: s at which the first byte can be sent, shape (n,).
        sizes: bytes, shape (n,).

    Returns:
        Seconds from start to the last byte's departure, shape (n,).
    """
    order = np.argsort(starts, kind="stable")
    pending: list[tuple[float, int]] = []
    done = np.zeros(len(starts))
    now, position, bytes_per_s = 0.0, 0, rate_mbit * 1e6 / 8
    while position < len(order) or pending:
        if not pending:
            now = max(now, float(starts[order[position]]))
        while position < len(order) and starts[order[position]] <= now:
            heapq.heappush(pending, (float(sizes[order[position]]), int(order[position])))
            position += 1
        size, index = heapq.heappop(pending)
        end = now + size / bytes_per_s
        following = float(starts[order[position]]) if position < len(order) else math.inf
        if end <= following:
            done[index], now = end, end
        else:
            heapq.heappush(pending, (size - (following - now) * bytes_per_s, index))
            now = following
    taken: Array = done - np.asarray(starts)
    return taken


def _record(paths: list[Path], name: str) -> pd.DataFrame:
    """The lines "flow chunk nanoseconds" of the guest's records."""
    names = ["flow", "chunk", name]
    parts = [pd.read_csv(p, sep=" ", names=names, dtype="int64") for p in paths if whole_lines(p)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=names, dtype="int64")


def chunk_outcomes(
    chunks: pd.DataFrame, sent: list[Path], received: list[Path], rate_mbit: float, rtt_ms: float
) -> pd.DataFrame:
    """The begin, end and slowdown of each chunk.

    Args:
        sent: the senders' records: lines "flow chunk nanoseconds" at which each chunk was begun (of the first: connect).
        received: the receivers': the same, at which each chunk's last byte was read.

    Returns:
        A row per chunk that was begun: ``flow``, ``chunk``, ``bytes``, ``begin_s``, ``end_s`` (the way back included: NaN if
        the run ended before), ``ideal_s`` (completion time in an empty network), ``slowdown`` (completion time over that).
    """
    keys = ["flow", "chunk"]
    begun, ended = _record(sent, "begin_ns"), _record(received, "end_ns")
    table = chunks[[*keys, "bytes"]].merge(begun, on=keys).merge(ended, on=keys, how="left")
    table["begin_s"] = table.pop("begin_ns") / 1e9
    table["end_s"] = table.pop("end_ns") / 1e9 + rtt_ms * 1e-3
    table["ideal_s"] = ideal_s(table["chunk"].to_numpy(), table["bytes"].to_numpy(), rate_mbit, rtt_ms)
    table["slowdown"] = (table["end_s"] - table["begin_s"]) / table["ideal_s"]
    return table.sort_values(["begin_s", *keys], ignore_index=True)


@dataclass(frozen=True)
class Read:
    """The bytes that a receiver read in the window: ``count`` between the two instants ``at_s`` at which it recorded the edges."""

    count: int
    at_s: tuple[float, float]

    def goodput_mbit(self, window_s: Sequence[float]) -> float:
        """Mbit/s: over the window, or between the two records if they came late."""
        low_s, high_s = window_s
        if any(abs(at_s - edge_s) > EDGE_TOLERANCE_S for at_s, edge_s in zip(self.at_s, window_s, strict=True)):
            low_s, high_s = self.at_s
        return self.count * 8e-6 / (high_s - low_s)


def read_between(record: Path, low_s: float, high_s: float) -> Read:
    """Bytes that a receiver read between the edges of the window.

    ValueError if the record lacks one of them, as when the receiver died before the end, or is cut off.

    Args:
        record: lines "nanoseconds bytes": what it had read by then, a line for each of the two edges.
        low_s, high_s: the two; a note is never earlier.
    """
    rows = [line.split() for line in whole_lines(record)]
    if len(rows) != 2 or any(
        int(row[0]) / 1e9 < at - EDGE_TOLERANCE_S for row, at in zip(rows, (low_s, high_s), strict=True)
    ):
        raise ValueError(
            f"{record.name} does not say what the receiver had read at {low_s:g} s and at {high_s:g} s, so it did not live "
            "to the end of the run"
        )
    (low_ns, before), (high_ns, after) = ((int(time_ns), int(count)) for time_ns, count in rows)
    return Read(after - before, (low_ns / 1e9, high_ns / 1e9))


def whole_lines(path: Path) -> list[str]:
    """The lines of one of the guest's records. ValueError if the last one is cut off."""
    text = path.read_text(encoding="ascii")
    if text and not text.endswith("\n"):
        raise ValueError(f"{path.name} is cut off within its last line")
    return text.splitlines()


@dataclass(frozen=True)
class ShortFlows:
    """A group of short flows and their outcome."""

    scenario: Scenario
    rtt_ms: float
    table: pd.DataFrame  # of chunk_outcomes(), a row per chunk
    read: Read  # what the receivers read in the window

    @property
    def goodput_mbit(self) -> float:
        """Mbit/s in the window."""
        return self.read.goodput_mbit(self.scenario.window_s)

    @cached_property
    def begun(self) -> pd.DataFrame:
        """The chunks that were begun in the window, of which the metrics of completion times are."""
        low, high = self.scenario.window_s
        return self.table[(self.table["begin_s"] >= low) & (self.table["begin_s"] < high)]

    @property
    def count(self) -> int:
        """Flows that began a chunk in the window."""
        return int(self.begun["flow"].nunique())


@dataclass(frozen=True)
class ShortGroup:
    """A group's short flows, and the goodput of all groups of the run."""

    flows: ShortFlows
    run_goodput_mbit: float

    def up_to_the_end(self, taken_s: Array) -> Array:
        """Times from begin, cut off at the end of the run; NaN becomes the time up to then. Shape (chunks begun,)."""
        left_s = self.flows.scenario.duration_s - self.flows.begun["begin_s"].to_numpy()
        return np.fmin(taken_s, left_s)

    @cached_property
    def taken_s(self) -> Array:
        """Completion time of each chunk begun in the window, as up_to_the_end() has it."""
        begun = self.flows.begun
        return self.up_to_the_end((begun["end_s"] - begun["begin_s"]).to_numpy())

    @cached_property
    def srpt_taken_s(self) -> Array:
        """The same if only these chunks were on the link, and it always served the one with the fewest bytes left."""
        begun, rtt_ms = self.flows.begun, self.flows.rtt_ms
        scenario = self.flows.scenario
        rate_mbit = highest_mbit(before(scenario.network, scenario.duration_s))
        waits = set_up_s(begun["chunk"].to_numpy(), rtt_ms)
        served = srpt_s(begun["begin_s"].to_numpy() + waits, begun["bytes"].to_numpy(), rate_mbit)
        return self.up_to_the_end(waits + served + rtt_ms * 1e-3)

    def slowdowns(self, taken_s: Array) -> Array:
        """Times over those in an empty network, at least 1 (one cut off at the end of the run can have had less)."""
        ratios: Array = np.maximum(1.0, taken_s / self.flows.begun["ideal_s"].to_numpy())
        return ratios


@SHORT.of("goodput_mbit", "share_of_capacity", "share_of_goodput")
def _goodput(group: ShortGroup) -> dict[str, Value]:
    goodput, scenario = group.flows.goodput_mbit, group.flows.scenario
    return {
        "goodput_mbit": rounded(goodput),
        "share_of_capacity": rounded(goodput / capacity_mbit(scenario, *scenario.window_s)),
        "share_of_goodput": rounded(ratio(goodput, group.run_goodput_mbit)),
    }


@SHORT.of("chunks", "unfinished", "concurrent_max")
def _counts(group: ShortGroup) -> dict[str, Value]:
    begun, end_s = group.flows.begun, group.flows.scenario.duration_s
    return {
        "chunks": len(begun),
        "unfinished": int((~(begun["end_s"] <= end_s)).sum()),
        "concurrent_max": concurrent_chunks(group.flows.table, end_s),
    }


@SHORT.of("completion_s", "srpt_completion_s")
def _completion(group: ShortGroup) -> dict[str, Value]:
    return {"completion_s": mean(group.taken_s), "srpt_completion_s": mean(group.srpt_taken_s)}


@SHORT.of("slowdown_mean", "slowdown_p50", "slowdown_p95", "slowdown_p99", "srpt_slowdown_mean")
def _slowdown(group: ShortGroup) -> dict[str, Value]:
    spread = spread_of(group.slowdowns(group.taken_s))
    values: dict[str, Value] = {f"slowdown_{key}": spread[key] for key in ("mean", "p50", "p95", "p99")}
    return values | {"srpt_slowdown_mean": mean(group.slowdowns(group.srpt_taken_s))}


def concurrent_chunks(table: pd.DataFrame, end_s: float) -> int:
    """The largest number of chunks under way at once.

    Args:
        table: columns ``begin_s`` and ``end_s`` (NaN: not ended) of chunk_outcomes(), a row per chunk.

    Returns:
        A number of chunks; one that ends when another begins is not counted beside it.
    """
    ends = table["end_s"].fillna(end_s).to_numpy()
    times = np.concatenate([table["begin_s"].to_numpy(), ends])
    steps = np.concatenate([np.ones(len(table)), -np.ones(len(table))])
    order = np.lexsort((steps, times))
    return int(np.cumsum(steps[order]).max()) if len(table) else 0
