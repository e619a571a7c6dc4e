"""The optional check by ns-3: which points it can do, and what is said where it is not installed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.results.figures import Figure, figures_at
from bbrlab.scenario.load import points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.schema import Hosts
from bbrlab_apps.ns3 import runs as ns3
from bbrlab_apps.ns3.runs import PYTHON, able, description, lacks, left_out, run
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
        ({"hosts__segmentation": "nic"}, None),  # which left_out() tells
        ({"hosts__segmentation": "router"}, "hosts.segmentation router"),
        ({"hosts__receive_offload": "gro"}, "hosts.receive_offload gro"),
        ({"hosts__receive_offload": "gro-timer"}, "hosts.receive_offload gro-timer"),
        ({"hosts__pacing": "fq"}, "hosts.pacing fq"),
        ({"hosts__rmem_max_bytes": 50_000}, "hosts.rmem_max_bytes"),
        ({"hosts__wmem_initial_bytes": 50_000}, "hosts.wmem_initial_bytes"),
        ({"hosts__wmem_max_bytes": 50_000}, "hosts.wmem_max_bytes"),
        ({"network__buffer": {"bytes": ns3.SOCKET_BYTES - 51_000}}, None),
        ({"network__buffer": {"bytes": ns3.SOCKET_BYTES - 49_000}}, "BDP and buffer of more than 64 MiB"),
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


def test_every_setting_of_the_hosts_is_done_refused_or_told():
    """A new one is none of these until somebody has thought of it."""
    told = {
        "segmentation",
        "receive_offload",
        "receive_offload_us",
        "pacing",
        "ecn",
        "noise",
        "rmem_max_bytes",
        "wmem_max_bytes",
        "rmem_initial_bytes",
        "wmem_initial_bytes",
    }
    assert set(Hosts.model_fields) == told


def test_what_it_leaves_out_is_told_with_each_run_and_row(monkeypatch, tmp_path):
    (nic,) = points_of(validate(scenario_dict(hosts__segmentation="nic"), "test"))
    (single,) = points_of(validate(scenario_dict(), "test"))
    assert description("p/f", single, 1)["label"] == f"p/f {single.label} seed 1"
    assert description("p/f", nic, 1)["label"].endswith(
        "seed 1 (without hosts.segmentation nic: it sends single packets)"
    )
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\npoints = json.load(open(sys.argv[1]))\n"
        "json.dump([{'goodput_mbit': [9.0], 'wall_s': 1} for _ in points], open(sys.argv[2], 'w'))\n"
    )
    monkeypatch.setattr(ns3, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(ns3, "INSTALLED", program)
    monkeypatch.setattr(ns3, "PROGRAM", program)
    found = run([Figure("p/f", nic.scenario, [nic, single], 1)], 1)
    assert found["left_out"].tolist() == [left_out(nic), ""]
    program.write_text("raise SystemExit('no such module: ns')")
    with pytest.raises(UserError, match="^ns-3 made no results: no such module: ns$"):
        run([Figure("p/f", nic.scenario, [nic, single], 1)], 1)


def test_the_program_has_the_sockets_that_are_reckoned_with():
    text = (paths.ROOT / "ns3" / "dumbbell.py").read_text(encoding="utf-8")
    (size,) = re.findall(r"^BUFFER_BYTES = 1 << (\d+)$", text, re.MULTILINE)
    assert 1 << int(size) == ns3.SOCKET_BYTES


def test_not_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(
        ns3, "PYTHON", Path(sys.executable)
    )  # of an installation that failed there may be Python already
    monkeypatch.setattr(ns3, "INSTALLED", tmp_path / "nothing")
    with pytest.raises(UserError, match="optional: make ns3"):
        run(figures_at("quick", ["tang"]), 1)


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="ns-3 is not installed (make ns3)")
def test_a_single_flow_fills_the_link():
    figures = figures_at("smoke", ["tang/fig2"])
    found = run(figures, 1)
    assert (found["goodput_mbit"] > 8).all()
