"""One claim for each row of a published table: ``each`` names the table, ``{column}`` stands for the row's cell."""

from __future__ import annotations

import csv
import functools
import math
import re
from collections.abc import Iterator
from typing import Any

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.claims.schema import same_number

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
MISSING = ("", "nan", "na", "none", "null")
ONLY_HERE = ("each", "rows")


@functools.cache
def published_rows(name: str) -> list[dict[str, str]]:
    """The rows of data/PAPER/TABLE.csv as text. UserError if there is no such table."""
    path = paths.DATA / f"{name}.csv"
    tables = [f"{p.parent.name}/{p.stem}" for p in sorted(paths.DATA.glob("*/*.csv"))]
    if name not in tables:
        raise UserError(f"there is no table data/{name}.csv (there are {', '.join(tables)})")
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def published_columns(name: str) -> list[str]:
    """The columns of data/PAPER/TABLE.csv. UserError if there is no such table."""
    rows = published_rows(name)
    return list(rows[0]) if rows else []


def with_paper(name: str, paper: str) -> str:
    """PAPER/NAME; a name without a slash is of the same paper."""
    return name if "/" in name else f"{paper}/{name}"


def expand(entry: dict[str, Any], paper: str) -> list[dict[str, Any]]:
    """The claims that an entry stands for: itself, or one for each row of its table.

    A row of which a used cell is empty is skipped. UserError beginning with the field, for what is wrong with ``each``, ``rows``
    or a placeholder.
    """
    content = {k: v for k, v in entry.items() if k not in ONLY_HERE}
    used = sorted(set(_placeholders(content)))
    if entry.get("each") is None:
        if entry.get("rows") is not None:
            raise UserError("rows: chooses rows of a table; name the table with each")
        if used:
            raise UserError(f"'{{{used[0]}}}' stands for a cell of a table; name the table with each")
        return [content]
    name = entry["each"]
    if not isinstance(name, str):
        raise UserError(f"each: must be PAPER/TABLE of data/ (found {name!r})")
    try:
        rows = published_rows(with_paper(name, paper))
    except UserError as error:
        raise UserError(f"each: {error}") from None
    columns = published_columns(with_paper(name, paper))
    for column in used:
        if column not in columns:
            raise UserError(f"'{{{column}}}': data/{with_paper(name, paper)}.csv has no column '{column}' (it has {', '.join(columns)})")  # fmt: skip
    wanted = entry.get("rows")
    if wanted is not None:
        rows = list(_chosen(rows, columns, wanted))
    rows = [row for row in rows if all(_present(row[column]) for column in used)]
    if not rows:
        raise UserError(f"{'each' if wanted is None else 'rows'}: no row of the table is left")
    return [_filled(content, row) for row in rows]


def _chosen(rows: list[dict[str, str]], columns: list[str], wanted: Any) -> Iterator[dict[str, str]]:
    """The rows that have one of the wanted values in each named column."""
    if not isinstance(wanted, dict):
        raise UserError("rows: must be {column: value or list of values}")
    for column, values in wanted.items():
        if column not in columns:
            raise UserError(f"rows: the table has no column '{column}' (it has {', '.join(columns)})")
        for value in values if isinstance(values, list) else [values]:
            if not any(_same(row[column], value) for row in rows):
                raise UserError(f"rows.{column}: no row of the table has {value!r}")
    for row in rows:
        if all(any(_same(row[c], v) for v in (vs if isinstance(vs, list) else [vs])) for c, vs in wanted.items()):
            yield row


def _same(cell: str | None, value: Any) -> bool:
    have = number_or_text(cell or "")
    if isinstance(have, str) or isinstance(value, bool) or not isinstance(value, int | float):
        return str(have) == str(value)
    return same_number(have, value, 1e-9)


def _present(cell: str | None) -> bool:
    return (cell or "").strip().lower() not in MISSING


def number_or_text(cell: str) -> int | float | str:
    """A cell as the number that it is, else as text."""
    for kind in (int, float):
        try:
            number = kind(cell)
            return number if math.isfinite(number) else cell
        except (ValueError, OverflowError):  # an integer that no float holds stays text
            continue
    return cell


def _placeholders(content: Any) -> Iterator[str]:
    """Every placeholder's column, in whatever depth."""
    if isinstance(content, str):
        yield from PLACEHOLDER.findall(content)
    elif isinstance(content, dict):
        for value in content.values():
            yield from _placeholders(value)
    elif isinstance(content, list):
        for value in content:
            yield from _placeholders(value)


def _filled(content: Any, row: dict[str, str]) -> Any:
    """The content with the row's cells put in; a string that is nothing but a placeholder becomes the cell's number."""
    if isinstance(content, str):
        whole = PLACEHOLDER.fullmatch(content)
        if whole:
            return number_or_text(row[whole[1]])
        return PLACEHOLDER.sub(lambda match: row[match[1]], content)
    if isinstance(content, dict):
        return {key: _filled(value, row) for key, value in content.items()}
    if isinstance(content, list):
        return [_filled(value, row) for value in content]
    return content
