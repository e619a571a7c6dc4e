"""The estimated cost of repeating a run, and whether a rubric's limits allow it."""

from __future__ import annotations

from collections.abc import Sequence

from bbrlab.claims.schema import rounded
from bbrlab.results.run_estimate import disk_bytes, estimate_s
from bbrlab.run.memory import guest_bytes
from bbrlab.scenario.point import Point
from bbrlab_apps.grading.rubric import Limits


def too_much(point: Point, limits: Limits) -> dict[str, str]:
    """The limits that running a point would exceed: {field of the limits: by how much, in words}."""
    seconds = estimate_s(point)
    memory_mb = guest_bytes(point) / 1e6
    disk_mb = disk_bytes(point) / 1e6
    wanted = {
        "run_s": (seconds, "s"),
        "end_s": (seconds, "s"),
        "memory_mb": (memory_mb, "MB of memory"),
        "disk_mb": (disk_mb, "MB of disk"),
    }
    return {
        field: f"would need about {rounded(needed, 3)} {unit}, allowed are {getattr(limits, field):g}"
        for field, (needed, unit) in wanted.items()
        if needed > getattr(limits, field)
    }


def dearest_sample_s(points: Sequence[Point], seeds: int, count: int) -> float:
    """The estimated seconds of ``count`` runs, if the longest ones are drawn."""
    costs = sorted((estimate_s(point) for point in points for _ in range(seeds)), reverse=True)
    return sum(costs[:count])
