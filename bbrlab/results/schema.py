"""Validates result files, which another version of bbrlab may have written: the columns and fields that this one reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.errors import DamagedFile
from bbrlab.base.tables import SHIPS_ANEW, read_table
from bbrlab.measure import metrics

MADE_ANEW = "delete it, and snakemake makes it anew"
# Columns of a figure's table by type; metrics are numbers, too.
_WORDS = ("point", "cca", "kernel", "kernel_key", "qdisc")
_WHOLE = ("seed", "group", "count")
_NUMBERS = (
    "virtual_s", "wall_s", "rate_mbit", "base_rtt_ms", "buffer_bytes", "buffer_bdp", "random_loss", "duration_s",
    "window_start_s", "window_end_s", *metrics.METRICS,
)  # fmt: skip
ONE_ROW = ["point", "seed", "group"]  # identify a row of a figure's table
RUN_AGAIN = "run this point again (of a campaign: remove its folder, and snakemake does)"


def other_version_error(path: Path, problem: str, remedy: str = MADE_ANEW) -> DamagedFile:
    """The error for a file that lacks what this version reads.

    Args:
        path: of a file of results; a shipped one has another remedy.
        problem: what is wrong with it, such as "has no column x".
    """
    return _wrong(path, f"{problem}: made by another version of bbrlab", remedy)


def _wrong(path: Path, problem: str, remedy: str) -> DamagedFile:
    if path.absolute().is_relative_to(paths.SHIPPED):
        remedy = SHIPS_ANEW
    return DamagedFile(path, problem, remedy)


def read_with(
    path: Path,
    needed: Iterable[str],
    only: Sequence[str] | None = None,
    remedy: str = MADE_ANEW,
    most_rows: float = math.inf,
) -> pd.DataFrame:
    """Read a Parquet file with certain columns.

    DamagedFile if the file cannot be read, lacks a column, or has a column with invalid values.

    Args:
        needed: columns that it must have. A table without rows need not have them and gets them. If they are those of a figure's
            table (ONE_ROW and ``ok``), its values are checked, too (check_runs()).
        remedy: what to do about a file without one of them.
        most_rows: that it may have (read_table()).
    """
    needed = list(needed)
    table = read_table(path, only, most_rows)
    check_columns(path, table, only or (), remedy)
    if not len(table):
        return table.reindex(columns=list(dict.fromkeys([*table.columns, *needed])))
    check_columns(path, table, needed, remedy)
    if {*ONE_ROW, "ok"} <= set(needed):
        check_runs(path, table, remedy)
    return table


def check_runs(path: Path, table: pd.DataFrame, remedy: str = MADE_ANEW) -> None:
    """DamagedFile naming the first column of a figure's table with values of a wrong type, or a duplicate row.

    Args:
        table: one row per run and flow group, with the columns ONE_ROW and ``ok``; others are checked if they exist.
    """
    check_values(path, table, remedy, words=_WORDS, whole=_WHOLE, numbers=_NUMBERS, flags=("ok",))
    repeated = table[table.duplicated(ONE_ROW)]
    if len(repeated):
        first = ", ".join(f"{column} = {repeated[column].iloc[0]}" for column in ONE_ROW)
        raise _wrong(
            path, f"columns {', '.join(ONE_ROW)}: {len(repeated)} rows are there twice, such as {first}", remedy
        )


def check_values(
    path: Path,
    table: pd.DataFrame,
    remedy: str = MADE_ANEW,
    *,
    words: Sequence[str] = (),
    whole: Sequence[str] = (),
    numbers: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> None:
    """DamagedFile naming the first column of a table with values of a wrong type; missing columns are ignored.

    Args:
        words, whole, numbers, flags: columns of text, whole numbers, numbers, and true or false.
    """
    of_type = pd.api.types
    for column in table.columns.intersection([*words, *whole, *numbers, *flags], sort=False):
        values = table[column]
        if column in words:
            must, is_right = "text", all(isinstance(value, str) for value in values)
        elif column in whole:
            must, is_right = "whole numbers", of_type.is_integer_dtype(values) and not values.hasnans
        elif column in flags:
            must, is_right = "true or false", of_type.is_bool_dtype(values) and not values.hasnans
        else:  # an empty column may have any type
            must, is_right = "numbers", of_type.is_numeric_dtype(values) or not values.notna().any()
        if not is_right:
            held = f"{values.dtype} with empty cells" if values.hasnans else str(values.dtype)
            raise _wrong(path, f"column {column} holds {held}, must hold {must}", remedy)


def check_columns(path: Path, table: Iterable[object], needed: Iterable[str], remedy: str = MADE_ANEW) -> None:
    """DamagedFile naming the first needed column that a table lacks."""
    columns = set(table)
    if missing := [column for column in needed if column not in columns]:
        raise other_version_error(path, f"has no column {missing[0]}", remedy)
