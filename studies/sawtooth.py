"""When a loss-based flow gave way: its sawtooth, from the samples of a run."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MERGE_S = 5.0  # cuts closer together belong to one overflow of the queue


def loss_epochs(samples: pd.DataFrame, group: int, from_s: float = 50.0) -> NDArray[np.float64]:
    """Instants (s) at which the first flow of a group cut its window: changes of its ssthresh, merged over 5 s.

    Args:
        samples: columns ``time_s``, ``flow``, ``group``, ``ssthresh`` of samples.parquet.
        from_s: leave out what happens before (slow start).

    Returns:
        Shape (epochs,), ascending.
    """
    rows = samples[samples["group"] == group]
    rows = rows[rows["flow"] == rows["flow"].min()]
    times, thresholds = rows["time_s"].to_numpy(), rows["ssthresh"].to_numpy(dtype=float)
    cuts: NDArray[np.float64] = times[1:][(np.diff(thresholds) != 0) & (times[1:] > from_s)]
    firsts: NDArray[np.float64] = cuts[np.diff(cuts, prepend=-np.inf) > MERGE_S]
    return firsts
