"""Reads scenario files: ``--set`` overrides, cases, and the points of a sweep."""

from __future__ import annotations

import copy
import difflib
import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import Lines, read_yaml
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import CASE, GRID, NOT_DECISIVE, Scenario

POINTS_MAX = 10_000  # of one scenario; the largest that comes with the package has some hundred


def parse_value(text: str) -> Any:
    """The YAML value of ``text`` as given on a command line."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


INSTEAD = {"rtt_ms": "rtts_ms", "rtts_ms": "rtt_ms"}  # of a flow group, one in place of the other


def assign(content: Any, path: str, value: Any, where: str) -> None:
    """Put ``value`` at dotted ``path`` of a raw scenario. UserError if the path cannot exist in a scenario."""
    parts = path.split(".")
    target = content
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        so_far = ".".join(parts[: depth + 1])
        if isinstance(target, list):
            if not part.isdigit() or int(part) >= len(target):
                count = len(target)
                raise UserError(f"{where}: path '{path}' does not exist: '{so_far}' is not one of 0 to {count - 1}")
            if last:
                target[int(part)] = value
            else:
                target = target[int(part)]
        elif isinstance(target, dict):
            if last:
                if parts[:-1] == ["network", "buffer"]:
                    target.clear()  # bdp, bytes and packets exclude each other
                if parts[0] == "flows" and value is not None:
                    target.pop(INSTEAD.get(part, ""), None)
                target[part] = value
            else:
                if target.get(part) is None:
                    target[part] = {}
                target = target[part]
        else:
            raise UserError(f"{where}: path '{path}' does not exist: '{'.'.join(parts[:depth])}' holds a single value")


def _meant(path: Path) -> str:
    """What to do about a scenario file that is not there: it may be one of the package's, by its figure's name."""
    there = {f"{p.parent.name}/{p.stem}": p for p in sorted(paths.SCENARIOS.glob("*/*.yaml"))}
    name = f"{path.parent.name}/{path.stem}"
    same = [id for id in there if path.stem == id.split("/")[1]]
    close = [id for id in same if id == name] or same or difflib.get_close_matches(name, there, 3)
    if not close:
        return "give the path of a scenario file"
    here = Path.cwd()
    places = [there[id].relative_to(here) if there[id].is_relative_to(here) else there[id] for id in close]
    return f"did you mean {' or '.join(map(str, places))}?"


def load_scenario(
    path: Path, overrides: dict[str, Any] | None = None, case: str | None = None, sources: tuple[Path, ...] = ()
) -> Scenario:
    """Read, override and check a scenario file.

    Args:
        path: the YAML file.
        overrides: {dotted path: value}; a path that is swept becomes a fixed value.
        case: put this case's values in, before the overrides; the others are gone.
        sources: C files of algorithms of one's own that flows may have, beside those in kernels/cca/.

    Raises:
        UserError: naming file, field, value and what would be valid.
    """
    content = read_yaml(path, "" if path.exists() else _meant(path))
    if not isinstance(content, dict):
        raise UserError(f"{path}: a scenario is a mapping of keys to values; see docs/reference/scenario.md")
    content = copy.deepcopy(content)
    if case is not None:
        cases = content.pop("cases", {})
        if not isinstance(cases, dict) or case not in cases:
            if not isinstance(cases, dict) or not cases:
                raise UserError(f"--case {case}: {path} has no cases; leave --case out")
            raise UserError(f"--case {case}: {path} has no such case (it has: {', '.join(map(str, cases))})")
        chosen = {} if cases[case] is None else cases[case]
        if not isinstance(chosen, dict) or not all(isinstance(key, str) for key in chosen):
            raise UserError(f"{path}: cases.{case}: is a mapping of dotted paths to values")
        overrides = {**chosen, **(overrides or {})}
        content.pop("scales", None)
    for key, value in (overrides or {}).items():
        assign(content, key, value, f"--set {key}={value}")
        if isinstance(content.get("sweep"), dict):
            content["sweep"].pop(key, None)
    scenario = validate(content, str(path), None if overrides else Lines(path), path.absolute().parent, sources)
    points_of(scenario, str(path))  # every point of the sweep must be valid, too
    return scenario


def points_of(scenario: Scenario, where: str = "scenario") -> list[Point]:
    """All points of the sweep, the last path varying fastest. UserError for a path or value that is not valid."""
    count = math.prod([len(scenario.cases) or 1, *(len(values) for values in scenario.sweep.values())])
    if count > POINTS_MAX:
        raise UserError(f"{where}: cases and sweep make {count} points; at most {POINTS_MAX} are possible")
    base = scenario.model_dump(exclude=GRID, exclude_unset=True)
    found = []
    for case, *combination in itertools.product(scenario.cases or [None], *scenario.sweep.values()):
        chosen = {} if case is None else {CASE: case}
        swept = dict(zip(scenario.sweep, combination, strict=True))
        changes = {} if case is None else scenario.cases[case]
        for path in changes.keys() & swept.keys():
            raise UserError(f"{where}: '{path}' is both in cases.{case} and in sweep; keep one")
        content = copy.deepcopy(base)
        for path, value in (changes | swept).items():
            if path.split(".")[0] in NOT_DECISIVE:
                raise UserError(f"{where}: '{path}' cannot differ among the points of one scenario")
            assign(content, path, copy.deepcopy(value), f"{where}: {'sweep' if path in swept else f'cases.{case}'}")
        at = ", ".join(f"{k}={v}" for k, v in (chosen | swept).items())
        at = f"{where}{': sweep at ' + at if at else ''}"
        found.append(Point(validate(content, at, None, scenario.folder, scenario.sources), chosen | swept))
    same = Counter((point.values.get(CASE), point.fingerprint) for point in found)  # 1 and 1.0 are one value
    for point in found:
        if (count := same[point.values.get(CASE), point.fingerprint]) > 1:
            raise UserError(
                f"{where}: {count} points of the sweep are the same ({point.label}); leave out what stands twice"
            )
    return found


def base_point(scenario: Scenario) -> Point:
    """The scenario as written, with its sweep left out."""
    content = scenario.model_dump(exclude=GRID, exclude_unset=True)
    return Point(validate(content, scenario.name, None, scenario.folder, scenario.sources), {})
