"""Where tables are printed: as wide as the terminal, and wide enough for a table in a file or a pipe."""

from __future__ import annotations

from bbrlab.base.console import Console

WIDTH = 130  # of what goes to no terminal


def wide_console() -> Console:
    """A console on standard output."""
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    return console
