"""Draft issue 109: the page's table and picture, of the runs that ship."""

from __future__ import annotations

import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.results.tables import read_figure
from studies.issue109 import QUESTIONS, differences, issue109_picture, page_rows, runs_by_question

WORDS = {
    "utilisation": "utilisation", "median queueing delay (ms)": "queue_ms_p50", "share of capacity": "share_of_capacity",
    "Jain's index": "jain_index_all", "its part of both flows' goodput": "share_of_goodput",
    "one flow alone": "alone", "two flows": "two", "one flow, one CUBIC": "cubic", "a late-comer": "late",
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    shipped = paths.ROOT / "shipped" / "full" / "questions"
    return differences(
        runs_by_question({name: read_figure(shipped / f"{name}.parquet") for name in ("issue109", "issue109_late")})
    )


def test_the_page_has_its_numbers(found):
    page = (paths.ROOT / "docs/explanation/issue109.md").read_text(encoding="utf-8")
    question, metric, of_page = "", "", []
    for line in page.splitlines():
        if line.startswith("|") and "±" in line:
            who, what, *numbers = (cell.strip() for cell in line.split("|")[1:-1])
            question, metric = WORDS.get(who, question), WORDS.get(what, metric)
            of_page.append((question, metric, *numbers))
    rows = page_rows(found)
    assert len(of_page) == 23 and [row for row in of_page if row not in rows] == []
    shares = found[(found["metric"] == "share_of_capacity") & (found["buffer_bdp"] >= 2)]["difference"]
    assert f"by {shares.min():.2f} to {shares.max():.2f} of the link" in page
    assert set(found[(found["question"] == "cubic") & (found["buffer_bdp"] >= 2)]["outcome"]) == {"moved"}


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
