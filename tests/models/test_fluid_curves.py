"""The fluid model's curves beside the published shares: made by this package, and with the errors that the paper prints."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.claims.select import full_figures
from bbrlab.claims.series import grouped_rms
from bbrlab.models import fluid
from bbrlab.models.predict import fluid_share
from tests.models.test_fluid import ACCESS_MS, LINK_BDP, OCCUPANCY_LINK_BDP

CURVES = pd.read_csv(paths.DATA / "sarpkaya2025/fluid_9s.csv")


def drawn_errors(panel: str) -> pd.DataFrame:
    """The curve as drawn less the published share, cell by cell."""
    measured = pd.read_csv(paths.DATA / f"sarpkaya2025/{panel}.csv")
    table = CURVES[CURVES["panel"] == panel].merge(measured, on=["bbr_flows", "buffer_bdp"], validate="1:1")
    assert len(table) == 42
    return table.assign(error=table["drawn_share"] - table["share_of_capacity"])


@pytest.mark.parametrize("number", [2, 3])
def test_the_drawn_curves_have_the_printed_errors(number):
    panels = [drawn_errors(f"fig{number}{letter}") for letter in "abc"]
    said = (
        pd.read_csv(paths.DATA / "sarpkaya2025/model_errors.csv").set_index(["model", "figure"]).loc[("fluid", number)]
    )
    rmse = np.mean([grouped_rms(p["error"].to_numpy(), p["bbr_flows"].to_numpy()) for p in panels])
    assert rmse == pytest.approx(said["rmse"], abs=0.005), "printed with two digits"
    assert np.mean([(p["error"] ** 2).mean() for p in panels]) == pytest.approx(said["mse"], abs=0.0005)


def test_every_panel_of_figs_2_and_3_is_there_once():
    keys = CURVES[["panel", "bbr_flows", "buffer_bdp"]]
    assert not keys.duplicated().any()
    assert set(keys["panel"]) == {f"fig{n}{letter}" for n in (2, 3) for letter in "abc"}
    assert len(keys) == 6 * 42


@pytest.mark.parametrize(("panel", "flows", "buffer"), [("fig2a", 1, 2), ("fig2b", 2, 16), ("fig3c", 4, 64)])
def test_the_curves_are_what_the_model_makes(panel, flows, buffer):
    row = CURVES.query("panel == @panel and bbr_flows == @flows and buffer_bdp == @buffer").iloc[0]
    wanted = {"flows.0.count": flows, "network.buffer.bdp": buffer}
    (point,) = (p for p in full_figures()[f"sarpkaya2025/{panel}"].points if p.values == wanted)
    for column, quirks in (("drawn_share", fluid.REFERENCE), ("aligned_share", fluid.ALIGNED)):
        assert fluid_share(point.scenario, 9, quirks=quirks).shares[0] == pytest.approx(row[column], abs=1e-4)


def test_fig_4s_first_row_is_the_models_output_at_the_second_rows_buffers():
    model = pd.read_csv(paths.DATA / "scherrer2022/aggregates.csv")
    model["case"] = model["cca_first"] + "+" + model["cca_second"]
    beside = pd.read_csv(paths.DATA / "sarpkaya2025/fig4_fluid.csv")
    both = beside.merge(model, left_on=["case", "link_bdp"], right_on=["case", "buffer_link_bdp"], validate="1:1")
    assert len(both) == len(model) == (beside["exactness"] == "model output").sum()
    measured = pd.read_csv(paths.DATA / "sarpkaya2025/fig4.csv").set_index(["case", "link_bdp"])["buffer_bytes"]
    assert (
        measured.loc[list(zip(both["case"], both["link_bdp"], strict=True))].to_numpy() == both["buffer_bytes_x"]
    ).all()
    for ours, theirs, factor in (
        ("fluid_jain_index", "jain_index", 1),
        ("fluid_loss", "loss_percent", 100),
        ("fluid_occupancy", "occupancy_percent", 100),
        ("fluid_utilisation", "utilisation_percent", 100),
    ):
        np.testing.assert_allclose(both[ours] * factor, both[theirs], atol=1e-6)


def test_fig_4s_other_pairs_are_this_packages_model_in_the_same_set_up():
    beside = pd.read_csv(paths.DATA / "sarpkaya2025/fig4_fluid.csv").query("exactness == 'recomputed'")
    assert set(beside["case"]) == {"bbr1+reno", "bbr2+reno", "bbr1+bbr2"}
    row = beside.query("case == 'bbr2+reno' and link_bdp == 2").iloc[0]
    run = fluid.simulate(["bbr2"] * 5 + ["reno"] * 5, 100, 10, ACCESS_MS, LINK_BDP * 2)
    assert run.jain_index == pytest.approx(row["fluid_jain_index"], abs=0.000051)
    assert run.loss == pytest.approx(row["fluid_loss"], abs=0.0000051)
    assert run.occupancy * LINK_BDP / OCCUPANCY_LINK_BDP == pytest.approx(row["fluid_occupancy"], abs=0.000051)
