"""Reads a submission without running anything: parts, scenario, manifests and hashes, samples, answers.

All untrusted files are read here, in a process with limits (limited.py). What it returns are checked, plain values.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.kernel.built import Kernel
from bbrlab_apps.grading.answers import answers_of
from bbrlab_apps.grading.limited import run_limited
from bbrlab_apps.grading.personal import Personal
from bbrlab_apps.grading.rubric import Rubric
from bbrlab_apps.grading.submission import (
    ANSWERS,
    NOTEBOOK,
    NOTEBOOK_BYTES,
    PROGRAMS,
    SCENARIO,
    SHEET,
    Submission,
    open_submission,
    read_strict_json,
    shown,
    some_of,
)
from bbrlab_apps.grading.submitted_runs import RUN_FILES, SubmittedRun, runs_of
from bbrlab_apps.grading.submitted_scenario import scenario_of


class SubmittedContent(TypedDict):
    """The content of a submission, and what is wrong with it."""

    content_sha256: str  # of all its files and their names
    incomplete: list[str]  # what is missing or cannot be read
    notes: list[str]
    scenario_wrong: list[str]  # how its scenario differs from the assignment's
    points: list[dict[str, Any]]  # the points of the figure: their scenarios and values
    answers: dict[str, Any]  # {question: number or text}
    unanswered: dict[str, str]  # {question: why its answer does not count}
    runs: list[SubmittedRun]


def read_limited(path: Path, rubric: Rubric, personal: Personal, kernel: Kernel) -> SubmittedContent:
    """read_content() in a process with the rubric's limits. Refused if it cannot be read within them."""
    limits = rubric.limits
    with tempfile.TemporaryDirectory(prefix="bbrlab-grade-") as scratch:
        content: SubmittedContent = run_limited(
            lambda: read_content(path, rubric, personal, kernel, Path(scratch)),
            seconds=limits.examine_s, memory_bytes=int(limits.memory_mb * 1e6), file_bytes=int(limits.submission_mb * 1e6),
        )  # fmt: skip
    return content


def read_content(path: Path, rubric: Rubric, personal: Personal, kernel: Kernel, scratch: Path) -> SubmittedContent:
    """Read a submission. To be called in a process with limits (read_limited()). UserError if it cannot be opened at all."""
    submission = open_submission(path, rubric.limits, scratch)
    incomplete, notes = list(submission.problems), list[str]()
    unexpected = [
        n
        for n in submission.files
        if n not in (SCENARIO, ANSWERS, NOTEBOOK, SHEET) and n.rpartition("/")[2] not in RUN_FILES
    ]
    programs = [n for n in unexpected if n.lower().endswith(PROGRAMS)]
    if programs:
        notes.append(f"programs and stored objects are never opened: {some_of(programs)}")
    if len(unexpected) > len(programs):
        notes.append(f"not part of a submission, not opened: {some_of([n for n in unexpected if n not in programs])}")
    if submission.elsewhere:
        notes.append(f"outside of the submission's folder, not opened: {some_of(submission.elsewhere)}")
    scenario_wrong, points = [f"{SCENARIO} cannot be read"], personal.assignment.points
    answers: dict[str, Any] = {}
    unanswered = {question.id: f"{ANSWERS} cannot be read" for question in personal.assignment.questions}
    with _part(SCENARIO, incomplete):
        scenario_wrong, points = scenario_of(submission, rubric, personal.assignment, incomplete)
    with _part(ANSWERS, incomplete):
        answers, unanswered = answers_of(submission, personal, incomplete)
    with _part(NOTEBOOK, incomplete):
        _notebook(submission, incomplete, notes)
    runs = runs_of(submission, rubric, personal, kernel, points, incomplete)
    return {
        "content_sha256": _content_sha256(submission),
        "incomplete": incomplete,
        "notes": notes,
        "scenario_wrong": scenario_wrong,
        "points": [{"scenario": p.scenario.model_dump(exclude_unset=True), "values": p.values} for p in points],
        "answers": answers,
        "unanswered": unanswered,
        "runs": runs,
    }


@contextlib.contextmanager
def _part(name: str, incomplete: list[str]) -> Iterator[None]:
    """Report any exception in the block as a problem of one part, so that the rest is graded."""
    try:
        yield
    except Exception as error:
        incomplete.append(f"{name}: cannot be read safely ({shown(f'{type(error).__name__}: {error}')})")


def _content_sha256(submission: Submission) -> str:
    """SHA-256 over the files' names and content."""
    digest = hashlib.sha256()
    for name in sorted(submission.files):
        digest.update(f"{name}\0{files.sha256(submission.files[name])}\0".encode())
    return digest.hexdigest()


def _notebook(submission: Submission, incomplete: list[str], notes: list[str]) -> None:
    """Check the notebook as a file. It is never executed."""
    if NOTEBOOK not in submission.files:
        incomplete.append(submission.missing(NOTEBOOK))
        return
    try:
        content = read_strict_json(submission.files[NOTEBOOK], NOTEBOOK_BYTES, NOTEBOOK)
        cells = content.get("cells") if isinstance(content, dict) else None
        if not isinstance(cells, list) or not cells:
            raise UserError(f"{NOTEBOOK}: is no notebook with cells")
        notes.append(f"{NOTEBOOK} is for people to read and was not executed")
    except UserError as error:
        incomplete.append(str(error))
