"""The summary at the end of a campaign: on the terminal, and as scorecard.json."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from bbrlab.base import files
from bbrlab.campaign.figures import Figure, figures_at
from bbrlab.claims.judge import VERDICTS, verdict_counts
from bbrlab.claims.schema import rounded
from bbrlab.report.panel import has_panel, panel_of

COLOURS = dict(zip(VERDICTS, ("green", "red", "yellow", "dim"), strict=True))
WIDTH = 120


def figure_entry(figure: Figure, table: pd.DataFrame) -> dict[str, Any]:
    """One figure's line: what was run, what it cost, and how far published values and the Ware model are."""
    per_run = table.groupby(["seed", "point"])[["ok", "virtual_s", "wall_s"]].first()
    found: dict[str, Any] = {
        "figure": figure.id,
        "title": figure.scenario.figure,
        "points": len(figure.points),
        "seeds": figure.trials,
        "runs_failed": int((~per_run["ok"]).sum()),
        "kernel": str(table["kernel"].iloc[0]),
        "virtual_h": round(float(per_run["virtual_s"].sum()) / 3600, 2),
        "core_minutes": round(float(per_run["wall_s"].sum()) / 60, 1),
        "rmse": None,
    }
    if has_panel(figure):
        panel = panel_of(figure, table)
        inside = panel.points["measured"].between(panel.points["published_low"] - panel.points["ci95"].fillna(0),
                                                  panel.points["published_high"] + panel.points["ci95"].fillna(0))  # fmt: skip
        found |= {
            "rmse": _number(panel.rmse),
            "largest_difference": _number(panel.points["residual"].abs().max()),
            "points_with_overlapping_intervals": int(inside.sum()),
            "ware_rmse_measured": _number(panel.ware_rmse),
            "ware_rmse_published": _number(panel.ware_published_rmse),
            "shorter_than_the_paper": panel.scaled,
        }
    return found


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 6)


def write_scorecard(tables: dict[str, pd.DataFrame], claims: pd.DataFrame, scale: str, out: Path) -> None:
    """Print the scorecard and write it to ``out``.

    Args:
        tables: collect.table() of each figure, by id.
        claims: judge.frame().
        scale: their scale.
        out: scorecard.json.
    """
    known = {f.id: f for f in figures_at(scale, list(tables))}
    entries = [figure_entry(known[id], table) for id, table in tables.items()]
    counts = verdict_counts(claims)
    show_scorecard(entries, counts, scale)
    content = {"scale": scale, "claims": counts.to_dict(orient="index"), "figures": entries}
    files.write_text(out, json.dumps(content, indent=1) + "\n")


def show_scorecard(entries: list[dict[str, Any]], counts: pd.DataFrame, scale: str) -> None:
    """Print figures and claims."""
    console = Console(width=WIDTH)
    table = Table(title=f"Figures, scale {scale}", title_justify="left", box=None, pad_edge=False)
    for name in ("figure", "points", "seeds", "failed", "virtual h", "core min", "RMSE to published"):
        table.add_column(name, justify="left" if name == "figure" else "right")
    for e in entries:
        failed = f"[red]{e['runs_failed']}[/red]" if e["runs_failed"] else "0"
        note = " (shorter runs)" if e.get("shorter_than_the_paper") else ""
        table.add_row(e["figure"], str(e["points"]), str(e["seeds"]), failed, f"{e['virtual_h']:.1f}",
                      f"{e['core_minutes']:.1f}", "-" if e["rmse"] is None else f"{e['rmse']:.3f}{note}")  # fmt: skip
    console.print(table)
    show_counts(counts, scale, console)


def show_counts(counts: pd.DataFrame, scale: str, console: Console | None = None) -> None:
    """Print how many claims of each paper came out how."""
    console = console or Console(width=WIDTH)
    table = Table(title=f"\nClaims, scale {scale}", title_justify="left", box=None, pad_edge=False)
    table.add_column("paper")
    for verdict in VERDICTS:
        table.add_column(verdict, justify="right", style=COLOURS[verdict])
    for paper, row in counts.iterrows():
        table.add_row(str(paper), *(str(row[v]) for v in VERDICTS))
    console.print(table)


def measured_text(claim: Any) -> str:
    """The judged number with its interval, as text."""
    if math.isnan(claim["mean"]):
        return "-"
    mean, low, high = (rounded(claim[name], 4) for name in ("mean", "ci95_low", "ci95_high"))
    return f"{mean} [{low}, {high}]"


def show_verdicts(claims: pd.DataFrame) -> None:
    """Print each claim with its verdict."""
    console = Console(width=WIDTH)
    table = Table(box=None, pad_edge=False)
    for name in ("claim", "expected", "measured", "verdict"):
        table.add_column(name, overflow="fold")
    for claim in claims.to_dict(orient="records"):
        colour = COLOURS[claim["verdict"]]
        table.add_row(claim["id"], claim["expected"], measured_text(claim), f"[{colour}]{claim['verdict']}[/{colour}]")
    console.print(table)
