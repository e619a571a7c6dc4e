"""A scenario in virtual time against real time, on the terminal and as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from bbrlab.base.console import wide_console
from bbrlab.base.tables import write_csv
from bbrlab.comparison.compare import MOVED, NOT_COMPARED, OPEN, SAME, metric_words
from bbrlab_apps.crosscheck.runs import Crosscheck

WORDS = {SAME: "equal", OPEN: "not told apart", MOVED: "differs", NOT_COMPARED: "not compared"}
LATE, BUSY = "late_ms_p99", "busy"


def show_crosscheck(result: Crosscheck) -> None:
    """Print every comparison, and how honest the runs in real time were."""
    console = wide_console()
    console.print(
        f"{result.scenario}: virtual time, {result.kernels['virtual']}, against real time, backend {result.backend}, {result.kernels['real']}",
        soft_wrap=True,
    )  # fmt: skip
    table = Table(box=None, pad_edge=False)
    for name in ("point", "flows", "metric", "virtual", "real", "difference (95 %)", ""):
        table.add_column(name, overflow="fold")
    for row in result.points.to_dict("records"):
        cells = [measured_words(row, "a"), measured_words(row, "b"), difference_words(row), WORDS[row["outcome"]]]
        table.add_row(row["point"], row["cca"], metric_words(row), *cells)
    console.print(table)
    for run in result.runs:
        where = f"real time, {run['point'].rpartition(',')[0] or run['point']}, seed {run['seed']}"
        state = "passed its self-checks" if run["ok"] else f"refused: failed {', '.join(run['failed'])}"
        console.print(f"{where}: {state}; {_honesty(run['real_time'])}", soft_wrap=True)


def measured_words(row: dict[Any, Any], side: str) -> str:
    """What one side of a comparison ("a", "b") measured: mean, half its interval, seeds; "-" if it has no number."""
    if not row[f"{side}_seeds"]:
        return "-"
    # In what ships, half an interval is 0 where all numbers are equal, and none can be told.
    half = "" if not row[f"{side}_half"] > 0 else f" ± {row[f'{side}_half']:.2g}"
    return f"{row[f'{side}_mean']:.4g}{half} ({row[f'{side}_seeds']})"


def difference_words(row: dict[Any, Any]) -> str:
    """The difference with the ends of its interval, if it has one; "-" if there is none."""
    if pd.isna(row["difference"]):
        return "-"
    ends = "" if pd.isna(row["low"]) else f" ({row['low']:.2g} to {row['high']:.2g})"
    return f"{row['difference']:.3g}{ends}"


def _honesty(entry: dict[str, Any] | None) -> str:
    if entry is None or entry[LATE] is None:
        return "nothing is known of its time"
    waited = "unknown" if entry["waited"] is None else f"{entry['waited']:.1%}"
    return (
        f"timers at most {entry[LATE]:.2g} ms late in 99 of 100 cases ({entry['late_ms_max']:.2g} ms at most), processor "
        f"{entry[BUSY]:.0%} busy, {waited} waited for it, {entry['stolen']:.1%} stolen"
    )


def content_of(result: Crosscheck) -> dict[str, Any]:
    """Everything, for JSON."""
    return {
        "scenario": result.scenario,
        "backend": result.backend,
        "kernels": result.kernels,
        "moved": result.moved,
        "points": result.points.to_dict("records"),
        "runs": result.runs,
    }


def write_crosscheck(result: Crosscheck, csv: Path) -> None:
    """Write every comparison as CSV: "a" is virtual time, "b" real time, with what both ran on and the worst of its honesty."""
    good = [run["real_time"] for run in result.runs if run["ok"] and run["real_time"]]
    worst = {
        "late_ms_p99": max((r[LATE] for r in good if r[LATE] is not None), default=None),
        "busy": max((r[BUSY] for r in good), default=None),
        "lost": max(((r["waited"] or 0) + r["stolen"] for r in good), default=None),
    }
    table = result.points.assign(
        backend=result.backend,
        acceleration=next((run["acceleration"] for run in result.runs), ""),
        virtual_kernel=result.kernels["virtual"],
        real_kernel=result.kernels["real"],
        refused=len(result.refused),
        **worst,
        source=f"this lab, scenario {result.scenario}: bbrlab crosscheck",
        exactness="own runs",
    )
    write_csv(table, csv)
