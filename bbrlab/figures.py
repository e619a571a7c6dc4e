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
from matplotlib.ticker import FuncFormatter, NullLocator

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
    figure, axes = plt.subplots(figsize=(5.2, 5), layout="constrained")
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
    axes.legend(frameon=True, loc="upper left")
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
    data["bin"] = (data["time_s"] / bin_s).astype(int)
    last = data[data["flow"] >= 0].groupby(["group", "flow", "bin"])["bytes_acked"].last()
    rates = last.groupby(["group", "flow"]).diff().groupby(["group", "bin"]).sum() * 8e-6 / bin_s
    for group, cca in enumerate(groups):
        series = rates[group]
        top.plot(series.index * bin_s, series, lw=0.9, color=CCA_COLOURS[cca], label=f"{cca} (group {group})")
    top.set(ylabel="goodput (Mbit/s)", ylim=(0, rate_mbit * 1.05))
    top.legend(loc="upper right", ncols=len(groups))
    queue = data.drop_duplicates("time_s")
    bottom.plot(queue["time_s"], queue["queue_bytes"] * 8e-3 / rate_mbit, lw=0.5, color="0.3")
    bottom.axhline(buffer_bytes * 8e-3 / rate_mbit, color=WARE, lw=0.8, ls="--")
    bottom.set(ylabel="queue (ms)", xlabel="virtual time (s)", ylim=(0, None))
    return figure
