"""ProbeRTT every 5 s beside draft issue 109: the picture and the table of docs/explanation/issue109.md.

``python -m studies.issue109 --out PICTURE.png`` draws the one, of the largest scale that there is, and prints the other.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from bbrlab.comparison.compare import MOVED, compare_points
from bbrlab.measure.metrics import METRICS
from bbrlab.results.algorithm_table import OTHER_COLOURS
from bbrlab.show.plots.style import bounds_of, interval_bars, set_style
from studies.page import load_page

READINGS = {"v3": "every 5 s", "issue109": "as issue 109"}
# Of each question: what the flows are, the group that is looked at, and the metrics that are compared; the first is drawn.
QUESTIONS = {
    "cubic": ("one flow, one CUBIC", 0, ("share_of_capacity", "queue_ms_p50", "jain_index_all")),
    "two": ("two flows", 0, ("queue_ms_p50", "utilisation", "jain_index")),
    "late": ("a late-comer, its first 20 s", 1, ("share_of_goodput",)),
    "alone": ("one flow alone", 0, ("utilisation",)),
}
LIMITS = {"cubic": (0, 1), "two": (0, None), "late": (0, 1), "alone": (0.9, 1)}  # of the drawn metric's axis


def runs_by_question(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The good runs of both studies with the columns ``question`` and ``reading``.

    Of a late-comer the mean over its starts, by seed: each start is as good as any other, and a failed one is left out.

    Args:
        tables: of questions/issue109 and questions/issue109_late, by figure.
    """
    both, late = (tables[figure][tables[figure]["ok"]] for figure in ("issue109", "issue109_late"))
    both[["question", "reading"]] = both["case"].str.split("-", expand=True).to_numpy()
    late["reading"] = late["case"].str.split("-").str[0]
    metrics = [metric for metric in METRICS if metric in late]
    late = late.groupby(["reading", "network.buffer.bdp", "group", "seed"])[metrics].mean().reset_index()
    return pd.concat([both, late.assign(question="late")])


def differences(runs: pd.DataFrame) -> pd.DataFrame:
    """Draft issue 109 beside the default: compare.compare_points() of each question, with ``question`` and ``buffer_bdp``.

    Args:
        runs: runs_by_question().
    """
    found = []
    for question, (_, group, metrics) in QUESTIONS.items():
        rows = runs[(runs["question"] == question) & (runs["group"] == group)]
        # What compare_points() takes a point by: the swept values before the last comma.
        rows = rows.assign(point=[f"{bdp:g}," for bdp in rows["network.buffer.bdp"]], cca="bbr3", ok=True)
        a, b = ({question: rows[rows["reading"] == reading]} for reading in READINGS)
        found.append(compare_points(a, b, metrics).assign(question=question))
    table = pd.concat(found, ignore_index=True)
    return table.assign(buffer_bdp=table["point"].astype(float)).sort_values(
        ["question", "metric", "buffer_bdp"], ignore_index=True
    )


def page_rows(found: pd.DataFrame) -> list[tuple[str, ...]]:
    """Differences in words: question, metric, buffer (BDP), both readings and their difference with 95 % intervals, and "moved" or nothing.

    Args:
        found: differences().
    """
    rows: list[tuple[str, ...]] = []
    for row in found.to_dict("records"):
        digits = 1 if row["unit"] == "ms" else 3
        a, b = (f"{row[f'{side}_mean']:.{digits}f} ± {row[f'{side}_half']:.{digits}f}" for side in "ab")
        change = f"{row['difference']:+.{digits}f} ({row['low']:+.{digits}f} to {row['high']:+.{digits}f})"
        moved = MOVED if row["outcome"] == MOVED else ""
        rows.append((row["question"], row["metric"], f"{row['buffer_bdp']:g}", a, b, change, moved))
    return rows


def issue109_picture(found: pd.DataFrame) -> Figure:
    """A panel for each question: means over seeds, with 95 % intervals, at each buffer.

    Args:
        found: differences().
    """
    figure, grid = plt.subplots(1, len(QUESTIONS), figsize=(12, 3.8), layout="constrained")
    for axes, (question, (title, _, metrics)) in zip(grid, QUESTIONS.items(), strict=True):
        metric = METRICS[metrics[0]]
        points = found[(found["question"] == question) & (found["metric"] == metric.name)]
        for i, (side, name) in enumerate(zip("ab", READINGS.values(), strict=True)):
            mean, half = points[f"{side}_mean"], points[f"{side}_half"]
            axes.errorbar(
                [at + 0.2 * (i - 0.5) for at in range(len(points))],
                mean,
                yerr=interval_bars(mean, half, *bounds_of(metric.name)),
                fmt="os"[i],
                color=OTHER_COLOURS[i],
                capsize=3,
                label=name,
            )
        axes.set(
            title=title,
            ylabel=f"{metric.label} ({metric.unit})" if metric.unit != "1" else metric.label,
            ylim=LIMITS[question],
            xlabel="buffer (BDP)",
            xlim=(-0.5, len(points) - 0.5),
        )
        axes.set_xticks(range(len(points)), [f"{bdp:g}" for bdp in points["buffer_bdp"]])
    grid[-1].legend(title="ProbeRTT", loc="upper left")
    return figure


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    runs = runs_by_question(load_page("full", "questions").tables)
    found = differences(runs)
    set_style()
    issue109_picture(found).savefig(out, dpi=110)
    for row in page_rows(found):
        print(" | ".join(f"{cell:18}" for cell in row))
    shown = ["between_probe_rtt_s", "probe_rtt_together"]
    probes = runs[runs["group"] == 0].groupby(["question", "reading", "network.buffer.bdp"])[shown].mean()
    print(probes.round(2).to_string())


if __name__ == "__main__":
    main()
