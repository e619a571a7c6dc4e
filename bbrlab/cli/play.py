"""``bbrlab play``: the command, and what its two faces share: a thread for the guest, Ctrl-C, the end."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bbrlab.base import paths
from bbrlab.cli.app import (
    Captured,
    CcaSources,
    Overrides,
    ScenarioFile,
    Snaplen,
    app,
    overrides_of,
)
from bbrlab.cli.interrupts import Interrupted
from bbrlab.cli.streams import is_lost
from bbrlab.experiment.machine.prompt import LINE_BYTES, READY, PromptLink
from bbrlab.experiment.plan_types import SNAPLEN

if TYPE_CHECKING:
    from bbrlab.measure.summary import Summary
    from bbrlab.run.capture import Capture
    from bbrlab.run.played import Played
    from bbrlab.scenario.point import Point

TWICE_S = 2.0  # two Ctrl-C within this time end the play
POLL_S = 0.1
ENDS_S = 30.0  # a guest that was asked to end has so long
VIEW_COLUMNS, VIEW_ROWS = 80, 24  # the least that the view needs


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
    from bbrlab.cli.terminal import let_go
    from bbrlab.experiment.machine.process import check_watchdog
    from bbrlab.run.capture import Capture
    from bbrlab.run.output import check_apart
    from bbrlab.scenario.load import base_point, load_scenario

    check_watchdog(watchdog_s)
    capture = Capture(tuple(pcap or ()), snaplen)
    sources = tuple(cca_source or ())
    point = base_point(load_scenario(scenario, overrides_of(set_), case, sources))
    out = out or _new_folder(point.scenario.name)
    check_apart(scenario, out)
    why_plain = "" if plain else _why_plain()
    in_view = not (plain or why_plain)
    if in_view:  # before minutes of a kernel's build, for who lacks the view's libraries
        from bbrlab.cli.play_view import play_in_view
    _build_own(point, seed, kernel, sources)
    game = Game(point, seed, out, kernel, sources, watchdog_s, capture)
    if not in_view:
        if why_plain and sys.stdin.isatty():
            typer.echo(f"{why_plain}: Mininet's prompt alone", err=True)
        play_plain(game)
    else:
        play_in_view(game)
    let_go()
    show_outcome(game.summary(), out)


def _build_own(point: Point, seed: int, kernel: str | None, sources: tuple[Path, ...]) -> None:
    """Have the kernel with algorithms of one's own built, before the view and the guest's thread begin: it may take minutes.

    Ctrl-C and other signals end a build here as everywhere.
    """
    from bbrlab.kernel.own import own_of
    from bbrlab.run.compatibility import kernel_for
    from bbrlab.scenario.playable import playable

    if not (own := own_of([flow.cca for flow in point.scenario.flows], kernel, sources)):
        return
    playable(point, seed)  # what cannot be played needs no kernel
    kernel_for(kernel, "uml", own, lambda text: typer.echo(f"guest: {text}", err=True))


def _new_folder(name: str) -> Path:
    return paths.results_folder() / "play" / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _why_plain() -> str:
    """Why there can be no live view here; empty if there can."""
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        return "this is no terminal"
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return f"a terminal of the kind {os.environ.get('TERM', 'without a name')} cannot show the live view"
    size = os.get_terminal_size(sys.stdout.fileno())
    if size.columns < VIEW_COLUMNS or size.lines < VIEW_ROWS:
        return f"the live view needs {VIEW_COLUMNS} columns and {VIEW_ROWS} lines, this terminal has {size.columns} and {size.lines}"
    return ""


class Game:
    """A play whose guest runs in a thread of its own.

    Attributes:
        text: all that the prompt has shown and was given so far.
        stage: what the guest is doing before the prompt is there.
        folder, played: what the guest writes to, and what it was to play; None before it starts.
        over: set when the result is there, or why there is none.
        left: set when the terminal is gone.
    """

    def __init__(
        self,
        point: Point,
        seed: int,
        out: Path,
        kernel: str | None,
        sources: tuple[Path, ...],
        watchdog_s: float,
        capture: Capture,
    ):
        self.point, self.out = point, out
        self.link, self.stop, self.over = PromptLink(), threading.Event(), threading.Event()
        self.left = threading.Event()
        self.text, self.stage, self.at_s = "", "", 0.0
        self.folder: Path | None = None
        self.played: Played | None = None
        self.on_text: Callable[[str], None] = lambda text: None
        self.on_stage: Callable[[str], None] = lambda text: None
        self._summary: Summary | None = None
        self._error: BaseException | None = None
        self._interrupted_s = -TWICE_S
        self._lock = threading.Lock()
        self._arguments = (seed, kernel, sources, watchdog_s, capture)
        self._thread = threading.Thread(target=self._play, daemon=True)

    def begin(self) -> None:
        """Start the guest, and listen to its prompt."""
        self._thread.start()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def is_ready(self) -> bool:
        """Whether the prompt waits for a line."""
        return self.text.endswith(READY)

    def send(self, line: str, shown: bool = False) -> None:
        """Give the prompt a line, which the text then has, too.

        Args:
            line: without its end.
            shown: the terminal shows it already, so that ``on_text`` need not.
        """
        line = "".join(c for c in line if c.isprintable())
        self._add(line + "\n", shown)
        if not self.link.send_line(line):
            self._add(f"*** a line has at most {LINE_BYTES} bytes; nothing was done\n{READY}")

    def interrupt(self) -> None:
        """Ctrl-C: end the command that runs; twice, or before the prompt is there, the play."""
        now_s = time.monotonic()
        if not self.text or now_s - self._interrupted_s < TWICE_S:
            self.stop.set()
        self._interrupted_s = now_s
        self.link.interrupt()

    def leave(self) -> None:
        """The terminal is gone: end the play and keep it, as ``exit`` does; before the prompt is there, end it."""
        if not self.left.is_set():
            self.left.set()
            threading.Thread(target=self._leave, daemon=True).start()

    def _leave(self) -> None:
        end_s, asked = time.monotonic() + ENDS_S, False
        if not self.text:
            self.stop.set()
        while not self.over.wait(POLL_S):
            if time.monotonic() > end_s:  # what runs in the guest does not end
                self.stop.set()
            elif self.is_ready and not asked:
                asked = True
                self.send("exit")
            elif not asked:
                self.link.interrupt()
                self.over.wait(1)

    def summary(self) -> Summary:
        """The result; waits for it.

        Raises:
            UserError: what went wrong.
            Interrupted: if it was ended before there was one.
        """
        from bbrlab.experiment.machine.process import Stopped

        self._thread.join()
        if isinstance(self._error, Stopped):
            raise Interrupted
        if self._error is not None:
            raise self._error
        assert self._summary is not None
        return self._summary

    def _add(self, text: str, shown: bool = False) -> None:
        with self._lock:
            self.text += text
        if not shown:
            self.on_text(text)

    def _listen(self) -> None:
        while (text := self.link.read()) is not None:
            self._add(text)

    def _begun(self, folder: Path, played: Played) -> None:
        self.folder, self.played = folder, played

    def _progress(self, verb: str, text: str) -> None:
        if verb == "stage":
            self.stage = text
            self.on_stage(text)
        elif verb == "at":
            self.at_s = float(text)

    def _play(self) -> None:
        from bbrlab.run.play import Player, play_point

        seed, kernel, sources, watchdog_s, capture = self._arguments
        player = Player(self.link, self.stop, self._begun, self._progress, lambda: self.text)
        try:
            self._summary = play_point(self.point, seed, self.out, player, kernel_name=kernel, sources=sources,
                                       watchdog_s=watchdog_s, capture=capture)  # fmt: skip
        except BaseException as error:
            self._error = error
        finally:
            self.over.set()


def play_plain(game: Game) -> None:
    """The prompt alone: lines of standard input, one for each time that it is ready; what it says on standard output."""
    echo = not sys.stdin.isatty()  # a terminal shows what is typed

    def show(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        if is_lost(sys.stdout):
            game.leave()

    def stage(text: str) -> None:
        typer.echo(f"guest: {text}", err=True)

    def terminate(number: int, frame: object) -> None:
        game.stop.set()

    def hang_up(number: int, frame: object) -> None:
        game.leave()

    game.on_text, game.on_stage = show, stage
    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGHUP, hang_up)
    signal.signal(signal.SIGINT, lambda number, frame: game.interrupt())
    game.begin()
    lines, ended = _Lines(), False
    while not game.over.wait(0 if lines.waiting else POLL_S / 2):
        if not game.is_ready or ended or game.left.is_set():
            game.over.wait(POLL_S / 2)
            continue
        line = lines.next()
        if line is not None:
            game.send(line, shown=not echo)
        elif lines.ended:
            ended = True
            game.link.end()


class _Lines:
    """Lines of standard input, without waiting for more than a moment."""

    def __init__(self) -> None:
        self._data, self.ended = b"", False

    @property
    def waiting(self) -> bool:
        """Whether there is a line already."""
        return b"\n" in self._data

    def next(self) -> str | None:
        """The next line; None if there is none yet, or no more."""
        if not self.waiting and not self.ended and select.select([0], [], [], POLL_S)[0]:
            try:
                data = os.read(0, 1 << 16)
            except OSError:  # of a terminal that is gone
                data = b""
            self._data += data
            if not data:
                self.ended = True
                self._data += b"\n" if self._data else b""
        if not self.waiting:
            return None
        line, self._data = self._data.split(b"\n", 1)
        return line.decode(errors="replace")
