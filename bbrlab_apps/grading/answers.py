"""The answers of a submission: which are an option or a number, and why others are none."""

from __future__ import annotations

import math
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import WORDS
from bbrlab_apps.grading.personal import Personal, foreign_letters, one_form
from bbrlab_apps.grading.submission import ANSWERS, Submission, read_foreign_yaml, shown, some_of

TEXT_MAX = 5000  # letters of an answer that a person reads


def answers_of(found: Submission, own: Personal, incomplete: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Answers by question, and why others are none."""
    given: dict[str, Any] = {}
    if ANSWERS not in found.files:
        incomplete.append(found.missing(ANSWERS))
    else:
        try:
            content = read_foreign_yaml(found.files[ANSWERS], ANSWERS, as_typed=True)
            if not isinstance(content, dict) or not isinstance(content.get("answers"), dict):
                raise UserError(
                    f"{ANSWERS}: must have the keys 'student' and 'answers' (a mapping of questions to answers)"
                )
            said = one_form(str(content.get("student", "")))
            if said != own.student:
                letters = f" (with {foreign_letters(said)})" if own.student.isascii() and not said.isascii() else ""
                incomplete.append(f"{ANSWERS}: says student {shown(said)!r}{letters}; it is graded as {own.student!r}")
            given = content["answers"]
        except UserError as error:
            incomplete.append(str(error))
    answers: dict[str, Any] = {}
    unanswered: dict[str, str] = {}
    for question in own.asked.questions:
        text = str(given.get(question.id, ""))
        options = question.options
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
    unknown = [shown(k) for k in given if k not in {q.id for q in own.asked.questions}]
    if unknown:
        incomplete.append(f"{ANSWERS}: there is no question {some_of(unknown)}")
    return answers, unanswered


def _number(text: str) -> float:
    """The number that a text is; NaN if it is none. Digits of other scripts, which look like others, are none."""
    try:
        return float(text) if text.isascii() else math.nan
    except ValueError:
        return math.nan
