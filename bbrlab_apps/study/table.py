"""The tables of a study: its runs, and the means over their seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.tables import write_csv
from bbrlab.measure import metrics
from bbrlab.results.tables import CONDITIONS, point_means, run_rows, table_of_rows, write_table
from bbrlab.show.points_table import swept_columns
from bbrlab_apps.study.plan import MEANS, TABLE, Study


def study_table(study: Study) -> pd.DataFrame:
    """One row per run that is there and flow group, as figure_table() has them (docs/reference/results.md). DamagedFile for a run
    whose summary.json is not one."""
    table = table_of_rows([row for run in study.finished for row in run_rows(run)])
    for column in swept_columns(table) if len(table) else ():
        if not _is_plain(table[column]):  # lists, or texts among numbers, which no column of a file holds
            table[column] = table[column].map(str)
    return table


def _is_plain(values: pd.Series) -> bool:
    """Whether a column holds numbers alone, or texts alone."""
    kinds = {
        "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value) for value in values
    }
    return len(kinds) == 1 and kinds <= {"number", str, bool}


def means(table: pd.DataFrame) -> pd.DataFrame:
    """One row per point and flow group: swept values, conditions, and each metric with the half-width of its 95 % interval.

    Args:
        table: study_table(). Runs that failed their checks are in no mean and counted in ``failed``.
    """
    keys = ["point", "group"]
    who = [*swept_columns(table), "cca", "direction", *CONDITIONS]
    first: pd.DataFrame = table.groupby(keys, sort=False)[who].first()
    runs = table.groupby(keys, sort=False)["ok"]
    columns: dict[str, Any] = {"runs": runs.sum().astype(int), "failed": runs.agg(lambda ok: int((~ok).sum()))}
    for name in metrics.METRICS:
        if name in table and table[name].notna().any():
            of = point_means(table, keys, name).set_index(keys)
            columns |= {name: of["mean"], f"{name}_ci95": of["ci95"]}
    return pd.concat([first, pd.DataFrame(columns)], axis=1).reset_index()


def write_tables(study: Study, table: pd.DataFrame) -> list[Path]:
    """Write runs.parquet, runs.csv and means.csv. Returns the two for people."""
    write_table(table, study.folder / TABLE)
    write_csv(means(table), study.folder / MEANS)
    return [(study.folder / TABLE).with_suffix(".csv"), study.folder / MEANS]
