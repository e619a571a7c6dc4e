"""The look of all figures: colours, axes, grids of small multiples."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

# Colour-blind safe (Okabe, Ito 2008); one colour for one thing in every figure.
MEASURED, PUBLISHED, WARE = "#0072B2", "#000000", "#D55E00"
CCA_COLOURS = {
    "bbr1": "#0072B2",
    "bbr2": "#56B4E9",
    "bbr3": "#009E73",
    "cubic": "#D55E00",
    "reno": "#CC79A7",
    "dctcp": "#E69F00",
}
OWN = "#666666"  # an algorithm of one's own
COLUMNS = 3
# A legend over the axes, where it hides no data.
ABOVE: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "frameon": False, "borderaxespad": 0.1}


def set_style() -> None:
    """Set the look of all figures."""
    sns.set_theme(
        context="notebook", style="whitegrid", rc={"figure.dpi": 110, "grid.linewidth": 0.5, "axes.titlesize": 11}
    )


def bdp_axis(axes: Axes, values: list[float]) -> None:
    """A logarithmic axis of buffers with a tick at each."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(values)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))


def multiples(count: int) -> tuple[Figure, Any]:
    """A figure and its grid of ``count`` axes that share their scales; those left over are hidden."""
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(10.5, 3.1 * rows), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for axes in grid.flat[count:]:
        axes.set_visible(False)
    return figure, grid


def plain(value: Any) -> str:
    """A value as a label: numbers without needless zeros."""
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def line_colours(lines: list[Any]) -> dict[Any, Any]:
    """The CCAs' colours if every line is named by one, else a palette's."""
    if all(str(name) in CCA_COLOURS for name in lines):
        return {name: CCA_COLOURS[str(name)] for name in lines}
    return dict(zip(lines, sns.color_palette("colorblind", len(lines)), strict=True))


def rows_with(table: pd.DataFrame, wanted: dict[str | None, Any]) -> pd.DataFrame:
    """Rows that have the wanted values, in the columns that there are."""
    for column, value in wanted.items():
        if column and column in table:
            table = table[table[column] == value]
    return table
