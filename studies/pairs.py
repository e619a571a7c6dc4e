"""Each algorithm against each, as a map: the scenario questions/pairs.yaml."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bbrlab.measure.metrics import label_of
from bbrlab.results.algorithm_table import colour_of_cca, label_of_cca, tinted
from bbrlab.scenario.frames import PAYLOAD_PER_FRAME
from bbrlab.show.plots.style import plain, rows_with
from bbrlab.show.verdicts import ink_on
from studies.figure_plots import sides_key

SETTING = ["rate_mbit", "buffer_bdp"]
CELL_IN, MARGIN_IN = 0.58, 1.1


def pair_shares(table: pd.DataFrame) -> pd.DataFrame:
    """What each algorithm has of the capacity beside each other one, and beside its own.

    Args:
        table: tables.figure_table() of runs with two groups. Runs that failed their self-checks count for nothing.

    Returns:
        SETTING, ``cca``, ``other`` and ``share_of_capacity``: the mean over seeds and over both orders of the two groups. Of an
        algorithm beside its own it is the mean of both groups, half of what they carry.
    """
    one = table.loc[table["ok"], ["point", "seed", "group", "cca", "share_of_capacity", *SETTING]]
    two = one[["point", "seed", "group", "cca"]].rename(columns={"cca": "other", "group": "other_group"})
    both = one.merge(two, on=["point", "seed"]).query("group != other_group")
    return both.groupby([*SETTING, "cca", "other"])["share_of_capacity"].mean().reset_index()


def pairs_map(table: pd.DataFrame) -> Figure:
    """Rows and columns are algorithms, the number and colour are the row's share beside the column; one map for each rate and buffer.

    A cell has the colour of the one that has more, the fuller the more; white is half of what the link carries of data.
    """
    shares = pair_shares(table)
    names = list(dict.fromkeys(table["cca"]))
    rates, buffers = (sorted(shares[column].unique()) for column in SETTING)
    side = CELL_IN * len(names)
    figure, grid = plt.subplots(
        len(rates), len(buffers), figsize=(MARGIN_IN + (side + 0.3) * len(buffers), MARGIN_IN + (side + 0.3) * len(rates)),
        sharex=True, sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    labels = [label_of_cca(name) for name in names]
    for i, rate in enumerate(rates):
        for axes, buffer in zip(grid[i], buffers, strict=True):
            cells = rows_with(shares, {"rate_mbit": rate, "buffer_bdp": buffer})
            axes.set_visible(bool(len(cells)))
            matrix = cells.pivot(index="cca", columns="other", values="share_of_capacity").reindex(
                index=names, columns=names
            )
            for (y, row), (x, column) in itertools.product(enumerate(names), repeat=2):
                if np.isfinite(share := float(matrix.loc[row, column])):
                    more = 2 * share / PAYLOAD_PER_FRAME - 1
                    colour = tinted(colour_of_cca(row if more > 0 else column), min(abs(more), 1))
                    axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white", lw=0.5))
                    axes.text(
                        x + 0.5, y + 0.5, f"{share:.2f}", ha="center", va="center", fontsize=9, color=ink_on(colour)
                    )
            places = np.arange(len(names)) + 0.5
            axes.set(xlim=(0, len(names)), ylim=(len(names), 0), aspect="equal")
            axes.set_xticks(places, labels)
            axes.set_yticks(places, labels)
            axes.grid(False)
            axes.set(title=f"{plain(rate)} Mbit/s, {plain(buffer)} BDP", xlabel="", ylabel="")
            axes.tick_params(axis="both", rotation=0, labelbottom=True, labelleft=True, labelsize=9)
    figure.supylabel(f"whose {label_of('share_of_capacity')} the number is", fontsize=11)
    figure.supxlabel("beside", fontsize=11)
    sides_key(figure, names, "{} has more")
    return figure
