"""Content of files as models: unknown keys are errors, and a message names file, field and value."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from bbrlab.base.errors import UserError
from bbrlab.base.yaml_files import read_yaml

T = TypeVar("T")
SHOWN_MAX = 200  # characters of a wrong value

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
        hint: what to do if the file cannot be read.
    """
    try:
        return TypeAdapter(model).validate_python(read_yaml(path, hint))
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from None


def first_problem(error: ValidationError) -> str:
    """The first wrong field of a content: its place, what is wrong, and the value; of a missing field what it is missing in."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "content"
    return f"{place}: {problem_of(first['msg'])} (found {first['input']!r:.{SHOWN_MAX}})"


def problem_of(message: str) -> str:
    """A message of pydantic's without what it puts before ours."""
    return message.removeprefix("Value error, ")
