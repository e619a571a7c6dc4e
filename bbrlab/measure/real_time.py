"""The quality of a run in real time: lateness of timers, and the processor time that its machine had."""

from __future__ import annotations

import numpy as np
from typing_extensions import TypedDict

from bbrlab.base.arrays import Array
from bbrlab.experiment.machine.strain import Strain
from bbrlab.measure.checks.guest import sample_instants_s
from bbrlab.measure.queues import Queue
from bbrlab.scenario.schema import Scenario


class RealTimeEntry(TypedDict):
    """The entry of summary.json on a run in real time.

    Attributes:
        late_ms_median, late_ms_p99, late_ms_max: how long after its instant a sample of the measuring window was taken, in
            ms; None without samples. What is late for the sampler is late for iperf3 and for TCP's timers.
        busy, waited, stolen: strain.Strain, fractions of the experiment's time.
    """

    late_ms_median: float | None
    late_ms_p99: float | None
    late_ms_max: float | None
    busy: float
    waited: float | None
    stolen: float


def real_time_entry(scenario: Scenario, queues: dict[str, Queue], strain: Strain) -> RealTimeEntry:
    """The entry of a run in real time.

    Args:
        queues: {direction: samples of its bottleneck}; all are taken at the same instants.
    """
    due = sample_instants_s(scenario)
    begin_s, end_s = scenario.window_s
    late_ms: Array = np.zeros(0)
    for queue in queues.values():
        times_s = queue.columns["time_s"][: len(due)]
        counted = (due >= begin_s) & (due <= end_s)
        late_ms = 1000 * (times_s - due[: len(times_s)])[counted[: len(times_s)]]
    some = len(late_ms) > 0
    return {
        "late_ms_median": round(float(np.median(late_ms)), 3) if some else None,
        "late_ms_p99": round(float(np.percentile(late_ms, 99)), 3) if some else None,
        "late_ms_max": round(float(np.max(late_ms)), 3) if some else None,
        "busy": strain.busy,
        "waited": strain.waited,
        "stolen": strain.stolen,
    }
