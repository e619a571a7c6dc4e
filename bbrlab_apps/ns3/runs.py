"""Runs scenarios in ns-3, as a check by another engine; optional (`make ns3` installs it).

ns-3 has its own implementation of BBRv1, CUBIC and Reno, other timers, and no segmentation. What both engines show is no artefact
of either; where they differ, one of them is wrong, or a paper's result depends on its simulator. Which points ns-3 can run, and
what it leaves out of them, is in docs/explanation/crosschecks.md.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError, why_it_failed
from bbrlab.results.figures import Figure
from bbrlab.scenario.draws import draw_base_rtts
from bbrlab.scenario.frames import IP_VERSION, MTU_BYTES
from bbrlab.scenario.point import Point

PYTHON = paths.ROOT / ".venv-ns3" / "bin" / "python"
INSTALLED = paths.ROOT / ".venv-ns3" / "installed"  # written last (Makefile)
PROGRAM = paths.ROOT / "ns3" / "dumbbell.py"
PACKAGES = paths.ROOT / "envs" / "ns3.txt"
CCAS = ("bbr1", "cubic", "reno")
SOCKET_BYTES = 1 << 26  # of each socket's buffers in the program, which must hold all that can be in flight


def program_identity() -> str:
    """Hash of the program and of the version of ns-3 that it runs in."""
    return "".join(files.sha256(path)[:8] for path in (PROGRAM, PACKAGES))


def lacks(point: Point) -> str | None:
    """The first thing in a point that the ns-3 dumbbell cannot do; None if it can do all but what left_out() returns."""
    network, hosts = point.scenario.network, point.scenario.hosts
    for i, flow in enumerate(point.scenario.flows):
        if flow.cca not in CCAS:
            return f"flows.{i}.cca {flow.cca} (it has {', '.join(CCAS)})"
        for key in ("stop_s", "bytes", "traffic"):
            if getattr(flow, key) is not None:
                return f"flows.{i}.{key}"
        if flow.params or flow.direction != "forward":
            return f"flows.{i}.{'params' if flow.params else 'direction'}"
    if network.qdisc.kind != "fifo" or network.jitter or network.changes or hosts.ecn != "off":
        return "a qdisc other than fifo, jitter, changes or ECN"
    if network.mtu_bytes != MTU_BYTES:
        return f"network.mtu_bytes {network.mtu_bytes}"
    if network.ip_version != IP_VERSION:
        return f"network.ip_version {network.ip_version}"
    if network.loss and network.loss_place != "behind":
        return f"network.loss_place {network.loss_place}"
    for field in ("links", "policer", "reverse", "trace", "loss_burst_packets", "data_path"):
        if getattr(network, field) is not None:
            return f"network.{field}"
    if hosts.segmentation == "router":
        return "hosts.segmentation router (its packets enter the queue one by one)"
    if hosts.receive_offload != "off":
        return f"hosts.receive_offload {hosts.receive_offload} (its receivers take packets as they come)"
    if hosts.pacing != "internal":  # fq paces CUBIC and Reno, too, which ns-3 does not
        return f"hosts.pacing {hosts.pacing} (its BBRv1 paces within TCP, its CUBIC and Reno do not pace)"
    for key in ("rmem_max_bytes", "wmem_max_bytes", "rmem_initial_bytes", "wmem_initial_bytes"):
        if getattr(hosts, key) is not None:
            return f"hosts.{key} (its sockets all have {SOCKET_BYTES >> 20} MiB)"
    rtts = draw_base_rtts(point.scenario, 1)
    if any(len(set(row)) > 1 for row in rtts):
        return "flows of one group with different RTTs"
    if network.rate_mbit * 125 * max(max(row) for row in rtts) + network.buffer_bytes > SOCKET_BYTES:
        return f"BDP and buffer of more than {SOCKET_BYTES >> 20} MiB (its sockets hold no more)"
    return None


def left_out(point: Point) -> str:
    """What ns-3 leaves out of a point that it can run; empty for nothing. Its hosts never take time (hosts.noise)."""
    segmentation = point.scenario.hosts.segmentation
    return "" if segmentation == "off" else f"hosts.segmentation {segmentation}: it sends single packets"


def description(figure: str, point: Point, seed: int) -> dict[str, Any]:
    """A run's description for ns3/dumbbell.py."""
    scenario, network = point.scenario, point.scenario.network
    rtts = draw_base_rtts(scenario, seed)
    without = left_out(point)
    return {
        "label": f"{figure} {point.label} seed {seed}" + (f" (without {without})" if without else ""),
        "rate_mbit": network.rate_mbit,
        "buffer_bytes": network.buffer_bytes,
        "loss": network.loss,
        "seed": seed,
        "duration_s": scenario.duration_s,
        "window_s": list(scenario.window_s),
        "flows": [
            {"cca": f.cca, "count": f.count, "rtt_ms": rtts[g][0], "start_s": f.start_s}
            for g, f in enumerate(scenario.flows)
        ],
    }


def able(figures: list[Figure]) -> Iterator[tuple[Figure, Point]]:
    """The points of figures that ns-3 can run."""
    for figure in figures:
        for point in figure.points:
            if lacks(point) is None:
                yield figure, point


def run(figures: list[Figure], seeds: int) -> pd.DataFrame:
    """Simulate every point that ns-3 can run. UserError if ns-3 is not installed, no point can be done, or it fails.

    Args:
        seeds: how many per point; they set when flows start, within milliseconds, and what is lost.

    Returns:
        A row per point, seed and group: ``figure``, ``point``, ``seed``, the point's values, ``group``, ``cca``,
        ``goodput_mbit``, ``share_of_capacity``, ``wall_s``, ``left_out`` (left_out()), ``program`` (program_identity()).
    """
    if not INSTALLED.exists():
        raise UserError("ns-3 is not installed; it is optional: make ns3")
    chosen = [(f, p, s) for f, p in able(figures) for s in range(1, seeds + 1)]
    if not chosen:
        reasons = {lacks(p) for f in figures for p in f.points}
        raise UserError(f"ns-3 can do none of these points: {'; '.join(sorted(r for r in reasons if r))}")
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder) / "points.json", Path(folder) / "results.json"
        request.write_text(json.dumps([description(f.id, p, s) for f, p, s in chosen]), encoding="utf-8")
        # cling, on which ns-3's Python interface is built, always prints warnings on standard error.
        done = subprocess.run(
            [PYTHON, PROGRAM, request, answer], stderr=subprocess.PIPE, text=True, check=False, cwd=folder
        )
        if done.returncode or not answer.exists():
            raise UserError(f"ns-3 made no results: {why_it_failed(done.stderr, done.returncode)}")
        results = json.loads(answer.read_text(encoding="utf-8"))
    rows = []
    for (figure, point, seed), result in zip(chosen, results, strict=True):
        for group, goodput in enumerate(result["goodput_mbit"]):
            rows.append(
                {
                    "figure": figure.id,
                    "point": point.label,
                    "seed": seed,
                    **point.values,
                    "group": group,
                    "cca": point.scenario.flows[group].cca,
                    "goodput_mbit": goodput,
                    "share_of_capacity": goodput / point.scenario.network.rate_mbit,
                    "wall_s": result["wall_s"],
                    "left_out": left_out(point),
                    "program": program_identity(),
                }
            )
    return pd.DataFrame(rows)
