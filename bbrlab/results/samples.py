"""A run's tables of numbers over time, as people are shown them: checked, since the run may be somebody else's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.measure.bbr_record import STATES
from bbrlab.results.run_manifest import RunScenario
from bbrlab.results.schema import RUN_AGAIN, check_columns, other_version_error, read_with

LATEST = 10  # times its length: no sample is later, however late a run in real time is
MOST = 2.0**64  # of anything that is sampled
# Infinite where there is none.
BOUNDS = ("bbr_bw_lo", "bbr_inflight_hi", "bbr_inflight_lo")
_MAY_LACK = ("delivery_rate", "dctcp_alpha")  # a value; as may what BBR tells


def read_over_time(
    path: Path,
    scenario: RunScenario,
    needed: Sequence[str],
    more: Sequence[str] = (),
    most_rows: float = math.inf,
) -> pd.DataFrame:
    """Columns of samples.parquet or acks.parquet of a run. UserError for a column that is not there, holds no numbers, or such as no
    run has.

    Args:
        scenario: what was run.
        needed: columns that must be there.
        more: columns that are read if they are there.
        most_rows: that it may have (read_table()).
    """
    table = read_with(path, (), None if more else needed, RUN_AGAIN, most_rows)
    check_columns(path, table, needed, RUN_AGAIN)
    table = table[[column for column in dict.fromkeys([*needed, *more]) if column in table]]
    groups, flows = len(scenario.flows), sum(flow.count for flow in scenario.flows)
    ends = {
        "time_s": (0, LATEST * scenario.duration_s), "flow": (-1, flows - 1), "group": (-1, groups - 1),
        "bbr_state": (0, len(STATES) - 1),
    }  # fmt: skip
    for column in map(str, table):
        dtype = table[column].dtype
        if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_complex_dtype(dtype):
            raise other_version_error(path, f"column {column} holds {dtype}, not numbers", RUN_AGAIN)
        values = table[column].to_numpy(dtype=float, na_value=np.nan)
        low, high = ends.get(column, (-MOST, MOST))
        right = (values >= low) & (values <= high)
        if column.startswith("bbr_") or column in _MAY_LACK:
            right |= np.isnan(values)
        if column in BOUNDS:
            right |= values == np.inf
        if column in ("flow", "group", "bbr_state"):
            right &= np.isnan(values) | (values == np.floor(values))
        if not right.all():
            strange = values[~right][0]
            if column in ("flow", "group") and strange >= 0 and np.isfinite(strange):
                count = flows if column == "flow" else groups
                of = number_of(count, "flow" if column == "flow" else "flow group")
                problem = f"column {column} has {strange:g}, but manifest.json has {of}, from 0"
                raise other_version_error(path, problem, RUN_AGAIN)
            raise UserError(
                f"{path}: column {column} has {strange:g}, which no run of {scenario.duration_s:g} s has; {RUN_AGAIN}"
            )
    if {"flow", "group"} <= set(table) and (table.loc[table["flow"] >= 0, "group"] < 0).any():
        raise UserError(f"{path}: column group: a flow is of no group; {RUN_AGAIN}")
    return table
