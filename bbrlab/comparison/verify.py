"""Repeats a sample of finished runs and compares: of shipped results, or of a campaign's folder of results."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.comparison.differences import compare
from bbrlab.comparison.expected_runs import ExpectedResults, ExpectedRun, Key, Problem
from bbrlab.kernel.built import get_kernel
from bbrlab.kernel.own import recipe_name
from bbrlab.kernel.specs import NoSuchKernel
from bbrlab.results.figures import write_points
from bbrlab.results.run_estimate import estimate_s
from bbrlab.results.run_folder import RunFolder
from bbrlab.run.conditions import CONDITIONS
from bbrlab.run.output import MANIFEST, SUMMARY
from bbrlab.run.processes import Job, Started, run_each, run_job

OTHER_BUILD = "kernel build differs"


@dataclass(frozen=True)
class Outcome:
    """The result of repeating a run."""

    expected: ExpectedRun
    problems: list[Problem]  # every difference; empty if it is equal in every hash
    note: str = ""
    wall_s: float | None = None  # real seconds, without waiting for a core; None if it was not run


def choose(keys: Sequence[Key], sample: int, seed: int) -> list[Key]:
    """A random sample of the runs, each as likely as the others; the same for the same runs and seed."""
    return sorted(random.Random(seed).sample(list(keys), min(sample, len(keys))))  # noqa: S311 - chance, no secret


def missing_kernels(runs: Sequence[ExpectedRun]) -> dict[str, str]:
    """{name: why} of these runs' kernels that are unknown or not built. Names are those of config/kernels.yaml; a kernel with the
    user's own algorithms is built for the run (recipe_name()).

    UserError if none of them is available; with the command that builds one.
    """
    names = sorted({recipe_name(r.kernel[0]) for r in runs if r.kernel})
    missing: dict[str, UserError] = {}
    for name in names:
        try:
            get_kernel(name)
        except NoSuchKernel as error:  # whose message names an option that this command does not have
            missing[name] = UserError(error.reason)
        except UserError as error:
            missing[name] = error
    if names and len(missing) == len(names):
        raise missing[names[0]]
    return {name: str(error) for name, error in missing.items()}


def run_again(
    results: ExpectedResults,
    runs: Sequence[ExpectedRun],
    cores: int,
    on_progress: Callable[[list[Outcome], str], None] = lambda done, waits: None,
) -> list[Outcome]:
    """Repeat runs, ``cores`` at once, and compare each. UserError if no kernel of these runs is available (missing_kernels()).

    Args:
        on_progress: called with the finished ones, and how many wait for a free core (in words; empty for none), at each end of a run
            and at intervals.

    Returns:
        In the order of the runs.
    """
    missing = missing_kernels(runs)
    with tempfile.TemporaryDirectory(prefix="bbrlab-verify-") as name:
        scratch = Path(name)
        points = {id: write_points(results.figures[id], scratch) for id in {r.run.figure for r in runs}}

        def work(number: int) -> Callable[[list[Started]], tuple[int, Outcome]]:
            expected = runs[number]
            point = points[expected.run.figure][expected.run.point.label]
            out = scratch / str(number)
            return lambda started: (number, _again(expected, missing, point, out, results, started))

        # The longest first, so that no core is idle at the end.
        order = sorted(range(len(runs)), key=lambda i: -estimate_s(runs[i].run.point))
        outcomes = run_each(
            [work(i) for i in order], cores, lambda done, waits: on_progress([o for _, o in done], waits)
        )
    return [outcome for _, outcome in sorted(outcomes, key=lambda one: one[0])]


def _conditions(expected: ExpectedRun) -> str:
    """The conditions of a run that its scenario does not state; of shipped results only runs under today's are repeated."""
    manifest = expected.manifest
    return str(manifest.get("conditions", CONDITIONS[0])) if isinstance(manifest, dict) else CONDITIONS[-1]


def _again(
    expected: ExpectedRun,
    missing: Mapping[str, str],
    point: Path,
    out: Path,
    results: ExpectedResults,
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
    ended = run_job(Job(point, expected.run.seed, out, name), started)
    if ended.why:
        return Outcome(
            expected, [*expected.problems, Problem("", f"does not run here: {ended.why}")], wall_s=ended.wall_s
        )
    problems = [*expected.problems, *compare(expected, out, results.libraries)]
    note, kernel = "", RunFolder(out).raw_summary["kernel"]  # with the user's own algorithms of the point
    if kernel["key"] != key:
        text = f"{OTHER_BUILD}: {expected.kernel[0]} {key} there, {kernel['name']} {kernel['key']} here ({kernel['source']}, {kernel['compiler']})"
        if problems:
            problems.insert(0, Problem(SUMMARY, text))
        else:
            note = f"{text}; results are identical"
    if problems and (conditions := _conditions(expected)) != CONDITIONS[-1]:
        problems.insert(0, Problem(MANIFEST, f"had other conditions: {conditions}; here: {CONDITIONS[-1]}"))
    return Outcome(expected, problems, note, ended.wall_s)
