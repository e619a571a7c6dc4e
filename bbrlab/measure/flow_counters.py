"""TCP's counters of a flow, at any time of a run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
    """A flow's samples and its counters at any time (lateness.value_at())."""

    times_s: Array  # of the samples, s since the experiment's start, ascending, shape (samples,)
    columns: dict[str, Array]  # {field of tcp_info or bbr_*: shape (samples,)}, units as in sockets.Flows
    # The last value of each field when the socket was destroyed, with ``time_ns``; None if it lived on
    final: dict[str, int] | None
    late_s: float = EDGE_TOLERANCE_S  # how long after its instant a sample may have been taken (lateness.lateness_s())

    def at(self, time_s: float, name: str) -> int:
        """Value of counter ``name`` at ``time_s``: 0 before the flow's first sample, its last value after its end."""
        if self._ended(time_s) and self.final is not None:
            return self.final[name]
        return value_at(self.times_s, self.columns[name], time_s, self.late_s) or 0

    def _ended(self, time_s: float) -> bool:
        return self.final is not None and time_s + EDGE_TOLERANCE_S >= self.final["time_ns"] / 1e9

    def sent_data(self, time_s: float) -> bool:
        """Whether it sent data by ``time_s``. None of it need have arrived: losing a whole window and all its retransmissions can last
        longer than a run."""
        return self._sent_once(time_s) > IPERF3_COOKIE_BYTES

    def acked_data(self, time_s: float) -> int:
        """Bytes of data alone that were acknowledged by ``time_s``: without SYN, iperf3's cookie and FIN."""
        acked = min(self.at(time_s, "bytes_acked") - SYN_BYTES, self._sent_once(time_s))  # so a FIN is none of it
        return max(0, acked - IPERF3_COOKIE_BYTES)

    def written(self, time_s: float) -> int:
        """Bytes that its program wrote to the socket by ``time_s``, iperf3's cookie among them."""
        return self._sent_once(time_s) + self.at(time_s, "notsent_bytes")

    def _sent_once(self, time_s: float) -> int:
        """Bytes sent by ``time_s``, each once; bytes_sent counts neither SYN nor FIN."""
        return self.at(time_s, "bytes_sent") - self.at(time_s, "bytes_retrans")

    @cached_property
    def before_data_us(self) -> int | None:
        """How long bytes were unacknowledged (busy_time) before the first of data: iperf3's cookie, about one round trip. None where no
        sample lies between it and the data."""
        idle = (self.columns["unacked"] == 0) & (self.columns["bytes_acked"] == BEFORE_DATA_BYTES)
        busy = self.columns["busy_us"][idle]
        return int(busy[-1]) if len(busy) else None

    @cached_property
    def first_data_s(self) -> float | None:
        """When its first byte of data was sent, s since the experiment's start; None if none was.

        The first sample after that says how long it has been busy with data (busy_time): right to 1 ms. Where it was idle in between, it
        is the latest instant that may be, right to an interval between samples. Of a flow that no sample saw with data its socket's end
        says when the last of it was sent.
        """
        columns, final = self.columns, self.final
        sent = columns["bytes_sent"] - columns["bytes_retrans"] > IPERF3_COOKIE_BYTES
        if sent.any():
            first = int(sent.argmax())
            latest_s = until_s = float(self.times_s[first])
            busy_us, cookie_us = int(columns["busy_us"][first]), int(columns["min_rtt_us"][first])
        elif final is not None and final["bytes_sent"] - final["bytes_retrans"] > IPERF3_COOKIE_BYTES:
            first, end_s, cookie_us = len(sent), final["time_ns"] / 1e9, final["min_rtt_us"]
            latest_s = end_s - final["last_data_sent_ms"] / 1e3
            until_s = min(end_s, latest_s + final["srtt_us"] / 1e6)
            busy_us = final["busy_us"] - final["min_rtt_us"]  # of the FIN
        else:
            return None
        busy_us -= cookie_us if self.before_data_us is None else self.before_data_us
        earliest_s = float(self.times_s[first - 1]) if first else 0.0
        return max(earliest_s, min(latest_s, until_s - busy_us / 1e6))


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
