"""Who would switch, and maps of the burst model: the rule of an equilibrium, and the kept tables made again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.claims.series import rms
from bbrlab.scenario.load import load_scenario, points_of
from studies import adoption, burst_tables, maps


def table(bbr, rival, flows=4):
    """What a flow gets by the number of BBR flows, from none to all."""
    return pd.DataFrame({
        "flows": flows, "cca": "bbr1", "buffer_bdp": 1.0, "bbr_flows": np.linspace(0, flows, len(bbr)).astype(int),
        "bbr_flow_mbit": bbr, "rival_flow_mbit": rival,
    })  # fmt: skip


NONE = float("nan")


@pytest.mark.parametrize(
    ("bbr", "rival", "expected"),
    [
        ([NONE, 9, 8, 7, 6], [5, 4, 3, 2, NONE], [4]),  # BBR always gets more: all switch
        ([NONE, 1, 1, 1, 1], [5, 5, 5, 5, NONE], [0]),  # never: none does
        ([NONE, 9, 6, 3, 1], [5, 5, 5, 5, NONE], [2]),  # up to two
        ([NONE, 1, 2, 6, 9], [5, 5, 5, 5, NONE], [0, 4]),  # only where many do: two equilibria
    ],
)
def test_equilibria(bbr, rival, expected):
    assert adoption.equilibria(table(bbr, rival))["bbr_flows"].tolist() == expected


def test_equilibria_between_what_was_computed():
    """0, 10 and 20 BBR flows of 20: b falls from 9 to 1, c is 5.2; the 15th would get 5."""
    found = adoption.equilibria(table([NONE, 9, 1], [5.2, 5.2, NONE], flows=20))
    assert found["bbr_flows"].tolist() == [14]
    assert found.loc[0, ["flows", "cca", "buffer_bdp"]].tolist() == [20, "bbr1", 1.0]


def test_all_of_one_kind_have_equal_parts():
    """With one algorithm alone nobody can be better off than the mean."""
    kept = burst_tables.read("adoption")
    all_cubic, all_bbr = (kept[kept["bbr_flows"] == n] for n in (0, kept["flows"]))
    assert all_cubic["bbr_flow_mbit"].isna().all() and all_bbr["rival_flow_mbit"].isna().all()
    link = adoption.RATE_MBIT / kept["flows"]
    assert (kept[["bbr_flow_mbit", "rival_flow_mbit"]].min(axis=1) <= link).all()
    total = (kept["bbr_flows"] * kept["bbr_flow_mbit"].fillna(0)
             + (kept["flows"] - kept["bbr_flows"]) * kept["rival_flow_mbit"].fillna(0))  # fmt: skip
    assert (total < adoption.RATE_MBIT).all() and (total > 0.6 * adoption.RATE_MBIT).all()


def test_the_adoption_table_is_made_again():
    kept = burst_tables.read("adoption")
    assert len(kept) == len(adoption.populations())
    (row,) = adoption.computed([adoption.Population(10, "bbr3", 2.0, 6)]).to_dict("records")
    at = kept.query("flows == 10 and cca == 'bbr3' and buffer_bdp == 2 and bbr_flows == 6").iloc[0]
    for column in ("bbr_flow_mbit", "rival_flow_mbit", "bbr_flow_sd"):
        assert row[column] == pytest.approx(at[column], abs=6e-5)


@pytest.mark.parametrize("name", maps.MAPS)
def test_a_map_is_made_again(name):
    chosen, kept = maps.MAPS[name], burst_tables.read(name)
    assert len(kept) == len(chosen.cells())
    (cell,) = maps.drawn_cells(name, 1)
    (row,) = maps.computed([cell]).to_dict("records")
    at = kept[(kept[list(vars(cell))] == pd.Series(vars(cell))).all(axis=1)].iloc[0]
    assert row["share_of_capacity"] == pytest.approx(at["share_of_capacity"], abs=6e-5)


def test_drawn_cells_never_change():
    few, more = (maps.drawn_cells("rate_rtt", n) for n in (3, 8))
    assert more[:3] == few and len(set(more)) == 8


@pytest.mark.parametrize("name", maps.MAPS)
def test_the_lab_ran_the_cells_that_were_drawn(name):
    """The scenario has the first twelve cells of the order that never changes, and the kept table all of their runs."""
    scenario = load_scenario(paths.SCENARIOS / "questions" / f"map_{name}.yaml")
    ran = []
    for point in points_of(scenario):
        network, (bbr, other) = point.scenario.network, point.scenario.flows
        assert list(point.scenario.window_s) == ([800, 1000] if other.cca == "reno" else [600, 1000])
        ran.append(maps.Cell(bbr.cca, other.cca, network.rate_mbit, network.rtt_ms, bbr.count, network.buffer.bdp))
    assert ran == maps.drawn_cells(name, 12)
    table = burst_tables.beside_lab(name)
    assert len(table) == 12 and set(table["seeds"]) == {scenario.trials}
    assert (table["half"] >= 0).all()


def test_the_maps_are_near_the_lab():
    """As docs/explanation/models.md has it: root mean square differences, and the largest."""
    errors = {name: burst_tables.beside_lab(name)["difference"] for name in maps.MAPS}
    assert {name: round(rms(found), 3) for name, found in errors.items()} == {"buffer_flows": 0.012, "rate_rtt": 0.025}
    assert max(found.abs().max() for found in errors.values()) == pytest.approx(0.081, abs=0.0005)
