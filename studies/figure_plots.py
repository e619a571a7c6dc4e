"""Means over the seeds as curves and as maps; a decision tree; verdicts as bars."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from bbrlab.claims.judge import ALL
from bbrlab.measure.metrics import label_of
from bbrlab.results.algorithm_table import QUIET, colour_of_cca, label_of_cca, tinted
from bbrlab.results.tables import point_means
from bbrlab.show.plots.style import (
    MODEL_STYLES,
    bounds_of,
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
from bbrlab_apps.site.case_words import words_of_case

PALE = LinearSegmentedColormap.from_list("pale", ["#ffffff", "#595959"])  # of sizes, whatever they are of


def curves(
    table: pd.DataFrame,
    x: str,
    y: str,
    line: str | None = None,
    panel: str | None = None,
    *,
    published: pd.DataFrame | None = None,
    models: dict[str, pd.DataFrame] | None = None,
    log_x: bool = True,
    labels: tuple[str, str] = ("", ""),
    limits: tuple[float | None, float | None] = (0, None),
    of_whole: bool | None = None,
) -> Figure:
    """Means of the first flow group over the seeds with 95 % intervals, one line per value of ``line``, one axes per value of ``panel``.

    A CCA's line has its colour, and a single line that of the group's CCA if it has one; open circles are published, dashes a model.

    Args:
        table: tables.figure_table() of a figure.
        x, y: columns.
        line, panel: columns whose values become lines and axes.
        published: the same columns of published values, drawn as open circles in the line's colour.
        models: {name of style.MODEL_STYLES: the same columns of a model}, drawn in the line's colour.
        log_x: whether x is drawn to base 2, with a tick at each value that has room for its number.
        limits: of y.
        of_whole: whether y is a part of a whole, beyond which no interval reaches; default: what the metric is (bounds_of()).
        labels: of the axes; an empty one of y is the metric's (bbrlab/measure/metrics.py).
    """
    of_group = table[table["group"] == 0]
    keys = [k for k in (panel, line, x) if k]
    points = point_means(of_group, keys, y)
    panels = in_order(points[panel]) if panel else [None]
    lines = in_order(points[line]) if line else [None]
    ccas = set(of_group["cca"]) if "cca" in table else set()
    looks = line_looks(list(ccas) if lines == [None] and len(ccas) == 1 else lines)
    if lines == [None]:
        looks = {None: next(iter(looks.values()))}
    bounds = bounds_of(y) if of_whole is None else (0.0, 1.0) if of_whole else (-math.inf, math.inf)
    figures = set(table["figure"]) if "figure" in table else set()
    case_of = next(iter(figures)) if len(figures) == 1 else ""
    figure, grid = multiples(len(panels))
    for axes, at in zip(grid.flat, panels, strict=False):
        for name in lines:
            here = rows_with(points, {panel: at, line: name}).sort_values(x)
            label = "measured here" if name is None else words_of_case(plain(name), case_of)
            axes.errorbar(here[x], here["mean"], yerr=interval_bars(here["mean"], here["ci95"], *bounds), ls="-", ms=7 if looks[name]["marker"] == "." else 4, lw=1.3,
                          capsize=2, label=label, **looks[name])  # fmt: skip
            if published is not None:
                theirs = rows_with(published, {panel: at, line: name}).sort_values(x)
                axes.plot(theirs[x], theirs[y], "o", mfc="white", ms=7, color=looks[name]["color"], zorder=3)
            for model, values in (models or {}).items():
                theirs = rows_with(values, {panel: at, line: name}).sort_values(x)
                axes.plot(theirs[x], theirs[y], MODEL_STYLES[model], lw=1.2, color=looks[name]["color"])
        if at is not None:
            axes.set_title(f"{panel} = {plain(at)}" if is_number(at) else words_of_case(str(at), case_of))
        if log_x:
            log2_axis(axes, sorted(points[x].unique()))
        elif is_number(points[x].iloc[0]) and (points[x] % 1 == 0).all():
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylim(*limits)
    highest = max(axes.dataLim.y1 for axes in grid.flat[: len(panels)])
    if limits[1] is None and bounds[1] == 1 and highest > 0.5:
        grid.flat[0].set_ylim(top=1.02)
    elif limits[1] is None and np.isfinite(highest):  # room above: of the whole height, not of the data's span
        grid.flat[0].set_ylim(top=highest + 0.06 * (highest - grid.flat[0].get_ylim()[0]))
    figure.supxlabel(labels[0], fontsize=11)
    figure.supylabel(labels[1] or label_of(y), fontsize=11)
    handles, names = grid.flat[0].get_legend_handles_labels()
    ink = looks[None]["color"] if line is None else QUIET
    for model in models or {}:
        handles.append(Line2D([], [], ls=MODEL_STYLES[model], color=ink))
        names.append(f"{model} model")
    if published is not None:
        handles.append(Line2D([], [], marker="o", mfc="white", color=ink, ls=""))
        names.append("published")
    title = line if any(is_number(name) for name in lines) else None
    figure.legend(handles, names, title=title, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def heat_maps(
    tables: dict[str, pd.DataFrame], x: str, y: str, value: str, *, span: float, sides: tuple[str, str] | None = None, fmt: str = "+.0f", labels: tuple[str, str] = ("", "")
) -> Figure:  # fmt: skip
    """Heat maps side by side on one scale: the darker, the farther from 0.

    Args:
        tables: {title: one row per cell}.
        x, y, value: columns.
        span: the value at which the colour is full.
        sides: the CCAs on whose side a value below 0 and one above it are, in their colours; default: grey.
        fmt: of the numbers in the cells.
    """
    digits = int(fmt.rstrip("f").rpartition(".")[2])
    rows = max(t[y].nunique() for t in tables.values())
    figure, grid = plt.subplots(1, len(tables), figsize=(10.5, 1.2 + 0.42 * rows), squeeze=False, layout="constrained")
    for axes, (title, cells) in zip(grid.flat, tables.items(), strict=True):
        matrix = cells.pivot(index=y, columns=x, values=value).sort_index(ascending=False)
        longest = max(len(format(number, fmt)) for number in cells[value])
        cell_pt = 0.75 * figure.get_figwidth() * 72 / len(tables) / len(matrix.columns)
        size = min(8.0, cell_pt / (0.7 * longest))  # so that numbers of neighbours do not touch
        shown, low, cmap = (matrix, -span, between(*sides)) if sides else (matrix.abs(), 0, PALE)
        sns.heatmap(shown, ax=axes, vmin=low, vmax=span, cmap=cmap, annot=matrix.round(digits) + 0.0, fmt=fmt, annot_kws={"size": size}, cbar=False, linewidths=0.5)  # fmt: skip
        axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
        axes.tick_params(axis="both", rotation=0)
    if sides:
        sides_key(figure, sides)
    return figure


def between(below: str, above: str) -> LinearSegmentedColormap:
    """Colours from one CCA's by way of white, where they are even, to another's."""
    return LinearSegmentedColormap.from_list("between", [colour_of_cca(below), "#ffffff", colour_of_cca(above)])


def sides_key(figure: Figure, ccas: Iterable[str], words: str = "{} does better") -> None:
    """A key of what the colours of a map say."""
    patches = [Patch(color=colour_of_cca(cca), label=words.format(label_of_cca(cca))) for cca in ccas]
    figure.legend(handles=patches, loc="outside upper center", ncols=6, frameon=False, fontsize=9)


def tree_plot(fitted: Any, features: list[str], classes: tuple[str, str]) -> Figure:
    """A decision tree (bbrlab.claims.winner_tree), each node in the colour of the CCA that wins there."""
    from sklearn.tree import plot_tree

    figure, axes = plt.subplots(figsize=(10.5, 4.5), layout="constrained")
    plot_tree(
        fitted,
        feature_names=features,
        class_names=[label_of_cca(cca) for cca in classes],
        impurity=False,
        fontsize=7,
        ax=axes,
    )
    for node in axes.texts:
        won = [cca for cca in classes if node.get_text().endswith(f"class = {label_of_cca(cca)}")]
        if won and (box := node.get_bbox_patch()):
            box.set_facecolor(tinted(colour_of_cca(won[0]), 0.45))
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
