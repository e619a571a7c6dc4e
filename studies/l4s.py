"""A scalable flow beside others, queue by queue: the study scenarios/l4s.yaml as a table and a figure.

``python -m studies.l4s [FOLDER] --out PICTURE.png`` draws a folder of ``bbrlab sweep``, or data/questions/l4s.csv, and prints its means.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from bbrlab.base.tables import published_table
from bbrlab.results.algorithm_table import QUIET, colour_of_cca
from bbrlab.results.statistics import over_seeds
from bbrlab.show.plots.style import bounds_of, interval_bars, set_style

# What the cases of scenarios/l4s.yaml are called on the picture: QUEUE-RIVAL.
QUEUES = {
    "dualpi2": "DualPI2",
    "dualpi2_paced": "DualPI2, paced",
    "fq": "fq, marks above 1 ms",
    "fq_codel": "fq_codel, marks above 1 ms",
    "fq_codel_ect1": "fq_codel, marks ECT(1) above 1 ms",
    "one_queue": "one queue, marks above 1 ms",
    "fifo": "FIFO",
}
RIVALS = {
    "cubic": "CUBIC", "reno": "Reno", "bbr1": "BBRv1", "bbr2": "BBRv2, no ECN", "bbr3": "BBRv3, no ECN",
    "cubic_no_ecn": "CUBIC, no ECN", "bbr1_no_ecn": "BBRv1, no ECN", "bbr2_ecn": "BBRv2, ECN", "bbr3_ecn": "BBRv3, ECN",
    "dctcp1": "DCTCP",
}  # fmt: skip
COLUMNS = (
    "queue", "rival", "base_rtt_ms", "seed", "group", "cca", "goodput_mbit", "share_of_capacity", "rtt_ms_mean", "ecn_marked",
    "retransmits", "classic_queue_ms_mean", "classic_queue_ms_p99", "l4s_queue_ms_mean", "l4s_queue_ms_p99", "utilisation", "loss",
)  # fmt: skip
COLOURS = {"scalable": colour_of_cca("dctcp"), "rival": QUIET}  # the rivals are of several algorithms


def coexistence(runs: pd.DataFrame) -> pd.DataFrame:
    """The study's runs as data/questions/l4s.csv has them.

    Args:
        runs: runs.parquet of its folder. Those that failed their self-checks are left out.

    Returns:
        A row for each run and flow with COLUMNS: ``group`` 0 is the scalable flow, 1 its rival.
    """
    names = runs["case"].str.split("-", n=1, expand=True)
    good = runs[runs["ok"]].assign(queue=names[0], rival=names[1])
    return good[[*COLUMNS]].sort_values([*COLUMNS[:5]], ignore_index=True)


def means(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean of a column over seeds, and half of its 95 % interval, of each queue, rival, RTT and flow (statistics.over_seeds())."""
    return over_seeds(table.groupby(["queue", "rival", "base_rtt_ms", "group"])[metric]).reset_index()


def coexistence_picture(table: pd.DataFrame | None = None) -> Figure:
    """Two panels with a row for each queue and rival: who has how much of the capacity, and how long the packets of each wait.

    Args:
        table: as coexistence() gives it, of one or more seeds: means with 95 % intervals; default: data/questions/l4s.csv.
    """
    table = published_table("questions/l4s") if table is None else table
    wait = table.assign(wait_ms=table["rtt_ms_mean"] - table["base_rtt_ms"])
    rows = [(q, r) for q in QUEUES for r in RIVALS if ((table["queue"] == q) & (table["rival"] == r)).any()]
    rtts = sorted(table["base_rtt_ms"].unique())
    place = {row: -i - 0.7 * list(QUEUES).index(row[0]) for i, row in enumerate(rows)}
    figure, (shares, waits) = plt.subplots(
        1, 2, figsize=(10.5, 1.6 + 0.34 * len(rows)), sharey=True, layout="constrained"
    )
    for axes, column in ((shares, "share_of_capacity"), (waits, "wait_ms")):
        found = means(wait, column)
        for i, rtt in enumerate(rtts):
            for group, who in enumerate(COLOURS):
                part = found[(found["base_rtt_ms"] == rtt) & (found["group"] == group)]
                heights = [place[row] + 0.15 - 0.3 * i for row in zip(part["queue"], part["rival"], strict=True)]
                look: dict[str, Any] = {"marker": "os"[group], "color": COLOURS[who], "linestyle": "none"}
                look["label"] = f"{'DCTCP, ECT(1)' if group == 0 else 'the other flow'}, {rtt:g} ms"
                look |= {
                    "markerfacecolor": COLOURS[who] if i else "white",
                    "markersize": 6,
                    "elinewidth": 1,
                    "capsize": 2,
                }
                bars = interval_bars(part["mean"], part["half"].fillna(0), *bounds_of(column))
                axes.errorbar(part["mean"], heights, xerr=bars, **look)
    shares.set(xlim=(0, 1), xlabel="share of capacity")
    waits.set(xscale="symlog", xlim=(0, 1.5 * wait["wait_ms"].max()), xlabel="RTT beyond the path's (ms)")
    shares.set_yticks([place[row] for row in rows], [f"{QUEUES[q]} · {RIVALS[r]}" for q, r in rows], fontsize=9)
    figure.legend(*shares.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    runs = options.folder and options.folder / "runs.parquet"
    if runs and not runs.is_file():
        parser.error(f"{runs}: is not there; give the folder that bbrlab sweep scenarios/l4s.yaml wrote")
    table = coexistence(pd.read_parquet(runs)) if runs else published_table("questions/l4s")
    set_style()
    coexistence_picture(table).savefig(options.out, dpi=110)
    shown = means(table, "goodput_mbit").round(2)
    print(shown[["queue", "rival", "base_rtt_ms", "group", "mean", "half", "seeds"]].to_string(index=False))


if __name__ == "__main__":
    main()
