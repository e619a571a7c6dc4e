"""``bbrlab campaign``: what it checks, and what it hands to snakemake."""

from __future__ import annotations

import os
import sys

import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign import planning
from bbrlab.campaign.plan import plan_file, read_plan
from bbrlab.cli import campaign as command


@pytest.fixture
def started(tmp_path, monkeypatch):
    """The command lines that it becomes."""
    found: list[list[str]] = []
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "execv", lambda program, argv: found.append(argv))
    return found


def test_it_checks_forecasts_plans_and_becomes_snakemake(started, tmp_path, capsys, monkeypatch):
    command.campaign(["tang/fig2"], scale="smoke", cores=3)
    head = [sys.executable, "-P", "-m", "snakemake", "--cores"]
    assert started == [[*head, "3", "--config", "scale=smoke", "--", "tang/fig2"]]
    said = capsys.readouterr().err
    assert "tang/fig2" in said and "of testbed time" in said
    plan = read_plan(plan_file("smoke", None, None))
    assert plan is not None and "tang/fig2" in plan.figures
    monkeypatch.setattr(planning, "make_plan", lambda given: pytest.fail("worked out again"))
    command.campaign(None, scale="smoke", dry=True)
    assert started[-1][-5:] == ["-n", "--config", "scale=smoke", "--", "all"]
    with pytest.raises(UserError, match="there is no figure or paper 'tang/fg2', did you mean tang/fig2"):
        command.campaign(["tang/fg2"], scale="smoke")
    # What it became has the lock still.
    with pytest.raises(UserError, match="another campaign is writing"):
        command.campaign(["tang/fig2"], scale="smoke")
    assert len(started) == 2


def test_what_there_is_not_starts_nothing(started):
    with pytest.raises(UserError, match="scale smok: no such scale"):
        command.campaign(["tang/fig2"], scale="smok")
    with pytest.raises(UserError, match="no such kernel"):
        command.campaign(["tang/fig2"], scale="smoke", kernel="linux-99")
    assert not started
    assert paths.ROOT.samefile(os.getcwd())
