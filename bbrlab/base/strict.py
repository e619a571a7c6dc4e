"""Content of files as models: unknown keys are errors, and a message names file, field and value."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bbrlab.base.errors import UserError
from bbrlab.base.problems import OTHER_WORDS, fields_at, found, problem_of, unknown_key
from bbrlab.base.words import in_short
from bbrlab.base.yaml_files import read_yaml

T = TypeVar("T")
SEVERAL = 2  # unknown keys: one may be a slip

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, lt=1)]


class Strict(BaseModel):
    """Unknown keys are errors, numbers are finite, and "10" or true is no number. A default is as good as the same value written down:
    10 of a default and 10.0 of a file are one number in a fingerprint."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, validate_default=True)


def read_model(path: Path, model: type[T], hint: str = "") -> T:
    """The content of a YAML file, checked. UserError naming the file, and its first wrong field with its value; as read_yaml().

    Args:
        model: its type: a model, or a list of them.
        hint: what to do if the file cannot be read, or is of another kind.
    """
    content = read_yaml(path, hint)
    try:
        return TypeAdapter(model).validate_python(content)
    except ValidationError as error:
        problem = _of_another_kind(error, content) or first_problem(error, model)
        raise UserError(f"{path}: {problem}{hint and f'; {hint}'}") from None


def _of_another_kind(error: ValidationError, content: Any) -> str:
    """What is said of a file that lacks keys and has several others; empty for one that has not."""
    at_top = {kind: [str(e["loc"][0]) for e in error.errors() if e["type"] == kind and len(e["loc"]) == 1] for kind in ("missing", "extra_forbidden")}  # fmt: skip
    missing, other = at_top["missing"], at_top["extra_forbidden"]
    if not missing or len(other) < SEVERAL:
        return ""
    return f"is another kind of file: it has {in_short(other)}, and not {in_short(missing)}"


def first_problem(error: ValidationError, model: Any = None) -> str:
    """The first wrong field of a content, an unknown key before others: its place, what is wrong, and the value.

    Args:
        model: type of the content, to say which keys there are.
    """
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    place = ".".join(str(part) for part in first["loc"]) or "content"
    if first["type"] == "extra_forbidden" and (names := fields_at(model, first["loc"][:-1])):
        return f"{place}: {unknown_key(str(first['loc'][-1]), names)}"
    if first["type"] in OTHER_WORDS:
        return f"{place}: {problem_of(first)}"
    return f"{place}: {problem_of(first)} ({found(first['input'])})"
