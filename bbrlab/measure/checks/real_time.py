"""Checks that a machine in real time was fast enough and undisturbed."""

from __future__ import annotations

from bbrlab.measure.checks.check import REAL_TIME, Check, not_checked
from bbrlab.measure.real_time import RealTimeEntry

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
    checks.append(
        Check("lost_time", LOST_TOLERANCE, lost, lost <= LOST_TOLERANCE, detail + _remedy(lost > LOST_TOLERANCE))
    )
    detail = "fraction of the time in which the machine's processor ran"
    slow = busy > BUSY_TOLERANCE
    advice = (
        "; too slow for this path: a lower rate, KVM in place of emulation, or virtual time (--backend uml)"
        if slow
        else ""
    )
    return [*checks, Check("spare_time", BUSY_TOLERANCE, busy, not slow, detail + advice)]


def _remedy(needed: bool) -> str:
    return "; end what else runs here, or choose an idle machine" if needed else ""
