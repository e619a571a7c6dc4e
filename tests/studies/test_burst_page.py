"""The burst model's page from its kept tables alone."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from bbrlab.base import paths
from bbrlab.show.execute import execute_notebook
from studies.burst_plots import what_if


@pytest.mark.slow
def test_the_page_needs_no_campaign(tmp_path, monkeypatch):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path / "nothing"))
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT))
    out = tmp_path / "out" / "burst.ipynb"
    execute_notebook(paths.ROOT / "notebooks" / "burst.ipynb", out, {"scale": "smoke", "interactive": "no"})
    page = out.read_text()
    assert page.count('"alt": "') == 6, (
        "two maps, both beside the lab, what a flow gets of 10 and of 100, one position of the sliders"
    )
    for words in ("fluid_9s", "the precautionary probe", "Who would switch?"):
        assert words in page


def test_what_if_follows_its_arguments():
    """A curve over seven buffers, and Ware's of BBRv1 alone."""
    before = plt.get_fignums()
    for cca, label, curves in (
        ("bbr3", "BBRv3", {"burst model", "equal shares"}),
        ("bbr1", "BBRv1", {"burst model", "equal shares", "Ware model"}),
    ):
        figure = what_if(cca, 2, "reno", 5, 20, seconds=10)
        (axes,) = figure.axes
        assert {line.get_label() for line in axes.lines} == curves
        assert len(axes.lines[0].get_xdata()) == 7 and axes.get_title() == f"2 {label} v 1 Reno, 5 Mbit/s, 20 ms"
    assert plt.get_fignums() == before, "the notebook shows them once"
