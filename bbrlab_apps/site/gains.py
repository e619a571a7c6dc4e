"""Figures that show how much more one algorithm has than another, setting by setting: the gain, here and published.

Which figures do is what their claims say: those that divide a metric of one case by that of another (``bbr.goodput_mbit / cubic.goodput_mbit``), setting by
setting of a grid or as a percentage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.claims.columns import published
from bbrlab.claims.schema import PUBLISHED, Claim, Term
from bbrlab.claims.select import select
from bbrlab.measure.metrics import METRICS, RUN
from bbrlab.results.figures import Figure
from bbrlab.scenario.point import Point

_RATIO = re.compile(r"\b(\w+)\.(\w+) / (\w+)\.(\w+)\b")
_PERCENT = "100 * ({} - 1)"  # a claim that is on the gain of one setting


@dataclass
class Gain:
    """How much more of a metric, in percent, one case of a figure has than another."""

    metric: str  # of METRICS, of the first flow group or the run
    # over, under: the cases
    over: str
    under: str
    # {label of a point of ``over``: value, lowest, highest (None: none told), claim}
    expected: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """To tell it from others of its figure."""
        return f"gain {self.over} {self.under} {self.metric}"

    def of(self, points: Sequence[Point], cells: Sequence[Any]) -> list[Any]:
        """Mean, no interval, and seeds at each point of ``over``; None at others, and where one of the two was not measured.

        Args:
            cells: of the metric at ``points``: mean, half interval, seeds.
        """
        under = {_setting(p): cell for p, cell in zip(points, cells, strict=True) if p.values.get("case") == self.under}
        gains: list[Any] = []
        for point, first in zip(points, cells, strict=True):
            other: Any = under.get(_setting(point)) if point.values.get("case") == self.over else None
            both = first is not None and other is not None and other[0]
            gains.append([100 * (first[0] / other[0] - 1), None, min(first[2], other[2])] if both else None)
        return gains


def _setting(point: Point) -> tuple[Any, ...]:
    return tuple(value for key, value in point.values.items() if key != "case")


def gains_of(figure: Figure, claims: Iterable[Claim]) -> list[Gain]:
    """The gains that a figure's claims read, those of most claims first."""
    gains: dict[str, Gain] = {}
    times: dict[str, int] = {}
    for claim in claims:
        if figure.id not in claim.figures:
            continue
        for over, metric, under, same in set(_RATIO.findall(claim.metric or "")):
            terms = claim.at.get(over), claim.at.get(under)
            ratio = f"{over}.{metric} / {under}.{same}"
            gain = _gain(figure, terms, metric) if metric == same else None
            of_grid = terms[0] is not None and len(terms[0].keys) > 1
            if gain is None or not (of_grid or claim.metric == _PERCENT.format(ratio)):
                continue
            gain = gains.setdefault(gain.name, gain)
            times[gain.name] = times.get(gain.name, 0) + 1
            _expect(gain, claim, over, ratio, figure)
    return sorted(gains.values(), key=lambda gain: -times[gain.name])


def _gain(figure: Figure, terms: tuple[Term | None, Term | None], metric: str) -> Gain | None:
    """The gain that two terms are of; None if they are not of one figure and two of its cases."""
    cases = [
        t.where.get("case")
        for t in terms
        if t is not None and t.figure == figure.id and (t.group == 0 or metric in RUN)
    ]
    if metric not in METRICS or len(cases) != 2 or cases[0] == cases[1] or not all(isinstance(c, str) for c in cases):
        return None
    return Gain(metric, str(cases[0]), str(cases[1]))


def _expect(gain: Gain, claim: Claim, over: str, ratio: str, figure: Figure) -> None:
    """Note what a claim expects of a gain: published of several settings, else the value, if it gives one, and bounds of one."""
    term: Term = claim.at[over]
    chosen = select(term, figure.points)
    if claim.metric == _PERCENT.format(ratio) and len(chosen) == 1:
        low, high = claim.expect.bounds
        if math.isfinite(high - low):
            expected = gain.expected.setdefault(chosen[0].label, [claim.expect.value, low, high, claim.id])
            expected[1:] = [low, high, claim.id]
    elif term.published is not None and f"{over}.{PUBLISHED}" in claim.columns and "percent" in term.published:
        try:
            values = published(term, chosen)
        except UserError:  # what the judge says of it is in the claim's line
            return
        for point, value in zip(chosen, values, strict=True):
            gain.expected.setdefault(point.label, [None, None, None, claim.id])[0] = float(value)
