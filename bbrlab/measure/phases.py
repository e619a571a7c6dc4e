"""The states of a BBR flow over time, from its samples or its ACKs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.measure.bbr_record import STATES
from bbrlab.measure.numbers import mean, rounded

if TYPE_CHECKING:
    import pandas as pd


def _first_of_stays(codes: Array) -> Array:
    """Indices at which a stay in one state begins, of codes of shape (samples,) that are at least 0."""
    return np.flatnonzero(np.diff(codes, prepend=-1))


def phases(table: pd.DataFrame, flow: int = 0) -> pd.DataFrame:
    """Stays in one state, in order.

    Args:
        table: samples.parquet or (exact to the ACK) acks.parquet.

    Returns:
        One row per stay: ``state`` (its name), ``start_s`` and ``end_s`` (of the next state's first row; NaN for the
        last), ``first`` and ``last`` (labels of its rows in ``table``).
    """
    import pandas as pd  # a slow import, which runs do not need

    rows = table[(table["flow"] == flow) & table["bbr_state"].notna()]
    if rows.empty:
        return pd.DataFrame({"state": [], "start_s": [], "end_s": [], "first": [], "last": []})
    codes = rows["bbr_state"].to_numpy(dtype=int)
    starts = _first_of_stays(codes)
    ends = np.append(starts[1:], len(rows)) - 1
    times = rows["time_s"].to_numpy()
    return pd.DataFrame({
        "state": [STATES[c] for c in codes[starts]],
        "start_s": times[starts],
        "end_s": np.append(times[starts[1:]], np.nan),
        "first": rows.index[starts],
        "last": rows.index[ends],
    })  # fmt: skip


PHASES = ("startup_s", "up_s", "down_s", "cruise_s", "between_probe_rtt_s", "between_up_s")


def phase_lengths(columns: dict[str, Array]) -> dict[str, float | None]:
    """Mean lengths and distances of a BBR flow's phases (bbrlab/measure/metrics.py); None for phases that did not occur.

    Args:
        columns: ``time_s`` (s) and ``bbr_state`` (index into STATES, NaN: not told) of the flow, shape (samples,).

    Returns:
        PHASES, in s.
    """
    has_state = ~np.isnan(columns["bbr_state"])
    codes, times = columns["bbr_state"][has_state].astype(int), columns["time_s"][has_state]
    starts = _first_of_stays(codes)
    begins, states = times[starts], codes[starts]
    lengths = np.diff(begins)
    whole = states[1:] != STATES.index("ProbeRTT")

    means: dict[str, float | None] = {}
    for name in ("Startup", "UP", "DOWN", "CRUISE"):
        means[f"{name.lower()}_s"] = mean(lengths[whole & (states[:-1] == STATES.index(name))])
    for key, name in (("between_probe_rtt_s", "ProbeRTT"), ("between_up_s", "UP")):
        means[key] = mean(np.diff(begins[states == STATES.index(name)]))
    return means


def probe_rtt_together(flows: Sequence[tuple[Array, Array]]) -> float | None:
    """The fraction of several flows' stays in ProbeRTT that have all flows in it at one sample.

    Args:
        flows: of each flow the numbers of its samples (the same number: the same instant) and ``bbr_state`` at them
            (index into STATES, NaN: not told), each of shape (samples,).

    Returns:
        0 to 1; None for fewer than two flows, and where none was in ProbeRTT.
    """
    if len(flows) < 2:
        return None
    inside = [states == STATES.index("ProbeRTT") for _, states in flows]
    all_of_them = reduce(np.intersect1d, [numbers[i] for (numbers, _), i in zip(flows, inside, strict=True)])
    shared: list[bool] = []
    for (numbers, _), i in zip(flows, inside, strict=True):
        edges = np.diff(np.concatenate([[0], i.astype(int), [0]]))
        for begin, end in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
            shared.append(bool(np.isin(numbers[begin:end], all_of_them).any()))
    return mean(np.array(shared))


PHASE_QUEUES = ("up_start_queue_ms", "up_peak_queue_ms", "cruise_queue_ms_p05")


def phase_queues(columns: dict[str, Array], delay_ms: Array, low_s: float, high_s: float) -> dict[str, float | None]:
    """The queueing delay in a BBR flow's phases, by its samples; None for phases that did not occur.

    Args:
        columns: ``time_s`` and ``bbr_state`` of the flow, shape (samples,).
        delay_ms: the bottleneck's queueing delay at the same samples.
        low_s, high_s: the window.

    Returns:
        Means over the stays in UP that began and ended within the window, of the delay at the first sample
        (``up_start_queue_ms``) and of the largest delay up to the first sample after it (``up_peak_queue_ms``); the
        5th percentile of the delay at the window's samples in CRUISE (``cruise_queue_ms_p05``).
    """
    inside = ~np.isnan(columns["bbr_state"]) & (columns["time_s"] >= low_s) & (columns["time_s"] <= high_s)
    codes, delay = columns["bbr_state"][inside].astype(int), delay_ms[inside]
    edges = _first_of_stays(codes)[1:]  # first samples of a state, without the window's first, which may be old
    whole = [(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True) if codes[a] == STATES.index("UP")]
    cruising = delay[codes == STATES.index("CRUISE")]
    return {
        "up_start_queue_ms": mean(np.array([delay[a] for a, _ in whole])),
        "up_peak_queue_ms": mean(np.array([delay[a : b + 1].max() for a, b in whole])),
        "cruise_queue_ms_p05": rounded(np.percentile(cruising, 5)) if len(cruising) else None,
    }
