"""The plan of a campaign: worked out once, read by every job, worked out anew when something changed."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bbrlab.base import paths
from bbrlab.base.yaml_files import read_yaml
from bbrlab.campaign import planning, snakefile
from bbrlab.campaign.plan import plan_file, read_plan, signature_of, text_of
from bbrlab.results.figures import figures_at
from tests.conftest import scenario_dict

CONFIG = read_yaml(paths.CONFIG / "config.yaml") | {"scale": "smoke", "figures": ["tang/fig2"]}


def workflow(main: bool, **jobs) -> SimpleNamespace:
    return SimpleNamespace(is_main_process=main, **jobs)


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    return snakefile.plan_of(workflow(main=True), CONFIG)


# {how a scenario names FILE: the fields that do, and two contents of the file}
NAMED = {
    "as its own": ({"network__trace": "FILE"}, "0\n5\n", "0\n5\n9\n"),
    "in a sweep": ({"sweep": {"network.trace": ["cellular", "FILE"]}}, "0\n5\n", "0\n5\n9\n"),
    "in a case": ({"cases": {"one": {"network.trace": "FILE"}}}, "0\n5\n", "0\n5\n9\n"),
    "a list of changes": ({"network__changes": "FILE"}, "0 40\n5 60\n", "0 40\n5 70\n"),
}


@pytest.mark.parametrize(("changes", "first", "second"), NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("relative", [False, True])
def test_a_plan_follows_each_file_that_its_scenarios_name(changes, first, second, relative, tmp_path, monkeypatch):
    """Files outside of the checkout, of which points have the content."""
    monkeypatch.setattr(paths, "SCENARIOS", tmp_path / "scenarios")
    file, scenario = tmp_path / "file.txt", paths.SCENARIOS / "own" / "fig.yaml"
    scenario.parent.mkdir(parents=True)
    file.write_text(first)
    content = json.dumps(scenario_dict(paper="own", name="fig", **changes))
    scenario.write_text(content.replace("FILE", "../../file.txt" if relative else str(file)))
    others = planning._others(figures_at("smoke", ["own/fig"]))
    before = signature_of(CONFIG, others)
    assert signature_of(CONFIG, others) == before
    file.write_text(second)
    assert signature_of(CONFIG, others) != before


def refuse(*arguments: object) -> None:
    pytest.fail("worked out again")


def test_a_plan_is_worked_out_once(plan, tmp_path, monkeypatch):
    assert [*plan.figures] == ["tang/fig2"]
    assert read_plan(plan_file("smoke", None, ["tang/fig2"])) == plan
    monkeypatch.setattr(planning, "make_plan", refuse)
    assert snakefile.plan_of(workflow(main=True), CONFIG) == plan
    assert snakefile.plan_of(workflow(main=False), CONFIG) == plan


def test_a_plan_follows_what_it_was_made_from(plan, tmp_path, monkeypatch):
    anew = []
    monkeypatch.setenv(paths.REPLACE, "")  # the plan sets it for its process
    monkeypatch.setattr(planning, "make_plan", lambda given: anew.append(given) or plan)
    snakefile.plan_of(workflow(main=True), CONFIG | {"replace": "bbr1:bbr2"})
    point = next((tmp_path / "points/tang/fig2").iterdir())
    point.rename(tmp_path / "away")
    snakefile.plan_of(workflow(main=True), CONFIG)
    (tmp_path / "away").rename(point)
    place = plan_file("smoke", None, ["tang/fig2"])
    place.write_text(text_of(dataclasses.replace(plan, signature="of another scenario")))
    snakefile.plan_of(workflow(main=True), CONFIG)
    place.write_text(json.dumps({"of": "another version"}))
    snakefile.plan_of(workflow(main=True), CONFIG)
    assert len(anew) == 4


def test_files_of_a_plan_are_put_right(plan, tmp_path):
    """As when another version, or another scale, wrote them in between."""
    stamp = tmp_path / "code" / "runs.sha256"
    right = stamp.read_text()
    stamp.write_text("of another version")
    snakefile.plan_of(workflow(main=True), CONFIG)
    assert stamp.read_text() == right


def test_a_job_that_sees_no_plan_works_out_its_own_figure(tmp_path, monkeypatch):
    """A pod of Kubernetes; the command line is Snakemake's own for its jobs."""
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    job = "run:paper=sarpkaya2025,figure=fig3a,label=buffer.bdp=1%2Cx=2,seed=1"
    monkeypatch.setattr(sys, "argv", ["snakemake", "--target-jobs", job, "--mode", "remote"])
    plan = snakefile.plan_of(workflow(main=False), CONFIG | {"figures": []})
    assert [*plan.figures] == ["sarpkaya2025/fig3a"]
    points = plan.figures["sarpkaya2025/fig3a"].points
    assert len(list((tmp_path / "points/sarpkaya2025/fig3a").iterdir())) == len(points)
    assert not (tmp_path / "plan").exists(), "it is of that job only"


def test_figures_of_a_command_line():
    runs = ["run:paper=a,figure=f,label=x,seed=1", "run:paper=a,figure=f,label=x,seed=2", "collect:paper=b,figure=g"]
    assert snakefile.figures_of_jobs(["snakemake", "--target-jobs", *runs]) == ["a/f", "b/g"]
    assert snakefile.figures_of_jobs(["snakemake", "--target-jobs", *runs, "kernel:own=x"]) == []
    assert snakefile.figures_of_jobs(["snakemake", "-n", "all"]) == []


def test_a_job_imports_nothing_that_takes_time():
    """Each of a cluster's jobs starts Snakemake with this."""
    code = (
        "import sys, bbrlab.campaign.snakefile, bbrlab.campaign.targets, bbrlab_apps.container.jobs\n"
        "print(*({'numpy', 'pandas', 'scipy', 'numba', 'pydantic'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=paths.ROOT)
    assert not done.stdout.strip()
