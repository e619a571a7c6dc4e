"""A flow's counters at any time of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.measure.sockets import Flows

EDGE_TOLERANCE_S = 1e-3  # a sample at a window's edge is stamped some hundred nanoseconds after it


@dataclass(frozen=True)
class Counter:
    """A flow's counters at any time: exact at samples, carried on from the last one between them."""

    times_s: Array
    columns: dict[str, Array]
    final: dict[str, int] | None

    def at(self, time_s: float, name: str) -> int:
        """Value of counter ``name`` at ``time_s``: 0 before the flow's first sample, its last value after its end."""
        index = int(np.searchsorted(self.times_s, time_s + EDGE_TOLERANCE_S, side="right")) - 1
        if self.final is not None and time_s + EDGE_TOLERANCE_S >= self.final["time_ns"] / 1e9:
            return self.final[name]
        if index < 0:
            return 0
        return int(self.columns[name][index])


def flow_counters(flows: Flows, count: int) -> list[Counter]:
    """One Counter for each of ``count`` flows."""
    order = np.argsort(flows.columns["flow"], kind="stable")
    edges = np.searchsorted(flows.columns["flow"][order], np.arange(count + 1))
    ordered = {name: values[order] for name, values in flows.columns.items()}
    result = []
    for f in range(count):
        columns = {name: values[edges[f] : edges[f + 1]] for name, values in ordered.items()}
        result.append(Counter(columns["time_s"], columns, flows.final.get(f)))
    return result
