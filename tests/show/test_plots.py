"""The look of figures: lines that can be told apart, axes that can be read."""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from bbrlab.base import paths
from bbrlab.results.algorithm_table import COLOURS, OTHER_COLOURS, group_colour
from bbrlab.show.panel import Panel
from bbrlab.show.plots.style import (
    MODEL_STYLES,
    in_order,
    line_looks,
    log2_axis,
    multiples,
    plain,
    short_number,
    with_room,
)
from studies import share_plots
from studies.burst_plots import beside_lab
from studies.figure_plots import curves, heat_maps
from studies.share_plots import against_published, one_flow, shares


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_names_are_in_the_order_of_their_numbers():
    names = [
        "1000 Mbit/s, 20 ms",
        "100 Mbit/s, 50 ms",
        "100 Mbit/s, 5 ms",
        "bbr3",
        "bbr1",
        "0.8 BDP",
        "100 Mbit/s, 50 ms",
    ]
    assert in_order(names) == ["0.8 BDP", "100 Mbit/s, 5 ms", "100 Mbit/s, 50 ms", "1000 Mbit/s, 20 ms", "bbr1", "bbr3"]
    assert in_order(np.array([16, 2, 4, 2])) == [2, 4, 16]
    assert in_order([0.5, 10.0, 2.0]) == [0.5, 2.0, 10.0]
    assert in_order([-1.0, 3.0, -20.0]) == [-20.0, -1.0, 3.0]


def test_no_two_lines_look_the_same():
    looks = line_looks([f"line {i}" for i in range(25)])
    assert len({(*look["color"], look["marker"]) for look in looks.values()}) == 25
    assert {look["marker"] for look in line_looks(["bbr1", "cubic"]).values()} == {"."}
    some = line_looks(["bbr1", "bbr1-1.25", 16])
    assert some["bbr1"]["color"] == COLOURS["bbr1"]
    assert {some[name]["color"] for name in ("bbr1-1.25", 16)} <= set(OTHER_COLOURS), "of no algorithm"


def test_two_algorithms_of_ones_own_are_told_apart():
    assert len({group_colour(["mine", "other", "bbr3"], i) for i in range(3)}) == 3


def test_numbers_at_a_logarithmic_axis_do_not_run_into_each_other():
    letter = 0.085 / 3.0  # of an axis of three inches
    assert with_room([1, 2, 4, 8, 16, 32, 64], letter) == {1, 2, 4, 8, 16, 32, 64}
    assert with_room([1, 2, 3, 4, 5, 6, 7, 8, 16, 32], letter) == {1, 2, 3, 4, 5, 8, 16, 32}
    assert with_room([5, 6], letter) == {5, 6}
    assert with_room([125e3, 250e3, 375e3, 500e3, 1e6, 2e6, 8e6], letter) == {125e3, 250e3, 500e3, 1e6, 2e6, 8e6}
    assert list(map(short_number, [0.5, 9999, 125000, 3906250])) == ["0.5", "9999", "125k", "3.91M"]
    figure, axes = plt.subplots()
    log2_axis(axes, [1, 2, 31, 32])
    axes.set_xlim(1, 32)
    figure.canvas.draw()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "32"], "a tick has a number"


def test_each_column_of_panels_has_its_numbers():
    figure, grid = multiples(5)
    figure.canvas.draw()
    told = [[any(label.get_visible() for label in axes.get_xticklabels()) for axes in row] for row in grid]
    assert told[0] == [False, False, True] and told[1][:2] == [True, True]


def test_panels_and_lines_of_counts_say_what_they_count():
    rows = [{"point": f"{n} {b}", "seed": s, "group": 0, "flows": n, "buffer_bdp": b, "share": 0.5, "ok": True}
            for n in (16, 4) for b in (1, 2) for s in (1, 2)]  # fmt: skip
    table = pd.DataFrame(rows).astype({"flows": np.int64})
    figure = curves(table, "buffer_bdp", "share", panel="flows", labels=("buffer (BDP)", "share"))
    assert [axes.get_title() for axes in figure.axes] == ["flows = 4", "flows = 16"]
    assert plain(np.int64(4)) == plain(4.0) == "4"


def seeds_of(y, values, **columns):
    """A figure's table of one group: ``values`` of a metric at x of 1, 2 ..., a pair of seeds each."""
    rows = [{"x": x, "seed": seed, y: value, "group": 0, "cca": "bbr3", "ok": True, "figure": "a/b"} | columns
            for x, pair in enumerate(values, 1) for seed, value in enumerate(pair)]  # fmt: skip
    return pd.DataFrame(rows)


def test_no_interval_goes_beyond_the_whole():
    for y, of_whole in (("share_of_capacity", None), ("utilisation", None), ("part", True)):
        figure = curves(seeds_of(y, [(0.8, 1.0), (0.1, 0.12)]), "x", y, of_whole=of_whole)
        (axes,) = figure.axes
        ends = [y for bar in axes.collections for segment in bar.get_segments() for _, y in segment]
        assert max(ends) == 1 and axes.get_ylim() == (0, 1.02), y
    (axes,) = curves(seeds_of("slowdown_mean", [(0.8, 1.0)]), "x", "slowdown_mean").figure.axes
    assert axes.get_ylim()[1] > 1.2, "which is no part of anything"
    same = dict.fromkeys(("ware", "published", "published_low", "published_high"), 0.5)
    of_panel = {"buffer_bdp": [1, 2], "bbr_flows": 1, "measured": [0.9, 0.1], "ci95": 0.3, "trials": 5, **same}
    (axes,) = shares(Panel("p/f", "Fig. 1", pd.DataFrame(of_panel), "bbr1", scaled=False)).axes
    ends = [y for bar in axes.containers[-1].lines[2] for segment in bar.get_segments() for _, y in segment]
    assert (min(ends), max(ends)) == (0, 1)
    (axes,) = beside_lab(pd.DataFrame({"cca": "bbr1", "lab": [0.9, 0.1], "model": 0.5, "half": 0.3})).axes
    ends = [x for bar in axes.collections for segment in bar.get_segments() for x, _ in segment]
    assert (min(ends), max(ends)) == (0, 1)


def test_a_line_alone_has_its_algorithms_colour_and_a_model_its_dashes():
    table = seeds_of("share_of_capacity", [(0.5, 0.6), (0.5, 0.6)])
    model = pd.DataFrame({"x": [1, 2], "share_of_capacity": [0.4, 0.5]})
    (axes,) = curves(table, "x", "share_of_capacity", models={"fluid": model}).axes
    assert {line.get_color() for line in axes.lines} == {COLOURS["bbr3"]}
    assert MODEL_STYLES["fluid"] in {line.get_linestyle() for line in axes.lines}


def test_counts_along_an_axis_have_no_ticks_between_them():
    (axes,) = curves(seeds_of("goodput_mbit", [(1, 2)] * 4), "x", "goodput_mbit", log_x=False).axes
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


def test_a_map_of_two_algorithms_has_their_colours_and_one_of_differences_grey():
    cells = pd.DataFrame({"x": [1, 2, 3], "y": 1, "v": [-9.0, 0.0, 9.0]})
    for sides in (("cubic", "bbr1"), None):
        figure = heat_maps({"a": cells}, "x", "y", "v", span=9, sides=sides)
        figure.canvas.draw()
        first, middle, last = (to_hex(colour).upper() for colour in figure.axes[0].collections[0].get_facecolors())
        assert middle in ("#FFFFFF", "#FEFEFF")
        assert (first, last) == (COLOURS["cubic"], COLOURS["bbr1"]) if sides else first == last
        assert [text.get_text() for text in figure.axes[0].texts] == ["-9", "+0", "+9"]
        assert len(figure.legends) == bool(sides), "a key of the colours"


def test_every_panel_is_beside_the_published_values():
    """There were seven marks, and of nine panels two were in no picture."""
    points = pd.DataFrame({"published": [0.2, 0.6], "measured": [0.25, 0.6], "residual": [0.05, 0.0]})
    panels = [Panel(f"p/fig{n}", f"Fig. {n}", points, "bbr1", scaled=False) for n in range(9)]
    figure = against_published(panels)
    names = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert [name.split(" (")[0] for name in names[1:]] == [panel.title for panel in panels]


def test_models_have_dashes_beside_a_measurement_in_its_algorithms_colour():
    """Of several panels those with one BBR flow; a value above 1 is in no band."""
    values = dict.fromkeys(("ware", "fluid_9s", "fluid_own", "published", "measured"), 0.5)
    points = pd.DataFrame(
        {"buffer_bdp": [1, 2, 1, 2], "bbr_flows": [1, 1, 4, 4], "burst": 0.9, "burst_sd": 0.3, **values}
    )
    figure = one_flow(Panel(f"p/{bbr}", "Fig. 1", points, bbr, scaled=False) for bbr in ("bbr1", "bbr3"))
    assert [axes.get_title() for axes in figure.axes] == ["one BBRv1 flow, Fig. 1", "one BBRv3 flow, Fig. 1"]
    for axes, bbr in zip(figure.axes, ("bbr1", "bbr3"), strict=True):
        drawn = {line.get_label(): line for line in axes.lines}
        assert drawn["measured here"].get_color() == COLOURS[bbr] and len(drawn["measured here"].get_xdata()) == 2
        assert drawn["burst"].get_linestyle() == MODEL_STYLES["burst"]
        assert max(y for path in axes.collections[0].get_paths() for _, y in path.vertices) == 1


def test_numbers_in_the_cells_of_maps_do_not_touch():
    grid = [(x, y) for x in range(8) for y in range(8)]
    cells = pd.DataFrame(grid, columns=["x", "y"]).assign(v=1697.0)
    figure = heat_maps({name: cells for name in "abc"}, "x", "y", "v", span=50)
    figure.canvas.draw()
    texts = figure.axes[0].texts
    boxes = sorted((text.get_window_extent() for text in texts[:8]), key=lambda box: box.x0)
    assert all(left.x1 < right.x0 for left, right in zip(boxes, boxes[1:], strict=False))


def test_pictures_of_the_documentation_are_of_what_ships(tmp_path, monkeypatch):
    """Also beside tables of one's own."""
    own = tmp_path / "full" / "sarpkaya2025" / "fig2a.parquet"
    own.parent.mkdir(parents=True)
    own.touch()
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["share_plots", "--out", str(tmp_path)])
    asked = []
    monkeypatch.setattr(share_plots, "panels_at", lambda shown: asked.append(shown) or [])
    with pytest.raises(KeyError):  # without panels there is nothing to draw
        share_plots.main()
    assert [(shown.results, shown.scale, shown.shipped) for shown in asked] == [(paths.SHIPPED, "full", True)]
