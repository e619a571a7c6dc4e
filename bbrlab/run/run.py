"""Runs one point once: plan, guest, decoding, metrics, checks, and the result folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.experiment import iperf3_library
from bbrlab.experiment.machine import process
from bbrlab.experiment.plan import make_plan
from bbrlab.experiment.plan_types import GuestPlan, Trace
from bbrlab.kernel.built import Kernel, describe_kernel
from bbrlab.kernel.own import own_of
from bbrlab.kernel.specs import find_spec
from bbrlab.measure.summary import Summary
from bbrlab.run.capture import NO_CAPTURE, Capture, add_capture, write_captures
from bbrlab.run.compatibility import check_parameters, check_trace, kernel_for
from bbrlab.run.evaluate import evaluate
from bbrlab.run.guest import Machine, Progress, run_guest, write_inputs
from bbrlab.run.manifest import manifest_of
from bbrlab.run.output import LOG, PATIENCE_S, result_folder, workspace, write_results
from bbrlab.run.several import Senders, plan_several, run_several
from bbrlab.scenario.point import Point

SEED_MAX = 2**64 - 1  # the kernel's strtoull makes one entropy of all that are larger


def check_seed(seed: int) -> None:
    """UserError for a seed that is not possible."""
    if not 0 <= seed <= SEED_MAX:
        raise UserError(f"--seed {seed}: must be from 0 to {SEED_MAX}")


def run_point(
    point: Point,
    seed: int,
    out: Path,
    *,
    kernel_name: str | None = None,
    sources: Sequence[Path] = (),
    backend: str = "uml",
    watchdog_s: float = process.WATCHDOG_S,
    die_with_parent: bool = False,
    trace: Trace = "",
    capture: Capture = NO_CAPTURE,
    on_progress: Progress = lambda verb, text: None,
    tamper: Callable[[GuestPlan], None] | None = None,
    sender_kernels: Mapping[int, str] | None = None,
) -> Summary:
    """Run one point once. UserError with what went wrong, and which log to read.

    Args:
        seed: of the drawn RTTs and the guest's entropy.
        out: result folder; gets summary.json, samples.parquet, manifest.json and guest.log, the first one last. An earlier run's
            result stays until the guest starts.
        kernel_name: entry of kernels.yaml; default: the file's default.
        sources: C files of the user's own algorithms to build into the kernel, beside those of kernels/cca/ that flows name.
        backend: "uml" (virtual time), "qemu" (a virtual machine in real time) or "host" (this machine's kernel, as root,
            in real time).
        watchdog_s: real seconds without a sign of life after which the guest is ended; above 0 and finite.
        die_with_parent: end the run when the process that started it dies.
        trace: also write acks.parquet: one row per ACK and timeout of each flow ("acks"), or one for each change of a flow's state
            ("changes").
        capture: the packets of which to keep capture files.
        on_progress: called with (verb, text) as the run goes on.
        sender_kernels: {group: entry of kernels.yaml} of the groups whose senders have a kernel of their own (qemu only).
        tamper: changes the guest's plan, so that tests can show that the checks notice.

    Returns:
        The content of summary.json.
    """
    check_seed(seed)
    process.check_watchdog(watchdog_s)
    if trace and sender_kernels:
        raise UserError(
            "--trace-acks, --trace-changes: not with --sender-kernel: nothing is recorded in the senders' own machines"
        )
    if capture.places and sender_kernels:
        raise UserError("--pcap: not with --sender-kernel: nothing is captured in the senders' own machines")
    start = time.monotonic()
    # Of a campaign that was killed and started again, the run before may be about to end.
    with result_folder(out, PATIENCE_S if die_with_parent else 0) as result:
        marks: dict[str, float] = {}
        virtual, own_machine = backend == "uml", backend != "host"
        own = own_of([flow.cca for flow in point.scenario.flows], kernel_name, sources)
        kernel = kernel_for(kernel_name, backend, own, lambda text: on_progress("stage", text))
        library = iperf3_library.library_folder()
        helpers = "/run/lib" if own_machine else str(library)
        preload = f"{helpers}/{iperf3_library.LIBRARY}" if virtual else None
        if not own_machine and point.scenario.hosts.pacing == "fq":
            raise UserError(
                f"{point.scenario.name}: hosts.pacing: fq is not possible with --backend host (see LIMITATIONS.md); use internal"
            )
        if trace:
            check_trace(kernel)
        others: dict[int, Kernel] = {}
        senders: list[Senders] = []
        if sender_kernels:
            if backend != "qemu":
                raise UserError("--sender-kernel: senders with a kernel of their own need --backend qemu")
            for group, name in sender_kernels.items():
                find_spec(name, f"--sender-kernel {group}=")
            others = {group: kernel_for(name, backend) for group, name in sender_kernels.items()}
            plan, senders = plan_several(point, seed, kernel, others)
        else:
            plan = make_plan(point, seed, kernel.ccas, virtual=virtual, own_machine=own_machine, preload=preload,
                             helpers=helpers, trace=trace, modules=kernel.modules)  # fmt: skip
        check_parameters(point, kernel, others)
        add_capture(plan.content, point, capture)
        if tamper:
            tamper(plan.content)
        with workspace(result) as scratch:
            folder = write_inputs(scratch, plan)
            ready = time.monotonic()

            def begin() -> None:
                marks["waiting"] = time.monotonic() - ready  # for a core: no time that the run takes
                result.begin()

            machine = Machine(backend, kernel, own, library, seed, watchdog_s, die_with_parent, on_progress,
                              on_start=begin)  # fmt: skip
            log = out / LOG
            if senders:
                strain = run_several(machine, scratch, point, plan, senders, log)
            else:
                strain = run_guest(machine, scratch, point, plan, log)
            start += marks["waiting"]
            marks["guest"] = time.monotonic() - start
            summary, tables = evaluate(point, seed, backend, plan, kernel, folder, strain)
            if others:
                summary["sender_kernels"] = {str(g): describe_kernel(k) for g, k in others.items()}
            marks["evaluate"] = time.monotonic() - start - marks["guest"]
            manifest = manifest_of(point, seed, backend, plan, kernel, folder)
            captures = write_captures(out, folder, plan.content, manifest["report"], plan.content["duration_ns"])
            write_results(out, summary, tables, manifest, marks, start, captures)
            return summary
