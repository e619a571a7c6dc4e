"""How late a sample may be, in virtual time and in real time."""

from __future__ import annotations

import numpy as np

from bbrlab.base.arrays import Array

EDGE_TOLERANCE_S = 1e-3  # a sample at a window's edge is stamped some hundred nanoseconds after it
REAL_TIME_LATENESS_S = 0.05  # the sampler competes with everything else for a processor
# Before and after the measuring window, where a machine's one processor also starts and ends iperf3: 80 ms where it is emulated
# (seen before this bound was set). A sample has its own time, so that a late one is no wrong one.
REAL_TIME_LATENESS_OUTSIDE_S = 0.5


def lateness_s(virtual: bool) -> float:
    """How long after its instant a sample may have been taken, in s."""
    return EDGE_TOLERANCE_S if virtual else REAL_TIME_LATENESS_S


def in_window(times_s: Array, window_s: list[float]) -> Array:
    """Whether each sample lies in the window, shape (samples,)."""
    low, high = window_s
    inside: Array = (times_s >= low - EDGE_TOLERANCE_S) & (times_s <= high + EDGE_TOLERANCE_S)
    return inside


def value_at(times_s: Array, values: Array, at_s: float, late_s: float) -> int | None:
    """A counter at an instant: exact at samples, carried on from the last one between them.

    In real time the sample that was meant for an instant comes late: there the counter lies between its neighbours'.

    Args:
        times_s: of the samples, ascending, shape (samples,).
        values: of the counter, shape (samples,).
        late_s: how long after its instant a sample may have been taken (lateness_s()).

    Returns:
        None before the first sample.
    """
    index = int(np.searchsorted(times_s, at_s + EDGE_TOLERANCE_S, side="right")) - 1
    if index < 0:
        return None
    late = index + 1 < len(times_s) and EDGE_TOLERANCE_S < times_s[index + 1] - at_s <= late_s
    if late and at_s - times_s[index] > EDGE_TOLERANCE_S:
        return round(float(np.interp(at_s, times_s[index : index + 2], values[index : index + 2])))
    return int(values[index])
