"""The states that a BBR flow went through, from its samples or its ACKs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bbrlab.bbr_record import STATES


def phases(table: pd.DataFrame, flow: int = 0) -> pd.DataFrame:
    """Stays in one state, in order.

    Args:
        table: samples.parquet or (exact to the ACK) acks.parquet.
        flow: index of the flow.

    Returns:
        One row per stay: ``state`` (its name), ``start_s`` and ``end_s`` (of the next state's first row; NaN for the
        last), ``first`` and ``last`` (labels of its rows in ``table``).
    """
    mine = table[(table["flow"] == flow) & table["bbr_state"].notna()]
    if mine.empty:
        return pd.DataFrame({"state": [], "start_s": [], "end_s": [], "first": [], "last": []})
    codes = mine["bbr_state"].to_numpy(dtype=int)
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    ends = np.append(starts[1:], len(mine)) - 1
    times = mine["time_s"].to_numpy()
    return pd.DataFrame({
        "state": [STATES[c] for c in codes[starts]],
        "start_s": times[starts],
        "end_s": np.append(times[starts[1:]], np.nan),
        "first": mine.index[starts],
        "last": mine.index[ends],
    })  # fmt: skip
