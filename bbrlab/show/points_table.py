"""The points of a figure on the terminal: what a study that no claim reads came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pandas as pd
from rich.table import Table

from bbrlab.base.console import Console
from bbrlab.measure import metrics
from bbrlab.results.tables import CONDITIONS, IDENTITY, point_means

# (column of figure_table(), head, digits behind the point); what is of the run and not of a group stands once per point.
NARROW = {"share of capacity": "share", "utilisation": "used", "loss in the queue": "queue loss"}
ANY_WIDTH = 1000  # of a console, to see how wide a table would be
SHOWN = (
    ("share_of_capacity", "share of capacity", 3),
    ("completion_s", "completion (s)", 2),
    ("utilisation", "utilisation", 3),
    ("queue_ms_mean", "queue (ms)", 1),
    ("loss", "loss", 4),
)


def swept_columns(table: pd.DataFrame) -> list[str]:
    """What tells the points of a figure apart: the case, and the swept fields of its scenario."""
    not_swept = {"figure", "direction", *IDENTITY, *CONDITIONS, *metrics.METRICS}
    return [column for column in table.columns if column not in not_swept]


RANDOM_LOSS, SWEPT_LOSS = "random_loss", "network.loss"


def shown_columns(table: pd.DataFrame) -> list[str]:
    """swept_columns(), and the random loss where there is some and no swept field says it."""
    swept = swept_columns(table)
    return [*swept, *([RANDOM_LOSS] if _has_random_loss(table) and SWEPT_LOSS not in swept else [])]


def shown_metrics(
    table: pd.DataFrame, metrics: Sequence[tuple[str, str, int]] = SHOWN
) -> Sequence[tuple[str, str, int]]:
    """Those metrics that any run has. Beside random loss, of which the queue knows nothing, ``loss`` says whose it is."""
    heads = {"loss": "loss in the queue"} if _has_random_loss(table) else {}
    return [(name, heads.get(head, head), digits) for name, head, digits in metrics if table[name].notna().any()]


def _has_random_loss(table: pd.DataFrame) -> bool:
    return bool((table[RANDOM_LOSS] > 0).any())


@dataclass(frozen=True)
class Beside:
    """What stands beside the points of a figure."""

    metric: str  # column that claims read
    # {(point, group; of a run's metric 0): what is published, and what the claim on it came to}
    cells: Mapping[tuple[str, int], tuple[str, str]]


def show_points(table: pd.DataFrame, console: Console, beside: Beside | None = None) -> None:
    """Print each point and flow group with its main metrics: means over the seeds, with the half-widths of their 95 % intervals.

    On a console that is too narrow, intervals stand closer; then columns do, and the intervals of what is of a run and not of a group are
    left out.

    Args:
        table: figure_table(). A metric that no run has is left out; runs that failed their checks are in no mean and counted.
        beside: published values and verdicts, as further columns behind their metric.
    """
    for pad, narrow in ((" ± ", False), ("±", False), ("±", True)):
        made = _table(table, pad, beside, narrow=narrow)
        if console.measure(made, options=console.options.update(width=ANY_WIDTH)).maximum <= console.width:
            break
    console.print(made)


def _table(table: pd.DataFrame, pad: str, beside: Beside | None, *, narrow: bool) -> Table:
    """The table, with ``pad`` before an interval; ``narrow``: with columns close together, no random loss, and no interval of what is of a run."""
    swept = swept_columns(table) if narrow else shown_columns(table)
    keys = ["point", "group"]
    shown = shown_metrics(table, _shown(beside))
    means = {column: point_means(table, keys, column).set_index(keys) for column, _, _ in shown}
    out = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0) if narrow else (0, 1))
    heads = [
        [head, *(("expected", "claim") if beside and column == beside.metric else ())] for column, head, _ in shown
    ]
    for name in (*swept, "flows", *chain.from_iterable(heads), "runs"):
        head = NARROW.get(name, name) if narrow else name
        out.add_column(head.removeprefix("network."), justify="left" if name in swept else "right", overflow="fold")
    for _, rows in table.groupby(keys, sort=False):
        first = rows.iloc[0]
        place = (str(first["point"]), int(first["group"]))
        cells = ["" if pd.isna(first[name]) else f"{first[name]}" for name in swept]
        again = first["group"] > 0
        numbers: list[str] = []
        for column, _, digits in shown:
            text = interval_text(means[column], place, digits, "" if narrow and column in metrics.RUN else pad)
            numbers.append("" if again and column in metrics.RUN else text)
            if beside and column == beside.metric:
                numbers += beside.cells.get(place, ("", ""))
        failed = int((~rows["ok"]).sum())
        runs = f"{len(rows) - failed}" + (f", {failed} failed" if failed else "")
        out.add_row(*cells, f"{first['count']} {first['cca']}", *numbers, runs)
    return out


def _shown(beside: Beside | None) -> Sequence[tuple[str, str, int]]:
    """The metrics: those of every figure, before them that of claims if it is another."""
    if beside is None or beside.metric in {column for column, _, _ in SHOWN}:
        return SHOWN
    return ((beside.metric, beside.metric, 3), *SHOWN)


def interval_text(means: pd.DataFrame, place: tuple[str, int], digits: int, pad: str = " ± ") -> str:
    """0.451 ± 0.012; without the interval where one seed, or equal numbers, give none, and - where no run has the metric.

    Args:
        means: point_means(), by point and group.
        place: point and group.
        pad: between both; empty: without the interval.
    """
    mean, half = (float(means[column].loc[place]) for column in ("mean", "ci95"))
    if np.isnan(mean):
        return "-"
    return f"{mean:.{digits}f}" + ("" if np.isnan(half) or not pad else f"{pad}{half:.{digits}f}")
