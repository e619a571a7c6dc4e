"""Shares of N BBR flows: published, measured and models beside each other."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.figure import Figure

from bbrlab.base import paths
from bbrlab.results.algorithm_table import QUIET, colour_of_cca, label_of_cca
from bbrlab.results.shipped import ShownResults
from bbrlab.scenario.frames import PAYLOAD_PER_FRAME
from bbrlab.show.panel import Panel
from bbrlab.show.plots.style import MODEL_STYLES, PUBLISHED, interval_bars, log2_axis, multiples, set_style
from studies.figure_plots import PALE
from studies.model_panels import panels_at


def shares(panel: Panel) -> Figure:
    """Small multiples, one per number of BBR flows: published points, measured means, the model, against the buffer."""
    colour = colour_of_cca(panel.bbr)
    counts = sorted(panel.points["bbr_flows"].unique())
    buffers = sorted(panel.points["buffer_bdp"].unique())
    figure, grid = multiples(len(counts))
    for axes, count in zip(grid.flat, counts, strict=False):
        points = panel.points[panel.points["bbr_flows"] == count].sort_values("buffer_bdp")
        axes.plot(
            points["buffer_bdp"], points["ware"], color=QUIET, ls=MODEL_STYLES["Ware"], lw=1.3, label="Ware model"
        )
        spread = [points["published"] - points["published_low"], points["published_high"] - points["published"]]
        axes.errorbar(points["buffer_bdp"], points["published"], yerr=np.array(spread), fmt="o", mfc="white", ms=7, color=PUBLISHED,
                      capsize=3, lw=1, label=f"published (mean of {panel.points['trials'].max():.0f} trials, 2 SEM)")  # fmt: skip
        axes.errorbar(points["buffer_bdp"], points["measured"], yerr=interval_bars(points["measured"], points["ci95"], 0, 1), fmt=".-", ms=8, color=colour,
                      capsize=2, lw=1.2, label="measured here (mean, 95 % interval)")  # fmt: skip
        axes.axhline(PAYLOAD_PER_FRAME, color="0.7", lw=0.8, zorder=0, label="full link (payload over frame)")
        axes.set_title(f"{count} BBR flow{'s' if count > 1 else ''}")
        log2_axis(axes, buffers)
        axes.set_ylim(0, 1.02)
    figure.supxlabel("bottleneck buffer (BDP)", fontsize=11)
    figure.supylabel("BBR flows' share of capacity", fontsize=11)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    return figure


def residuals(panel: Panel) -> Figure:
    """Two maps over (flows, buffer): measured - published, and Ware model - measured; the darker, the farther apart."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.5, 0.9 + 0.45 * panel.points["bbr_flows"].nunique()), layout="constrained"
    )
    points = panel.points.assign(model=panel.points["ware"] - panel.points["measured"])
    for axes, column, title in (
        (left, "residual", f"measured - published (RMSE {panel.rmse:.3f})"),
        (right, "model", f"Ware model - measured (RMSE {panel.ware_rmse:.3f})"),
    ):
        table = points.pivot(index="bbr_flows", columns="buffer_bdp", values=column)
        sns.heatmap(table.abs(), ax=axes, vmin=0, vmax=0.2, cmap=PALE, annot=table, fmt="+.3f", annot_kws={"size": 8},
                    cbar=False, linewidths=0.5)  # fmt: skip
        axes.set(title=title, xlabel="buffer (BDP)", ylabel="BBR flows")
        axes.tick_params(axis="y", rotation=0)
    return figure


def against_published(panels: list[Panel]) -> Figure:
    """Measured over published, one mark per point, in the colour of the panel's BBR; on the diagonal they agree."""
    figure, axes = plt.subplots(figsize=(7.4, 5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.6", lw=1)
    axes.fill_between([0, 1], [-0.05, 0.95], [0.05, 1.05], color="0.9", zorder=0, label="$\\pm$ 0.05")
    for panel, marker in zip(panels, itertools.cycle("osD^v<>XP"), strict=False):
        axes.scatter(panel.points["published"], panel.points["measured"], s=22, marker=marker, alpha=0.8, color=colour_of_cca(panel.bbr),
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


def three_models(panel: Panel) -> Figure:
    """Small multiples, one per number of BBR flows: published, measured, Ware, the fluid model at two lengths, and the burst model
    (a band of one standard deviation over its seeds).

    ``panel.points`` has the columns of model_panels.with_fluid() and with_burst().
    """
    counts = sorted(panel.points["bbr_flows"].unique())
    return _with_models([(f"{n} BBR flow{'s' if n > 1 else ''}", panel, n) for n in counts])


def one_flow(panels: Iterable[Panel]) -> Figure:
    """The same of one BBR flow against one other, an axes for each of some panels."""
    return _with_models([(f"one {label_of_cca(panel.bbr)} flow, {panel.title}", panel, 1) for panel in panels])


def _with_models(cells: Sequence[tuple[str, Panel, int]]) -> Figure:
    """An axes for each title, panel and number of BBR flows."""
    figure, grid = multiples(len(cells))
    for axes, (title, panel, count) in zip(grid.flat, cells, strict=False):
        points = panel.points[panel.points["bbr_flows"] == count].sort_values("buffer_bdp")
        x = points["buffer_bdp"]
        axes.plot(x, points["ware"], color=QUIET, ls=MODEL_STYLES["Ware"], lw=1.3, label="Ware, steady state")
        fluid = {"color": QUIET, "ls": MODEL_STYLES["fluid"], "ms": 4, "lw": 1.3}
        axes.plot(x, points["fluid_9s"], marker="^", mfc="white", label="fluid, 9 s", **fluid)
        axes.plot(x, points["fluid_own"], marker="v", label="fluid, as long as the runs", **fluid)
        axes.plot(x, points["burst"], color=QUIET, ls=MODEL_STYLES["burst"], lw=1.3, label="burst")
        spread = points["burst_sd"].fillna(0)
        low, high = (points["burst"] - spread).clip(lower=0), (points["burst"] + spread).clip(upper=1)
        axes.fill_between(x, low, high, color=QUIET, alpha=0.2, lw=0)
        axes.plot(x, points["published"], "o", mfc="white", ms=7, color=PUBLISHED, label="published")
        axes.plot(x, points["measured"], ".", ms=8, color=colour_of_cca(panel.bbr), label="measured here")
        axes.axhline(PAYLOAD_PER_FRAME, color="0.7", lw=0.8, zorder=0, label="full link (payload over frame)")
        axes.set_title(title)
        log2_axis(axes, sorted(x))
        axes.set_ylim(0, 1.02)
    figure.supxlabel("bottleneck buffer (BDP of the path)", fontsize=11)
    figure.supylabel("BBR flows' share of capacity", fontsize=11)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def shipped_panels() -> dict[str, Panel]:
    """{figure: its panel} of the results that ship, whatever there is of one's own."""
    return {panel.figure: panel for _, panel in panels_at(ShownResults(paths.SHIPPED, "full", True, ""))}


def main() -> None:
    """Draw fig2a.png and models.png of docs/images, of the results that ship."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    folder = parser.parse_args().out
    set_style()
    panels = shipped_panels()
    shares(panels["sarpkaya2025/fig2a"]).savefig(folder / "fig2a.png")
    one_flow(panels[f"sarpkaya2025/{name}"] for name in ("fig2a", "fig3a", "fig5a")).savefig(folder / "models.png")


if __name__ == "__main__":
    main()
