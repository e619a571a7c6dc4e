"""Curves of chosen runs: which ones, how they are thinned, what ships, and what is drawn of them. No guest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.claims.select import full_figures
from bbrlab.comparison import differences
from bbrlab.comparison.expected_runs import ShippedResults
from bbrlab.results import curves
from bbrlab.results.algorithm_table import OTHER_COLOURS, colour_of_cca
from bbrlab.results.curves import POINTS, choices, curves_of_figure, curves_of_point, file_of, thinned
from bbrlab.results.figures import Figure, figures_at
from bbrlab.results.shipped import ShownResults
from bbrlab_apps.shipping.shipped_folder import replace_shipped
from bbrlab_apps.site.curve_pictures import Curves, curves_shown, name_once, pictures_of
from bbrlab_apps.site.pages import _over_time
from studies.curve_plots import drawn
from tests.made_up_runs import made_up_run

ID = "tang/fig2"


def the_figure(id: str = ID, scale: str = "full") -> Figure:
    (figure,) = figures_at(scale, [id])
    return figure


def run_all(results: Path, id: str = ID, scale: str = "full") -> Figure:
    """Made-up runs, of seed 1, of a figure's chosen points."""
    figure = the_figure(id, scale)
    for point in choices()[id].points_of(figure):
        made_up_run(point, 1, results / "runs" / id / point.label / "seed-1")
    return figure


def of(results: Path, id: str = ID, scale: str = "full") -> Curves:
    figure = run_all(results, id, scale)
    table = curves_of_figure(choices()[id], figure, results / "runs")
    assert table is not None
    return Curves(choices()[id], figure, scale, table)


def test_every_choice_is_of_a_figure_and_of_points_that_are_there():
    for id, choice in choices().items():
        assert id in full_figures(), id
        figure = full_figures()[id]
        assert choice.points_of(figure), id
        assert choice.together is None or choice.together in figure.points[0].traits, id
        for trait, values in choice.points.items():
            there = [point.traits.get(trait) for point in figure.points]
            assert all(value in there for value in values), f"{id}: {trait}"


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{figures: [a/b], because: x}", "has neither over_time nor distribution"),
        ("{figures: [a/b], over_time: [gudput], because: x}", "gudput: there is no such curve"),
        ("{figures: [a/b, a/b], over_time: [cwnd], because: x}", "a/b is there twice"),
        ("{figures: [a/b], over_time: [cwnd]}", "because"),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_named(tmp_path, entry, says):
    (tmp_path / "curves.yaml").write_text(f"- {entry}\n", encoding="utf-8")
    with pytest.raises(UserError, match=says):
        choices(tmp_path / "curves.yaml")


def test_no_peak_is_lost_in_a_thinned_curve():
    values = np.zeros(100_000)
    values[777] = 5
    times, kept = thinned(np.arange(100_000.0), values, 1500)
    assert len(kept) <= 1500 and kept.max() == 5 and times[kept.argmax()] == 777


def test_a_run_has_at_most_so_many_points_and_the_same_ones_each_time(tmp_path):
    figure = run_all(tmp_path)
    (point, _) = figure.points
    samples = tmp_path / "runs" / ID / point.label / "seed-1" / "samples.parquet"
    first, again = (curves_of_point(choices()[ID], point, samples) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    sizes = first.groupby("curve").size()
    assert set(sizes.index) == {"goodput", "rtt", "queue_packets", "cwnd"}
    assert sizes.max() == POINTS, "1,000 samples are thinned"
    goodput = first[first["curve"] == "goodput"]
    shares = pd.read_parquet(samples)["bytes_acked"].iloc[-1] * 8e-6 / 99.9
    assert goodput["y"].iloc[1:].to_numpy() == pytest.approx(shares, rel=1e-3)


def test_a_distribution_is_of_the_window_and_ends_at_one(tmp_path):
    """60 s of 10 samples a second, of which those from 20 s on count: a cosine, whose median is its middle."""
    table = of(tmp_path, "bless2025/fig5").table
    one = table[table["point"] == table["point"].iloc[0]]
    assert len(one) == 400 and one["y"].iloc[-1] == 1 and one["x"].is_monotonic_increasing
    middle = one["x"][one["y"] >= 0.5].iloc[0]
    assert middle == pytest.approx(5000 * 8e-5, rel=0.05), "5,000 bytes at 100 Mbit/s"
    many = np.random.default_rng(1).normal(size=5000)
    x, y = curves._distribution(many)
    assert len(x) == POINTS and y[-1] == 1 and x[-1] == many.max()
    assert x[POINTS // 2] == pytest.approx(np.median(many), abs=0.01)


def test_points_of_one_picture_are_drawn_over_each_other_with_the_colours_of_their_algorithms(tmp_path):
    (picture,) = pictures_of(of(tmp_path))
    assert [panel["label"] for panel in picture.panels][:2] == ["goodput (Mbit/s)", "RTT (ms)"]
    assert [line["name"] for line in picture.panels[0]["lines"]] == ["BBRv1", "CUBIC"]
    legends = [[line["legend"] for line in panel["lines"]] for panel in picture.panels]
    assert legends == [[True, True], *[[False, False]] * 3], "said once"
    figure = drawn(picture)
    assert [axes.get_ylabel() for axes in figure.axes][-1] == "cwnd\n(packets)"
    assert figure.axes[-1].get_xlabel() == "virtual time (s)"
    plt.close("all")


def test_lines_of_one_algorithm_have_names_and_colours_of_their_own(tmp_path):
    pictures = pictures_of(of(tmp_path, "tang/sec5c"))
    assert [picture.title for picture in pictures] == ["base RTT of group 1 20 ms", "base RTT of group 1 100 ms"]
    lines = pictures[0].panels[0]["lines"]
    assert [line["name"] for line in lines] == ["BBRv1, RTT 20 ms", "BBRv1, RTT 200 ms"]
    assert lines[0]["colour"] == colour_of_cca("bbr1") and lines[1]["colour"] in OTHER_COLOURS


def test_a_line_that_one_panel_alone_has_repeats_no_other_name():
    """The estimates of bandwidth have a sum, so that their panel named the flows again."""
    one, two, total, queue = ({"name": name, "colour": name} for name in ("one", "two", "their sum", "queue"))
    panels = [{"lines": [{**line} for line in lines]} for lines in ([one, two], [one, two, total], [queue])]
    name_once(panels)
    assert [[line["legend"] for line in panel["lines"]] for panel in panels] == [[True, True], [False, False, True], [True]]  # fmt: skip
    alone = [{"lines": [{**one}]}]
    name_once(alone)
    assert not alone[0]["lines"][0]["legend"], "nothing to be told apart"


def test_a_queue_has_its_full_buffer_and_another_unit_where_the_paper_has(tmp_path):
    (picture,) = pictures_of(of(tmp_path / "a", "sarpkaya2025/fig2a"))
    queue = picture.panels[1]
    assert queue["label"] == "queue (ms)"
    assert [line["name"] for line in queue["lines"]] == ["queue"], "160 ms of buffer are far above 5 ms of queue"
    assert max(queue["lines"][0]["y"]) == pytest.approx(6000 * 8e-4, rel=0.01)
    (picture,) = pictures_of(of(tmp_path / "b", "bless2025/fig4"))
    assert picture.panels[0]["label"] == "queue (base RTTs)"
    assert max(picture.panels[0]["lines"][0]["y"]) == pytest.approx(6000 * 8e-5 / 50, rel=0.01)
    assert min(picture.panels[0]["lines"][0]["x"]) >= 40, "twenty seconds"


def ship(folder: Path, results: Path) -> None:
    """What ships of two runs, as far as curves need it."""
    figure = run_all(results)
    runs = pd.DataFrame(
        [
            {"figure": ID, "point": point.label, "seed": 1, "summary_sha256": "s", "commit": "c", "short_flows_sha256": None,
             "samples_sha256": files.sha256(results / "runs" / ID / point.label / "seed-1" / "samples.parquet")}
            for point in figure.points
        ]
    )  # fmt: skip
    folder.mkdir()
    table = curves_of_figure(choices()[ID], figure, results / "runs")
    assert table is not None
    content = {"runs.parquet": runs, "checks.parquet": pd.DataFrame({"figure": [ID]}), file_of(ID): table}
    manifest = {
        "format": 3,
        "scale": "full",
        "figures": {ID: 2},
        "commits": {"c": 2},
        "versions": [],
        "libraries": {},
        "failed": [],
    }
    replace_shipped(folder / "full", content, manifest)


def test_curves_that_ship_are_small_and_are_shown(tmp_path):
    results, folder = tmp_path / "results", tmp_path / "shipped"
    ship(folder, results)
    assert (folder / "full" / file_of(ID)).stat().st_size < 100_000
    shown = curves_shown(ShownResults(folder, "full", True, ""), ID, "quick")
    assert shown is not None and shown.scale == "full", "of another scale, where that has some"
    own = curves_shown(ShownResults(results, "full", False, ""), ID, "full")
    assert own is not None
    pd.testing.assert_frame_equal(own.table, shown.table, check_dtype=False)


def test_verify_finds_curves_that_are_not_of_their_run(tmp_path):
    results, folder = tmp_path / "results", tmp_path / "shipped"
    ship(folder, results)
    key = (ID, the_figure().points[0].label, 1)
    expected = ShippedResults(folder, "full", {ID: the_figure()}).expected(key)
    assert expected.curves is not None
    run = results / "runs" / ID / key[1] / "seed-1"
    assert differences._unequal_curves(expected, run) == []
    edited = expected.curves.assign(y=expected.curves["y"].where(expected.curves.index != 5, 1.25))
    (problem,) = differences._unequal_curves(replace(expected, curves=edited), run)
    assert problem.file == file_of(ID) and "bbrlab ship --add tang/fig2" in problem.what


def test_a_figure_that_is_packed_anew_loses_its_old_curves():
    assert curves.figure_of("tang/fig2.curves.parquet") == curves.figure_of("tang/fig2.parquet") == ID


@pytest.mark.parametrize(("id", "first"), [("tang/fig3", True), ("sarpkaya2025/fig2a", False), ("tang/fig4", False)])
def test_a_figure_whose_points_all_have_their_run_drawn_begins_with_these(tmp_path, id, first):
    """Bless et al.'s Fig. 4 began with a chart of two dots, Tang's Fig. 3 with a line between two."""
    if id in choices():
        run_all(tmp_path, id)
    shown = SimpleNamespace(shown=ShownResults(tmp_path, "full", False, ""), scales={id: "full"})
    assert _over_time(shown, the_figure(id))["runs_first"] is first  # type: ignore[arg-type]
    text = (paths.ROOT / "bbrlab_apps/site/templates/paper.md").read_text(encoding="utf-8")
    assert text.index("if figure.runs_first") < text.index("parts.chart(figure)")
