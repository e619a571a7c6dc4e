"""What a few seeds say of a mean: its interval, how surely it is within bounds or not, and what stands among many claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.results.statistics import all_equal, students_half_width

ERROR = 0.05  # both sides together
LOOKS = 3  # how often a claim without a tolerance is looked at, at most, while seeds are added


class Interval(NamedTuple):
    """The interval of a mean by Student's t, in the numbers' unit; a point if all of them are equal."""

    low: float
    high: float
    confidence: float


def looks(trials: int, cap: int) -> list[int]:
    """With how many seeds a claim without a tolerance is looked at: LOOKS times at most, twice as many each time."""
    return sorted({min(max(trials, 2) * 2**i, cap) for i in range(LOOKS)})


def confidence_of(intervals: int) -> float:
    """Confidence of one interval where there are so many: looks times points (Bonferroni)."""
    return 1 - ERROR / intervals


def estimate(values: Array, intervals: int = 1) -> Interval:
    """The interval of the mean of independent numbers.

    Args:
        values: shape (seeds,), finite, at least two.
        intervals: how many there are of which any may be wrong.
    """
    confidence = confidence_of(intervals)
    mean, half_width = float(np.mean(values)), students_half_width(values, confidence)
    return Interval(mean - half_width, mean + half_width, confidence)


def p_values(values: Array, low: float, high: float, looks: int = 1) -> tuple[float, float]:
    """The smallest errors (both sides) at which a mean can be told to be within the bounds, and to be outside.

    Within: two one-sided t tests of the means outside (equivalence test), the larger p. Outside: the one-sided t tests of the
    means within, the smaller p. Doubled, times ``looks``, and so more than 1 where the sample mean is on the other side. One of
    them is at most ERROR exactly if the interval of estimate() lies on one side of the bounds.

    Args:
        values: shape (seeds,), finite, at least two, not all equal (p_equal()).
        low, high: bounds, infinite where a side is open.
        looks: how often there may be a look.
    """
    from scipy import stats  # only here: it takes a second to import

    mean, count = float(np.mean(values)), len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    distance = min(mean - low, high - mean) / error
    within, outside = stats.t.sf(distance, count - 1), stats.t.cdf(distance, count - 1)
    return 2 * looks * float(within), 2 * looks * float(outside)


def p_equal(count: int, looks: int = 1) -> float:
    """What takes the place of p_values() where all numbers are equal and there is no spread: a sign test of their side."""
    from scipy import stats  # only here: it takes a second to import

    return 2 * looks * float(stats.binom.pmf(count, count, 0.5))


def enough_equal(looks: int = 1) -> int:
    """How many equal numbers tell their side if there may be so many looks."""
    return next(n for n in range(2, 100) if p_equal(n, looks) <= ERROR)


def enough_for(values: Array, distance: float, looks: int = 1) -> float:
    """How many numbers would tell a mean from its limit if mean and scatter stay as they are; infinite if it is on the limit.

    Args:
        values: shape (seeds,), finite, at least two.
        distance: of the mean from the nearest limit.
        looks: how often there may be a look.
    """
    if all_equal(values):
        return enough_equal(looks)
    from scipy import stats  # only here: it takes a second to import

    scatter, confidence = float(np.std(values, ddof=1)), (1 + confidence_of(looks)) / 2
    if not abs(distance) > 1e-6 * scatter:
        return math.inf
    count = max(2, math.ceil((float(stats.norm.ppf(confidence)) * scatter / distance) ** 2))
    while float(stats.t.ppf(confidence, count - 1)) * scatter > abs(distance) * math.sqrt(count):
        count += 1
    return count


def standing(p_values: Sequence[float]) -> list[bool]:
    """Which of many verdicts stand: of those that do, at most ERROR are expected to be wrong (Benjamini and Hochberg 1995), if they are
    independent or err together.

    Args:
        p_values: of every claim that was judged, whatever came out.
    """
    if not len(p_values):
        return []
    from scipy import stats  # only here: it takes a second to import

    return [bool(p <= ERROR) for p in stats.false_discovery_control(np.asarray(p_values, dtype=float))]


def kept_by_holm(p_values: Sequence[float]) -> list[bool]:
    """Which of some verdicts are kept if not even one of them may be wrong in more than ERROR of all cases (Holm 1979), however
    they depend."""
    kept = [False] * len(p_values)
    for tested, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] * (len(p_values) - tested) > ERROR:
            break
        kept[place] = True
    return kept
