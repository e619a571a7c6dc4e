"""``bbrlab play``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bbrlab.base import paths
from bbrlab.cli.app import Captured, CcaSources, Overrides, ScenarioFile, Snaplen, app, settings_of
from bbrlab.experiment.plan_types import SNAPLEN
from bbrlab_apps.play.terminal import VIEW_COLUMNS, VIEW_LINES, stop_printing

if TYPE_CHECKING:
    from bbrlab.scenario.point import Point


@app.command()
def play(
    scenario: ScenarioFile,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; default: results/play/NAME-TIME.", show_default=False)
    ] = None,
    set_: Overrides = None,
    case: Annotated[str | None, typer.Option(help="One of the scenario's cases.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of drawn RTTs.")] = 1,
    kernel: Annotated[str | None, typer.Option(help="Entry of config/kernels.yaml.")] = None,
    cca_source: CcaSources = None,
    pcap: Captured = None,
    snaplen: Snaplen = SNAPLEN,
    plain: Annotated[bool, typer.Option("--plain", help="No live view: Mininet's prompt alone.")] = False,
    watchdog_s: Annotated[float, typer.Option(help="End a guest that shows no sign of life for so many seconds.")] = 60,
) -> None:
    """Play a scenario in real time: a Mininet prompt, and a live view of every flow.

    Flows can be started, stopped and given another algorithm, and rate, RTT and loss changed, while it runs. What was measured
    is kept as a run's results, with what was changed when. Without a terminal, commands are read from standard input.
    """
    from bbrlab.cli.outcome import show_outcome
    from bbrlab.experiment.machine.process import check_watchdog
    from bbrlab.run.capture import Capture
    from bbrlab.run.output import check_apart
    from bbrlab.scenario.load import base_point, load_scenario
    from bbrlab.scenario.notes import notes_beside_window
    from bbrlab_apps.play.session import Session, play_plain

    check_watchdog(watchdog_s)
    capture = Capture(tuple(pcap or ()), snaplen)
    sources = tuple(cca_source or ())
    point = base_point(load_scenario(scenario, settings_of(set_), case, sources))
    out = out or paths.results_folder() / "play" / f"{point.scenario.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    check_apart(scenario, out)
    for note in notes_beside_window([point]):
        typer.echo(f"note: {note}")
    why_plain = "" if plain else _why_plain()
    in_view = not (plain or why_plain)
    if in_view:  # before minutes of a kernel's build, for who lacks the view's libraries
        from bbrlab_apps.play.view import play_in_view
    _build_own(point, seed, kernel, sources)
    session = Session(point, seed, out, kernel, sources, watchdog_s, capture)
    if not in_view:
        if why_plain and sys.stdin.isatty():
            typer.echo(f"{why_plain}: Mininet's prompt alone", err=True)
        play_plain(session)
    else:
        play_in_view(session)
    stop_printing()
    show_outcome(session.summary(), out)


def _build_own(point: Point, seed: int, kernel: str | None, sources: tuple[Path, ...]) -> None:
    """Have the kernel with algorithms of one's own built, before the view and the guest's thread begin: it may take minutes.

    Ctrl-C and other signals end a build here as everywhere.
    """
    from bbrlab.kernel.own import own_of
    from bbrlab.run.compatibility import kernel_for
    from bbrlab_apps.play.playable import playable

    if not (own := own_of([flow.cca for flow in point.scenario.flows], kernel, sources)):
        return
    playable(point, seed)  # what cannot be played needs no kernel
    kernel_for(kernel, "uml", own, lambda text: typer.echo(f"guest: {text}", err=True))


def _why_plain() -> str:
    """Why there can be no live view here; empty if there can."""
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        return "this is no terminal"
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return f"a terminal of the kind {os.environ.get('TERM', 'without a name')} cannot show the live view"
    size = os.get_terminal_size(sys.stdout.fileno())
    if size.columns < VIEW_COLUMNS or size.lines < VIEW_LINES:
        return f"the live view needs {VIEW_COLUMNS} columns and {VIEW_LINES} lines, this terminal has {size.columns} and {size.lines}"
    return ""
