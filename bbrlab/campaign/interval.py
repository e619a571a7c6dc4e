"""Confidence intervals over the seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

CONFIDENCE = 0.95
ROUNDING = 1e-12


def half_width(values: pd.Series) -> float:
    """Half the width of the 95 % confidence interval of the mean (Student's t); NaN for fewer than two values."""
    count = len(values)
    if count < 2:
        return float("nan")
    if np.ptp(values) <= ROUNDING * np.abs(values).max():  # equal but for the last digits
        return 0.0
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * values.std(ddof=1) / count**0.5)
