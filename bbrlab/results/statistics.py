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
    return float(
        _half_widths(values.to_numpy(dtype=float), np.zeros(len(values), dtype=int), np.array([values.count()]))[0]
    )


def over_seeds(grouped: Any) -> pd.DataFrame:
    """Statistics over the seeds of each group of rows (a grouped column; NaN: the seed has no value), a row each: ``mean``, ``half``
    (half_width()), ``standard_deviation``, ``seeds`` (those with a value)."""
    statistics: pd.DataFrame = grouped.agg(mean="mean", half="count", standard_deviation="std", seeds="count")
    statistics["half"] = _half_widths(
        grouped.obj.to_numpy(dtype=float), grouped.ngroup().to_numpy(), statistics["seeds"].to_numpy()
    )
    return statistics


def _half_widths(values: Array, group: Array, counts: Array) -> Array:
    """half_width() of each group: shape (groups,).

    Args:
        values: of all rows, shape (rows,).
        group: the number of each row's group; -1: it is in none.
        counts: of each group, how many values it has (NaN is none).
    """
    has = ~np.isnan(values) & (group >= 0)
    order = np.argsort(group[has], kind="stable")
    values, begin = values[has][order], np.cumsum(counts) - counts
    halves = np.full(len(counts), np.nan)
    for count in np.unique(counts[counts >= 2]):  # groups of one size together: there are tens of thousands on a page
        groups = np.flatnonzero(counts == count)
        of_size = values[begin[groups][:, None] + np.arange(count)]
        groups, of_size = (a[np.isfinite(of_size).all(axis=1)] for a in (groups, of_size))
        spread = np.std(of_size, axis=1, ddof=1)
        equal = (np.ptp(of_size, axis=1) <= ROUNDING * np.abs(of_size).max(axis=1)) | (np.std(of_size, axis=1) == 0)
        halves[groups] = np.where(equal, np.nan, _quantile(CONFIDENCE, int(count)) * spread / math.sqrt(count))
    return halves


def rms(values: Array) -> float:
    """Root mean square; NaN if there are no values."""
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else math.nan
