"""docs/explanation/issue109.md: draft issue 109 beside the default, from data/questions/issue109.csv."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab.measure.schema import label_of
from bbrlab.publish.compare import MOVED
from docs._make.marks import page
from studies.issue109 import LATE, OF_STATES, READINGS, effects, runs

PAGE = paths.ROOT / "docs/explanation/issue109.md"
QUESTIONS = {"alone": "one flow alone", "two": "two flows", "cubic": "one flow, one CUBIC", LATE: "a late-comer"}
LABELS = {(LATE, "share_of_goodput"): "its part of both flows' goodput"}


def _number(value: float, half: float, digits: int) -> str:
    return f"{value:.{digits}f}" + ("" if pd.isna(half) else f" ± {half:.{digits}f}")


def effects_table(table: pd.DataFrame) -> str:
    """A line for each question, buffer and metric, in Markdown: means with 95 % intervals, and differences."""
    lines = [
        "| | buffer | | every 5 s | as issue 109 | difference | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in effects(table).to_dict("records"):
        question, buffer = row["point"].split(", ")
        digits = 1 if row["unit"] == "ms" else 3
        cells = (
            QUESTIONS[question],
            buffer,
            LABELS.get((question, row["metric"]), label_of(row["metric"])),
            _number(row["a_mean"], row["a_half"], digits),
            _number(row["b_mean"], row["b_half"], digits),
            f"{row['difference']:+.{digits}f} ({row['low']:+.{digits}f} to {row['high']:+.{digits}f})",
            "moved" if row["outcome"] == MOVED else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def states_table(table: pd.DataFrame) -> str:
    """How often ProbeRTT comes, in Markdown: means over buffers and seeds."""
    means = table.groupby(["question", "reading"])[OF_STATES].mean().reset_index()
    lines = ["| | ProbeRTT | time between two (s) | in it together |", "|---|---|---|---|"]
    for row in means.to_dict("records"):
        together = "" if pd.isna(row["probe_rtt_together"]) else f"{row['probe_rtt_together']:.0%}"
        between = "" if pd.isna(row["between_probe_rtt_s"]) else f"{row['between_probe_rtt_s']:.1f}"
        lines.append(f"| {QUESTIONS[row['question']]} | {READINGS[row['reading']]} | {between} | {together} |")
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    table = runs()
    return {PAGE: page(PAGE, {"effects": effects_table(table), "states": states_table(table)})}
