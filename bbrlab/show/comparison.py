"""Two campaigns against each other, on the terminal and as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from bbrlab.base.console import Console
from bbrlab.base.tables import write_csv
from bbrlab.publish.compare import MOVED, NOT_COMPARED, OPEN, SAME, has_numbers, one_sided
from bbrlab.show.console import wide_console


@dataclass(frozen=True)
class Comparison:
    """Two campaigns against each other.

    Attributes:
        sides: for each, what it is called, its folder of results, and the kernels that its runs had.
        scale: of both.
        points: compare_points().
        verdicts: compare_verdicts().
        only: for each side, the points that the other has not.
    """

    sides: tuple[dict[str, Any], dict[str, Any]]
    scale: str
    points: pd.DataFrame
    verdicts: pd.DataFrame
    only: tuple[list[str], list[str]]

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


def said_in_all(found: Comparison) -> str:
    """How many points moved, and how many did not."""
    counts = found.points["outcome"].value_counts()
    words = {
        SAME: "equal in every seed",
        MOVED: "moved",
        OPEN: "not told apart",
        NOT_COMPARED: "not compared",
    }
    return ", ".join(f"{counts[k]} {w}" for k, w in words.items() if k in counts) or "none"


def show_comparison(found: Comparison, rows: int = 40) -> None:
    """Print what moved, the farthest first, and how much did not.

    Args:
        rows: at most so many points.
    """
    console = wide_console()
    points, verdicts = found.points, found.verdicts
    for letter, side in zip("AB", found.sides, strict=True):
        console.print(f"{letter}: {side['name']}, {', '.join(side['kernels'])} [{side['folder']}]", highlight=False, soft_wrap=True)  # fmt: skip
    console.print(f"points at scale {found.scale}: {said_in_all(found)}", highlight=False)
    _show_lost(console, found)
    moved = points[points["outcome"] == MOVED]
    if len(moved):
        order = (moved["difference"].abs() / moved[["a_mean", "b_mean"]].abs().max(axis=1)).sort_values(ascending=False)
        _print_points(console, moved.loc[order.index[:rows]])
        if len(moved) > rows:
            console.print(f"... and {len(moved) - rows} more (--csv has all)", highlight=False)
    for letter, only in zip("AB", found.only, strict=True):
        if only:
            console.print(
                f"only {letter} has {len(only)} points, such as {only[0]}",
                highlight=False,
                soft_wrap=True,
                markup=False,
            )
    changed = verdicts[verdicts["moved"]]
    console.print(f"verdicts: {len(changed)} of {len(verdicts)} differ", highlight=False)
    if len(changed):
        table = Table(box=None, pad_edge=False)
        for name in ("claim", "expected", "A", "", "B", ""):
            table.add_column(name, overflow="fold")
        for row in changed.to_dict("records"):
            numbers = [with_ends(row[f"{s}_mean"], row[f"{s}_low"], row[f"{s}_high"]) for s in "ab"]
            table.add_row(row["id"], row["expected"], row["a"], numbers[0], row["b"], numbers[1])
        console.print(table)


def _show_lost(console: Console, found: Comparison) -> None:
    """Say which side has too few good runs of how many points, and how many runs failed their self-checks."""
    for letter, side in zip("AB", "ab", strict=True):
        mine = found.lost(side)
        if len(mine):
            first = mine.iloc[0]
            console.print(
                f"{letter} has no good run with a number for {len(mine)} of these, or one where others failed, and the other side has, "
                f"such as {first['metric']} of {first['figure']} {first['point']}",
                highlight=False,
                soft_wrap=True,
                markup=False,
            )
        # The same runs stand at every metric and group.
        failed = found.points.groupby(["figure", "point"])[f"{side}_failed"].max()
        if failed.sum():
            console.print(
                f"{letter}: {failed.sum()} runs of {(failed > 0).sum()} points failed their self-checks and are left out",
                highlight=False,
                soft_wrap=True,
            )


def _print_points(console: Console, shown: pd.DataFrame) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("figure", "point", "flows", "metric", "A", "B", "difference (95 %)"):
        table.add_column(name, overflow="fold")
    for row in shown.to_dict("records"):
        name = f"{row['metric']} ({row['unit']})" if row["unit"] != "1" else row["metric"]
        table.add_row(row["figure"], row["point"], row["cca"], name, with_half(row["a_mean"], row["a_half"]),
                      with_half(row["b_mean"], row["b_half"]), with_ends(row["difference"], row["low"], row["high"]))  # fmt: skip
    console.print(table)


def write_points(found: Comparison, csv: Path) -> None:
    """Write every point as CSV."""
    write_csv(found.points, csv)


def content_of(found: Comparison) -> dict[str, Any]:
    """Everything, for JSON; numbers that there are not are null."""
    return {
        "scale": found.scale,
        "moved": found.moved,
        "sides": dict(zip("ab", found.sides, strict=True)),
        "points": _records(found.points),
        "verdicts": _records(found.verdicts),
        "only_a": found.only[0],
        "only_b": found.only[1],
    }


def _records(table: pd.DataFrame) -> Sequence[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15))
    return found
