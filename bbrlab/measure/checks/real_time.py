"""The quality of a run in real time, and its checks: lateness of timers, and the processor time that its machine had."""

from __future__ import annotations

import numpy as np
from typing_extensions import TypedDict

from bbrlab.base.arrays import Array
from bbrlab.experiment.machine.strain import Strain
from bbrlab.measure.checks.check import REAL_TIME, Check, not_checked
from bbrlab.measure.checks.guest import sample_instants_s
from bbrlab.measure.queues import Queue
from bbrlab.scenario.schema import Scenario


class RealTimeEntry(TypedDict):
    """The entry of summary.json on a run in real time."""

    # late_ms_median, late_ms_p99, late_ms_max: how long after its instant a sample of the measuring window was taken, in ms; None
    # without samples. What is late for the sampler is late for iperf3 and for TCP's timers
    late_ms_median: float | None
    late_ms_p99: float | None
    late_ms_max: float | None
    # busy, waited, stolen: strain.Strain, fractions of the experiment's time
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


# Processor time that others take slows the emulated network; the rate may be off by REAL_TIME.rate for this.
LOST_TOLERANCE = REAL_TIME.rate
# A processor that is always busy is late for every event, by an unknown time.
BUSY_TOLERANCE = 0.9
# Five ticks of the guest's clock (1000 Hz); the paths of papers have base RTTs of 10 ms and more.
LATE_TOLERANCE_MS = 5.0


def real_time_checks(entry: RealTimeEntry) -> list[Check]:
    """``late_timers``, ``lost_time`` and ``spare_time`` of a run in real time."""
    checks = []
    late_ms = entry["late_ms_p99"]
    how = "ms by which one in a hundred samples of the window came later"
    if late_ms is None:
        checks.append(not_checked("late_timers", LATE_TOLERANCE_MS, "there is no sample in the window"))
    else:
        checks.append(Check("late_timers", LATE_TOLERANCE_MS, late_ms, late_ms <= LATE_TOLERANCE_MS, how))
    busy, waited, stolen = entry["busy"], entry["waited"], entry["stolen"]
    lost = round((waited or 0.0) + stolen, 4)
    detail = f"fraction of the time in which others had the machine's processor (stolen by a hypervisor: {stolen:g})"
    if waited is None:
        detail += "; this kernel does not tell how long processes wait (no PSI)"
    if lost > LOST_TOLERANCE:
        detail += "; end what else runs here, or choose an idle machine"
    checks.append(Check("lost_time", LOST_TOLERANCE, lost, lost <= LOST_TOLERANCE, detail))
    detail = "fraction of the time in which the machine's processor ran"
    if busy > BUSY_TOLERANCE:
        detail += "; too slow for this path: a lower rate, KVM in place of emulation, or virtual time (--backend uml)"
    return [*checks, Check("spare_time", BUSY_TOLERANCE, busy, busy <= BUSY_TOLERANCE, detail)]
