"""Made-up runs in the place of guests, for commands that run a study."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from bbrlab.campaign import lock
from bbrlab.run.processes import Ended, Job, Started
from bbrlab.scenario.point_files import read_point
from bbrlab_apps.study import run as study_run
from tests.conftest import scenario_dict
from tests.made_up_runs import made_up_run

SWEEP = {"network.buffer.bdp": [1, 4]}
QUESTION = scenario_dict(flows=[{"cca": "bbr3"}, {"cca": "cubic"}], sweep=SWEEP, name="exp1")


class Lab:
    """What runs points in the place of guests, and what it was asked for."""

    def __init__(self, key: str = "aaaa"):
        self.key, self.jobs, self.fails, self.bad = key, list[Job](), set[int](), set[int]()

    def run_job(self, job: Job, started: list[Started]) -> Ended:
        self.jobs.append(job)
        if job.seed in self.fails:
            return Ended("the guest said nothing for 60 s", 1.0)
        made_up_run(read_point(job.point), job.seed, job.out, self.key, ok=job.seed not in self.bad)
        return Ended("", 1.0)


@pytest.fixture
def lab(monkeypatch, tmp_path) -> Lab:
    """Made-up runs, in an empty working folder with a scenario."""
    found = Lab()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        lock, "hold_lock", lambda folder: folder.mkdir(parents=True, exist_ok=True)
    )  # it is the process's, to its end
    monkeypatch.setattr(study_run, "run_job", found.run_job)
    monkeypatch.setattr(study_run, "kernel_of", lambda *given: SimpleNamespace(key=found.key))
    Path("my.yaml").write_text(yaml.safe_dump(QUESTION))
    return found
