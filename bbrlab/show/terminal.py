"""The summary at the end of a campaign: on the terminal, and as scorecard.json."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table
from rich.text import Text

from bbrlab.base import files
from bbrlab.base.console import Console
from bbrlab.base.words import number_of
from bbrlab.claims.judge import ALL, counts, standing_counts
from bbrlab.claims.statement_verdict import statement_counts
from bbrlab.results.figures import Figure, figures_at, has_panel
from bbrlab.results.replacement import replacement
from bbrlab.results.verdicts import FINAL, NOT_RUN, VERDICTS
from bbrlab.show.panel import panel_of
from bbrlab.show.verdicts import LOOKS, marks_text, measured_text, verdict_text

WIDTH = 120


def figure_entry(figure: Figure, table: pd.DataFrame) -> dict[str, Any]:
    """One figure's line: what was run, what it cost, and how far published values and the Ware model are."""
    seeds = table.groupby("point")["seed"].nunique()
    per_run = table.groupby(["seed", "point"])[["ok", "virtual_s", "wall_s"]].first()
    entry: dict[str, Any] = {
        "figure": figure.id,
        "title": figure.scenario.figure,
        "points": len(figure.points),
        "seeds": int(seeds.min()),
        "seeds_most": int(seeds.max()),
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
        entry |= {
            "rmse": _number(panel.rmse),
            "largest_difference": _number(panel.points["residual"].abs().max()),
            "points_with_overlapping_intervals": int(inside.sum()),
            "ware_rmse_measured": _number(panel.ware_rmse),
            "ware_rmse_published": _number(panel.ware_published_rmse),
            "shorter_than_the_paper": panel.scaled,
        }
    return entry


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 6)


def write_scorecard(
    tables: dict[str, pd.DataFrame], claims: pd.DataFrame, statements: pd.DataFrame, scale: str, out: Path
) -> None:
    """Print the scorecard and write it to ``out``."""
    figures = {f.id: f for f in figures_at(scale, list(tables))}
    entries = [figure_entry(figures[id], table) for id, table in tables.items()]
    of_statements, of_claims = statement_counts(statements), claim_counts(claims)
    _say_replaced(Console(width=WIDTH))
    show_figures(entries, scale)
    show_counts(of_statements, f"Statements of the papers, scale {scale}")
    show_counts(of_claims, f"The claims that test them, scale {scale}")
    content = {
        "scale": scale,
        **({"replaced": {swap.old: swap.stand_in}} if (swap := replacement()) else {}),
        "statements": of_statements.to_dict(orient="index"),
        "claims": of_claims.to_dict(orient="index"),
        "figures": entries,
    }
    files.write_text(out, json.dumps(content, indent=1) + "\n")


def _say_replaced(console: Console) -> None:
    """Say what stands in whose place, if anything does."""
    if swap := replacement():
        console.print(
            Text.assemble((swap.words, "bold"), f" in these runs; what is expected is the papers', of {swap.old}.")
        )


def claim_counts(claims: pd.DataFrame) -> pd.DataFrame:
    """judge.counts() with ``judged``, how many have a verdict, and ``stand``, how many that stands among so many."""
    table = counts(claims, VERDICTS)
    table["judged"] = table[list(FINAL)].sum(axis=1)
    table["stand"] = standing_counts(claims, table.index)
    return table


def show_figures(entries: list[dict[str, Any]], scale: str) -> None:
    """Print what was run."""
    table = Table(title=f"Figures, scale {scale}", title_justify="left", box=None, pad_edge=False)
    for name in ("figure", "points", "seeds", "failed", "virtual h", "core min", "RMSE to published"):
        table.add_column(name, justify="left" if name == "figure" else "right")
    for e in entries:
        failed = Text(str(e["runs_failed"]), "red" if e["runs_failed"] else "")
        seeds = str(e["seeds"]) if e["seeds"] == e["seeds_most"] else f"{e['seeds']} to {e['seeds_most']}"
        note = " (shorter runs)" if e.get("shorter_than_the_paper") else ""
        table.add_row(e["figure"], str(e["points"]), seeds, failed, f"{e['virtual_h']:.1f}",
                      f"{e['core_minutes']:.1f}", "-" if e["rmse"] is None else f"{e['rmse']:.3f}{note}")  # fmt: skip
    Console(width=WIDTH).print(table)


def show_counts(counts: pd.DataFrame, title: str) -> None:
    """Print how many of each paper came out how, those of all papers, and the lab's own.

    Args:
        counts: statement_verdict.statement_counts(), or claim_counts().
    """
    table = Table(title=f"\n{title}", title_justify="left", box=None, pad_edge=False)
    table.add_column("paper")
    for column in counts.columns:
        table.add_column(
            str(column), justify="right", style=LOOKS[str(column)].terminal if str(column) in LOOKS else None
        )
    for paper, row in counts.iterrows():
        bold = "bold" if paper == ALL else None
        table.add_row(str(paper), *(str(n) if n else "·" for n in row), style=bold)
    Console(width=WIDTH).print(table)


def show_verdicts(claims: pd.DataFrame, statements: pd.DataFrame, console: Console | None = None) -> None:
    """Print each statement with its verdict and, where it has several claims, each of these below it; those that were not run
    are counted."""
    console = console or Console(width=WIDTH)
    _say_replaced(console)
    table = Table(box=None, pad_edge=False)
    for name in ("claim", "expected", "measured", "verdict", ""):
        table.add_column(name, overflow="fold", no_wrap=name == "claim")
    for statement in statements.to_dict(orient="records"):
        own_claims = claims[claims["statement"] == statement["id"]].to_dict(orient="records")
        if len(own_claims) > 1:
            colour = LOOKS[statement["verdict"]].terminal
            table.add_row(Text(statement["id"], "bold"), "", "", Text(statement["in_words"], colour), "")
        left = [claim for claim in own_claims if claim["verdict"] == NOT_RUN] if len(own_claims) > 1 else []
        for claim in own_claims:
            if claim in left:
                continue
            colour = LOOKS[claim["interim"] or claim["verdict"]].terminal
            whose = Text(f"  {claim['id']}") if len(own_claims) > 1 else Text(claim["id"], "bold")
            verdict = Text(verdict_text(claim), "dim" if claim["role"] else colour)
            table.add_row(whose, claim["expected"], measured_text(claim), verdict, marks_text(claim))
        if left:
            colour = LOOKS[NOT_RUN].terminal
            why = "; ".join(dict.fromkeys(marks_text(claim) for claim in left))
            table.add_row(f"  {number_of(len(left), 'claim')}", "", "-", Text(NOT_RUN, colour), why)
    console.print(table)
