"""Runs many points at once, each in its own process (``bbrlab point``), which waits for a core of its own."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bbrlab.base import python
from bbrlab.base.errors import UserError, why_it_failed
from bbrlab.base.words import number_of
from bbrlab.experiment.machine.cores import TELL_AFTER_S, owners
from bbrlab.run.output import LOG

TICK_S = 0.1  # between checks which runs have a core
TELL_S = 1.0  # between reports of the progress, if none ends
Result = TypeVar("Result")


@dataclass(frozen=True)
class Job:
    """A point to run once."""

    point: Path  # its file (results/figures.write_points())
    seed: int
    out: Path
    kernel: str | None = None  # entry of kernels.yaml; None: its default
    sources: Sequence[Path] = ()  # C files of the user's own algorithms that are built into the kernel


@dataclass
class Started:
    """A run that was started."""

    process: subprocess.Popen[bytes]
    log: Path  # its guest's, which exists as soon as the run has its core
    start_s: float  # its start, on the monotonic clock
    core_s: float | None = None  # when it was first observed to have its core; None: not yet

    def look(self) -> None:
        """Update whether it has its core."""
        if self.core_s is None and self.log.exists():
            self.core_s = time.monotonic()

    @property
    def is_late(self) -> bool:
        """Whether it has waited for a core for a noticeable time."""
        return (
            self.core_s is None and self.process.returncode is None and time.monotonic() - self.start_s > TELL_AFTER_S
        )


@dataclass(frozen=True)
class Ended:
    """A run that has ended."""

    why: str  # it failed, in one line; empty if it succeeded
    wall_s: float | None  # real seconds since it had its core; None if it never had one


def run_job(job: Job, started: list[Started]) -> Ended:
    """Run a point in a process, and wait for its end.

    Args:
        started: all runs so far; this one is added.
    """
    argv = ["point", str(job.point), "--seed", str(job.seed), "--out", str(job.out)]
    argv += ["--kernel", job.kernel] if job.kernel else []
    argv += [word for source in job.sources for word in ("--cca-source", str(source))]
    start_s = time.monotonic()
    process = python.start("bbrlab.cli.main", *argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    run = Started(process, job.out / LOG, start_s)
    started.append(run)
    _, errors = process.communicate()
    run.look()
    wall_s = None if run.core_s is None else time.monotonic() - run.core_s
    why = why_it_failed(errors.decode(errors="replace"), process.returncode) if process.returncode else ""
    return Ended(why, wall_s)


def run_each(
    works: Sequence[Callable[[list[Started]], Result]],
    cores: int,
    on_progress: Callable[[list[Result], str], None] = lambda done, waits: None,
    is_last: Callable[[Result], bool] = lambda result: False,
) -> list[Result]:
    """Do several works, ``cores`` at once. If interrupted, end all runs.

    Args:
        works: functions that call run_job() with their argument, in the order in which they begin.
        on_progress: called with the finished results, and how many runs wait for a free core (in words; empty for none), at each end of a
            work and at intervals.
        is_last: whether no further work begins after this result.

    Returns:
        The results of the works that began, in their order.
    """
    done: list[Result] = []
    started: list[Started] = []
    stop = threading.Event()

    def do(work: Callable[[list[Started]], Result]) -> list[Result]:
        """Its result; empty if it did not begin."""
        if stop.is_set():
            return []
        result = work(started)
        if is_last(result):
            stop.set()
        return [result]

    with ThreadPoolExecutor(cores) as pool:
        jobs = [pool.submit(do, work) for work in works]
        waiting, next_s = set(jobs), time.monotonic() + TELL_S
        try:
            while waiting:
                over, waiting = wait(waiting, TICK_S, FIRST_COMPLETED)
                done += [result for job in over for result in job.result()]
                for run in tuple(started):
                    run.look()
                if over or time.monotonic() >= next_s:
                    on_progress(done, _waits(started))
                    next_s = time.monotonic() + TELL_S
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for run in started:
                run.process.terminate()
            raise
    return [result for job in jobs for result in job.result()]


def _waits(started: Sequence[Started]) -> str:
    """How many runs wait for a free core, and which processes have the cores, in words; empty if none waits."""
    late = sum(run.is_late for run in tuple(started))
    try:
        if late and (holding := owners()):
            return f"{number_of(late, 'run')} {'waits' if late == 1 else 'wait'} for a free core ({', '.join(holding)})"
    except UserError:  # no folder of locks: the runs end with why
        pass
    return ""
