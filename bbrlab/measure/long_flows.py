"""Metrics of long flows: of one, and of a group (definitions: bbrlab/measure/metrics.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.experiment.transfers import FlowPlan
from bbrlab.measure import metrics
from bbrlab.measure.flow_counters import BEFORE_DATA_BYTES, FIN_BYTES, FlowCounters
from bbrlab.measure.jitter import jitter_ms, largest_by_second
from bbrlab.measure.lateness import EDGE_TOLERANCE_S, in_window
from bbrlab.measure.numbers import Value, jain_index, mean, ratio, rounded, spread_of
from bbrlab.measure.phases import PHASE_QUEUES, PHASES, phase_lengths, phase_queues, probe_rtt_together
from bbrlab.measure.queues import Queue
from bbrlab.measure.registry import Registry
from bbrlab.measure.sample_schema import IN_FLIGHT, packets_in_flight
from bbrlab.measure.summary import FlowEntry
from bbrlab.scenario.rates import before, capacity_mbit, queueing_delay_ms
from bbrlab.scenario.schema import Flow, Network, Scenario

LONG: Registry[LongGroup] = Registry(metrics.GROUP)


@dataclass(frozen=True)
class LongFlow:
    """One flow within the window: its plan, its counters, and for each bottleneck that it crosses the network and its queue."""

    scenario: Scenario
    spec: FlowPlan
    counters: FlowCounters
    path: list[tuple[Network, Queue]]

    @property
    def asked(self) -> Flow:
        """Its group in the scenario."""
        return self.scenario.flows[self.spec.group]

    def growth(self, name: str) -> int:
        """Growth of a counter in the window."""
        low, high = self.scenario.window_s
        return self.counters.at(high, name) - self.counters.at(low, name)

    @cached_property
    def inside(self) -> Array:
        """Whether each sample lies in the window, shape (samples,)."""
        return in_window(self.counters.times_s, self.scenario.window_s)

    def samples(self, name: str) -> Array:
        """A column's values at the window's samples; empty if nothing was measured of the flow in the window."""
        values: Array = self.counters.columns[name][self.inside & self.was_measured]
        return values

    @property
    def in_flight(self) -> Array:
        """Packets in flight at the window's samples; empty if nothing was measured of the flow in the window."""
        return packets_in_flight(*(self.samples(name) for name in IN_FLIGHT))

    @cached_property
    def was_measured(self) -> bool:
        """Whether it was sampled and delivered something in the window. TCP's values of a flow that waits for a retransmission timeout
        all the time are older than the window."""
        return bool(self.inside.any()) and self.growth("delivered") > 0

    def acked_bytes(self, time_s: float) -> int:
        """Bytes acknowledged by ``time_s``: data alone of a finite flow; of an unlimited one also the 38 of SYN and iperf3's cookie."""
        if self.asked.bytes is not None:
            return self.counters.acked_data(time_s)
        return self.counters.at(time_s, "bytes_acked")

    @cached_property
    def goodput_mbit(self) -> float:
        """Mbit/s; 0 for a flow that is silent in the window, or had no data acknowledged by its end."""
        return self._goodput_mbit(*self.scenario.window_s)

    def _goodput_mbit(self, low: float, high: float) -> float:
        if not self.counters.acked_data(high):
            return 0.0
        return (self.acked_bytes(high) - self.acked_bytes(low)) * 8e-6 / (high - low)

    @property
    def goodput_while_there_mbit(self) -> float:
        """Mbit/s over the part of the window from its group's start to its last sample; NaN if nothing was measured of it."""
        low, high = self.scenario.window_s
        times_s = self.counters.times_s[self.inside & self.was_measured]
        begin = max(low, self.asked.start_s)
        end = times_s[-1] if len(times_s) else begin
        if high - end <= EDGE_TOLERANCE_S:
            end = high
        return self._goodput_mbit(begin, end) if begin < end else math.nan

    @property
    def is_bbr(self) -> bool:
        """Whether its samples have BBR's own record."""
        return self.asked.cca.startswith("bbr")

    @cached_property
    def bbr(self) -> dict[str, Value]:
        """BBR's own values: estimates, phases, and the queue in them; {} for other CCAs."""
        if not self.is_bbr:
            return {}
        told = ~np.isnan(self.samples("bbr_bw"))
        extra_bytes = self.samples("bbr_extra_acked") * self.samples("snd_mss")
        jitter = (
            jitter_ms(np.array(extra_bytes.mean()), np.array(self.goodput_while_there_mbit))
            if len(extra_bytes)
            else np.array(np.nan)
        )
        columns, times = self.counters.columns, self.counters.times_s
        acked_bytes = self.samples("bytes_acked")
        largest = largest_by_second(times[self.inside & self.was_measured], extra_bytes, acked_bytes, self.scenario.window_s)  # fmt: skip
        return {
            "bbr_jitter_ms": None if np.isnan(jitter) else rounded(float(jitter)),
            "bbr_jitter_ms_max": None if np.isnan(largest) else rounded(largest),
            "bbr_bw_mbit": mean(self.samples("bbr_bw")[told] * 8e-6),
            "bbr_min_rtt_ms": mean(self.samples("bbr_min_rtt_us")[told] / 1e3),
            **phase_lengths(columns),
            **phase_queues(columns, self._queueing_delay_ms(times), *self.scenario.window_s),
        }

    def _queueing_delay_ms(self, times: Array) -> Array:
        """At each of some times, of all bottlenecks that it crosses together."""
        delays = []
        for link, queue in self.path:
            backlog = queue.columns["bytes"][_latest(queue.columns["time_s"], times)]
            delays.append(queueing_delay_ms(before(link, self.scenario.window_s[1]), times, backlog))
        together: Array = sum(delays[1:], start=delays[0])
        return together

    @cached_property
    def completion_s(self) -> float | None:
        """How long the transfer of a finite flow took; None if it did not end, or has no size.

        tcp_info's busy_time also runs while iperf3's cookie and, after all data, the FIN are unacknowledged. Samples between them and
        the data show how long that was; without such a sample, one round trip is assumed for each.
        """
        final, columns = self.counters.final, self.counters.columns
        if self.asked.bytes is None or final is None or final["bytes_acked"] < self.asked.bytes + BEFORE_DATA_BYTES:
            return None
        idle = columns["unacked"] == 0
        after = columns["busy_us"][idle & (columns["bytes_acked"] >= final["bytes_acked"] - FIN_BYTES)]
        before_us = self.counters.before_data_us
        begin_us = final["min_rtt_us"] if before_us is None else before_us
        end_us = int(after[-1]) if len(after) else final["busy_us"] - final["min_rtt_us"]
        return rounded((end_us - begin_us) / 1e6)

    def entry(self) -> FlowEntry:
        """The ``flows`` entry of summary.json."""
        retransmits, delivered = self.growth("total_retrans"), self.growth("delivered")
        minimum_us = self.samples("min_rtt_us")
        content: FlowEntry = {
            "flow": self.spec.flow,
            "group": self.spec.group,
            "cca": self.asked.cca,
            "base_rtt_ms": self.spec.rtt_ms,
            "goodput_mbit": rounded(self.goodput_mbit),
            "delivered_bytes": self.acked_bytes(self.scenario.duration_s),
            "retransmits": retransmits,
            "loss": rounded(ratio(retransmits, self.growth("data_segs_out"))),
            "loss_over_delivered": rounded(ratio(retransmits, delivered)),
            "ecn_marked": rounded(ratio(self.growth("delivered_ce"), delivered)),
            "rtt_ms": {
                "min": rounded(minimum_us.min() / 1e3) if len(minimum_us) else None,
                **spread_of(self.samples("srtt_us") / 1e3),
            },
            "cwnd_packets": mean(self.samples("cwnd")),
            "in_flight_packets": mean(self.samples("unacked")),
            "pipe_packets": mean(self.in_flight),
            "first_sample_s": rounded(self.counters.times_s[0]) if len(self.counters.times_s) else None,
            "first_data_s": rounded(self.counters.first_data_s),
        }
        content = cast(FlowEntry, content | self.bbr)  # {} for others
        if self.asked.bytes is not None:
            content["completion_s"] = self.completion_s
        return content


def _latest(sampled_s: Array, times_s: Array) -> Array:
    """Index of the latest sample at each of ``times_s``; samples of one instant are some microseconds apart."""
    return np.clip(np.searchsorted(sampled_s, times_s + EDGE_TOLERANCE_S, side="right") - 1, 0, None)


@dataclass(frozen=True)
class LongGroup:
    """A group's flows, and the goodput of all groups of the run."""

    scenario: Scenario
    flows: list[LongFlow]
    run_goodput_mbit: float

    @property
    def goodput_mbit(self) -> float:
        """Mbit/s, the sum over its flows."""
        return sum(f.goodput_mbit for f in self.flows)

    def growth(self, name: str) -> int:
        """Growth of a counter in the window, summed over the flows."""
        return sum(f.growth(name) for f in self.flows)

    @cached_property
    def sampled(self) -> list[LongFlow]:
        """The flows of which something was measured in the window."""
        return [f for f in self.flows if f.was_measured]

    def of_all(
        self, value: Callable[[LongFlow], float | None], combine: Callable[[Any], Any] = np.mean
    ) -> float | None:
        """A number of each flow, combined; None if one of them has none."""
        return _of(self.flows, value, combine)

    def of_sampled(
        self, value: Callable[[LongFlow], float | None], combine: Callable[[Any], Any] = np.mean
    ) -> float | None:
        """A number of each sampled flow, combined; None if none was sampled, or one of them has none."""
        return _of(self.sampled, value, combine)


def _of(
    flows: list[LongFlow], value: Callable[[LongFlow], float | None], combine: Callable[[Any], Any]
) -> float | None:
    numbers = [value(f) for f in flows]
    return rounded(combine(numbers)) if numbers and None not in numbers else None


@LONG.of("goodput_mbit", "share_of_capacity", "share_of_goodput")
def _goodput(group: LongGroup) -> dict[str, Value]:
    goodput = group.goodput_mbit
    return {
        "goodput_mbit": rounded(goodput),
        "share_of_capacity": rounded(goodput / capacity_mbit(group.scenario, *group.scenario.window_s)),
        "share_of_goodput": rounded(ratio(goodput, group.run_goodput_mbit)),
    }


@LONG.of("written_mbit")
def _written(group: LongGroup) -> Value:
    low, high = group.scenario.window_s
    written = sum(f.counters.written(high) - f.counters.written(low) for f in group.flows)
    return rounded(written * 8e-6 / (high - low))


@LONG.of("retransmits")
def _retransmits(group: LongGroup) -> Value:
    return group.growth("total_retrans")


@LONG.of("jain_index")
def _jain_index(group: LongGroup) -> Value:
    return rounded(jain_index(np.array([f.goodput_mbit for f in group.flows])))


@LONG.of("ecn_marked")
def _ecn_marked(group: LongGroup) -> Value:
    return rounded(ratio(group.growth("delivered_ce"), group.growth("delivered")))


@LONG.of(
    "rtt_ms_mean",
    "cwnd_packets",
    "cwnd_packets_p50",
    "in_flight_packets",
    "pipe_packets",
    "min_rtt_ms",
    "sampled_flows",
)
def _sampled(group: LongGroup) -> dict[str, Value]:
    rtt_us = group.of_sampled(lambda f: float(f.samples("srtt_us").mean()))
    min_rtt_us = group.of_sampled(lambda f: float(f.samples("min_rtt_us").mean()))
    return {
        "rtt_ms_mean": None if rtt_us is None else rounded(rtt_us / 1e3),
        "cwnd_packets": group.of_sampled(lambda f: float(f.samples("cwnd").mean()), sum),
        "cwnd_packets_p50": group.of_sampled(lambda f: float(np.median(f.samples("cwnd"))), sum),
        "in_flight_packets": group.of_sampled(lambda f: float(f.samples("unacked").mean()), sum),
        "pipe_packets": group.of_sampled(lambda f: float(f.in_flight.mean()), sum),
        "min_rtt_ms": None if min_rtt_us is None else rounded(min_rtt_us / 1e3),
        "sampled_flows": len(group.sampled),
    }


@LONG.of("completion_s", "unfinished_flows")
def _completion(group: LongGroup) -> dict[str, Value]:
    times = [f.completion_s for f in group.flows if f.asked.bytes is not None]
    return {
        "completion_s": group.of_all(lambda f: f.completion_s),
        "unfinished_flows": times.count(None) if times else None,
    }


@LONG.of("bbr_jitter_ms", "bbr_jitter_ms_max", "bbr_bw_mbit", "bbr_min_rtt_ms", *PHASES, *PHASE_QUEUES)
def _bbr(group: LongGroup) -> dict[str, Value]:
    def told(name: str) -> Callable[[LongFlow], Any]:
        return lambda flow: flow.bbr.get(name)

    return {
        "bbr_jitter_ms": group.of_sampled(told("bbr_jitter_ms")),
        "bbr_jitter_ms_max": group.of_sampled(told("bbr_jitter_ms_max")),
        "bbr_bw_mbit": group.of_sampled(told("bbr_bw_mbit"), sum),
        "bbr_min_rtt_ms": group.of_sampled(told("bbr_min_rtt_ms")),
        **{name: group.of_all(told(name)) for name in (*PHASES, *PHASE_QUEUES)},
    }


@LONG.of("probe_rtt_together")
def _probe_rtt_together(group: LongGroup) -> Value:
    columns = [f.counters.columns for f in group.flows if f.is_bbr]
    hz = group.scenario.sample_hz
    return probe_rtt_together([(np.round(c["time_s"] * hz).astype(int), c["bbr_state"]) for c in columns])


@LONG.of("first_data_s", "last_first_data_s")
def _first_data(group: LongGroup) -> dict[str, Value]:
    begun = [f.counters.first_data_s for f in group.flows if f.counters.first_data_s is not None]
    return {
        "first_data_s": rounded(min(begun, default=None)),
        "last_first_data_s": group.of_all(lambda f: f.counters.first_data_s, max),
    }
