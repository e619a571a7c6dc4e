"""docs/explanation/crosschecks.md: the cross-checks that ship. ``python -m bbrlab.show.crosscheck_page`` writes the table anew."""

from __future__ import annotations

import pandas as pd

from bbrlab.base import files, paths
from bbrlab.show.crosscheck import WORDS, difference_words, measured_words

PAGE = paths.ROOT / "docs/explanation/crosschecks.md"
FOLDER = paths.DATA / "crosschecks"
BEGIN, END = "<!-- table: made by python -m bbrlab.show.crosscheck_page -->\n", "<!-- end of the table -->"
METRICS = {"share_of_capacity": "share of capacity", "loss": "loss", "queue_ms_mean": "queue (ms)"}


def table() -> str:
    """The table of every cross-check in data/crosschecks, in Markdown; utilisation is left out, one flow's is its share."""
    lines = []
    for path in sorted(FOLDER.glob("*.csv")):
        content = pd.read_csv(path)
        first = content.iloc[0]
        lines += [
            f"`{path.stem}`: {first['virtual_kernel']} in virtual time, {first['real_kernel']} in real time by {first['backend']} ({first['acceleration']}); {first['refused']} runs refused. "
            f"At worst, timers of one in a hundred samples came more than {first['late_ms_p99']:.2g} ms late, the processor was {first['busy']:.0%} busy, and others had {first['lost']:.1%} of its time.",
            "",
            "| | metric | virtual time | real time | difference (95 %) | |",
            "|---|---|---|---|---|---|",
        ]
        for row in content[content["metric"].isin(METRICS)].to_dict("records"):
            cells = (
                row["point"].removeprefix("case="),
                METRICS[row["metric"]],
                measured_words(row, "a"),
                measured_words(row, "b"),
                difference_words(row),
                WORDS[row["outcome"]],
            )
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def page() -> str:
    """The page as it should be. ValueError if it has no place for the table."""
    text = PAGE.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise ValueError(f"{PAGE.name} has no place for the table ({BEGIN.strip()} ... {END})")
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    files.write_text(PAGE, page())
