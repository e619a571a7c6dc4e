"""Grades a submission: its parts, its runs and those that are repeated, the rubric's claims, the answers (what one is worth: marks.py)."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bbrlab.base import files, outputs, paths
from bbrlab.base.errors import UserError
from bbrlab.base.words import in_short
from bbrlab.campaign.stages import PACKAGES
from bbrlab.claims.schema import rounded
from bbrlab.kernel.built import Kernel
from bbrlab_apps.grading.classroom import NO_MATCHES, ClassMatches
from bbrlab_apps.grading.grades import GRADE, Grade, Item
from bbrlab_apps.grading.judge import Judged, judge, points_of_figure
from bbrlab_apps.grading.limited import Refused
from bbrlab_apps.grading.load import load_rubric
from bbrlab_apps.grading.marks import NOBODY, ByPeople, late_cost, tolerance_of, worth
from bbrlab_apps.grading.personal import Personal, personal
from bbrlab_apps.grading.report import GRADESCOPE, PAGE, write_report
from bbrlab_apps.grading.rerun import DIFFERS, FAILED_HERE, NOT_RUN, SAME, Rerun, drawn_runs, ready, run_again
from bbrlab_apps.grading.rubric import Question, Rubric
from bbrlab_apps.grading.submission import PARTS
from bbrlab_apps.grading.submitted_content import SubmittedContent, read_limited
from bbrlab_apps.grading.submitted_runs import COPIED, OTHERS_RUN

CONTENT = "examined.json"
GRADE_FILES = (PAGE, GRADESCOPE, GRADE, CONTENT)
UNREADABLE = "cannot be read"
ENTRIES_MAX = 200_000  # of a submission, whose state decides whether it is graded anew
NOTHING: SubmittedContent = {
    "content_sha256": "", "incomplete": [], "notes": [], "scenario_wrong": ["there is no scenario that can be read"],
    "points": [], "answers": {}, "unanswered": {}, "runs": [],
}  # fmt: skip


def read_submission(path: Path, rubric_file: Path, student: str, out: Path) -> SubmittedContent:
    """Read a submission in a process with limits. The result is kept in ``out`` and taken from there if nothing changed. UserError
    for what is wrong with the rubric, the id or this machine; never for what is wrong with the submission."""
    return _content_of(_Task.of(path, rubric_file, student, out))


@dataclass(frozen=True)
class _Task:
    """A submission to grade, with its rubric, its student's assignment, the kernel, and the folder for its results."""

    path: Path
    rubric: Rubric
    personal: Personal
    kernel: Kernel
    out: Path
    key: str

    @staticmethod
    def of(path: Path, rubric_file: Path, student: str, out: Path) -> _Task:
        """UserError for what is wrong with the rubric, the id or this machine."""
        rubric = load_rubric(rubric_file)
        drawn, kernel = personal(rubric, student), ready(rubric)
        return _Task(path, rubric, drawn, kernel, out, _key(path, rubric_file, drawn, kernel))


def _content_of(task: _Task) -> SubmittedContent:
    """The content of the submission, from the folder of results if nothing changed since."""
    kept = task.out / CONTENT
    if kept.exists():
        content = files.read_json(kept)
        if content.get("key") == task.key:
            cached: SubmittedContent = content["examined"]
            return cached
    import pyarrow.parquet  # noqa: F401  # before the process forks, not in each of its children

    try:
        submitted = read_limited(task.path, task.rubric, task.personal, task.kernel)
    except Refused as error:
        submitted = {**NOTHING, "incomplete": [str(error)]}
    files.write_json(kept, {"made_by": outputs.OWNER, "key": task.key, "examined": submitted})
    return submitted


def check_out(out: Path, submission: Path) -> None:
    """UserError if a student's folder of results is no place for a grade, which has the right answers: it lies in the submission, has
    other files and no grade (as a submission has), or a file that is not of a grade and that a grade would replace."""
    if Path(os.path.realpath(out)).is_relative_to(os.path.realpath(submission)):
        raise UserError(
            f"--out {out}: lies in the submission {submission}, and a grade has the right answers; choose another folder"
        )
    if others := _names_without_grade(out):
        raise UserError(
            f"--out {out}: has {in_short(others, 3)} and no grade; it may be a submission, and a grade has the right answers; choose "
            "another folder"
        )
    for name in GRADE_FILES:
        outputs.check_file("--out", out / name, outputs.PAGE if name == PAGE else outputs.JSON)


def _names_without_grade(folder: Path) -> list[str]:
    """What is in a folder and is of no grade, if there is no grade, either. Hidden files, which systems make, do not count."""
    if not folder.is_dir() or (folder / CONTENT).exists() or (folder / GRADE).exists():
        return []
    try:
        return sorted(e.name for e in folder.iterdir() if e.name not in GRADE_FILES and not e.name.startswith("."))
    except OSError as error:
        raise files.explain(error, folder) from None


def grade_submission(
    path: Path,
    rubric_file: Path,
    student: str,
    out: Path,
    matches: ClassMatches = NO_MATCHES,
    by_people: ByPeople = NOBODY,
) -> Grade:
    """Grade a submission and write its report (report.write_report()); as read_submission().

    Args:
        matches: with other submissions of the class.
        by_people: lateness, and marks that people gave.
    """
    task = _Task.of(path, rubric_file, student, out)
    submitted = _content_of(task)
    context = hashlib.sha256(json.dumps([matches, by_people], sort_keys=True).encode())
    key = f"{task.key}-{context.hexdigest()[:16]}"
    kept = out / GRADE
    if kept.exists():
        before: Grade = files.read_json(kept)
        if before.get("key") == key:
            write_report(before, out)
            return before
    with tempfile.TemporaryDirectory(prefix="bbrlab-grade-") as scratch:
        grade = _graded(key, task, submitted, matches, by_people, Path(scratch))
    files.write_json(kept, grade)
    write_report(grade, out)
    return grade


def _graded(
    key: str, task: _Task, submitted: SubmittedContent, matches: ClassMatches, by_people: ByPeople, scratch: Path
) -> Grade:
    rubric, personal, kernel = task.rubric, task.personal, task.kernel
    runs = submitted["runs"]
    flags = [(UNREADABLE, submitted["incomplete"][0])] if not submitted["content_sha256"] else []
    flags += [(kind, f"{run['name']}: {text}") for run in runs for kind, text in run["flags"]]
    for run in runs:
        owner = matches["seeds"].get(str(run["seed"]))
        if owner is not None and run["seed"] not in personal.seeds:
            flags.append((OTHERS_RUN, f"{run['name']}: seed {run['seed']} was asked of {owner}"))
    suspects = {int(i) for i in (*matches["equal"], *matches["alike"])}
    drawn = drawn_runs(rubric, personal, points_of_figure(submitted), runs, suspects)
    reruns = run_again(rubric, runs, drawn.runs, kernel, scratch)
    outcome_of = {r["run"]: r["outcome"] for r in reruns}
    for rerun in reruns:
        if rerun["kind"] and rerun["run"] not in suspects:
            flags.append((rerun["kind"], f"{rerun['name']}: {rerun['told']}"))
    for index in sorted(suspects):
        if outcome_of.get(index) == SAME:
            continue  # other conditions and seeds do not always give other results: this one is the student's own
        proof = {DIFFERS: "; made again with its own seed it is another"}.get(
            outcome_of.get(index, ""), "; it was not made again"
        )
        flags.append((COPIED, f"{runs[index]['name']}: has {_copied_from(matches, index)}{proof}"))
    disproved = {r["run"] for r in reruns if r["outcome"] == DIFFERS}
    counting = [i for i, run in enumerate(runs) if not run["wrong"] and i not in disproved]
    judged = judge(personal, submitted, counting, scratch)
    items = [
        *_checks(rubric, personal, submitted, reruns, drawn.lost),
        *(_claim(rubric, id, judged[id]) for id in judged),
        *(_question(question, submitted, judged, by_people["marks"]) for question in personal.assignment.questions),
    ]
    pending = [q.id for q in personal.assignment.questions if q.person is not None and q.id not in by_people["marks"]]
    reached = sum(i["score"] for i in items)
    taken, late = late_cost(rubric.late, by_people["late_days"], reached)
    unfinished = any(rerun["kind"] == FAILED_HERE for rerun in reruns)  # to be tried again
    return {
        "made_by": outputs.OWNER, "key": "" if unfinished else key, "student": personal.student, "assignment": rubric.name, "title": rubric.title,
        "parameters": dict(personal.parameters), "seeds": personal.seeds,
        "score": round(reached - taken, 2), "of": rubric.total,
        "flags": flags, "notes": submitted["notes"], "items": [i for i in items if i["of"] > 0],
        "runs": [
            {"name": r["name"], "seed": r["seed"], "counts": i in counting, "told": [*r["wrong"], *r["notes"]]}
            for i, r in enumerate(runs)
        ],
        "reruns": reruns, "pending": pending, "late": late,
    }  # fmt: skip


def _copied_from(matches: ClassMatches, index: int) -> str:
    """Which students' runs have the values of a run, in words."""
    if equal := matches["equal"].get(str(index)):
        return f"the same values as a run of {', '.join(equal)}"
    similar = sorted(matches["alike"][str(index)].items(), key=lambda item: -item[1])
    return "mostly the values of a run of " + ", ".join(
        f"{name} ({part:.0%} of those compared)" for name, part in similar
    )


LISTED = 20  # runs of a kind, at most, that are named


def _item(id: str, title: str, score: float, of: float, texts: list[str], for_teacher: Sequence[str] = ()) -> Item:
    score = round(score, 2)
    return {"id": id, "title": title, "score": score, "of": of, "told": texts, "for_teacher": list(for_teacher)}


def _checks(
    rubric: Rubric, personal: Personal, submitted: SubmittedContent, reruns: list[Rerun], lost_runs: list[str]
) -> list[Item]:
    """The items that every assignment has."""
    points, runs = rubric.points, submitted["runs"]
    incomplete, differences = submitted["incomplete"], submitted["scenario_wrong"]
    expected = max(len(submitted["points"]), len(personal.assignment.points)) * rubric.seeds
    valid = sum(not run["wrong"] for run in runs)
    texts = [
        f"{valid} of {expected} runs are there, whole, of the asked conditions, seeds and kernel",
        *problems_of_runs(personal, submitted),
    ]
    rerun_texts, rerun_details, part = rerun_result(reruns, lost_runs)
    return [
        _item("complete", "All parts are there", points.complete * _whole_part(submitted), points.complete, incomplete or ["every part is there"]),
        _item("scenario", "Scenario as asked", 0 if differences else points.scenario, points.scenario, differences or ["the scenario is the one that was asked for"]),
        _item("runs", "Runs whole and unedited", points.runs * min(1.0, valid / expected), points.runs, texts),
        _item("rerun", "Runs made again", points.rerun * part, points.rerun, rerun_texts, rerun_details),
    ]  # fmt: skip


def _whole_part(submitted: SubmittedContent) -> float:
    """The undamaged part of a submission's four parts, 0 to 1; 0 if it cannot be read, or something else is wrong."""
    incomplete = submitted["incomplete"]
    damaged = {part for part in PARTS for text in incomplete if text.startswith(part)}
    if not submitted["content_sha256"] or not all(text.startswith(PARTS) for text in incomplete):
        return 0.0
    return 1 - len(damaged) / len(PARTS)


def rerun_result(reruns: list[Rerun], lost: list[str]) -> tuple[list[str], list[str], float]:
    """The result of the repeated runs: a sentence for the student, one line for each run for the teacher, and the equal part, 0 to 1.

    A drawn run that is missing counts as different. One that could not be repeated here does not count. The student does not learn
    which runs were drawn: who knows them would make only those.
    """
    ran = [r for r in reruns if r["outcome"] != NOT_RUN]
    matching, count = sum(r["outcome"] == SAME for r in ran), len(ran) + len(lost)
    summary = f"{matching} of {count} runs that were drawn to be made again are the same, byte for byte"
    if lost:
        summary += f"; {len(lost)} of them are not there, or do not count"
    if not count:
        summary = "no run of the sample was made again here; a teacher decides"
    details = [f"{r['name']}: {'not run: ' if r['outcome'] == NOT_RUN else ''}{r['told']}" for r in reruns]
    return [summary], [*details, *(f"drawn: {text}" for text in lost)], matching / count if count else 0.0


def problems_of_runs(personal: Personal, submitted: SubmittedContent) -> list[str]:
    """Why runs do not count, and which are missing; at most LISTED of either, and how many more there are."""
    wrong = [f"{run['name']}: {text}" for run in submitted["runs"] for text in run["wrong"]]
    return [
        text
        for texts in (wrong, _missing_runs(personal, submitted))
        for text in (*texts[:LISTED], *([f"and {len(texts) - LISTED} more"] if len(texts) > LISTED else []))
    ]


def _missing_runs(personal: Personal, submitted: SubmittedContent) -> list[str]:
    """The assigned runs of which there is no result folder."""
    present = {(run["point"], run["seed"]) for run in submitted["runs"]}
    missing: list[str] = []
    for i, point in enumerate(submitted["points"]):
        conditions = ", ".join(f"{path} {value}" for path, value in point["values"].items())
        missing += [
            f"no run with {conditions + ' and ' if conditions else ''}seed {seed}"
            for seed in personal.seeds
            if (i, seed) not in present
        ]
    return missing


def _claim(rubric: Rubric, id: str, judged: Judged) -> Item:
    """The item of a claim."""
    claim = next(c for c in rubric.claims if c.id == id)
    right = judged["verdict"] == claim.verdict
    texts = [f"{judged['verdict'] or 'no verdict'}{_measured(judged)}", *([judged["told"]] if judged["told"] else [])]
    wanted = [f"points for: {claim.verdict}; tolerance: {claim.because}"]
    return _item(f"claim {id}", claim.says, claim.points if right else 0, claim.points, texts, wanted)


def _measured(judged: Judged) -> str:
    """The judged number with its interval, in words."""
    if judged["number"] is None:
        return ""
    text = f": {rounded(judged['number'], 4)}"
    if judged["low"] is not None and judged["high"] is not None:
        text += f" ({rounded(judged['low'], 4)} to {rounded(judged['high'], 4)})"
    return text


def _question(
    question: Question,
    submitted: SubmittedContent,
    judged: Mapping[str, Judged],
    marks: Mapping[str, tuple[float, str]],
) -> Item:
    """The item of a question."""
    given = submitted["answers"].get(question.id)
    if question.person is not None:
        return _by_person(question, given, submitted["unanswered"].get(question.id, "no answer"), marks)
    right, tolerance, why = _right_answer(question, judged)
    if right is None:
        wanted = f"no right answer: {why}"
    else:
        near = f" ± {rounded(tolerance, 3)}" if tolerance else ""
        wanted = f"right: {right if isinstance(right, str) else rounded(right, 6)}{near}"
    part = 0.0
    if given is None:
        text = submitted["unanswered"].get(question.id, "no answer")
    elif right is None:
        text = f"your runs give no right answer to compare with ({why or 'no number'})"
    else:
        part, hint = worth(question, given, right, tolerance)
        verdict = "right" if part == 1 else "right in part" if part else "not right"
        answer = given if isinstance(given, str) else rounded(given, 6)
        text = f"{answer}: {verdict}{f'. {hint}' if hint else ''}"
    return _item(question.id, question.asks, question.points * part, question.points, [text], [wanted])


def _by_person(question: Question, given: Any, why: str, marks: Mapping[str, tuple[float, str]]) -> Item:
    """The item of a question that a person grades."""
    points, comment = marks.get(question.id, (0.0, ""))
    if question.id in marks:
        texts = [comment or "graded by a person"]
    else:
        texts = [why] if given is None else ["a person will grade this answer"]
    wanted = [f"looked for: {question.person}", f"answer: {given if given is not None else why}"]
    return _item(question.id, question.asks, min(points, question.points), question.points, texts, wanted)


def _right_answer(question: Question, judged: Mapping[str, Judged]) -> tuple[str | float | None, float, str]:
    """The right answer (None if there is none), a number's tolerance, and why there is no right answer."""
    right: str | float | None
    why = ""
    if question.verdict_of is not None:
        of_claim = judged[question.verdict_of]
        return of_claim["verdict"] or None, 0.0, of_claim["told"]
    if question.choice is not None:
        return question.choice, 0.0, ""
    if question.number_of is not None:
        right, why = judged[question.number_of]["number"], judged[question.number_of]["told"]
    else:
        right = float(question.value or 0)
    if right is None:
        return None, 0.0, why
    return right, tolerance_of(question, right), ""


def _key(path: Path, rubric_file: Path, personal: Personal, kernel: Kernel) -> str:
    """A hash of all that decides a grade: rubric, student, the submission's files as they are now, this package, the kernel."""
    digest = hashlib.sha256()
    asked = personal.assignment.scenario.model_dump_json(exclude_unset=True)  # with the rows of a file of changes
    for part in (files.sha256(rubric_file), asked, personal.student, kernel.key, _package_sha256()):
        digest.update(part.encode() + b"\0")
    count = 0
    for parent, folders, names in (
        os.walk(os.fsencode(path)) if path.is_dir() else [(os.fsencode(path.parent), [], [os.fsencode(path.name)])]
    ):
        folders.sort()
        for name in sorted([*folders, *names]):
            status = os.lstat(os.path.join(parent, name))
            # The time of the last change of the file's entry (ctime) cannot be set: a file that is exchanged for one of the same size and
            # time is noticed by it.
            times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
            digest.update(parent + b"/" + name + f"\0{status.st_size} {times} {status.st_mode}\0".encode())
            count += 1
            if count > ENTRIES_MAX:  # more than any rubric allows, so that nothing of it is read
                return digest.hexdigest()[:32]
    return digest.hexdigest()[:32]


@functools.cache
def _package_sha256() -> str:
    """SHA-256 of this package's and the guest's code."""
    digest = hashlib.sha256()
    for path in sorted(
        [*(p for name in PACKAGES for p in (paths.ROOT / name).rglob("*.py")), *paths.GUEST_CODE.glob("*.py")]
    ):
        digest.update(files.sha256(path).encode())
    return digest.hexdigest()
