"""The plan of a run that was handed in: what else the run kept changes none of its results."""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from bbrlab.base import python
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import read_yaml
from bbrlab.experiment import iperf3_library
from bbrlab.experiment.plan import make_plan
from bbrlab.run.capture import Capture, add_capture
from bbrlab.run.manifest import plan_digest
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from bbrlab_apps.grading.load import load_rubric
from bbrlab_apps.grading.personal import personal
from bbrlab_apps.grading.rerun import _again
from bbrlab_apps.grading.rubric import Limits
from bbrlab_apps.grading.sheet import sheet_of
from bbrlab_apps.grading.submitted_runs import EDITED_MANIFEST, _can_be_made_again, _Findings, _plan
from bbrlab_apps.grading.submitted_scenario import compared, identity, safe_scenario
from tests.conftest import scenario_dict
from tests.graded import RUBRIC, write_rubric

KERNEL = SimpleNamespace(ccas={"bbr1": "bbr", "cubic": "cubic"}, modules={})


@pytest.mark.parametrize("trace", ["", "acks", "changes"])
def test_a_run_of_which_packets_or_acks_were_kept_is_no_forgery(trace):
    point = base_point(validate(scenario_dict(), "s"))
    content = make_plan(
        point, 1, KERNEL.ccas, preload=f"/run/lib/{iperf3_library.LIBRARY}", trace=trace, modules={}
    ).content
    kept = copy.deepcopy(content)
    add_capture(kept, point, Capture(("bottleneck", "hosts")))
    assert kept != content and plan_digest(kept) == plan_digest(content)
    folder = _Findings("run", {})
    plan, _ = _plan(folder, SimpleNamespace(seed=1, plan_sha256=plan_digest(kept)), point, KERNEL)
    assert not folder.flags and not folder.wrong
    assert plan.content["trace_acks"] == bool(trace)
    _plan(folder, SimpleNamespace(seed=1, plan_sha256=plan_digest(kept | {"duration_ns": 1})), point, KERNEL)
    assert [kind for kind, _ in folder.flags] == [EDITED_MANIFEST]


def test_a_links_trace_may_be_one_that_comes_with_the_package_and_no_file():
    """A run's manifest has its whole path, on the machine of who made it."""

    def points(trace):
        return safe_scenario(scenario_dict(network__rate_mbit=6, network__trace=trace), "scenario.yaml", 9)

    with pytest.raises(UserError, match="network.trace: 'mine.txt': no file can be named here; give cellular or leo"):
        points("mine.txt")
    (by_name,), (by_path,) = points("cellular"), points("/home/ada/bbrlab/data/traces/cellular.txt")
    assert identity(by_name) == identity(by_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"network__trace": "FILE"}, {"network__changes": "FILE"}, {"flows": [{"cca": "bbr1", "traffic": {"trace": "FILE"}}]},
        {"cases": {"one": {"network.changes": "FILE"}}}, {"sweep": {"network.changes": ["FILE"]}}, {"sweep": {"network.trace": ["FILE"]}},
        {"sweep": {"network": [{"rate_mbit": 10, "rtt_ms": 40, "buffer": {"bdp": 1}, "changes": "FILE"}]}},
        {"sweep": {"flows.0.traffic": [{"trace": "FILE"}]}}, {"cases": {"one": {"flows": [{"cca": "reno", "traffic": {"trace": "FILE"}}]}}},
    ],
)  # fmt: skip
def test_a_submission_has_no_file_opened(tmp_path, changes):
    """A pipe: who opened it would wait."""
    os.mkfifo(file := tmp_path / "pipe")
    written = json.loads(json.dumps(scenario_dict(**changes)).replace("FILE", str(file)))
    with pytest.raises(UserError, match="no file can be named here"):
        safe_scenario(written, "scenario.yaml", 9)
    file.unlink()
    file.write_text("the teacher's secret\n")
    with pytest.raises(UserError) as told:
        safe_scenario(written, "scenario.yaml", 9)
    assert "secret" not in str(told.value)


def test_a_rubric_may_have_changes_of_a_file_beside_it(tmp_path, monkeypatch):
    """The teacher's own file: students get its rows."""
    (tmp_path / "rtts.txt").write_text("0 40\n1 60\n2 80\n9 20\n")
    network = RUBRIC["scenario"]["network"]
    file = write_rubric(tmp_path, scenario=RUBRIC["scenario"] | {"network": network | {"changes": "rtts.txt"}})
    monkeypatch.chdir("/")
    rubric = load_rubric(file)
    asked = personal(rubric, "ada")
    handed_out = sheet_of(rubric, asked).scenario
    assert [(row["at_s"], row["rtt_ms"]) for row in handed_out["network"]["changes"]][-2:] == [(1, 60), (2, 80)]
    assert compared(safe_scenario(handed_out, "scenario.yaml", 9), asked.assignment.points, {}) == []


def test_points_of_a_rubric_read_no_rows_of_another_run(tmp_path):
    """The rows are those of the scenario's own length, and would stay so at a point that is longer."""
    (tmp_path / "rtts.txt").write_text("0 40\n1 60\n2 80\n9 20\n")
    network = RUBRIC["scenario"]["network"] | {"changes": "rtts.txt"}
    changes = {"network": network, "cases": {"long": {"duration_s": 60}}}
    with pytest.raises(
        UserError, match=r"rubric\.yaml:.*network\.changes rtts\.txt: .*but cases\.long sets duration_s"
    ) as told:
        load_rubric(write_rubric(tmp_path, scenario=RUBRIC["scenario"] | changes))
    remedy = yaml.safe_load(re.search(r"\(sweep: (.*?\})\)", str(told.value))[1])
    changes |= {"network": RUBRIC["scenario"]["network"], "sweep": remedy}
    rubric = load_rubric(write_rubric(tmp_path, scenario=RUBRIC["scenario"] | changes))
    (point,) = personal(rubric, "ada").assignment.points
    assert [(row.at_s, row.rtt_ms) for row in point.scenario.network.changes] == [(1, 60)]


@pytest.mark.parametrize(
    "changes",
    [{"network": RUBRIC["scenario"]["network"] | {"trace": "t.txt"}}, {"sweep": {"network.changes": ["t.txt"]}}],
)
def test_a_rubric_asks_for_no_file_that_students_cannot_have(tmp_path, changes):
    (tmp_path / "t.txt").write_text("0 20\n1 30\n")
    with pytest.raises(UserError, match=r"rubric\.yaml:.*network\..*: no file can be named here"):
        load_rubric(write_rubric(tmp_path, scenario=RUBRIC["scenario"] | changes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"network": RUBRIC["scenario"]["network"] | {"policer": None}},
            "scenario: network.policer is empty; fill it in",
        ),
        ({"flows": [{"cca": "bbr1", "bytes": None}, {"cca": "cubic"}]}, "scenario: flows.0.bytes is empty; fill it in"),
    ],
)
def test_a_rubric_leaves_no_field_empty(tmp_path, changes, told):
    """Without its value students would run another experiment than the one that was meant."""
    with pytest.raises(UserError, match=re.escape(told)):
        load_rubric(write_rubric(tmp_path, scenario=RUBRIC["scenario"] | changes))


def test_several_links_are_not_graded():
    with pytest.raises(UserError, match=r"network\.links: runs over several links are not graded"):
        safe_scenario(scenario_dict(network__links=[{}, {}]), "scenario.yaml", 9)


@pytest.mark.parametrize("figure", ["1e3", "08", "+.5", ".5e3", "1e400", "yes"])
def test_a_run_is_made_again_of_the_scenario_that_it_has(tmp_path, monkeypatch, figure):
    """A text that reads as a number would fail here, and the forged run would count."""
    seen = []

    def start(module, command, file, *words, **settings):
        seen.append(read_yaml(Path(file)))
        raise UserError("that is enough")

    monkeypatch.setattr(python, "start", start)
    run = {"name": "r", "seed": 1, "scenario": scenario_dict(figure=figure)}
    point = base_point(validate(run["scenario"], "s"))
    with pytest.raises(UserError, match="enough"):
        _again(Limits(), run, 0, point, SimpleNamespace(name="k"), tmp_path / "again")
    assert seen == [run["scenario"]] == [_can_be_made_again(run["scenario"])]


@pytest.mark.parametrize("figure", ["\ud800", {"params": 10**1500}])
def test_a_run_whose_scenario_no_file_can_have_does_not_count(figure):
    with pytest.raises(
        UserError, match=r"manifest\.json: its scenario has texts or numbers that no scenario file can have"
    ):
        _can_be_made_again(scenario_dict(figure=figure))
