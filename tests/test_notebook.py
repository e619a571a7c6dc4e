"""What the pages' cells share: published values by the points' names, the model in the conditions run, queueing delay."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bbrlab.base.errors import UserError
from bbrlab.campaign.figures import figures_at, runs_of
from bbrlab.models import ware
from bbrlab.report import notebook
from bbrlab.report.pages import Page
from bbrlab.report.panel import Panel, in_words


@pytest.fixture
def page(tmp_path):
    """A page of Fig. 2a at smoke with tables and samples made up."""
    (figure,) = figures_at("smoke", ["sarpkaya2025/fig2a"])
    rows = []
    for run in runs_of(figure, results=tmp_path):
        run.folder.mkdir(parents=True)
        pd.DataFrame(
            {"time_s": [1.0, 1.0, 2.0], "flow": [0, 1, 0], "group": [0, 1, 0], "queue_bytes": [25000, 25000, 50000],
             "ssthresh": [9, 9, 9]}
        ).to_parquet(run.folder / "samples.parquet")  # fmt: skip
        for group, goodput in ((0, 6.0), (1, 2.0)):
            values = run.point.conditions | run.point.values
            rows.append({"point": run.point.label, "seed": run.seed, "group": group, "ok": run.seed == 1,
                         "goodput_mbit": goodput, "count": run.point.scenario.flows[group].count, **values})  # fmt: skip
    return Page("smoke", "sarpkaya2025", {"fig2a": figure}, {"fig2a": pd.DataFrame(rows)}, tmp_path)


def test_published_values_of_the_points_that_were_run(page):
    names = {"bbr_flows": "flows.0.count", "buffer_bdp": "network.buffer.bdp"}
    found = notebook.published("sarpkaya2025/fig2a", names, page.tables["fig2a"], tuple(names.values()))
    assert {(r["flows.0.count"], r["network.buffer.bdp"]) for _, r in found.iterrows()} == {
        (1, 1),
        (4, 1),
        (1, 4),
        (4, 4),
    }
    assert len(notebook.published("sarpkaya2025/fig2a")) == 42


@pytest.mark.parametrize(
    ("table", "names", "says"),
    [("nobody/fig1", {}, "nobody/fig1.csv: there is no such published table"),
     ("sarpkaya2025/fig2a", {"buffer": "x"}, "fig2a.csv: there is no column buffer")],
)  # fmt: skip
def test_what_is_not_published_is_named(table, names, says):
    with pytest.raises(UserError, match=says):
        notebook.published(table, names)


def test_the_model_takes_rate_rtt_and_flows_from_the_runs(page):
    table = page.tables["fig2a"].assign(rate_mbit=50.0, base_rtt_ms=30.0)
    found = notebook.ware_beside(table, "flows.0.count", "buffer_bdp").set_index(["flows.0.count", "buffer_bdp"])
    assert len(found) == 4
    assert found.loc[(4, 4), "share_of_capacity"] == pytest.approx(float(ware.bbr_share(50, 30, 4, 4)))
    assert found.loc[(4, 4), "share_of_capacity"] != pytest.approx(float(ware.bbr_share(10, 40, 4, 4)))


def test_part_of_both_leaves_failed_runs_out(page):
    found = notebook.part_of_both(page.tables["fig2a"])
    assert set(found["part"]) == {0.75}
    assert set(found["seed"]) == {1}
    assert set(found["group"]) == {0}


def test_samples_of_a_point_that_the_scale_lacks_are_none(page):
    assert notebook.samples_of(page, "fig2a", ["time_s"], network__buffer__bdp=64, flows__0__count=1) is None
    assert notebook.samples_of(page, "fig3a", ["time_s"]) is None
    assert len(notebook.samples_of(page, "fig2a", ["time_s"], network__buffer__bdp=4, flows__0__count=1)) == 3
    with pytest.raises(UserError, match="2 points have"):
        notebook.samples_of(page, "fig2a", ["time_s"], network__buffer__bdp=4)


def test_queueing_delay_is_backlog_over_the_scenario_s_rate(page):
    point = {"network__buffer__bdp": 4, "flows__0__count": 1}
    times, delay_ms = notebook.queueing_delay(page, "fig2a", **point)
    assert list(times) == [1, 2]
    assert list(delay_ms) == pytest.approx([20, 40])  # 25,000 bytes at 10 Mbit/s
    assert list(notebook.queueing_delay(page, "fig2a", in_rtts=True, **point)[1]) == pytest.approx([0.5, 1])
    assert notebook.queueing_delay(page, "fig2a", network__buffer__bdp=64) is None


def test_time_between_window_cuts_of_each_run(page):
    run = page.run("fig2a", seed=2, **{"network__buffer__bdp": 1, "flows__0__count": 4})
    times = [60.0, 70.0, 110.0, 150.0]
    pd.DataFrame({"time_s": times, "flow": 4, "group": 1, "ssthresh": [9, 8, 7, 6]}).to_parquet(
        run.folder / "samples.parquet"
    )
    found = notebook.between_cuts(page, "fig2a").set_index(["network.buffer.bdp", "flows.0.count", "seed"])
    assert len(found) == 8, "every point and seed"
    assert found.loc[(1, 4, 2), "between_cuts_s"] == 40
    assert np.isinf(found.loc[(1, 4, 1), "between_cuts_s"]), "no cut"


def test_a_panel_in_words():
    points = pd.DataFrame(
        {"buffer_bdp": [1, 32], "bbr_flows": [1, 1], "measured": [0.8, 0.5], "ci95": [0.01, 0.02], "runs": [3, 3],
         "published": [0.79, 0.4], "ware": [0.9, 0.44], "residual": [0.01, 0.1]}
    )  # fmt: skip
    said = in_words(Panel("sarpkaya2025/fig2a", "Fig. 2a", points, False))
    assert "1 of 2 points are within 0.05" in said
    assert "+0.100 at 1 BBR flows and 32 BDP (published 0.400, measured 0.500 ± 0.020)" in said
    assert "The Ware model is nearest at 32 BDP (-0.060 on average)" in said
    assert "farthest at 1 BDP (+0.100 on average)" in said


def test_figures_are_let_go(capsys):
    figure, _ = plt.subplots()
    notebook.show(figure)
    assert not plt.fignum_exists(figure.number)
