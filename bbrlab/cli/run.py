"""``bbrlab run``."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.cli.app import (
    EXIT_CHECKS,
    AsJson,
    Captured,
    CcaSources,
    KernelName,
    Overrides,
    ScenarioFile,
    Snaplen,
    app,
    print_json,
    settings_of,
)
from bbrlab.experiment.plan_types import SNAPLEN


@app.command()
def run(
    scenario: ScenarioFile,
    out: Annotated[Path, typer.Option(help="Folder for summary.json, samples.parquet, manifest.json and guest.log.")],
    set_: Overrides = None,
    case: Annotated[str | None, typer.Option(help="One of the scenario's cases.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of this trial.")] = 1,
    backend: Annotated[
        str,
        typer.Option(
            help="uml: virtual time; qemu: a virtual machine in real time; host: this machine's kernel, as root, in real time."
        ),
    ] = "uml",
    kernel: KernelName = None,
    sender_kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP=NAME",
            help="With qemu: the senders of this flow group (0, 1, ...) in a machine of their own with this kernel.",
        ),
    ] = None,
    cca_source: CcaSources = None,
    watchdog_s: Annotated[
        float,
        typer.Option(
            help="End a guest that shows no sign of life for so many real seconds (waiting for its core does not count)."
        ),
    ] = 60,
    strict: Annotated[bool, typer.Option(help=f"Exit with {EXIT_CHECKS} if a self-check fails.")] = False,
    trace_acks: Annotated[
        bool, typer.Option("--trace-acks", help="Also write acks.parquet: each flow's state at every ACK and timeout.")
    ] = False,
    trace_changes: Annotated[
        bool,
        typer.Option("--trace-changes", help="The same, only for ACKs and timeouts at which a flow's state changes."),
    ] = False,
    pcap: Captured = None,
    snaplen: Snaplen = SNAPLEN,
    quiet: Annotated[bool, typer.Option(help="Print only what is wrong.")] = False,
    as_json: AsJson = False,
    die_with_parent: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Run one point of a scenario once."""
    from bbrlab.cli.outcome import show_outcome
    from bbrlab.measure.checks.check import failure_words
    from bbrlab.run.capture import Capture
    from bbrlab.run.compatibility import BACKENDS
    from bbrlab.run.output import check_apart
    from bbrlab.run.run import run_point
    from bbrlab.scenario.load import base_point, load_scenario
    from bbrlab.scenario.notes import notes_of

    if backend not in BACKENDS:
        raise UserError(f"--backend {backend}: no such backend; use one of {', '.join(BACKENDS)}")
    if backend == "host" and kernel:
        raise UserError(
            f"--kernel {kernel}: would have no effect with --backend host, which runs this machine's own kernel; leave it out"
        )
    if trace_acks and trace_changes:
        raise UserError("--trace-acks and --trace-changes: give one of them; the former has all that the latter has")
    trace: Literal["", "acks", "changes"] = "acks" if trace_acks else "changes" if trace_changes else ""
    capture = Capture(tuple(pcap or ()), snaplen)
    check_apart(scenario, out)
    sources = tuple(cca_source or ())
    loaded = load_scenario(scenario, settings_of(set_), case, sources)
    point = base_point(loaded)
    if (loaded.sweep or loaded.cases) and not quiet:
        axes = ([number_of(len(loaded.cases), "case")] if loaded.cases else []) + [
            f"{number_of(len(v), 'value')} of {k}" for k, v in loaded.sweep.items()
        ]
        typer.echo(f"{loaded.name} has {' x '.join(axes)}; this runs the file's own values. "
                   f"Choose others with --set and --case, or run them all with {all_points_with(scenario)}.", err=as_json)  # fmt: skip
    for note in [] if quiet else notes_of([point]):
        typer.echo(f"note: {note}", err=as_json)
    with _progress(point.scenario.duration_s, quiet, as_json) as report:
        summary = run_point(point, seed, out, kernel_name=kernel, sources=sources, backend=backend, watchdog_s=watchdog_s,
                                   die_with_parent=die_with_parent, trace=trace, capture=capture, on_progress=report, sender_kernels=_by_group(sender_kernel))  # fmt: skip
    if as_json:
        print_json({"results": out.absolute(), "summary": summary})
    elif not quiet:
        show_outcome(summary, out)
    if words := failure_words(summary["checks"]):
        if quiet or as_json:
            typer.echo(f"bbrlab: {out}: {words}", err=True)
        if strict:
            raise typer.Exit(EXIT_CHECKS)


def _by_group(items: list[str] | None) -> dict[int, str]:
    """{group: kernel} of ``--sender-kernel`` options. UserError for one that is not GROUP=NAME, or two of a group."""
    from bbrlab.scenario.load import INDEX

    kernels: dict[int, str] = {}
    for item in items or []:
        group, equals, name = item.partition("=")
        if not equals or not name or not INDEX.fullmatch(group):
            raise UserError(f"--sender-kernel {item}: give GROUP=NAME, for example --sender-kernel 1=lab-6.1-qemu")
        if int(group) in kernels:
            raise UserError(f"--sender-kernel {item}: group {group} is given twice; keep one")
        kernels[int(group)] = name
    return kernels


def all_points_with(scenario: Path) -> str:
    """What runs all points of a scenario's file: the workflow those of the papers, bbrlab sweep others."""
    from bbrlab.results.config import command_for, in_checkout, load_config

    path = scenario.resolve()
    if path.parent.parent != paths.SCENARIOS:
        return f"bbrlab sweep {shlex.quote(str(scenario))}"
    return in_checkout(command_for(f"{path.parent.name}/{path.stem}", load_config().scale))


@contextlib.contextmanager
def _progress(duration_s: float, quiet: bool, to_stderr: bool) -> Iterator[Any]:
    if quiet or not sys.stderr.isatty():
        last = [0.0]

        def plain(verb: str, text: str) -> None:
            if quiet:
                return
            if verb == "stage":
                typer.echo(f"guest: {text}", err=to_stderr)
            elif verb == "at" and time.monotonic() - last[0] > 10:
                last[0] = time.monotonic()
                typer.echo(f"guest: {float(text):g} of {duration_s:g} virtual seconds", err=to_stderr)

        yield plain
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from bbrlab.base.console import Console

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} virtual s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("set-up", total=duration_s)

        def report(verb: str, text: str) -> None:
            if verb == "stage":
                bar.update(task, description=text)
            elif verb == "at":
                bar.update(task, completed=float(text))

        yield report
