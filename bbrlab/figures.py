"""The plots of the notebooks. Each function draws one figure and returns it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from bbrlab import collect
from bbrlab.compare import Panel

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
CEILING = 1448 / 1514  # payload over frame
COLUMNS = 3
# A legend over the axes, where it hides no data.
ABOVE: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "frameon": False, "borderaxespad": 0.1}


def style() -> None:
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


def shares(panel: Panel) -> Figure:
    """Small multiples, one per number of BBR flows: published points, measured means, the model, against the buffer."""
    counts = sorted(panel.points["bbr_flows"].unique())
    buffers = sorted(panel.points["buffer_bdp"].unique())
    figure, grid = multiples(len(counts))
    for axes, count in zip(grid.flat, counts, strict=False):
        mine = panel.points[panel.points["bbr_flows"] == count].sort_values("buffer_bdp")
        axes.axhline(CEILING, color="0.7", lw=0.8, ls=":", zorder=0)
        axes.plot(mine["buffer_bdp"], mine["ware"], color=WARE, ls="--", lw=1.5, label="Ware model")
        spread = [mine["published"] - mine["published_low"], mine["published_high"] - mine["published"]]
        axes.errorbar(mine["buffer_bdp"], mine["published"], yerr=np.array(spread), fmt="o", mfc="white", ms=7, color=PUBLISHED,
                      capsize=3, lw=1, label="published (mean of 3 trials, 2 SEM)")  # fmt: skip
        axes.errorbar(mine["buffer_bdp"], mine["measured"], yerr=mine["ci95"].fillna(0), fmt=".-", ms=8, color=MEASURED,
                      capsize=2, lw=1.2, label="measured here (mean, 95 % interval)")  # fmt: skip
        axes.set_title(f"{count} BBR flow{'s' if count > 1 else ''}")
        bdp_axis(axes, buffers)
        axes.set_ylim(0, 1.02)
    figure.supxlabel("bottleneck buffer (BDP)", fontsize=11)
    figure.supylabel("BBR flows' share of capacity", fontsize=11)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return figure


def residuals(panel: Panel) -> Figure:
    """Two maps over (flows, buffer): measured - published, and Ware model - measured, on one colour scale."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.5, 0.9 + 0.45 * panel.points["bbr_flows"].nunique()), layout="constrained"
    )
    points = panel.points.assign(model=panel.points["ware"] - panel.points["measured"])
    for axes, column, title in (
        (left, "residual", f"measured - published (RMSE {panel.rmse:.3f})"),
        (right, "model", f"Ware model - measured (RMSE {panel.ware_rmse:.3f})"),
    ):
        table = points.pivot(index="bbr_flows", columns="buffer_bdp", values=column)
        sns.heatmap(table, ax=axes, vmin=-0.2, vmax=0.2, cmap="RdBu_r", annot=True, fmt="+.3f", annot_kws={"size": 8},
                    cbar=axes is right, linewidths=0.5)  # fmt: skip
        axes.set(title=title, xlabel="buffer (BDP)", ylabel="BBR flows")
        axes.tick_params(axis="y", rotation=0)
    return figure


def against_published(panels: list[Panel]) -> Figure:
    """Measured over published, one dot per point; on the diagonal they agree."""
    figure, axes = plt.subplots(figsize=(7.4, 5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.6", lw=1)
    axes.fill_between([0, 1], [-0.05, 0.95], [0.05, 1.05], color="0.9", zorder=0, label="$\\pm$ .05")
    for panel, marker in zip(panels, "osD^v<>", strict=False):
        axes.scatter(panel.points["published"], panel.points["measured"], s=22, marker=marker, alpha=0.8,
                     label=f"{panel.title} (RMSE {panel.rmse:.3f})")  # fmt: skip
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1),
        xlabel="published share of capacity",
        ylabel="measured share of capacity",
        aspect="equal",
    )
    figure.legend(frameon=False, loc="outside right upper")
    return figure


def trace(samples: Path, rate_mbit: float, buffer_bytes: int, groups: list[str], bin_s: float = 2.0) -> Figure:
    """One run over time: goodput of each group, and the bottleneck queue.

    Args:
        samples: samples.parquet of the run.
        rate_mbit: bottleneck rate.
        buffer_bytes: bottleneck buffer.
        groups: the CCA of each flow group.
        bin_s: width of the bins over which goodput is averaged.
    """
    columns = ["time_s", "flow", "group", "bytes_acked", "queue_bytes"]
    data = pd.read_parquet(samples, columns=columns)
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(10.5, 4.6), sharex=True, layout="constrained", height_ratios=[3, 2]
    )
    for group, goodput in goodput_series(data, bin_s, "group").items():
        cca = groups[group]
        top.plot(*goodput, lw=0.9, color=CCA_COLOURS[cca], label=f"{cca} (group {group})")
    top.set(ylabel="goodput (Mbit/s)", ylim=(0, rate_mbit * 1.05))
    top.legend(ncols=len(groups), **ABOVE)
    queue = data.drop_duplicates("time_s")
    bottom.plot(queue["time_s"], queue["queue_bytes"] * 8e-3 / rate_mbit, lw=0.5, color="0.3")
    bottom.axhline(buffer_bytes * 8e-3 / rate_mbit, color=WARE, lw=0.8, ls="--")
    bottom.set(ylabel="queue (ms)", xlabel="virtual time (s)", ylim=(0, None))
    return figure


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
        table: collect.table() of a figure.
        x, y: columns; y is multiplied by ``scale``.
        line, panel: columns whose values become lines and axes.
        published: the same columns of published values, drawn as open circles in the line's colour.
        models: {name: the same columns of a model}, drawn dashed.
        group: the flow group whose rows are drawn.
        log_x: whether x is drawn to base 2, with a tick at each value.
        labels: of the axes.
        limits: of y.
    """
    mine = table[table["group"] == group]
    keys = [k for k in (panel, line, x) if k]
    points = collect.points(mine, keys, y)
    panels = sorted(points[panel].unique(), key=str) if panel else [None]
    lines = list(dict.fromkeys(points[line])) if line else [None]
    colours = _line_colours(lines)
    figure, grid = multiples(len(panels))
    for axes, at in zip(grid.flat, panels, strict=False):
        for name in lines:
            here = _only(points, {panel: at, line: name}).sort_values(x)
            label = "measured here" if name is None else plain(name)
            axes.errorbar(here[x], here["mean"] * scale, yerr=here["ci95"].fillna(0) * scale, fmt=".-", ms=7, lw=1.3, capsize=2,
                          color=colours[name], label=label)  # fmt: skip
            if published is not None:
                theirs = _only(published, {panel: at, line: name}).sort_values(x)
                axes.plot(theirs[x], theirs[y] * scale, "o", mfc="white", ms=7, color=colours[name], zorder=3)
            for style_, (model, values) in zip(("--", ":", "-."), (models or {}).items(), strict=False):
                theirs = _only(values, {panel: at, line: name}).sort_values(x)
                axes.plot(
                    theirs[x],
                    theirs[y] * scale,
                    style_,
                    lw=1.2,
                    color=colours[name],
                    label=model if name is None else f"{label}: {model}",
                )
        if at is not None:
            axes.set_title(f"{panel} = {plain(at)}" if isinstance(at, (int, float)) else str(at))
        if log_x:
            bdp_axis(axes, sorted(points[x].unique()))
        axes.set_ylim(*limits)
    highest = max(axes.dataLim.y1 for axes in grid.flat[: len(panels)])
    if limits[1] is None and np.isfinite(highest):  # room above: of the whole height, not of the data's span
        grid.flat[0].set_ylim(top=highest + 0.06 * (highest - grid.flat[0].get_ylim()[0]))
    figure.supxlabel(labels[0], fontsize=11)
    figure.supylabel(labels[1], fontsize=11)
    handles, names = grid.flat[0].get_legend_handles_labels()
    if published is not None:
        handles.append(Line2D([], [], marker="o", mfc="white", color="0.3", ls=""))
        names.append("published")
    title = line if any(isinstance(name, (int, float)) for name in lines) else None
    figure.legend(handles, names, title=title, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def plain(value: Any) -> str:
    """A value as a label: numbers without needless zeros."""
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _line_colours(lines: list[Any]) -> dict[Any, Any]:
    """The CCAs' colours if every line is named by one, else a palette's."""
    if all(str(name) in CCA_COLOURS for name in lines):
        return {name: CCA_COLOURS[str(name)] for name in lines}
    return dict(zip(lines, sns.color_palette("colorblind", len(lines)), strict=True))


def _only(table: pd.DataFrame, wanted: dict[str | None, Any]) -> pd.DataFrame:
    """Rows that have the wanted values, in the columns that there are."""
    for column, value in wanted.items():
        if column and column in table:
            table = table[table[column] == value]
    return table


def maps(tables: dict[str, pd.DataFrame], x: str, y: str, value: str, *, span: float, fmt: str = "+.0f", labels: tuple[str, str] = ("", "")) -> Figure:  # fmt: skip
    """Heat maps side by side on one colour scale around 0.

    Args:
        tables: {title: one row per cell}.
        x, y, value: columns.
        span: the value at which the colour is full.
        fmt: of the numbers in the cells.
        labels: of the axes.
    """
    rows = max(t[y].nunique() for t in tables.values())
    figure, grid = plt.subplots(1, len(tables), figsize=(10.5, 1.2 + 0.42 * rows), squeeze=False, layout="constrained")
    for axes, (title, cells) in zip(grid.flat, tables.items(), strict=True):
        matrix = cells.pivot(index=y, columns=x, values=value).sort_index(ascending=False)
        sns.heatmap(matrix, ax=axes, vmin=-span, vmax=span, cmap="RdBu_r", annot=True, fmt=fmt, annot_kws={"size": 8}, cbar=False, linewidths=0.5)  # fmt: skip
        axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
        axes.tick_params(axis="both", rotation=0)
    return figure


def distributions(samples: dict[str, pd.DataFrame], window_s: list[float], rate_mbit: float, rtt_ms: float) -> Figure:
    """Distribution functions of the queueing delay in units of the base RTT.

    Args:
        samples: {label: samples.parquet with time_s and queue_bytes}.
        window_s: the samples between these are counted.
        rate_mbit: bottleneck rate, by which backlog becomes delay.
        rtt_ms: base RTT.
    """
    figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
    for label, data in samples.items():
        inside = data[data["time_s"].between(window_s[0], window_s[1])].drop_duplicates("time_s")
        delay = np.sort(inside["queue_bytes"].to_numpy() * 8e-3 / rate_mbit / rtt_ms)
        axes.plot(delay, np.arange(1, len(delay) + 1) / len(delay), label=label, lw=1.4)
    axes.set(xlabel="queueing delay (base RTTs)", ylabel="fraction of samples", ylim=(0, 1), xlim=(0, None))
    axes.legend(frameon=True)
    return figure


def series(panels: dict[str, dict[str, tuple[Any, Any]]], *, xlabel: str = "virtual time (s)", xlim: tuple[float, float] | None = None) -> Figure:  # fmt: skip
    """Stacked time series that share their time axis.

    Args:
        panels: {y label: {legend: (times, values)}}.
        xlabel: of the common axis.
        xlim: of the common axis.
    """
    figure, grid = plt.subplots(len(panels), 1, figsize=(10.5, 1.9 * len(panels)), sharex=True, squeeze=False, layout="constrained")  # fmt: skip
    explained: list[str] = []
    for axes, (label, lines) in zip(grid.flat, panels.items(), strict=True):
        for name, (times, values) in lines.items():
            axes.plot(times, values, lw=1.0, label=name, color=CCA_COLOURS.get(name))
        axes.set_ylabel(label)
        if len(lines) > 1 and list(lines) != explained:
            explained = list(lines)
            axes.legend(ncols=len(lines), fontsize=8, **ABOVE)
    grid.flat[-1].set_xlabel(xlabel)
    if xlim:
        grid.flat[-1].set_xlim(*xlim)
    return figure


def goodput_series(samples: pd.DataFrame, bin_s: float, by: str = "flow") -> dict[int, tuple[Any, Any]]:
    """Goodput over time, in bins of ``bin_s``.

    Args:
        samples: time_s, flow, bytes_acked (and group, if that is asked for) of samples.parquet.
        bin_s: width of a bin.
        by: "flow", or "group" for the sum over each group's flows.

    Returns:
        {flow or group: (begins of the bins in s, goodput in Mbit/s)}.
    """
    data = samples[samples["flow"] >= 0].assign(bin=lambda d: (d["time_s"] / bin_s).astype(int))
    flows = list(dict.fromkeys([by, "flow"]))
    rates = data.groupby([*flows, "bin"])["bytes_acked"].last().groupby(flows).diff() * 8e-6 / bin_s
    found = {}
    for which, rows in rates.groupby(by):
        rate = rows.groupby("bin").sum(min_count=1).iloc[:-1]  # the last bin is hardly ever whole
        found[int(str(which))] = (rate.index.to_numpy() * bin_s, rate.to_numpy())
    return found


def jitter_series(samples: pd.DataFrame, bin_s: float) -> dict[int, tuple[Any, Any]]:
    """BBR's own estimate of the jitter over time: extra_acked over the smoothed goodput (Bless et al. 2025, Fig. 12).

    Args:
        samples: time_s, flow, bytes_acked, snd_mss and bbr_extra_acked of samples.parquet.
        bin_s: width of the bins over which both are averaged.

    Returns:
        {flow: (begins of the bins in s, ms)}; NaN where nothing was delivered.
    """
    data = samples[samples["flow"] >= 0].assign(
        bin=lambda d: (d["time_s"] / bin_s).astype(int), kbit=lambda d: d["bbr_extra_acked"] * d["snd_mss"] * 8e-3
    )
    extra = data.groupby(["flow", "bin"])["kbit"].mean()
    found = {}
    for flow, (begins, goodput) in goodput_series(samples, bin_s).items():
        kbit = extra[flow].reindex((begins / bin_s).round().astype(int)).to_numpy()
        found[flow] = (begins, kbit / np.where(goodput > 0, goodput, np.nan))
    return found


def tree(fitted: Any, features: list[str], classes: tuple[str, str]) -> Figure:
    """A decision tree (bbrlab.decision_tree)."""
    from sklearn.tree import plot_tree

    figure, axes = plt.subplots(figsize=(10.5, 4.5), layout="constrained")
    plot_tree(
        fitted, feature_names=features, class_names=list(classes), filled=True, impurity=False, fontsize=7, ax=axes
    )
    return figure


def verdict_bars(counts: pd.DataFrame, colours: dict[str, str]) -> Figure:
    """Claims per paper as stacked bars.

    Args:
        counts: judge.counts().
        colours: of each verdict.
    """
    papers = counts.drop(index="all").iloc[::-1]
    figure, axes = plt.subplots(figsize=(9, 0.6 + 0.42 * len(papers)), layout="constrained")
    left = np.zeros(len(papers))
    for verdict in counts.columns:
        axes.barh(papers.index, papers[verdict], left=left, color=colours[verdict], label=verdict, alpha=0.85)
        for i, value in enumerate(papers[verdict]):
            if value:
                axes.text(left[i] + value / 2, i, str(value), ha="center", va="center", color="white", fontsize=8)
        left += papers[verdict].to_numpy()
    axes.set_xlabel("claims")
    axes.grid(axis="y", visible=False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize=9)
    return figure
