"""What a few seeds say of a mean: its interval, how surely it is within bounds or not, and what stands among many claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from bbrlab.base.arrays import Array
from bbrlab.campaign.interval import students_half_width

ERROR = 0.05  # both sides together
LOOKS = 3  # how often a claim without a tolerance is looked at, at most, while seeds are added


@dataclass(frozen=True)
class Estimate:
    """The mean of some seeds' numbers.

    Attributes:
        mean: of the numbers.
        half_width: of the interval by Student's t; 0 if all numbers are equal.
        confidence: of that interval.
        count: how many numbers.
    """

    mean: float
    half_width: float
    confidence: float
    count: int

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half_width


def looks(trials: int, cap: int) -> list[int]:
    """With how many seeds a claim without a tolerance is looked at: LOOKS times at most, twice as many each time."""
    return sorted({min(max(trials, 2) * 2**i, cap) for i in range(LOOKS)})


def confidence_of(intervals: int) -> float:
    """Confidence of one interval where there are so many: looks times points (Bonferroni)."""
    return 1 - ERROR / intervals


def estimate(values: Array, intervals: int = 1) -> Estimate:
    """Mean and interval of independent numbers.

    Args:
        values: shape (seeds,), finite, at least two.
        intervals: how many there are of which any may be wrong.
    """
    confidence = confidence_of(intervals)
    return Estimate(float(np.mean(values)), students_half_width(values, confidence), confidence, len(values))


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
    mean, count = float(np.mean(values)), len(values)
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    distance = min(mean - low, high - mean) / error
    within, outside = stats.t.sf(distance, count - 1), stats.t.cdf(distance, count - 1)
    return 2 * looks * float(within), 2 * looks * float(outside)


def p_equal(count: int, looks: int = 1) -> float:
    """What takes the place of p_values() where all numbers are equal and there is no spread: a sign test of their side.

    Args:
        count: how many numbers.
        looks: how often there may be a look.
    """
    return 2 * looks * float(stats.binom.pmf(count, count, 0.5))


def enough_equal() -> int:
    """How many equal numbers tell their side at one look."""
    return next(n for n in range(2, 100) if p_equal(n) <= ERROR)


def standing(p_values: Sequence[float], method: Literal["bh", "by"] = "bh") -> list[bool]:
    """Which of many verdicts stand: of those that do, at most ERROR are expected to be wrong.

    Args:
        p_values: of every claim that was judged, whatever came out.
        method: "bh", Benjamini and Hochberg (1995), for claims that are independent or err together; "by", Benjamini and
            Yekutieli (2001), however they depend.
    """
    if not len(p_values):
        return []
    return [bool(p <= ERROR) for p in stats.false_discovery_control(np.asarray(p_values, dtype=float), method=method)]
