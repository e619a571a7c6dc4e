"""ProbeRTT every 5 s beside draft issue 109: the picture of docs/explanation/issue109.md, of data/questions/issue109.csv.

``python -m studies.issue109 --out PICTURE.png`` draws it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from bbrlab.base.tables import published_table
from bbrlab.results.algorithm_table import OTHER_COLOURS
from bbrlab.results.statistics import over_seeds
from bbrlab.show.plots.style import bounds_of, interval_bars, set_style

READINGS = {"v3": "every 5 s", "issue109": "as issue 109"}
# Of each panel: the question of the table, the metric, its label, and the limits of its axis (None: from the data).
PANELS = {
    "one flow against CUBIC": ("cubic", "share_of_capacity", "share of capacity", (0, 1)),
    "two flows": ("two", "queue_ms_p50", "median queueing delay (ms)", (0, None)),
    "the late-comer's first 20 s": ("late", "share_of_goodput", "share of all goodput", (0, 1)),
    "one flow alone": ("alone", "utilisation", "utilisation (from 0.9)", (0.9, 1)),
}


def issue109_picture() -> Figure:
    """A panel for each of PANELS: means over seeds (of a late-comer: over its starts), with 95 % intervals, at each buffer."""
    table = published_table("questions/issue109")
    buffers = sorted(table["buffer_bdp"].unique())
    figure, grid = plt.subplots(1, len(PANELS), figsize=(12, 3.8), layout="constrained")
    for axes, (title, (question, metric, label, limits)) in zip(grid, PANELS.items(), strict=True):
        of_question = table[table["question"] == question]
        for i, (reading, name) in enumerate(READINGS.items()):
            runs = of_question[of_question["reading"] == reading].groupby("buffer_bdp")[metric]
            found = over_seeds(runs).loc[buffers]
            axes.errorbar(
                [at + 0.16 * (i - 0.5) for at in range(len(buffers))],
                found["mean"],
                yerr=interval_bars(found["mean"], found["half"], *bounds_of(metric)),
                fmt="os"[i],
                color=OTHER_COLOURS[i],
                capsize=3,
                label=name,
            )
        axes.set(title=title, ylabel=label, ylim=limits, xlabel="buffer (BDP)", xlim=(-0.5, len(buffers) - 0.5))
        axes.set_xticks(range(len(buffers)), [f"{bdp:g}" for bdp in buffers])
    grid[2].legend(title="ProbeRTT", loc="upper left")
    return figure


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    set_style()
    issue109_picture().savefig(parser.parse_args().out, dpi=110)


if __name__ == "__main__":
    main()
