"""A foreign scenario: whether it may be read at all, and whether its points are those that were asked for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.scenario.link_trace import shipped_traces
from bbrlab.scenario.load import points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab_apps.grading.personal import Asked, canonical, flattened
from bbrlab_apps.grading.rubric import Rubric, Values
from bbrlab_apps.grading.submission import NAMED_MAX, SCENARIO, Submission, read_foreign_yaml, shown


def safe_scenario(content: Any, name: str, points_most: int) -> list[Point]:
    """The points of a foreign scenario.

    Raises:
        UserError: if it is not valid, reads a file of this machine, has several links, or makes more than ``points_most`` points.
    """
    if not isinstance(content, dict):
        raise UserError(f"{name}: a scenario is a mapping of keys to values; see docs/reference/scenario.md")
    if place := _trace_in(content):
        raise UserError(
            f"{name}: {place}: files of traffic or of a link are not possible in a submission; a trace that comes with the package is, by its name"
        )
    count = 1
    for key in ("cases", "sweep"):
        part = content.get(key)
        if isinstance(part, dict):
            sizes = [len(part) or 1] if key == "cases" else [len(v) for v in part.values() if isinstance(v, list)]
            for size in sizes:
                count *= size
    if count > points_most:
        raise UserError(f"{name}: cases and sweep make {count} points; at most {points_most} are possible here")
    scenario = validate(content, name, folder=paths.GUEST_CODE)  # any folder: nothing may be read from it
    points = points_of(scenario, name)
    if any(point.scenario.network.links for point in points):
        raise UserError(f"{name}: network.links: runs over several links are not graded")
    return points


def _trace_in(content: Any, place: str = "") -> str:
    """Where a scenario names a file of traffic or of a link; empty if nowhere. Traces that come with the package have names, no paths."""
    names = ("model", *shipped_traces())
    if isinstance(content, dict):
        for key, value in content.items():
            inner = f"{place}.{key}" if place else str(key)
            last = str(key).rpartition(".")[2]
            if last == "trace" and value not in names or last == "traffic" and isinstance(value, str):
                return shown(inner)
            if found := _trace_in(value, inner):
                return found
    elif isinstance(content, list):
        for index, value in enumerate(content):
            if found := _trace_in(value, f"{place}.{index}"):
                return found
    return ""


def identity(point: Point, without: Iterable[str] = ()) -> str:
    """A point's decisive values as text, equal for points that are the same."""
    left = {k: canonical(v) for k, v in flattened(point).items() if k not in set(without)}
    return json.dumps(left, sort_keys=True)


def scenario_of(
    found: Submission, rubric: Rubric, asked: Asked, incomplete: list[str]
) -> tuple[list[str], list[Point]]:
    """How the scenario differs from what was asked for, and the points that runs are compared with."""
    if SCENARIO not in found.files:
        incomplete.append(found.missing(SCENARIO))
        return [f"{SCENARIO} is missing"], asked.points
    try:
        content = read_foreign_yaml(found.files[SCENARIO], SCENARIO)
        points = safe_scenario(content, SCENARIO, rubric.limits.runs)
        wrong = [shown(text, 300) for text in compared(points, asked.points, rubric.free)]
    except UserError as error:
        incomplete.append(f"{SCENARIO} cannot be used")
        return [shown(line, 300) for line in str(error).splitlines()[:NAMED_MAX]], asked.points
    if wrong:
        return wrong, asked.points
    return [], [_as_asked(point, asked) for point in points]


def compared(points: list[Point], asked: list[Point], free: Mapping[str, Values]) -> list[str]:
    """How points differ from those that were asked for, in words; empty if they do not.

    Without their free values they must be the same points, each as often.
    """
    wrong = []
    for point in points:
        flat = flattened(point)
        for path, values in free.items():
            if path in flat and not values.allow(flat[path]):
                wrong.append(f"{path} is {flat[path]!r}; it may be {values}")
    have = Counter(identity(p, free) for p in points)
    want = Counter(identity(p, free) for p in asked)
    extra, missing = have - want, want - have
    if extra and missing:
        left = [p for p in points if identity(p, free) in extra]
        wanted = [p for p in asked if identity(p, free) in missing]
        differing = min((_differences(a, b, free) for a in left[:20] for b in wanted[:20]), key=len)
        wrong += differing[:NAMED_MAX]
    elif extra:
        wrong.append(f"has {sum(extra.values())} points too many; {len(asked)} are asked for, {len(points)} are there")
    elif missing:
        wrong.append(f"lacks {sum(missing.values())} of {len(asked)} points that are asked for")
    return list(dict.fromkeys(wrong))


def _differences(point: Point, asked: Point, free: Mapping[str, Values]) -> list[str]:
    have, want = flattened(point), flattened(asked)
    found = []
    for path in sorted(have.keys() | want.keys()):
        if path not in free and canonical(have.get(path)) != canonical(want.get(path)):
            said, should = (json.dumps(v.get(path), default=str) if path in v else "not set" for v in (have, want))
            found.append(f"{path} is {said[:60]}; asked for is {should[:60]}")
    return found


def _as_asked(point: Point, asked: Asked) -> Point:
    """A point of the student's with the values that the asked scenario tells its points apart by."""
    same = next((p for p in asked.points if identity(p) == identity(point)), None)
    if same is not None:
        return Point(point.scenario, same.values)
    flat = flattened(point)
    return Point(point.scenario, {path: flat[path] for path in asked.points[0].values if path in flat})
