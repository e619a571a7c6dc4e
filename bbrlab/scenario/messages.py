"""Checks the content of a scenario file, and says in words what is wrong: file, line, field, value, what would be valid."""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bbrlab.base.errors import UserError
from bbrlab.base.problems import MUST_BE, NUMBERS, fields_at, model_in, problem_of, types_of
from bbrlab.base.words import shown
from bbrlab.base.yaml_files import Lines
from bbrlab.scenario.schema import FOLDER, SOURCES, Change, Flow, Link, Override, Policer, Reverse, Scenario

PYDANTICS_OWN = {
    "float",
    "int",
    "str",
    "bool",
    "constrained-float",
    "constrained-int",
}  # words for one of several types
# A number with what somebody took for its unit, which the key's name has already.
WITH_UNIT = re.compile(r"[-+]?[\d.,]+(e[-+]?\d+)?\s*[A-Za-z%][A-Za-z/%]*", re.IGNORECASE)
UNITS = {
    "mbit": "Mbit/s",
    "ms": "ms",
    "us": "us",
    "s": "s",
    "hz": "Hz",
    "bytes": "bytes",
    "packets": "packets",
    "bdp": "BDP",
}
UNITS_ALONE = ("ms",)  # names of fields that say nothing without what is around them
FRACTIONS = ("loss", "probability")
EXAMPLES = {
    "Network": "{rate_mbit: 20, rtt_ms: 50, buffer: {bdp: 2}}",
    "Buffer": "{bdp: 4}; it has one of bdp, bytes, packets (on the command line: --set network.buffer.bdp=4)",
    "Qdisc": "{kind: fq_codel}",
    "Change": "{at_s: 30, rate_mbit: 5}",
    "Hosts": "{segmentation: nic}",
    "Flow": "{cca: bbr3}",
    "Traffic": "{mode: replay}",
}


def validate(
    content: Any,
    where: str,
    lines: Lines | None = None,
    folder: Path | None = None,
    sources: tuple[Path, ...] = (),
    at: str = "",
) -> Scenario:
    """A Scenario from a dictionary. UserError naming ``where``, each wrong field, its value and what would be valid.

    Args:
        where: what to call it, such as its file.
        lines: of that file, to name the line as well.
        folder: of that file, which the files that it names are relative to; None: it may name none, and nothing is opened: for what
            is somebody else's.
        sources: C files of algorithms of one's own that flows may have, beside those in kernels/cca/.
        at: which of the file's points it is, in words for messages.
    """
    if not isinstance(content, dict):
        raise UserError(f"{where}: a scenario is a mapping of keys to values; see docs/reference/scenario.md")
    try:
        scenario = Scenario.model_validate(content, context={FOLDER: folder, SOURCES: sources})
    except ValidationError as error:
        messages = (
            explain_error(f"{where}{f':{lines.of(_place_in_file(e))}' if lines else ''}{at and f': {at}'}", e, content)
            for e in _one_for_each_field(error.errors())
        )
        raise UserError("\n".join(dict.fromkeys(messages))) from None
    scenario.keep_place(folder, sources)
    return scenario


def _place(error: Any) -> tuple[Any, ...]:
    """Where in the file a pydantic error is, without pydantic's own words for one of several types."""
    return tuple(
        part for number, part in enumerate(error["loc"], 1)
        if not (isinstance(part, str) and ("[" in part or part in PYDANTICS_OWN)) or _is_key(error, number)
    )  # fmt: skip


def _is_key(error: Any, number: int) -> bool:
    """Whether a part of its place is a key that nobody knows, which may look like pydantic's words."""
    return error["type"] == "extra_forbidden" and number == len(error["loc"])


def _place_in_file(error: Any) -> tuple[Any, ...]:
    """The same; what is wrong with several fields together begins with the one that is to be changed."""
    named = error["msg"].removeprefix("Value error, ").split(maxsplit=1) if error["type"] == "value_error" else []
    return (*_place(error), *named[0].strip(":").split(".")) if named else _place(error)


def _one_for_each_field(errors: Sequence[Any]) -> list[Any]:
    """Of a field that may have one of several types, one error: the one farthest inside, else one that names all types."""
    kept: dict[tuple[Any, ...], Any] = {}
    found = []
    places = [_place(error) for error in errors]
    for place, error in zip(places, errors, strict=True):
        of_several = len(place) < len(error["loc"])
        if of_several and any(len(other) > len(place) and other[: len(place)] == place for other in places):
            continue
        if of_several and place in kept:
            if (
                kept[place]["type"] in MUST_BE and error["type"] not in MUST_BE
            ):  # of the right type, and wrong otherwise
                kept[place].update(error)
            kept[place]["also"].append(error["type"])
            continue
        found.append({**error, "also": []})
        if of_several:
            kept[place] = found[-1]
    return found


def explain_error(where: str, error: Any, content: Any) -> str:
    """A pydantic error in words: file, field, value, what would be valid."""
    known = _place(error)
    path = shown(".".join(str(p) for p in known))
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key '{path}'{_suggest(path)}"
    if error["type"] == "missing":
        return f"{where}: '{path}' is missing"
    if error["type"] == "value_error":
        return f"{where}: {path + ': ' if path else ''}{problem_of(error)}"
    if error["input"] is None:
        return f"{where}: {empty_words(known)}"
    problem = _without_a_unit(error, known) or problem_of(error) + _example(error)
    return f"{where}: {path} = {_short(error['input'])}: {problem}{_with_unit(error, path)}"


def empty_words(place: Sequence[Any]) -> str:
    """What is said of a field without a value."""
    return f"{shown('.'.join(map(str, place)))} is empty; fill it in"


def _without_a_unit(error: Any, place: Sequence[Any]) -> str:
    """What is said of a number with its unit; empty for other values."""
    if not NUMBERS.intersection(types_of(error)) or not WITH_UNIT.fullmatch(str(error["input"]).strip()):
        return ""
    name = next((part for part in reversed(place) if isinstance(part, str)), "")
    unit = UNITS.get(name.rpartition("_")[2])
    hint = " (0.01 is 1 %)" if name in FRACTIONS else f" (it is in {unit})" if unit else ""
    return f"must be a number without a unit{hint}"


def _example(error: Any) -> str:
    """A value of a part of a scenario that was given as something else."""
    example = EXAMPLES.get(str(error.get("ctx", {}).get("class_name")))
    return f", for example {example}" if example else ""


def _short(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _suggest(path: str) -> str:
    """What somebody may have meant by a key that there is not: one in another place, or spelt like it; else what there is."""
    *before, key = path.split(".")
    parts = [part for part in before if not part.isdigit()]
    names = fields_at(Scenario, parts)
    meant = (
        [place for place in _places().get(key, []) if place != path and _plausible(place, parts)][:2]
        or [name for name in names if _stem(name) == _stem(key)][:1]
        or difflib.get_close_matches(key, names, 1, TYPO)
        or [p for name, of in _places().items() if _stem(name) == _stem(key) for p in of if _plausible(p, parts)][:2]
    )
    if meant:
        return f"; did you mean {' or '.join(map(repr, meant))}?"
    return f": there is no such field (valid here: {', '.join(names)})"


def _with_unit(error: Any, path: str) -> str:
    """The field of the same name with a unit, which a number in place of a word is meant for: start_s for start."""
    *before, key = path.split(".")
    if isinstance(error["input"], bool) or not isinstance(error["input"], int | float):
        return ""
    meant = [name for name in fields_at(Scenario, before) if name != key and _stem(name) == key]
    return f"; did you mean '{meant[0]}'?" if meant else ""


TYPO = 0.8  # how alike two words are that differ by a slip: reverse_rate_mbit is not rate_mbit, which 0.69 of it are
UNIT = re.compile(r"_(m?s|us|seconds?|[kmg]?bit|[kmg]bps|[kmgi]*b|bytes|packets|bdp|hz|percent)$")


def _stem(name: str) -> str:
    """A field's name without its unit."""
    return UNIT.sub("", name)


def _plausible(place: str, parts: Sequence[str]) -> bool:
    """Whether a key at ``place`` may be meant by the same key in another part: that of a main part of a scenario always, as its
    name says enough; that of a part within a part only from around it. A trace or some ms may be many things."""
    around = [part for part in place.split(".")[:-1] if not part.isdigit()]
    return len(around) <= 1 or (place.rpartition(".")[2] not in UNITS_ALONE and around[: len(parts)] == list(parts))


_OF_A_LIST = (Change, Flow)
_NEVER_MEANT = (Change, Link, Override, Policer, Reverse)  # whose keys are those of others


@functools.cache
def _places() -> dict[str, list[str]]:
    """{key: where it belongs}: dotted paths, the nearest to the top first."""
    found: dict[str, list[str]] = {}
    level: list[tuple[Any, str]] = [(Scenario, "")]
    while level:
        below = []
        for model, before in level:
            for name, field in model.model_fields.items():
                found.setdefault(name, []).append(before + name)
                inner = model_in(field.annotation)
                if inner and inner not in _NEVER_MEANT:
                    below.append((inner, f"{before}{name}.{'0.' if inner in _OF_A_LIST else ''}"))
        level = below
    return found
