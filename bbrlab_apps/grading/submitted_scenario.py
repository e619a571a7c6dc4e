"""The scenario of a submission: whether it is safe to read, and whether its points are those of the assignment."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.scenario.load import points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab_apps.grading.personal import Assignment, canonical, flattened
from bbrlab_apps.grading.rubric import Rubric, Values
from bbrlab_apps.grading.submission import NAMED_MAX, SCENARIO, Submission, read_foreign_yaml, shown


def safe_scenario(content: Any, name: str, points_most: int) -> list[Point]:
    """The points of an untrusted scenario, for which no file is opened. UserError if it is not valid, names a file, has several links,
    or makes more than ``points_most`` points."""
    if not isinstance(content, dict):
        raise UserError(f"{name}: a scenario is a mapping of keys to values; see docs/reference/scenario.md")
    count = 1
    for key in ("cases", "sweep"):
        part = content.get(key)
        if isinstance(part, dict):
            sizes = [len(part) or 1] if key == "cases" else [len(v) for v in part.values() if isinstance(v, list)]
            for size in sizes:
                count *= size
    if count > points_most:
        raise UserError(f"{name}: cases and sweep make {count} points; at most {points_most} are possible here")
    scenario = validate(content, name)
    points = points_of(scenario, name)
    if any(point.scenario.network.links for point in points):
        raise UserError(f"{name}: network.links: runs over several links are not graded")
    return points


def identity(point: Point, without: Iterable[str] = ()) -> str:
    """A point's values as text, equal for points with the same outcome."""
    left = {k: canonical(v) for k, v in flattened(point).items() if k not in set(without)}
    return json.dumps(left, sort_keys=True)


def scenario_of(
    submission: Submission, rubric: Rubric, assignment: Assignment, incomplete: list[str]
) -> tuple[list[str], list[Point]]:
    """How the scenario differs from the assignment's, and the points that runs are compared with."""
    if SCENARIO not in submission.files:
        incomplete.append(submission.missing(SCENARIO))
        return [f"{SCENARIO} is missing"], assignment.points
    try:
        content = read_foreign_yaml(submission.files[SCENARIO], SCENARIO)
        points = safe_scenario(content, SCENARIO, rubric.limits.runs)
        problems = [shown(text, 300) for text in compared(points, assignment.points, rubric.free)]
    except UserError as error:
        incomplete.append(f"{SCENARIO} cannot be used")
        return [shown(line, 300) for line in str(error).splitlines()[:NAMED_MAX]], assignment.points
    if problems:
        return problems, assignment.points
    return [], [_with_assigned_values(point, assignment) for point in points]


def compared(points: list[Point], assigned: list[Point], free: Mapping[str, Values]) -> list[str]:
    """How points differ from those of the assignment, in words; empty if they do not.

    Without their free values they must be the same points, each as often.
    """
    problems = []
    for point in points:
        flat = flattened(point)
        for path, values in free.items():
            if path in flat and not values.allow(flat[path]):
                problems.append(f"{path} is {flat[path]!r}; it may be {values}")
    counts = Counter(identity(p, free) for p in points)
    wanted_counts = Counter(identity(p, free) for p in assigned)
    extra, missing = counts - wanted_counts, wanted_counts - counts
    if extra and missing:
        extra_points = [p for p in points if identity(p, free) in extra]
        missing_points = [p for p in assigned if identity(p, free) in missing]
        problems += min((differing(point, missing_points[:20], free) for point in extra_points[:20]), key=len)[
            :NAMED_MAX
        ]
    elif extra:
        problems.append(
            f"has {number_of(sum(extra.values()), 'point')} too many; {len(assigned)} are asked for, {len(points)} are there"
        )
    elif missing:
        problems.append(f"lacks {sum(missing.values())} of {len(assigned)} points that are asked for")
    return list(dict.fromkeys(problems))


def differing(point: Point, assigned: Sequence[Point], free: Collection[str] = ()) -> list[str]:
    """How a point differs from the nearest of those that are assigned, in words: each field with its value and what is asked for."""
    actual = flattened(point)
    wanted = [flattened(other) for other in assigned]
    fields = [
        [p for p in sorted(actual | other) if p not in free and canonical(actual.get(p)) != canonical(other.get(p))]
        for other in wanted
    ]
    nearest = min(fields, key=len)
    texts = []
    for path in nearest:
        asked = [_in_short(other, path) for other, differ in zip(wanted, fields, strict=True) if differ == nearest]
        texts.append(f"{path} is {_in_short(actual, path)}, asked for is {' or '.join(dict.fromkeys(asked))}")
    return texts


def _in_short(values: Mapping[str, Any], path: str) -> str:
    return json.dumps(values[path], default=str)[:60] if path in values else "not set"


def _with_assigned_values(point: Point, assignment: Assignment) -> Point:
    """A student's point, its swept values being those that the assignment sweeps."""
    same = next((p for p in assignment.points if identity(p) == identity(point)), None)
    if same is not None:
        return Point(point.scenario, same.values)
    flat = flattened(point)
    return Point(point.scenario, {path: flat[path] for path in assignment.points[0].values if path in flat})
