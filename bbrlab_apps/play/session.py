"""A play: its guest in a thread, Ctrl-C, the end; and Mininet's prompt alone, without a view."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import typer

from bbrlab.cli.interrupts import Interrupted
from bbrlab.cli.streams import is_lost
from bbrlab.experiment.machine.process import Stopped
from bbrlab.measure.summary import Summary
from bbrlab.run.capture import Capture
from bbrlab.scenario.point import Point
from bbrlab_apps.play.played import Played
from bbrlab_apps.play.prompt_link import LINE_BYTES, READY, PromptLink
from bbrlab_apps.play.run import Player, play_point

TWICE_S = 2.0  # two Ctrl-C within this time end the play
POLL_S = 0.1
ENDS_S = 30.0  # a guest that was asked to end has so long


class Session:
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
        end_s, exit_sent = time.monotonic() + ENDS_S, False
        if not self.text:
            self.stop.set()
        while not self.over.wait(POLL_S):
            if time.monotonic() > end_s:  # what runs in the guest does not end
                self.stop.set()
            elif self.is_ready and not exit_sent:
                exit_sent = True
                self.send("exit")
            elif not exit_sent:
                self.link.interrupt()
                self.over.wait(1)

    def summary(self) -> Summary:
        """The result; waits for it. UserError: what went wrong. Interrupted if it was ended before there was one."""
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
        seed, kernel, sources, watchdog_s, capture = self._arguments
        player = Player(self.link, self.stop, self._begun, self._progress, lambda: self.text)
        try:
            self._summary = play_point(self.point, seed, self.out, player, kernel_name=kernel, sources=sources,
                                       watchdog_s=watchdog_s, capture=capture)  # fmt: skip
        except BaseException as error:
            self._error = error
        finally:
            self.over.set()


def play_plain(session: Session) -> None:
    """The prompt alone: lines of standard input, one for each time that it is ready; what it says on standard output."""
    echo = not sys.stdin.isatty()  # a terminal shows what is typed

    def show(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        if is_lost(sys.stdout):
            session.leave()

    session.on_text, session.on_stage = show, lambda text: typer.echo(f"guest: {text}", err=True)
    signal.signal(signal.SIGTERM, lambda number, frame: session.stop.set())
    signal.signal(signal.SIGHUP, lambda number, frame: session.leave())
    signal.signal(signal.SIGINT, lambda number, frame: session.interrupt())
    session.begin()
    lines, ended = _Lines(), False
    while not session.over.wait(0 if lines.waiting else POLL_S / 2):
        if not session.is_ready or ended or session.left.is_set():
            session.over.wait(POLL_S / 2)
            continue
        line = lines.next()
        if line is not None:
            session.send(line, shown=not echo)
        elif lines.ended:
            ended = True
            session.link.end()


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
