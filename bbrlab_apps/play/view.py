"""The live view of a play: charts and a table of the flows, over Mininet's prompt.

It reads the samples that the guest writes anyhow (live_samples.py), on this side, so that it disturbs nothing.
"""

from __future__ import annotations

import contextlib
import functools
import json
import signal
import struct
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.widgets import DataTable, Input, RichLog, Static
from textual_plot import HiResMode, PlotWidget

from bbrlab.results.algorithm_table import colour_of_link, group_colour, tinted
from bbrlab_apps.play.command_line import CommandLine, Words
from bbrlab_apps.play.live_samples import Follower, Now
from bbrlab_apps.play.played import Played, read_events
from bbrlab_apps.play.prompt_link import READY
from bbrlab_apps.play.session import ENDS_S, Session
from bbrlab_apps.play.terminal import VIEW_COLUMNS, VIEW_LINES, Terminal

SAMPLES = "samples.raw"
WORDS = "prompt.json"
TEXT_S, SAMPLES_S = 0.05, 0.25  # how often the prompt and the samples are looked at
SHOWN_S = 60.0  # of the charts
CHARTS = ("goodput", "cwnd", "RTT")
UNITS = {"goodput": "Mbit/s", "cwnd": "packets", "RTT": "ms", "queue": "ms"}
LIMIT = "#555555"
ON_DARK = 0.6  # how much of a link's colour is left on a dark ground
HINTS = {True: "a command: help lists them", False: "a command runs"}
COLUMNS = ("flow", "algorithm", "state", "goodput", "cwnd", "RTT", "retransmits")


class Curves:
    """What the charts show: the last SHOWN_S of each flow, and of the queue; of several links in a row of each of theirs."""

    def __init__(self) -> None:
        self.flows: dict[str, deque[tuple[float, dict[str, float]]]] = {}
        self.queue_ms: deque[tuple[float, list[float]]] = deque()
        self.goodput_mbit: dict[str, float] = {}
        self._acked: dict[int, tuple[float, int]] = {}

    def add(self, now: Now, played: Played, rates_mbit: list[float]) -> None:
        """Take a sample in.

        Args:
            rates_mbit: of each of several links; or of the bottleneck, of whose two directions the longer queue is shown.
        """
        backlogs = [b for b, _ in now.queues] if len(rates_mbit) > 1 else [max((b for b, _ in now.queues), default=0)]
        delays_ms = [b * 8e-3 / mbit for b, mbit in zip(backlogs, rates_mbit, strict=True)]
        self.queue_ms.append((now.time_s, delays_ms))
        self.goodput_mbit = {}
        for name, transfer in zip(played.names, played.transfers, strict=True):
            flow, port = now.flows.get(transfer["port"]), transfer["port"]
            if flow is None:
                continue
            time_s, acked = self._acked.get(port, (now.time_s, flow.bytes_acked))
            self._acked[port] = now.time_s, flow.bytes_acked
            if now.time_s > time_s:
                rate = (flow.bytes_acked - acked) * 8e-6 / (now.time_s - time_s)
                # A flow that is started anew has its old connection for a moment, too.
                self.goodput_mbit[name] = self.goodput_mbit.get(name, 0.0) + rate
                values = {"goodput": self.goodput_mbit[name], "cwnd": float(flow.cwnd_packets), "RTT": flow.rtt_ms}
                curve = self.flows.setdefault(name, deque())
                if curve and curve[-1][0] == now.time_s:
                    curve.pop()
                curve.append((now.time_s, values))
        for curve in self.flows.values():
            while curve and curve[0][0] < now.time_s - SHOWN_S:
                curve.popleft()
        while self.queue_ms[0][0] < now.time_s - SHOWN_S:
            self.queue_ms.popleft()


class ViewDriver(LinuxDriver):
    """Textual's driver on a terminal that may vanish.

    Textual writes in a thread, through a queue of a few texts. That thread would die of a terminal that is gone, the queue would
    fill, and the view wait for room for ever: no signal would end it. Here what cannot be written is dropped (Terminal).
    """

    def __init__(self, terminal: Terminal, *given: Any, **named: Any):
        super().__init__(*given, **named)
        self._file: Any = terminal

    def _sigcont_application(self, *given: Any) -> None:
        """A terminal that hangs up sends SIGCONT, too: go on only if the view had been stopped."""
        if self._must_signal_resume:
            super()._sigcont_application(*given)

    def _run_input_thread(self) -> None:
        """Read keys until the view ends, or the terminal does: that is no fault."""
        with contextlib.suppress(OSError):
            self.run_input_thread()


class PlayView(App[None]):
    """The view. It ends when the guest does."""

    CSS = """
    Screen { layout: vertical; }
    #title { height: 1; background: $panel; padding: 0 1; }
    #charts { height: 12; }
    PlotWidget { width: 1fr; margin-right: 1; border-top: solid $panel; border-title-color: $text; }
    PlotWidget > .plot--axis, PlotWidget > .plot--tick { color: $text-muted; text-style: none; }
    DataTable { height: auto; max-height: 9; overflow-x: hidden; }
    RichLog { height: 1fr; min-height: 3; border-top: solid $panel; padding: 0 1; scrollbar-size-vertical: 1; }
    Input { height: 1; border: none; padding: 0 1; background: $surface; }
    Input:focus { border: none; }
    #keys { height: 1; background: $panel; color: $text-muted; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", priority=True, show=False),
        Binding("ctrl+d", "leave", priority=True, show=False),
        Binding("ctrl+q", "leave", priority=True, show=False),
        Binding("ctrl+t", "next_chart", priority=True, show=False),
    ]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "bbrlab play"

    def __init__(self, session: Session, terminal: Terminal):
        super().__init__(driver_class=functools.partial(ViewDriver, terminal))  # type: ignore[arg-type]
        self.terminal = terminal
        self.session, self.scenario = session, session.point.scenario
        self.curves, self.chart = Curves(), 0
        self.rate_mbit, self.loss = self.scenario.network.rate_mbit, self.scenario.network.loss
        self.rtt_ms = self.scenario.network.mean_rtt_ms
        self._follower: Follower | None = None
        self._events_offset, self._shown, self._line = 0, 0, ""
        self._waiting: deque[str] = deque()
        self._now: Now | None = None
        self._colours: dict[str, str] = {}
        self._leaving = False

    def compose(self) -> ComposeResult:
        """The parts of the screen."""
        yield Static(id="title")
        with Horizontal(id="charts"):
            yield PlotWidget(id="flows", allow_pan_and_zoom=False)
            yield PlotWidget(id="queue", allow_pan_and_zoom=False)
        table: DataTable[Text] = DataTable(cursor_type="none", zebra_stripes=True)
        table.can_focus = False
        yield table
        log = RichLog(wrap=True, max_lines=5000)
        log.can_focus = False
        yield log
        yield CommandLine()
        yield Static("Tab completes · Ctrl-T next chart · Ctrl-C ends a command · Ctrl-D ends it all", id="keys")

    def on_mount(self) -> None:
        """Start the guest, and look at it every so often."""
        table = self.query_one(DataTable)
        for name in COLUMNS:
            table.add_column(name, key=name)
        for plot in self.query(PlotWidget):
            plot.margin_left, plot.margin_top, plot.margin_bottom = 6, 0, 2
        self.query_one(CommandLine).focus()
        self.query_one(RichLog).write(Text("The guest is being set up: some seconds of real time.", style="dim"))
        self._draw_title()
        self.session.begin()
        self.set_interval(TEXT_S, self._look_at_text)
        self.set_interval(SAMPLES_S, self._look_at_samples)

    def on_resize(self, event: Resize) -> None:
        """Give the charts what is left."""
        charts = self.query_one("#charts")
        height = event.size.height
        charts.display = height >= VIEW_LINES and event.size.width >= VIEW_COLUMNS
        charts.styles.height = min(18, max(9, height * 2 // 5))

    # --- what the user does -------------------------------------------------------------------------------------------

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A line for the prompt; it waits until the one before is done."""
        self._waiting.append(event.value)

    def action_interrupt(self) -> None:
        """Ctrl-C."""
        self._waiting.clear()
        self.session.interrupt()

    def action_leave(self) -> None:
        """End the play and keep it."""
        self._leaving = True
        if not self.session.is_ready:
            self.session.link.interrupt()

    def action_next_chart(self) -> None:
        """Show another quantity of the flows."""
        self.chart = (self.chart + 1) % len(CHARTS)
        self._draw_charts()

    # --- what the guest does ------------------------------------------------------------------------------------------

    def _look_at_text(self) -> None:
        session = self.session
        if self.terminal.is_gone():
            session.leave()
        if session.over.is_set() or session.left.is_set():
            self.exit()
            return
        if session.is_ready and self._waiting:
            session.send(self._waiting.popleft())
        elif session.is_ready and self._leaving:
            self._leaving = False
            session.send("exit")
        new, self._shown = session.text[self._shown :], len(session.text)
        *lines, self._line = (self._line + new).split("\n")
        for line in lines:
            self.query_one(RichLog).write(Text(line, style="bold" if line.startswith(READY) else ""))
        self.query_one(CommandLine).placeholder = HINTS[session.is_ready] if session.text else ""
        if not session.text:
            self._draw_title()

    def _look_at_samples(self) -> None:
        session = self.session
        if session.folder is None or session.played is None:
            return
        self._learn_words(session.folder)
        if self._follower is None:
            self._follower = Follower(session.folder / SAMPLES)
        try:
            events, self._events_offset = read_events(session.folder, self._events_offset)
            for event in map(session.played.add, events):
                self.rate_mbit = event.get("rate_mbit", self.rate_mbit)
                self.rtt_ms = event.get("rtt_ms", self.rtt_ms)
                self.loss = event.get("loss", self.loss)
            now = self._follower.latest()
        except (ValueError, KeyError, IndexError, OSError, struct.error):
            return  # what the guest writes is judged when it is over
        if now is None:
            return
        self._now = now
        self.curves.add(now, session.played, self._rates_mbit())
        self._colours = colours_of(session.played)
        self._draw_title()
        self._draw_table(session.played, now)
        self._draw_charts()

    def _learn_words(self, folder: Path) -> None:
        completion = self.query_one(CommandLine).completion
        if completion.words is None:
            try:
                completion.words = Words(json.loads((folder / WORDS).read_text(encoding="utf-8")))
            except (OSError, ValueError, KeyError):
                return  # not there yet

    def _rates_mbit(self) -> list[float]:
        """Of each of several links, which stay; or of the bottleneck now."""
        links = self.scenario.network.bottlenecks
        return [link.rate_mbit for link in links] if len(links) > 1 else [self.rate_mbit]

    def _draw_title(self) -> None:
        title = Text(no_wrap=True, overflow="ellipsis")
        title.append(f"{self.scenario.name} ", style="bold")
        if self._now is None:
            title.append(f"setting up: {self.session.stage or 'starting'}", style="dim")
        else:
            links, rates = self.scenario.network.bottlenecks, " ".join(f"{mbit:g}" for mbit in self._rates_mbit())
            title.append(f"{self._now.time_s:6.1f} s (real time)  ")
            title.append(f"rate {rates} Mbit/s  RTT {self.rtt_ms:g} ms  loss {self.loss:g}  ", style="bold")
            sizes = " ".join(f"{link.buffer_bytes / 1000:.0f}" for link in links)
            title.append(f"buffer {sizes} kB  {' '.join(dict.fromkeys(link.qdisc.kind for link in links))}  ")
            if len(links) == 1:
                title.append(f"used {sum(self.curves.goodput_mbit.values()) / self.rate_mbit:.0%}  ", style="dim")
            title.append(f"drops {' '.join(str(d) for d in self._drops(self._now))}", style="dim")
        self.query_one("#title", Static).update(title)

    def _drops(self, now: Now) -> list[int]:
        """Of each of several links; or of the bottleneck's directions together."""
        drops = [d for _, d in now.queues]
        return drops if self.scenario.network.links else [sum(drops)]

    def _draw_table(self, played: Played, now: Now) -> None:
        table = self.query_one(DataTable)
        for name, cells in rows_of(played, now, self.curves.goodput_mbit):
            texts = [Text(cell, style=self._colours[name] if i == 0 else "", justify="right" if i >= 3 else "left")
                     for i, cell in enumerate((name, *cells))]  # fmt: skip
            if name not in table.rows:
                table.add_row(*texts, key=name)
            else:
                for column, text in zip(COLUMNS, texts, strict=True):
                    table.update_cell(name, column, text, update_width=True)

    def _draw_charts(self) -> None:
        if self._now is None:
            return
        end_s = max(self._now.time_s, SHOWN_S / 4)
        what = CHARTS[self.chart]
        plot = self.query_one("#flows", PlotWidget)
        plot.clear()
        top = 1.0
        if what == "goodput":
            top = max(self._rates_mbit())
            for rate_mbit in set(self._rates_mbit()):
                self._limit(plot, end_s, rate_mbit)
        for name, curve in self.curves.flows.items():
            if len(curve) > 1:
                values = [v[what] for _, v in curve]
                top = max(top, *values)
                plot.plot([t for t, _ in curve], values, line_style=self._colours[name], hires_mode=HiResMode.BRAILLE)
        self._frame(plot, what, end_s, top)
        plot = self.query_one("#queue", PlotWidget)
        plot.clear()
        links = self.scenario.network.bottlenecks
        fulls_ms = {k.buffer_bytes * 8e-3 / mbit for k, mbit in zip(links, self._rates_mbit(), strict=True)}
        for full_ms in fulls_ms:
            self._limit(plot, end_s, full_ms)
        times = [t for t, _ in self.curves.queue_ms]
        colours = [tinted(colour_of_link(i), ON_DARK) for i in range(len(links))] if len(links) > 1 else ["white"]
        for i, colour in enumerate(colours if len(times) > 1 else ()):
            values = [v[i] for _, v in self.curves.queue_ms]
            plot.plot(times, values, line_style=colour, hires_mode=HiResMode.BRAILLE)
        names = " ".join(f"[{colour}]{i}[/]" for i, colour in enumerate(colours))
        top = max([*fulls_ms, *(v for _, delays in self.curves.queue_ms for v in delays)])
        self._frame(plot, "queue", end_s, top, f"; link {names}" if len(links) > 1 else "")

    @staticmethod
    def _limit(plot: PlotWidget, end_s: float, value: float) -> None:
        """A faint line at what the link or the buffer allows now."""
        plot.plot([max(0.0, end_s - SHOWN_S), end_s], [value, value], line_style=LIMIT, hires_mode=HiResMode.BRAILLE)

    def _frame(self, plot: PlotWidget, what: str, end_s: float, top: float, more: str = "") -> None:
        plot.set_xlimits(max(0.0, end_s - SHOWN_S), end_s)
        plot.set_ylimits(0.0, 1.05 * top)
        plot.border_title = f"{what} ({UNITS[what]}) over time (s){more}"


def colours_of(played: Played) -> dict[str, str]:
    """{flow: its colour}: that of the algorithm that it has now, of several flows of one lighter and lighter."""
    ccas = {f"f{number}": flow.cca for number, flow in enumerate(played.scenario.flows, 1)}
    ccas |= {name: played.group(index)["cca"] for index, name in enumerate(played.names)}
    return {name: group_colour(list(ccas.values()), i) for i, name in enumerate(ccas)}


def rows_of(played: Played, now: Now, goodput_mbit: dict[str, float]) -> Iterable[tuple[str, tuple[str, ...]]]:
    """The table's rows: each flow's name and its other cells."""
    latest = {name: i for i, name in enumerate(played.names)}
    for number, planned in enumerate(played.scenario.flows):
        name = f"f{number + 1}"
        if name not in latest:
            yield name, (planned.cca, "not started", "", "", "", "")
            continue
        index = latest[name]
        cca = played.group(index)["cca"]
        flow = now.flows.get(played.transfers[index]["port"])
        if flow is None or played.stopped_s[index] is not None:
            yield name, (cca, "starts" if played.stopped_s[index] is None else "stopped", "", "", "", "")
            continue
        numbers = (f"{goodput_mbit.get(name, 0.0):.2f} Mbit/s", f"{flow.cwnd_packets} packets", f"{flow.rtt_ms:.1f} ms")
        yield name, (cca, flow.state, *numbers, f"{flow.retransmits}")


def play_in_view(session: Session) -> None:
    """Play in the view; returns when the guest has ended, however it did."""

    terminal = Terminal(sys.stdin.fileno(), sys.stderr.fileno())

    def terminate(number: int, frame: object) -> None:
        session.stop.set()
        terminal.give_up()  # of one that stands still nobody reads, either

    def hang_up(number: int, frame: object) -> None:
        session.leave()
        terminal.give_up()

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGHUP, hang_up)
    view = PlayView(session, terminal)
    try:
        view.run()
    finally:
        if not session.left.is_set() and not session.over.is_set():  # the view itself ended
            session.stop.set()
            session.over.wait(ENDS_S)
        terminal.close()
