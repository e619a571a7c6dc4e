"""What TCP counted for a flow, at any time of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.measure.lateness import EDGE_TOLERANCE_S, value_at
from bbrlab.measure.sockets import Flows

SYN_BYTES = 1  # SYN and FIN count as a byte each (RFC 9293, 3.4), in tcp_info's bytes_acked, too
FIN_BYTES = 1
IPERF3_COOKIE_BYTES = 37  # the first thing on every connection; the data follows one or two RTTs later
BEFORE_DATA_BYTES = SYN_BYTES + IPERF3_COOKIE_BYTES


@dataclass(frozen=True)
class FlowCounters:
    """A flow's samples and its counters at any time (lateness.value_at()).

    Attributes:
        times_s: of the samples, s since the experiment's start, ascending, shape (samples,).
        columns: {field of tcp_info or bbr_*: shape (samples,)}, units as in sockets.Flows.
        final: the last value of each field when the socket was destroyed, with ``time_ns``; None if it lived on.
        late_s: how long after its instant a sample may have been taken (lateness.lateness_s()).
    """

    times_s: Array
    columns: dict[str, Array]
    final: dict[str, int] | None
    late_s: float = EDGE_TOLERANCE_S

    def at(self, time_s: float, name: str) -> int:
        """Value of counter ``name`` at ``time_s``: 0 before the flow's first sample, its last value after its end."""
        if self._ended(time_s) and self.final is not None:
            return self.final[name]
        return value_at(self.times_s, self.columns[name], time_s, self.late_s) or 0

    def _ended(self, time_s: float) -> bool:
        return self.final is not None and time_s + EDGE_TOLERANCE_S >= self.final["time_ns"] / 1e9

    def sent_data(self, time_s: float) -> bool:
        """Whether it sent data by ``time_s``. That none arrived is an outcome: a window that is lost whole, and every retransmission
        of it, can last longer than a run."""
        closing = FIN_BYTES if self._ended(time_s) else 0
        return self.at(time_s, "bytes_sent") - self.at(time_s, "bytes_retrans") > IPERF3_COOKIE_BYTES + closing


def flow_counters(flows: Flows, count: int, late_s: float = EDGE_TOLERANCE_S) -> list[FlowCounters]:
    """One FlowCounters for each of ``count`` flows; ``late_s``: how late their samples may be."""
    order = np.argsort(flows.columns["flow"], kind="stable")
    edges = np.searchsorted(flows.columns["flow"][order], np.arange(count + 1))
    ordered = {name: values[order] for name, values in flows.columns.items()}
    result = []
    for f in range(count):
        columns = {name: values[edges[f] : edges[f + 1]] for name, values in ordered.items()}
        result.append(FlowCounters(columns["time_s"], columns, flows.final.get(f), late_s))
    return result
