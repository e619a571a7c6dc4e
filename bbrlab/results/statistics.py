"""Means over seeds and their confidence intervals, computed in one way for all tables, pages and claims."""

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
    """Whether numbers are equal up to rounding."""
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

    Seeds without a value (NaN) do not count. NaN for fewer than two values, if one is infinite, and if all are equal: without a
    spread the error of the mean is unknown.
    """
    numbers = values.to_numpy(dtype=float)
    present = numbers[~np.isnan(numbers)]
    if len(present) < 2 or not np.isfinite(present).all() or all_equal(present):
        return float("nan")
    return students_half_width(present)


def over_seeds(grouped: Any) -> pd.DataFrame:
    """Statistics over the seeds of each group of rows (a grouped column; NaN: the seed has no value), a row each: ``mean``, ``half``
    (half_width()), ``standard_deviation``, ``seeds`` (those with a value)."""
    statistics: pd.DataFrame = grouped.agg(mean="mean", half=half_width, standard_deviation="std", seeds="count")
    return statistics


def rms(values: Array) -> float:
    """Root mean square; NaN if there are no values."""
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else math.nan
