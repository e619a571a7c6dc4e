"""How many seeds the points of a figure need for verdicts on its claims.

A claim with a tolerance needs as many as make its interval narrow enough, whatever its mean: the rule sees the variance
only, as Stein's (1945) does. A claim without one (bounds, orders, trends) is looked at when its points have the figure's trials, twice
and four times as many, each time with an interval so wide that all looks together keep the error (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.claims.inference import enough_for
from bbrlab.claims.judge import asks, looks_at, outcome
from bbrlab.claims.sample import Reach, Sample, reach, sample
from bbrlab.claims.schema import Claim, Expectation
from bbrlab.claims.table_facts import TableFacts
from bbrlab.results.figures import Figure
from bbrlab.results.seeds import constant_points, seeds_needed
from bbrlab.results.statistics import all_equal
from bbrlab.results.verdicts import INCONCLUSIVE

PART_OF_TOLERANCE = 1 / 6  # half-width of the interval that is narrow enough


def may_ask(claim: Claim, figure: Figure) -> bool:
    """Whether a claim can ask for seeds of a figure (judge.asks())."""
    return figure.id in claim.figures and asks(claim, reach(claim, {figure.id: figure}))


def wanted_seeds(figure: Figure, table: pd.DataFrame, claims: Sequence[Claim]) -> dict[str, int]:
    """How many seeds each point of a figure should have in all, at most what it may have (Figure.caps).

    Only claims that may_ask() do. A claim asks the same of all its points, but of none of the constant_points().

    Args:
        figure: at its scale.
        table: its runs so far (tables.figure_table()).
        claims: those of all papers.

    Returns:
        {point label: seeds}, at least results.seeds.seeds_needed() and never less than the table has.
    """
    have = table.groupby("point")["seed"].nunique()
    least = seeds_needed(figure, table)
    wanted = {label: max(count, int(have.get(label, 0))) for label, count in least.items()}
    enough = constant_points(figure, table)
    facts = TableFacts(table)
    for claim in claims:
        if not may_ask(claim, figure):
            continue
        reached = reach(claim, {figure.id: figure})
        points = {p.label for chosen in reached.points.values() for p in chosen} - enough
        if not points:
            continue
        # Only seeds that all its points have are looked at: the costliest point's cap is the claim's.
        needed = _needed(claim, reached, figure, facts, min(figure.caps[point] for point in points))
        for point in points:
            wanted[point] = max(wanted[point], needed)
    return wanted


def _needed(claim: Claim, reached: Reach, figure: Figure, facts: TableFacts, cap: int) -> int:
    """How many seeds the points of a claim need."""
    try:
        so_far = sample(claim, reached.points, {figure.id: facts})
    except UserError:
        return 0
    if so_far.identical.all() or not np.isfinite(so_far.values).any():
        return 0  # nothing to learn from repeats
    if math.isfinite(claim.expect.tolerance):
        return max(_for_tolerance(so_far, i, claim.expect, cap) for i in np.flatnonzero(~so_far.identical).tolist())
    looks = looks_at(claim, reached, {figure.id: figure})
    if outcome(claim.expect, so_far, len(looks)).verdict != INCONCLUSIVE:
        return 0
    have = max(so_far.seeds)
    return next((n for n in looks if n > have), looks[-1])


def _for_tolerance(so_far: Sample, part: int, expect: Expectation, cap: int) -> int:
    """Seeds that make the interval's half-width PART_OF_TOLERANCE of the tolerance in a part, from the variance so far."""
    values, lost = so_far.of_part(part), int(so_far.failed[part] + so_far.without[part])  # what is lost adds nothing
    if len(values) < 2:
        return min(cap, 2 + lost)
    if all_equal(values) and outcome(expect, so_far).verdict != INCONCLUSIVE:
        return 0
    return min(cap, narrow_enough(values, expect.tolerance * PART_OF_TOLERANCE, cap) + lost)


def narrow_enough(values: Array, half_width: float, cap: int) -> int:
    """The smallest number of values whose interval, if they have this variance, has at most a half-width.

    Asked again with the new values, since the variance of a few is not well known. Equal values have none: as many as tell
    their side (enough_for()).

    Args:
        values: shape (seeds,), at least two.
        half_width: larger than 0.
        cap: at most so many, or as many as there are.
    """
    return max(len(values), int(min(enough_for(values, half_width), cap)))
