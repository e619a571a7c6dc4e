"""BBRv3 with ProbeRTT every 10 s, as draft issue 109 has it, beside every 5 s: scenarios/questions/issue109*.yaml
(docs/explanation/issue109.md).

``python -m studies.issue109 --out PICTURE.png`` draws data/questions/issue109.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from bbrlab.base.tables import published_table
from bbrlab.measure.schema import label_of
from bbrlab.publish.compare import compare_points
from bbrlab.results.statistics import over_seeds

READINGS = {"v3": "every 5 s", "issue109": "as issue 109"}
LATE = "late"
# {question: the metrics that answer it}; a late-comer's share of the goodput is that of the flow that comes.
METRICS = {
    "alone": ["utilisation"],
    "two": ["utilisation", "queue_ms_p50", "jain_index_all"],
    "cubic": ["share_of_capacity", "queue_ms_p50"],
    LATE: ["share_of_goodput", "queue_ms_p50"],
}
COLUMNS = list(dict.fromkeys(metric for metrics in METRICS.values() for metric in metrics))
OF_STATES = ["between_probe_rtt_s", "probe_rtt_together"]


def of_figures(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """data/questions/issue109.csv from the tables of both figures.

    Args:
        tables: {name of the scenario: tables.figure_table()}.

    Returns:
        A row per run: ``question``, ``reading``, ``start_s`` (of the late-comer), ``buffer_bdp``, ``seed``, COLUMNS and OF_STATES.
    """
    parts = []
    for name, table in tables.items():
        late = name.endswith(LATE)
        rows = table[(table["group"] == int(late)) & table["ok"]]
        one, two = (rows["case"].str.partition("-")[part] for part in (0, 2))
        question, reading, start_s = (LATE, one, two.astype(float)) if late else (one, two, 0.0)
        own = rows.assign(question=question, reading=reading, start_s=start_s)
        if late:  # of the run are a run's first group's
            first = table[table["group"] == 0].set_index(["point", "seed"])
            for metric in ("queue_ms_p50", "utilisation", "jain_index_all"):
                own[metric] = first.loc[pd.MultiIndex.from_frame(own[["point", "seed"]]), metric].to_numpy()
        parts.append(own[["question", "reading", "start_s", "buffer_bdp", "seed", *COLUMNS, *OF_STATES]])
    return pd.concat(parts, ignore_index=True)


def runs() -> pd.DataFrame:
    """The runs that ship as compare_points() takes them: ``point`` is question and buffer, and each start of a late-comer a seed."""
    table = published_table("questions/issue109")
    point = table["question"] + ", " + table["buffer_bdp"].map("{:g} BDP".format) + ","
    seed = 100 * table["start_s"].astype(int) + table["seed"]
    return table.assign(point=point, seed=seed, group=0, ok=True, cca="bbr3")


def effects(table: pd.DataFrame) -> pd.DataFrame:
    """compare_points() of the issue with the default, of the metrics that answer a question; ``point`` names question and buffer.

    Args:
        table: runs().
    """
    parts = []
    for question, metrics in METRICS.items():
        here = table[table["question"] == question]
        default, issue = ({question: here[here["reading"] == reading]} for reading in READINGS)
        parts.append(compare_points(default, issue, metrics))
    return pd.concat(parts, ignore_index=True)


def picture(table: pd.DataFrame) -> Figure:
    """A panel for each question's first metrics, over the buffer: means of the readings with 95 % intervals.

    Args:
        table: runs().
    """
    panels = [
        ("cubic", "share_of_capacity"),
        ("two", "queue_ms_p50"),
        (LATE, "share_of_goodput"),
        ("alone", "utilisation"),
    ]
    titles = {
        "cubic": "one flow against CUBIC",
        "two": "two flows",
        LATE: "the late-comer's first 20 s",
        "alone": "one flow alone",
    }
    figure, grid = plt.subplots(1, len(panels), figsize=(13, 3.6), layout="constrained")
    buffers = sorted(table["buffer_bdp"].unique())
    for axes, (question, metric) in zip(grid, panels, strict=True):
        for place, (reading, words) in enumerate(READINGS.items()):
            part = table[(table["question"] == question) & (table["reading"] == reading)]
            statistics = over_seeds(part.groupby("buffer_bdp")[metric])
            at = [buffers.index(bdp) + 0.16 * place - 0.08 for bdp in statistics.index]
            axes.errorbar(
                at, statistics["mean"], statistics["half"].fillna(0), fmt="os"[place], ms=6, capsize=3, label=words
            )
        axes.set(
            title=titles[question], xlabel="buffer (BDP)", ylabel=label_of(metric), xlim=(-0.5, len(buffers) - 0.5)
        )
        axes.set_xticks(range(len(buffers)), [f"{bdp:g}" for bdp in buffers])
        axes.set_ylim(*((0.9, 0.96) if metric == "utilisation" else (0, None)))
    grid[0].legend(title="ProbeRTT", fontsize=8)
    return figure


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    picture(runs()).savefig(parser.parse_args().out, dpi=100)


if __name__ == "__main__":
    main()
