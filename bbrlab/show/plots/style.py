"""The look of all figures: axes, grids of small multiples, models and published values (colours: results/algorithm_table.py)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from bbrlab.base.arrays import Array
from bbrlab.measure.metrics import METRICS
from bbrlab.results.algorithm_table import COLOURS, OTHER_COLOURS

# A colour is an algorithm's or nothing's: what stands beside a measurement has another mark or dashes.
PUBLISHED = "#000000"  # hollow circles
MODEL_STYLES = {
    "Ware": "--",
    "fluid": ":",
    "burst": "-.",
}  # as in the site's charts (site.js); a model has its measurement's colour
MARKERS = ".^Dsv"  # the first one, and those for more lines than a palette has colours
COLUMNS = 3
LETTER = 0.085  # inches of a letter at an axis
SPACE = 1  # letters between two numbers at an axis
# A legend over the axes, where it hides no data.
ABOVE: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "frameon": False, "borderaxespad": 0.1}


def set_style(*, math: bool = True) -> None:
    """Set the look of all figures.

    Args:
        math: whether what stands between two $ is a formula, as logarithmic axes have them; in names that people give it is none.
    """
    sns.set_theme(
        context="notebook", style="whitegrid", rc={"figure.dpi": 110, "grid.linewidth": 0.5, "axes.titlesize": 11}
    )
    plt.rcParams["text.parse_math"] = math


def log2_axis(axes: Axes, values: list[float]) -> None:
    """A logarithmic axis with a tick and its number at each that has room for one."""
    axes.set_xscale("log", base=2)
    inches = float(axes.get_window_extent().width) / axes.figure.dpi
    axes.set_xticks(sorted(with_room(values, LETTER / inches)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: short_number(v)))


def with_room(values: list[float], letter: float) -> set[float]:
    """Those of the ticks of a logarithmic axis whose numbers do not run into each other: the first and the last, then powers of two and
    ten, then others, each that is far enough from all that are labelled.

    Args:
        values: from the least to the largest of these the axis reaches.
        letter: the width of a letter, as a part of the axis.
    """
    first, last = min(values), max(values)

    def apart(one: float, other: float) -> bool:
        letters = (len(short_number(one)) + len(short_number(other))) / 2 + SPACE
        return bool(abs(np.log(one / other)) >= letters * letter * np.log(last / first))

    labelled = [first, last]
    for value in sorted(values, key=lambda v: not (np.log2(v).is_integer() or np.log10(v).is_integer())):
        if all(apart(value, other) for other in labelled):
            labelled.append(value)
    return set(labelled)


def short_number(value: float) -> str:
    """A number that has little room: of a million and more in M, of ten thousand and more in k, to three digits."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= unit and abs(value) >= 1e4:
            return f"{value / unit:.3g}{name}"
    return plain(value)


def grey_outside(axes: Axes, window_s: Sequence[float], begin_s: float, end_s: float) -> None:
    """Grey behind what lies outside of the metrics' window on a time axis from one instant to another."""
    for begin, end in ((begin_s, window_s[0]), (window_s[1], end_s)):
        if end > begin:
            axes.axvspan(begin, end, color="0.93", zorder=0, lw=0)


def multiples(count: int) -> tuple[Figure, Any]:
    """A figure and its grid of ``count`` axes that share their scales; those left over are hidden."""
    columns = 2 if count == COLUMNS + 1 else min(COLUMNS, count)  # not one alone below three
    rows = -(-count // columns)
    height = 3.1 if count > 1 else 3.9  # inches: of one that is wide, too
    figure, grid = plt.subplots(
        rows, columns, figsize=(10.5, height * rows), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for axes in grid.flat[count:]:
        axes.set_visible(False)
    for axes in grid.flat[max(count - columns, 0) : count]:  # the lowest of each column
        axes.tick_params(labelbottom=True)
    return figure, grid


def bounds_of(metric: str) -> tuple[float, float]:
    """The least and the largest value that a metric can have; of what is no metric there are none."""
    return (0.0, METRICS[metric].most) if metric in METRICS else (-math.inf, math.inf)


def interval_bars(mean: pd.Series, half: pd.Series, least: float, most: float) -> Array:
    """How far the intervals around means reach down and up, cut off at what can be; shape (2, means)."""
    return np.array([np.minimum(half, np.maximum(mean - least, 0)), np.minimum(half, np.maximum(most - mean, 0))])


def is_number(value: Any) -> bool:
    """Whether a value is a number, of Python or of NumPy."""
    return isinstance(value, Real)


def plain(value: Any) -> str:
    """A value as a label: numbers without needless zeros."""
    return f"{value:g}" if is_number(value) else str(value)


def in_order(names: Iterable[Any]) -> list[Any]:
    """Names once each, numbers in them by their size: "100 Mbit/s" before "1000 Mbit/s"."""

    def key(name: Any) -> list[tuple[bool, float, str]]:
        if is_number(name):
            return [(False, float(name), "")]
        parts = (part for part in re.split(r"(\d+(?:\.\d+)?)", str(name)) if part)
        return [(False, float(part), "") if part[0].isdigit() else (True, 0.0, part) for part in parts]

    return sorted(dict.fromkeys(names), key=key)


def line_looks(lines: list[Any]) -> dict[Any, dict[str, Any]]:
    """{line: its colour and marker}: the CCAs' colours of lines that are named by one, else colours of no CCA; no two lines look the same."""
    others = [name for name in lines if str(name) not in COLOURS]
    looks = {name: {"color": COLOURS[str(name)], "marker": MARKERS[0]} for name in lines if str(name) in COLOURS}
    return looks | {
        name: {
            "color": OTHER_COLOURS[i % len(OTHER_COLOURS)],
            "marker": MARKERS[i // len(OTHER_COLOURS) % len(MARKERS)],
        }
        for i, name in enumerate(others)
    }


def rows_with(table: pd.DataFrame, wanted: dict[str | None, Any]) -> pd.DataFrame:
    """Rows that have the wanted values, in the columns that there are."""
    for column, value in wanted.items():
        if column and column in table:
            table = table[table[column] == value]
    return table
