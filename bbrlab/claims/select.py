"""The points of a figure that a claim speaks of."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from bbrlab.claims.schema import RELATIVE_TOLERANCE, Term, same_number
from bbrlab.results.config import FULL
from bbrlab.results.figures import Figure, figures_at, scenario_files
from bbrlab.scenario.point import Point


def _matches(have: Any, want: Any) -> bool:
    if isinstance(want, dict):
        number = isinstance(have, int | float)
        return number and bool(want.get("above", -math.inf) < have < want.get("below", math.inf))
    if isinstance(want, list):
        return any(_matches(have, w) for w in want)
    if isinstance(have, int | float) and isinstance(want, int | float):
        return same_number(have, want, RELATIVE_TOLERANCE)
    return bool(have == want)


def _rank(value: Any) -> tuple[bool, float, str]:
    """Numbers by size, then everything else by its text."""
    number = isinstance(value, int | float)
    return not number, value if number else 0.0, "" if number else str(value)


def select(term: Term, points: list[Point]) -> list[Point]:
    """The points that match, in the order of ``along``."""
    chosen = list(points)
    for key, value in term.where.items():
        chosen = [p for p in chosen if _matches(p.traits.get(key), value)]
    if term.along:
        chosen.sort(key=lambda p: tuple(_rank(p.traits.get(k)) for k in term.keys))
    return chosen


def ranks(term: Term, chosen: list[Point]) -> list[int]:
    """The place of each point in the order of ``along``; points with the same values share one.

    Args:
        chosen: from select().
    """
    keys = [tuple(_rank(p.traits.get(k)) for k in term.keys) for p in chosen]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return [places[key] for key in keys]


def name_of(term: Term, point: Point) -> str:
    """What tells a point from the others of ``along``: ``buffer_bdp 4, count 2``."""
    return ", ".join(f"{key.removeprefix('network.')} {point.traits.get(key)}" for key in term.keys)


class _FullFigures(Mapping[str, Figure]):
    """Reads a figure when it is asked for: one figure's claims speak of few."""

    def __init__(self) -> None:
        self._ids = list(scenario_files())
        self._read: dict[str, Figure] = {}

    def __getitem__(self, id: str) -> Figure:
        if id not in self._read:
            if id not in self._ids:
                raise KeyError(id)
            (self._read[id],) = figures_at(FULL, [id])
        return self._read[id]

    def __contains__(self, id: object) -> bool:
        return id in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


@functools.cache
def full_figures() -> Mapping[str, Figure]:
    """Every figure at its full size, by id. UserError for a figure that is left out at full (no scenario here is)."""
    return _FullFigures()


@functools.cache
def traits_of(figure: str) -> frozenset[str]:
    """What the points of a figure can be chosen by."""
    return frozenset().union(*(p.traits for p in full_figures()[figure].points))
