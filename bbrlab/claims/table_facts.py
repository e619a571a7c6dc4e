"""What claims read of a figure's table, worked out once: hundreds of claims read the same one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bbrlab.results.seeds import identical_points


class TableFacts:
    """The runs of a figure's table (tables.figure_table()) by point, and its columns by run.

    Attributes:
        columns: the names of the table's columns.
        seeds: {point label: seeds of all its runs}, and
        good: of those that passed their self-checks.
        still: labels of the points at which every run measured the same (identical_points()), and
        good_still: at which every good run did.
        utilisation: {point label: mean of the link's utilisation over its runs}; empty without the column.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table
        self._values: dict[tuple[int, str], dict[tuple[str, int], float]] = {}
        self.columns = frozenset(table.columns)
        self.seeds: dict[str, list[int]] = {}
        self.good: dict[str, list[int]] = {}
        ok = table.groupby(["point", "seed"])["ok"].all()
        for (label, seed), good in zip(ok.index.to_list(), ok.to_list(), strict=True):
            self.seeds.setdefault(label, []).append(int(seed))
            if good:
                self.good.setdefault(label, []).append(int(seed))
        self.still = identical_points(table)
        self.good_still = self.still if table["ok"].all() else identical_points(table[table["ok"]])
        measured = table.groupby("point")["utilisation"].mean() if "utilisation" in table else pd.Series(dtype=float)
        self.utilisation: dict[str, float] = dict(zip(map(str, measured.index), measured.tolist(), strict=True))

    def values(self, column: str, group: int) -> dict[tuple[str, int], float]:
        """A column of a group of flows: {(point label, seed): value}, NaN where a run has none."""
        key = group, column
        if key not in self._values:
            rows = self._table[self._table["group"] == group]
            runs = zip(rows["point"].to_list(), rows["seed"].to_list(), strict=True)
            self._values[key] = dict(zip(runs, np.asarray(rows[column], dtype=float).tolist(), strict=True))
        return self._values[key]
