"""Gathers the runs of a figure into one tidy table."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import files
from bbrlab.campaign.figures import Figure, Run, runs_of
from bbrlab.campaign.interval import half_width
from bbrlab.measure.metrics import BANDWIDTH, QUEUE_CDF, SMALLEST_RTT
from bbrlab.measure.phases import PHASE_QUEUES

BOTTLENECK = (
    "utilisation", "link_utilisation", "loss", "loss_over_delivered", "drops", "ecn_marks", "occupancy", "occupancy_p50",
    "occupancy_p95",
)  # fmt: skip
# Every metric of a table and its unit. Those of a group differ among the groups of a run, the others do not.
GROUP_UNITS = {
    "goodput_mbit": "Mbit/s", "share_of_capacity": "1", "share_of_goodput": "1", "retransmits": "packets", "jain_index": "1", "rtt_ms_mean": "ms",
    "ecn_marked": "1", "cwnd_packets": "packets", "in_flight_packets": "packets", "completion_s": "s",
    "bbr_jitter_ms": "ms", "startup_s": "s", "up_s": "s", "down_s": "s", "cruise_s": "s", "between_probe_rtt_s": "s",
    "between_up_s": "s", **dict.fromkeys(PHASE_QUEUES, "ms"), BANDWIDTH: "Mbit/s", SMALLEST_RTT: "ms", "chunks": "transmissions", "unfinished": "transmissions", "concurrent_max": "transmissions",
    "slowdown_mean": "1", "slowdown_p50": "1", "slowdown_p95": "1", "slowdown_p99": "1", "srpt_slowdown_mean": "1",
}  # fmt: skip
RUN_UNITS = {
    "jain_index_all": "1", "utilisation": "1", "link_utilisation": "1", "loss": "1", "loss_over_delivered": "1",
    "drops": "packets", "ecn_marks": "packets", "occupancy": "1", "occupancy_p50": "1", "occupancy_p95": "1",
    **{f"queue_ms_{key}": "ms" for key in ("mean", "p05", "p25", "p50", "p75", "p95", "p99", "max")},
    **dict.fromkeys(QUEUE_CDF, "1"),
}  # fmt: skip
UNITS = GROUP_UNITS | RUN_UNITS
METRICS = set(UNITS)


def run_rows(run: Run) -> list[dict[str, Any]]:
    """One row per flow group of a finished run."""
    summary = json.loads((run.folder / "summary.json").read_text(encoding="utf-8"))
    bottleneck = summary["bottleneck"]
    shared = {
        "figure": run.figure,
        "point": run.point.label,
        "seed": run.seed,
        "ok": summary["ok"],
        **run.point.values,
        **run.point.conditions,
    }
    outcome = {
        "jain_index_all": summary["jain_index"],
        **{key: bottleneck[key] for key in BOTTLENECK},
        **{f"queue_ms_{key}": value for key, value in bottleneck["queue_ms"].items()},
        **bottleneck["queue_cdf"],
        "kernel": f"{summary['kernel']['name']} ({summary['kernel']['release']})",
        "virtual_s": summary["virtual_s"],
        "wall_s": summary["wall_s"],
    }
    return [shared | {"group": index} | group | outcome for index, group in enumerate(summary["groups"])]


def figure_table(figure: Figure) -> pd.DataFrame:
    """One row per run and flow group (columns: docs/results.md). Runs that failed their checks are in it, ``ok`` False."""
    found = pd.DataFrame([row for run in runs_of(figure) for row in run_rows(run)])
    for column in METRICS & set(found):  # a column of nothing but None must still be one of numbers
        found[column] = found[column].astype(float)
    return found


def point_means(runs_table: pd.DataFrame, keys: list[str], value: str = "share_of_capacity") -> pd.DataFrame:
    """Mean, half-width of the 95 % interval and number of good runs for each point.

    Args:
        runs_table: what table() returned, one group only.
        keys: the columns that identify a point.
        value: the column to average.

    Returns:
        Columns: keys, ``mean``, ``ci95``, ``runs``, ``failed`` (runs left out because they failed their checks).
    """
    good = runs_table[runs_table["ok"]]
    grouped = good.groupby(keys)[value]
    result = grouped.agg(mean="mean", ci95=half_width, runs="count").reset_index()
    failed = runs_table.groupby(keys)["ok"].agg(failed=lambda ok: int((~ok).sum())).reset_index()
    return failed.merge(result, on=keys, how="left")


TIDY = (
    "paper", "figure", "point", "case", "group", "cca", "flows", "rate_mbit", "base_rtt_ms", "buffer_bytes", "buffer_bdp",
    "qdisc", "random_loss", "duration_s", "window_start_s", "window_end_s", "metric", "unit", "mean", "ci95_low",
    "ci95_high", "standard_deviation", "seeds", "failed",
)  # fmt: skip


def _flows(content: pd.DataFrame) -> pd.Series:
    """Flows of each row's group, the same for all seeds of a point: of short flows, whose number is drawn, the mean."""
    return content.groupby(["point", "group"])["count"].transform("mean").round().astype(int)


def tidy(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Every point of every figure in one long table: one row per point, group and metric (docs/results.md).

    Args:
        tables: table() of each figure, by id.

    Returns:
        Columns TIDY. Metrics of the whole run have ``group`` -1 and stand once per point; runs that failed their checks
        are left out of the means and counted in ``failed``. A point of which all did has no mean, and 0 ``seeds``.
    """
    parts = []
    for figure, content in tables.items():
        shared = content.assign(paper=figure.split("/")[0], case=content.get("case", ""), flows=_flows(content))
        of_run = shared[shared["group"] == 0].assign(group=-1, cca="", flows=0)
        for frame, units in ((shared, GROUP_UNITS), (of_run, RUN_UNITS)):
            keys = [c for c in TIDY[: TIDY.index("metric")] if c in frame]
            present = [m for m in units if m in frame]
            long = frame.melt([*keys, "seed", "ok"], present, "metric", "value")
            every = long.groupby([*keys, "metric"], sort=False)
            counts = every.agg(runs=("ok", "size"), good=("ok", "sum"), values=("value", "count"))
            counts["failed"] = counts["runs"] - counts["good"]
            good = long[long["ok"]].dropna(subset="value").groupby([*keys, "metric"], sort=False)["value"]
            found = counts.loc[counts["values"] > 0, ["failed"]].join(
                good.agg(mean="mean", half=half_width, standard_deviation="std", seeds="count")
            )
            rows = found.reset_index()
            parts.append(rows.assign(unit=rows["metric"].map(units)))
    result: pd.DataFrame = pd.concat(parts, ignore_index=True)
    result["seeds"] = result["seeds"].fillna(0).astype(int)
    result["ci95_low"], result["ci95_high"] = result["mean"] - result["half"], result["mean"] + result["half"]
    return result.loc[:, list(TIDY)]


def read_tables(tables: Iterable[Path]) -> dict[str, pd.DataFrame]:
    """{figure: its table} of SCALE/PAPER/FIGURE.parquet files."""
    return {f"{p.parent.name}/{p.stem}": pd.read_parquet(p) for p in tables}


def write_table(content: pd.DataFrame, out: Path) -> None:
    """Write a table as Parquet to ``out`` and as CSV beside it."""
    with files.aside(out.with_suffix(".csv")) as temporary:
        content.to_csv(temporary, index=False)
    with files.aside(out) as temporary:
        content.to_parquet(temporary, index=False)
