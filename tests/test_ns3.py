"""The optional check by ns-3: which points it can do, and what is said where it is not installed."""

from __future__ import annotations

import pytest

from bbrlab.base.errors import UserError
from bbrlab.campaign import ns3
from bbrlab.campaign.figures import figures_at
from bbrlab.campaign.ns3 import PYTHON, able, description, lacks, run
from bbrlab.scenario.load import points_of
from bbrlab.scenario.messages import validate
from tests.conftest import scenario_dict


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"flows": [{"cca": "bbr1"}, {"cca": "reno", "count": 3}]}, None),
        ({"flows": [{"cca": "bbr3"}]}, "flows.0.cca bbr3"),
        ({"flows": [{"cca": "bbr1", "bytes": 1000}]}, "flows.0.bytes"),
        ({"flows": [{"cca": "bbr1", "params": {"policer_detection": False}}]}, "flows.0.params"),
        ({"network__qdisc": {"kind": "codel"}}, "qdisc"),
        ({"network__rtt_ms": [10, 20], "flows": [{"cca": "bbr1", "count": 2}]}, "different RTTs"),
    ],
)
def test_what_it_can_do(changes, words):
    (point,) = points_of(validate(scenario_dict(**changes), "test"))
    found = lacks(point)
    assert found is None if words is None else words in (found or "")


def test_every_point_of_tang_can_be_checked():
    figures = figures_at("quick", ["tang"])
    assert len(list(able(figures))) == sum(len(f.points) for f in figures)
    described = description("tang/fig5", figures[0].points[0], 2)
    assert described["seed"] == 2
    assert described["window_s"][0] < described["window_s"][1] <= described["duration_s"]


def test_not_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(ns3, "PYTHON", tmp_path / "nothing")
    with pytest.raises(UserError, match="optional: make ns3"):
        run(figures_at("quick", ["tang"]), 1)


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="ns-3 is not installed (make ns3)")
def test_a_single_flow_fills_the_link():
    figures = figures_at("smoke", ["tang/fig2"])
    found = run(figures, 1)
    assert (found["goodput_mbit"] > 8).all()
