"""Strips drawn into a page as SVG, which need no script: where a statement's numbers are, in their tolerances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from bbrlab.results.verdicts import FINAL

WIDTH, ROW, EDGE = 640, 9, 3.0  # of the drawing, of a row, and how many tolerances to each side
ROWS = 8


@dataclass(frozen=True)
class Dot:
    """A claim's number. ``mean``, ``low`` and ``high``: distance from the middle of what is expected, in tolerances."""

    claim: str
    mean: float
    low: float
    high: float
    verdict: str
    interim: str


def strip(dots: Sequence[Dot]) -> str:
    """The numbers of a statement's claims beside what is expected; nothing without any."""
    if not dots:
        return ""
    rows = min(ROWS, len(dots))
    height = rows * ROW + 8
    inside = sum(abs(d.mean) <= 1 for d in dots)
    told = f"{inside} of {len(dots)} measured numbers are within their tolerance"
    marks = "".join(
        _mark(dot, 4 + ROW / 2 + (i % rows) * ROW) for i, dot in enumerate(sorted(dots, key=lambda d: d.mean))
    )
    return (
        f'<figure class="bb-strip"><svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{told}">'
        f'<rect class="bb-tolerance" x="{_x(-1):.1f}" y="0" width="{_x(1) - _x(-1):.1f}" height="{height}"/>'
        f'<line class="bb-middle" x1="{_x(0):.1f}" x2="{_x(0):.1f}" y1="0" y2="{height}"/>{marks}</svg>'
        f"<figcaption>{told}. Shaded: what is expected; each dot a claim's number with its interval, all of which must be inside"
        f"{', hollow where more is to be run' if any(d.verdict not in FINAL for d in dots) else ''}.</figcaption></figure>"
    )  # fmt: skip


def _x(tolerances: float) -> float:
    return WIDTH / 2 + max(-EDGE, min(EDGE, tolerances)) / EDGE * (WIDTH / 2 - 8)


def _mark(dot: Dot, y: float) -> str:
    kind = "bb-in" if abs(dot.mean) <= 1 else "bb-out"
    hollow = "" if dot.verdict in FINAL else " bb-hollow"
    line = ""
    if math.isfinite(dot.low) and math.isfinite(dot.high):
        line = f'<line x1="{_x(dot.low):.1f}" x2="{_x(dot.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return (
        f'<g class="{kind}{hollow}"><title>{escape(dot.claim)}: {dot.mean:+.2f} tolerances</title>{line}'
        f'<circle cx="{_x(dot.mean):.1f}" cy="{y:.1f}" r="3.6"/></g>'
    )
