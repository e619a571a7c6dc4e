"""Means over the seeds and their confidence intervals, by one rule for every table, page and claim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

CONFIDENCE = 0.95
ROUNDING = 1e-12


def half_width(values: pd.Series) -> float:
    """Half the width of the 95 % confidence interval of the mean (Student's t), shape (seeds,).

    Seeds without a value (NaN) do not count. NaN for fewer than two values, and if one of them is infinite; 0 if all are
    equal.
    """
    present = values.dropna().to_numpy(dtype=float)
    count = len(present)
    if count < 2 or not np.isfinite(present).all():
        return float("nan")
    if np.ptp(present) <= ROUNDING * np.abs(present).max():  # equal but for the last digits
        return 0.0
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * present.std(ddof=1) / count**0.5)


def over_seeds(grouped: Any) -> pd.DataFrame:
    """What the seeds of each group of rows say together (of a grouped column of a table; NaN: the seed has no value).

    Returns:
        A row per group: ``mean``, ``half`` (half_width()), ``standard_deviation``, ``seeds`` (those with a value).
    """
    found: pd.DataFrame = grouped.agg(mean="mean", half=half_width, standard_deviation="std", seeds="count")
    return found
