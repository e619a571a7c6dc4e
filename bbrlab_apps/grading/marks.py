"""The points and hints for an answer, the cost of late work, and marks that people give."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, TypedDict

from bbrlab_apps.grading.rubric import Hint, Late, Question

EQUAL = 1e-9  # relative: of numbers that are the same but for rounding
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
    if hint.condition is None:
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


def tolerance_of(question: Question, right: float) -> float:
    """How far from a right number an answer may be."""
    if question.within is not None:
        return float(question.within)
    return abs(right) * (question.within_percent or 0.0) / 100


def idle_hints(question: Question) -> dict[int, str]:
    """{place of a hint that no wrong answer gets: why}. The question has numbers for its arithmetic."""
    idle = {}
    for place, hint in enumerate(question.hints):
        off, within = _from_right(hint, question)
        if off <= (within if hint.within_percent is not None else EQUAL):
            idle[place] = "what it is for is right"
        elif any(_covers(earlier, hint) for earlier in question.hints[:place]):
            idle[place] = "an earlier hint is for all such answers"
    return idle


def tolerated_mistakes(question: Question) -> set[int]:
    """The places of hints for a mistake that the question's tolerance lets pass: who makes it is right, and reads nothing."""
    found = [_from_right(hint, question) for hint in question.hints]
    return {place for place, (off, within) in enumerate(found) if off <= within}


def _from_right(hint: Hint, question: Question) -> tuple[float, float]:
    """How far what a hint describes is from the right answer, and how far an answer may be, as parts of the right one. Infinity and 0,
    where that hangs on the student's runs, or there is nothing to be far from."""
    right = float(question.value or 0)
    within = tolerance_of(question, right) / abs(right) if right else (question.within_percent or 0.0) / 100
    if hint.times is not None:
        return abs(float(hint.times) - 1), within
    if hint.within_percent is not None:
        return hint.within_percent / 100, within
    if hint.value is not None and right:
        return abs(float(hint.value) / right - 1), within
    return math.inf, 0.0


def _covers(earlier: Hint, hint: Hint) -> bool:
    """Whether an earlier hint is for all answers that a later one is for."""
    if earlier.within_percent is not None and hint.within_percent is not None:
        return earlier.within_percent >= hint.within_percent
    return earlier.condition in (None, hint.condition)


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
