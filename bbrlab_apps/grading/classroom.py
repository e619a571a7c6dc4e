"""A class: its submissions, and which of them have the same or nearly the same runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.words import in_short
from bbrlab_apps.grading.people import Roster
from bbrlab_apps.grading.personal import checked_id, drawn_seeds
from bbrlab_apps.grading.report import CLASS
from bbrlab_apps.grading.rubric import Rubric
from bbrlab_apps.grading.submission import ARCHIVES, PARTS
from bbrlab_apps.grading.submitted_content import SubmittedContent
from bbrlab_apps.grading.submitted_runs import SubmittedRun
from bbrlab_apps.grading.submitted_samples import similarity


class ClassMatches(TypedDict):
    """What other submissions of the class have in common with one."""

    seeds: dict[str, str]  # {seed of one of its runs: the other student to whom it was assigned}
    equal: dict[str, list[str]]  # {index of a run: the other students who have a run with the same values}
    # {index of a run: {other student: equal part of the two runs' fingerprints}}, of at least SIMILAR, without equal runs
    alike: dict[str, dict[str, float]]


NO_MATCHES: ClassMatches = {"seeds": {}, "equal": {}, "alike": {}}
# A copy with one of the five measures of a fingerprint changed throughout keeps 0.8 of it, less what is changed elsewhere. Runs of other
# conditions share next to nothing; those of the same conditions with other seeds may share anything up to all, so that similarity is a
# reason to make a run again, and proves nothing.
SIMILAR = 0.75


def name_of(submission: Path) -> str:
    """The student's id by a submission's name: a folder's name, or an archive's without its suffix."""
    name = submission.absolute().name
    suffix = next((s for s in ARCHIVES if name.lower().endswith(s)), "")
    if not suffix and not submission.is_dir():
        suffix = submission.suffix
    return name[: len(name) - len(suffix)]


def submissions_in(folder: Path) -> dict[str, Path]:
    """{student: submission} of a class's folder, named by the students' ids.

    Whatever is not hidden counts as a submission. What is neither a folder nor an archive is graded as unreadable, so that no
    student is left out in silence. UserError if there is none, the folder is itself one, two have the same name, or a name is no id.
    """
    submissions: dict[str, Path] = {}
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise files.explain(error, folder) from None
    if parts := [entry.name for entry in entries if entry.name in PARTS]:
        raise UserError(
            f"--class {folder}: has {', '.join(parts)}, so it looks like one submission, not like a class; leave --class out (bbrlab grade "
            f"{folder}), or move what is no submission away"
        )
    for entry in entries:
        student = checked_id(name_of(entry), str(entry))
        if student == CLASS:
            raise UserError(f"{entry}: nobody can be called {CLASS}, which is the name of the class's table; rename it")
        if student in submissions:
            raise UserError(
                f"{entry}: {student} has another submission, {submissions[student].name}; keep one (whatever is in {folder} is taken for one)"
            )
        submissions[student] = entry
    if not submissions:
        raise UserError(f"{folder}: has no submission: a folder or an archive for each student, named by the id")
    return submissions


def without_submission(roster: Roster, submissions: Mapping[str, Path]) -> list[str]:
    """The students of a course who have no submission. UserError if a submission is of nobody in it: by another id, other values
    are drawn."""
    if strangers := [submissions[name].name for name in submissions if name not in roster.ids]:
        raise UserError(
            f"{roster.file}, column '{roster.column}': has no student for {in_short(strangers)}; name each submission by its student's "
            "id, or add a row"
        )
    return [id for id in roster.ids if id not in submissions]


def class_matches(student: str, submitted: Mapping[str, SubmittedContent], rubric: Rubric) -> ClassMatches:
    """Other students' seeds that one student's runs have, and their runs that are equal or similar to the student's.

    A student is graded again if this changes, so nothing is in it of a student without a run in common.
    Runs of the same point and seed that were assigned to both must be equal, and are not suspicious.
    """
    seeds: dict[str, str] = {}
    other_runs: list[tuple[str, SubmittedRun]] = []
    for other, of_student in submitted.items():
        if other != student:
            seeds |= {str(seed): other for seed in drawn_seeds(rubric, other)}
            other_runs += [(other, run) for run in of_student["runs"] if run["digest"]]
    shared_seeds = set(map(str, drawn_seeds(rubric, student))) & set(seeds)
    fingerprints = [run["fingerprint"] for _, run in other_runs]
    equal: dict[str, list[str]] = {}
    similar: dict[str, dict[str, float]] = {}
    for index, run in enumerate(submitted[student]["runs"]):
        if not run["digest"]:
            continue
        for place, part in enumerate(similarity(run["fingerprint"], fingerprints)):
            other, of_other = other_runs[place]
            same = run["seed"] == of_other["seed"] and run["scenario"] == of_other["scenario"]
            if same and str(run["seed"]) in shared_seeds:
                continue
            if run["digest"] == of_other["digest"]:
                equal[str(index)] = list(dict.fromkeys([*equal.get(str(index), []), other]))
            elif part >= SIMILAR:
                parts = similar.setdefault(str(index), {})
                parts[other] = max(float(part), parts.get(other, 0.0))
    return {
        "seeds": {seed: seeds[seed] for run in submitted[student]["runs"] if (seed := str(run["seed"])) in seeds},
        "equal": equal,
        "alike": {i: parts for i, parts in similar.items() if i not in equal},
    }
