"""The tables of docs/explanation/bbr_defaults.md: the readings of the drafts, and what each gave."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from docs._make.marks import page
from studies import readings

PAGE = paths.ROOT / "docs/explanation/bbr_defaults.md"


def rule_table() -> str:
    """The bounds and errors by which the rule chose."""
    lines = [
        "| | reading | `lower_bounds` | `filter_after_probe_rtt` | Mbit/s at 1 % loss | queue (RTTmin) | error, CUBIC | error, Reno | both |",
        "|---" * 9 + "|",
    ]
    for row in readings.judged().to_dict("records"):
        cells = [row["cca"], row["reading"], row["lower_bounds"], row["filter_after_probe_rtt"]]
        cells.append(f"{row['goodput_mbit']:.1f} ± {row['standard_error']:.1f}")
        cells.append("" if pd.isna(row["queue"]) else f"{row['queue']:.2f}")
        cells += ["" if pd.isna(row[key]) else f"{row[key]:.3f}" for key in ("rmse_cubic", "rmse_reno", "rmse")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def fast_table() -> str:
    """The readings at cells of 50 Mbit/s, which took no part in the choice."""
    table = readings.table_50mbit()
    lines = [f"| | reading | {' | '.join(table.columns)} |", "|---" * (2 + len(table.columns)) + "|"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in table.reset_index().to_numpy()]
    return "\n".join(lines)


def elsewhere_table() -> str:
    """How many numbers of set-ups that took no part in the choice are told apart from the default's."""
    lines = ["| | reading | paper | equal in every seed | not told apart | moved |", "|---|---|---|---|---|---|"]
    for row in readings.elsewhere().reset_index().to_dict("records"):
        cells = [row[key] for key in ("cca", "reading", "paper", "equal", "not told apart", "moved")]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """{page: its text} as it should be."""
    parts = {"rule": rule_table(), "50 Mbit/s": fast_table(), "elsewhere": elsewhere_table()}
    return {PAGE: page(PAGE, parts)}
