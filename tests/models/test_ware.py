"""The Ware model against its grid, and against published data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.tables import published_table
from bbrlab.models import ware
from bbrlab.scenario.messages import validate
from tests.conftest import scenario_dict

FLOWS, BUFFERS = [1, 2, 4, 8, 16, 32], [1, 2, 4, 8, 16, 32, 64]
# Recomputed from eqs. 9 to 11 for the settings of Sarpkaya et al. 2025, Figs 2a (10 Mbit/s, 40 ms), 2b (50, 30).
GRIDS = {
    (10, 40): """0.972 0.784 0.629 0.545 0.491 0.440 0.367
                 0.972 0.842 0.658 0.559 0.498 0.444 0.368
                 0.972 0.958 0.715 0.588 0.512 0.450 0.371
                 0.972 0.968 0.830 0.644 0.539 0.463 0.376
                 0.972 0.968 0.960 0.758 0.594 0.488 0.387
                 0.972 0.968 0.960 0.944 0.703 0.539 0.409""",
    (50, 30): """0.974 0.744 0.611 0.540 0.495 0.455 0.399
                 0.974 0.759 0.619 0.544 0.497 0.456 0.399
                 0.974 0.790 0.634 0.551 0.501 0.458 0.400
                 0.974 0.853 0.665 0.567 0.508 0.461 0.402
                 0.974 0.971 0.727 0.597 0.523 0.468 0.405
                 0.974 0.971 0.850 0.658 0.553 0.482 0.411""",
}


@pytest.mark.parametrize("setting", GRIDS)
def test_grid(setting):
    grid = np.array([float(v) for v in GRIDS[setting].split()]).reshape(6, 7)
    model = ware.bbr_share(*setting, np.array(BUFFERS)[None, :], np.array(FLOWS)[:, None])
    assert np.abs(model - grid).max() <= 0.001


def rmse_of(panel):
    """Mean over N of the root mean square over the buffers of model - published measurement."""
    table = published_table(f"sarpkaya2025/{panel}")
    link = (50, 30) if panel.endswith("b") else (10, 40)
    table["error"] = ware.bbr_share(*link, table["buffer_bdp"], table["bbr_flows"]) - table["share_of_capacity"]
    return table.groupby("bbr_flows")["error"].agg(lambda e: np.sqrt((e**2).mean())).mean()


@pytest.mark.parametrize("panel", ["fig2a", "fig2b", "fig2c", "fig3a", "fig3b", "fig3c", "fig5a", "fig5b", "fig5c"])
def test_rmse_from_published_data(panel):
    """data/ware2019/rmse.csv, all nine panels."""
    expected = pd.read_csv(paths.DATA / "ware2019/rmse.csv").set_index("panel").loc[f"sarpkaya2025/{panel}", "rmse"]
    assert rmse_of(panel) == pytest.approx(expected, abs=0.0006)


@pytest.mark.parametrize(("number", "rmse", "printed"), [(2, 0.071, "SA-01-02"), (3, 0.306, "SA-07-08")])
def test_rmse_over_a_figure(number, rmse, printed):
    """Mean over its three panels, which the paper rounds to two digits."""
    mean = np.mean([rmse_of(f"fig{number}{panel}") for panel in "abc"])
    assert mean == pytest.approx(rmse, abs=0.0005)
    said = published_table("sarpkaya2025/model_errors").set_index("id").loc[printed, "rmse"]
    assert mean == pytest.approx(said, abs=0.005)


def test_limits_of_the_simple_model():
    assert ware.loss_based_share(10, 40, 1e9, 1) == pytest.approx(0.5, abs=1e-6)  # eq. 5
    assert ware.loss_based_share(10, 40, 1e9, 1, inflight_cap=4) == pytest.approx(0.25, abs=1e-6)
    assert ware.loss_based_share(10, 40, 0.5, 1) == 0  # the cap exceeds BDP and buffer


@pytest.mark.parametrize("wrong", [{"rate_mbit": 0}, {"rtt_ms": -1}, {"buffer_bdp": float("nan")}, {"bbr_flows": 0}])
def test_bad_arguments_are_named(wrong):
    good = {"rate_mbit": 10, "rtt_ms": 40, "buffer_bdp": 1, "bbr_flows": 1}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ware.bbr_share(**(good | wrong))


@pytest.mark.parametrize("wrong", [0, -2, float("inf")])
def test_a_cap_that_is_none_is_named(wrong):
    with pytest.raises(ValueError, match=f"inflight_cap: must be positive and finite, found {wrong:g}"):
        ware.loss_based_share(10, 40, 1, 1, inflight_cap=wrong)


def test_scenarios():
    flows = [{"cca": "bbr1", "count": 4}, {"cca": "cubic"}]
    assert ware.scenario_share(validate(scenario_dict(flows=flows), "s")) == pytest.approx(0.958, abs=0.001)
    with pytest.raises(UserError, match="found cubic"):
        ware.scenario_share(validate(scenario_dict(), "s"))
    deep = validate(scenario_dict(flows=flows, network__buffer={"bdp": 1000}), "s")
    assert ware.share_of(deep.network, 4) == 0
    with pytest.raises(UserError, match="test: the Ware model does not describe network.buffer: "):
        ware.scenario_share(deep)
    with pytest.raises(UserError, match="drop-tail"):
        ware.scenario_share(validate(scenario_dict(flows=flows, network__qdisc={"kind": "codel"}), "s"))


@pytest.mark.parametrize(
    ("flows", "described"),
    [
        ([{"cca": "bbr1", "count": 4}, {"cca": "cubic"}], True),
        ([{"cca": "bbr3"}, {"cca": "cubic"}, {"cca": "reno", "start_s": 1}], True),
        ([{"cca": "cubic"}, {"cca": "bbr1"}], False),
        ([{"cca": "bbr1"}, {"cca": "bbr1"}, {"cca": "cubic"}], False),
        ([{"cca": "bbr1"}], False),
        ([{"cca": "bbr1"}, {"cca": "dctcp"}], False),
        ([{"cca": "bbr1"}, {"cca": "cubic", "rtt_ms": 80}], False),
        ([{"cca": "bbr1", "count": 2, "rtts_ms": [20, 40]}, {"cca": "cubic"}], False),
        ([{"cca": "bbr1", "stop_s": 2}, {"cca": "cubic"}], False),
    ],
)
def test_whose_share_it_speaks_of(flows, described):
    """The first group's, of BBR against loss-based flows of one RTT."""
    assert ware.describes(validate(scenario_dict(flows=flows), "s")) is described
    assert not ware.describes(validate(scenario_dict(flows=flows, hosts={"receive_offload": "gro"}), "s"))
