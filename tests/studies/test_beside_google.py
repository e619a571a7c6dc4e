"""What runs this lab's BBR in the cells of Google's."""

from __future__ import annotations

import pytest

from bbrlab.base.tables import published_table
from bbrlab.results.figures import PANEL_KEYS
from bbrlab.scenario.load import points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.schema import NO_NOISE
from studies.beside_google import SEEDS, scenario_of


@pytest.mark.parametrize("figure", sorted(published_table("google/shares")["figure"].unique()))
def test_a_panels_points_are_googles_cells_without_noise(figure):
    cells = published_table("google/shares").query("figure == @figure")
    scenario = validate(scenario_of(figure, cells), figure)
    points = points_of(scenario)
    swept = {tuple(point.values[field] for field in PANEL_KEYS) for point in points}
    assert swept == set(cells[list(PANEL_KEYS.values())].itertuples(index=False, name=None))
    assert len(points) == len(cells) and scenario.trials == SEEDS
    assert all(point.scenario.hosts.noise == NO_NOISE for point in points)
