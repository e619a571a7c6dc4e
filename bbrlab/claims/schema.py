"""The format of claims: what is said, where it holds, what is measured there and what is expected of it."""

from __future__ import annotations

import ast
import functools
import math
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from bbrlab.base.strict import Strict
from bbrlab.claims import expressions

Exactness = Literal[
    "text", "table", "raw data", "model output", "recomputed", "third party", "secondary", "qualitative"
]
CONDITIONS = (
    "rate_mbit", "base_rtt_ms", "buffer_bytes", "buffer_bdp", "random_loss", "duration_s", "window_start_s",
    "window_end_s",
)  # fmt: skip
PUBLISHED, WARE = "published", "ware"  # columns that bbrlab.claims.judge adds: published values, the Ware model's share
RELATIVE_TOLERANCE = 1e-3  # buffers are whole bytes


def rounded(value: float, digits: int) -> str:
    """A number with so many significant digits, for reading: 81140 and not 8.114e+04."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


class Term(Strict):
    """Points of one figure and a flow group of theirs.

    ``where`` chooses points by case, swept path or condition (``buffer_bdp: 2``); a value may be a list of alternatives.
    Without ``along`` it must leave exactly one point, with it at least two, in the order of that key (a list of keys:
    in the order of the first, then the second).
    """

    figure: str
    where: dict[str, Any] = {}
    group: Annotated[int, Field(ge=0)] = 0
    along: str | list[str] | None = None
    published: Annotated[str, Field(pattern=r"^[\w./-]+:[\w.]+$")] | None = Field(
        None, description="PAPER/TABLE:COLUMN of data/, joined by the columns that table and points share"
    )

    @property
    def keys(self) -> list[str]:
        """``along`` as a list."""
        return [self.along] if isinstance(self.along, str) else self.along or []


class Expectation(Strict):
    """Exactly one kind: value with ``within``, range, above, below, order, or trend."""

    value: float | None = None
    within: Annotated[float, Field(ge=0)] | None = Field(None, description="absolute tolerance of value")
    within_percent: Annotated[float, Field(ge=0)] | None = Field(None, description="the same, relative")
    range: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    above: float | None = None
    below: float | None = None
    order: Annotated[list[str], Field(min_length=2)] | None = Field(
        None, description="expressions from the smallest to the largest, in place of metric"
    )
    trend: Literal["rising", "falling"] | None = Field(None, description="of metric along the points")

    @model_validator(mode="after")
    def _one(self) -> Expectation:
        given = [k for k in ("value", "range", "above", "below", "order", "trend") if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"expect needs exactly one of value, range, above, below, order, trend (found: {', '.join(given) or 'none'})")  # fmt: skip
        tolerances = [k for k in ("within", "within_percent") if getattr(self, k) is not None]
        if len(tolerances) != (1 if self.value is not None else 0):
            raise ValueError("a value needs one of within, within_percent, and nothing else does")
        if self.range and self.range[0] >= self.range[1]:
            raise ValueError(f"range {self.range} must be [low, high]")
        return self

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest value of the judged number (of an order: its smallest step; of a trend: Kendall's tau)."""
        if self.value is not None:
            width = self.within if self.within is not None else abs(self.value) * (self.within_percent or 0) / 100
            return self.value - width, self.value + width
        if self.range:
            return self.range[0], self.range[1]
        if self.order:
            return 0.0, math.inf
        if self.trend:
            return (TREND, 1.0) if self.trend == "rising" else (-1.0, -TREND)
        return (self.above, math.inf) if self.above is not None else (-math.inf, float(self.below or 0))

    def __str__(self) -> str:
        low, high = self.bounds
        if self.value is not None:
            return f"{rounded(self.value, 12)} ± {rounded(high - self.value, 3)}"
        if self.order:
            return " < ".join(self.order)
        if self.trend:
            return self.trend
        if self.range:
            return f"{rounded(low, 12)} to {rounded(high, 12)}"
        return f"> {rounded(low, 12)}" if self.above is not None else f"< {rounded(high, 12)}"


TREND = 0.5  # rank correlation from which on a series counts as rising


class Claim(Strict):
    """One testable statement of a paper."""

    id: Annotated[str, Field(pattern=r"^[A-Z]{2}-[A-Za-z0-9.+-]+$")]
    paper: str
    says: Annotated[str, Field(min_length=10)]
    at: dict[str, Term]
    metric: str | None = None
    expect: Expectation
    source: Annotated[str, Field(min_length=5)]
    exactness: Exactness
    because: Annotated[str, Field(min_length=5)] = Field(description="the reason for the tolerance")
    shortest_s: Annotated[float, Field(gt=0)] | None = Field(
        None, description="runs at least so long can judge it; default: as long as the scenario's"
    )
    all_points: bool = Field(False, description="only judged where every point of the full scenario was run")
    finding: str | None = Field(None, description="what an investigation found, where it does not reproduce")
    line: int = 0

    @field_validator("at", mode="before")
    @classmethod
    def _one_term(cls, at: Any) -> Any:
        """``at: {figure: ...}`` is short for one term without a name."""
        return {"": at} if isinstance(at, dict) and "figure" in at else at

    @model_validator(mode="after")
    def _consistent(self) -> Claim:
        if (self.metric is None) != (self.expect.order is not None):
            raise ValueError("a claim needs a metric, or expect.order with the expressions")
        return self

    @functools.cached_property
    def trees(self) -> list[ast.expr]:
        """The parsed metric, or the parsed expressions of an order."""
        return [expressions.parse(text) for text in self.expect.order or [self.metric or ""]]

    @property
    def columns(self) -> set[str]:
        """Every ``column`` or ``term.column`` that it reads."""
        return set().union(*(expressions.names(tree) for tree in self.trees))
