"""Metrics of a bottleneck, and of the run as a whole (definitions: bbrlab/measure/metrics.py)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.measure import metrics
from bbrlab.measure.lateness import in_window, value_at
from bbrlab.measure.long_flows import LongFlow
from bbrlab.measure.numbers import Value, jain_index, mean, ratio, rounded, spread_of
from bbrlab.measure.queues import Queue
from bbrlab.measure.registry import Registry
from bbrlab.scenario.rates import before, capacity_mbit, queueing_delay_ms
from bbrlab.scenario.schema import Scenario

RUN: Registry[Bottleneck] = Registry(metrics.RUN)


@dataclass(frozen=True)
class Bottleneck:
    """One direction's bottleneck within the window."""

    scenario: Scenario
    queue: Queue
    goodput_mbit: float  # of all groups that cross it
    flows: list[LongFlow]  # the long flows that cross it
    all_flows: list[LongFlow]  # the long flows of the run

    @cached_property
    def inside(self) -> Array:
        """Whether each sample lies in the window, shape (samples,)."""
        return in_window(self.queue.columns["time_s"], self.scenario.window_s)

    @property
    def capacity_mbit(self) -> float:
        """Mean nominal rate in the window."""
        return capacity_mbit(self.scenario, *self.scenario.window_s)

    @property
    def backlog_bytes(self) -> Array:
        """At the window's samples."""
        backlog: Array = self.queue.columns["bytes"][self.inside]
        return backlog

    @cached_property
    def delay_ms(self) -> Array:
        """Queueing delay at the window's samples."""
        network = before(self.scenario.network, self.scenario.window_s[1])
        return queueing_delay_ms(network, self.queue.columns["time_s"][self.inside], self.backlog_bytes)

    def growth(self, name: str) -> int | None:
        """Growth of a counter in the window, from the first sample on if the window begins before that; None without samples
        in it."""
        if not self.inside.any():
            return None
        times, values, late_s = self.queue.columns["time_s"], self.queue.columns[name], self.queue.late_s
        low, high = (value_at(times, values, at_s, late_s) for at_s in self.scenario.window_s)
        return None if high is None else high - (int(values[0]) if low is None else low)


@RUN.of("jain_index_all")
def _jain_index(link: Bottleneck) -> Value:
    return rounded(jain_index(np.array([f.goodput_mbit for f in link.all_flows])))


@RUN.of("utilisation", "link_utilisation")
def _utilisation(link: Bottleneck) -> dict[str, Value]:
    low, high = link.scenario.window_s
    sent = link.growth("sent_bytes")
    whole_frames = None if sent is None else rounded(sent * 8e-6 / (high - low) / link.capacity_mbit)
    return {"utilisation": rounded(link.goodput_mbit / link.capacity_mbit), "link_utilisation": whole_frames}


@RUN.of("loss", "drops", "ecn_marks")
def _loss(link: Bottleneck) -> dict[str, Value]:
    drops, sent = link.growth("drops"), link.growth("sent_packets")
    # Counted as one each if dropped, by their packets if sent on. Where ACKs alone cross it there are none.
    whole_segments = link.scenario.hosts.segmentation == "router" and link.goodput_mbit > 0
    loss = None if drops is None or sent is None or whole_segments else rounded(ratio(drops, drops + sent))
    return {"loss": loss, "drops": drops, "ecn_marks": link.growth("marks")}


@RUN.of("loss_over_delivered")
def _loss_over_delivered(link: Bottleneck) -> Value:
    retransmits = sum(f.growth("total_retrans") for f in link.flows)
    return rounded(ratio(retransmits, sum(f.growth("delivered") for f in link.flows)))


@RUN.of("occupancy", "occupancy_p50", "occupancy_p95")
def _occupancy(link: Bottleneck) -> dict[str, Value]:
    spread = spread_of(link.backlog_bytes / link.scenario.network.buffer_bytes)
    return {"occupancy": spread["mean"], "occupancy_p50": spread["p50"], "occupancy_p95": spread["p95"]}


_QUEUE = tuple(m for m in metrics.RUN.values() if m.place[:2] == ("bottleneck", "queue_ms"))


@RUN.of(*(m.name for m in _QUEUE))
def _queue(link: Bottleneck) -> dict[str, Value]:
    spread = spread_of(link.delay_ms)
    return {m.name: spread[m.place[-1]] for m in _QUEUE}


_TWO_QUEUES = ("classic_queue_ms_mean", "classic_queue_ms_p99", "l4s_queue_ms_mean", "l4s_queue_ms_p99",
               "coupled_probability_mean", "coupled_probability_rms", "l4s_packets")  # fmt: skip


@RUN.of(*_TWO_QUEUES)
def _two_queues(link: Bottleneck) -> dict[str, Value]:
    columns = link.queue.columns
    if "l4s_us" not in columns:
        return dict.fromkeys(_TWO_QUEUES)
    values: dict[str, Value] = {}
    for queue in ("classic", "l4s"):
        spread = spread_of(columns[f"{queue}_us"][link.inside] / 1000)
        values |= {f"{queue}_queue_ms_mean": spread["mean"], f"{queue}_queue_ms_p99": spread["p99"]}
    probability = columns["probability"][link.inside] / 2**32
    square = mean(probability**2)
    values["coupled_probability_mean"] = mean(probability)
    values["coupled_probability_rms"] = None if square is None else rounded(square**0.5)
    classic, scalable = link.growth("classic_packets"), link.growth("l4s_packets")
    if classic is not None and scalable is not None:
        values["l4s_packets"] = rounded(ratio(scalable, classic + scalable))
    return {"l4s_packets": None} | values


@RUN.of(*map(metrics.queue_cdf_name, metrics.QUEUE_CDF_RTTS))
def _queue_cdf(link: Bottleneck) -> dict[str, Value]:
    rtt_ms = link.scenario.network.mean_rtt_ms
    return {metrics.queue_cdf_name(n): mean(link.delay_ms <= n * rtt_ms) for n in metrics.QUEUE_CDF_RTTS}
