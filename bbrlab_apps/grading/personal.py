"""One student's assignment: the rubric with the values that are drawn from the student's id."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from bbrlab.base import problems
from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.claims import check, expressions
from bbrlab.claims.expand import PLACEHOLDER
from bbrlab.claims.schema import Claim, rounded
from bbrlab.results.figures import Figure
from bbrlab.results.nested import leaves
from bbrlab.results.run_estimate import disk_bytes, estimate_s
from bbrlab.run.memory import guest_bytes
from bbrlab.scenario.load import empty_places, points_of, refuse_rows_of_another_run
from bbrlab.scenario.messages import empty_words, validate
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import NOT_DECISIVE, Scenario
from bbrlab_apps.grading.rubric import Limits, Misplaced, Question, Rubric, Scalar, in_words

FIGURE = "the scenario"  # what messages call the one figure of a rubric's claims
NOT_HERE = {
    "figure": "a rubric has one scenario, of which all its claims speak; leave it out",
    "published": "published values belong to papers; give numbers in expect",
}
# Files and folders of a submission without runs (four parts), and of a run: its folder, and the three files that are read.
FILES, FILES_OF_RUN = 4, 4
SEED_MAX = 99_999_999
ID_MAX = 100
LOOK_ALIKE = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"}  # scripts with letters that look the same


@dataclass(frozen=True)
class Assignment:
    """A rubric with its parameters filled in."""

    scenario: Scenario
    points: list[Point]
    claims: dict[str, Claim]  # {id in the rubric: claim}
    questions: list[Question]  # the rubric's, with ``value`` and ``within`` as numbers


@dataclass(frozen=True)
class Personal:
    """One student's assignment."""

    student: str
    parameters: dict[str, Scalar]
    seeds: list[int]
    assignment: Assignment


def one_form(text: str) -> str:
    """A student's id in Unicode's composed form (NFC), in which ids are compared."""
    return unicodedata.normalize("NFC", text).strip()


def foreign_letters(text: str) -> str:
    """The names of the first few letters of a text that are not ASCII: some look just like others."""
    return ", ".join(list(dict.fromkeys(unicodedata.name(c, f"U+{ord(c):04X}") for c in text if not c.isascii()))[:3])


def _looks_like_another(text: str) -> bool:
    """Whether a text mixes scripts that look alike, or has compatibility forms of letters (full width, ligatures)."""
    scripts = {unicodedata.name(c, "").split(" ")[0] for c in text if c.isalpha()}
    return len(scripts & LOOK_ALIKE) > 1 or unicodedata.normalize("NFKC", text) != text


def checked_id(text: str, place: str = "--student") -> str:
    """A student's id in one form. UserError, naming ``where`` it stands, if it is no plain text of one line, or looks like another's."""
    id = one_form(text)
    if not id or len(id) > ID_MAX or not id.isprintable() or "/" in id or id in (".", ".."):
        raise UserError(
            f"{place}: {text[:40]!r} is no student's id, which is 1 to {ID_MAX} printable characters without /"
        )
    if _looks_like_another(id):
        raise UserError(
            f"{place}: {text[:40]!r} looks like another id, for it has {foreign_letters(id)}; write it in letters of one alphabet"
        )
    return id


def drawn(rubric: Rubric, student: str, name: str, count: int) -> int:
    """A number below ``count``, drawn from the teacher's salt, the assignment, the student and ``name``: the same everywhere.

    A keyed hash (HMAC with SHA-256), so that nobody without the salt can tell what another id draws.
    """
    message = "\0".join((rubric.name, student, name)).encode()
    return int.from_bytes(hmac.digest(rubric.salt.encode(), message, hashlib.sha256), "big") % count


def drawn_seeds(rubric: Rubric, student: str) -> list[int]:
    """The seeds of a student, ascending."""
    seeds: list[int] = []
    number = 0
    while len(seeds) < rubric.seeds:
        seed = 1 + drawn(rubric, student, f"seed {number}", SEED_MAX)
        seeds += [seed] if seed not in seeds else []
        number += 1
    return sorted(seeds)


def personal(rubric: Rubric, student: str) -> Personal:
    """A student's assignment. UserError for an invalid id, or values that make no valid assignment together."""
    student = checked_id(student)
    parameters = {}
    for name, values in rubric.parameters.items():
        choices = values.all()
        parameters[name] = choices[drawn(rubric, student, f"parameter {name}", len(choices))]
    try:
        asked = filled_in(rubric, parameters)
    except Misplaced as error:
        raise UserError(
            f"rubric {rubric.name}, as drawn for {student}: {error}{in_words(parameters)}; change its parameters"
        ) from None
    return Personal(student, parameters, drawn_seeds(rubric, student), asked)


def filled_in(rubric: Rubric, parameters: Mapping[str, Scalar]) -> Assignment:
    """The assignment with parameters filled in. Misplaced for what is not valid then."""
    scenario, points = _scenario(rubric, parameters)
    figure = Figure(FIGURE, scenario, points, rubric.seeds)
    claims = {}
    for number, judged in enumerate(rubric.claims):
        place = ("claims", number)
        content = filled(judged.model_dump(), parameters, place)
        at = content["at"]
        terms = at if at and all(isinstance(v, dict) for v in at.values()) and "where" not in at else {"": at}
        for key, problem in NOT_HERE.items():
            if any(key in term for term in terms.values()):
                raise Misplaced((*place, "at"), f"claims.{judged.id}: at: {key}: {problem}")
        claim = {
            "id": f"GR-{judged.id}".replace("_", "-"), "statement": "GR-rubric", "paper": rubric.name, "says": content["says"],
            "at": {name: term | {"figure": FIGURE} for name, term in terms.items()}, "metric": content["metric"],
            "expect": content["expect"], "source": "the rubric", "exactness": "text", "because": content["because"],
        }  # fmt: skip
        try:
            claims[judged.id] = Claim.model_validate(claim)
        except ValidationError as error:
            raise _misplaced(error, place, f"claims.{judged.id}") from None
        if claim_problem := problem_of(claims[judged.id], figure):
            raise Misplaced(
                (*place, *claim_problem[0]), f"claims.{judged.id}: {'.'.join(claim_problem[0])}: {claim_problem[1]}"
            )
    questions = []
    for number, question in enumerate(rubric.questions):
        content = filled(question.model_dump(), parameters, ("questions", number))
        for key in ("value", "within"):
            if isinstance(content[key], str):
                content[key] = _computed(content[key], ("questions", number, key), f"questions.{question.id}: {key}")
        for index, hint in enumerate(content["hints"]):
            for key in ("times", "value"):
                if isinstance(hint[key], str):
                    where = ("questions", number, "hints", index, key)
                    hint[key] = _computed(hint[key], where, f"questions.{question.id}: hints: {key}")
        try:
            questions.append(Question.model_validate(content))
        except ValidationError as error:
            raise _misplaced(error, ("questions", number), f"questions.{question.id}") from None
    return Assignment(scenario, points, claims, questions)


def _misplaced(error: ValidationError, place: tuple[Any, ...], name: str) -> Misplaced:
    """The first of pydantic's errors in a part of a rubric."""
    first = error.errors()[0]
    field = [p for p in first["loc"] if p not in ("", "str", "list[str]") and not str(p).startswith("[")]
    words = (name, ".".join(map(str, field)), problems.problem_of(first))
    return Misplaced((*place, *field), ": ".join(filter(None, words)))


def _scenario(rubric: Rubric, parameters: Mapping[str, Scalar]) -> tuple[Scenario, list[Point]]:
    """The assignment's scenario, with the rows of a file of changes in it, and its points."""
    content = filled(rubric.scenario, parameters, ("scenario",))
    if empty := next(empty_places(content), None):
        raise Misplaced(("scenario", *empty), f"scenario: {empty_words(empty)}")
    try:
        read = validate(content, "scenario", folder=rubric.folder)
        refuse_rows_of_another_run(content, read, "scenario", points_name_files=False)
        with_rows = read.model_dump(exclude_unset=True)
        scenario = validate(with_rows, "scenario")  # as submissions have it, which may name no file
        points = points_of(scenario, "scenario")
    except UserError as error:
        raise Misplaced(("scenario",), str(error)) from None
    if any(flow.traffic is not None for point in points for flow in point.scenario.flows):
        raise Misplaced(("scenario", "flows"), "scenario: short flows (traffic) cannot be graded; leave them out")
    if scenario.scales:
        raise Misplaced(("scenario", "scales"), "scenario: scales are of campaigns; leave them out")
    _check_size(rubric, points)
    _check_cost(rubric, points)
    flat = flattened(points[0])
    for path in rubric.free:
        if path not in flat:
            raise Misplaced(
                ("free", path), f"free: '{path}' is no value of the scenario (for example: network.rate_mbit)"
            )
    return scenario, points


def _check_size(rubric: Rubric, points: list[Point]) -> None:
    """Misplaced if the assigned runs are not as many, or as large, as other keys of the rubric say."""
    limits, count = rubric.limits, len(points) * rubric.seeds
    if count > limits.runs:
        text = f"{len(points)} points and {rubric.seeds} seeds are more runs than limits.runs ({limits.runs})"
        raise Misplaced(("scenario",), f"scenario: {text}")
    if rubric.rerun > count and "rerun" in rubric.model_fields_set:
        text = f"rerun: {rubric.rerun} is more than the {number_of(count, 'run')} asked for; give {count}, to have all made again"
        raise Misplaced(("rerun",), text)
    files = FILES + count * FILES_OF_RUN
    if files > limits.files:
        text = f"a submission has at least {files} files and folders, allowed are {limits.files}; allow more, or ask for less"
        raise Misplaced(("limits", "files"), f"limits.files: {text}")
    size_mb = sum(map(disk_bytes, points)) * rubric.seeds / 1e6
    if size_mb > limits.submission_mb:
        text = f"the runs asked for have about {rounded(size_mb, 3)} MB, allowed are {limits.submission_mb:g}; allow more, or ask for less"
        raise Misplaced(("limits", "submission_mb"), f"limits.submission_mb: {text}")


def _check_cost(rubric: Rubric, points: list[Point]) -> None:
    """Misplaced if assigned runs exceed the limits for repeating them: nobody could get the points for that."""
    if not rubric.rerun:
        return
    advice = "allow more, or ask for less"
    for point in points:
        for field, why in too_much(point, rubric.limits).items():
            conditions = ", ".join(f"{path} {value}" for path, value in point.values.items())
            text = f"a run {f'with {conditions} ' if conditions else ''}{why}; {advice}"
            raise Misplaced(("limits", field), f"limits.{field}: {text}")
    costs = sorted((estimate_s(point) for point in points for _ in range(rubric.seeds)), reverse=True)
    seconds = sum(costs[: rubric.rerun])  # if the longest are drawn
    if seconds > rubric.limits.rerun_s:
        text = f"{rubric.rerun} runs made again (rerun) would need up to about {rounded(seconds, 3)} s, allowed are {rubric.limits.rerun_s:g}"
        raise Misplaced(("limits", "rerun_s"), f"limits.rerun_s: {text}; {advice}")


def too_much(point: Point, limits: Limits) -> dict[str, str]:
    """The limits that running a point would exceed: {field of the limits: by how much, in words}."""
    seconds = estimate_s(point)
    memory_mb = guest_bytes(point) / 1e6
    disk_mb = disk_bytes(point) / 1e6
    wanted = {
        "run_s": (seconds, "s"),
        "end_s": (seconds, "s"),
        "memory_mb": (memory_mb, "MB of memory"),
        "disk_mb": (disk_mb, "MB of disk"),
    }
    return {
        field: f"would need about {rounded(needed, 3)} {unit}, allowed are {getattr(limits, field):g}"
        for field, (needed, unit) in wanted.items()
        if needed > getattr(limits, field)
    }


def flattened(point: Point) -> dict[str, Any]:
    """{dotted path: value} of all that decides a point's outcome and is set."""
    content = point.scenario.model_dump(exclude=NOT_DECISIVE)
    return {path: value for path, value in leaves(content, whole_lists=True) if value not in (None, {})}


def canonical(value: Any) -> str:
    """A value as text, the same for equal ones: 1 and 1.0."""
    if isinstance(value, list):
        return json.dumps([canonical(v) for v in value])
    return json.dumps(float(value) if isinstance(value, int) and not isinstance(value, bool) else value)


def filled(content: Any, parameters: Mapping[str, Scalar], place: tuple[Any, ...]) -> Any:
    """The content with the parameters filled in; a text that is only ``{name}`` becomes the value itself."""
    if isinstance(content, str):
        for name in PLACEHOLDER.findall(content):
            if name not in parameters:
                names = ", ".join(parameters) or "none"
                raise Misplaced(place, f"'{{{name}}}': there is no parameter '{name}' (there are: {names})")
        whole = PLACEHOLDER.fullmatch(content)
        return parameters[whole[1]] if whole else PLACEHOLDER.sub(lambda match: str(parameters[match[1]]), content)
    if isinstance(content, dict):
        return {key: filled(value, parameters, (*place, key)) for key, value in content.items()}
    if isinstance(content, list):
        return [filled(value, parameters, (*place, index)) for index, value in enumerate(content)]
    return content


def _computed(text: str, place: tuple[Any, ...], where: str) -> float:
    """The value of an arithmetic expression."""
    try:
        tree = expressions.parse(text)
        names = expressions.names(tree)
        number = math.nan if names else float(expressions.evaluate(tree, {}))
    except (UserError, TypeError, ValueError) as error:
        raise Misplaced(place, f"{where}: {error}") from None
    if names:
        raise Misplaced(place, f"{where}: '{text}': parameters stand in braces, as {{{sorted(names)[0]}}}")
    if not math.isfinite(number):
        raise Misplaced(place, f"{where}: '{text}' is no finite number")
    return number


def problem_of(claim: Claim, figure: Figure) -> tuple[tuple[str, ...], str] | None:
    """The first problem of a claim on a figure's points, with its field; None if there is none."""
    traits = frozenset().union(*(p.traits for p in figure.points))
    for field, problem in check.problems_of(claim, {figure.id: figure}, lambda _: traits):
        return tuple(filter(None, field)), problem
    return None
