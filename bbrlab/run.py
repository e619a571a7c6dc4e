"""One run: plan, guest, decode, measure, check, and the result folder that is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bbrlab import checks, files, guest_tools, kernel, metrics, paths, traces
from bbrlab.errors import UserError
from bbrlab.guest import host, machine, qemu, uml
from bbrlab.plan import Plan, make_plan
from bbrlab.scenario import GRID, Point

RESULTS = ("summary.json", "samples.parquet", "acks.parquet", "short_flows.parquet", "manifest.json", "guest.log")
WORKLOAD_BYTES = 100  # of a process for each row of its workload, with room to spare
FQ_FLOW_BYTES = 192  # struct fq_flow, with room to spare
GUEST_PACKAGES = ("iperf3", "mininet", "openvswitch-switch", "python3-pyroute2", "iproute2", "python3")
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
    watchdog_s: float = machine.WATCHDOG_S,
    die_with_parent: bool = False,
    trace_acks: bool = False,
    on_progress: Progress = lambda verb, text: None,
    tamper: Callable[[dict[str, Any]], None] | None = None,
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
    library = guest_tools.library_folder()
    preload = f"{'/run/lib' if own_machine else library}/{guest_tools.LIBRARY}" if virtual else None
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
    with tempfile.TemporaryDirectory(prefix="bbrlab-", dir=machine.scratch_parent()) as name:
        scratch = Path(name)
        folder = scratch / "out"
        folder.mkdir()
        try:
            files.write_json(folder / "plan.json", plan.content)
            for entry in plan.content["short_flows"]:
                from bbrlab import short_flows

                short_flows.write(plan.workloads[entry["group"]], folder / entry["workload"])
            log = out / "guest.log"
            try:
                if own_machine:
                    (scratch / "guest").symlink_to(paths.GUEST_CODE)
                    (scratch / "lib").symlink_to(library)
                    job = machine.Job(
                        scratch=scratch, seed=seed, memory_bytes=machine.memory_bytes(_flight_bytes(point), _workload_bytes(plan)),
                        arguments=plan.kernel_arguments, log=log, watchdog_s=watchdog_s, on_progress=on_progress,
                        die_with_parent=die_with_parent,
                    )  # fmt: skip
                    machine.run(job, (uml if virtual else qemu).command(the_kernel, job))
                else:
                    host.run(folder=folder, log=log, on_progress=on_progress)
            except machine.GuestFailed as error:
                _keep_console(folder, log)
                raise UserError(f"{point.scenario.name}: {error}{_last_words(log)}") from None
            except BaseException:  # interrupted: the log of half a run says nothing
                log.unlink(missing_ok=True)
                raise
            marks["guest"] = time.monotonic() - start
            _keep_console(folder, log)
            summary, tables = _evaluate(point, seed, backend, plan, the_kernel, folder)
            marks["evaluate"] = time.monotonic() - start - marks["guest"]
            _write(out, summary, tables, _manifest(point, seed, backend, plan, the_kernel, folder), marks, start)
            return summary
        except OSError as error:
            for result in RESULTS:
                with contextlib.suppress(OSError):
                    (out / result).unlink(missing_ok=True)
            raise files.explain(error, out) from None


def _kernel(name: str | None, backend: str) -> kernel.Kernel:
    """The kernel for a backend. UserError for one of another architecture, naming those that fit."""
    arch = BACKENDS[backend]
    if arch is None:
        return host.host_kernel()
    specs = kernel.load_specs()
    fitting = [n for n, spec in specs.kernels.items() if spec.arch == arch]
    name = name or (specs.default if specs.default in fitting else next(iter(fitting), specs.default))
    if name in specs.kernels and name not in fitting:
        raise UserError(
            f"--backend {backend}: kernel {name} is not for it; those that are: {', '.join(fitting) or 'none'}"
        )
    return kernel.get(name)


def _traceable(point: Point, the_kernel: kernel.Kernel) -> list[str]:
    """The kernel's names of the CCAs that can record their ACKs. UserError if no flow has one."""
    able = [name for name, parameters in the_kernel.parameters.items() if "trace_acks" in parameters]
    if not {the_kernel.ccas.get(f.cca) for f in point.scenario.flows} & set(able):
        fields = sorted(field for field, name in the_kernel.ccas.items() if name in able)
        raise UserError(
            f"--trace-acks: no flow of {point.scenario.name} has a CCA that can record its ACKs "
            f"(kernel {the_kernel.name} can for {', '.join(fields) or 'none'})"
        )
    return able


def _flight_bytes(point: Point) -> float:
    network = point.scenario.network
    rtts = [network.mean_rtt_ms] + [
        max(f.rtt_ms) if isinstance(f.rtt_ms, list) else f.rtt_ms or 0 for f in point.scenario.flows
    ]
    rates = [network.rate_mbit] + [c.rate_mbit or 0 for c in network.changes]
    rtts += [c.rtt_ms or 0 for c in network.changes]
    flows = sum(f.count for f in point.scenario.flows)
    return max(rates) * 1e6 / 8 * max(rtts) * 1e-3 + network.buffer_bytes + (16 << 20) + flows * (1 << 18)


def _workload_bytes(plan: Plan) -> float:
    """What the guest's processes of short flows hold: each has the whole workload (mininet/short_flows.py). And what fq
    remembers of each connection at its two ends."""
    return sum(
        len(plan.workloads[entry["group"]]) * (WORKLOAD_BYTES * (1 + len(entry["clients"])) + 2 * FQ_FLOW_BYTES)
        for entry in plan.content["short_flows"]
    )


def _check_parameters(point: Point, plan: Plan, the_kernel: kernel.Kernel) -> None:
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
    point: Point, seed: int, backend: str, plan: Plan, the_kernel: kernel.Kernel, folder: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    import json

    scenario = point.scenario
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    flows, queues = traces.decode(folder / "samples.raw", plan)
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
        "kernel": kernel.describe(the_kernel),
    }
    counters = metrics.flow_counters(flows, len(plan.flows))
    short = {e["group"]: _short_flows(e, point, plan, folder) for e in plan.content["short_flows"]}
    summary |= metrics.summarise(scenario, plan, counters, queues, short)
    summary["checks"] = checks.run_checks(scenario, plan, report, counters, queues, short)
    tables = {"samples.parquet": samples_table(plan, flows, queues)}
    if short:
        tables["short_flows.parquet"] = short_flows_table(short)
    if flows.acks is not None:
        summary["checks"].append(checks.acks_traced(flows))
        tables["acks.parquet"] = acks_table(flows, report["start_ns"])
    summary["ok"] = all(c["ok"] for c in summary["checks"])
    return summary, tables


def _short_flows(entry: dict[str, Any], point: Point, plan: Plan, folder: Path) -> Any:
    """What became of a group's short flows."""
    from bbrlab import short_flows

    group = entry["group"]
    sent = [folder / f"short-{group}-send-{i}.log" for i in range(len(entry["clients"]))]
    received = [folder / f"short-{group}-receive-0.log"]
    rate_mbit = point.scenario.network.rate_mbit
    return short_flows.outcome(plan.workloads[group], sent, received, rate_mbit, entry["rtt_ms"])


def short_flows_table(short: dict[int, Any]) -> Any:
    """The Arrow table of short_flows.parquet (docs/results.md describes the columns)."""
    import pyarrow as pa

    parts = [pa.Table.from_pandas(table.assign(group=group), preserve_index=False) for group, table in short.items()]
    return pa.concat_tables(parts)


def acks_table(flows: traces.Flows, start_ns: int) -> Any:
    """The Arrow table of acks.parquet (docs/results.md describes the columns)."""
    import pyarrow as pa

    assert flows.acks is not None
    columns = dict(flows.acks)
    return pa.table({"time_s": (columns.pop("time_ns") - start_ns) / 1e9, **columns})


def samples_table(plan: Plan, flows: traces.Flows, queues: dict[str, traces.Queue]) -> Any:
    """The Arrow table of samples.parquet: one row per instant and flow (docs/results.md describes the columns).

    An instant without any flow has one row with ``flow`` = -1, so that the bottleneck is always there.
    """
    import pyarrow as pa

    group_of = np.array([f.group for f in plan.flows] + [-1], dtype="i2")
    transfers = plan.content["transfers"]
    device = [
        next(b for b in plan.content["bottlenecks"] if _crosses(b, transfers[f.transfer], plan)) for f in plan.flows
    ]
    direction_of = [b["direction"] for b in device]
    main = queues[plan.content["bottlenecks"][0]["direction"]].columns
    silent = ~np.isin(main["time_s"], flows.columns["time_s"])
    count = int(silent.sum())
    columns: dict[str, Any] = {}
    for name, values in flows.columns.items():
        if name == "time_s":
            filler: Any = main["time_s"][silent]
        elif name == "flow":
            filler = np.full(count, -1, values.dtype)
        else:
            filler = np.full(count, np.nan) if values.dtype.kind == "f" else np.zeros(count, values.dtype)
        columns[name] = np.concatenate([values, filler])
    order = np.lexsort((columns["flow"], columns["time_s"]))
    columns = {k: v[order] for k, v in columns.items()}
    columns["group"] = group_of[columns["flow"]]
    for name in ("bytes", "packets", "sent_bytes", "sent_packets", "drops", "marks"):
        values = _at(main, name, columns["time_s"])
        for direction, queue in queues.items():
            if queue.columns is not main:
                mine = np.array([f >= 0 and direction_of[f] == direction for f in columns["flow"]], dtype=bool)
                values[mine] = _at(queue.columns, name, columns["time_s"][mine])
        columns[f"queue_{name}"] = values
    first = ["time_s", "flow", "group"]
    return pa.table({k: columns[k] for k in first + [k for k in columns if k not in first]})


def _crosses(link: dict[str, Any], transfer: dict[str, Any], plan: Plan) -> bool:
    client = next(h for h in plan.content["hosts"] if h["name"] == transfer["client"])
    return bool((link["direction"] == "forward") == (client["switch"] == "s1"))


def _at(columns: dict[str, Any], name: str, times_s: Any) -> Any:
    index = np.clip(np.searchsorted(columns["time_s"], times_s), 0, len(columns["time_s"]) - 1)
    return columns[name][index].copy()


def _manifest(
    point: Point, seed: int, backend: str, plan: Plan, the_kernel: kernel.Kernel, folder: Path
) -> dict[str, Any]:
    import hashlib
    import json

    guest = {p.name: files.sha256(p) for p in sorted(paths.GUEST_CODE.iterdir()) if p.is_file()}
    scenario = point.scenario.model_dump(exclude=GRID)
    return {
        "scenario": scenario,
        "values": point.values,
        "fingerprint": point.fingerprint,
        "seed": seed,
        "backend": backend,
        "kernel": kernel.describe(the_kernel),
        "plan_sha256": hashlib.sha256(json.dumps(plan.content, sort_keys=True).encode()).hexdigest(),
        "guest_code_sha256": guest,
        "source": _git_state(),
        "packages": _package_versions(),
        "report": json.loads((folder / "report.json").read_text(encoding="utf-8")),
        "iperf3": {str(t["id"]): _iperf3_totals(folder / f"client-{t['id']}.json") for t in plan.content["transfers"]},
    }


def _iperf3_totals(report: Path) -> dict[str, Any] | None:
    """What iperf3 itself counted; None for a transfer that the end of the run cut off before it could report."""
    import json

    try:
        end = json.loads(report.read_text(encoding="utf-8"))["end"]
        return {
            "sent_bytes": end["sum_sent"]["bytes"],
            "received_bytes": end["sum_received"]["bytes"],
            "retransmits": end["sum_sent"].get("retransmits"),
            "seconds": end["sum_sent"]["seconds"],
        }
    except (OSError, ValueError, KeyError):
        return None


def _git_state() -> dict[str, Any]:
    def git(*argv: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(paths.ROOT), *argv], capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "modified": bool(status) if status is not None else None}


def _package_versions() -> dict[str, str]:
    argv = ["dpkg-query", "-W", "-f=${Package} ${Version}\n", *GUEST_PACKAGES]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return {}
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


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
