"""Runs a sample of finished runs again and compares: of the results that ship, or of anybody's folder of results."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.kernel.built import get_kernel
from bbrlab.kernel.own import recipe_name
from bbrlab.kernel.specs import NoSuchKernel
from bbrlab.publish.differences import compare
from bbrlab.publish.expected_runs import ExpectedRun, Key, Problem, Results
from bbrlab.results.cost import estimate_s
from bbrlab.results.figures import write_points
from bbrlab.results.run_folder import RunFolder
from bbrlab.run.conditions import CONDITIONS
from bbrlab.run.output import MANIFEST, SUMMARY
from bbrlab.run.processes import Job, Started, run_each, run_job


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
    with tempfile.TemporaryDirectory(prefix="bbrlab-verify-") as name:
        scratch = Path(name)
        points = {id: write_points(results.figures[id], scratch) for id in {r.run.figure for r in runs}}

        def work(number: int) -> Callable[[list[Started]], tuple[int, Outcome]]:
            expected = runs[number]
            point = points[expected.run.figure][expected.run.point.label]
            out = scratch / str(number)
            return lambda started: (number, _again(expected, missing, point, out, results, started))

        # The longest first: no core waits for one that began last.
        order = sorted(range(len(runs)), key=lambda i: -estimate_s(runs[i].run.point))
        found = run_each([work(i) for i in order], cores, lambda done, waits: on_progress([o for _, o in done], waits))
    return [outcome for _, outcome in sorted(found, key=lambda one: one[0])]


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
    ended = run_job(Job(point, expected.run.seed, out, name), started)
    if ended.why:
        return Outcome(
            expected, [*expected.problems, Problem("", f"does not run here: {ended.why}")], wall_s=ended.wall_s
        )
    wrong = [*expected.problems, *compare(expected, out, results.libraries)]
    note, here = "", RunFolder(out).raw_summary["kernel"]  # with the algorithms of one's own that the point has
    if here["key"] != key:
        said = f"kernel build differs: {expected.kernel[0]} {key} there, {here['name']} {here['key']} here ({here['source']}, {here['compiler']})"
        if wrong:
            wrong.insert(0, Problem(SUMMARY, said))
        else:
            note = f"{said}; results are identical"
    if wrong and (there := _conditions(expected)) != CONDITIONS[-1]:
        wrong.insert(0, Problem(MANIFEST, f"had other conditions: {there}; here: {CONDITIONS[-1]}"))
    return Outcome(expected, wrong, note, ended.wall_s)
