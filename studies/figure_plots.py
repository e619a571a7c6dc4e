"""Means over the seeds as curves and as maps; a decision tree; verdicts as bars."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bbrlab.claims.judge import ALL
from bbrlab.measure.schema import label_of
from bbrlab.results.algorithms import label_of_cca
from bbrlab.results.tables import point_means
from bbrlab.show.plots.style import (
    in_order,
    interval_bars,
    is_number,
    line_looks,
    log2_axis,
    multiples,
    plain,
    rows_with,
)
from bbrlab.show.verdicts import LOOKS

MODEL_STYLES = ("--", ":", "-.")


def curves(
    table: pd.DataFrame,
    x: str,
    y: str,
    line: str | None = None,
    panel: str | None = None,
    *,
    published: pd.DataFrame | None = None,
    models: dict[str, pd.DataFrame] | None = None,
    scale: float = 1.0,
    group: int = 0,
    log_x: bool = True,
    labels: tuple[str, str] = ("", ""),
    limits: tuple[float | None, float | None] = (0, None),
) -> Figure:
    """Means over the seeds with 95 % intervals, one line per value of ``line``, one axes per value of ``panel``.

    Args:
        table: tables.figure_table() of a figure.
        x, y: columns; y is multiplied by ``scale``.
        line, panel: columns whose values become lines and axes.
        published: the same columns of published values, drawn as open circles in the line's colour.
        models: {name: the same columns of a model}, drawn dashed in the line's colour.
        group: the flow group whose rows are drawn.
        log_x: whether x is drawn to base 2, with a tick at each value that has room for its number.
        labels: of the axes; an empty one of y is the metric's (bbrlab/measure/schema.py), if it is not scaled.
    """
    of_group = table[table["group"] == group]
    keys = [k for k in (panel, line, x) if k]
    points = point_means(of_group, keys, y)
    panels = in_order(points[panel]) if panel else [None]
    lines = in_order(points[line]) if line else [None]
    looks = line_looks(lines)
    figure, grid = multiples(len(panels))
    for axes, at in zip(grid.flat, panels, strict=False):
        for name in lines:
            here = rows_with(points, {panel: at, line: name}).sort_values(x)
            label = "measured here" if name is None else label_of_cca(plain(name))
            axes.errorbar(here[x], here["mean"] * scale, yerr=interval_bars(y, here) * scale, ls="-", ms=7 if looks[name]["marker"] == "." else 4, lw=1.3,
                          capsize=2, label=label, **looks[name])  # fmt: skip
            if published is not None:
                theirs = rows_with(published, {panel: at, line: name}).sort_values(x)
                axes.plot(theirs[x], theirs[y] * scale, "o", mfc="white", ms=7, color=looks[name]["color"], zorder=3)
            for style_, values in zip(MODEL_STYLES, (models or {}).values(), strict=False):
                theirs = rows_with(values, {panel: at, line: name}).sort_values(x)
                axes.plot(theirs[x], theirs[y] * scale, style_, lw=1.2, color=looks[name]["color"])
        if at is not None:
            axes.set_title(f"{panel} = {plain(at)}" if is_number(at) else label_of_cca(str(at)))
        if log_x:
            log2_axis(axes, sorted(points[x].unique()))
        axes.set_ylim(*limits)
    highest = max(axes.dataLim.y1 for axes in grid.flat[: len(panels)])
    if limits[1] is None and np.isfinite(highest):  # room above: of the whole height, not of the data's span
        grid.flat[0].set_ylim(top=highest + 0.06 * (highest - grid.flat[0].get_ylim()[0]))
    figure.supxlabel(labels[0], fontsize=11)
    figure.supylabel(labels[1] or (label_of(y) if scale == 1 else ""), fontsize=11)
    handles, names = grid.flat[0].get_legend_handles_labels()
    for style_, model in zip(MODEL_STYLES, models or {}, strict=False):
        handles.append(Line2D([], [], ls=style_, color=looks[None]["color"] if line is None else "0.3"))
        names.append(model)
    if published is not None:
        handles.append(Line2D([], [], marker="o", mfc="white", color="0.3", ls=""))
        names.append("published")
    title = line if any(is_number(name) for name in lines) else None
    figure.legend(handles, names, title=title, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def heat_maps(tables: dict[str, pd.DataFrame], x: str, y: str, value: str, *, span: float, fmt: str = "+.0f", labels: tuple[str, str] = ("", "")) -> Figure:  # fmt: skip
    """Heat maps side by side on one colour scale around 0.

    Args:
        tables: {title: one row per cell}.
        x, y, value: columns.
        span: the value at which the colour is full.
        fmt: of the numbers in the cells.
    """
    rows = max(t[y].nunique() for t in tables.values())
    figure, grid = plt.subplots(1, len(tables), figsize=(10.5, 1.2 + 0.42 * rows), squeeze=False, layout="constrained")
    for axes, (title, cells) in zip(grid.flat, tables.items(), strict=True):
        matrix = cells.pivot(index=y, columns=x, values=value).sort_index(ascending=False)
        longest = max(len(format(number, fmt)) for number in cells[value])
        cell_pt = 0.75 * figure.get_figwidth() * 72 / len(tables) / len(matrix.columns)
        size = min(8.0, cell_pt / (0.7 * longest))  # so that numbers of neighbours do not touch
        sns.heatmap(matrix, ax=axes, vmin=-span, vmax=span, cmap="RdBu_r", annot=True, fmt=fmt, annot_kws={"size": size}, cbar=False, linewidths=0.5)  # fmt: skip
        axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
        axes.tick_params(axis="both", rotation=0)
    return figure


def tree_plot(fitted: Any, features: list[str], classes: tuple[str, str]) -> Figure:
    """A decision tree (bbrlab.claims.winner_tree)."""
    from sklearn.tree import plot_tree

    figure, axes = plt.subplots(figsize=(10.5, 4.5), layout="constrained")
    plot_tree(
        fitted, feature_names=features, class_names=list(classes), filled=True, impurity=False, fontsize=7, ax=axes
    )
    return figure


def verdict_bars(counts: pd.DataFrame) -> Figure:
    """Statements per paper as stacked bars."""
    papers = counts.drop(index=ALL).iloc[::-1]
    figure, axes = plt.subplots(figsize=(9, 0.6 + 0.42 * len(papers)), layout="constrained")
    left = np.zeros(len(papers))
    for verdict in [v for v in counts.columns if v in LOOKS]:
        look = LOOKS[verdict]
        axes.barh(
            papers.index,
            papers[verdict],
            left=left,
            color=look.colour,
            edgecolor="0.4",
            linewidth=0.5,
            label=f"{look.mark} {verdict}",
        )
        for i, value in enumerate(papers[verdict]):
            if value:
                axes.text(left[i] + value / 2, i, str(value), ha="center", va="center", color=look.ink, fontsize=8)
        left += papers[verdict].to_numpy()
    axes.set_xlabel("statements")
    axes.grid(axis="y", visible=False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9)
    return figure
