"""What a run needs: its memory, its time, and which runs may share one job.

The forecast shows a guest's memory; the rest is what a scheduler of other machines is told (profiles/slurm, profiles/kubernetes).
A campaign on this machine starts a guest as soon as a core is free.
"""

from __future__ import annotations

import math
from typing import Any

from bbrlab.campaign.plan import GROUPS
from bbrlab.kernel.built import is_built, kernel_identity
from bbrlab.results.run_estimate import SHORT_FLOW_BYTES, estimate_s, volume_bytes
from bbrlab.run.manifest import package_versions
from bbrlab.run.memory import FQ_FLOW_BYTES, WORKLOAD_BYTES, guest_bytes
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Flow, Scenario

# Beside the guest: Snakemake twice (who accepts the job, who runs it), bbrlab with its libraries, Slurm's own step.
HOST_BYTES = 1 << 30
# Of the host's memory for each sample of each flow while tables are made, and for each short flow.
BYTES_PER_FLOW_SAMPLE = 2000
BYTES_PER_SHORT_FLOW = 3000
# A workload is drawn, and a run must not be killed for a large draw.
DRAWN = 1.5
# A node may be slower than the machine that the estimate is of, and busy; a job over its time is killed.
PATIENCE = 5
MIN_RUNTIME_MIN = 3  # Snakemake starts twice in each job, and reads the plan of the whole campaign from a shared disk


def guest_mb(point: Point) -> int:
    """Memory that a run's guest may grow to, in MB. How many short flows there are is drawn: a bound of it."""
    scenario = point.scenario
    workload = sum(
        _short_flows(flow, scenario) * (WORKLOAD_BYTES * (1 + flow.traffic.senders) + 2 * FQ_FLOW_BYTES)
        for flow in scenario.flows
        if flow.traffic is not None
    )
    return math.ceil(guest_bytes(point, workload) / 1e6)


def memory_mb(point: Point) -> int:
    """Memory that one run needs at most, guest and host, in MB; a repeated attempt gets more (rules/experiments.smk)."""
    scenario = point.scenario
    samples = scenario.sample_hz * scenario.duration_s * sum(f.count for f in scenario.flows)
    short = sum(_short_flows(f, scenario) for f in scenario.flows)
    host = HOST_BYTES + BYTES_PER_FLOW_SAMPLE * samples + BYTES_PER_SHORT_FLOW * short
    return guest_mb(point) + math.ceil(host / 1e6)


def _short_flows(flow: Flow, scenario: Scenario) -> float:
    """At most so many short flows that a group draws."""
    if flow.traffic is None:
        return 0.0
    return DRAWN * (volume_bytes(flow, scenario.duration_s) or 0.0) / SHORT_FLOW_BYTES


def runtime_min(point: Point) -> int:
    """Minutes after which a scheduler may end a run; a repeated attempt gets more."""
    return max(MIN_RUNTIME_MIN, math.ceil(PATIENCE * estimate_s(point) / 60))


def group_of(point: Point) -> str | None:
    """The group of runs with which this one may share a job; None for a long one."""
    seconds = estimate_s(point)
    return next((name for name, limit in GROUPS.items() if seconds <= limit), None)


def machine_facts(kernel: str | None) -> dict[str, Any]:
    """What a plan has of this machine and not of files: Plan.identity, .kernel_is_built and .packages."""
    return {
        "identity": kernel_identity(kernel),
        "kernel_is_built": is_built(kernel),
        "packages": ", ".join(f"{name} {version}" for name, version in package_versions().items()),
    }
