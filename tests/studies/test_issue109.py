"""Draft issue 109: the page's table and picture, of the runs that ship."""

from __future__ import annotations

import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.comparison.compare import MOVED
from bbrlab.results.tables import read_figure
from studies.issue109 import QUESTIONS, differences, issue109_picture, runs_by_question


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    shipped = paths.ROOT / "shipped" / "full" / "questions"
    return differences(
        runs_by_question({name: read_figure(shipped / f"{name}.parquet") for name in ("issue109", "issue109_late")})
    )


def test_the_page_has_its_numbers(found):
    page = (paths.ROOT / "docs/explanation/issue109.md").read_text(encoding="utf-8")
    made = set()
    for row in found.to_dict("records"):
        digits = 1 if row["unit"] == "ms" else 3
        a, b = (f"{row[f'{side}_mean']:.{digits}f} ± {row[f'{side}_half']:.{digits}f}" for side in "ab")
        change = f"{row['difference']:+.{digits}f} ({row['low']:+.{digits}f} to {row['high']:+.{digits}f})"
        made.add((a, b, change, "moved" if row["outcome"] == MOVED else ""))
    told = [
        tuple(cell.strip() for cell in line.split("|")[4:8])
        for line in page.splitlines()
        if "±" in line and line[0] == "|"
    ]
    assert len(told) == 19 and set(told) <= made


def test_a_late_comers_number_is_the_mean_of_its_starts(found):
    late = found[found["question"] == "late"]
    assert late["buffer_bdp"].tolist() == [1, 4, 16] and set(late["a_seeds"]) == set(late["b_seeds"]) == {10}


def test_a_panel_has_each_reading_at_each_buffer(found):
    grid = issue109_picture(found).axes
    assert [axes.get_title() for axes in grid] == [title for title, _, _ in QUESTIONS.values()]
    assert [[len(c.lines[0].get_xdata()) for c in axes.containers] for axes in grid] == [[6, 6], [6, 6], [3, 3], [6, 6]]
    assert grid[0].containers[0].lines[0].get_ydata()[-1] == pytest.approx(0.300, abs=1e-3), (
        "as the page's table has it"
    )
