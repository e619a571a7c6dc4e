"""The format of a grade."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypedDict

from bbrlab_apps.grading.rerun import Rerun

GRADE = "grade.json"  # of a student, beside the report


class Item(TypedDict):
    """Something that points are given for."""

    id: str
    title: str
    score: float
    of: float
    told: list[str]  # the result, in words for the student
    for_teacher: list[str]  # in words for the teacher alone: right answers, names of others


class Grade(TypedDict):
    """The content of grade.json."""

    made_by: str  # outputs.OWNER
    key: str
    student: str
    assignment: str
    title: str
    parameters: dict[str, Any]
    seeds: list[int]
    score: float
    of: float
    flags: list[tuple[str, str]]
    notes: list[str]
    items: list[Item]
    runs: list[dict[str, Any]]
    reruns: list[Rerun]
    pending: list[str]  # questions that a person still has to grade
    late: str  # what late work cost, in words; empty if it cost nothing


def flag_words(grade: Grade) -> str:
    """The kinds of a grade's flags, each with its count."""
    return "; ".join(f"{kind} ({n})" if n > 1 else kind for kind, n in Counter(k for k, _ in grade["flags"]).items())
