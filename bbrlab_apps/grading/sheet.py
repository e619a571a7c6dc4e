"""A student's sheet: the assignment without right answers and salt; and checking a submission by it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.strict import Strict, first_problem, read_model
from bbrlab.base.yaml_files import dump_yaml
from bbrlab.results.verdicts import FINAL
from bbrlab_apps.grading.grade import problems_of_runs
from bbrlab_apps.grading.limited import Refused
from bbrlab_apps.grading.personal import Personal, checked_id, filled_in
from bbrlab_apps.grading.rerun import ready
from bbrlab_apps.grading.rubric import Limits, Question, Rubric, Scalar, Values
from bbrlab_apps.grading.submission import ANSWERS, NOTEBOOK, SCENARIO, SHEET
from bbrlab_apps.grading.submitted_content import SubmittedContent, read_limited

NO_SALT = "a sheet has no salt"


class SheetQuestion(Strict):
    """A question as a student sees it."""

    id: str
    asks: str
    answer: Literal["number", "choice", "text"]
    choices: list[str] = Field([])


class Sheet(Strict):
    """The content of SHEET: one student's assignment."""

    assignment: str
    title: str
    student: str
    parameters: dict[str, Scalar]
    seeds: list[int]
    scenario: dict[str, Any]
    free: dict[str, Values] = Field({})
    kernel: str | None = Field(None)
    questions: list[SheetQuestion]
    limits: Limits = Field(Limits())


def sheet_of(rubric: Rubric, personal: Personal) -> Sheet:
    """The sheet of a student."""
    return Sheet(
        assignment=rubric.name, title=rubric.title, student=personal.student, parameters=personal.parameters, seeds=personal.seeds,
        scenario=personal.assignment.scenario.model_dump(exclude_unset=True), free=rubric.free, kernel=rubric.kernel,
        questions=[_sheet_question(q) for q in personal.assignment.questions], limits=rubric.limits,
    )  # fmt: skip


def _sheet_question(question: Question) -> SheetQuestion:
    answer: Literal["number", "choice", "text"] = (
        "text" if question.person is not None else "choice" if question.options else "number"
    )
    return SheetQuestion(id=question.id, asks=question.asks, answer=answer, choices=question.options)


def write_sheet(rubric: Rubric, personal: Personal, folder: Path) -> list[str]:
    """Write a student's folder: SHEET, the scenario, answers to fill in, and an empty notebook. Returns the names of those parts that
    are there and are others, which are kept: somebody may have filled them in."""
    sheet = sheet_of(rubric, personal)
    folder.mkdir(parents=True, exist_ok=True)
    files.write_text(folder / SHEET, dump_yaml(sheet.model_dump(exclude_defaults=True)))
    lines = [f"student: {dump_yaml(personal.student).splitlines()[0]}", "answers:"]
    for question in sheet.questions:
        kinds = {
            "number": "a number",
            "choice": f"one of: {', '.join(question.choices)}",
            "text": "a text; a person reads it",
        }
        lines += [f"  # {' '.join(question.asks.split())} ({kinds[question.answer]})", f"  {question.id}:"]
    cell = {
        "cell_type": "markdown",
        "metadata": {},
        "id": "how",
        "source": [f"# {rubric.title}\n", "How I came to my answers.\n"],
    }
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    parts = {
        SCENARIO: dump_yaml(sheet.scenario),
        ANSWERS: "\n".join([*lines, ""]),
        NOTEBOOK: json.dumps(notebook, indent=1) + "\n",
    }
    kept = [name for name, text in parts.items() if os.path.lexists(folder / name) and not _has(folder / name, text)]
    for name in parts.keys() - kept:
        files.write_text(folder / name, parts[name])
    return kept


def _has(file: Path, text: str) -> bool:
    data = text.encode()
    return file.is_file() and file.stat().st_size == len(data) and file.read_bytes() == data


@dataclass(frozen=True)
class Check:
    """A check of a submission."""

    what: str
    problems: list[str]


def check_submission(path: Path, sheet_file: Path) -> tuple[Sheet, list[Check], list[str]]:
    """Check a submission by its sheet: whether it is complete, not whether it is right.

    UserError for what is wrong with the sheet or this machine.

    Returns:
        The sheet, the checks, and notes.
    """
    sheet = read_model(sheet_file, Sheet, "give the sheet.yaml that your teacher gave you: --sheet FILE")
    rubric = _rubric_of(sheet, sheet_file)
    personal = Personal(
        checked_id(sheet.student, f"{sheet_file}: student"),
        sheet.parameters,
        sorted(sheet.seeds),
        filled_in(rubric, {}),
    )
    kernel = ready(rubric)
    try:
        submitted = read_limited(path, rubric, personal, kernel)
    except Refused as error:
        return sheet, [Check("all parts are there and can be read", [str(error)])], []
    return sheet, _checks(submitted, personal), submitted["notes"]


def _checks(submitted: SubmittedContent, personal: Personal) -> list[Check]:
    unanswered = [f"{id}: {why}" for id, why in submitted["unanswered"].items()]
    return [
        Check("all parts are there and can be read", submitted["incomplete"]),
        Check("the scenario is the one that was asked for", submitted["scenario_wrong"]),
        Check("every run is there, whole and of your seeds", problems_of_runs(personal, submitted)),
        Check("every question has an answer of its kind", unanswered),
    ]


def _rubric_of(sheet: Sheet, file: Path) -> Rubric:
    """A rubric for a sheet, with placeholders for right answers."""
    questions = []
    for q in sheet.questions:
        choices = q.choices or list(FINAL)
        kinds: dict[str, dict[str, Any]] = {
            "number": {"value": 0, "within": 0}, "text": {"person": "nothing here"}, "choice": {"choices": choices, "choice": choices[0]},
        }  # fmt: skip
        kind = kinds[q.answer]
        questions.append({"id": q.id, "asks": q.asks, "points": 0, **kind})
    try:
        return Rubric.model_validate({
            "name": sheet.assignment, "title": sheet.title, "salt": NO_SALT, "seeds": len(sheet.seeds), "scenario": sheet.scenario,
            "free": sheet.free, "kernel": sheet.kernel, "points": {"complete": 1}, "rerun": 0, "questions": questions, "limits": sheet.limits,
        })  # fmt: skip
    except ValidationError as error:
        raise UserError(f"{file}: is no sheet that `bbrlab assign --sheets` wrote ({first_problem(error)})") from None
