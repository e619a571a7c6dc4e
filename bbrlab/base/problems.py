"""What is wrong with a value, in words: one table by pydantic's kinds of errors, for all files and options that are read."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel

from bbrlab.base.words import in_short, number_of

SHOWN_MAX = 200  # characters of a wrong value
PARTS = "keys with values"
NUMBERS = {"a number", "a whole number"}
# What a value must be, by pydantic's name of what is wrong.
MUST_BE = {
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": PARTS,
    "model_type": PARTS,
}
OTHER_WORDS = {"missing": "is missing", "extra_forbidden": "unknown key", "invalid_key": "must be a key in quotes"}
WITH_COMMA = re.compile(r"[-+]?\d+,\d+")
WORDS_OF = {True: "yes, on and true as true", False: "no, off and false as false"}  # which YAML reads so
# A pattern of one kind of first letter and another kind of those that follow, and how many follow at most.
_OF_LETTERS = re.compile(r"\^\[([^]]+)\]\[([^]]+)\](?:[*+]|\{0,(\d+)\})\$")
_LETTERS = {"A-Za-z": "letters", "A-Z": "capital letters", "a-z": "small letters", "0-9": "digits"}


def problem_of(error: Any) -> str:
    """What is wrong with a value by one of pydantic's errors, without its place."""
    if error["type"] == "value_error":
        return str(error["msg"]).removeprefix("Value error, ")
    if error["type"] in OTHER_WORDS:
        return OTHER_WORDS[error["type"]]
    return must_be(error) or str(error["msg"][0].lower() + error["msg"][1:])


def must_be(error: Any) -> str:
    """What the value of an error must be; empty where pydantic's own words say it well."""
    type, value, context = error["type"], error["input"], error.get("ctx", {})
    if type in ("too_short", "too_long") and isinstance(value, list):
        least, most = context.get("min_length"), context.get("max_length")
        return f"must have at {'least' if most is None else 'most'} {number_of(most or least, 'entry', 'entries')}, it has {len(value)}"
    if type == "literal_error":
        return f"must be {context['expected']}"
    if type == "string_pattern_mismatch":
        return _of_letters(context["pattern"])
    types = types_of(error)
    return f"must be {' or '.join(types)}{_how_written(types, value)}" if types else ""


def types_of(error: Any) -> list[str]:
    """The types that a value may have, in words; none if something else is wrong with it. Of one of several types an error may have
    the others' kinds as ``also``."""
    types = list(dict.fromkeys(MUST_BE.get(type, "") for type in (error["type"], *error.get("also", ()))))
    return [type for type in types if type != "a whole number" or "a number" not in types] if all(types) else []


def _how_written(types: Sequence[str], value: Any) -> str:
    """How a value of another type is written as what it is meant for; empty if that is not to be seen."""
    if NUMBERS.intersection(types) and isinstance(value, str) and WITH_COMMA.fullmatch(value.strip()):
        return "; decimals have a point"
    if "a text" in types and isinstance(value, int | float):
        return f"; write it in quotes{f' (YAML reads {WORDS_OF[value]})' if isinstance(value, bool) else ''}"
    return ""


def _of_letters(pattern: str) -> str:
    """What a text must be of by a pattern of a first letter and others; empty for patterns of other kinds."""
    if not (found := _OF_LETTERS.fullmatch(pattern)):
        return ""
    first, others, most = found.groups()
    begin = " or ".join(word.removesuffix("s") for word in _kinds(first))
    count = f", at most {int(most) + 1} in all" if most else ""
    return f"must be of {', '.join(_kinds(others))} only, with a {begin} first{count}; no spaces"


def _kinds(letters: str) -> list[str]:
    """The letters of a class of a pattern, in words; signs as they are."""
    words = []
    for kind, word in _LETTERS.items():
        if kind in letters:
            letters = letters.replace(kind, "")
            words.append(word)
    return [*words, " ".join(letters)] if letters else words


def unknown_key(key: str, names: Iterable[str]) -> str:
    """What is said of a key that there is not, with one that may be meant."""
    there = list(names)
    close = difflib.get_close_matches(key, there, 1)
    return f"unknown key; did you mean '{close[0]}'?" if close else f"unknown key (there are {', '.join(there)})"


def fields_at(kind: Any, place: Sequence[Any]) -> list[str]:
    """The keys that a part of a content may have.

    Args:
        kind: of the content: a model, or a type with one in it.
        place: of the part.
    """
    model = model_in(kind)
    for part in place:
        model = (
            model_in(model.model_fields[part].annotation) if model and part in model.model_fields else None
        ) or model
    return list(model.model_fields) if model else []


def model_in(annotation: Any) -> Any:
    """The model that a field holds, or a list of; None for a plain value."""
    parts = [annotation]
    while parts:
        part = parts.pop(0)
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
        parts += typing.get_args(part)
    return None


def found(value: Any) -> str:
    """A wrong value; of keys with values the keys alone: the values may be nobody's business."""
    if isinstance(value, dict) and value:
        return f"found the keys {in_short([str(key) for key in value])}"
    return f"found {value!r:.{SHOWN_MAX}}"
