"""``bbrlab plot``, ``bbrlab compare RUN RUN`` and ``bbrlab list``, on made-up runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Picture
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.claims.expected import Expected
from bbrlab.claims.load import FILE_NAME as CLAIMS
from bbrlab.cli.commands import app
from bbrlab.measure.bbr_record import STATES
from bbrlab.results.algorithm_table import COLOURS, OTHER_COLOURS, OWN_COLOUR
from bbrlab.results.figures import Figure
from bbrlab.results.series import ACK_RTT, SERIES
from bbrlab.scenario.load import points_of
from bbrlab.scenario.messages import validate
from bbrlab_apps.study import draw_runs
from bbrlab_apps.study.plan import Study
from bbrlab_apps.study.plot import Wish, plot, save
from bbrlab_apps.study.sources import PointsSource, source_of
from bbrlab_apps.study.table import study_table, write_tables
from tests.conftest import scenario_dict
from tests.made_up_runs import made_up_run
from tests.show.colours import apart

FLOWS = [{"cca": "bbr3"}, {"cca": "cubic"}]
Made = Callable[..., Study]


@pytest.fixture
def made(tmp_path, monkeypatch) -> Made:
    """Makes a study of two seeds in a folder of the working folder."""
    monkeypatch.chdir(tmp_path)

    def make(name: str = "exp1", bad: bool = False, **changes: Any) -> Study:
        scenario = validate(scenario_dict(**({"flows": FLOWS, "name": name} | changes)), "test")
        study = Study(Figure(f"none/{name}", scenario, points_of(scenario), 2), Path(name))
        for run in study.runs:
            made_up_run(run.point, run.seed, run.folder, ok=not bad)
        write_tables(study, study_table(study))
        return study

    yield make  # type: ignore[misc]
    plt.close("all")


def draw(*words: str, **wish: Any) -> Picture:
    return plot(source_of(words), Wish(**wish))[0]


def texts(picture: Picture) -> list[str]:
    return [text.get_text() for text in picture.findobj(plt.Text) if text.get_text().strip()]


def titles(picture: Picture) -> list[str]:
    return [axes.get_title() for axes in picture.axes if axes.get_visible()]


def run_folder(study: Study, number: int = 0) -> str:
    return str(study.runs[number].folder)


# --- points --------------------------------------------------------------------------------------------------------------


def test_a_folder_alone_gives_the_shares_over_the_first_swept_field(made):
    made(sweep={"network.buffer.bdp": [1, 2, 8], "network.qdisc.kind": ["fifo", "fq_codel"]})
    picture = draw("exp1")
    assert titles(picture) == ["queue discipline = fifo", "queue discipline = fq_codel"], "as the scenario has them"
    said = texts(picture)
    assert {
        "buffer (BDP)",
        "share of capacity",
        "BBRv3",
        "CUBIC",
        "exp1: means over 2 seeds, bars: 95 % intervals",
    } <= set(said)
    first = picture.axes[0].containers[0]
    assert list(first.lines[0].get_xdata()) == [1, 2, 8]
    assert first.lines[0].get_ydata() == pytest.approx([0.165, 0.215, 0.515])
    assert to_hex(first.lines[0].get_color()).upper() == "#009E73", "BBRv3's colour"


def test_names_have_no_line_between_them(made):
    made(sweep={"network.qdisc.kind": ["fifo", "fq_codel"]})
    axes = draw("exp1").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["fifo", "fq_codel"]
    assert all(line.lines[0].get_linestyle() == "None" for line in axes.containers)


def test_algorithms_that_are_swept_are_the_colours(made):
    made(flows=[{"cca": "bbr1"}], sweep={"flows.0.cca": ["bbr1", "bbr3", "cubic"], "network.buffer.bdp": [1, 4]})
    picture = draw("exp1")
    assert titles(picture) == [""], "the algorithm is told once: by the colour, and by no panel"
    assert {"BBRv1", "BBRv3", "CUBIC"} <= set(texts(picture))
    table = source_of(["exp1"]).table.replace({"flows.0.cca": {"cubic": "mine"}, "cca": {"cubic": "mine"}})
    picture = plot(replace(source_of(["exp1"]), table=table), Wish(x="bdp", hue="flows.0.cca"))[0]
    colours = [to_hex(bars.lines[0].get_color()) for bars in picture.axes[0].containers]
    assert colours == [c.lower() for c in (COLOURS["bbr1"], COLOURS["bbr3"], OTHER_COLOURS[0])], "beside one's own, too"


@pytest.mark.parametrize("kind", ["line", "box", "cdf", "heat"])
def test_algorithms_may_be_asked_for_as_the_colours(made, kind):
    made(sweep={"network.buffer.bdp": [1, 4]})
    picture = draw("exp1", kind=kind, hue="cca", y=["rtt" if kind == "cdf" else "share_of_capacity"])
    assert {"BBRv3", "CUBIC"} <= set(texts(picture)) and not any("BBRv3" in title for title in titles(picture))


def test_the_names_beside_a_map_are_those_of_its_rows(made):
    made(flows=[{"cca": "bbr3"}, {"cca": "bbr3"}, {"cca": "cubic"}], sweep={"network.buffer.bdp": [1, 4]})
    picture = draw("exp1", kind="heat", hue="cca", y=["share_of_capacity"])
    assert [label.get_text() for label in picture.axes[0].get_yticklabels()] == ["CUBIC", "BBRv3"]
    assert [axes.collections[0].get_array().shape for axes in picture.axes[:3]] == [(2, 2)] * 3


def test_algorithms_that_are_swept_are_no_axis_while_there_is_another_field(made):
    made(flows=[{"cca": "bbr1"}], sweep={"flows.0.cca": ["bbr1", "bbr3"], "network.buffer.bdp": [1, 4]})
    picture = draw("exp1", y=["queue_ms_mean"])
    assert {"buffer (BDP)", "algorithm of flows.0", "BBRv1", "BBRv3"} <= set(texts(picture))
    assert [label.get_text() for label in picture.axes[0].get_xticklabels()] == ["1", "4"]


def test_what_is_no_algorithm_has_no_algorithms_colour(made):
    made(sweep={"network.qdisc.kind": ["fifo", "red"], "network.buffer.bdp": [1, 4]})
    axes = draw("exp1", x="bdp", y=["queue_ms_mean"], hue="qdisc.kind").axes[0]
    assert [to_hex(bars.lines[0].get_color()) for bars in axes.containers] == [c.lower() for c in OTHER_COLOURS[:2]]


def test_two_groups_of_one_algorithm_are_told_apart(made):
    made(flows=[{"cca": "bbr3"}, {"cca": "bbr3", "rtt_ms": 80}], sweep={"flows.1.rtt_ms": [40, 80, 160]})
    assert {"BBRv3 (flows.0)", "BBRv3 (flows.1)", "base RTT of BBRv3 (ms)"} <= set(texts(draw("exp1")))
    curves = draw("exp1", kind="cdf", y=["rtt"]).axes[0].lines
    assert len({to_hex(curve.get_color()) for curve in curves}) == 2, "a distribution has no markers"


@pytest.mark.parametrize("kind", ["line", "cdf"])
def test_groups_of_one_algorithm_in_two_runs_are_told_apart_as_the_legend_says(made, kind):
    study = made(flows=[{"cca": "bbr3"}, {"cca": "bbr3", "rtt_ms": 80}, {"cca": "bbr3", "rtt_ms": 90}])
    picture = draw(run_folder(study, 0), run_folder(study, 1), kind=kind, y=["rtt"])
    looks = [(to_hex(curve.get_color()), str(curve.get_linestyle())) for curve in picture.axes[0].lines]
    assert len(looks) == len(set(looks)) == 6
    (legend,) = picture.legends
    names = dict(zip([text.get_text() for text in legend.texts], legend.get_lines(), strict=True))
    assert list(names) == ["BBRv3 (flows.0)", "BBRv3 (flows.1)", "BBRv3 (flows.2)", "seed = 1", "seed = 2"]
    assert {to_hex(line.get_color()) for line in list(names.values())[:3]} == {colour for colour, _ in looks}
    assert {str(line.get_linestyle()) for line in list(names.values())[3:]} == {dashes for _, dashes in looks}


def test_a_legend_of_runs_with_other_groups_has_each_colour(made):
    one = made(flows=[{"cca": "bbr3"}, {"cca": "bbr3", "rtt_ms": 80}])
    other = made(name="exp2", flows=[{"cca": "bbr3"}, *[{"cca": "bbr3", "rtt_ms": rtt} for rtt in (80, 90, 99)]])
    picture = draw(run_folder(one), run_folder(other), y=["rtt"])
    (legend,) = picture.legends
    told = [to_hex(line.get_color()) for line in legend.get_lines()[:-2]]
    assert len(told) == 4 and set(told) == {to_hex(curve.get_color()) for curve in picture.axes[0].lines}


def test_a_long_name_at_an_axis_is_folded(made):
    study = made(sweep={"network.buffer.bdp": [1, 4], "network.qdisc.kind": ["fifo", "red"]})
    source = replace(source_of(["exp1"]), table=study_table(study).assign(bbr_jitter_ms_max=1.0))
    picture = plot(source, Wish(y=["bbr_jitter_ms_max"]))[0]
    picture.canvas.draw()
    (name,) = [text for text in picture.findobj(plt.Text) if "jitter" in text.get_text()]
    extent = name.get_window_extent()
    assert extent.y0 >= 0 and extent.y1 <= picture.bbox.height


def test_states_say_of_which_group_they_are(made):
    study = made(flows=[{"cca": "bbr3"}, {"cca": "bbr3", "rtt_ms": 80}])
    strips = draw(run_folder(study), y=["state"]).axes[-1]
    assert [label.get_text() for label in strips.get_yticklabels()] == ["BBRv3 (flows.0)", "BBRv3 (flows.1)"]


@pytest.mark.parametrize("vision", ["normal", "deuteranopia", "protanopia"])
def test_no_state_looks_like_another_nor_like_a_flow_or_a_link(vision):
    states = draw_runs.STATE_COLOURS
    assert tuple(states) == STATES
    for one, other in combinations(states, 2):
        assert apart(states[one], states[other], vision) > 12, (one, other)
    for (state, colour), line in product(states.items(), [*COLOURS.values(), OWN_COLOUR, *OTHER_COLOURS]):
        assert apart(colour, line, vision) > 12, (state, line)


def test_windows_of_a_run_are_named_by_their_seconds(made):
    made(sweep={"window_s": [[2, 5], [6, 10]], "network.rtt_ms": [20, 40]})
    axes = draw("exp1").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2–5", "6–10"]
    assert "window (s)" in texts(draw("exp1"))
    assert titles(draw("exp1", kind="box", x="rtt_ms")) == ["window 2–5 s", "window 6–10 s"]
    assert titles(draw("exp1", kind="cdf", hue="rtt_ms", where={"window_s": "[2, 5]"})) == [""]


def test_an_interval_ends_at_what_can_be(made):
    study = made(sweep={"network.buffer.bdp": [1, 16]})
    table = study_table(study)
    first = table["seed"] == 1
    for metric in ("share_of_capacity", "loss"):
        table[metric] = np.where(first, 0.9, 0.1)
    source = replace(source_of(["exp1"]), table=table)
    for metric in ("share_of_capacity", "loss"):
        axes = plot(source, Wish(y=[metric]))[0].axes[0]
        ends = [y for bars in axes.containers for path in bars.lines[2][0].get_paths() for y in path.vertices[:, 1]]
        assert (min(ends), max(ends)) == (0, 1)
        assert axes.get_ylim() == (0, pytest.approx(1.08))


def test_a_legend_has_what_any_panel_has(made):
    cases = {"alone": {"flows": [{"cca": "bbr3"}]}, "both": {"flows": [{"cca": "bbr3"}, {"cca": "cubic"}]}}
    made(cases=cases, sweep={"network.buffer.bdp": [1, 4]})
    assert {"BBRv3", "CUBIC", "equal share"} <= set(texts(draw("exp1")))


SEVERAL = [{"cca": "bbr3"}, {"cca": "cubic", "count": 2}]


def test_groups_of_several_flows_are_counted_and_sums_are_called_sums(made):
    made(flows=SEVERAL, sweep={"network.buffer.bdp": [1, 4]})
    assert {"1 BBRv3", "2 CUBIC", "share of capacity\nsum of flows"} <= set(texts(draw("exp1")))
    assert {"share of capacity, sum of flows"} <= set(texts(draw("exp1", kind="cdf", y=["share_of_capacity"])))
    assert "smoothed RTT (ms)" in texts(draw("exp1", y=["rtt_ms_mean"])), "a mean"
    made(name="exp2", flows=FLOWS, sweep={"flows.1.count": [1, 2, 8]})
    assert {"1 BBRv3", "1 to 8 CUBIC"} <= set(texts(draw("exp2")))


def _equal_shares(picture: Picture) -> set[float]:
    """Where dashes are drawn."""
    axes = picture.axes[0]
    lines = [line for line in axes.lines if line.get_linestyle() == "--" and len(line.get_ydata())]
    drawn = [y for line in lines for y in line.get_ydata()]
    drawn += [
        y
        for part in axes.collections
        if part.get_zorder() == 1
        for path in part.get_paths()
        for y in path.vertices[:, 1]
    ]
    return {round(float(y), 3) for y in drawn}


@pytest.mark.parametrize("swept", [{"network.buffer.bdp": [1, 4]}, {"network.qdisc.kind": ["fifo", "fq_codel"]}])
def test_of_shares_the_equal_one_is_drawn(made, swept):
    made(flows=SEVERAL, sweep=swept)
    assert _equal_shares(draw("exp1")) == {0.317, 0.633} and "equal share" in texts(draw("exp1"))
    assert _equal_shares(draw("exp1", y=["rtt_ms_mean"])) == set()
    assert _equal_shares(draw("exp1", where={"flows": "CUBIC"})) == {0.633}, "of the run, not of what is drawn"
    made(name="exp2", sweep=swept)
    assert _equal_shares(draw("exp2")) == {0.475}, "half of the 0.95 that both carry, not of the nominal rate"
    made(name="exp3", flows=FLOWS[:1], sweep=swept)
    assert "equal share" not in texts(draw("exp3")), "a flow alone has nobody to share with"


def test_flows_share_with_those_of_their_direction_and_on_one_link(made):
    swept = {"network.buffer.bdp": [1, 4]}
    made(flows=[*FLOWS, {"cca": "cubic", "direction": "reverse"}], sweep=swept)
    table = source_of(["exp1"]).table
    forward = table[table["direction"] == "forward"].groupby(["network.buffer.bdp", "seed"])["share_of_capacity"].sum()
    assert _equal_shares(draw("exp1", where={"group": 0})) == set((forward / 2).groupby(level=0).mean().round(3))
    assert "equal share" not in texts(draw("exp1", where={"group": 2})), "alone in its direction"
    source = source_of(["exp1"])
    several = replace(source, table=source.table.assign(share_of_capacity=0.8))
    assert "equal share" not in texts(plot(several, Wish())[0]), "more than one link carries"


def test_flows_that_end_by_themselves_have_no_equal_share(made):
    made(flows=[{"cca": "bbr3"}, {"cca": "cubic", "bytes": 100000}], sweep={"network.buffer.bdp": [1, 4]})
    assert "equal share" not in texts(draw("exp1"))


def test_lines_on_an_axis_of_numbers_stand_beside_each_other(made):
    made(sweep={"network.buffer.bdp": [1, 2, 8]})
    picture = draw("exp1")
    picture.canvas.draw()
    for part in ("lines", "bars"):
        one, two = (
            (c.lines[0] if part == "lines" else c.lines[2][0]).get_transform().transform((2, 0.5))
            for c in picture.axes[0].containers
        )
        assert 4 < (two[0] - one[0]) / picture.dpi * 72 < 6 and one[1] == two[1], part


def test_points_may_be_chosen_by_all_that_the_message_lists(made):
    made(flows=SEVERAL, sweep={"network.buffer.bdp": [1, 4]})
    for where in ({"flows": "CUBIC"}, {"cca": "cubic"}, {"group": 1}):
        said = texts(draw("exp1", where=where))
        assert "2 CUBIC" in said and "1 BBRv3" not in said
    with pytest.raises(UserError, match=r"there are network\.buffer\.bdp, flows, cca, group, rate_mbit, .*random_loss"):
        draw("exp1", where={"colour": 1})


def test_a_metric_of_the_run_is_drawn_once(made):
    made(sweep={"network.buffer.bdp": [1, 4]})
    axes = draw("exp1", y=["queue_ms_mean"]).axes[0]
    assert len(axes.containers) == 1
    assert axes.containers[0].lines[0].get_ydata() == pytest.approx([11.5, 41.5])


def test_of_a_published_figure_what_its_claims_read_is_drawn(made):
    made(sweep={"network.buffer.bdp": [1, 4]})
    figure = replace(source_of(["exp1"]), name="bless2025/fig6", claims_file=paths.DATA / "bless2025" / CLAIMS)
    assert "queueing delay (ms)" in texts(plot(figure, Wish())[0])


def test_a_published_figure_is_drawn_as_on_its_page(made):
    """Its numbers of which there are most are the axis, and its cases have words."""
    cases = {"per-packet-1ms": {"flows.0.rtt_ms": 30}, "quiet": {"flows.0.rtt_ms": 40}}
    made(cases=cases, sweep={"network.buffer.bdp": [1, 4], "network.rate_mbit": [2, 4, 8]})
    figure = replace(source_of(["exp1"]), name="bless2025/fig7", claims_file=paths.DATA / "bless2025" / CLAIMS)
    said = texts(plot(figure, Wish(y=["queue_ms_mean"]))[0])
    assert "rate (Mbit/s)" in said and any("1 ms per packet" in text for text in said)
    assert not any("per-packet" in text for text in said)
    assert "buffer (BDP)" in texts(draw("exp1", y=["queue_ms_mean"])), "of a study of one's own the first field is"


def test_a_legend_of_long_names_is_whole_and_numbers_at_an_axis_are_apart(made):
    """Of Fig. 14 the first and the last name were cut, and buffers in bytes ran into each other."""
    cases = {f"a-name-of-{i}-letters": {"flows.0.start_s": i / 4} for i in range(6)}
    made(cases=cases, sweep={"network.buffer.bytes": [125662 * i for i in range(1, 8)]})
    picture = draw("exp1", y=["queue_ms_mean"])
    picture.canvas.draw()
    legend = picture.legends[0].get_window_extent()
    assert legend.x0 >= 0 and legend.x1 <= picture.bbox.width
    panels = draw(
        "exp1", y=["share_of_capacity"], where={"case": "a-name-of-0-letters"}, x="network.buffer.bytes", hue="seed"
    )
    panels.canvas.draw()
    for axes in panels.axes:
        extents = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        assert all(one.x1 < other.x0 for one, other in pairwise(extents))


def test_numbers_that_an_axis_cannot_tell_apart_stand_at_even_distances(made):
    made(sweep={"network.rtt_ms": [40, 40.1, 40.2, 80, 80.1, 80.2]})
    axes = draw("exp1").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["40", "40.1", "40.2", "80", "80.1", "80.2"]
    assert [round(x) for x in axes.containers[0].lines[0].get_xdata()] == [0, 1, 2, 3, 4, 5]


def test_of_a_published_figure_the_published_values_are_drawn(made, monkeypatch):
    study = made(sweep={"network.buffer.bdp": [1, 4]})
    one, other = study.figure.points
    expected = {(one.label, 0): Expected(0.3, None, None, "X-1"), (other.label, 0): Expected(None, 0.2, 0.6, "X-2")}
    monkeypatch.setattr(PointsSource, "expected", lambda self, metric: expected)
    picture = draw("exp1")
    circles = [line for line in picture.axes[0].lines if line.get_markerfacecolor() == "none" and len(line.get_ydata())]
    (points,) = [list(zip(*c.get_data(), strict=True)) for c in circles]
    assert [point for point in points if not np.isnan(point[1])] == [(1, 0.3)], (
        "what a claim gives a range of has no circle"
    )
    bands = [path.vertices.tolist() for c in picture.axes[0].collections if c.get_alpha() for path in c.get_paths()]
    assert [[4, 0.2], [4, 0.6]] in bands
    assert {"published", "what its claim allows"} <= set(texts(picture))


@pytest.mark.parametrize(
    ("figure", "metric", "groups", "at_least"),
    [("bless2025/fig12", "bbr_jitter_ms", {0}, 4), ("sarpkaya2025/fig6", "jain_index_all", {0, 1}, 40)],
)
def test_what_claims_expect_of_a_figure(figure, metric, groups, at_least):
    """Of a metric of the whole run each group's row has it."""
    paper = figure.split("/")[0]
    source = PointsSource(figure, pd.DataFrame(), [], lambda label, seed: Path(), paths.DATA / paper / CLAIMS, "full")
    expected = source.expected(metric)
    assert len(expected) >= at_least and {group for _, group in expected} == groups
    assert source.expected("loss_rate_of_nobody") == {}


@pytest.mark.parametrize("kind", ["box", "cdf", "heat"])
def test_other_kinds(made, kind):
    made(sweep={"network.buffer.bdp": [1, 2, 8], "network.rtt_ms": [20, 40]})
    said = texts(draw("exp1", kind=kind))
    assert {"box": "share of capacity", "cdf": "queue (ms)", "heat": "base RTT (ms)"}[kind] in said
    if kind == "cdf":
        assert "fraction of samples" in said
    if kind == "heat":
        assert {"BBRv3", "CUBIC", "0.17"} <= set(said), "one map for each algorithm, with numbers"


def test_a_part_of_the_points(made):
    made(sweep={"network.buffer.bdp": [1, 2, 8], "network.qdisc.kind": ["fifo", "fq_codel"]})
    picture = draw("exp1", where={"qdisc.kind": "fifo"})
    assert titles(picture) == [""]


def test_a_study_of_one_point(made):
    made()
    axes = draw("exp1").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["BBRv3", "CUBIC"]


def test_the_same_study_gives_the_same_bytes(made, tmp_path):
    made(sweep={"network.buffer.bdp": [1, 4]})
    for kind in ("svg", "png"):
        for number in (1, 2):
            save(draw("exp1", kind="box"), tmp_path / f"{number}.{kind}")
        assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"2.{kind}").read_bytes()


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"y": ["share_of_capcity"]}, "--y share_of_capcity: there is no such field, did you mean share_of_capacity"),
        ({"y": ["queue"]}, "--y queue: there is no such field, did you mean queue_ms_mean"),
        ({"x": "bpd"}, "--x bpd: there is no such field, did you mean bdp"),
        ({"hue": "kynd"}, "--hue kynd: there is no such field, did you mean kind"),
        ({"kind": "pie"}, "--kind pie: no such kind; use one of line, box, cdf, heat"),
        ({"kind": "cdf", "x": "buffer.bdp"}, "--x buffer.bdp: is not of a cdf, on whose axis is the metric"),
        ({"where": {"bdp": 3}}, "--where bdp=3: network.buffer.bdp has 1, 4"),
        ({"y": ["loss", "utilisation"]}, "a picture of points has one"),
        ({"kind": "cdf", "y": ["cwmd"]}, "--y cwmd: there is no such field, did you mean cwnd"),
    ],
)
def test_what_cannot_be_drawn_is_told(made, wish, told):
    made(sweep={"network.buffer.bdp": [1, 4], "network.qdisc.kind": ["fifo", "fq_codel"]})
    with pytest.raises(UserError) as error:
        draw("exp1", **wish)
    assert told in str(error.value)


def test_too_many_panels_are_refused(made):
    made(sweep={"network.buffer.bdp": [1, 4], "network.rtt_ms": [10, 20, 30, 40], "network.rate_mbit": [1, 2, 3, 4]})
    with pytest.raises(UserError, match=r"16 pictures beside each other are too many .*--where network.rtt_ms=10"):
        draw("exp1")


def test_runs_that_all_failed(made):
    made(bad=True, sweep={"network.buffer.bdp": [1, 4]})
    with pytest.raises(UserError, match="all runs failed their self-checks"):
        draw("exp1")


# --- runs ----------------------------------------------------------------------------------------------------------------


def test_a_run_over_time(made):
    picture = draw(run_folder(made()))
    labels = [axes.get_ylabel().replace("\n", " ") for axes in picture.axes]
    assert labels == ["goodput (Mbit/s)", "queue (ms)", "RTT (ms)", "cwnd (packets)", "in flight (packets)", ""]
    goodput = picture.axes[0].lines[0].get_ydata()
    assert np.nanmedian(goodput) == pytest.approx(10 * 0.21), "what the samples' bytes say"
    for axes in picture.axes[:5]:
        highest = np.nanmax([np.nanmax(line.get_ydata()) for line in axes.lines])
        assert axes.get_ylim() == pytest.approx((0, 1.05 * highest)), "a level line is below the top"
    assert picture.axes[1].lines[0].get_ydata()[0] == pytest.approx(6000 * 8 / 10e3), "backlog over the rate"
    assert {"Startup", "state, sampled every 0.1 s: shorter stays are not seen"} <= set(texts(picture))


def test_without_bbr_there_is_no_strip_of_states(made):
    assert len(draw(run_folder(made(flows=[{"cca": "cubic"}]))).axes) == 5


def test_runs_over_each_other_are_called_by_what_differs(made):
    study = made(sweep={"network.buffer.bdp": [1, 4]})
    picture = draw(run_folder(study, 0), run_folder(study, 1))
    assert {"buffer.bdp = 1", "buffer.bdp = 4"} <= set(texts(picture))
    solid, dashed = picture.axes[2].lines[0], picture.axes[2].lines[2]
    assert solid.get_linestyle() == "-" and dashed.get_linestyle() == "--"
    assert {"seed = 1", "seed = 2"} <= set(texts(draw(run_folder(study, 0), run_folder(study, 2))))


@pytest.mark.parametrize("name", sorted(set(SERIES) - {ACK_RTT}))
def test_every_series(made, name):
    assert draw(run_folder(made()), y=[name]).axes


@pytest.mark.parametrize(
    ("acks", "name", "what"), [(True, "queue", "leave --acks out"), (False, ACK_RTT, "give --acks")]
)
def test_a_series_of_the_other_table(acks, name, what):
    with pytest.raises(UserError, match=f"--y {name}: .*{what}"):
        draw_runs.chosen([name], of_acks=acks)


def test_samples_that_are_not_there_are_told_with_the_command_that_makes_them(tmp_path):
    def source(**more: str) -> PointsSource:
        return PointsSource("mine", pd.DataFrame(), [], lambda label, seed: tmp_path / label / f"seed-{seed}", **more)

    with pytest.raises(UserError) as told:
        source().sampled_run("p", 1)
    assert str(told.value) == f"mine: {tmp_path}/p/seed-1/samples.parquet is not there; run it again (bbrlab sweep)"
    with pytest.raises(UserError, match="is not there; run the figure$"):
        source(run_again="run the figure").sampled_run("p", 1)


@pytest.mark.parametrize("kind", ["cdf", "box"])
def test_distributions_of_runs(made, kind):
    study = made(sweep={"network.buffer.bdp": [1, 4]})
    picture = draw(run_folder(study, 0), run_folder(study, 1), kind=kind)
    assert {"queue (ms)", "RTT (ms)"} <= set(texts(picture))


@pytest.mark.parametrize(
    ("words", "wish", "told"),
    [
        (["exp1", "RUN"], {}, "exp1: several things on one plot are runs, and this is no folder of a run"),
        (["RUN", "RUN"], {}, "this run is given twice; give each once"),
        (["RUN"], {"x": "bdp"}, "--x: is for the points of a study"),
        (["RUN"], {"kind": "heat"}, "--kind heat: is for the points"),
        (["RUN"], {"kind": "cdf", "y": ["state"]}, "--y state: a state is no number"),
        (["exp1/runs"], {}, "exp1/runs: is neither a run's folder nor a finished study's; it has 4 runs below it"),
        (["nowhere"], {}, "nowhere: is no folder, and there is no such figure"),
        (["sarpkaya2025"], {}, "sarpkaya2025: is a paper; give one of its figures: sarpkaya2025/"),
        (["fig2b"], {}, "there are no results of it; compute them: "),
        (["fig2aa"], {}, "did you mean fig2a"),
    ],
)
def test_what_is_no_run_is_told(made, words, wish, told):
    study = made(sweep={"network.buffer.bdp": [1, 4]})
    with pytest.raises(UserError) as error:
        draw(*(run_folder(study) if word == "RUN" else word for word in words), **wish)
    assert told in str(error.value)


def test_a_run_is_not_compared_with_itself(made):
    study = made(sweep={"network.buffer.bdp": [1, 4]})
    folder = Path(run_folder(study))
    done = CliRunner().invoke(app, ["compare", str(folder), f"{folder}/../{folder.name}"])
    assert str(done.exception) == f"{folder}/../{folder.name}: this run is given twice; give each once"


def test_more_runs_than_can_be_told_apart(made):
    study = made(sweep={"network.buffer.bdp": [1, 2, 4]})
    with pytest.raises(UserError, match="6 runs over each other are too many"):
        draw_runs.over_time(source_of([run_folder(study, i) for i in range(6)]), ["queue"])


def test_the_command(made, tmp_path):
    made(sweep={"network.buffer.bdp": [1, 4]})
    done = CliRunner().invoke(app, ["plot", "exp1", "--kind", "box"])
    assert done.output == "exp1-share_of_capacity-box.png\n"
    assert (tmp_path / "exp1-share_of_capacity-box.png").read_bytes().startswith(b"\x89PNG")
    done = CliRunner().invoke(app, ["plot", "exp1", "--out", "x.gif"])
    assert (
        str(done.exception)
        == "--out x.gif: the file's name says what is drawn: give one that ends with .png, .svg, .pdf"
    )


# --- compare, list, and commands that there are not ----------------------------------------------------------------------


def test_two_runs_side_by_side(made, tmp_path):
    study = made(sweep={"network.buffer.bdp": [1, 4]})
    two = [run_folder(study, 0), run_folder(study, 1)]
    done = CliRunner().invoke(app, ["compare", *two, "--out", "two.svg"])
    assert done.exit_code == 1, "something differs"
    lines = {" ".join(line.split()) for line in done.output.splitlines()}
    assert {"field buffer.bdp = 1 buffer.bdp = 4", "network.buffer.bdp 1.0 4.0", "flows.0: 1 BBRv3"} <= lines
    assert "share of capacity 0.1600 0.3100 +0.1500 (+94%)" in lines
    assert "queueing delay (ms) 11.00 41.00 +30.00 (+273%)" in lines
    assert (tmp_path / "two.svg").exists()
    told = json.loads(CliRunner().invoke(app, ["compare", *two, "--json", "--metric", "loss"]).output)
    assert told["metrics"] == [{"metric": "loss", "flows": "", "one": 0.01, "two": 0.01}]
    assert [field["name"] for field in told["fields"]] == ["network.buffer.bdp"]


def test_a_parameter_that_one_run_does_not_set_has_its_default(made):
    flows = [{"cca": "bbr3", "params": {"headroom": False}}, {"cca": "cubic"}]
    output = CliRunner().invoke(app, ["compare", run_folder(made()), run_folder(made("exp2", flows=flows))]).output
    assert "flows.0.params.headroom default False" in {" ".join(line.split()) for line in output.splitlines()}
    assert "bbr_parameters.md" in output


def test_a_run_is_equal_to_its_copy(made, tmp_path):
    study = made()
    copy = made_up_run(study.runs[0].point, 1, tmp_path / "copy")
    done = CliRunner().invoke(app, ["compare", run_folder(study), str(copy)])
    assert done.exit_code == 0
    assert "of the same scenario, seed, kernel and commit" in done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["RUN"], "two runs are compared, not 1"),
        (["RUN", "exp1"], "exp1: several things on one plot are runs"),
        (["RUN", "RUN", "--scale", "full"], "--scale: is for the sides of a campaign"),
        (["--out", "x.png"], "--out x.png: is the picture of two runs"),
        (["RUN", "RUN", "--metric", "los"], "--metric los: there is no such field, did you mean loss"),
    ],
)
def test_what_cannot_be_compared_is_told(made, words, told):
    study = made()
    done = CliRunner().invoke(app, ["compare", *(run_folder(study) if word == "RUN" else word for word in words)])
    assert isinstance(done.exception, UserError)
    assert told in str(done.exception)


def test_what_there_is(monkeypatch):
    done = CliRunner().invoke(app, ["list", "tang", "--json"])
    found = {one["id"]: one for one in json.loads(done.output)}
    assert {"tang/fig2", "tang/fig3"} <= found.keys() and all(id.startswith("tang/") for id in found)
    smoke, full = (found["tang/fig2"]["scales"][scale] for scale in ("smoke", "full"))
    assert smoke["runs"] <= full["runs"] and 0 < smoke["core_s"] < full["core_s"]
    words = CliRunner().invoke(app, ["list", "tang"], env={"COLUMNS": "160"}).output
    assert "tang/fig2" in words and "full: minutes on" in words
    lines = CliRunner().invoke(app, ["list", "tang"], env={"COLUMNS": "80"}).output.splitlines()
    assert lines[0].split()[-4:] == ["smoke", "quick", "full", "results"], "whole on 80 columns, or wider in a pipe"
    points = CliRunner().invoke(app, ["list", "tang/fig2"], env={"COLUMNS": "160"}).output
    assert f"{full['points']} points, {full['runs']} runs; other scales: smoke: {smoke['points']} points" in points
    wrong = CliRunner().invoke(app, ["list", "tnag"])
    assert "did you mean tang?" in str(wrong.exception)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("plots", "plot"),
        ("report", "site"),
        ("swep", "sweep"),
        ("ls", "list"),
        ("judg", None),
        ("collec", None),
    ],
)
def test_hidden_commands_are_meant_by_nobody(typed, meant):
    done = CliRunner().invoke(app, [typed])
    assert f"No such command '{typed}'" in done.output
    hidden = [name for name, command in app_commands().items() if command.hidden]
    assert not any(f"mean {name}" in done.output or f"or {name}" in done.output for name in hidden)
    assert meant is None or f"did you mean {meant}" in done.output


def app_commands() -> dict[str, Any]:
    import typer.main

    return dict(typer.main.get_command(app).commands)


def test_a_name_with_dollars_is_a_name(made):
    """Matplotlib takes what stands between two of them for a formula, and stops at one that it does not understand."""
    one, two = (study.runs[0].folder for study in (made(), made(name="exp2")))
    runs = [str(one.rename(r"r$\frac{1$")), str(two.rename(r"x_$\bad$"))]
    for kind in ("line", "cdf"):
        picture = draw(*runs, kind=kind)
        assert set(runs) <= set(texts(picture))
        save(picture, Path("picture.png"))


def test_a_run_says_what_is_a_sum_and_what_a_mean_of_flows(made):
    study = made(flows=[*SEVERAL, {"cca": "cubic", "start_s": 2}])
    said = set(texts(draw(run_folder(study))))
    assert {"goodput\n(Mbit/s)\nsum of flows", "cwnd\n(packets)\nmean of flows", "queue\n(ms)"} <= said
    assert {"1 BBRv3", "2 CUBIC (flows.1)", "1 CUBIC (flows.2)"} <= said
    assert "cwnd\n(packets)" in texts(draw(run_folder(made(name="exp2")))), "of one flow each nothing is to be said"


def test_of_several_links_a_legend_says_which_a_group_crosses():
    """Two groups of one algorithm have two colours, and a name each."""
    flows = [SimpleNamespace(cca=cca, count=1) for cca in ("bbr3", "cubic", "cubic")]
    links = [{"link": 0, "groups": [0, 1]}, {"link": 1, "groups": [0, 2]}]
    run: Any = SimpleNamespace(
        scenario=SimpleNamespace(flows=flows, network=SimpleNamespace(links=[{}, {}])), summary={"links": links}
    )
    handles, labels = draw_runs._legend([run], ["goodput"])
    assert labels == ["BBRv3, links 0-1", "CUBIC (flows.1), link 0", "CUBIC (flows.2), link 1"]
    assert len({handle.get_color() for handle in handles}) == 3


def test_curves_say_how_coarse_they_are(made):
    run = run_folder(made())
    assert draw(run, y=["goodput"]).axes[-1].get_xlabel().endswith("; sampled every 0.1 s")
    other = run_folder(made(name="exp2", sample_hz=1))
    assert draw(run, other, y=["goodput"]).axes[-1].get_xlabel().endswith("; sampled every 0.1 or 1 s")


def test_a_file_of_runs_has_a_name_without_spaces(made):
    made(sweep={"network.buffer.bdp": [1, 4]})
    runs = sorted(str(path.parent) for path in Path("exp1").rglob("summary.json"))
    assert plot(source_of([runs[0], runs[2]]), Wish())[1] == "buffer.bdp=1-buffer.bdp=4-over-time"


def test_two_runs_do_not_tell_what_is_chance(made):
    one, two = made().runs
    other = made(name="exp2", flows=FLOWS[:1]).runs[0]
    told = CliRunner().invoke(app, ["compare", str(one.folder), str(two.folder)]).output
    assert "differ in their seed alone: these differences are chance" in told
    told = CliRunner().invoke(app, ["compare", str(one.folder), str(other.folder)]).output
    assert "several seeds of both (bbrlab sweep) say how much of a difference is chance" in " ".join(told.split())
    assert "chance" not in CliRunner().invoke(app, ["compare", str(one.folder), str(one.folder)]).output


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_picture_replaces_a_picture_of_its_own_and_nothing_else(made, kind):
    run = run_folder(made())
    out = Path(f"picture.{kind}")
    words = ["plot", run, "--y", "queue", "--out", str(out)]
    for _ in range(2):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    out.write_text("mine")
    done = CliRunner().invoke(app, words)
    assert "is there, and does not have the mark" in str(done.exception), done.output
    assert out.read_text() == "mine"
    done = CliRunner().invoke(app, ["compare", run, run_folder(made(name="exp2")), "--out", str(out)])
    assert "is there, and does not have the mark" in str(done.exception), done.output


@pytest.mark.parametrize(
    ("out", "told"), [("{run}/summary.json", "ends with .html"), ("mine.html", "does not have the mark")]
)
def test_a_page_replaces_nothing_but_a_page(made, out, told):
    study = made()
    Path("mine.html").write_text("mine")
    done = CliRunner().invoke(app, ["show", run_folder(study), "--out", out.format(run=run_folder(study))])
    assert told in str(done.exception), done.output
    assert Path("mine.html").read_text() == "mine" and json.loads((study.runs[0].folder / "summary.json").read_text())
    for _ in range(2):
        assert CliRunner().invoke(app, ["show", run_folder(study), "--out", "new.html"]).exit_code == 0
