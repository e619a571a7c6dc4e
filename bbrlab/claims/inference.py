"""What a few seeds say of a mean: its interval, how surely it is within bounds or not, and what stands among many claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from bbrlab.base.arrays import Array

ERROR = 0.05  # both sides together
LOOKS = 3  # how often a claim without a tolerance may be looked at while seeds are added (bbrlab.claims.seeds)
ROUNDING = 1e-12


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


def all_equal(values: Array) -> bool:
    """Whether the numbers are equal but for their last digits."""
    return bool(np.ptp(values) <= ROUNDING * np.abs(values).max() or np.std(values) == 0)


def confidence_of(looks: int) -> float:
    """Confidence of one interval if there may be so many looks (Bonferroni)."""
    return 1 - ERROR / looks


def estimate(values: Array, looks: int = 1) -> Estimate:
    """Mean and interval of independent numbers.

    Args:
        values: shape (seeds,), finite, at least two.
        looks: how often the interval may be looked at while numbers are added.
    """
    confidence, count = confidence_of(looks), len(values)
    if all_equal(values):
        return Estimate(float(np.mean(values)), 0.0, confidence, count)
    quantile = float(stats.t.ppf((1 + confidence) / 2, count - 1))
    return Estimate(
        float(np.mean(values)), quantile * float(np.std(values, ddof=1)) / math.sqrt(count), confidence, count
    )


def p_value(values: Array, low: float, high: float, looks: int = 1) -> float:
    """The smallest error (both sides) at which the mean can be told to be within the bounds, or to be outside.

    Where the sample mean is within: two one-sided t tests of the means outside (equivalence test), the larger p; where it is
    outside: the one-sided t test of the means within. Doubled, times ``looks``, at most 1. It is at most ERROR exactly if
    the interval of estimate() lies on one side of the bounds.

    Equal numbers have no spread to compare with; a sign test of their side takes its place: .5 to the power of their count.

    Args:
        values: shape (seeds,), finite, at least two.
        low, high: bounds, infinite where a side is open.
        looks: how often there may have been a look.
    """
    mean, count = float(np.mean(values)), len(values)
    if all_equal(values):
        return min(1.0, 2 * looks * 0.5**count)
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    above, below = (mean - low) / error, (high - mean) / error
    distance = min(above, below) if low <= mean <= high else max(-above, -below)
    return min(1.0, 2 * looks * float(stats.t.sf(distance, count - 1)))


def standing(p_values: Sequence[float]) -> list[bool]:
    """Which of many verdicts stand: of those that do, at most ERROR are expected to be wrong (Benjamini and Hochberg 1995).

    Args:
        p_values: of every claim that was judged, whatever came out.
    """
    if not len(p_values):
        return []
    return [bool(p <= ERROR) for p in stats.false_discovery_control(np.asarray(p_values, dtype=float))]
