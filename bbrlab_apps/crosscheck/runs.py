"""Runs one scenario in virtual time and in real time, with several seeds, and compares them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.comparison.compare import MOVED, NOT_COMPARED, compare_points
from bbrlab.experiment.machine import host
from bbrlab.kernel.probe import QEMU
from bbrlab.kernel.specs import find_spec
from bbrlab.measure.checks.check import failed_of
from bbrlab.measure.summary import Summary
from bbrlab.results.figures import Run
from bbrlab.results.tables import run_rows
from bbrlab.run.run import run_point
from bbrlab.scenario.point import Point

VIRTUAL, REAL = "uml", ("host", "qemu")  # backends; the first available one of the second kind
OPEN_VSWITCH = Path("/sys/module/openvswitch")
Progress = Callable[[str, str], None]


@dataclass(frozen=True)
class Crosscheck:
    """The result of a cross-check."""

    scenario: str
    backend: str
    points: pd.DataFrame  # compare_points(): "a" is virtual time, "b" real time
    # One entry for each run in real time: point, seed, ok, the checks that failed, and summary.json's ``real_time``
    runs: list[dict[str, Any]]
    kernels: dict[str, str]  # {"virtual", "real"}: the kernels, in words

    @property
    def moved(self) -> bool:
        """Whether a metric differs."""
        return bool((self.points["outcome"] == MOVED).any())

    @property
    def compared(self) -> bool:
        """Whether any metric has a number in both."""
        return bool((self.points["outcome"] != NOT_COMPARED).any())

    @property
    def refused(self) -> list[dict[str, Any]]:
        """The runs in real time that failed a self-check and do not count."""
        return [run for run in self.runs if not run["ok"]]


def real_backend(points: Sequence[Point]) -> str:
    """The real-time backend of this machine. UserError if it has none, with what is missing for each."""
    lacks = _host_lacks({flow.cca for point in points for flow in point.scenario.flows})
    if not lacks:
        return "host"
    if shutil.which(QEMU):
        return "qemu"
    raise UserError(
        f"no backend in real time: qemu: {QEMU} is not installed (apt-get install qemu-system-x86, then "
        f"bbrlab kernel build lab-6.12-qemu); host: {lacks}"
    )


def _host_lacks(ccas: set[str]) -> str:
    """Why this machine cannot be the backend ``host``; empty if it can."""
    if os.geteuid() != 0:
        return "needs root"
    if not OPEN_VSWITCH.exists():
        return "its kernel has no Open vSwitch (modprobe openvswitch)"
    lacking = ccas - set(host.host_kernel().ccas)
    return f"its kernel has no {', '.join(sorted(lacking))} (modprobe tcp_...)" if lacking else ""


def check_options(seeds: int, metrics: Sequence[str], kernels: Mapping[str, str | None]) -> None:
    """UserError for too few seeds, and for unknown metrics and kernels, before anything runs.

    Args:
        kernels: {option: name}.
    """
    if seeds < 2:
        raise UserError(f"--seeds {seeds}: an interval needs at least 2 of each side")
    compare_points({}, {}, metrics)  # of nothing: checks the names
    for option, name in kernels.items():
        find_spec(name, f"{option} ")


def crosscheck(
    name: str,
    points: Sequence[Point],
    seeds: int,
    out: Path,
    *,
    backend: str,
    kernels: dict[str, str | None],
    metrics: Sequence[str],
    on_progress: Progress,
) -> Crosscheck:
    """Run every point with seeds 1 to ``seeds`` in virtual time and in real time, one after the other, and compare.

    UserError if a run fails, or if no run in real time passed its checks.

    Args:
        out: gets a folder for each run: ``uml`` or the backend, the point's label, ``seed-N``.
        kernels: {backend: entry of kernels.yaml; None: the default}.
        metrics: names of bbrlab/measure/metrics.py.
        on_progress: called with (verb, text); the verb "run" begins another run, or says that one was refused.
    """
    tables: dict[str, list[dict[str, Any]]] = {VIRTUAL: [], backend: []}
    runs, kernels_run = [], {}
    for point in points:
        for seed in range(1, seeds + 1):
            for side, rows in tables.items():
                folder = out / side / point.label / f"seed-{seed}"
                on_progress("run", f"{side}, {_words(point)}seed {seed}")
                summary = run_point(
                    point, seed, folder, kernel_name=kernels.get(side), backend=side, on_progress=on_progress
                )
                rows.extend(run_rows(Run(name, point, seed, folder)))
                kernels_run[side] = f"{summary['kernel']['name']} ({summary['kernel']['release']})"
                if side == backend:
                    runs.append(_entry(point, seed, summary))
                    if failed := runs[-1]["failed"]:
                        on_progress("run", f"  refused: failed {', '.join(failed)}")
    if not any(run["ok"] for run in runs):
        failed = sorted({check for run in runs for check in run["failed"]})
        raise UserError(
            f"{name}: every run in real time was refused, for it failed self-checks ({', '.join(failed)}): this machine was too slow "
            f"or too busy for it; take a lower rate (--set network.rate_mbit=2), or an idle machine with KVM. Results: {out}"
        )
    by_backend = [{name: pd.DataFrame(rows)} for rows in tables.values()]
    compared = compare_points(by_backend[0], by_backend[1], metrics)
    return Crosscheck(name, backend, compared, runs, {"virtual": kernels_run[VIRTUAL], "real": kernels_run[backend]})


def _words(point: Point) -> str:
    return "".join(f"{key.removeprefix('network.')}={value}, " for key, value in point.values.items())


def _entry(point: Point, seed: int, summary: Summary) -> dict[str, Any]:
    return {
        "point": point.label,
        "seed": seed,
        "ok": summary["ok"],
        "failed": [check["name"] for check in failed_of(summary["checks"])],
        "acceleration": summary["kernel"].get("acceleration", ""),
        "real_time": summary.get("real_time"),
    }
