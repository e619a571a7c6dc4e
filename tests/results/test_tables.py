"""A figure's table can be written and read, whatever its scenario sweeps."""

from __future__ import annotations

import pandas as pd

from bbrlab.results.figures import figures_at
from bbrlab.results.tables import table_of_rows, write_table


def test_texts_among_numbers_are_texts(tmp_path):
    rows = [{"flows.0.links": 0, "rate": 1.5}, {"flows.0.links": "0-1", "rate": 2}, {"flows.0.links": None, "rate": 3}]
    write_table(table_of_rows(rows), tmp_path / "t.parquet")
    found = pd.read_parquet(tmp_path / "t.parquet")
    assert found["flows.0.links"].tolist()[:2] == ["0", "0-1"] and found["flows.0.links"].isna().tolist()[2]
    assert found["rate"].tolist() == [1.5, 2, 3]


def test_the_values_of_every_figure_can_be_written(tmp_path):
    """So it was not of the parking lots until 2026-11: their campaigns ended with a traceback once all runs were there."""
    figures = figures_at("full", [])
    assert len(figures) > 60
    for figure in figures:
        write_table(table_of_rows([point.values for point in figure.points]), tmp_path / "t.parquet")
