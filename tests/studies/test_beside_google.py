"""What runs this lab's BBR in the cells of Google's."""

from __future__ import annotations

import numpy as np
import pytest

from bbrlab.base.tables import published_table
from bbrlab.results.figures import PANEL_KEYS
from bbrlab.scenario.load import points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.schema import NO_NOISE
from studies.beside_google import SEEDS, compared, share_scenario
from studies.google_picture import draw
from studies.google_traces import index, scenario_of


@pytest.mark.parametrize("figure", sorted(published_table("google/shares")["figure"].unique()))
def test_a_panels_points_are_googles_cells_without_noise(figure):
    cells = published_table("google/shares").query("figure == @figure")
    scenario = validate(share_scenario(figure, cells), figure)
    points = points_of(scenario)
    swept = {tuple(point.values[field] for field in PANEL_KEYS) for point in points}
    assert swept == set(cells[list(PANEL_KEYS.values())].itertuples(index=False, name=None))
    assert len(points) == len(cells) and scenario.trials == SEEDS
    assert all(point.scenario.hosts.noise == NO_NOISE for point in points)


def test_a_traces_scenario_is_valid():
    for trace, row in index().items():
        scenario = validate(scenario_of(trace), trace)
        assert "; ".join(f"{flow.count} {flow.cca}" for flow in scenario.flows) in row["flows"].replace(" from 2 s", "")
        assert scenario.network.loss == row["loss"]


def test_the_picture_has_every_cell():
    table = compared()
    figure = draw(table)
    drawn = [axes.get_lines()[1].get_xdata() for axes in figure.axes]
    assert sorted(np.concatenate(drawn)) == sorted(table["google"])
