"""Reads scenario files: ``--set`` overrides, cases, the points of a sweep, and what a scale of config/config.yaml changes."""

from __future__ import annotations

import copy
import difflib
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import Lines, NotPlainError, parse_yaml, read_yaml
from bbrlab.scenario.messages import empty_words, validate
from bbrlab.scenario.needs import Setting, refuse_without_effect
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import CASE, GRID, NOT_DECISIVE, Override, Scenario

POINTS_MAX = 10_000  # of one scenario; the largest that comes with the package has some hundred
INDEX = re.compile("0|[1-9][0-9]{0,3}")  # of an entry of a list, in a path: one way to write each, and short


def parse_value(text: str) -> Any:
    """The YAML value of ``text`` as given on a command line. UserError if it is more than plain data, or no number as people write it."""
    try:
        return parse_yaml(text)
    except NotPlainError as error:
        raise UserError(f"{text}: {error.problem}") from None
    except yaml.YAMLError:
        return text


INSTEAD = {"rtt_ms": "rtts_ms", "rtts_ms": "rtt_ms"}  # of a flow group, one in place of the other


# What the rows of a file of changes are read by (schema.Network): those within the run, of values other than before.
READ_BY = ("duration_s", "network.rtt_ms", "network.loss")
BUFFERS = (["network", "buffer"], ["network", "reverse", "buffer"])  # bdp, bytes and packets exclude each other


def _place_of(path: str) -> str:
    """One name for all paths of which a scenario can have one only: each replaces the others (assign())."""
    parts = path.split(".")
    if parts[:-1] in BUFFERS:
        return ".".join(parts[:-1])
    return ".".join([*parts[:-1], "rtt_ms"]) if parts[0] == "flows" and parts[-1] in INSTEAD else path


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """All that ``value`` sets at ``path`` and below it, as (dotted path, value)."""
    if isinstance(value, dict) and value:
        parts = value.items()
    elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        parts = dict(enumerate(value)).items()
    else:
        yield path, value
        return
    for key, part in parts:
        yield from _leaves(f"{path}.{key}", part)


def _replaced(paths: Iterable[str], path: str, value: Any) -> list[str]:
    """Which of some paths hold a value that ``value`` at ``path`` takes the place of."""
    leaves = list(_leaves(path, value))
    same = {path, *(leaf for leaf, _ in leaves)}
    places = {_place_of(leaf) for leaf, v in leaves if v is not None}  # what is emptied takes nothing's place
    return [p for p in paths if p in same or _place_of(p) in places]


def assign(content: Any, path: str, value: Any, where: str) -> None:
    """Put ``value`` at dotted ``path`` of a raw scenario. UserError if the path cannot exist in a scenario."""
    parts = path.split(".")
    target = content
    for depth, part in enumerate(parts):
        last = depth == len(parts) - 1
        so_far = ".".join(parts[: depth + 1])
        if isinstance(target, list):
            if not INDEX.fullmatch(part) or int(part) >= len(target):
                count = len(target)
                raise UserError(f"{where}: path '{path}' does not exist: '{so_far}' is not one of 0 to {count - 1}")
            if last:
                target[int(part)] = value
            else:
                target = target[int(part)]
        elif isinstance(target, dict):
            if last:
                if parts[:-1] in BUFFERS:
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
    return f"did you mean {' or '.join(paths.name_of(there[id]) for id in close)}?"


def load_scenario(
    path: Path,
    overrides: dict[str, Any] | None = None,
    case: str | None = None,
    sources: tuple[Path, ...] = (),
    *,
    files: bool = True,
) -> Scenario:
    """Read, override and check a scenario file: load_points() without the points."""
    return load_points(path, overrides, case, sources, files=files)[0]


def load_points(
    path: Path,
    overrides: dict[str, Any] | None = None,
    case: str | None = None,
    sources: tuple[Path, ...] = (),
    *,
    files: bool = True,
) -> tuple[Scenario, list[Point]]:
    """Read, override and check a scenario file. Returns the scenario and all points of its sweep.

    UserError naming file, field, value and what would be valid.

    Args:
        overrides: {dotted path: value}; one that is swept becomes a fixed value, also if the sweep is of a field that it
            excludes (network.buffer.bdp and .packets). That all of them hold at each point is left to points_of(): who takes
            base_point() has them, whatever the cases say.
        case: put this case's values in, before the overrides; the others are gone.
        sources: C files of algorithms of one's own that flows may have, beside those in kernels/cca/.
        files: whether it may name files, which are opened; not where overrides are somebody else's.
    """
    content = read_yaml(path, "see docs/reference/scenario.md" if path.exists() else _meant(path))
    if not isinstance(content, dict):
        raise UserError(f"{path}: a scenario is a mapping of keys to values; see docs/reference/scenario.md")
    content = copy.deepcopy(content)
    asked = dict(overrides or {})
    _refuse_replaced([(key, value, f"--set {key}") for key, value in asked.items()], str(path))
    if case is not None:
        cases = content.pop("cases", {})
        if not isinstance(cases, dict) or case not in cases:
            if not isinstance(cases, dict) or not cases:
                raise UserError(f"--case {case}: {path} has no cases; leave --case out")
            raise UserError(f"--case {case}: {path} has no such case (it has: {', '.join(map(str, cases))})")
        chosen = {} if cases[case] is None else cases[case]
        if not isinstance(chosen, dict):
            raise UserError(f"{path}: cases.{case}: is a mapping of dotted paths to values")
        _refuse_replaced([(key, value, f"'{key}' of cases.{case}") for key, value in chosen.items()], str(path))
        overrides = {**chosen, **asked}
        content.pop("scales", None)
    for key, value in (overrides or {}).items():
        assign(content, key, value, f"--set {key}={value}")
        if isinstance(sweep := content.get("sweep"), dict):
            for path_swept in _replaced(sweep, key, value):
                del sweep[path_swept]
    _refuse_empty(content, path, overrides or {}, asked)
    folder = path.absolute().parent if files else None
    lines = None if overrides else Lines(path)
    scenario = validate(content, str(path), lines, folder, sources)
    refuse_rows_of_another_run(content, scenario, f"{path}:{lines.of(['network', 'changes'])}" if lines else str(path))
    points = _expanded(scenario, str(path), lines)  # every point of the sweep must be valid, too
    _refuse_without_effect(scenario, points, str(path), lines)
    scenario.keep_overrides(asked)
    return scenario, points


def _refuse_empty(content: Any, path: Path, overrides: dict[str, Any], asked: dict[str, Any]) -> None:
    """UserError for each field that is left empty: somebody forgot its value, and without it another experiment would run.

    Args:
        content: of the file, with the overrides put in.
        overrides: a case's values, which may be empty, and after them those that are ``asked`` for.
    """
    wrong = []
    for place in empty_places(content):
        by = [key for key in overrides if f"{'.'.join(map(str, place))}.".startswith(f"{key}.")]
        if not by:
            wrong.append(f"{path}:{Lines(path).of(place)}: {empty_words(place)}")
        elif by[-1] in asked:
            wrong.append(f"--set {by[-1]}: {empty_words(place)}, or leave it out")
    if wrong:
        raise UserError("\n".join(wrong))


def empty_places(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where nothing is given, except among the values of cases and sweeps, of which nothing may be one."""
    if content is None:
        yield place
    elif not {"sweep", "cases"}.intersection(place):
        parts = (
            content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
        )
        for key, part in parts:
            yield from empty_places(part, (*place, key))


def without_empty(content: Any) -> Any:
    """A scenario's content without what is not given: as a file may have it, of which no field is empty (load_points())."""
    if isinstance(content, list):
        return [without_empty(part) for part in content]
    if not isinstance(content, dict):
        return content
    return {key: without_empty(part) for key, part in content.items() if part is not None}


def refuse_rows_of_another_run(content: Any, scenario: Scenario, where: str, *, points_name_files: bool = True) -> None:
    """UserError if points or scales have other values of what a file of changes is read by: the rows stay those of the file's own.

    Args:
        content: of the scenario, where a file still has its name.
        points_name_files: whether cases and sweep may name a file, too (those of a rubric may not).
    """
    file = content["network"].get("changes")
    if not isinstance(file, str):
        return
    each = f"name the file, which reads it for each point (sweep: {{network.changes: [{file}]}})"
    if not points_name_files:
        each = "have the rows themselves (sweep: {network.changes: [[{at_s: 1, rtt_ms: 60}]]})"
    grids: list[tuple[str, Iterable[str]]] = [(f"cases.{name}", case) for name, case in scenario.cases.items()]
    grids += [("sweep", scenario.sweep)]
    grids += [(f"scales.{name}", ["duration_s"]) for name, scale in scenario.scales.items() if scale.duration_s]
    for at, set_there in grids:
        if any(_touch(path, "network.changes") for path in set_there):
            continue
        if other := next((path for path in set_there if any(_touch(path, read) for read in READ_BY)), None):
            raise UserError(
                f"{where}: network.changes {file}: its rows are read once, for the scenario's own {', '.join(READ_BY)}, but {at} sets "
                f"{other}; let the sweep {each}, and leave the file out here"
            )


def points_of(scenario: Scenario, where: str = "scenario") -> list[Point]:
    """All points of the sweep, the last path varying fastest. UserError for a path or value that is not valid, or where a case or
    the sweep undoes one of the scenario's overrides."""
    found = _expanded(scenario, where)
    _check_overrides(scenario, found, where)
    _refuse_without_effect(scenario, found, where)
    return found


def _refuse_without_effect(scenario: Scenario, points: list[Point], where: str, lines: Lines | None = None) -> None:
    """refuse_without_effect(), with what sets a field at a point: the file's own value, a case or the sweep."""

    def setting_of(point: Point, field: str) -> Setting:
        case = point.values.get(CASE)
        place = next((place for path, place in _set_by(scenario, case).items() if _touch(path, field)), None)
        line = f":{lines.of(place or field.split('.'))}" if lines else ""
        return Setting(line, "" if place is None else "sweep" if place[0] == "sweep" else f"case {case}")

    refuse_without_effect(points, where, setting_of)


def _set_by(scenario: Scenario, case: str | None) -> dict[str, tuple[str, ...]]:
    """{path that a case or the sweep sets: where in the file}."""
    of_case = {} if case is None else {path: ("cases", case, path) for path in scenario.cases[case]}
    return of_case | {path: ("sweep", path) for path in scenario.sweep}


def _check_overrides(scenario: Scenario, points: list[Point], where: str) -> None:
    """UserError for the first override that does not hold at each of the points, naming what sets another value there."""
    asked = [
        (path, leaf)
        for path, value in scenario.overrides.items()
        if path.split(".")[0] not in NOT_DECISIVE
        for leaf, _ in _leaves(path, value)
    ]
    if not asked:
        return
    base = scenario.model_dump()
    for point in points:
        content = point.scenario.model_dump()
        for path, leaf in asked:
            if _value_at(content, leaf) != _value_at(base, leaf):
                given = f"{where}: --set {path}={scenario.overrides[path]} would have no effect"
                raise UserError(f"{given} {_undone_by(scenario, point, leaf)}")


def _undone_by(scenario: Scenario, point: Point, leaf: str) -> str:
    """What sets another value than an override's at a point, and what to do, in words."""
    swept = [path for path in scenario.sweep if _touch(path, leaf)]
    if swept:
        return f"where sweep sets {swept[-1]}; set {swept[-1]} itself, which ends its sweep, or change the file"
    case = point.values[CASE]
    by = [path for path in scenario.cases[case] if _touch(path, leaf)]
    return (
        f"in case {case}, where cases.{case} sets {by[-1]}; choose one case with --case (where the command has it), leave "
        "all cases out (--set cases={}), or change the file"
    )


def _touch(path: str, other: str) -> bool:
    """Whether two paths are one place, or one lies within the other."""
    a, b = _place_of(path) + ".", _place_of(other) + "."
    return a.startswith(b) or b.startswith(a)


def _value_at(content: Any, path: str) -> Any:
    """What a checked scenario's content has at a dotted path; None if nothing."""
    for part in path.split("."):
        if isinstance(content, list):
            content = content[int(part)] if INDEX.fullmatch(part) and int(part) < len(content) else None
        else:
            content = content.get(part) if isinstance(content, dict) else None
    return content


class _PointLines(Lines):
    """The lines of a scenario file for what is wrong at one of its points: those of the case or sweep that sets it."""

    def __init__(self, lines: Lines, case: str | None, given: dict[str, tuple[str, ...]]):
        self.root, self.given = lines.root, given
        self.around: tuple[Any, ...] = ("sweep",) if case is None else ("cases", case)

    def of(self, parts: Iterable[Any]) -> int:
        """The line that sets the field at ``parts`` for this point; else that of the case, or of the sweep."""
        place = ".".join(map(str, parts))
        setting = next((self.given[path] for path in self.given if _touch(path, place)), self.around)
        return super().of(setting)


def _expanded(scenario: Scenario, where: str, lines: Lines | None = None) -> list[Point]:
    """All points of the sweep, whether or not the scenario's overrides hold there. UserError as points_of().

    Args:
        lines: of the file, to name the line as well.
    """

    def place(*parts: str) -> str:
        return f"{where}:{lines.of(parts)}" if lines else where

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
            raise UserError(f"{place('sweep', path)}: '{path}' is both in cases.{case} and in sweep; keep one")
        given = [(path, value, f"'{path}' of cases.{case}") for path, value in changes.items()]
        given += [(path, value, f"'{path}' of sweep") for path, value in swept.items()]
        _refuse_replaced(given, place("sweep") if case is None else place("cases", case))
        content = copy.deepcopy(base)
        set_by = _set_by(scenario, case)
        for path, value in (changes | swept).items():
            at = place(*set_by[path])
            if path.split(".")[0] in NOT_DECISIVE:
                raise UserError(f"{at}: '{path}' cannot differ among the points of one scenario")
            assign(content, path, copy.deepcopy(value), f"{at}: {'sweep' if path in swept else f'cases.{case}'}")
        at = ", ".join(f"{k}={v}" for k, v in (chosen | swept).items())
        of_point = _PointLines(lines, case, set_by) if lines and at else lines
        checked = validate(content, where, of_point, scenario.folder, scenario.sources, f"sweep at {at}" if at else "")
        found.append(Point(checked, chosen | swept))
    same = Counter((point.values.get(CASE), point.fingerprint) for point in found)  # 1 and 1.0 are one value
    for point in found:
        if (count := same[point.values.get(CASE), point.fingerprint]) > 1:
            raise UserError(
                f"{place('sweep')}: {count} points of the sweep are the same ({point.label}); leave out what stands twice"
            )
    of_cases: dict[frozenset[str], str] = {}
    for case in scenario.cases:
        prints = frozenset(point.fingerprint for point in found if point.values[CASE] == case)
        if (first := of_cases.setdefault(prints, case)) != case:
            raise UserError(
                f"{place('cases', case)}: cases.{case} has the same points as cases.{first}; leave one of them out"
            )
    return found


def _refuse_replaced(given: Sequence[tuple[str, Any, str]], where: str) -> None:
    """UserError for the first of some (path, value, what to call it), put in one after another, of which a later one replaces a part."""
    for (path, value, words), (later, later_value, later_words) in itertools.combinations(given, 2):
        if any(_loses(leaf, inner, later, later_value) for leaf, inner in _leaves(path, value)):
            raise UserError(f"{where}: {words} and {later_words} exclude each other; keep one")


def _loses(leaf: str, value: Any, later: str, later_value: Any) -> bool:
    """Whether a single value is gone when a later one is put in at another path."""
    if value is None or later_value is None:  # what is emptied takes nothing's place but its own
        return f"{leaf}.".startswith(f"{later}.")
    place, other = f"{_place_of(leaf)}.", f"{_place_of(later)}."
    return place.startswith(other) or (value != {} and other.startswith(place))


def base_point(scenario: Scenario) -> Point:
    """The scenario as written, with its sweep left out."""
    content = scenario.model_dump(exclude=GRID, exclude_unset=True)
    return Point(validate(content, scenario.name, None, scenario.folder, scenario.sources), {})


def at_scale(scenario: Scenario, name: str, path: Path) -> Scenario | None:
    """The scenario at a scale, with its labels and trials as they were; None if the scale leaves it out. UserError if the scenario
    has not what the scale changes, or would not be valid."""
    override = scenario.scales.get(name, Override())
    if override.skip:
        if idle := sorted(override.model_fields_set - {"skip"}):
            raise UserError(
                f"{path}: scales.{name}.{idle[0]} would have no effect: skip leaves the figure out (leave out either)"
            )
        return None
    if not override.model_fields_set - {"trials"}:
        return scenario
    content = scenario.model_dump(exclude_unset=True)
    for key in ("duration_s", "window_s"):
        if getattr(override, key) is not None:
            content[key] = getattr(override, key)
    for key in ("sweep", "cases"):
        wrong = [k for k in getattr(override, key) or () if k not in getattr(scenario, key)]
        if wrong:
            raise UserError(f"{path}: scales.{name}.{key}: '{wrong[0]}' is not in the scenario's {key}")
    if override.sweep is not None:
        content["sweep"] = {k: override.sweep.get(k, v) for k, v in scenario.sweep.items()}
    if override.cases is not None:
        content["cases"] = {k: v for k, v in scenario.cases.items() if k in override.cases}
    return validate(content, f"{path} (at scale {name})", folder=path.parent)
