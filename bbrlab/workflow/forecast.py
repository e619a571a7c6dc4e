"""What a campaign would run and cost, as a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bbrlab.campaign.figures import Figure, runs_of
from bbrlab.workflow.estimate import disk_bytes, estimate_s

MANY_CORES = 16


def forecast_rows(figures: list[Figure], results: Path | None = None) -> list[dict[str, Any]]:
    """One row per figure: points, seeds, runs, done, virtual hours, and core minutes and bytes that are left."""
    found = []
    for figure in figures:
        runs = runs_of(figure, results=results)
        left = [r for r in runs if not (r.folder / "summary.json").exists()]
        found.append({
            "figure": figure.id,
            "points": len(figure.points),
            "seeds": figure.trials,
            "runs": len(runs),
            "done": len(runs) - len(left),
            "virtual_h": sum(r.point.scenario.duration_s for r in runs) / 3600,
            "left_core_min": sum(estimate_s(r.point) for r in left) / 60,
            "left_bytes": sum(disk_bytes(r) for r in left),
        })  # fmt: skip
    return found


def show_forecast(figures: list[Figure], console: Console | None = None) -> None:
    """Print the plan and how long it will take here and on a larger machine."""
    console = console or Console()
    found = forecast_rows(figures)
    table = Table(box=None, pad_edge=False)
    table.add_column("figure", no_wrap=True, min_width=max(len(row["figure"]) for row in found) if found else 0)
    for name in ("points", "seeds", "runs", "done", "virtual h", "core min*", "MB*"):
        table.add_column(name, justify="right")
    for row in found:
        table.add_row(row["figure"], str(row["points"]), str(row["seeds"]), str(row["runs"]), str(row["done"]),
                      f"{row['virtual_h']:.1f}", f"{row['left_core_min']:.1f}", f"{row['left_bytes'] / 1e6:.0f}")  # fmt: skip
    console.print(table)
    minutes, size = sum(r["left_core_min"] for r in found), sum(r["left_bytes"] for r in found)
    runs, hours = sum(r["runs"] - r["done"] for r in found), sum(r["virtual_h"] for r in found)
    cores = len(os.sched_getaffinity(0))
    console.print(
        f"* of what is left: {runs} of {sum(r['runs'] for r in found)} runs ({hours:.0f} hours of testbed time): about "
        f"{duration(minutes / cores)} on the {cores} cores of this machine, {duration(minutes / MANY_CORES)} on {MANY_CORES}, "
        f"{size / 1e9:.1f} GB of disk",
        highlight=False,
        soft_wrap=True,
    )


def to_stderr() -> Console:
    """A console beside snakemake's own words, which go to standard error."""
    return Console(stderr=True)


def duration(minutes: float) -> str:
    """Minutes in words, whole minutes or tenths of hours."""
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
