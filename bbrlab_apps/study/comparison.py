"""Two campaigns against each other: on the terminal, as a table, and as a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from bbrlab.base import files
from bbrlab.base.console import Console, wide_console
from bbrlab.base.words import number_of
from bbrlab.comparison.compare import MOVED, NOT_COMPARED, OPEN, SAME, has_numbers, metric_words, one_sided
from bbrlab_apps.site.html import render

ROWS_MAX = 40  # of points that moved, on the terminal


@dataclass(frozen=True)
class Comparison:
    """Two campaigns against each other."""

    # For each, what it is called, its folder of results, and the kernels that its runs had
    sides: tuple[dict[str, Any], dict[str, Any]]
    scale: str
    points: pd.DataFrame  # compare_points()
    verdicts: pd.DataFrame  # compare_verdicts()
    only: tuple[list[str], list[str]]  # for each side, the points that the other has not

    @property
    def compared(self) -> bool:
        """Whether there is anything to compare: a point with a number on either side."""
        return has_numbers(self.points)

    def lost(self, side: str) -> pd.DataFrame:
        """The points that a side ("a", "b") has too few good runs of (compare.one_sided())."""
        return one_sided(self.points, side)

    @property
    def moved(self) -> bool:
        """Whether a point or a verdict moved, or a side lost a point."""
        lost = any(len(self.lost(side)) for side in "ab")
        return bool(lost or (self.points["outcome"] == MOVED).any() or self.verdicts["moved"].any())


def with_half(mean: float, half: float) -> str:
    """A mean and half of its interval, if it has one."""
    return f"{mean:.4g}" + ("" if pd.isna(half) else f" +- {half:.2g}")


def with_ends(mean: float, low: float, high: float) -> str:
    """A number and the ends of its interval, if it has one."""
    return f"{mean:.4g}" + ("" if pd.isna(low) else f" ({low:.3g} to {high:.3g})")


def outcome_counts(comparison: Comparison) -> str:
    """How many points moved, and how many did not."""
    counts = comparison.points["outcome"].value_counts()
    words = {SAME: "equal in every seed", MOVED: "moved", OPEN: "not told apart", NOT_COMPARED: "not compared"}
    return ", ".join(f"{counts[k]} {w}" for k, w in words.items() if k in counts) or "none"


def show_comparison(comparison: Comparison) -> None:
    """Print what moved, the farthest first, and how much did not."""
    console = wide_console()
    points, verdicts = comparison.points, comparison.verdicts
    for letter, side in zip("AB", comparison.sides, strict=True):
        console.print(f"{letter}: {side['name']}, {', '.join(side['kernels'])} [{side['folder']}]", soft_wrap=True)  # fmt: skip
    console.print(f"points at scale {comparison.scale}: {outcome_counts(comparison)}")
    _show_lost(console, comparison)
    moved = points[points["outcome"] == MOVED]
    if len(moved):
        order = (moved["difference"].abs() / moved[["a_mean", "b_mean"]].abs().max(axis=1)).sort_values(ascending=False)
        _print_points(console, moved.loc[order.index[:ROWS_MAX]])
        if len(moved) > ROWS_MAX:
            console.print(f"... and {len(moved) - ROWS_MAX} more (--csv has all)")
    for letter, only in zip("AB", comparison.only, strict=True):
        if only:
            console.print(
                f"only {letter} has {number_of(len(only), 'point')}, such as {only[0]}",
                soft_wrap=True,
                markup=False,
            )
    changed = verdicts[verdicts["moved"]]
    console.print(f"verdicts: {len(changed)} of {len(verdicts)} differ")
    if len(changed):
        table = Table(box=None, pad_edge=False)
        for name in ("claim", "expected", "A", "", "B", ""):
            table.add_column(name, overflow="fold")
        for row in changed.to_dict("records"):
            numbers = [with_ends(row[f"{s}_mean"], row[f"{s}_low"], row[f"{s}_high"]) for s in "ab"]
            table.add_row(row["id"], row["expected"], row["a"], numbers[0], row["b"], numbers[1])
        console.print(table)


def _show_lost(console: Console, comparison: Comparison) -> None:
    """Say which side has too few good runs of how many points, and how many runs failed their self-checks."""
    for letter, side in zip("AB", "ab", strict=True):
        lost = comparison.lost(side)
        if len(lost):
            first = lost.iloc[0]
            console.print(
                f"{letter} has no good run with a number for {len(lost)} of these, or one where others failed, and the other side has, "
                f"such as {first['metric']} of {first['figure']} {first['point']}",
                soft_wrap=True,
                markup=False,
            )
        # The same runs stand at every metric and group.
        failed = comparison.points.groupby(["figure", "point"])[f"{side}_failed"].max()
        if failed.sum():
            console.print(
                f"{letter}: left out, as their self-checks failed: {number_of(int(failed.sum()), 'run')} of {number_of((failed > 0).sum(), 'point')}",
                soft_wrap=True,
            )


def _print_points(console: Console, shown: pd.DataFrame) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("figure", "point", "flows", "metric", "A", "B", "difference (95 %)"):
        table.add_column(name, overflow="fold")
    for row in shown.to_dict("records"):
        table.add_row(row["figure"], row["point"], row["cca"], metric_words(row), with_half(row["a_mean"], row["a_half"]),
                      with_half(row["b_mean"], row["b_half"]), with_ends(row["difference"], row["low"], row["high"]))  # fmt: skip
    console.print(table)


def content_of(comparison: Comparison) -> dict[str, Any]:
    """Everything, for JSON."""
    return {
        "scale": comparison.scale,
        "moved": comparison.moved,
        "sides": dict(zip("ab", comparison.sides, strict=True)),
        "points": comparison.points.to_dict("records"),
        "verdicts": comparison.verdicts.to_dict("records"),
        "only_a": comparison.only[0],
        "only_b": comparison.only[1],
    }


def write_page(comparison: Comparison, page: Path) -> None:
    """Write a page with every point and every verdict of both sides."""
    points = [
        (
            [
                row["figure"], row["point"], row["cca"], metric_words(row),
                with_half(row["a_mean"], row["a_half"]), with_half(row["b_mean"], row["b_half"]),
                with_ends(row["difference"], row["low"], row["high"]), row["outcome"],
            ],
            row["outcome"] == MOVED,
        )
        for row in comparison.points.to_dict("records")
    ]  # fmt: skip
    verdicts = [
        (
            [row["id"], row["expected"]]
            + [text for s in "ab" for text in (row[s], with_ends(row[f"{s}_mean"], row[f"{s}_low"], row[f"{s}_high"]))],
            bool(row["moved"]),
        )
        for row in comparison.verdicts.to_dict("records")
    ]
    heads = (
        ["figure", "point", "flows", "metric", "A", "B", "difference", "outcome"],
        ["claim", "expected", "A", "measured", "B", "measured"],
    )
    text = render(
        "comparison.html",
        title=" and ".join(side["name"] for side in comparison.sides),
        scale=comparison.scale,
        counts=outcome_counts(comparison),
        sides=comparison.sides,
        tables=list(zip(("Points", "Verdicts"), heads, (points, verdicts), strict=True)),
    )
    files.write_text(page, text)
