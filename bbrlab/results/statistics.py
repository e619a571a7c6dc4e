"""Means over the seeds and their confidence intervals, by one rule for every table, page and claim."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base.arrays import Array

CONFIDENCE = 0.95
ROUNDING = 1e-12


def all_equal(values: Array) -> bool:
    """Whether the numbers are equal but for their last digits."""
    return bool(np.ptp(values) <= ROUNDING * np.abs(values).max() or np.std(values) == 0)


def students_half_width(values: Array, confidence: float = CONFIDENCE) -> float:
    """Half the width of the confidence interval of the mean by Student's t; 0 if all are equal.

    Args:
        values: shape (seeds,), finite, at least two.
    """
    if all_equal(values):
        return 0.0
    return _quantile(confidence, len(values)) * float(np.std(values, ddof=1)) / math.sqrt(len(values))


@functools.cache
def _quantile(confidence: float, count: int) -> float:
    """Of Student's t."""
    from scipy import stats  # only here: it takes a second to import

    return float(stats.t.ppf((1 + confidence) / 2, count - 1))


def half_width(values: pd.Series) -> float:
    """students_half_width() of a column, shape (seeds,).

    Seeds without a value (NaN) do not count. NaN for fewer than two values, if one of them is infinite, and if all are equal:
    without a spread nothing tells how far the mean may be off.
    """
    numbers = values.to_numpy(dtype=float)
    present = numbers[~np.isnan(numbers)]
    if len(present) < 2 or not np.isfinite(present).all() or all_equal(present):
        return float("nan")
    return students_half_width(present)


def over_seeds(grouped: Any) -> pd.DataFrame:
    """What the seeds of each group of rows say together (of a grouped column of a table; NaN: the seed has no value).

    Returns:
        A row per group: ``mean``, ``half`` (half_width()), ``standard_deviation``,
        ``seeds`` (those with a value).
    """
    found: pd.DataFrame = grouped.agg(mean="mean", half=half_width, standard_deviation="std", seeds="count")
    return found


def rms(values: Array) -> float:
    """Root mean square; NaN if there are no values."""
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else math.nan
