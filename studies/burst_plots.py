"""The plots of notebooks/burst.ipynb. Each function draws one figure and returns it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from bbrlab.models import burst, ware
from bbrlab.results.algorithm_table import COLOURS, QUIET, label_of_cca
from bbrlab.show.plots.style import MODEL_STYLES, interval_bars, log2_axis, multiples
from studies.figure_plots import between, sides_key

BUFFERS_BDP = (0.5, 1, 2, 4, 8, 16, 32)


def share_map(table: pd.DataFrame, x: str, y: str, labels: tuple[str, str]) -> Figure:
    """BBR's share of capacity over two axes, one panel per version and rival, in the colours of both; white: half each.

    Args:
        table: a map of data/burst: columns ``cca``, ``rival``, ``share_of_capacity`` and both axes'.
        x, y: the axes' columns; their values stand at equal distances.
    """
    groups = list(table.groupby(["rival", "cca"], sort=False))
    ccas = [name for column in ("cca", "rival") for name in dict.fromkeys(table[column])]
    figure, grid = multiples(len(groups))
    for axes, ((rival, cca), some) in zip(grid.flat, groups, strict=False):
        wide = some.pivot(index=y, columns=x, values="share_of_capacity")
        axes.imshow(wide, origin="lower", aspect="auto", cmap=between(str(rival), str(cca)), vmin=0, vmax=1)
        axes.set_xticks(range(len(wide.columns)), [f"{v:g}" for v in wide.columns], fontsize=8)
        axes.set_yticks(range(len(wide.index)), [f"{v:g}" for v in wide.index], fontsize=8)
        axes.set(title=f"{label_of_cca(str(cca))} v {label_of_cca(str(rival))}", xlabel=labels[0], ylabel=labels[1])
        axes.grid(False)
    sides_key(figure, ccas, "{} has all")
    return figure


def beside_lab(table: pd.DataFrame) -> Figure:
    """The model's share over the lab's, with the lab's 95 % intervals; on the diagonal both agree."""
    figure, axes = plt.subplots(figsize=(5, 5))
    axes.plot([0, 1], [0, 1], color="0.6", lw=0.8)
    for cca, some in table.groupby("cca", sort=True):
        axes.errorbar(
            some["lab"],
            some["model"],
            xerr=interval_bars(some["lab"], some["half"], 0, 1),
            fmt="o",
            ms=5,
            lw=1,
            color=COLOURS[str(cca)],
            label=label_of_cca(str(cca)),
        )
    axes.set(
        xlim=(0, 1), ylim=(0, 1), xlabel="BBR's share of capacity, lab", ylabel="the same, burst model", aspect="equal"
    )
    axes.legend(frameon=False)
    return figure


def payoffs(table: pd.DataFrame, flows: int) -> Figure:
    """What a flow of each kind gets over the number of BBR flows, one panel per buffer, in parts of an equal share."""
    some = table[table["flows"] == flows]
    buffers = sorted(some["buffer_bdp"].unique())
    figure, grid = multiples(len(buffers))
    for axes, buffer_bdp in zip(grid.flat, buffers, strict=False):
        at = some[some["buffer_bdp"] == buffer_bdp]
        equal = (
            at["bbr_flows"] * at["bbr_flow_mbit"].fillna(0)
            + (flows - at["bbr_flows"]) * at["rival_flow_mbit"].fillna(0)
        ) / flows
        for cca, one in at.groupby("cca", sort=False):
            colour = COLOURS[str(cca)]
            axes.plot(
                one["bbr_flows"],
                one["bbr_flow_mbit"] / equal[one.index],
                color=colour,
                label=f"a {label_of_cca(str(cca))} flow",
            )
            axes.plot(
                one["bbr_flows"],
                one["rival_flow_mbit"] / equal[one.index],
                color=colour,
                ls=":",
                label="a CUBIC flow beside it",
            )
        axes.axhline(1, color="0.5", lw=0.7)
        axes.set(title=f"{buffer_bdp:g} BDP", xlabel=f"BBR flows of {flows}", ylim=(0, 4))
    grid.flat[0].set_ylabel("of an equal share")
    handles, names = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def what_if(
    cca: str = "bbr3",
    flows: int = 1,
    rival: str = "cubic",
    rate_mbit: float = 10,
    rtt_ms: float = 40,
    seconds: float = 400,
) -> Figure:
    """The burst model's share over the buffer, and the Ware model's of BBRv1; for ipywidgets.interact.

    Args:
        rival: of the one flow beside them.
        rate_mbit, rtt_ms: of the bottleneck and of all flows.
        seconds: how long each point is simulated; means are over the last 40 %.

    Returns:
        A figure that pyplot no longer holds, so that a notebook shows it once.
    """
    shares = [
        burst.simulate({cca: flows, rival: 1}, rate_mbit, rtt_ms, buffer_bdp=x, duration_s=seconds).shares[cca]
        for x in BUFFERS_BDP
    ]
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    axes.plot(BUFFERS_BDP, shares, MODEL_STYLES["burst"], marker="o", color=COLOURS[cca], label="burst model")
    if cca == "bbr1":
        axes.plot(
            BUFFERS_BDP,
            ware.bbr_share(rate_mbit, rtt_ms, list(BUFFERS_BDP), flows),
            MODEL_STYLES["Ware"],
            color=QUIET,
            label="Ware model",
        )
    axes.axhline(flows / (flows + 1), color="0.6", lw=0.7, label="equal shares")
    log2_axis(axes, list(BUFFERS_BDP))
    axes.set(
        ylim=(0, 1),
        xlabel="buffer (BDP)",
        ylabel="share of capacity",
        title=f"{flows} {label_of_cca(cca)} v 1 {label_of_cca(rival)}, {rate_mbit:g} Mbit/s, {rtt_ms:g} ms",
    )
    axes.legend(fontsize=9)
    plt.close(figure)
    return figure
