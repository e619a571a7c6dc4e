"""Repeats a sample of a submission's runs in guests, with limits, and compares them byte for byte."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from bbrlab.base import python
from bbrlab.base.errors import UserError, why_it_failed
from bbrlab.base.signals import postponed
from bbrlab.base.yaml_files import dump_yaml
from bbrlab.claims.schema import rounded
from bbrlab.kernel.built import Kernel
from bbrlab.results.digest import summary_digest
from bbrlab.results.run_estimate import estimate_s
from bbrlab.results.run_folder import RunFolder
from bbrlab.run.output import SAMPLES, SUMMARY
from bbrlab.scenario.load import without_empty
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab_apps.grading.personal import Personal, drawn, too_much
from bbrlab_apps.grading.rubric import Limits, Rubric
from bbrlab_apps.grading.submission import shown
from bbrlab_apps.grading.submitted_runs import EDITED_SAMPLES, EDITED_SUMMARY, SubmittedRun
from bbrlab_apps.grading.submitted_samples import read_samples, table_digest
from bbrlab_apps.grading.submitted_scenario import identity

SAME, DIFFERS, NOT_RUN = "the same", "differs", "not run"
MEMORY_HOLE_BYTES = 1 << 30  # the sparse file of a UML guest's memory is longer than the memory by this
FAILED_HERE, BEYOND = "could not be made again", "not made again, beyond the limits"
END_S = 10  # for a run to end after SIGTERM


class Rerun(TypedDict):
    """The result of repeating a run."""

    run: int  # index of the run in the submission
    name: str
    outcome: str  # SAME, DIFFERS or NOT_RUN
    # If it differs: EDITED_SAMPLES or EDITED_SUMMARY; if it was not run: FAILED_HERE if this machine could not finish it, BEYOND
    # if the rubric's limits forbid it; else ""
    kind: str
    told: str


@dataclass(frozen=True)
class Drawn:
    """The runs to repeat."""

    runs: list[int]  # indices of runs of the submission
    lost: list[str]  # drawn runs that are missing or do not count, in words


def drawn_runs(
    rubric: Rubric, personal: Personal, points: list[Point], runs: list[SubmittedRun], first: Collection[int]
) -> Drawn:
    """Draw the runs to repeat: ``rerun`` of the assigned ones, by the teacher's salt, after those of ``first``.

    Points and seeds are drawn, not submitted folders, so that handing in again changes nothing. Nobody without the salt can predict
    the draw.

    Args:
        points: of the figure; a run's ``point`` is an index into it.
        first: indices of runs that are suspected to be copied.
    """
    if not rubric.rerun:
        return Drawn([], [])
    names = _names_of(points, rubric)

    def rank(place: tuple[int, int]) -> int:
        return drawn(rubric, personal.student, f"rerun\0{names[place[0]]}\0{place[1]}", 1 << 256)

    usable = {(run["point"], run["seed"]): i for i, run in enumerate(runs) if not run["wrong"]}
    chosen = sorted(((p, seed) for p in range(len(points)) for seed in personal.seeds), key=rank)[: rubric.rerun]
    suspects = [i for i in first if i in usable.values()]
    conditions = [", ".join(f"{path} {value}" for path, value in points[p].values.items()) for p, _ in chosen]
    lost = [
        f"{words + ', ' if words else ''}seed {place[1]}: no such run is there, or it does not count"
        for place, words in zip(chosen, conditions, strict=True)
        if place not in usable
    ]
    return Drawn(list(dict.fromkeys([*suspects, *(usable[p] for p in chosen if p in usable)])), lost)


def _names_of(points: list[Point], rubric: Rubric) -> list[str]:
    """A name for each point that depends neither on the order in the student's file nor on freely chosen values.

    Points that differ in freely chosen values only are numbered, smallest values first."""
    order = sorted(range(len(points)), key=lambda i: identity(points[i]))
    names, count = [""] * len(points), Counter[str]()
    for i in order:
        key = identity(points[i], rubric.free)
        count[key] += 1
        names[i] = f"{key}\0{count[key]}"
    return names


def run_again(
    rubric: Rubric, runs: list[SubmittedRun], chosen: list[int], kernel: Kernel, scratch: Path
) -> list[Rerun]:
    """Repeat runs, one after the other, as far as the limits allow."""
    left_s = rubric.limits.rerun_s
    reruns: list[Rerun] = []
    for index in chosen:
        run = runs[index]
        point = Point(validate(run["scenario"], run["name"]), {})
        cost_s = estimate_s(point)
        reason = "; ".join(too_much(point, rubric.limits).values())
        if not reason and cost_s > left_s:
            reason = f"would need about {rounded(cost_s, 3)} s; of {rubric.limits.rerun_s:g} s for all of the sample {rounded(left_s, 3)} are left"
        if reason:
            reruns.append({"run": index, "name": run["name"], "outcome": NOT_RUN, "kind": BEYOND, "told": reason})
            continue
        left_s -= cost_s
        reruns.append(_again(rubric.limits, run, index, point, kernel, scratch / f"rerun-{index}"))
    return reruns


def _again(limits: Limits, run: SubmittedRun, index: int, point: Point, kernel: Kernel, scratch: Path) -> Rerun:
    """Repeat one run and compare it."""
    scratch.mkdir()
    file, out = scratch / "scenario.yaml", scratch / "out"
    file.write_text(dump_yaml(without_empty(run["scenario"])), encoding="utf-8")
    result: Rerun = {"run": index, "name": run["name"], "outcome": NOT_RUN, "kind": "", "told": ""}
    argv = [
        "run", str(file), "--seed", str(run["seed"]), "--out", str(out),
        "--kernel", kernel.name, "--watchdog-s", str(limits.end_s), "--quiet", "--die-with-parent",
    ]  # fmt: skip
    file_bytes = int((limits.memory_mb + limits.disk_mb) * 1e6) + MEMORY_HOLE_BYTES  # its memory is a file, too

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    child = None
    try:
        with postponed():
            child = python.start("bbrlab.cli.main", *argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 text=True, errors="replace", start_new_session=True, preexec_fn=limit)  # fmt: skip
        _, stderr = child.communicate(timeout=limits.end_s)
    except subprocess.TimeoutExpired:
        return result | {"kind": FAILED_HERE, "told": f"was ended after {limits.end_s:g} s"}
    finally:
        if child is not None and child.poll() is None:
            _end(child)
    if child.returncode:
        return result | {"kind": FAILED_HERE, "told": shown(why_it_failed(stderr, child.returncode), 300)}
    return result | _compared(run, point, out)  # type: ignore[return-value]


def _end(child: subprocess.Popen[str]) -> None:
    """End ``bbrlab run`` by SIGTERM, at which it ends its guest. Killed, it would leave stopped processes of a booting guest."""
    child.terminate()
    try:
        child.wait(END_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _compared(run: SubmittedRun, point: Point, out: Path) -> dict[str, str]:
    """Compare a repeated run with the submitted one."""
    made = RunFolder(out)
    same_bytes = made.table_hashes[SAMPLES] == run["sha256"]
    same_values = same_bytes or table_digest(read_samples(out / SAMPLES, point)) == run["digest"]
    notes = f" (it {'; '.join(run['notes'])})" if run["notes"] else ""
    if not same_values:
        return {"outcome": DIFFERS, "kind": EDITED_SAMPLES, "told": f"made again, {SAMPLES} has other values{notes}"}
    if summary_digest(made.raw_summary) != run["summary_sha256"]:
        return {"outcome": DIFFERS, "kind": EDITED_SUMMARY, "told": f"made again, {SUMMARY} says something else{notes}"}
    if not same_bytes:
        return {
            "outcome": SAME,
            "kind": "",
            "told": "every value is the same; the file was written by another version of Arrow",
        }
    return {"outcome": SAME, "kind": "", "told": f"{SAMPLES} byte for byte, {SUMMARY} but for the real time"}


def ready(rubric: Rubric) -> Kernel:
    """The kernel of an assignment. UserError if it is not built here."""
    from bbrlab.run.compatibility import kernel_for

    try:
        return kernel_for(rubric.kernel, "uml")
    except UserError as error:
        raise UserError(f"grading needs the kernel of the assignment: {error}") from None
