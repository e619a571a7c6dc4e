"""Looks at a submission without running anything: parts, scenario, manifests and hashes, samples, answers.

All that was handed in is read here, in a process with limits (limited.py). What comes out is plain values that were checked.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.kernel.built import Kernel
from bbrlab_apps.grading.answers import answers_of
from bbrlab_apps.grading.asked_scenario import scenario_of
from bbrlab_apps.grading.handed_runs import KNOWN, RunFound, runs_of
from bbrlab_apps.grading.personal import Personal
from bbrlab_apps.grading.rubric import Rubric
from bbrlab_apps.grading.submission import (
    ANSWERS,
    NOTEBOOK,
    NOTEBOOK_BYTES,
    PROGRAMS,
    SCENARIO,
    Submission,
    open_submission,
    read_strict_json,
    shown,
    some_of,
)


class Examined(TypedDict):
    """What was found in a submission.

    Attributes:
        content_sha256: of all its files and their names.
        incomplete: what is missing or cannot be read.
        notes: what else there is to say of its parts.
        scenario_wrong: how its scenario differs from the one that was asked for.
        points: the points of the figure: their scenarios and values.
        answers: {question: number or text}.
        unanswered: {question: why its answer is none}.
        runs: every result folder.
    """

    content_sha256: str
    incomplete: list[str]
    notes: list[str]
    scenario_wrong: list[str]
    points: list[dict[str, Any]]
    answers: dict[str, Any]
    unanswered: dict[str, str]
    runs: list[RunFound]


def examine(path: Path, rubric: Rubric, own: Personal, kernel: Kernel, scratch: Path) -> Examined:
    """Look at a submission. To be called where what it reads can do no harm (limited.run_limited()).

    Args:
        path: folder or archive.
        rubric: of the assignment.
        own: what is asked of this student.
        kernel: that the results must be of.
        scratch: an empty folder.

    Raises:
        UserError: if it cannot be opened at all.
    """
    found = open_submission(path, rubric.limits, scratch)
    incomplete, notes = list(found.problems), list[str]()
    others = [n for n in found.files if n not in (SCENARIO, ANSWERS, NOTEBOOK) and n.rpartition("/")[2] not in KNOWN]
    programs = [n for n in others if n.lower().endswith(PROGRAMS)]
    if programs:
        notes.append(f"programs and stored objects are never opened: {some_of(programs)}")
    if len(others) > len(programs):
        notes.append(f"not part of a submission, not opened: {some_of([n for n in others if n not in programs])}")
    if found.elsewhere:
        notes.append(f"outside of the submission's folder, not opened: {some_of(found.elsewhere)}")
    scenario_wrong, points = [f"{SCENARIO} cannot be read"], own.asked.points
    answers: dict[str, Any] = {}
    unanswered = {question.id: f"{ANSWERS} cannot be read" for question in own.asked.questions}
    with _part(SCENARIO, incomplete):
        scenario_wrong, points = scenario_of(found, rubric, own.asked, incomplete)
    with _part(ANSWERS, incomplete):
        answers, unanswered = answers_of(found, own, incomplete)
    with _part(NOTEBOOK, incomplete):
        _notebook(found, incomplete, notes)
    runs = runs_of(found, rubric, own, kernel, points, incomplete)
    return {
        "content_sha256": _content_sha256(found),
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
    """An exception of whatever kind in the block is of one part: what others wrote costs that part, and the rest is graded."""
    try:
        yield
    except Exception as error:
        incomplete.append(f"{name}: cannot be read safely ({shown(f'{type(error).__name__}: {error}')})")


def _content_sha256(found: Submission) -> str:
    """SHA-256 over the files' names and content."""
    digest = hashlib.sha256()
    for name in sorted(found.files):
        digest.update(f"{name}\0{files.sha256(found.files[name])}\0".encode())
    return digest.hexdigest()


def _notebook(found: Submission, incomplete: list[str], notes: list[str]) -> None:
    """The notebook is looked at as a file. It is never executed."""
    if NOTEBOOK not in found.files:
        incomplete.append(found.missing(NOTEBOOK))
        return
    try:
        content = read_strict_json(found.files[NOTEBOOK], NOTEBOOK_BYTES, NOTEBOOK)
        cells = content.get("cells") if isinstance(content, dict) else None
        if not isinstance(cells, list) or not cells:
            raise UserError(f"{NOTEBOOK}: is no notebook with cells")
        notes.append(f"{NOTEBOOK}: {len(cells)} cells; it is for people to read and was not executed")
    except UserError as error:
        incomplete.append(str(error))
