"""What the lab predicted of published data before its authors knew them (data/blind), over what was published."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bbrlab.report.plots.style import CCA_COLOURS

LARGEST_SHARE = 1.05


def blind_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables of blind comparisons by name; columns ``metric``, ``here``, ``published`` and the conditions.

    Args:
        folder: data/blind.
    """
    return {path.stem: pd.read_csv(path, dtype={"kernel": str}) for path in sorted(folder.glob("*.csv"))}


def agreement(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """How far prediction and publication are apart, a row per table and metric.

    Returns:
        Columns ``data``, ``metric``, ``values`` (how many), ``rms`` and ``largest`` (of here - published, in the metric's
        unit), ``median_percent`` (of the absolute difference over the published value).
    """
    rows = []
    for name, table in tables.items():
        if "published" not in table:  # of unseen panels only the distance is known
            continue
        for metric, part in table.dropna(subset=["here", "published"]).groupby("metric", sort=False):
            difference = (part["here"] - part["published"]).to_numpy(dtype=float)
            published = part["published"].to_numpy(dtype=float)
            nonzero = published != 0
            relative = np.abs(difference[nonzero] / published[nonzero])
            rows.append({
                "data": name,
                "metric": metric,
                "values": len(part),
                "rms": float(np.sqrt(np.mean(difference**2))),
                "largest": float(np.abs(difference).max()),
                "median_percent": 100 * float(np.median(relative)) if len(relative) else float("nan"),
            })  # fmt: skip
    return pd.DataFrame(rows)


def blind_comparisons(tables: dict[str, pd.DataFrame]) -> Figure:
    """Four panels, a dot for each value: what the lab predicted over what was published; on the diagonal they agree.

    Args:
        tables: blind_tables().
    """
    figure, grid = plt.subplots(2, 2, figsize=(9.5, 8.6), layout="constrained")
    shares, pairs, alone, fairness = grid.flat

    panel = tables["fig2b"]
    _diagonal(shares, 0, LARGEST_SHARE)
    for count, part in panel.groupby("bbr_flows"):
        shares.plot(part["published"], part["here"], "o", ms=6, label=f"{count} BBRv1 v CUBIC")
    shares.set(title="Share of the link, 50 Mbit/s, 30 ms", xlabel="published", ylabel="predicted")
    shares.legend(fontsize=8)

    _diagonal(pairs, 0, LARGEST_SHARE)
    for metric, label in (("jain_index", "Jain's index"), ("occupancy", "queue occupancy"), ("utilisation", "utilisation"),
                          ("loss_over_delivered", "lost over delivered")):  # fmt: skip
        part = tables["pairs"][tables["pairs"]["metric"] == metric]
        pairs.plot(part["published"], part["here"], "o", ms=5, alpha=0.8, label=label)
    pairs.set(title="Five flows against five, 100 Mbit/s", xlabel="published", ylabel="predicted")
    pairs.legend(fontsize=8)

    grid_table = tables["cao_grid"]
    goodput = grid_table[(grid_table["metric"] == "goodput_mbit") & (grid_table["kernel"] == "5.15")]
    for cca, part in goodput.groupby("cca"):
        alone.plot(
            part["published"], part["here"], "o", ms=5, alpha=0.8, color=CCA_COLOURS[str(cca)], label=f"{cca} alone"
        )
    _diagonal(alone, goodput["published"].min() * 0.8, goodput["published"].max() * 1.2)
    alone.set(
        xscale="log",
        yscale="log",
        title="Goodput of one flow (Mbit/s), 32 paths",
        xlabel="published",
        ylabel="predicted",
    )
    # The points off the diagonal have one cause in common (docs/trust.md).
    alone.annotate("100 kB buffer at 500 Mbit/s:\nCUBIC missed", (110, 240), (14, 330), fontsize=8, color="0.3")
    alone.legend(fontsize=8, loc="lower right")

    gomez = tables["gomez"]
    gomez = gomez[gomez["metric"] == "goodput_mbit"]
    for rtt, part in gomez.groupby("flow_rtt_ms"):
        fairness.plot(part["published"], part["here"], "o", ms=6, label=f"flow of {rtt:g} ms")
    _diagonal(fairness, 0, gomez[["published", "here"]].to_numpy().max() * 1.1)
    fairness.set(title="Two BBRv3 flows, 1 Gbit/s (Mbit/s)", xlabel="published", ylabel="predicted")
    fairness.legend(fontsize=8)
    return figure


def _diagonal(axes: Axes, low: float, high: float) -> None:
    axes.plot([low, high], [low, high], color="0.6", lw=1, zorder=0)
    axes.set(xlim=(low, high), ylim=(low, high))
