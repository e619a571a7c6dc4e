"""Puts a grade together: what was found in a submission, what came of the runs made again, claims, answers."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bbrlab.base import files, paths
from bbrlab.campaign.stages import PACKAGES
from bbrlab.claims.schema import rounded
from bbrlab.kernel.built import Kernel
from bbrlab_apps.grading.classroom import ALONE, Others
from bbrlab_apps.grading.examine import Examined, examine
from bbrlab_apps.grading.feedback import NOBODY, ByPeople, late_cost, worth
from bbrlab_apps.grading.grades import GRADE, Grade, Item
from bbrlab_apps.grading.handed_runs import COPIED, OTHERS_RUN
from bbrlab_apps.grading.judge import Judged, judge, points_of_figure
from bbrlab_apps.grading.limited import Refused, run_limited
from bbrlab_apps.grading.load import load_rubric
from bbrlab_apps.grading.personal import Personal, personal
from bbrlab_apps.grading.report import write_report
from bbrlab_apps.grading.rerun import DIFFERS, FAILED_HERE, NOT_RUN, SAME, Rerun, drawn_runs, ready, run_again
from bbrlab_apps.grading.rubric import Question, Rubric
from bbrlab_apps.grading.submission import ANSWERS, NOTEBOOK, RESULTS, SCENARIO

EXAMINED = "examined.json"
UNREADABLE = "cannot be read"
PARTS = (SCENARIO, ANSWERS, NOTEBOOK, RESULTS)  # of a submission
ENTRIES_MAX = 200_000  # of a submission that are looked at to see whether it has changed
NOTHING: Examined = {
    "content_sha256": "", "incomplete": [], "notes": [], "scenario_wrong": ["there is no scenario that can be read"],
    "points": [], "answers": {}, "unanswered": {}, "runs": [],
}  # fmt: skip


def examine_submission(path: Path, rubric_file: Path, student: str, out: Path) -> Examined:
    """Look at a submission in a process with limits; what was found is kept in ``out`` and taken from there if nothing changed.

    Args:
        path: folder or archive.
        rubric_file: RUBRIC.yaml.
        student: the id.
        out: the student's folder of results.

    Raises:
        UserError: for what is wrong with the rubric, the id or this machine; never for what is wrong with the submission.
    """
    return _examined(_Task.of(path, rubric_file, student, out))


@dataclass(frozen=True)
class _Task:
    """A submission, what it is graded by, and where that is kept."""

    path: Path
    rubric: Rubric
    own: Personal
    kernel: Kernel
    out: Path
    key: str

    @staticmethod
    def of(path: Path, rubric_file: Path, student: str, out: Path) -> _Task:
        """UserError for what is wrong with the rubric, the id or this machine."""
        rubric = load_rubric(rubric_file)
        own, kernel = personal(rubric, student), ready(rubric)
        return _Task(path, rubric, own, kernel, out, _key(path, rubric_file, own, kernel))


def _examined(task: _Task) -> Examined:
    """What was found in a submission, now or before."""
    kept = task.out / EXAMINED
    if kept.exists():
        content = files.read_json(kept)
        if content.get("key") == task.key:
            found: Examined = content["examined"]
            return found
    import pyarrow.parquet  # noqa: F401  # before the process forks, not in each of its children

    limits = task.rubric.limits
    with tempfile.TemporaryDirectory(prefix="bbrlab-grade-") as scratch:
        try:
            examined: Examined = run_limited(
                lambda: examine(task.path, task.rubric, task.own, task.kernel, Path(scratch)),
                seconds=limits.examine_s, memory_bytes=int(limits.memory_mb * 1e6), file_bytes=int(limits.submission_mb * 1e6),
            )  # fmt: skip
        except Refused as error:
            examined = {**NOTHING, "incomplete": [str(error)]}
    files.write_json(kept, {"key": task.key, "examined": examined})
    return examined


def grade_submission(
    path: Path, rubric_file: Path, student: str, out: Path, others: Others = ALONE, by_people: ByPeople = NOBODY
) -> Grade:
    """Grade a submission and write its report (report.write_report()); as examine_submission().

    Args:
        by_people: what people said of it: when it came, and marks.
    """
    task = _Task.of(path, rubric_file, student, out)
    examined = _examined(task)
    told = hashlib.sha256(json.dumps([others, by_people], sort_keys=True).encode())
    key = f"{task.key}-{told.hexdigest()[:16]}"
    kept = out / GRADE
    if kept.exists():
        before: Grade = files.read_json(kept)
        if before.get("key") == key:
            write_report(before, out)
            return before
    with tempfile.TemporaryDirectory(prefix="bbrlab-grade-") as scratch:
        grade = _graded(key, task, examined, others, by_people, Path(scratch))
    files.write_json(kept, grade)
    write_report(grade, out)
    return grade


def _graded(key: str, task: _Task, examined: Examined, others: Others, by_people: ByPeople, scratch: Path) -> Grade:
    rubric, own, kernel = task.rubric, task.own, task.kernel
    runs = examined["runs"]
    flags = [(UNREADABLE, examined["incomplete"][0])] if not examined["content_sha256"] else []
    flags += [(kind, f"{run['name']}: {text}") for run in runs for kind, text in run["flags"]]
    for run in runs:
        owner = others["seeds"].get(str(run["seed"]))
        if owner is not None and run["seed"] not in own.seeds:
            flags.append((OTHERS_RUN, f"{run['name']}: seed {run['seed']} was asked of {owner}"))
    suspects = {int(i) for i in (*others["equal"], *others["alike"])}
    drawn = drawn_runs(rubric, own, points_of_figure(examined), runs, suspects)
    reruns = run_again(rubric, runs, drawn.runs, kernel, scratch)
    outcome_of = {r["run"]: r["outcome"] for r in reruns}
    for again in reruns:
        if again["kind"] and again["run"] not in suspects:
            flags.append((again["kind"], f"{again['name']}: {again['told']}"))
    for index in sorted(suspects):
        if outcome_of.get(index) == SAME:
            continue  # other conditions and seeds do not always give other results: this one is the student's own
        proof = {DIFFERS: "; made again with its own seed it is another"}.get(
            outcome_of.get(index, ""), "; it was not made again"
        )
        flags.append((COPIED, f"{runs[index]['name']}: has {_as_whose(others, index)}{proof}"))
    disproved = {r["run"] for r in reruns if r["outcome"] == DIFFERS}
    counting = [i for i, run in enumerate(runs) if not run["wrong"] and i not in disproved]
    judged = judge(own, examined, counting, scratch)
    items = [
        *_checks(rubric, own, examined, reruns, drawn.lost),
        *(_claim(rubric, id, judged[id]) for id in judged),
        *(_question(question, examined, judged, by_people["marks"]) for question in own.asked.questions),
    ]
    pending = [q.id for q in own.asked.questions if q.person is not None and q.id not in by_people["marks"]]
    reached = sum(i["score"] for i in items)
    taken, late = late_cost(rubric.late, by_people["late_days"], reached)
    unfinished = any(again["kind"] == FAILED_HERE for again in reruns)  # to be tried again
    return {
        "key": "" if unfinished else key, "student": own.student, "assignment": rubric.name, "title": rubric.title,
        "parameters": dict(own.parameters), "seeds": own.seeds,
        "score": round(reached - taken, 2), "of": rubric.total,
        "flags": flags, "notes": examined["notes"], "items": [i for i in items if i["of"] > 0],
        "runs": [
            {"name": r["name"], "seed": r["seed"], "counts": i in counting, "told": [*r["wrong"], *r["notes"]]}
            for i, r in enumerate(runs)
        ],
        "reruns": reruns, "pending": pending, "late": late,
    }  # fmt: skip


def _as_whose(others: Others, index: int) -> str:
    """Whose run has the values of a run, in words."""
    if equal := others["equal"].get(str(index)):
        return f"the same values as a run of {', '.join(equal)}"
    found = sorted(others["alike"][str(index)].items(), key=lambda item: -item[1])
    return "mostly the values of a run of " + ", ".join(
        f"{name} ({part:.0%} of those compared)" for name, part in found
    )


LISTED = 20  # runs of a kind that are named one by one


def _item(id: str, title: str, score: float, of: float, told: list[str], for_teacher: list[str] | None = None) -> Item:
    return {
        "id": id,
        "title": title,
        "score": round(score, 2),
        "of": of,
        "told": told,
        "for_teacher": for_teacher or [],
    }


def _checks(rubric: Rubric, own: Personal, examined: Examined, reruns: list[Rerun], lost_runs: list[str]) -> list[Item]:
    """The checks that every assignment has."""
    points, runs = rubric.points, examined["runs"]
    incomplete, wrong = examined["incomplete"], examined["scenario_wrong"]
    asked = max(len(examined["points"]), len(own.asked.points)) * rubric.seeds
    good = sum(not run["wrong"] for run in runs)
    lost = [f"{run['name']}: {text}" for run in runs for text in run["wrong"]]
    told = [
        f"{good} of {asked} runs are there, whole, of the asked conditions, seeds and kernel",
        *lost[:LISTED],
        *missing_runs(own, examined)[:LISTED],
    ]
    again, which, part = made_again(reruns, lost_runs)
    return [
        _item("complete", "All parts are there", points.complete * _whole_part(examined), points.complete, incomplete or ["every part is there"]),
        _item("scenario", "Scenario as asked", 0 if wrong else points.scenario, points.scenario, wrong or ["the scenario is the one that was asked for"]),
        _item("runs", "Runs whole and unedited", points.runs * min(1.0, good / asked), points.runs, told),
        _item("rerun", "Runs made again", points.rerun * part, points.rerun, again, which),
    ]  # fmt: skip


def _whole_part(examined: Examined) -> float:
    """How much of a submission's four parts is whole, of 1; nothing if something else is wrong, or it cannot be read."""
    incomplete = examined["incomplete"]
    wrong = {part for part in PARTS for text in incomplete if text.startswith(part)}
    if not examined["content_sha256"] or not all(text.startswith(PARTS) for text in incomplete):
        return 0.0
    return 1 - len(wrong) / len(PARTS)


def made_again(reruns: list[Rerun], lost: list[str]) -> tuple[list[str], list[str], float]:
    """What came of the runs made again: in words for the student; which ones they were, for the teacher; what part is the same.

    What was drawn and is not there is not the same. What could not be run says nothing of the student, so that it costs nothing beside
    others that could. A student who was told which runs are drawn would make only those.
    """
    ran = [r for r in reruns if r["outcome"] != NOT_RUN]
    same, count = sum(r["outcome"] == SAME for r in ran), len(ran) + len(lost)
    told = f"{same} of {count} runs that were drawn to be made again are the same, byte for byte"
    if lost:
        told += f"; {len(lost)} of them are not there, or do not count"
    if not count:
        told = "no run of the sample was made again here; a teacher decides"
    which = [f"{r['name']}: {'not run: ' if r['outcome'] == NOT_RUN else ''}{r['told']}" for r in reruns]
    return [told], [*which, *(f"drawn: {text}" for text in lost)], same / count if count else 0.0


def missing_runs(own: Personal, examined: Examined) -> list[str]:
    """The asked runs that are in no result folder, whether good or not."""
    there = {(run["point"], run["seed"]) for run in examined["runs"]}
    lacking: list[str] = []
    for i, point in enumerate(examined["points"]):
        told = ", ".join(f"{path} {value}" for path, value in point["values"].items())
        lacking += [
            f"no run with {told + ' and ' if told else ''}seed {seed}" for seed in own.seeds if (i, seed) not in there
        ]
    return lacking


def _claim(rubric: Rubric, id: str, found: Judged) -> Item:
    """Points of a claim."""
    asked = next(c for c in rubric.claims if c.id == id)
    right = found["verdict"] == asked.verdict
    told = [f"{found['verdict'] or 'no verdict'}{_measured(found)}", *([found["told"]] if found["told"] else [])]
    wanted = [f"points for: {asked.verdict}; tolerance: {asked.because}"]
    return _item(f"claim {id}", asked.says, asked.points if right else 0, asked.points, told, wanted)


def _measured(found: Judged) -> str:
    """The judged number with its interval, in words."""
    if found["number"] is None:
        return ""
    text = f": {rounded(found['number'], 4)}"
    if found["low"] is not None and found["high"] is not None:
        text += f" ({rounded(found['low'], 4)} to {rounded(found['high'], 4)})"
    return text


def _question(
    question: Question, examined: Examined, judged: Mapping[str, Judged], marks: Mapping[str, tuple[float, str]]
) -> Item:
    """Points of an answer."""
    given = examined["answers"].get(question.id)
    if question.person is not None:
        return _by_person(question, given, examined["unanswered"].get(question.id, "no answer"), marks)
    right, tolerance, why = _right_answer(question, judged)
    if right is None:
        wanted = [f"no right answer: {why}"]
    else:
        wanted = [
            f"right: {right if isinstance(right, str) else rounded(right, 6)}"
            + (f" ± {rounded(tolerance, 3)}" if tolerance else "")
        ]
    if given is None:
        return _item(
            question.id,
            question.asks,
            0,
            question.points,
            [examined["unanswered"].get(question.id, "no answer")],
            wanted,
        )
    if right is None:
        told = [f"your runs give no right answer to compare with ({why or 'no number'})"]
        return _item(question.id, question.asks, 0, question.points, told, wanted)
    part, hint = worth(question, given, right, tolerance)
    verdict = "right" if part == 1 else "right in part" if part else "not right"
    said = given if isinstance(given, str) else rounded(given, 6)
    told = [f"{said}: {verdict}{f'. {hint}' if hint else ''}"]
    return _item(question.id, question.asks, question.points * part, question.points, told, wanted)


def _by_person(question: Question, given: Any, why: str, marks: Mapping[str, tuple[float, str]]) -> Item:
    """Points that a person gave, or gives later."""
    points, comment = marks.get(question.id, (0.0, ""))
    if question.id in marks:
        told = [comment or "graded by a person"]
    else:
        told = [why] if given is None else ["a person will grade this answer"]
    wanted = [f"looked for: {question.person}", f"answer: {given if given is not None else why}"]
    return _item(question.id, question.asks, min(points, question.points), question.points, told, wanted)


def _right_answer(question: Question, judged: Mapping[str, Judged]) -> tuple[str | float | None, float, str]:
    """The right answer (None: there is none), the tolerance of a number, and why there is none."""
    right: str | float | None
    why = ""
    if question.verdict_of is not None:
        found = judged[question.verdict_of]
        return found["verdict"] or None, 0.0, found["told"]
    if question.choice is not None:
        return question.choice, 0.0, ""
    if question.number_of is not None:
        right, why = judged[question.number_of]["number"], judged[question.number_of]["told"]
    else:
        right = float(question.value or 0)
    if right is None:
        return None, 0.0, why
    if question.within is not None:
        return right, float(question.within), ""
    return right, abs(right) * (question.within_percent or 0.0) / 100, ""


def _key(path: Path, rubric_file: Path, own: Personal, kernel: Kernel) -> str:
    """What decides what is found: rubric, student, the submission's files as they are now, this package, the kernel."""
    digest = hashlib.sha256()
    for part in (files.sha256(rubric_file), own.student, kernel.key, _package_sha256()):
        digest.update(part.encode() + b"\0")
    count = 0
    for parent, folders, names in (
        os.walk(os.fsencode(path)) if path.is_dir() else [(os.fsencode(path.parent), [], [os.fsencode(path.name)])]
    ):
        folders.sort()
        for name in sorted([*folders, *names]):
            status = os.lstat(os.path.join(parent, name))
            # The time of the last change of the file's entry (ctime) cannot be set: who exchanges a file for one of the same size and
            # time is found by it.
            times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
            digest.update(parent + b"/" + name + f"\0{status.st_size} {times} {status.st_mode}\0".encode())
            count += 1
            if count > ENTRIES_MAX:  # more than any rubric allows, so that nothing of it is read
                return digest.hexdigest()[:32]
    return digest.hexdigest()[:32]


@functools.cache
def _package_sha256() -> str:
    """SHA-256 of the code that grades and of the guest's."""
    digest = hashlib.sha256()
    for path in sorted(
        [*(p for name in PACKAGES for p in (paths.ROOT / name).rglob("*.py")), *paths.GUEST_CODE.glob("*.py")]
    ):
        digest.update(files.sha256(path).encode())
    return digest.hexdigest()
