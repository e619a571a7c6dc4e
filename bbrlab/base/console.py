"""The one console: what is printed on it is text, whatever files of others have in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from bbrlab.base.words import shown

WIDTH = 130  # of a wide console that is no terminal


class Console(rich.console.Console):
    """Rich's, without markup, colours of its own, and what a terminal would obey in a text: colours are given by ``style`` or a Text."""

    def __init__(self, **options: Any):
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """A text as it is shown, so that it is measured so, too."""
        return super().render_str(shown(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is drawn of anything, its texts as words.shown() has them."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(shown(segment.text), segment.style)


def wide_console(**options: Any) -> Console:
    """A console on standard output for tables: as wide as the terminal, and wide enough for a table in a file or a pipe."""
    console = Console(**options)
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    return console
