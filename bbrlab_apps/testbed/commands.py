"""``bbrlab beside``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bbrlab.base.errors import UserError
from bbrlab.base.limits import all_cores
from bbrlab.base.outputs import check_file
from bbrlab.base.words import number_of, shown
from bbrlab.cli.app import KernelName, Overrides, app, at_once, settings_of

if TYPE_CHECKING:
    from bbrlab_apps.study.plan import Study
    from bbrlab_apps.testbed.draw import Row
    from bbrlab_apps.testbed.estimate import Estimate
    from bbrlab_apps.testbed.recording import Recording

FORMATS = ("png", "svg")
SEEDS = 3  # of the runs that are drawn, if no number is given


@app.command()
def beside(
    recordings: Annotated[list[Path], typer.Argument(metavar="FILE...", help="iperf3's JSON (-J, --json-stream), output of ss -tin, flent's data files; several of one test.", show_default=False)],
    set_: Overrides = None,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Run the scenario; or only write it.")] = True,
    seeds: Annotated[int | None, typer.Option(min=1, help=f"Runs with other seeds, drawn as a band; default: {SEEDS}.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the runs and the picture; the scenario is OUT.yaml beside it. Default: the first file's name, here.", show_default=False)] = None,
    cores: Annotated[int | None, at_once("Runs at once")] = None,
    kernel: KernelName = None,
) -> None:  # fmt: skip
    """Put recordings of a testbed beside the lab: say what they look like, write that as a scenario, run it, and draw both.

    It says by what it knows RTT, rate, buffer, loss and algorithms, where the files contradict what they or their names say, and what is assumed.
    """
    from bbrlab_apps.testbed.as_scenario import name_of, text_of
    from bbrlab_apps.testbed.estimate import estimate_from
    from bbrlab_apps.testbed.read import read_files

    if not run:
        _check_no_run({"--seeds": seeds, "--cores": cores, "--kernel": kernel})
    overrides = settings_of(set_)
    ccas, rtt_ms = _algorithms(overrides), _rtt_ms(overrides)
    read, problems = read_files(recordings)
    _show_read(read, problems)
    estimate = estimate_from(read, ccas, rtt_ms)
    _show_estimate(estimate)
    folder = out or Path(name_of(recordings[0]))
    if folder.name in ("", ".."):
        raise UserError(
            f"--out {folder}: give a folder with a name of its own, for example --out testbed; its scenario lies beside it"
        )
    if not run:
        _check_used(overrides, estimate)
    scenario = folder.with_name(f"{folder.name}.yaml")
    text = text_of(estimate, name_of(Path(f"{folder.name}.x")))
    if not scenario.is_file():
        check_file("--out", scenario)
    elif scenario.read_bytes() != text.encode():
        raise UserError(
            f"{scenario}: is there, and is another one; move it, choose another folder with --out, or run it as it is: bbrlab sweep {shlex.quote(str(scenario))}"
        )
    with _written(scenario, text):
        study = _study(estimate, scenario, folder, overrides, seeds or SEEDS, kernel) if run else None
    typer.echo("")
    _say(f"scenario: {scenario}")
    if study:
        _run(estimate, study, kernel, cores or all_cores())


@contextmanager
def _written(scenario: Path, text: str) -> Iterator[None]:
    """The scenario's file, which is gone again if what is to be done with it is refused, such as a run with an option that is wrong."""
    from bbrlab.base import files

    was_there = scenario.is_file()
    files.write_if_changed(scenario, text)
    try:
        yield
    except UserError:
        if not was_there:
            scenario.unlink()
        raise


def _check_no_run(given: dict[str, Any]) -> None:
    """That no option of runs is given where none is made."""
    for option, value in given.items():
        if value is not None:
            raise UserError(
                f"{option} {value}: has no effect with --no-run; leave it out, or give it to bbrlab sweep with the scenario that is written"
            )


def _algorithms(overrides: dict[str, Any]) -> dict[str, str]:
    """What ``--set flows.N.cca=`` says, by the group's name flows.N. UserError for an algorithm that the lab lacks."""
    from pydantic import ValidationError

    from bbrlab.scenario.messages import explain_error
    from bbrlab.scenario.schema import Flow

    chosen = {}
    for path, cca in overrides.items():
        if not (re.fullmatch(r"flows\.\d+\.cca", path) and isinstance(cca, str)):
            continue
        try:
            Flow(cca=cca)
        except ValidationError as error:
            raise UserError(explain_error(f"--set {path}={cca}", error.errors()[0], {})) from None
        chosen[path.removesuffix(".cca")] = cca
    return chosen


def _rtt_ms(overrides: dict[str, Any]) -> float | None:
    """What ``--set network.rtt_ms=`` says, which also tells how much of the files' RTTs is a queue; None if it says no number."""
    from bbrlab_apps.testbed.recording import RTT_MS_MAX, is_there, number

    rtt_ms = number(overrides.get("network.rtt_ms"), RTT_MS_MAX, 1e-3)
    return rtt_ms if is_there(rtt_ms) else None


def _check_used(overrides: dict[str, Any], estimate: Estimate) -> None:
    """That what ``--set`` says is in the scenario that is written: algorithms and RTT are, the rest is of runs."""
    written: dict[str, Any] = {f"flows.{i}.cca": group.cca for i, group in enumerate(estimate.groups)}
    written["network.rtt_ms"] = estimate.rtt_ms
    if unused := [path for path, value in overrides.items() if written.get(path) != value]:
        raise UserError(
            f"--set {unused[0]}: has no effect with --no-run; edit the scenario that is written, or give it to bbrlab sweep"
        )


def _say(words: str) -> None:
    """A line, with names of files and what is in files as a terminal may have them."""
    typer.echo(shown(words.replace("\n", "\\n")))


def _show_read(read: Sequence[Recording], problems: Sequence[str]) -> None:
    for one in read:
        system = f", {' '.join(one.system.split()[:3])}" if one.system else ""
        _say(
            f"read: {one.file}: {one.kind}, {number_of(len(one.flows), 'flow')}, {one.end_s - one.start_s:.4g} s{system}"
        )
        for words in one.not_read:
            _say(f"not read: {one.file}: {words}")
    for words in problems:
        _say(f"not read: {words}")


def _show_estimate(estimate: Estimate) -> None:
    from rich.table import Table

    from bbrlab.base.console import Console

    table = Table(box=None, pad_edge=False)
    for head, wrapped in (("\nwhat", False), ("\nlooks like", False), ("\nbecause", True)):
        table.add_column(head, no_wrap=not wrapped, overflow="fold")
    for finding in estimate.findings:
        table.add_row(finding.what, finding.value, finding.evidence)
    Console().print(table, markup=False)
    for words in estimate.contradictions:
        _say(f"contradiction: {words}")
    for words in estimate.assumed:
        _say(f"assumed: {words}")


def _study(
    estimate: Estimate, scenario: Path, folder: Path, overrides: dict[str, Any], seeds: int, kernel: str | None
) -> Study:
    """What is to be run. UserError if it cannot be: for an override, a folder or a kernel."""
    from bbrlab_apps.study.plan import plan_study
    from bbrlab_apps.study.run import kernel_of

    study = plan_study(scenario, folder, overrides, seeds)
    if len(study.figure.points) > 1 or len(study.figure.scenario.flows) != len(estimate.groups):
        raise UserError(
            "--set: a testbed is put beside one point with the same groups of flows; sweep the scenario with bbrlab sweep"
        )
    kernel_of(study, kernel, (), lambda text: typer.echo(f"kernel: {text}"))
    return study


def _run(estimate: Estimate, study: Study, kernel: str | None, cores: int) -> None:
    from dataclasses import replace

    from bbrlab.results.run_folder import RunFolder
    from bbrlab_apps.study.commands.sweep import make_runs
    from bbrlab_apps.study.plot import save
    from bbrlab_apps.study.sources import RunSource
    from bbrlab_apps.testbed.draw import draw, numbers

    make_runs(study, kernel, (), cores)
    ran = study.figure.points[0].scenario
    estimate = replace(estimate, duration_s=ran.duration_s, window_s=(ran.window_s[0], ran.window_s[1]),
                    groups=[replace(g, cca=flow.cca) for g, flow in zip(estimate.groups, ran.flows, strict=True)])  # fmt: skip
    runs = [RunSource(f"seed {one.seed}", RunFolder(one.folder)) for one in study.runs]
    _show_numbers(numbers(estimate, runs))
    pictures = [study.folder / f"{study.name}.{kind}" for kind in FORMATS]
    save(draw(estimate, runs), *pictures)
    failed = [one.name for one in runs if not one.summary["ok"]]
    if failed:
        typer.echo(f"bbrlab: self-checks failed in {', '.join(failed)}: {study.folder}", err=True)
    typer.echo(f"\npicture: {'  '.join(str(picture) for picture in pictures)}")


def _show_numbers(rows: Sequence[Row]) -> None:
    from rich.table import Table

    from bbrlab.base.console import Console
    from bbrlab.measure.metrics import label_of

    table = Table(box=None, pad_edge=False)
    for head, right in (("\nin the window", False), ("\ntestbed", True), ("\nlab", True), ("\nlab's runs", True)):
        table.add_column(head, justify="right" if right else "left", no_wrap=True)
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            table.add_row(group, style="bold")
        table.add_row(
            f"  {label_of(row.metric)}", _word(row.testbed), _word(row.lab), f"{_word(row.low)} to {_word(row.high)}"
        )
    Console().print(table)


def _word(value: float) -> str:
    text = f"{value:.4g}"
    return "-" if text == "nan" else re.sub(r"e\+0*", "e", text)
