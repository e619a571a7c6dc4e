"""The format of claims.yaml: statements of a paper, each with the claims that test it (docs/reference/claims.md)."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, field_validator, model_validator

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.problems import unknown_key
from bbrlab.base.strict import Strict, read_model
from bbrlab.claims import expressions

Exactness = Literal[
    "text", "table", "raw data", "model output", "recomputed", "third party", "secondary", "qualitative"
]
CONDITIONS = (
    "rate_mbit", "base_rtt_ms", "buffer_bytes", "buffer_bdp", "random_loss", "duration_s", "window_start_s",
    "window_end_s", "count",
)  # fmt: skip
# Columns that stand beside the measured ones: published values, the models' shares of group 0 (bbrlab.claims.columns).
PUBLISHED, WARE, FLUID, BURST = "published", "ware", "fluid", "burst"
PREDICTED = (FLUID, BURST)  # by jobs of the workflow, in files of their own
TREND_POINTS = 4  # of fewer points a rank correlation says little: of two it is always 1 or -1
LEAST_TAU = 0.5  # of a trend: three of four pairs of points go the way that is said
RELATIVE_TOLERANCE = 1e-3  # buffers are whole bytes

Id = Annotated[str, Field(pattern=r"^[A-Z]{2}-[A-Za-z0-9.+-]+$")]
Text = Annotated[str, Field(min_length=10)]
Source = Annotated[str, Field(min_length=5)]
Reason = Annotated[str, Field(min_length=5)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Version = Literal["bbr2", "bbr3"]


class _Readings(Strict):
    """data/readings.yaml: of each version what was chosen after a comparison with measurements."""

    bbr2: Text
    bbr3: Text


@functools.cache
def _readings() -> _Readings:
    return read_model(paths.DATA / "readings.yaml", _Readings)


def later_choices(own: str | None, versions: Iterable[Version]) -> str:
    """What was chosen after a comparison, in words; empty if nothing was. UserError if data/readings.yaml is not as it should be."""
    sentences = [own[0].upper() + own[1:].removesuffix(".") + "."] if own else []
    return " ".join([*sentences, *(getattr(_readings(), version) for version in versions)])


def rounded(value: float, digits: int) -> str:
    """A number with so many significant digits, for reading: 81140 and not 8.114e+04."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


def same_number(have: float, want: float, relative: float) -> bool:
    """Whether two numbers of files are the same but for so much of the larger; a number beyond all others equals none."""
    try:
        return math.isclose(have, want, rel_tol=relative)
    except OverflowError:  # an integer that no float holds
        return False


def _bounds_in(want: Any) -> Iterator[dict[str, Any]]:
    """The bounds among the values that ``where`` gives a key, also those in lists."""
    if isinstance(want, dict):
        yield want
    elif isinstance(want, list):
        for one in want:
            yield from _bounds_in(one)


class _Named(Strict):
    """A part of a claim, whose unknown keys are told by its own words wherever it is read."""

    @model_validator(mode="before")
    @classmethod
    def _known(cls, content: Any) -> Any:
        if isinstance(content, dict) and (other := next((key for key in content if key not in cls.model_fields), None)):
            raise ValueError(f"{other}: {unknown_key(str(other), cls.model_fields)}")
        return content


class Term(_Named):
    """Points of one figure and a flow group of theirs.

    ``where`` chooses points by case, swept path or condition (``buffer_bdp: 2``); a value may be a list of alternatives, or bounds (``{above: 1}``).
    Without ``along`` it must leave exactly one point, with it at least two, in the order of that key (a list of keys:
    in the order of the first, then the second).
    """

    figure: str = Field(description="PAPER/FIGURE; without PAPER/ of the same paper")
    where: dict[str, Any] = Field(
        {}, description="chooses points by case, swept path or condition (rate_mbit, base_rtt_ms, buffer_bytes, buffer_bdp, "
        "random_loss, duration_s, ...); a list of values: any of them; {above: 1, below: 8}, or one of the two: those between"
    )  # fmt: skip
    group: Annotated[int, Field(ge=0)] = Field(0, description="the flow group")
    along: str | list[str] | None = Field(
        None, description="a key, or a list of keys: the claim speaks of all points that are left, in this order. Without it exactly "
        "one point must be left"
    )  # fmt: skip
    published: Annotated[str, Field(pattern=r"^[\w-]+(/[\w-]+)?:[\w.]+$")] | None = Field(
        None, description="PAPER/TABLE:COLUMN of data/, joined by the columns that table and points share"
    )
    rows: dict[str, str | int | float] = Field({}, description="of published: only the table's rows with these values")
    join: dict[str, str] = Field(
        {},
        description="of published: {column: path or condition that it is}, if named otherwise (bbr_flows and buffer_packets are known)",
    )

    @field_validator("where")
    @classmethod
    def _bounds(cls, where: dict[str, Any]) -> dict[str, Any]:
        for key, want in where.items():
            for one in _bounds_in(want):
                if not (
                    one.keys() & {"above", "below"}
                    and all(k in ("above", "below") and isinstance(v, int | float) for k, v in one.items())
                ):
                    raise ValueError(f"{key}: {one} must be bounds: above, below, or both, each a number")
        return where

    @model_validator(mode="after")
    def _joined(self) -> Term:
        if self.published is None and (self.rows or self.join):
            raise ValueError("rows and join choose among published values; give published")
        return self

    @property
    def keys(self) -> list[str]:
        """``along`` as a list."""
        return [self.along] if isinstance(self.along, str) else self.along or []


class Expectation(_Named):
    """What is expected of the judged number: exactly one of value, range, above, below, at_least, at_most, order, trend."""

    value: FiniteFloat | None = Field(None, description="this number, with within or within_percent")
    within: Annotated[FiniteFloat, Field(gt=0)] | None = Field(None, description="absolute tolerance of value")
    within_percent: Annotated[FiniteFloat, Field(gt=0)] | None = Field(None, description="the same, relative")
    range: Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)] | None = Field(
        None, description="[low, high]"
    )
    above: FiniteFloat | None = Field(None, description="more than this")
    below: FiniteFloat | None = Field(None, description="less than this")
    at_least: FiniteFloat | None = Field(None, description="this or more")
    at_most: FiniteFloat | None = Field(None, description="this or less")
    order: Annotated[list[str], Field(min_length=2)] | None = Field(
        None, description="expressions from the smallest to the largest, in place of metric; ties are no order"
    )
    trend: Literal["rising", "falling"] | None = Field(
        None, description="Kendall's rank correlation (tau-b) of metric with the keys of along; at least four points"
    )
    beyond: Annotated[FiniteFloat, Field(ge=0)] | None = Field(
        None,
        description=f"of trend: Kendall's tau is farther from 0 than this, by default {LEAST_TAU:g}; of order: each step is more than this, by default 0",
    )

    @field_validator(
        "value", "within", "within_percent", "range", "above", "below", "at_least", "at_most", "beyond", mode="before"
    )
    @classmethod
    def _arithmetic(cls, number: Any) -> Any:
        """Text is arithmetic on a row's cells, which are numbers by now: ``max(0.05, {two_sem})``."""
        if isinstance(number, list):
            return [cls._arithmetic(one) for one in number]
        if not isinstance(number, str):
            return number
        try:
            tree = expressions.parse(number)
        except UserError as error:
            raise ValueError(str(error)) from None
        if names := sorted(expressions.names(tree)):
            raise ValueError(
                f"'{number}': here is arithmetic on numbers and a row's cells only (found: {', '.join(names)})"
            )
        return float(expressions.evaluate(tree, {}))

    @model_validator(mode="after")
    def _one(self) -> Expectation:
        given = [k for k in KINDS if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of {', '.join(KINDS)} is needed (found: {', '.join(given) or 'none'})")
        tolerances = [k for k in ("within", "within_percent") if getattr(self, k) is not None]
        if len(tolerances) != (1 if self.value is not None else 0):
            raise ValueError("a value needs one of within, within_percent, and nothing else does")
        if self.value == 0 and self.within_percent:
            raise ValueError("a percentage of a value of 0 is no tolerance; give within")
        if self.beyond is not None and self.trend is None and self.order is None:
            raise ValueError("beyond is of a trend or an order")
        if self.trend and (self.beyond or 0) >= 1:
            raise ValueError(f"beyond {self.beyond}: no rank correlation is; give a number below 1")
        if self.range and self.range[0] >= self.range[1]:
            raise ValueError(f"range {self.range} must be [low, high]")
        return self

    @property
    def kind(self) -> str:
        """Which of KINDS it is."""
        return next(k for k in KINDS if getattr(self, k) is not None)

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest value of the judged number (of an order: each of its steps; of a trend: Kendall's tau)."""
        match self.kind:
            case "value":
                value = self.value or 0.0
                width = self.within if self.within is not None else abs(value) * (self.within_percent or 0) / 100
                return value - width, value + width
            case "range":
                low, high = self.range or (0.0, 0.0)
                return low, high
            case "order":
                return self.beyond or 0.0, math.inf
            case "trend":
                limit = LEAST_TAU if self.beyond is None else self.beyond
                return (limit, math.inf) if self.trend == "rising" else (-math.inf, -limit)
            case "above" | "at_least" as kind:
                return getattr(self, kind), math.inf
            case kind:
                return -math.inf, getattr(self, kind)

    @property
    def strict(self) -> bool:
        """Whether the bounds themselves are outside."""
        return self.kind in ("above", "below", "order", "trend")

    @property
    def tolerance(self) -> float:
        """Half the width of what is expected; infinite if a side is open."""
        low, high = self.bounds
        return (high - low) / 2

    def holds(self, number: float) -> bool:
        """Whether a number is as expected."""
        low, high = self.bounds
        return low < number < high if self.strict else low <= number <= high

    def __str__(self) -> str:
        low, high = self.bounds
        match self.kind:
            case "value":
                return f"{rounded(self.value or 0.0, 6)} ± {rounded(high - (self.value or 0.0), 3)}"
            case "order":
                steps = " < ".join(self.order or [])
                return f"{steps}, each step beyond {rounded(self.beyond, 3)}" if self.beyond else steps
            case "trend":
                return f"{self.trend}, tau beyond {rounded(high if math.isinf(low) else low, 3)}"
            case "range":
                return f"{rounded(low, 6)} to {rounded(high, 6)}"
            case kind:
                sign = {"above": ">", "below": "<", "at_least": "≥", "at_most": "≤"}[kind]
                return f"{sign} {rounded(low if math.isinf(high) else high, 6)}"


KINDS = ("value", "range", "above", "below", "at_least", "at_most", "order", "trend")


class Finding(Strict):
    """What an investigation found where a statement does not reproduce."""

    text: Text = Field(description="in words")
    shows: Annotated[
        str, Field(min_length=5, description="command of this package, or table under data/, that shows it")
    ]


class Cause(Strict):
    """Where the cause lies that a statement is not, or not wholly, reproduced."""

    kind: Literal["paper", "open-condition", "algorithm", "environment", "unknown"] = Field(
        description="paper: its own data or another sentence of it contradict it; open-condition: it hangs on what the paper does not say; "
        "algorithm: the lab's BBRv2 or BBRv3 (Google's code in the same lab does otherwise); environment: the lab (Google's code, or "
        "Linux's own, in it misses as much); unknown: looked into, and not found"
    )
    evidence: Text = Field(description="in words, with the numbers that show it")


class Shared(Strict):
    """What a statement says for all its claims, and a claim may say otherwise for itself."""

    id: Id = Field(description="two capital letters of the paper, then a name; unique over all papers")
    paper: str
    says: Text = Field(description="what the paper says, in our words; {column} may stand in that of a claim only")
    source: Source = Field(description="where it stands in the paper")
    exactness: Exactness = Field(description="where the number comes from")
    because: Reason | None = Field(None, description="the reason for the tolerance")
    readings: list[Version] = Field(
        [], description="versions of BBR on whose readings of the drafts this depends: what of them was chosen after a "
        "comparison (data/readings.yaml) is told"
    )  # fmt: skip
    chosen_after: Reason | None = Field(
        None, description="what else was chosen after a comparison with measurements, and this depends on"
    )
    own: bool = Field(False, description="not the paper's: a reading of the lab's, counted in a line of its own")
    finding: Finding | None = Field(None, description="what an investigation found where it does not reproduce")
    shortest_s: Seconds | None = Field(
        None, description="runs of at least this length (s) may judge it; default: the scenario's own length"
    )

    @property
    def later_choices(self) -> str:
        """What was chosen after a comparison (later_choices())."""
        return later_choices(self.chosen_after, self.readings)


class Claim(Shared):
    """One number that tests a statement. What its statement says for all its claims is already put in."""

    id: Id = Field(description="unique over all papers; may be left out where a statement has one claim")
    statement: Id
    because: Reason = Field(description="the reason for the tolerance")
    variant: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="the reading of what is open that the claim belongs to; without it, it belongs to every reading",
    )
    role: Literal["control", "detail"] | None = Field(
        None, description="shown, but outside of the count: control (a condition or curve that the paper does not speak of, for comparison), "
        "detail (a cell of a panel that another claim of the statement judges as a whole)"
    )  # fmt: skip
    at: Annotated[dict[str, Term], Field(min_length=1)]
    metric: str | None = Field(
        None, description="arithmetic on the columns of the figure tables (docs/reference/results.md); name.column where at has "
        "names. Beside the measured columns: published; ware, fluid and burst, the share that the models give group 0. Functions: "
        "at the head of docs/reference/claims.md"
    )  # fmt: skip
    expect: Expectation = Field(description="what is expected of metric: numbers may be arithmetic on a row's cells")

    @field_validator("at", mode="before")
    @classmethod
    def _one_term(cls, at: Any) -> Any:
        """``at: {figure: ...}`` is short for one term without a name."""
        return {"": at} if isinstance(at, dict) and "figure" in at else at

    @model_validator(mode="after")
    def _consistent(self) -> Claim:
        if (self.metric is None) != (self.expect.order is not None):
            raise ValueError("a claim needs a metric, or expect.order with the expressions, not both")
        return self

    @functools.cached_property
    def trees(self) -> list[ast.expr]:
        """The parsed metric, or the parsed expressions of an order."""
        return [expressions.parse(text) for text in self.expect.order or [self.metric or ""]]

    @functools.cached_property
    def columns(self) -> set[str]:
        """Every ``column`` or ``term.column`` that it reads."""
        return set().union(*(expressions.names(tree) for tree in self.trees))

    @functools.cached_property
    def terms(self) -> set[str]:
        """The names of the terms whose columns it reads; empty for one without a name."""
        return {column.rpartition(".")[0] for column in self.columns}

    @functools.cached_property
    def along(self) -> str | None:
        """The first term that it reads along something, whose keys are those of a trend; None if there is none."""
        return next((name for name, term in self.at.items() if term.along and name in self.terms), None)

    @functools.cached_property
    def of_means(self) -> bool:
        """Whether it is computed of the seeds' means (expressions.of_means())."""
        return any(expressions.of_means(tree) for tree in self.trees)

    @functools.cached_property
    def counts_points(self) -> bool:
        """Whether it counts the points above a limit (expressions.counts_points())."""
        return len(self.trees) == 1 and expressions.counts_points(self.trees[0])

    @property
    def figures(self) -> list[str]:
        """The figures that it reads."""
        return list(dict.fromkeys(term.figure for term in self.at.values()))


class Wording(Shared):
    """A statement of a paper without the claims that test it."""

    open: Text | None = Field(None, description="what the paper leaves open; needed if claims have variants")
    cause: Cause | None = Field(
        None,
        description="where the cause lies if it is not, or not wholly, reproduced; without it: not looked into yet",
    )


class Statement(Wording):
    """One statement of a paper, with every claim that tests it (each row of a table, each variant)."""

    claims: Annotated[list[Claim], Field(min_length=1)]

    @model_validator(mode="after")
    def _open(self) -> Statement:
        if self.open is None and any(c.variant for c in self.claims):
            raise ValueError("its claims have variants: say under 'open' what the paper leaves open")
        if all(c.role for c in self.claims):
            raise ValueError("all its claims are controls or details; one at least must judge it")
        return self


# What a claim takes from its statement where it does not say it itself.
INHERITED = tuple(name for name in Shared.model_fields if name not in ("id", "paper"))
