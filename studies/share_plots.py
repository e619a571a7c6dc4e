"""Shares of N BBR flows: published, measured and models beside each other."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.figure import Figure

from bbrlab.scenario.frames import PAYLOAD_PER_FRAME
from bbrlab.show.panel import Panel
from bbrlab.show.plots.style import MEASURED, PUBLISHED, WARE, log2_axis, multiples


def shares(panel: Panel) -> Figure:
    """Small multiples, one per number of BBR flows: published points, measured means, the model, against the buffer."""
    counts = sorted(panel.points["bbr_flows"].unique())
    buffers = sorted(panel.points["buffer_bdp"].unique())
    figure, grid = multiples(len(counts))
    for axes, count in zip(grid.flat, counts, strict=False):
        points = panel.points[panel.points["bbr_flows"] == count].sort_values("buffer_bdp")
        axes.axhline(PAYLOAD_PER_FRAME, color="0.7", lw=0.8, ls=":", zorder=0)
        axes.plot(points["buffer_bdp"], points["ware"], color=WARE, ls="--", lw=1.5, label="Ware model")
        spread = [points["published"] - points["published_low"], points["published_high"] - points["published"]]
        axes.errorbar(points["buffer_bdp"], points["published"], yerr=np.array(spread), fmt="o", mfc="white", ms=7, color=PUBLISHED,
                      capsize=3, lw=1, label=f"published (mean of {panel.points['trials'].max():.0f} trials, 2 SEM)")  # fmt: skip
        axes.errorbar(points["buffer_bdp"], points["measured"], yerr=points["ci95"], fmt=".-", ms=8, color=MEASURED,
                      capsize=2, lw=1.2, label="measured here (mean, 95 % interval)")  # fmt: skip
        axes.set_title(f"{count} BBR flow{'s' if count > 1 else ''}")
        log2_axis(axes, buffers)
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
    axes.fill_between([0, 1], [-0.05, 0.95], [0.05, 1.05], color="0.9", zorder=0, label="$\\pm$ 0.05")
    for panel, marker in zip(panels, itertools.cycle("osD^v<>XP"), strict=False):
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


FLUID_SHORT, FLUID_OWN, BURST = "#E69F00", "#009E73", "#CC79A7"


def three_models(panel: Panel) -> Figure:
    """Small multiples, one per number of BBR flows: published, measured, Ware, the fluid model at two lengths, and the burst model
    (a band of one standard deviation over its seeds).

    ``panel.points`` has the columns of model_panels.with_fluid() and with_burst().
    """
    counts = sorted(panel.points["bbr_flows"].unique())
    figure, grid = multiples(len(counts))
    for axes, count in zip(grid.flat, counts, strict=False):
        points = panel.points[panel.points["bbr_flows"] == count].sort_values("buffer_bdp")
        x = points["buffer_bdp"]
        axes.axhline(PAYLOAD_PER_FRAME, color="0.7", lw=0.8, ls=":", zorder=0)
        axes.plot(x, points["ware"], color=WARE, ls="--", lw=1.5, label="Ware, steady state")
        axes.plot(x, points["fluid_9s"], color=FLUID_SHORT, ls="-.", marker="^", ms=4, lw=1.2, label="fluid, 9 s")
        axes.plot(
            x,
            points["fluid_own"],
            color=FLUID_OWN,
            ls="-",
            marker="v",
            ms=4,
            lw=1.2,
            label="fluid, as long as the runs",
        )
        axes.plot(x, points["burst"], color=BURST, lw=1.6, label="burst")
        axes.fill_between(
            x, points["burst"] - points["burst_sd"], points["burst"] + points["burst_sd"], color=BURST, alpha=0.3, lw=0
        )
        axes.plot(x, points["published"], "o", mfc="white", ms=7, color=PUBLISHED, label="published")
        axes.plot(x, points["measured"], ".", ms=8, color=MEASURED, label="measured here")
        axes.set_title(f"{count} BBR flow{'s' if count > 1 else ''}")
        log2_axis(axes, sorted(panel.points["buffer_bdp"].unique()))
        axes.set_ylim(0, 1.02)
    figure.supxlabel("bottleneck buffer (BDP of the path)", fontsize=11)
    figure.supylabel("BBR flows' share of capacity", fontsize=11)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=6, frameon=False)
    return figure
