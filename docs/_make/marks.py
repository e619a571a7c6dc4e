"""Markdown that is made: tables, and the one kind of mark between which a page has something made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

BEGIN, END = "<!-- made by make format: {} -->", "<!-- end of {} -->"


def replace_between(text: str, name: str, content: str) -> str:
    """A page with what is between the marks of a name made anew. ValueError if it lacks them, or has them twice."""
    begin, end = BEGIN.format(name), END.format(name)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"the page needs the lines '{begin}' and '{end}', once each")
    before, rest = text.split(begin)
    return f"{before}{begin}\n{content.rstrip(chr(10))}\n{end}{rest.split(end)[1]}"


def table(heads: Sequence[object], rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a table."""
    return [_row(heads).replace("|  |", "| |"), "|" + "---|" * len(heads), *map(_row, rows)]


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def cell(text: object) -> str:
    """Text within a table: one line, whose bars end no cell."""
    return " ".join(str(text).split()).replace("|", "\\|")


def page(path: Path, parts: Mapping[str, str]) -> str:
    """A page as it should be. ValueError naming the page, if it has no place for one of them."""
    text = path.read_text(encoding="utf-8")
    for name, content in parts.items():
        try:
            text = replace_between(text, name, content)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return text
