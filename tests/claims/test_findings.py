"""Each finding names a command of this package that shows it, which would run, or the table of the data that does."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import bbrlab.cli.commands  # noqa: F401 - adds every command to app
from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign.targets import targets_of
from bbrlab.claims.load import claims_of
from bbrlab.cli.app import app, overrides_of
from bbrlab.results.figures import figures_at, scenario_files
from bbrlab.scenario.load import base_point, load_scenario
from tests.made_up import all_statements


def problem_of(command: str) -> str:
    """What is wrong with a command line, or with a table's path; empty if it would run, or is there."""
    if command.startswith("data/"):
        return "" if (paths.ROOT / command).is_file() else f"{command}: no such table"
    program, *words = shlex.split(command)
    try:
        if program == "bbrlab":
            _parse(words)
        elif program == "snakemake":
            _targets(words)
        else:
            return f"{program} is no command of this package (bbrlab, snakemake)"
    except Exception as error:  # Typer has its own copy of Click's errors
        return str(error) or type(error).__name__
    return ""


def _parse(words: list[str]) -> None:
    """Read the words as the command line does, run nothing, and load the scenario with its case and values."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("bbrlab", list(words))
    while hasattr(command, "commands"):
        name, command, words = command.resolve_command(context, words)
        context = command.make_context(name, list(words), parent=context)
    given = context.params
    if "scenario" in given:
        base_point(load_scenario(Path(given["scenario"]), overrides_of(given.get("set_")), given.get("case")))


def _targets(words: list[str]) -> None:
    """Know the scale and the targets."""
    scale = next((w.partition("=")[2] for w in words if w.startswith("scale=")), None)
    options = {i + 1 for i, w in enumerate(words) if w in ("--cores", "-c", "--config")}
    targets = [w for i, w in enumerate(words) if not w.startswith("-") and i not in options]
    known = {"all", *targets_of(scenario_files())}
    if not targets or not set(targets) <= known:
        raise UserError(f"targets: {', '.join(sorted(set(targets) - known)) or 'none'}")
    figures_at(scale, [id for t in targets if t != "all" for id in targets_of(scenario_files())[t]])


def findings() -> dict[str, str]:
    """{statement or claim: the command of its finding}."""
    told = [*all_statements(), *claims_of(all_statements())]
    return {x.id: x.finding.shows for x in told if x.finding}


def test_each_finding_has_a_command_that_would_run():
    problems = {shows: problem_of(shows) for shows in set(findings().values())}  # many claims share one
    wrong = {id: problems[shows] for id, shows in findings().items()}
    assert {id: problem for id, problem in wrong.items() if problem} == {}


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("rm -rf results", "rm is no command of this package"),
        ("bbrlab rin scenarios/ware2019/fig3.yaml --out x", "No such command"),
        ("bbrlab run scenarios/ware2019/fig3.yaml", "Missing parameter: out"),
        ("bbrlab run scenarios/ware2019/fig99.yaml --out x", "fig99.yaml"),
        ("bbrlab run scenarios/ware2019/fig3.yaml --out x --speed 3", "No such option"),
        ("bbrlab run scenarios/ware2019/fig3.yaml --out x --set network.buffer.bpd=3", "bpd"),
        ("bbrlab run scenarios/bless2025/fig4.yaml --out x --case nobody", "no such case"),
        ("snakemake --cores 2 fig99", "fig99"),
        ("data/sarpkaya2025/fig9.csv", "no such table"),
        ("snakemake --cores 2 --config scale=huge -- fig3", "huge"),
    ],
)
def test_a_command_that_would_not_run(command, says):
    assert says in problem_of(command)


@pytest.mark.parametrize(
    "command",
    [
        "bbrlab run scenarios/bless2025/fig4.yaml --case bbr3 --set network.rtt_ms=20 --out results/look",
        "bbrlab model ware scenarios/ware2019/fig3.yaml",
        "snakemake --cores 2 --config scale=full -- ware2019",
        "snakemake --cores 8 fig2a",
        "data/sarpkaya2025/fig2a.csv",
    ],
)
def test_a_command_that_would(command):
    assert problem_of(command) == ""
