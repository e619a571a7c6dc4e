"""The fluid model's curve, one change after another, and what the models' page draws of it."""

from __future__ import annotations

from dataclasses import asdict

import matplotlib.pyplot as plt
import pytest

from bbrlab.base.tables import published_table
from bbrlab.models import fluid
from studies import taken_apart
from studies.model_plots import one_case


def test_the_changes_are_all_that_the_two_modes_differ_in():
    aligned, reference = asdict(fluid.ALIGNED), asdict(fluid.REFERENCE)
    assert set(taken_apart.CHANGES) == {name for name in aligned if aligned[name] != reference[name]}


def test_the_last_change_meets_the_published_curve():
    published = published_table("sarpkaya2025/fig2a_fluid")
    found = taken_apart.changes()
    assert found["change"].iloc[0] == "aligned"
    assert found["share"].iloc[-1] == pytest.approx(published["fluid_share"].iloc[0], abs=5e-5)
    assert found["share"].max() - found["share"].min() > 0.1, "the changes matter"


def test_the_curves_stand_side_by_side():
    published = published_table("sarpkaya2025/fig2a_fluid").head(2)
    found = taken_apart.curves(published)
    assert list(found.index) == list(published["buffer_bdp_label"])
    assert found["this code, all quirks"].tolist() == pytest.approx(found["published curve"].tolist(), abs=5e-4)


def test_a_rising_rtprop_gives_bbr_back_its_share_in_the_long_run():
    """docs/explanation/models.md: at 2 BDP this change alone is most of what separates the model from Ware et al.'s."""
    found = taken_apart.long_shares(published_table("sarpkaya2025/fig2a"), buffers_bdp=(2,))[2]
    assert found["as published"] < 0.1
    assert found["RTprop may rise"] > 0.3
    measured = published_table("sarpkaya2025/fig2a").set_index(["bbr_flows", "buffer_bdp"])["share_of_capacity"]
    assert found["published measurement"] == measured[(1, 2)]


def test_a_case_is_drawn_once():
    figure = one_case("bbr2", flows=2, buffer_bdp=4, seconds=2)
    assert not plt.fignum_exists(figure.number), "a notebook would show it twice"
    rates, queue, phase = figure.axes
    assert rates.get_title().startswith("2 BBRv2 v 1 CUBIC, 4 BDP: share 0.")
    assert [line.get_label() for line in rates.lines] == ["BBRv2", "CUBIC"]
    assert queue.lines[0].get_xdata().max() == pytest.approx(2)
