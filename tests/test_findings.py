"""Each finding's command exists: the command line takes it, and its scenario loads with its case and its overrides."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import typer

from bbrlab.base import paths
from bbrlab.claims.load import load_statements
from bbrlab.cli.app import overrides_of
from bbrlab.cli.main import app
from bbrlab.scenario.load import base_point, load_scenario


def commands() -> list[str]:
    findings = [f for s in load_statements() for f in (s.finding, *(c.finding for c in s.claims)) if f]
    return sorted({f.shows for f in findings if f.shows and f.shows.startswith("bbrlab run ")})


@pytest.mark.parametrize("command", commands())
def test_a_findings_command_exists(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(paths.ROOT)
    words = shlex.split(command)[2:]
    run = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
    options = run.make_context("run", [*words, *([] if "--out" in words else ["--out", "DIR"])]).params
    base_point(load_scenario(Path(options["scenario"]), overrides_of(options["set_"]), options["case"]))
