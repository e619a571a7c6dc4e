"""Validation of result files, which another version of bbrlab may have written: the columns and fields that this one reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.errors import DamagedFile
from bbrlab.base.tables import SHIPS_ANEW, read_table
from bbrlab.measure import schema

MADE_ANEW = "delete it, and snakemake makes it anew"
# Columns of the runs of a figure, by what they hold; metrics are numbers, too.
_WORDS = ("point", "cca", "kernel", "kernel_key", "qdisc")
_WHOLE = ("seed", "group", "count")
_NUMBERS = (
    "virtual_s", "wall_s", "rate_mbit", "base_rtt_ms", "buffer_bytes", "buffer_bdp", "random_loss", "duration_s",
    "window_start_s", "window_end_s", *schema.METRICS,
)  # fmt: skip
ONE_ROW = ["point", "seed", "group"]  # of a figure's runs: each flow group of each has one row
RUN_AGAIN = "run this point again (of a campaign: remove its folder, and snakemake does)"


def other_version_error(path: Path, problem: str, remedy: str = MADE_ANEW) -> DamagedFile:
    """The error for a file that does not have what this version reads.

    Args:
        path: of a file of results; of those that ship there is another remedy.
        problem: what is wrong with it, such as "has no column x".
        remedy: what to do about it.
    """
    return _wrong(path, f"{problem}: made by another version of bbrlab", remedy)


def _wrong(path: Path, problem: str, remedy: str) -> DamagedFile:
    if path.absolute().is_relative_to(paths.SHIPPED):
        remedy = SHIPS_ANEW
    return DamagedFile(path, problem, remedy)


def read_with(
    path: Path, needed: Iterable[str], only: Sequence[str] | None = None, remedy: str = MADE_ANEW
) -> pd.DataFrame:
    """A Parquet file that has some columns.

    Args:
        path: the file.
        needed: the columns without which nothing can be said. A table without rows needs none and gets them. If runs of a
            figure are asked for (ONE_ROW and ``ok``), what its columns hold is looked at, too (check_runs()).
        only: read no others but these; default: all.
        remedy: what to do about a file without one of them.

    Raises:
        DamagedFile: naming the file, if it cannot be read or lacks a column; naming the column whose values are not as they must be.
    """
    needed = list(needed)
    if only is not None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with open(path, "rb") as file:
                there = set(pq.read_schema(file).names)
        except (pa.ArrowException, ValueError, OSError):
            there = set(only)  # read_table() says what is wrong with it
        check_columns(path, there, only, remedy)
    table = read_table(path, only)
    if not len(table):
        return table.reindex(columns=list(dict.fromkeys([*table.columns, *needed])))
    check_columns(path, table, needed, remedy)
    if {*ONE_ROW, "ok"} <= set(needed):
        check_runs(path, table, remedy)
    return table


def check_runs(path: Path, table: pd.DataFrame, remedy: str = MADE_ANEW) -> None:
    """DamagedFile naming the first column of a figure's runs that holds something else than it should, or a row that is there twice.

    Args:
        path: of the file.
        table: one row per run and flow group, with the columns ONE_ROW and ``ok``; of the others those that it has are looked at.
        remedy: as read_with() has it.
    """
    check_values(path, table, remedy, words=_WORDS, whole=_WHOLE, numbers=_NUMBERS, flags=("ok",))
    twice = table[table.duplicated(ONE_ROW)]
    if len(twice):
        first = ", ".join(f"{column} = {twice[column].iloc[0]}" for column in ONE_ROW)
        raise _wrong(path, f"columns {', '.join(ONE_ROW)}: {len(twice)} rows are there twice, such as {first}", remedy)


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
    """UserError naming the first column of a table that holds something else than it should; columns that are not there are left out.

    Args:
        path: of the file.
        words, whole, numbers, flags: columns that hold text, whole numbers, numbers, and true or false.
        remedy: as read_with() has it.
    """
    of_type = pd.api.types
    for column in table.columns.intersection([*words, *whole, *numbers, *flags], sort=False):
        values = table[column]
        if column in words:
            must, good = "text", all(isinstance(value, str) for value in values)
        elif column in whole:
            must, good = "whole numbers", of_type.is_integer_dtype(values) and not values.hasnans
        elif column in flags:
            must, good = "true or false", of_type.is_bool_dtype(values) and not values.hasnans
        else:  # of one that nobody observed no value tells what it holds
            must, good = "numbers", of_type.is_numeric_dtype(values) or not values.notna().any()
        if not good:
            held = f"{values.dtype} with empty cells" if values.hasnans else str(values.dtype)
            raise _wrong(path, f"column {column} holds {held}, must hold {must}", remedy)


def check_columns(path: Path, there: Iterable[object], needed: Iterable[str], remedy: str = MADE_ANEW) -> None:
    """DamagedFile naming the first of some columns that a file's table does not have.

    Args:
        path: of the file.
        there: the names of its columns, or its table.
        needed, remedy: as read_with() has them.
    """
    have = set(there)
    if missing := [column for column in needed if column not in have]:
        raise other_version_error(path, f"has no column {missing[0]}", remedy)
