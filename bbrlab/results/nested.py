"""Nested JSON content: its values by dotted path, and the differences of two."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

MISSING = object()  # in place of a missing field
WORDS_MAX = 40  # characters of a value in a message


class Difference(NamedTuple):
    """A value that differs between two contents."""

    place: str  # its path, ``groups.0.goodput_mbit``
    # first, second: the values; MISSING where there is none
    first: Any
    second: Any


def leaves(content: Any, *, whole_lists: bool = False) -> Iterator[tuple[str, Any]]:
    """Every value with its path: ("groups.0.cca", "bbr1"). Empty objects and lists are values, too.

    Args:
        whole_lists: a list without objects is one value.
    """
    stack = [("", content)]
    while stack:  # no recursion: untrusted content may be nested deeply
        place, value = stack.pop()
        inner: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            inner = value.items()
        elif isinstance(value, list) and not (whole_lists and not any(isinstance(item, dict) for item in value)):
            inner = enumerate(value)
        below = [(f"{place}.{key}" if place else str(key), item) for key, item in inner]
        if not below:
            yield place, value
        stack += reversed(below)


def differences(
    first: Any, second: Any, place: str = "", *, close: float | None = None, only_second: bool = False
) -> Iterator[Difference]:
    """The differences of two contents, in the order of their fields.

    Args:
        close: relative tolerance of numbers; default: values are equal if their JSON texts are, so that 10 and 10.0 differ.
        only_second: leave out fields that only the first one has.
    """
    if isinstance(first, dict) and isinstance(second, dict):
        pairs = [
            (k, first.get(k, MISSING), second.get(k, MISSING)) for k in (second if only_second else {**first, **second})
        ]
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = [(i, *pair) for i, pair in enumerate(zip(first, second, strict=True))]
    else:
        if not _is_equal(first, second, close):
            yield Difference(place, first, second)
        return
    for key, one, two in pairs:
        yield from differences(one, two, f"{place}.{key}" if place else str(key), close=close, only_second=only_second)


def _is_equal(first: Any, second: Any, close: float | None) -> bool:
    if first is MISSING or second is MISSING:
        return False
    if close is None:
        return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    if is_number(first) and is_number(second):
        return bool(abs(first - second) <= close * max(abs(first), abs(second)))
    return bool(first == second)


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number that fits into a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def in_words(value: Any) -> str:
    """A value for a message."""
    text = "is not there" if value is MISSING else json.dumps(value, sort_keys=True)
    return text if len(text) <= WORDS_MAX else f"{text[: WORDS_MAX - 3]}..."
