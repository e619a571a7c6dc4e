"""The points and hints for an answer, the cost of late work, and marks that people give."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, TypedDict

from bbrlab_apps.grading.rubric import Hint, Late, Question

CLOSE = 1e-3  # relative: how near an answer is to a number that a hint has, where the question's tolerance says nothing


class ByPeople(TypedDict):
    """What people contribute to a grade."""

    late_days: int  # days after the deadline that have begun, less an extension
    marks: dict[str, tuple[float, str]]  # {question: points and comment}, of questions that a person graded


NOBODY: ByPeople = {"late_days": 0, "marks": {}}


def worth(question: Question, given: Any, right: str | float, tolerance: float) -> tuple[float, str]:
    """The part of a question's points that an answer gets, 0 to 1, and the hint for the student; empty if there is none.

    Args:
        right: the right answer; a number within ``tolerance``.
    """
    if isinstance(right, str):
        if given == right:
            return 1.0, ""
    elif not isinstance(given, str) and abs(given - right) <= tolerance:
        return 1.0, ""
    for hint in question.hints:
        if _fits(hint, given, right, tolerance):
            return hint.part, hint.says
    return 0.0, ""


def _fits(hint: Hint, given: Any, right: str | float, tolerance: float) -> bool:
    """Whether a hint is for this wrong answer."""
    if hint.choice is not None:
        return bool(given == hint.choice)
    conditions = (hint.times, hint.value, hint.within_percent)
    if conditions == (None, None, None):
        return True
    if isinstance(given, str) or isinstance(right, str):
        return False
    if hint.within_percent is not None:
        return bool(abs(given - right) <= abs(right) * hint.within_percent / 100)
    mistake = right * float(hint.times) if hint.times is not None else float(hint.value or 0)
    relative = tolerance / abs(right) if right else 0.0
    return math.isclose(
        given, mistake, rel_tol=max(relative, CLOSE), abs_tol=tolerance if hint.value is not None else 0.0
    )


def late_days(deadline: datetime, submitted: datetime, extension_days: float = 0) -> int:
    """The begun days between a deadline and a hand-in."""
    late = submitted - deadline - timedelta(days=extension_days)
    return max(0, math.ceil(late / timedelta(days=1)))


def late_cost(late: Late, days: int, reached: float) -> tuple[float, str]:
    """The points that late work costs, of those that were reached, and a sentence about it; empty if it is in time."""
    if days <= 0:
        return 0.0, ""
    text = f"{days} day{'s' if days > 1 else ''} late"
    if late.last_day is not None and days > late.last_day:
        return reached, f"{text}, after the last day ({late.last_day}): no points"
    counted = max(0, days - late.free_days)
    part = min(1.0, counted * late.percent_per_day / 100)
    if not part:
        return 0.0, f"{text}, which costs nothing"
    return reached * part, f"{text}, {counted} of them at {late.percent_per_day:g} % of the points that were reached"
