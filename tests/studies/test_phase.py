"""The page's table and picture of the share over the RTT's fraction of a packet's time."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bbrlab.results.figures import figures_at
from studies.phase import EXACT, NOISY, draw, draw_period, draw_second, over_fraction, spreads


def made_up(name: str, part_of) -> pd.DataFrame:
    """A table of a scenario whose first group carries part_of(values, seed) of 9 Mbit/s."""
    (figure,) = figures_at("full", [f"questions/{name}"])
    rows = []
    for point in figure.points:
        for seed in (1, 2):
            part = part_of(point.values, seed)
            for group, carried in enumerate((part, 1 - part)):
                flow = point.scenario.flows[group]
                rows.append({"point": point.label, "seed": seed, "group": group, "ok": True, "cca": flow.cca, "count": flow.count,
                             "goodput_mbit": 9 * carried, "share_of_capacity": 0.9 * carried, **point.conditions, **point.values})  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("name", "moved", "fractions"),
    [("phase", "network.rtt_ms", 8), ("phase_flows", "network.rtt_ms", 4), ("phase_second", "flows.1.rtt_ms", 8)],
)
def test_each_rate_has_each_fraction_once(name, moved, fractions):
    table = over_fraction(made_up(name, lambda values, seed: 0.5), moved)
    places = table.groupby(["rate_mbit", "pair", "flows", "rtt", "hosts"])["fraction"]
    assert set(places.nunique()) == {fractions} and set(table["hosts"]) == {EXACT, NOISY}
    assert set(places.value_counts()) == {2}, "one of each seed"
    assert sorted(set(table["fraction"])) == [k / fractions for k in range(fractions)]


def test_what_hangs_on_the_fraction_and_what_on_the_seed():
    def part(values, seed):
        exact, step = values["case"].endswith("-off"), values["network.rtt_ms"] - 40
        return 0.2 + 0.4 * step if exact else 0.5 + 0.1 * (seed - 1.5)

    found = spreads(over_fraction(made_up("phase", part))).loc[10, "BBRv2 v CUBIC", 2, 40]
    assert found[f"over fractions, {EXACT}"] == pytest.approx(0.4 * 1.06) and found[f"over seeds, {EXACT}"] == 0
    assert found[f"over fractions, {NOISY}"] == pytest.approx(0)
    assert found[f"over seeds, {NOISY}"] == pytest.approx(0.1) and found[f"mean, {NOISY}"] == pytest.approx(0.5)


def test_the_picture_has_a_panel_for_each_pair_and_rate():
    figure = draw(over_fraction(made_up("phase", lambda values, seed: 0.4 if values["case"].endswith("-off") else 0.5)))
    titles = {axes.get_title() for axes in figure.axes}
    assert {"BBRv2 v CUBIC, 10 Mbit/s", "BBRv2 v CUBIC, 50 Mbit/s"} <= titles
    axes = next(axes for axes in figure.axes if axes.get_title() == "BBRv2 v CUBIC, 10 Mbit/s")
    drawn = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    assert {float(y[0]) for y in drawn if np.ptp(y) == 0} == {0.4, 0.5}
    plt.close("all")


def test_where_the_second_flow_moves_theory_is_drawn_beside():
    figure = draw_second(over_fraction(made_up("phase_second", lambda values, seed: 0.5), "flows.1.rtt_ms"))
    axes = {axes.get_title(): axes for axes in figure.axes}
    assert set(axes) == {f"{cca} v {cca}, 40 and {rtt} ms" for cca in ("Reno", "CUBIC") for rtt in (40, 80)}
    ((_, low, *_),) = [
        patch.get_extents().transformed(axes["Reno v Reno, 40 and 80 ms"].transData.inverted()).extents
        for patch in axes["Reno v Reno, 40 and 80 ms"].patches
    ]
    assert low == pytest.approx(0.6) and not axes["CUBIC v CUBIC, 40 and 80 ms"].patches
    plt.close("all")


def test_where_either_flow_moves_each_whole_packet_of_the_path_has_a_line():
    def part(values, seed):
        return 0.8 if values["case"].endswith("cubic-moves") else 0.5

    figure = draw_period(made_up("phase_period", part))
    assert [axes.get_title() for axes in figure.axes] == ["BBRv1 v CUBIC", "BBRv2 v CUBIC", "BBRv3 v CUBIC"]
    lines = figure.axes[0].get_lines()
    borders = [x[0] for line in lines if len(set(x := line.get_xdata())) == 1 and line.get_linestyle() == ":"]
    assert borders == pytest.approx([34 * 1.2112, 35 * 1.2112]), "40 ms are 33.03 packets, 42.422 ms 35.02"
    plt.close("all")
