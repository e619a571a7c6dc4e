"""A class: whose submissions there are, and what they tell of each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.grading.examine import Examined
from bbrlab.grading.personal import drawn_seeds, known_id
from bbrlab.grading.report import CLASS
from bbrlab.grading.rubric import Rubric
from bbrlab.grading.submission import ARCHIVES


class Others(TypedDict):
    """What a class knows beside one submission.

    Attributes:
        seeds: {seed: the other student who was asked to run it}.
        equal: {index of a run: the other students who have a run with the same values}.
    """

    seeds: dict[str, str]
    equal: dict[str, list[str]]


ALONE: Others = {"seeds": {}, "equal": {}}


def name_of(submission: Path) -> str:
    """The id that a submission is named by: the name of a folder, that of a file without what says its format."""
    name = submission.absolute().name
    suffix = next((s for s in ARCHIVES if name.lower().endswith(s)), "")
    if not suffix and not submission.is_dir():
        suffix = submission.suffix
    return name[: len(name) - len(suffix)]


def submissions_in(folder: Path) -> dict[str, Path]:
    """{student: submission} of a class's folder, named by the students' ids.

    All that is not hidden counts: what is neither a folder nor an archive is somebody's who packed it otherwise, and is graded
    as what cannot be read. So nobody is left out in silence.

    Raises:
        UserError: if there is none, two are named alike, or a name is no id.
    """
    found: dict[str, Path] = {}
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise files.explain(error, folder) from None
    for entry in entries:
        student = known_id(name_of(entry), str(entry))
        if student == CLASS:
            raise UserError(f"{entry}: nobody can be called {CLASS}, which is the name of the class's table; rename it")
        if student in found:
            raise UserError(
                f"{entry}: {student} has another submission, {found[student].name}; keep one (whatever is in {folder} is taken for one)"
            )
        found[student] = entry
    if not found:
        raise UserError(f"{folder}: has no submission: a folder or an archive for each student, named by the id")
    return found


def others_of(student: str, all_found: Mapping[str, Examined], rubric: Rubric) -> Others:
    """What the class knows beside one submission: seeds that are others', and runs that are equal to others'."""
    seeds: dict[str, str] = {}
    digests: dict[str, list[str]] = {}
    for other, found in all_found.items():
        if other != student:
            seeds |= {str(seed): other for seed in drawn_seeds(rubric, other)}
            for digest in {run["digest"] for run in found["runs"] if run["digest"]}:
                digests.setdefault(digest, []).append(other)
    equal = {str(i): digests[r["digest"]] for i, r in enumerate(all_found[student]["runs"]) if r["digest"] in digests}
    return {"seeds": seeds, "equal": equal}
