"""What figures compute from samples, on numbers that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.measure.jitter import largest_by_second
from bbrlab.measure.series import goodput_series, jitter_series, whole_bin_s
from bbrlab.models.of_paper import models_of
from bbrlab.models.predict import WORLD
from bbrlab.results.figures import figures_at
from studies.figure_plots import curves
from studies.model_panels import fluid_figure


def samples() -> pd.DataFrame:
    """Four seconds, sampled twice a second: flow 0 at 8 Mbit/s, flows 1 and 2 of one group at 4 Mbit/s, the last from 2 s on."""
    rows = [(t, -1, 0, 0) for t in (0.0, 0.25)]  # instants without a flow
    for flow, group, rate_mbit, start_s in ((0, 0, 8, 0), (1, 1, 4, 0), (2, 1, 4, 2)):
        rows += [(t, flow, group, (t - start_s) * rate_mbit * 125e3) for t in np.arange(start_s, 4.5, 0.5)]
    table = pd.DataFrame(rows, columns=["time_s", "flow", "group", "bytes_acked"])
    return table.assign(snd_mss=1000, bbr_extra_acked=np.where(table["flow"] == 0, 20.0, 5.0))


def test_goodput_by_flow_and_by_group():
    by_flow = goodput_series(samples(), 1.0)
    assert sorted(by_flow) == [0, 1, 2]
    begins, goodput = by_flow[0]
    assert list(begins) == [0, 1, 2, 3], "the last bin is not whole"
    assert goodput[1:] == pytest.approx(8)
    assert np.isnan(goodput[0]), "nothing to compare the first bin with"
    begins, goodput = goodput_series(samples(), 1.0, "group")[1]
    assert list(begins) == [0, 1, 2, 3]
    assert goodput[1:] == pytest.approx([4, 4, 8]), "the sum over the flows that are there"


def test_the_largest_estimate_of_jitter_is_of_a_whole_second():
    """Ten samples a second; 8 ms at 100 Mbit/s, but 24 ms in second 3 and, outside of the window's whole seconds, 80 ms."""
    times = np.arange(0, 6.01, 0.1)
    acked = np.round(times * 12.5e6).astype(int)
    extra = np.select([times < 0.95, (times > 2.95) & (times < 3.95)], [1e6, 3e5], 1e5)
    assert largest_by_second(times, extra, acked, [1, 6]) == pytest.approx(24)
    assert largest_by_second(times, extra, acked, [4, 6]) == pytest.approx(8)
    assert largest_by_second(times, extra, acked, [0.5, 2]) == pytest.approx(8), "its first whole second begins at 1 s"
    assert np.isnan(largest_by_second(times, extra, acked * 0, [1, 6])), "nothing was delivered"
    assert np.isnan(largest_by_second(times, extra, acked, [1.2, 1.8])), "there is no whole second"


def test_jitter_is_extra_acked_over_goodput():
    found = jitter_series(samples(), 1.0)
    assert found[0][1][1:] == pytest.approx(20), "20 segments of 8 kbit at 8 Mbit/s"
    assert found[1][1][1:] == pytest.approx(10)
    stalled = samples().assign(bytes_acked=0)
    assert np.isnan(jitter_series(stalled, 1.0)[0][1]).all()


def test_whose_fluid_predictions_stand_beside_a_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path)
    assert fluid_figure("a/fig1") == "a/fig1", "no file: its own"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "models.yaml").write_text("fluid_of: {fig5: fig3}\n")
    assert (fluid_figure("a/fig5"), fluid_figure("a/fig1")) == ("a/fig3", "a/fig1")
    (tmp_path / "a" / "models.yaml").write_text("fluid_of: [fig5]\n")
    with pytest.raises(UserError, match=r"models\.yaml: fluid_of"):
        fluid_figure("a/fig5")


def test_every_stand_in_is_a_figure_that_the_fluid_model_describes():
    figures = {f.id: f for f in figures_at("full", [])}
    papers = [file.parent.name for file in paths.DATA.glob("*/models.yaml")]
    names = [f"{paper}/{name}" for paper in papers for name in models_of(paper).fluid_of]
    assert names
    for name in names:
        of = figures[fluid_figure(name)]
        assert WORLD.describes(of.scenario)
        assert [p.values for p in of.points] == [p.values for p in figures[name].points]


def test_a_curve_without_a_label_has_the_metrics():
    table = pd.DataFrame({"group": 0, "ok": True, "x": [1, 2], "queue_ms_mean": [3.0, 4.0]})
    assert curves(table, "x", "queue_ms_mean").get_supylabel() == "queueing delay (ms)"
    assert curves(table, "x", "queue_ms_mean", labels=("", "own")).get_supylabel() == "own"


@pytest.mark.parametrize("hz", [7, 10, 12.5, 50])
def test_a_steady_flow_is_drawn_steady_whatever_its_samples_times(hz):
    """Each bin has as many samples, though none is stamped exactly at its instant."""
    times = np.arange(1000) / hz + np.where(np.arange(1000) % 3, 5e-7, -7e-4)
    steady = pd.DataFrame({"time_s": times, "flow": 0, "group": 0, "bytes_acked": 1000.0 * np.arange(1000)})
    _, goodput = goodput_series(steady, whole_bin_s(1000 / hz, hz, 300))[0]
    assert len(goodput) <= 300
    assert goodput[1:] == pytest.approx(8e-3 * hz)
