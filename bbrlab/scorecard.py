"""The summary at the end of a campaign: on the terminal, and as scorecard.json."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from bbrlab import campaign, compare, files


def verdict(panel: compare.Panel) -> str:
    """ "reproduced", "not reproduced", or why it cannot be said."""
    if panel.points["failed"].sum():
        return f"{panel.points['failed'].sum()} runs failed their self-checks"
    if panel.scaled:
        return "not judged: shorter than the paper's runs"
    if panel.yardstick.rmse is None:
        return "not judged"
    if math.isnan(panel.judged_rmse):
        return "nothing to compare with"
    return "reproduced" if panel.judged_rmse <= panel.yardstick.rmse else "not reproduced"


def entry(figure: campaign.Figure, table: pd.DataFrame) -> dict[str, Any]:
    """One figure's line of the scorecard."""
    panel = compare.panel(figure, table)
    per_run = table.groupby(["seed", *figure.scenario.sweep])[["virtual_s", "wall_s"]].first()
    inside = panel.points["measured"].between(panel.points["published_low"] - panel.points["ci95"].fillna(0),
                                              panel.points["published_high"] + panel.points["ci95"].fillna(0))  # fmt: skip
    return {
        "figure": figure.id,
        "title": panel.title,
        "points": len(panel.points),
        "seeds": figure.trials,
        "runs_failed": int(panel.points["failed"].sum()),
        "rmse": _number(panel.rmse),
        "judged_points": len(panel.judged),
        "judged_rmse": _number(panel.judged_rmse),
        "rmse_target": panel.yardstick.rmse,
        "why": panel.yardstick.why,
        "largest_difference": _number(panel.points["residual"].abs().max()),
        "points_with_overlapping_intervals": int(inside.sum()),
        "ware_rmse_measured": _number(panel.ware_rmse),
        "ware_rmse_published": _number(panel.ware_published_rmse),
        "verdict": verdict(panel),
        "kernel": str(table["kernel"].iloc[0]),
        "virtual_h": round(float(per_run["virtual_s"].sum()) / 3600, 2),
        "core_minutes": round(float(per_run["wall_s"].sum()) / 60, 1),
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 6)


def write(tables: list[Path], scale: str, out: Path) -> None:
    """Judge every table, print the scorecard, write it to ``out``."""
    chosen = [f"{t.parent.name}/{t.stem}" for t in tables]
    known = campaign.figures(scale, chosen)
    entries = [entry(f, pd.read_parquet(t)) for f, t in zip(known, tables, strict=True)]
    show(entries, scale)
    files.write_text(out, json.dumps({"scale": scale, "figures": entries}, indent=1) + "\n")


def show(entries: list[dict[str, Any]], scale: str) -> None:
    """Print the scorecard."""
    console = Console(width=120)
    table = Table(title=f"bbrlab scorecard, scale {scale}", title_justify="left", box=None, pad_edge=False)
    for name in (
        "figure",
        "points",
        "seeds",
        "RMSE",
        "judged by",
        "target",
        "Ware RMSE",
        "virtual h",
        "core min",
        "verdict",
    ):
        table.add_column(name, justify="left" if name in ("figure", "verdict") else "right")
    for e in entries:
        colour = {"reproduced": "green", "not reproduced": "red"}.get(e["verdict"], "yellow")
        table.add_row(e["figure"], str(e["points"]), str(e["seeds"]), _text(e["rmse"]),
                      f"{_text(e['judged_rmse'])} of {e['judged_points']}", _text(e["rmse_target"]),
                      _text(e["ware_rmse_measured"]), f"{e['virtual_h']:.1f}", f"{e['core_minutes']:.1f}",
                      f"[{colour}]{e['verdict']}[/{colour}]")  # fmt: skip
    console.print(table)


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
