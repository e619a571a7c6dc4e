"""Nested JSON content: flattened to {dotted path: value}, and the differences of two."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

MISSING = object()  # a field that is not there
WORDS_MAX = 40  # characters of a value in a message


class Difference(NamedTuple):
    """A value that two contents do not share.

    Attributes:
        place: ``groups.0.goodput_mbit``.
        one, two: the values; MISSING where there is none.
    """

    place: str
    one: Any
    two: Any


def leaves(content: Any, place: str = "", *, whole_lists: bool = False) -> Iterator[tuple[str, Any]]:
    """Every value that is no object and no list, with its place: ("groups.0.cca", "bbr1"). An empty one of them is a value, too.

    Args:
        whole_lists: a list that has no object in it is one value.
    """
    left = [(place, content)]
    while left:  # no recursion: somebody else's content may be nested deeply
        place, value = left.pop()
        inner: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            inner = value.items()
        elif isinstance(value, list) and not (whole_lists and not any(isinstance(item, dict) for item in value)):
            inner = enumerate(value)
        below = [(f"{place}.{key}" if place else str(key), item) for key, item in inner]
        if not below:
            yield place, value
        left += reversed(below)


def differences(
    one: Any, two: Any, place: str = "", *, close: float | None = None, only_two: bool = False
) -> Iterator[Difference]:
    """Where two contents differ, in the order of their fields.

    Args:
        place: of both.
        close: by how much numbers may differ, in proportion to the larger one; default: equal are what JSON writes with the same letters,
            so that 10 and 10.0 differ.
        only_two: leave out fields that only the first one has.
    """
    if isinstance(one, dict) and isinstance(two, dict):
        pairs = [(k, one.get(k, MISSING), two.get(k, MISSING)) for k in (two if only_two else {**one, **two})]
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        pairs = [(i, *pair) for i, pair in enumerate(zip(one, two, strict=True))]
    else:
        if not _is_equal(one, two, close):
            yield Difference(place, one, two)
        return
    for key, first, second in pairs:
        yield from differences(first, second, f"{place}.{key}" if place else str(key), close=close, only_two=only_two)


def _is_equal(one: Any, two: Any, close: float | None) -> bool:
    if one is MISSING or two is MISSING:
        return False
    if close is None:
        return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    if is_number(one) and is_number(two):
        return bool(abs(one - two) <= close * max(abs(one), abs(two)))
    return bool(one == two)


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number that a float can hold."""
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
