"""The table of docs/reference/measured.md that puts side by side all nine panels: with noise and without, before and now, ours and Google's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bbrlab.base.tables import published_table
from bbrlab.results.statistics import rms
from bbrlab.scenario.schema import PARAMETER_SETS
from docs._make import beside_google, marks
from docs._make.measured import MEASURED, SHIPPED, shipped_errors, short

NOT_MEASURED = "–"
HEADS = (
    "", "all 42 cells: before, no noise", "now, no noise", "**now, noise**", "cells with Google's code", "before, no noise", "now, no noise",
    "**now, noise**", "Google's, no noise", "Google's, noise",
)  # fmt: skip
SAME = "as before"  # of Linux's own code


def error_of(part: pd.DataFrame, side: str) -> str:
    """Root mean square difference to the published shares over the cells that there are; how many if not all."""
    away = (part[side] - part["published"]).dropna()
    if away.empty:
        return NOT_MEASURED
    return short(rms(away.to_numpy(dtype=float))) + (f" ({len(away)})" if len(away) < len(part) else "")


def table(folder: Path = SHIPPED) -> str:
    """A line for each panel, in Markdown."""
    before = published_table("questions/panels_before").set_index("figure")["rmse_of_means"]
    cells = beside_google.cells(folder)
    rows = []
    for id, errors in sorted(shipped_errors(folder).items()):
        algorithms = {flow.cca for flow in errors.figure.scenario.flows}
        part = cells[cells["figure"] == id]
        of_cells = [error_of(part, side) for side in ("before", "ours", "shipped", "google")]
        row = [
            f"{errors.figure.scenario.figure}, {errors.words}",
            short(before[id]),
            NOT_MEASURED if algorithms & set(PARAMETER_SETS) else SAME,
            f"**{short(errors.rmse_of_means(np.inf))}**",
            str(len(part) or NOT_MEASURED),
            *of_cells[:2],
            f"**{of_cells[2]}**" if len(part) else NOT_MEASURED,
            of_cells[3],
            NOT_MEASURED,
        ]
        rows.append(row)
    return "\n".join(marks.table(HEADS, rows)) + "\n"


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    return {MEASURED: marks.page(MEASURED, {"nine panels": table()})}
