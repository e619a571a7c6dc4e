"""One run: plan, guest, decode, measure, check, and the result folder that is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.experiment import iperf3_library
from bbrlab.experiment.machine import host, process, qemu, uml
from bbrlab.experiment.plan import Plan, make_plan
from bbrlab.experiment.plan_types import GuestPlan, ShortFlowsPlan
from bbrlab.kernel.built import Kernel, describe_kernel, get_kernel
from bbrlab.kernel.specs import load_specs
from bbrlab.measure.checks.check import failed_of
from bbrlab.measure.checks.suite import run_checks
from bbrlab.measure.flow_counters import flow_counters
from bbrlab.measure.metrics import summarise
from bbrlab.measure.tables import acks_table, samples_table, short_flows_table
from bbrlab.measure.traces import decode
from bbrlab.run.manifest import manifest_of
from bbrlab.run.memory import flight_bytes, workload_bytes
from bbrlab.scenario.point import Point

RESULTS = ("summary.json", "samples.parquet", "acks.parquet", "short_flows.parquet", "manifest.json", "guest.log")
BACKENDS = {"uml": "um", "qemu": "x86_64", "host": None}  # and the architecture of their kernels
Progress = Callable[[str, str], None]


def prepare_out(out: Path) -> None:
    """Make sure that results can be written to ``out``. UserError if not."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except FileExistsError:
        raise UserError(f"--out {out}: is a file; give a folder") from None
    except OSError as error:
        raise files.explain(error, out) from None


def run_point(
    point: Point,
    seed: int,
    out: Path,
    *,
    kernel_name: str | None = None,
    backend: str = "uml",
    watchdog_s: float = process.WATCHDOG_S,
    die_with_parent: bool = False,
    trace_acks: bool = False,
    on_progress: Progress = lambda verb, text: None,
    tamper: Callable[[GuestPlan], None] | None = None,
) -> dict[str, Any]:
    """Run one point once.

    Args:
        point: what to run.
        seed: of the drawn RTTs and the guest's entropy.
        out: result folder; gets summary.json, samples.parquet, manifest.json and guest.log, the first one last.
        kernel_name: entry of kernels.yaml; default: the file's default.
        backend: "uml" (virtual time), "qemu" (a virtual machine in real time) or "host" (this machine's kernel, as root,
            in real time).
        watchdog_s: real seconds without a sign of life after which the guest is ended.
        die_with_parent: end the run when the process that started it dies.
        trace_acks: also write acks.parquet, one row per ACK of each flow whose CCA can tell (bbr2, bbr3).
        on_progress: called with (verb, text) as the run goes on.
        tamper: changes the guest's plan, so that tests can show that the checks notice.

    Returns:
        The content of summary.json.

    Raises:
        UserError: with what went wrong and where to read more.
    """
    if seed < 0:
        raise UserError(f"--seed {seed}: must be 0 or more")
    start = time.monotonic()
    prepare_out(out)
    for name in RESULTS:  # a whole old result must not stand beside half a new one
        (out / name).unlink(missing_ok=True)
    marks = {}
    virtual, own_machine = backend == "uml", backend != "host"
    the_kernel = _kernel(kernel_name, backend)
    library = iperf3_library.library_folder()
    preload = f"{'/run/lib' if own_machine else library}/{iperf3_library.LIBRARY}" if virtual else None
    if not own_machine and point.scenario.hosts.pacing == "fq":
        raise UserError(
            f"{point.scenario.name}: hosts.pacing: fq is not possible with --backend host (see LIMITATIONS.md); use internal"
        )
    traceable = _traceable(point, the_kernel) if trace_acks else []
    plan = make_plan(point, seed, the_kernel.ccas, virtual=virtual, own_machine=own_machine, preload=preload,
                     traceable=traceable)  # fmt: skip
    _check_parameters(point, plan, the_kernel)
    if tamper:
        tamper(plan.content)
    with tempfile.TemporaryDirectory(prefix="bbrlab-", dir=process.scratch_parent()) as name:
        scratch = Path(name)
        folder = scratch / "out"
        folder.mkdir()
        try:
            files.write_json(folder / "plan.json", plan.content)
            for entry in plan.content["short_flows"]:
                from bbrlab.workload.chunks import write_chunks

                write_chunks(plan.workloads[entry["group"]], folder / entry["workload"])
            log = out / "guest.log"
            try:
                if own_machine:
                    (scratch / "guest").symlink_to(paths.GUEST_CODE)
                    (scratch / "lib").symlink_to(library)
                    job = process.Job(
                        scratch=scratch, seed=seed, memory_bytes=process.memory_bytes(flight_bytes(point), workload_bytes(plan)),
                        arguments=plan.kernel_arguments, log=log, watchdog_s=watchdog_s, on_progress=on_progress,
                        die_with_parent=die_with_parent,
                    )  # fmt: skip
                    process.run(job, (uml if virtual else qemu).command(the_kernel, job))
                else:
                    host.run(folder=folder, log=log, on_progress=on_progress)
            except process.GuestFailed as error:
                _keep_console(folder, log)
                raise UserError(f"{point.scenario.name}: {error}{_last_words(log)}") from None
            except BaseException:  # interrupted: the log of half a run says nothing
                log.unlink(missing_ok=True)
                raise
            marks["guest"] = time.monotonic() - start
            _keep_console(folder, log)
            summary, tables = _evaluate(point, seed, backend, plan, the_kernel, folder)
            marks["evaluate"] = time.monotonic() - start - marks["guest"]
            _write(out, summary, tables, manifest_of(point, seed, backend, plan, the_kernel, folder), marks, start)
            return summary
        except OSError as error:
            for result in RESULTS:
                with contextlib.suppress(OSError):
                    (out / result).unlink(missing_ok=True)
            raise files.explain(error, out) from None


def _kernel(name: str | None, backend: str) -> Kernel:
    """The kernel for a backend. UserError for one of another architecture, naming those that fit."""
    arch = BACKENDS[backend]
    if arch is None:
        return host.host_kernel()
    specs = load_specs()
    fitting = [n for n, spec in specs.kernels.items() if spec.arch == arch]
    name = name or (specs.default if specs.default in fitting else next(iter(fitting), specs.default))
    if name in specs.kernels and name not in fitting:
        raise UserError(
            f"--backend {backend}: kernel {name} is not for it; those that are: {', '.join(fitting) or 'none'}"
        )
    return get_kernel(name)


def _traceable(point: Point, the_kernel: Kernel) -> list[str]:
    """The kernel's names of the CCAs that can record their ACKs. UserError if no flow has one."""
    able = [name for name, parameters in the_kernel.parameters.items() if "trace_acks" in parameters]
    if not {the_kernel.ccas.get(f.cca) for f in point.scenario.flows} & set(able):
        fields = sorted(field for field, name in the_kernel.ccas.items() if name in able)
        raise UserError(
            f"--trace-acks: no flow of {point.scenario.name} has a CCA that can record its ACKs "
            f"(kernel {the_kernel.name} can for {', '.join(fields) or 'none'})"
        )
    return able


def _check_parameters(point: Point, plan: Plan, the_kernel: Kernel) -> None:
    for flow in point.scenario.flows:
        module = the_kernel.ccas[flow.cca]
        known = the_kernel.parameters.get(module, [])
        for name in flow.params:
            if name not in known:
                raise UserError(
                    f"{point.scenario.name}: params: {flow.cca} has no parameter '{name}' in kernel {the_kernel.name} "
                    f"(it has: {', '.join(known) or 'none'})"
                )


def _keep_console(folder: Path, log: Path) -> None:
    """Append what the guest's programs printed to the log."""
    console = folder / "console.log"
    if console.exists() and console.stat().st_size:
        with open(log, "a", encoding="utf-8") as file:
            file.write(console.read_text(encoding="utf-8", errors="replace"))


def _last_words(log: Path) -> str:
    lines = (
        [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        if log.exists()
        else []
    )
    return "".join(f"\n  | {line}" for line in lines[-4:])


def _evaluate(
    point: Point, seed: int, backend: str, plan: Plan, the_kernel: Kernel, folder: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    import json

    scenario = point.scenario
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    flows, queues = decode(folder / "samples.raw", plan)
    summary: dict[str, Any] = {
        "scenario": scenario.name,
        "paper": scenario.paper,
        "figure": scenario.figure,
        "values": point.values,
        "seed": seed,
        "backend": backend,
        "virtual_s": scenario.duration_s,
        "window_s": list(scenario.window_s),
        "wall_s": None,
        "kernel": describe_kernel(the_kernel),
    }
    counters = flow_counters(flows, len(plan.flows))
    short = {e["group"]: _short_flows(e, point, plan, folder) for e in plan.content["short_flows"]}
    summary |= summarise(scenario, plan, counters, queues, short)
    summary["checks"] = run_checks(scenario, plan, report, counters, queues, short, flows)
    tables = {"samples.parquet": samples_table(plan, flows, queues)}
    if short:
        tables["short_flows.parquet"] = short_flows_table(short)
    if flows.acks is not None:
        tables["acks.parquet"] = acks_table(flows, report["start_ns"])
    summary["ok"] = not failed_of(summary["checks"])
    return summary, tables


def _short_flows(entry: ShortFlowsPlan, point: Point, plan: Plan, folder: Path) -> Any:
    """What became of a group's short flows."""
    from bbrlab.measure.short_flows import ShortFlows, bytes_between, chunk_outcomes

    group = entry["group"]
    sent = [folder / f"short-{group}-send-{i}.log" for i in range(len(entry["clients"]))]
    received = [folder / f"short-{group}-receive-0.log"]
    rate_mbit = point.scenario.network.rate_mbit
    table = chunk_outcomes(plan.workloads[group], sent, received, rate_mbit, entry["rtt_ms"])
    read_bytes = bytes_between(folder / f"short-{group}-read.log", *point.scenario.window_s)
    return ShortFlows(point.scenario, entry["rtt_ms"], table, read_bytes)


def _write(
    out: Path,
    summary: dict[str, Any],
    tables: dict[str, Any],
    manifest: dict[str, Any],
    marks: dict[str, float],
    start: float,
) -> None:
    import pyarrow.parquet as pq

    for name, table in tables.items():
        with files.aside(out / name) as temporary:
            pq.write_table(table, temporary, compression="zstd")
    manifest["outputs_sha256"] = {name: files.sha256(out / name) for name in tables}
    wall_s = time.monotonic() - start
    summary["wall_s"] = round(wall_s, 2)
    manifest["wall"] = {
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **{f"{k}_s": round(v, 2) for k, v in marks.items()},
        "total_s": round(wall_s, 2),
    }
    files.write_json(out / "manifest.json", manifest)
    files.write_json(out / "summary.json", summary)  # last: its presence says that the result is whole


def remove(out: Path) -> None:
    """Delete the results in ``out``."""
    shutil.rmtree(out, ignore_errors=True)
