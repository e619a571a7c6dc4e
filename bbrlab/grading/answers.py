"""The answers of a submission: which are an option or a number, and why others are none."""

from __future__ import annotations

from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.grading.personal import Personal
from bbrlab.grading.submission import Submission, is_number, read_foreign_yaml, shown, some_of

ANSWERS = "answers.yaml"


def answers_of(found: Submission, own: Personal, incomplete: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Answers by question, and why others are none."""
    given: Any = {}
    if ANSWERS not in found.files:
        incomplete.append(f"{ANSWERS} is missing")
    else:
        try:
            content = read_foreign_yaml(found.files[ANSWERS], ANSWERS)
            if not isinstance(content, dict) or not isinstance(content.get("answers"), dict):
                raise UserError(
                    f"{ANSWERS}: must have the keys 'student' and 'answers' (a mapping of questions to answers)"
                )
            said = str(content.get("student"))
            if said != own.student:
                incomplete.append(f"{ANSWERS}: says student {shown(said)!r}; it is graded as {own.student!r}")
            given = content["answers"]
        except UserError as error:
            incomplete.append(str(error))
    answers: dict[str, Any] = {}
    unanswered: dict[str, str] = {}
    for question in own.asked.questions:
        value = given.get(question.id)
        options = question.options
        if value is None:
            unanswered[question.id] = "no answer"
        elif options and value not in options:
            unanswered[question.id] = f"{shown(str(value), 60)!r} is none of: {', '.join(options)}"
        elif not options and not is_number(value):
            unanswered[question.id] = f"{shown(str(value), 60)!r} is no finite number"
        else:
            answers[question.id] = value if options else float(value)
    unknown = [shown(str(k)) for k in given if k not in {q.id for q in own.asked.questions}]
    if unknown:
        incomplete.append(f"{ANSWERS}: there is no question {some_of(unknown)}")
    return answers, unanswered
