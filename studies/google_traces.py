"""Traces of Google's released BBRv2 and BBRv3 (data/google/traces) beside runs of this lab's, state by state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base import paths
from bbrlab.measure.bbr_record import GAIN_UNIT, RELEASED_MODES, RELEASED_PHASES, RELEASED_PROBE_BW, STATES
from bbrlab.measure.phases import phases

TRACES = paths.DATA / "google" / "traces"
BY_GAIN = {710: "Startup", 88: "Drain", 232: "DOWN", 256: "CRUISE", 320: "UP"}  # of Google's BBRv3
EXACT = ["cwnd", "unacked", "delivered", "bytes_acked", "queue_packets"]


def index() -> dict[str, dict[str, Any]]:
    """{trace: its set-up, the columns of index.csv}."""
    rows = pd.read_csv(TRACES / "index.csv").to_dict("records")
    return {str(row["trace"]): {str(name): value for name, value in row.items()} for row in rows}


def scenario_of(trace: str) -> dict[str, Any]:
    """The scenario of a trace: its flows, the exact RTT, hosts without noise."""
    row = index()[trace]
    flows: list[dict[str, Any]] = []
    for words in row["flows"].split("; "):
        count, cca, *start = words.split()
        flows.append({"cca": cca, "count": int(count)} | ({"start_s": float(start[1])} if start else {}))
    return {
        "name": trace,
        "paper": "questions",
        "figure": f"Google's trace {trace}",
        "network": {
            "rate_mbit": float(row["rate_mbit"]),
            "rtt_ms": float(row["rtt_ms"]),
            "buffer": {"bdp": float(row["buffer_bdp"])},
            "loss": float(row["loss"]),
        },
        "hosts": {"segmentation": row["segmentation"], "noise": "off"},
        "flows": flows,
        "duration_s": float(row["duration_s"]),
        "window_s": [0, float(row["duration_s"])],
        "sample_hz": float(row["sample_hz"]),
        "trials": int(row["seed"]),
    }


def google_trace(trace: str) -> pd.DataFrame:
    """A trace, with `bbr_state` and `bbr_inflight_hi` as samples.parquet has them.

    Records without a version (BBRv3's) had gains alone: CRUISE is then REFILL, too.
    """
    table = pd.read_parquet(TRACES / f"{trace}.parquet")
    by_gain = (table["pacing_gain"] * GAIN_UNIT).map(BY_GAIN).where(table["cwnd_gain"] > 1, "ProbeRTT")
    word = (
        table["mode"].map(RELEASED_MODES).where(table["mode"] != RELEASED_PROBE_BW, table["phase"].map(RELEASED_PHASES))
    )
    state = word.where(table["version"] > 0, by_gain).map(STATES.index, na_action="ignore").astype(float)
    none = table["inflight_hi"] == 2**32 - 1
    return table.assign(
        bbr_state=state.where(table["pacing_gain"] > 0),
        bbr_inflight_hi=table["inflight_hi"].astype(float).mask(none, np.inf),
    )


def first_parting_s(ours: pd.DataFrame, google: pd.DataFrame) -> dict[str, float]:
    """{column: time of the first sample at which it differs; infinite: at none}, of flow 0 at the instants that both have."""
    ours, google = (t[t["flow"] == 0].assign(ms=(t["time_s"] * 1000).round().astype(int)) for t in (ours, google))
    both = google.merge(ours, on="ms", suffixes=("_google", ""))
    parts = {c: both["ms"][both[c].to_numpy(dtype=float) != both[f"{c}_google"].to_numpy(dtype=float)] for c in EXACT}
    return {column: float(at.min()) / 1000 if len(at) else np.inf for column, at in parts.items()}


def stays(table: pd.DataFrame) -> pd.DataFrame:
    """Number, median length (s) and sum of lengths (s) of the whole stays in each state."""
    found = phases(table)
    whole = found[found["end_s"].notna()]
    return (whole["end_s"] - whole["start_s"]).groupby(whole["state"]).agg(["count", "median", "sum"])


def bound_moves(table: pd.DataFrame) -> dict[str, float]:
    """How often flow 0's inflight_hi falls and rises a minute, and the median ratio of after to before; from sample to sample."""
    samples = table[table["flow"] == 0]
    bound = samples["bbr_inflight_hi"].replace(np.inf, np.nan)
    ratio = bound / bound.shift()
    minutes = (samples["time_s"].max() - samples["time_s"].min()) / 60
    row: dict[str, float] = {}
    for name, moved in (("falls", ratio[ratio < 1]), ("rises", ratio[ratio > 1])):
        row |= {f"{name}_per_min": round(len(moved) / minutes, 2), f"{name}_to": round(moved.median(), 3)}
    return row


def what_it_does(table: pd.DataFrame, has_bounds: bool) -> dict[str, Any]:
    """What flow 0 does in samples: number, median length (s) and part of the time (%) of the whole stays in each state; with bounds,
    bound_moves() and the median of inflight_hi."""
    found, flow = stays(table).to_dict("index"), table[table["flow"] == 0]
    row: dict[str, Any] = {}
    for state in STATES if has_bounds else [s for s in STATES if s not in ("CRUISE", "REFILL")]:
        stay = found.get(state, {"count": 0, "median": np.nan, "sum": 0.0})
        row |= {f"{state}_stays": int(stay["count"]), f"{state}_s": round(stay["median"], 3)}
        row[f"{state}_percent"] = round(100 * stay["sum"] / flow["time_s"].max(), 1)
    if has_bounds:
        row |= bound_moves(table)
        row["inflight_hi_p50"] = flow["bbr_inflight_hi"].replace(np.inf, np.nan).median()
    return row


def beside(trace: str, ours: pd.DataFrame, kernel_key: str) -> pd.DataFrame:
    """The rows of data/google/states.csv of a trace: Google's and ours.

    Args:
        ours: samples of a run of scenario_of(trace), with the trace's seed.
        kernel_key: of the kernel that ran it.

    Returns:
        what_it_does(), and ``parts_s``: when the first sample differs in one of EXACT.
    """
    google = google_trace(trace)
    has_bounds = bool(google["version"].max() > 0)
    parts_s = min(first_parting_s(ours, google).values())
    rows = [
        {"trace": trace, "code": code, "parts_s": parts_s} | what_it_does(table, has_bounds)
        for code, table in (("google", google), ("ours", ours))
    ]
    return pd.DataFrame(rows).assign(
        source=f"Google's: data/google/traces; ours: this lab, kernel lab-6.12 of key {kernel_key}",
        exactness="own runs",
    )
