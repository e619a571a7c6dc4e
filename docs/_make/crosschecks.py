"""docs/explanation/crosschecks.md: the cross-checks that ship."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab_apps.crosscheck.table import WORDS, difference_words, measured_words
from docs._make import marks

PAGE = paths.ROOT / "docs/explanation/crosschecks.md"
FOLDER = paths.DATA / "crosschecks"
METRICS = {"share_of_capacity": "share of capacity", "loss": "loss", "queue_ms_mean": "queue (ms)"}


def table() -> str:
    """The table of every cross-check in data/crosschecks, in Markdown; utilisation is left out, one flow's is its share."""
    lines = []
    for path in sorted(FOLDER.glob("*.csv")):
        content = pd.read_csv(path)
        first = content.iloc[0]
        lines += [
            f"`{path.stem}`: {first['virtual_kernel']} in virtual time, {first['real_kernel']} in real time by {first['backend']} ({first['acceleration']}); {first['refused']} runs refused. "
            f"In the worst run one sample in a hundred was more than {first['late_ms_p99']:.2g} ms late, the processor was {100 * first['busy']:.0f} % busy, and other programs had {100 * first['lost']:.1f} % of its time.",
            "",
        ]
        rows = [
            (
                row["point"].removeprefix("case="),
                METRICS[row["metric"]],
                measured_words(row, "a"),
                measured_words(row, "b"),
                difference_words(row),
                WORDS[row["outcome"]],
            )
            for row in content[content["metric"].isin(METRICS)].to_dict("records")
        ]
        heads = ("algorithm", "metric", "virtual time", "real time", "difference (95 %)", "outcome")
        lines += [*marks.table(heads, rows), ""]
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    return {PAGE: marks.page(PAGE, {"table": table()})}
