"""How late a sample may be: hardly in virtual time, by a scheduler's whim in real time."""

from __future__ import annotations

EDGE_TOLERANCE_S = 1e-3  # a sample at a window's edge is stamped some hundred nanoseconds after it
REAL_TIME_LATENESS_S = 0.05  # the sampler competes with everything else for a processor


def lateness_s(virtual: bool) -> float:
    """How long after its instant a sample may have been taken, in s."""
    return EDGE_TOLERANCE_S if virtual else REAL_TIME_LATENESS_S
