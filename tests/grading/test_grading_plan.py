"""The plan of a run that was handed in: what else the run kept changes none of its results."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest

from bbrlab.base.errors import UserError
from bbrlab.experiment import iperf3_library
from bbrlab.experiment.plan import make_plan
from bbrlab.run.capture import Capture, add_capture
from bbrlab.run.manifest import plan_digest
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from bbrlab_apps.grading.submitted_runs import EDITED_MANIFEST, _Findings, _plan
from bbrlab_apps.grading.submitted_scenario import safe_scenario
from tests.conftest import scenario_dict

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


@pytest.mark.parametrize("trace", ["/etc/passwd", "mine.txt", ["cellular"], {"file": "x"}])
def test_a_links_trace_may_be_one_that_comes_with_the_package_and_no_file(trace):
    def points(trace):
        return safe_scenario(scenario_dict(network__rate_mbit=6, network__trace=trace), "scenario.yaml", 9)

    with pytest.raises(UserError, match="by its name"):
        points(trace)
    assert points("cellular")


def test_several_links_are_not_graded():
    with pytest.raises(UserError, match=r"network\.links: runs over several links are not graded"):
        safe_scenario(scenario_dict(network__links=[{}, {}]), "scenario.yaml", 9)
