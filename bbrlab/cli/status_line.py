"""How far a command is: one line on standard error."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator

from rich.status import Status
from rich.text import Text

from bbrlab.base.console import Console


class StatusLine:
    """A line that is drawn anew on a terminal; elsewhere it is printed now and then, or never."""

    def __init__(self, console: Console, drawn: Status | None, every_s: float):
        self._console, self._drawn, self._every_s = console, drawn, every_s
        self._printed_s = time.monotonic()

    def show(self, text: str) -> None:
        """Have this text in the line."""
        if self._drawn is not None:
            self._drawn.update(Text(text, style="cyan", no_wrap=True, overflow="ellipsis"))
        elif time.monotonic() - self._printed_s > self._every_s:
            self._printed_s = time.monotonic()
            self._console.print(text)

    def note(self, text: str) -> None:
        """Print a line that stays in sight, and goes to a log, too."""
        self._console.print(f"bbrlab: {text}")


@contextlib.contextmanager
def status_line(every_s: float = math.inf) -> Iterator[StatusLine]:
    """A status line as long as the block lasts.

    Args:
        every_s: between two printed lines where there is no terminal; default: none is printed.
    """
    console = Console(stderr=True, soft_wrap=True)
    with console.status("") if console.is_terminal else contextlib.nullcontext() as drawn:
        yield StatusLine(console, drawn, every_s)
