"""What claims read of a figure's table, worked out once: hundreds of claims read the same one."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd

from bbrlab.results.seeds import identical_points


class TableFacts:
    """The runs of a figure's table (tables.figure_table()) by point, and its columns by run; each worked out when it is first asked for.

    Attributes:
        columns: the names of the table's columns.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table
        self._values: dict[tuple[int, str], dict[tuple[str, int], float]] = {}
        self._unmeasured: dict[str, set[str]] = {}
        self.columns = frozenset(table.columns)

    @cached_property
    def seeds(self) -> dict[str, list[int]]:
        """{point label: seeds of all its runs}."""
        return _seeds(self._passed)

    @cached_property
    def good(self) -> dict[str, list[int]]:
        """{point label: seeds of its runs that passed their self-checks}; without points that have none."""
        return _seeds(self._passed[self._passed])

    @cached_property
    def still(self) -> set[str]:
        """Labels of the points at which every run measured the same (identical_points())."""
        return identical_points(self._table)

    @cached_property
    def good_still(self) -> set[str]:
        """Labels of the points at which every good run measured the same."""
        ok = self._table["ok"]
        return self.still if ok.all() else identical_points(self._table[ok])

    @cached_property
    def utilisation(self) -> dict[str, float]:
        """{point label: mean of the link's utilisation over its runs}; empty without the column."""
        if "utilisation" not in self._table:
            return {}
        means = self._table.groupby("point")["utilisation"].mean()
        return dict(zip(map(str, means.index), means.tolist(), strict=True))

    def unmeasured(self, column: str) -> set[str]:
        """Labels of the points of kernels of which no run has a value of a column, where runs of another kernel have.

        So is a figure whose points ship one by one: some are of a version of bbrlab that did not measure it.
        """
        if column not in self._unmeasured:
            measured = self._table.groupby("kernel_key")[column].transform("count") > 0
            self._unmeasured[column] = set(self._table["point"][~measured]) if measured.any() else set()
        return self._unmeasured[column]

    def values(self, column: str, group: int) -> dict[tuple[str, int], float]:
        """A column of a group of flows: {(point label, seed): value}, NaN where a run has none."""
        key = group, column
        if key not in self._values:
            rows = self._table[self._table["group"] == group]
            runs = zip(rows["point"].to_list(), rows["seed"].to_list(), strict=True)
            self._values[key] = dict(zip(runs, np.asarray(rows[column], dtype=float).tolist(), strict=True))
        return self._values[key]

    @cached_property
    def _passed(self) -> pd.Series:
        """Whether each run passed its self-checks, by point and seed."""
        return self._table.groupby(["point", "seed"])["ok"].all()


def _seeds(runs: pd.Series) -> dict[str, list[int]]:
    """The seeds of some runs by point, from an index of both."""
    found: dict[str, list[int]] = {}
    for label, seed in runs.index.to_list():
        found.setdefault(label, []).append(int(seed))
    return found
