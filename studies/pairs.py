"""Each algorithm against each, as a map: the scenario questions/pairs.yaml."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from bbrlab.measure.schema import label_of
from bbrlab.results.algorithms import label_of_cca
from bbrlab.scenario.frames import PAYLOAD_PER_FRAME
from bbrlab.show.plots.style import plain, rows_with

SETTING = ["rate_mbit", "buffer_bdp"]
COLOURS, CELL_IN, MARGIN_IN = "RdBu", 0.58, 1.1


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

    White is half of what the link carries of data: blue has more, red less.
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
    colours = ScalarMappable(Normalize(0, PAYLOAD_PER_FRAME), COLOURS)
    for i, rate in enumerate(rates):
        for axes, buffer in zip(grid[i], buffers, strict=True):
            cells = rows_with(shares, {"rate_mbit": rate, "buffer_bdp": buffer})
            axes.set_visible(bool(len(cells)))
            matrix = cells.pivot(index="cca", columns="other", values="share_of_capacity").reindex(
                index=names, columns=names
            )
            sns.heatmap(matrix.astype(float), ax=axes, vmin=0, vmax=PAYLOAD_PER_FRAME, cmap=COLOURS, annot=True, fmt=".2f",
                        annot_kws={"size": 9}, cbar=False, linewidths=0.5, xticklabels=labels, yticklabels=labels)  # fmt: skip
            axes.set(title=f"{plain(rate)} Mbit/s, {plain(buffer)} BDP", xlabel="", ylabel="")
            axes.tick_params(axis="both", rotation=0, labelbottom=True, labelleft=True, labelsize=9)
    figure.colorbar(colours, ax=list(grid.flat), label=f"the row's {label_of('share_of_capacity')}", shrink=0.8)
    figure.supxlabel("beside", fontsize=11)
    return figure
