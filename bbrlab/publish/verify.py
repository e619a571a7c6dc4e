"""Runs a sample of finished runs again and compares: of the results that ship, or of anybody's folder of results."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import python
from bbrlab.base.errors import UserError, why_it_failed
from bbrlab.base.words import number_of
from bbrlab.experiment.machine.cores import TELL_AFTER_S, holders, lock_folder, one_core
from bbrlab.kernel.built import get_kernel
from bbrlab.kernel.own import recipe_name
from bbrlab.kernel.specs import NoSuchKernel
from bbrlab.publish.differences import compare
from bbrlab.publish.expected_runs import ExpectedRun, Key, Problem, Results
from bbrlab.results.cost import estimate_s
from bbrlab.results.figures import write_points
from bbrlab.results.run_folder import RunFolder
from bbrlab.run.conditions import CONDITIONS
from bbrlab.run.output import LOG, MANIFEST, SUMMARY

TICK_S = 0.1  # between looks at which runs have a core
TELL_S = 1.0  # between words of how far it is, if none ends


@dataclass(frozen=True)
class Outcome:
    """What came of running it again.

    Attributes:
        problems: every difference; none: equal in every hash.
        note: what is worth telling of a run that is equal.
        wall_s: that it took from when it had its core, whatever it waited for one; None if it was not run.
    """

    expected: ExpectedRun
    problems: list[Problem]
    note: str = ""
    wall_s: float | None = None


@dataclass
class Started:
    """A run that was started.

    Attributes:
        log: its guest's, which is there from when the run has its core.
        start_s: when it was started, on the monotonic clock.
        core_s: when it was first seen to have its core; None: it has not been yet.
    """

    process: subprocess.Popen[bytes]
    log: Path
    start_s: float
    core_s: float | None = None

    def look(self) -> None:
        """See whether it has its core."""
        if self.core_s is None and self.log.exists():
            self.core_s = time.monotonic()

    @property
    def is_late(self) -> bool:
        """Whether it has had no core for longer than it takes to ask for one."""
        return (
            self.core_s is None and self.process.returncode is None and time.monotonic() - self.start_s > TELL_AFTER_S
        )


def choose(keys: Sequence[Key], sample: int, seed: int) -> list[Key]:
    """So many of the runs by chance, each as likely as the others; the same ones for the same runs and seed."""
    return sorted(random.Random(seed).sample(list(keys), min(sample, len(keys))))  # noqa: S311 - chance, no secret


def missing_kernels(runs: Sequence[ExpectedRun]) -> dict[str, str]:
    """{name: why not} of the kernels of these runs that are not here: unknown, or not built. Names are those of config/kernels.yaml:
    one with algorithms of one's own is built for the run (recipe_name()).

    Raises:
        UserError: if none of them is here; with the command that builds one.
    """
    names = sorted({recipe_name(r.kernel[0]) for r in runs if r.kernel})
    missing: dict[str, UserError] = {}
    for name in names:
        try:
            get_kernel(name)
        except NoSuchKernel as error:  # that message names an option that this command does not have
            missing[name] = UserError(error.reason)
        except UserError as error:
            missing[name] = error
    if names and len(missing) == len(names):
        raise missing[names[0]]
    return {name: str(error) for name, error in missing.items()}


def run_again(
    results: Results,
    runs: Sequence[ExpectedRun],
    cores: int,
    on_progress: Callable[[list[Outcome], str], None] = lambda done, waits: None,
) -> list[Outcome]:
    """Run each again and compare, so many at once.

    Args:
        on_progress: called with those that are over, and how many wait for a free core (in words; empty: none), each time that one
            is over, and every so often.

    Returns:
        In the order of the runs.

    Raises:
        UserError: if no kernel of these runs is here (missing_kernels()).
    """
    missing = missing_kernels(runs)
    done: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="bbrlab-verify-") as name, ThreadPoolExecutor(cores) as pool:
        scratch = Path(name)
        points = {id: write_points(results.figures[id], scratch) for id in {r.run.figure for r in runs}}
        started: list[Started] = []

        def one(number: int, expected: ExpectedRun) -> Outcome:
            return _again(
                expected,
                missing,
                points[expected.run.figure][expected.run.point.label],
                scratch / str(number),
                results,
                started,
            )

        # The longest first: no core waits for one that began last.
        order = sorted(range(len(runs)), key=lambda i: -estimate_s(runs[i].run.point))
        jobs: dict[Future[Outcome], int] = {pool.submit(one, i, runs[i]): i for i in order}
        left, next_s = set(jobs), time.monotonic() + TELL_S
        try:
            while left:
                over, left = wait(left, TICK_S, FIRST_COMPLETED)
                done += [job.result() for job in over]
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
    return [job.result() for job, _ in sorted(jobs.items(), key=lambda item: item[1])]


def _waits(started: Sequence[Started]) -> str:
    """How many runs wait for a free core, and who has the cores, in words; empty if none does. (The runs themselves say nothing.)"""
    late = sum(run.is_late for run in tuple(started))
    try:
        if late and _all_taken():
            who = ", ".join(holders(lock_folder(), sorted(os.sched_getaffinity(0))))
            return f"{number_of(late, 'run')} {'waits' if late == 1 else 'wait'} for a free core ({who})"
    except UserError:  # no folder of locks: the runs end with why
        pass
    return ""


class _Taken(Exception):
    """No core is free."""


def _all_taken() -> bool:
    """Whether no core is free. One that is, is held for an instant; who asks for it then asks again."""

    def give_up() -> None:
        raise _Taken

    try:
        with one_core(may_wait=give_up):
            return False
    except _Taken:
        return True


def _conditions(expected: ExpectedRun) -> str:
    """What a run had that its scenario does not say; of what ships, only runs of today's are run again."""
    manifest = expected.manifest
    return str(manifest.get("conditions", CONDITIONS[0])) if isinstance(manifest, dict) else CONDITIONS[-1]


def _again(
    expected: ExpectedRun,
    missing: Mapping[str, str],
    point: Path,
    out: Path,
    results: Results,
    started: list[Started],
) -> Outcome:
    if expected.kernel is None or expected.summary_sha256 is None:
        return Outcome(expected, [*expected.problems] or [Problem(SUMMARY, "does not say of which kernel it is")])
    name, key = recipe_name(expected.kernel[0]), expected.kernel[1]
    if name in missing:
        return Outcome(
            expected,
            [*expected.problems, Problem(SUMMARY, f"was not run again, its kernel is not here: {missing[name]}")],
        )
    argv = [
        "point",
        str(point),
        "--seed",
        str(expected.run.seed),
        "--out",
        str(out),
        "--kernel",
        name,
    ]
    start_s = time.monotonic()
    process = python.start("bbrlab.cli.main", *argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    run = Started(process, out / LOG, start_s)
    started.append(run)
    _, told = process.communicate()
    run.look()
    wall_s = None if run.core_s is None else time.monotonic() - run.core_s
    if process.returncode:
        why = why_it_failed(told.decode(errors="replace"), process.returncode)
        return Outcome(expected, [*expected.problems, Problem("", f"does not run here: {why}")], wall_s=wall_s)
    wrong = [*expected.problems, *compare(expected, out, results.libraries)]
    note, here = "", RunFolder(out).raw_summary["kernel"]  # with the algorithms of one's own that the point has
    if here["key"] != key:
        said = f"is of another kernel: {expected.kernel[0]} {key} there, {here['name']} {here['key']} here ({here['source']}, {here['compiler']})"
        if wrong:
            wrong.insert(0, Problem(SUMMARY, said))
        else:
            note = f"{said}; equal all the same"
    if wrong and (there := _conditions(expected)) != CONDITIONS[-1]:
        wrong.insert(0, Problem(MANIFEST, f"had other conditions: {there}; here: {CONDITIONS[-1]}"))
    return Outcome(expected, wrong, note, wall_s)
