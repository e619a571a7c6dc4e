"""Reads a RUBRIC.yaml and checks it with the values that its students will get."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bbrlab.base.errors import UserError
from bbrlab.base.problems import fields_at, unknown_key
from bbrlab.base.yaml_files import Lines, read_yaml
from bbrlab.claims.expand import PLACEHOLDER
from bbrlab.scenario.messages import explain_error
from bbrlab_apps.grading.marks import idle_hints, tolerated_mistakes
from bbrlab_apps.grading.personal import filled_in
from bbrlab_apps.grading.rubric import Misplaced, Question, Rubric, Scalar, Values, in_words

TRIED_MAX = 200  # values of a parameter that a rubric is checked with
CORNERS_MAX = 64  # combinations of smallest and largest values that it is checked with besides


def load_rubric(path: Path) -> Rubric:
    """Read and check a rubric, with values of its parameters put in: each one, and the smallest and largest together.

    Of a parameter with more than TRIED_MAX values so many are tried, evenly spaced. UserError naming file, line, field, value and
    what would be valid.
    """
    content = read_yaml(path, "give the path of a RUBRIC.yaml")
    if not isinstance(content, dict):
        raise UserError(f"{path}: a rubric is a mapping of keys to values; see courses/README.md")
    lines = Lines(path)
    try:
        rubric = Rubric.model_validate(content)
    except ValidationError as error:
        problems = [_explained(f"{path}:{lines.of(e['loc'])}", e, content) for e in error.errors()]
        raise UserError("\n".join(dict.fromkeys(problems))) from None
    rubric.keep_place(path.absolute().parent)
    asked = []
    for chosen in tried(rubric.parameters):
        try:
            asked.append(filled_in(rubric, chosen).questions)
        except Misplaced as error:
            raise UserError(f"{path}:{lines.of(error.place)}: {error}{in_words(chosen)}") from None
    for place, why in (*_without_effect(rubric), *_hints_without_effect(asked)):
        raise UserError(f"{path}:{lines.of(place)}: {'.'.join(map(str, place))} would have no effect: {why}")
    return rubric


def _without_effect(rubric: Rubric) -> Iterator[tuple[tuple[str, str], str]]:
    """Where something stands that decides nothing, why, and what to do."""
    if "trials" in rubric.scenario:
        why = "each point is run with the seeds that a student draws, as many as the rubric's seeds says (leave it out)"
        yield ("scenario", "trials"), why
    late = rubric.late
    if late.free_days and (not late.percent_per_day or (late.last_day is not None and late.free_days > late.last_day)):
        why = "of late days that cost nothing some cost all (last_day), or all cost nothing (percent_per_day: 0); leave one out"
        yield ("late", "free_days"), why


def _hints_without_effect(asked: Sequence[Sequence[Question]]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The same of hints, which must decide nothing with any of the parameters' values.

    Args:
        asked: the questions, with each of those values.
    """
    for number, versions in enumerate(zip(*asked, strict=True)):
        first, *others = map(idle_hints, versions)
        for place, why in first.items():
            if all(place in other for other in others):
                yield ("questions", number, "hints", place), f"{why}; change it, or leave it out"


def notes_on(rubric: Rubric) -> list[str]:
    """In words: what is possible, but may not be what is meant."""
    content = rubric.model_dump(include={"scenario", "claims", "questions"})
    used = set(PLACEHOLDER.findall(json.dumps(content)))
    notes = [
        f"parameters.{name}: neither scenario nor claims or questions have {{{name}}}: students read what they drew, and nothing follows from it"
        for name in rubric.parameters
        if name not in used
    ]
    late = rubric.late
    if late.deadline is not None and not late.percent_per_day and late.last_day is None:
        notes.append(
            "late: has a deadline, and no late day costs anything (percent_per_day: 0, no last_day): lateness is told, no more"
        )
    return [*notes, *_notes_on_hints(rubric)]


def _notes_on_hints(rubric: Rubric) -> Iterator[str]:
    """Of mistakes that the tolerance lets pass, with the first and the last values of the parameters that are tried."""
    chosen = list(tried(rubric.parameters))
    versions = [filled_in(rubric, values).questions for values in (chosen[0], chosen[-1])]
    for first, last in zip(*versions, strict=True):
        for place in sorted(tolerated_mistakes(first) & tolerated_mistakes(last)):
            yield f"questions.{first.id}: hints.{place}: who makes this mistake is right within the question's tolerance, and does not read it"


def tried(parameters: Mapping[str, Values]) -> Iterator[dict[str, Scalar]]:
    """Values to check a rubric with: combinations of first and last ones, then each value with the first ones of the others."""
    every = {name: of_parameter.all() for name, of_parameter in parameters.items()}
    first, last = ({name: options[end] for name, options in every.items()} for end in (0, -1))
    corners = itertools.product(*(dict.fromkeys((options[0], options[-1])) for options in every.values()))
    chosen = [dict(zip(every, corner, strict=True)) for corner in itertools.islice(corners, CORNERS_MAX)]
    for name, options in every.items():
        count = min(len(options), TRIED_MAX)
        inner = sorted({round(i * (len(options) - 1) / (count - 1)) for i in range(1, count - 1)})
        chosen += [first | {name: options[place]} for place in (*inner, -1)]
    yield from (dict(key) for key in dict.fromkeys(tuple(choice.items()) for choice in (*chosen, last)))


def _explained(place: str, error: Any, content: Any) -> str:
    """A pydantic error in words: file, line, field, value, what would be valid."""
    if error["type"] != "extra_forbidden":
        return explain_error(place, error, content)
    above, key = [p for p in error["loc"][:-1] if isinstance(p, int) or "[" not in p], error["loc"][-1]
    return f"{place}: {'.'.join(map(str, [*above, key]))}: {unknown_key(str(key), fields_at(Rubric, above))}"
