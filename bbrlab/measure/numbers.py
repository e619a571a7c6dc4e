"""Means, percentiles and Jain's index; None if there are no values."""

from __future__ import annotations

from typing import overload

import numpy as np

from bbrlab.base.arrays import Array

Value = float | int | None  # of a metric; None if nothing was measured
DIGITS = 9
PERCENTILES = (5, 25, 50, 75, 95, 99)


def jain_index(values: Array) -> float | None:
    """Jain's fairness index of non-negative values of shape (n,), 1/n to 1; None without values, and if all are zero."""
    values = np.asarray(values, dtype=float)
    largest = float(values.max(initial=0))
    if not largest:
        return None
    scaled = values / largest  # squares of very small numbers would be zero
    return float(scaled.sum() ** 2 / (len(scaled) * (scaled**2).sum()))


def ratio(part: float, whole: float) -> float | None:
    """part / whole; None if there is no whole."""
    return part / whole if whole else None


@overload
def rounded(value: float) -> float: ...
@overload
def rounded(value: None) -> None: ...
def rounded(value: float | None) -> float | None:
    """A number with DIGITS decimals, so that equal runs print alike; None stays None."""
    return None if value is None else round(float(value), DIGITS)


def mean(values: Array) -> float | None:
    """The mean; None without values."""
    return rounded(values.mean()) if len(values) else None


def spread_of(values: Array) -> dict[str, float | None]:
    """Mean, percentiles and maximum; None each without values."""
    names = [f"p{p:02d}" for p in PERCENTILES]
    if not len(values):
        return dict.fromkeys(["mean", *names, "max"])
    percentiles = map(rounded, np.percentile(values, PERCENTILES))
    return {"mean": mean(values), **dict(zip(names, percentiles, strict=True)), "max": rounded(values.max())}
