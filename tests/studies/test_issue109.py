"""The picture of draft issue 109."""

from __future__ import annotations

import pytest

from studies.issue109 import PANELS, issue109_picture


def test_a_panel_has_each_reading_at_each_buffer():
    grid = issue109_picture().axes
    assert [axes.get_title() for axes in grid] == [*PANELS]
    for axes in grid:
        assert [len(container.lines[0].get_xdata()) for container in axes.containers] == [2, 2]
    (against_cubic, _) = grid[0].containers
    line, _, (intervals,) = against_cubic.lines
    assert line.get_ydata() == pytest.approx([0.503, 0.309], abs=1e-3), "as the page's table has them"
    assert intervals.get_segments()[1][0][1] == 0, "a share's interval is cut at what can be"
