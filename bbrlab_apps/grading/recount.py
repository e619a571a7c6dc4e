"""Computes the measured part of summary.json anew from samples.parquet, so that an edited summary shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.experiment.plan import Plan
from bbrlab.measure.checks.check import CheckEntry
from bbrlab.measure.checks.suite import run_checks
from bbrlab.measure.flow_counters import FlowCounters, flow_counters
from bbrlab.measure.lateness import lateness_s
from bbrlab.measure.queues import Queue
from bbrlab.measure.sockets import Flows
from bbrlab.measure.summarise import summarise
from bbrlab.measure.summary import Measured
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Scenario

QUEUE_COLUMNS = ("bytes", "packets", "sent_bytes", "sent_packets", "drops", "marks")
NEED_CLOSED_SOCKETS = (
    "flows_ran",
    "receive_window",
    "send_buffer",
)  # self-checks for which counters of closed sockets count, too
OF_QUEUES = ("queue_peak", "busy_rate")


def can_recount(scenario: Scenario) -> bool:
    """Whether the samples suffice: every flow sends forward, to the end of the run.

    Counters of closed sockets, the backlog of the other direction and short flows are not in samples.parquet.
    """
    return _is_forward(scenario) and all(f.stop_s is None and f.bytes is None for f in scenario.flows)


def _is_forward(scenario: Scenario) -> bool:
    return all(f.direction == "forward" and f.traffic is None for f in scenario.flows)


def _measurements(plan: Plan, columns: Mapping[str, Array]) -> tuple[list[FlowCounters], Queue]:
    """The flows' counters and the bottleneck's queue, by the samples."""
    late_s = lateness_s(plan.content["virtual"])
    of_flow = columns["flow"] >= 0
    flows = Flows({name: values[of_flow] for name, values in columns.items()}, {})
    times, first = np.unique(columns["time_s"], return_index=True)
    queue = {name: columns[f"queue_{name}"][first] for name in QUEUE_COLUMNS}
    return flow_counters(flows, len(plan.flows), late_s), Queue({"time_s": times, **queue}, late_s)


def recounted(point: Point, plan: Plan, columns: Mapping[str, Array]) -> Measured:
    """The measurements of a run by its samples alone.

    Args:
        columns: of samples.parquet (measure/sample_schema.py), each of shape (samples,).

    Returns:
        Exactly what summarise() returned in the run, of a scenario that can_recount().
    """
    counters, queue = _measurements(plan, columns)
    return summarise(point.scenario, plan, counters, {"forward": queue})


def checks_of(scenario: Scenario, plan: Plan, report: Any, columns: Mapping[str, Array]) -> list[CheckEntry]:
    """A run's self-checks, computed anew: those for which its samples and the guest's report suffice."""
    counters, queue = _measurements(plan, columns)
    queues: dict[str, Queue] = {link["direction"]: queue for link in plan.content["bottlenecks"]}
    left_out: tuple[str, ...] = () if can_recount(scenario) else NEED_CLOSED_SOCKETS
    if not _is_forward(scenario):
        left_out += tuple(name + suffix for name in OF_QUEUES for suffix in ("", "_reverse"))
    checks = run_checks(scenario, plan, report, counters, queues)
    return [check for check in checks if check["name"] not in left_out]
