"""The answers of a submission: which are valid, and why others are not."""

from __future__ import annotations

import math
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import WORDS
from bbrlab_apps.grading.personal import Personal, foreign_letters, one_form
from bbrlab_apps.grading.submission import ANSWERS, Submission, read_foreign_yaml, shown, some_of

TEXT_MAX = 5000  # letters of an answer that a person reads


def answers_of(
    submission: Submission, personal: Personal, incomplete: list[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The valid answers by question, and by question why others are not valid."""
    given: dict[str, Any] = {}
    if ANSWERS not in submission.files:
        incomplete.append(submission.missing(ANSWERS))
    else:
        try:
            content = read_foreign_yaml(submission.files[ANSWERS], ANSWERS, as_typed=True)
            if not isinstance(content, dict) or not isinstance(content.get("answers"), dict):
                raise UserError(
                    f"{ANSWERS}: must have the keys 'student' and 'answers' (a mapping of questions to answers)"
                )
            student_id = one_form(str(content.get("student", "")))
            if student_id != personal.student:
                letters = (
                    f" (with {foreign_letters(student_id)})"
                    if personal.student.isascii() and not student_id.isascii()
                    else ""
                )
                incomplete.append(
                    f"{ANSWERS}: says student {shown(student_id)!r}{letters}; it is graded as {personal.student!r}"
                )
            given = content["answers"]
        except UserError as error:
            incomplete.append(str(error))
    answers: dict[str, Any] = {}
    unanswered: dict[str, str] = {}
    for question in personal.assignment.questions:
        options = question.options
        text = _option(str(given.get(question.id, "")), options)
        if question.person is not None and text.strip():
            answers[question.id] = shown(text, TEXT_MAX)
        elif WORDS.get(text, text) is None:
            unanswered[question.id] = "no answer"
        elif options and text not in options:
            unanswered[question.id] = f"{shown(text, 60)!r} is none of: {', '.join(options)}"
        elif not options and not math.isfinite(_number(text)):
            unanswered[question.id] = f"{shown(text, 60)!r} is no finite number"
        else:
            answers[question.id] = text if options else _number(text)
    unknown = [shown(k) for k in given if k not in {q.id for q in personal.assignment.questions}]
    if unknown:
        incomplete.append(f"{ANSWERS}: there is no question {some_of(unknown)}")
    return answers, unanswered


def _option(text: str, options: list[str]) -> str:
    """The option that a text is but for capital letters and spaces around it, if it is that of one option only; else the text."""
    same = [option for option in options if option.casefold() == text.strip().casefold()]
    return same[0] if len(same) == 1 and text not in options else text


def _number(text: str) -> float:
    """A text as a number; NaN if it is none. Only ASCII digits count: those of other scripts may look like others."""
    try:
        return float(text) if text.isascii() else math.nan
    except ValueError:
        return math.nan
