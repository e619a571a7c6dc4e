"""`make bench`: speed, set-up time and memory against the targets, and where the time goes. Writes results/bench.json.

Wall-clock figures are only worth something on an otherwise idle machine; ratios within one run hold better.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from bbrlab.base import files, paths
from bbrlab.campaign.resources import guest_mb
from bbrlab.claims.statement_verdict import verdict_tables
from bbrlab.results.config import FULL
from bbrlab.results.run_estimate import estimate_s
from bbrlab.results.shipped import read_manifest
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point, load_scenario
from bbrlab.scenario.point import Point

FIGURE = paths.SCENARIOS / "sarpkaya2025" / "fig2a.yaml"
LARGEST = (
    paths.SCENARIOS / "bless2025" / "fig8.yaml"
)  # has the guest that needs most memory, at 10 Gbit/s, 50 ms and 8 BDP
CORNERS = [(n, x) for n in (1, 8, 32) for x in (1, 8, 64)]
FULL_RUNS_PER_COUNT = 2 * 7 * 3  # panels x buffers x seeds, for each number of BBR flows
COUNTS = (1, 2, 4, 8, 16, 32)


@dataclass
class Timed:
    """One run, taken apart."""

    point: Point
    stages: dict[str, float] = field(default_factory=dict)
    total_s: float = 0.0
    peak_mib: float = 0.0
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def experiment_s(self) -> float:
        return self.stages.get("experiment", 0.0)


def _memory_mib(stop: threading.Event, peak: list[float]) -> None:
    """Watch the proportional memory of this process's descendants."""
    while not stop.wait(0.5):
        total = 0
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and b"time-travel=inf-cpu" in (entry / "cmdline").read_bytes():
                    rollup = (entry / "smaps_rollup").read_text()
                    total += int(rollup.split("Pss:")[1].split()[0])
            except (OSError, IndexError):
                continue
        peak[0] = max(peak[0], total / 1024)


def timed(figure: Path = FIGURE, **overrides: Any) -> Timed:
    """Run one point, of Fig. 2a if no other scenario is given, on one core and take its time apart."""
    point = base_point(load_scenario(figure, {k.replace("__", "."): v for k, v in overrides.items()}))
    result = Timed(point)
    start = last = time.monotonic()
    current = "host: plan and boot"

    def on_progress(verb: str, text: str) -> None:
        nonlocal last, current
        now = time.monotonic()
        names = {"stage": f"guest: {text}", "start": "experiment", "done": "guest: power off"}
        if verb in names:
            result.stages[current] = result.stages.get(current, 0.0) + now - last
            current, last = names[verb], now

    stop, peak = threading.Event(), [0.0]
    watcher = threading.Thread(target=_memory_mib, args=(stop, peak))
    watcher.start()
    with tempfile.TemporaryDirectory() as folder:
        result.summary = run_point(point, 1, Path(folder), on_progress=on_progress)
        wall = json.loads((Path(folder) / "manifest.json").read_text())["wall"]
    stop.set()
    watcher.join()
    result.total_s = time.monotonic() - start
    result.stages[current] = wall["guest_s"] - (last - start)
    result.stages["host: decode and check"] = wall["evaluate_s"]
    result.stages["host: write"] = result.total_s - wall["guest_s"] - wall["evaluate_s"]
    result.peak_mib = peak[0]
    return result


def main() -> int:
    """Run all benchmarks. Returns 1 if a target is missed."""
    console = Console(width=110)
    rows: list[dict[str, Any]] = []

    def target(name: str, value: float, unit: str, limit: float, at_least: bool) -> None:
        ok = value >= limit if at_least else value <= limit
        rows.append(
            {"name": name, "value": round(value, 2), "unit": unit, "target": limit, "at_least": at_least, "ok": ok}
        )

    console.print("1 BBRv1 v 1 CUBIC, 10 Mbit/s, 40 ms, 1 BDP, 1000 s, Mininet, Open vSwitch, iperf3, 10 Hz ...")
    main_run = timed()
    unsampled = timed(sample_hz=0.01)
    sampling_s = main_run.experiment_s - unsampled.experiment_s
    target("speed, whole run on one core", 1000 / main_run.total_s, "x real time", 100, True)
    many_hosts = timed(flows__0__count=15, network__rtt_ms=[30, 40], duration_s=20, window_s=[5, 20])
    for run, hosts, limit in ((main_run, 2, 1.5), (many_hosts, 17, 2.5)):
        target(f"set-up and tear-down, {hosts} hosts", run.total_s - run.experiment_s, "s", limit, False)
    parts = Table(title="where the time of that run goes", title_justify="left", box=None, pad_edge=False)
    for name in ("part", "s", "share"):
        parts.add_column(name, justify="left" if name == "part" else "right")
    split = {k: v for k, v in main_run.stages.items() if k != "experiment"}
    split["experiment: sampling at 10 Hz"] = sampling_s
    split["experiment: TCP, queues, switches, iperf3"] = main_run.experiment_s - sampling_s
    for name, seconds in split.items():
        parts.add_row(name, f"{seconds:.2f}", f"{seconds / main_run.total_s:.0%}")
    console.print(parts)

    console.print("BBRv2 and BBRv3 in place of BBRv1, 8 BDP, the faster of two runs each ...")
    version_s = {
        cca: min(timed(flows__0__cca=cca, network__buffer__bdp=8).total_s for _ in range(2))
        for cca in ("bbr1", "bbr2", "bbr3")
    }
    for cca, name in (("bbr2", "BBRv2"), ("bbr3", "BBRv3")):
        target(f"{name}, time over BBRv1's", version_s[cca] / version_s["bbr1"], "", 1.1, False)

    console.print("corners of Fig. 2a, 1000 s each, one after the other ...")
    corners = {}
    for n, x in CORNERS:
        run = timed(flows__0__count=n, network__buffer__bdp=x)
        corners[n, x] = run
        console.print(
            f"  {n:2} BBRv1, {x:2} BDP: {run.total_s:5.1f} s, {run.peak_mib:4.0f} MiB, estimate was {estimate_s(run.point):.1f} s"
        )
    target("memory of the largest guest of these", max(r.peak_mib for r in corners.values()), "MiB", 1536, False)
    mean = {n: sum(corners[n, x].total_s for x in (1, 8, 64)) / 3 for n in (1, 8, 32)}
    slope = (mean[32] - mean[1]) / 31
    minutes = sum(FULL_RUNS_PER_COUNT * (mean[1] + slope * (n - 1)) for n in COUNTS) / 60 / 2
    target("Fig. 2a and 2c at full on 2 cores, from the corners", minutes, "min", 35, False)

    console.print("the guest that needs most memory: 2 BBRv3, 10 Gbit/s, 50 ms, 8 BDP, 10 s ...")
    largest = timed(
        LARGEST, network__rate_mbit=10000, network__rtt_ms=50, network__buffer__bdp=8, duration_s=10, window_s=[5, 10]
    )
    target("memory of the largest guest of all, over what the dry run plans for it", largest.peak_mib * 2**20 / 1e6 / guest_mb(largest.point), "", 1, False)  # fmt: skip
    console.print(f"  {largest.peak_mib:.0f} MiB of {guest_mb(largest.point)} MB planned, {largest.total_s:.1f} s")

    console.print("fluid model: the published run, 9 s of 5 + 5 BBRv1 flows at .01 ms, and 33 flows ...")
    model = _fluid()
    target("fluid model: the published run, times faster", PUBLISHED_FLUID_S / model["published_run_s"], "x", 300, True)
    target("fluid model: 1000 s of 33 flows, from 20 s", model["33_flows_s"] / 60, "min", 3, False)
    target("fluid model: memory of its process", model["process_mib"], "MiB", 150, False)
    console.print(
        f"  of the {model['process_mib']:.0f} MiB, {model['libraries_mib']:.0f} are Python and its libraries; "
        f"9 s took {model['published_run_s']:.2f} s; {model['ns']:.0f} ns per step and flow"
    )

    console.print("burst model: 1000 s of one BBRv3 and one CUBIC flow at 10 Mbit/s, 40 ms ...")
    burst_ms = _burst_ms()
    target("burst model: 1000 s of two flows", burst_ms, "ms", 60, False)

    console.print("judging all claims by what ships at full ...")
    target("all verdicts by what ships at full", _judging_s(), "s", 60, False)

    table = Table(box=None, pad_edge=False)
    for name in ("benchmark", "measured", "target", ""):
        table.add_column(name, justify="left" if name in ("benchmark", "") else "right")
    for row in rows:
        sign = ">=" if row["at_least"] else "<="
        table.add_row(
            row["name"],
            f"{row['value']:.{2 if row['value'] < 10 else 1}f} {row['unit']}",
            f"{sign} {row['target']:g}",
            "ok" if row["ok"] else "MISSED",
        )
    console.print(table)
    content = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {_processor()}",
        "targets": rows,
        "fluid": model,
        "parts_s": {k: round(v, 2) for k, v in split.items()},
        "corners": [
            {"bbr_flows": n, "buffer_bdp": x, "total_s": round(r.total_s, 1), "peak_mib": round(r.peak_mib)}
            for (n, x), r in corners.items()
        ],
    }
    files.write_json(paths.results_folder() / "bench.json", content)
    return 0 if all(r["ok"] for r in rows) else 1


def _judging_s() -> float:
    """Processor time of every verdict of the runs that ship; the models' predictions are those of the results folder, or none."""
    scale = paths.ROOT / "shipped" / FULL
    tables = {id: pd.read_parquet(scale / f"{id}.parquet") for id in read_manifest(scale.parent, FULL).figures}
    start = time.process_time()
    verdict_tables(tables, FULL)
    return time.process_time() - start


# What the authors' public code takes for it on this class of machine (and 3.07 GB of memory).
PUBLISHED_FLUID_S = 139.0
FLUID_PROGRAM = """
import json, time
from bbrlab.models import fluid
def memory():  # getrusage would tell of the process that started this one, too
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
libraries = memory()
ten = dict(cca=["bbr1"] * 10, rate_mbit=100, link_delay_ms=10,
           access_delay_ms=[5.7, 9.2, 8.8, 6.3, 7.5, 7.2, 8.3, 8.9, 5.5, 5.1], buffer_packets=83)
fluid.simulate(duration_s=0.01, **ten)  # compiles, or loads what is compiled
def timed(**arguments):
    start = time.perf_counter()
    fluid.simulate(**arguments)
    return time.perf_counter() - start
ours = min(timed(duration_s=9, **ten) for _ in range(5))
many = timed(cca=["bbr1"] * 32 + ["cubic"], rate_mbit=10, link_delay_ms=10, access_delay_ms=[10] * 33,
             buffer_packets=132, duration_s=20)
print(json.dumps({"published_run_s": ours, "33_flows_s": many * 50, "ns": ours / 9e6 * 1e9, "libraries_mib": libraries,
                  "process_mib": memory()}))
"""


def _fluid() -> dict[str, float]:
    """Time and memory of the fluid model, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", FLUID_PROGRAM], check=True, capture_output=True, text=True)
    return {k: round(v, 3) for k, v in json.loads(done.stdout).items()}


def _burst_ms() -> float:
    """Processor time of 1000 s of two flows: the best of five runs, at the slowest of three buffers."""
    from bbrlab.models import burst

    def timed_ms(buffer_bdp: float) -> float:
        start = time.process_time()
        burst.simulate({"bbr3": 1, "cubic": 1}, 10, 40, buffer_bdp=buffer_bdp)
        return (time.process_time() - start) * 1e3

    timed_ms(1)  # compiles, or loads what is compiled
    return max(min(timed_ms(buffer_bdp) for _ in range(5)) for buffer_bdp in (1, 8, 32))


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


if __name__ == "__main__":
    sys.exit(main())
