"""The answers of a submission: which are valid, and why others are not."""

from __future__ import annotations

import math
import re
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import WORDS, Lines
from bbrlab_apps.grading.personal import Personal, foreign_letters, one_form
from bbrlab_apps.grading.submission import ANSWERS, Submission, read_foreign_yaml, shown, some_of

TEXT_MAX = 5000  # letters of an answer that a person reads
DIGITS = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
# What people write in place of a number: with what to write. {0}, {1}: parts of what they wrote.
IN_PLACE_OF_NUMBERS = (
    (rf"({DIGITS})\s*%", "write it without a percent sign, as the question asks for it: a share of 48 % is 0.48"),
    (rf"(?!{DIGITS}\Z|0[xob])({DIGITS})\s*[A-Za-zµ][\w/ ]*", "write the number alone, without a unit: {0}"),
    (rf"({DIGITS})\s*/\s*{DIGITS}", "write a fraction as a decimal number: 1/3 is 0.3333"),
    (r"([-+]?[1-9]\d{0,2}),(\d{3})", "a number has no comma: write {0}.{1} or {0}{1}"),
    (r"([-+]?\d+),(\d+)", "write a point for the comma: {0}.{1}"),
    (r"[-+]?\d{1,3}([ ,']\d{3})+(\.\d*)?", "write the digits without anything between them: 82500, not 82,500"),
)


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

    def place(question: str) -> str:
        return f"{ANSWERS}:{Lines(submission.files[ANSWERS], as_typed=True).of(('answers', question))}"

    for question in personal.assignment.questions:
        options = question.options
        text = _option(str(given.get(question.id, "")), options)
        if question.person is not None and text.strip():
            answers[question.id] = shown(text, TEXT_MAX)
        elif WORDS.get(text, text) is None:
            unanswered[question.id] = "no answer"
        elif options and text not in options:
            unanswered[question.id] = f"{place(question.id)}: {shown(text, 60)!r} is none of: {', '.join(options)}"
        elif not options and not math.isfinite(_number(text)):
            unanswered[question.id] = f"{place(question.id)}: {_no_number(text)}"
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


def _no_number(text: str) -> str:
    """What is wrong with a text in place of a number, and how to write it."""
    for pattern, remedy in IN_PLACE_OF_NUMBERS:
        if found := re.fullmatch(pattern, text.strip(), re.ASCII):
            return f"{shown(text, 60)!r} is no number: {remedy.format(*found.groups())}"
    return f"{shown(text, 60)!r} is no number: write one with digits and a point, such as 0.48 or 82500"


def _number(text: str) -> float:
    """A text as a number; NaN if it is none. Only ASCII digits count: those of other scripts may look like others."""
    try:
        return float(text) if text.isascii() else math.nan
    except ValueError:
        return math.nan
