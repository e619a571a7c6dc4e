"""The command line of the live view, as terminals feed it: keys in one burst, and pasted text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.widgets import Input

from bbrlab_apps.play.command_line import CommandLine, Words


class Screen(App[None]):
    """The line alone, and what it gives."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def compose(self) -> ComposeResult:
        yield CommandLine()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.lines.append(event.value)


def given(do: Callable[[CommandLine], None]) -> tuple[list[str], CommandLine]:
    """The lines that come of it, and the line that is left."""

    async def run() -> tuple[list[str], CommandLine]:
        app = Screen()
        async with app.run_test() as pilot:
            line = app.query_one(CommandLine)
            line.focus()
            await pilot.pause()
            do(line)
            for _ in range(3):
                await pilot.pause()
            return app.lines, line

    return asyncio.run(run())


def typed(text: str, end: str = "enter") -> Callable[[CommandLine], None]:
    """All keys at once, before anything is looked at."""

    def do(line: CommandLine) -> None:
        for letter in text:
            key = end if letter == "\n" else "space" if letter == " " else letter
            line.app.post_message(events.Key(key, None if letter == "\n" else letter))

    return do


@pytest.mark.parametrize("end", ["enter", "ctrl+j"])
def test_lines_that_are_typed_ahead_end_where_their_ends_are(end):
    lines, line = given(typed("rate\nh1 pwd\nloss\nrt", end))
    assert lines == ["rate", "h1 pwd", "loss"]
    assert line.value == "rt" and line.before == lines


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_each_pasted_line_is_a_line(end):
    lines, line = given(lambda line: line.post_message(events.Paste(end.join(["rate 10", "", "rtt 20", "lo"]))))
    assert lines == ["rate 10", "", "rtt 20"]
    assert line.value == "lo" and line.before == ["rate 10", "rtt 20"]


def test_a_paste_goes_on_with_what_stands_there():
    def do(line: CommandLine) -> None:
        line.value = "rate "
        line.cursor_position = len(line.value)
        line.post_message(events.Paste("12\n"))

    assert given(do)[0] == ["rate 12"]


def test_tab_and_up_keep_their_places_among_letters():
    def do(line: CommandLine) -> None:
        line.completion.words = Words({"own": {"start": [["f1", "all"]]}, "mininets": [], "nodes": []})
        for text, end in (("st", "tab"), ("f1\n", "enter"), ("", "up")):
            typed(text, end)(line)
            if end != "enter":
                line.app.post_message(events.Key(end, None))
        typed(" all\n")(line)

    assert given(do)[0] == ["start f1", "start f1 all"]
