"""Runs a plan on a backend and keeps its log."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.limits import limits_in_words
from bbrlab.experiment.machine import host, process, qemu, uml
from bbrlab.experiment.machine.strain import Gauge, Strain
from bbrlab.experiment.plan import Plan
from bbrlab.kernel.built import Kernel
from bbrlab.kernel.own import OwnCca, crash_message
from bbrlab.kernel.probe import LOUD
from bbrlab.run.capture import rings_bytes
from bbrlab.run.memory import guest_bytes, largest_part, workload_bytes
from bbrlab.scenario.frames import IP_VERSION
from bbrlab.scenario.point import Point

Progress = Callable[[str, str], None]

PACING_LATE_NS = "tcp_output.pacing_late_ns"  # of the lab's kernels: kernels/patches/lateness


@dataclass(frozen=True)
class Machine:
    """The machine for a plan, and how it is watched: run_point()'s arguments of the same names."""

    backend: str
    kernel: Kernel
    own: Sequence[OwnCca]  # the user's own algorithms that are built into the kernel
    library: Path  # folder of the compiled helper (iperf3_library)
    seed: int
    watchdog_s: float
    die_with_parent: bool
    on_progress: Progress
    # prompt, stop: of a play (process.Job)
    prompt: process.PromptConsole | None = None
    stop: threading.Event | None = None
    # Called right before the guest starts, when it waits for nothing any more
    on_start: Callable[[], None] = lambda: None


def write_inputs(scratch: Path, plan: Plan) -> Path:
    """Write the guest's input files to its folder in ``scratch``. Returns that folder."""
    folder = scratch / "out"
    folder.mkdir()
    files.write_json(folder / "plan.json", plan.content)
    for name, content in plan.opportunities.items():
        (folder / name).write_bytes(content)
    for entry in plan.content["short_flows"]:
        from bbrlab.workload.chunks import write_chunks

        write_chunks(plan.workloads[entry["group"]], folder / entry["workload"])
    return folder


def run_guest(machine: Machine, scratch: Path, point: Point, plan: Plan, log: Path) -> Strain | None:
    """Run the guest to its end; ``log`` has its console and its programs' output then. Returns the processor time of a machine in
    real time; None in virtual time. UserError if it fails, with its last words; the log stays."""
    begun = False

    def begin() -> None:
        nonlocal begun
        machine.on_start()
        begun = True

    folder, free_bytes = scratch / "out", shutil.disk_usage(scratch).free
    workload, virtual = workload_bytes(plan), plan.content["virtual"]
    needed_bytes = guest_bytes(point, workload, virtual=virtual) + rings_bytes(plan.content)
    gauge = Gauge()
    try:
        if machine.backend == "host":
            begin()
            host.run(folder=folder, log=log, on_progress=machine.on_progress, gauge=gauge)
        else:
            (scratch / "guest").symlink_to(paths.GUEST_CODE)
            (scratch / "lib").symlink_to(machine.library)
            arguments = [*plan.kernel_arguments, *([LOUD] if machine.own else [])]
            if late_ns := plan.content["pacing_late_ns"]:
                arguments.append(f"{PACING_LATE_NS}={late_ns}")
            job = process.Job(
                scratch=scratch, seed=machine.seed, memory_bytes=needed_bytes, arguments=arguments, log=log,
                watchdog_s=machine.watchdog_s, on_progress=machine.on_progress, die_with_parent=machine.die_with_parent,
                prompt=machine.prompt, stop=machine.stop, gauge=gauge if machine.backend == "qemu" else None,
                on_start=begin, ip_version=plan.content.get("ip_version", IP_VERSION),
            )  # fmt: skip
            process.run(job, (uml if machine.backend == "uml" else qemu).command(machine.kernel, job))
    except process.GuestFailed as error:
        keep_console(folder, log)
        room = "" if machine.backend != "uml" or free_bytes >= needed_bytes else (
            f"\n{scratch.parent} had {free_bytes >> 20} MiB free, but the guest's memory, which lies there, may grow to "
            f"{needed_bytes >> 20} MiB; make room, or set TMPDIR to another folder"
        )  # fmt: skip
        if process.OUT_OF_MEMORY in log.read_text(encoding="utf-8", errors="replace"):
            room += (
                f"\nmost of it is planned for {largest_part(point, workload, virtual=virtual)}; ask for less of that"
            )
        place = _stopped_by(machine.own, log)
        raise UserError(f"{place}{point.scenario.name}: {error}{limits_in_words()}{room}{_last_words(log)}") from None
    except BaseException:
        if begun:  # interrupted: the log of half a run says nothing; an earlier run's stays
            log.unlink(missing_ok=True)
        raise
    keep_console(folder, log)
    return gauge.strain()


def keep_console(folder: Path, log: Path) -> None:
    """Append the output of the guest's programs to the log, that of short flows (mininet/traffic.py) under their names."""
    for path in (folder / "console.log", *sorted(folder.glob("short-*.err"))):
        if path.exists() and path.stat().st_size:
            with open(path, "rb") as printed, open(log, "a", encoding="utf-8") as file:
                file.write(f"{path.stem}:\n" if path.suffix == ".err" else "")
                file.write(printed.read(process.CONSOLE_BYTES).decode(errors="replace"))


def _stopped_by(own: Sequence[OwnCca], log: Path) -> str:
    """The place in the user's own algorithm that stopped the guest's kernel, as a line; empty if none did."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if not own or process.OUT_OF_MEMORY in text:
        return ""
    place = crash_message(own, text.splitlines())
    return f"{place}\n" if place else ""


def _last_words(log: Path) -> str:
    lines = (
        [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        if log.exists()
        else []
    )
    return "".join(f"\n  | {line}" for line in lines[-4:])
