"""Numbers and names in sentences."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 6  # of many names


def number_of(count: int, thing: str, more: str = "") -> str:
    """1 run, 1,200 runs; ``more``: the plural where it is not the singular with an s."""
    return f"{count:,} {thing if count == 1 else more or f'{thing}s'}"


def in_short(names: Sequence[str], named: int = NAMED) -> str:
    """Names with commas; of more than so many the first ones, and how many more there are."""
    more = f" and {len(names) - named} more" if len(names) > named else ""
    return ", ".join(names[:named]) + more
