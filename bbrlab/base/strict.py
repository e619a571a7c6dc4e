"""The base of everything that is read from a file of the user's: unknown keys are errors."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, lt=1)]


class Strict(BaseModel):
    """Unknown keys are errors, numbers are finite, and "10" or true is no number. A default is as good as the same value written down:
    10 of a default and 10.0 of a file are one number in a fingerprint."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, validate_default=True)
