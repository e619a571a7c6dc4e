"""Gathers the runs of a figure into one tidy table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats

from bbrlab import files
from bbrlab.campaign import Figure, runs

CONFIDENCE = 0.95


def table(figure: Figure) -> pd.DataFrame:
    """One row per run and flow group (columns: docs/results.md). Runs that failed their checks are in it, ``ok`` False."""
    rows: list[dict[str, Any]] = []
    for run in runs(figure):
        summary = json.loads((run.folder / "summary.json").read_text(encoding="utf-8"))
        bottleneck = summary["bottleneck"]
        for index, group in enumerate(summary["groups"]):
            rows.append({
                "figure": figure.id,
                "seed": run.seed,
                "ok": summary["ok"],
                **run.point.values,
                "group": index,
                **group,
                "jain_index_all": summary["jain_index"],
                "utilisation": bottleneck["utilisation"],
                "link_utilisation": bottleneck["link_utilisation"],
                "loss": bottleneck["loss"],
                "loss_over_delivered": bottleneck["loss_over_delivered"],
                "occupancy": bottleneck["occupancy"],
                "queue_ms_mean": bottleneck["queue_ms"]["mean"],
                "queue_ms_p95": bottleneck["queue_ms"]["p95"],
                "kernel": f"{summary['kernel']['name']} ({summary['kernel']['release']})",
                "virtual_s": summary["virtual_s"],
                "wall_s": summary["wall_s"],
            })  # fmt: skip
    return pd.DataFrame(rows)


def half_width(values: pd.Series) -> float:
    """Half the width of the 95 % confidence interval of the mean (Student's t); NaN for fewer than two values."""
    count = len(values)
    if count < 2:
        return float("nan")
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * values.std(ddof=1) / count**0.5)


def points(runs_table: pd.DataFrame, keys: list[str], value: str = "share_of_capacity") -> pd.DataFrame:
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


def write(figure: Figure, out: Path) -> None:
    """Write table() as Parquet to ``out`` and as CSV beside it."""
    content = table(figure)
    with files.aside(out.with_suffix(".csv")) as temporary:
        content.to_csv(temporary, index=False)
    with files.aside(out) as temporary:
        content.to_parquet(temporary, index=False)
