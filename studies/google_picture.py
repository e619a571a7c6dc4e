"""The picture of docs/explanation/beside_google.md: shares of ours and published ones over Google's, cell by cell."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from bbrlab.results.algorithm_table import colour_of_cca, label_of_cca
from bbrlab.results.figures import figures_at
from bbrlab.show.plots.style import PUBLISHED, set_style
from studies.beside_google import compared


def draw(table: pd.DataFrame) -> Figure:
    """An axes for each panel, BBRv2's on the left and BBRv3's on the right, in all as wide as a phone.

    Args:
        table: compared().
    """
    set_style()
    figure, grid = plt.subplots(3, 2, figsize=(5.4, 8), sharex=True, sharey=True, layout="constrained")
    for axes, (id, cells) in zip(grid.T.flat, table.groupby("figure"), strict=True):
        (panel,) = figures_at("full", [str(id)])
        google, scatter = cells["google"], {"xerr": cells["google_sd"], "yerr": cells["ours_sd"]}
        axes.plot([0, 1], [0, 1], color="0.6", lw=1, zorder=0)
        axes.plot(google, cells["published"], "s", ms=6, mfc="none", color=PUBLISHED, label="published")
        axes.errorbar(
            google,
            cells["ours"],
            **scatter,
            fmt="o",
            ms=4.5,
            lw=1,
            color=colour_of_cca(panel.scenario.flows[0].cca),
            label="ours",
        )
        bbr, rival = (label_of_cca(flow.cca) for flow in panel.scenario.flows)
        axes.set_title(
            f"{panel.scenario.figure}: {bbr} v {rival},\n{panel.scenario.network.rate_mbit:g} Mbit/s", fontsize=10
        )
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    grid[0, 0].legend(loc="upper left", fontsize=9, handletextpad=0.2)
    figure.supxlabel("share of capacity, Google's code in this lab", fontsize=10)
    figure.supylabel("share of capacity, ours or published", fontsize=10)
    return figure


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    draw(compared()).savefig(parser.parse_args().out, dpi=120)


if __name__ == "__main__":
    main()
