"""The plots of notebooks/models.ipynb. Each function draws one figure and returns it."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bbrlab.models.fluid import Run
from bbrlab.results.algorithm_table import COLOURS, OTHER_COLOURS, label_of_cca
from bbrlab.show.plots.style import PUBLISHED
from studies import taken_apart


def defects(table: pd.DataFrame, published: float) -> Figure:
    """Bars of ``share`` after each ``change``, and a line at the published value."""
    figure, axes = plt.subplots(figsize=(8, 0.5 * len(table) + 1), layout="constrained")
    at = np.arange(len(table))[::-1]
    axes.barh(at, table["share"], color=COLOURS["bbr1"], height=0.6)
    for y, value in zip(at, table["share"], strict=True):
        axes.text(value + 0.005, y, f"{value:.4f}", va="center", fontsize=10)
    axes.axvline(published, color=PUBLISHED, lw=1, ls="--", label=f"published curve: {published:g}")
    axes.set_yticks(at, table["change"])
    axes.set_xlim(0, 1)
    axes.set_xlabel("BBRv1's share")
    figure.legend(loc="outside upper right", frameon=False)
    return figure


def _grouped(run: Run, ccas: Sequence[str]) -> dict[str, np.ndarray]:
    rates = {}
    for name in dict.fromkeys(ccas):
        columns = [f"rate_{i}_packets_per_ms" for i, cca in enumerate(ccas) if cca == name]
        rates[name] = run.trace[columns].sum(axis=1).to_numpy() / run.capacity
    return rates


def model_over_time(run: Run, ccas: Sequence[str], title: str) -> Figure:
    """Rates (of capacity, summed over the flows of a CCA) and queue over time, and the phase portrait of the two."""
    figure, (rates, queue, phase) = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
    t = run.trace["t_ms"] / 1000
    filled = run.trace["queue_packets"] / run.buffer_packets
    for name, rate in _grouped(run, ccas).items():
        rates.plot(t, rate, color=COLOURS[name], lw=1, label=label_of_cca(name))
        phase.plot(filled, rate, color=COLOURS[name], lw=0.5, alpha=0.8)
    rates.set(xlabel="time (s)", ylabel="sending rate / capacity", title=title)
    rates.legend(loc="upper right", fontsize=9)
    queue.plot(t, filled, color="0.3", lw=0.8)
    queue.set(xlabel="time (s)", ylabel="queue / buffer", ylim=(-0.02, 1.05))
    phase.set(xlabel="queue / buffer", ylabel="sending rate / capacity", title="phase portrait")
    return figure


def one_case(
    first: str = "bbr1", flows: int = 1, buffer_bdp: float = 2.0, seconds: float = 20, rtprop_may_rise: bool = False
) -> Figure:
    """The aligned fluid model of some flows against one CUBIC flow, integrated and drawn; for ipywidgets.interact.

    Returns:
        A figure that pyplot no longer holds, so that a notebook shows it once.
    """
    ccas = [first] * flows + ["cubic"]
    run = taken_apart.over_time(ccas, buffer_bdp, seconds, rtprop_may_rise=rtprop_may_rise)
    share = run.share([True] * flows + [False])
    figure = model_over_time(
        run, ccas, f"{flows} {label_of_cca(first)} v 1 CUBIC, {buffer_bdp:g} BDP: share {share:.3f}"
    )
    plt.close(figure)
    return figure


def step_sizes(tables: dict[str, pd.DataFrame]) -> Figure:
    """The first flow's share over the step, one line per case, relative to the finest step."""
    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for (name, table), colour in zip(tables.items(), OTHER_COLOURS, strict=False):
        ordered = table.sort_values("step_ms")
        axes.plot(
            ordered["step_ms"],
            (ordered["share_0"] - ordered["share_0"].iloc[0]).abs().clip(lower=1e-7),
            ".-",
            color=colour,
            label=name,
        )
    axes.set(xscale="log", yscale="log", xlabel="step (ms)", ylabel="change of the share\nfrom the finest step")
    axes.legend(fontsize=9)
    return figure
