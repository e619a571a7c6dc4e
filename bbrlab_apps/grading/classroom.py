"""A class: whose submissions there are, and what they tell of each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab_apps.grading.examine import Examined
from bbrlab_apps.grading.handed_runs import RunFound
from bbrlab_apps.grading.handed_samples import alike
from bbrlab_apps.grading.personal import checked_id, drawn_seeds
from bbrlab_apps.grading.report import CLASS
from bbrlab_apps.grading.rubric import Rubric
from bbrlab_apps.grading.submission import ARCHIVES


class Others(TypedDict):
    """What a class knows beside one submission.

    Attributes:
        seeds: {seed: the other student who was asked to run it}.
        equal: {index of a run: the other students who have a run with the same values}.
        alike: {index of a run: {other student: what part of a run's likeness is the same}}, of at least ALIKE and not all values.
    """

    seeds: dict[str, str]
    equal: dict[str, list[str]]
    alike: dict[str, dict[str, float]]


ALONE: Others = {"seeds": {}, "equal": {}, "alike": {}}
# A copy with one of the five measures of a likeness changed throughout keeps 0.8 of it, less what is changed elsewhere. Runs of other
# conditions share next to nothing; those of the same conditions with other seeds may share anything up to all, so that being alike is a
# reason to make a run again, and proves nothing.
ALIKE = 0.75


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
        student = checked_id(name_of(entry), str(entry))
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
    """What the class knows beside one submission: seeds that are others', and runs that are equal to others', or alike.

    Runs of the same point and seed that were asked of both must be equal, and are no suspects.
    """
    seeds: dict[str, str] = {}
    others: list[tuple[str, RunFound]] = []
    for other, found in all_found.items():
        if other != student:
            seeds |= {str(seed): other for seed in drawn_seeds(rubric, other)}
            others += [(other, run) for run in found["runs"] if run["digest"]]
    asked_of_both = set(map(str, drawn_seeds(rubric, student))) & set(seeds)
    likenesses = [run["likeness"] for _, run in others]
    equal: dict[str, list[str]] = {}
    almost: dict[str, dict[str, float]] = {}
    for index, run in enumerate(all_found[student]["runs"]):
        if not run["digest"]:
            continue
        for place, part in enumerate(alike(run["likeness"], likenesses)):
            other, of_other = others[place]
            same = run["seed"] == of_other["seed"] and run["scenario"] == of_other["scenario"]
            if same and str(run["seed"]) in asked_of_both:
                continue
            if run["digest"] == of_other["digest"]:
                equal[str(index)] = list(dict.fromkeys([*equal.get(str(index), []), other]))
            elif part >= ALIKE:
                mine = almost.setdefault(str(index), {})
                mine[other] = max(float(part), mine.get(other, 0.0))
    return {"seeds": seeds, "equal": equal, "alike": {i: found for i, found in almost.items() if i not in equal}}
