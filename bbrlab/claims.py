"""What the papers claim: data/claims.yaml, checked against the scenarios before anything runs.

A claim says where it holds (``at``: points of a figure), what is measured there (``metric``: an expression over the
columns of the figure tables, docs/results.md) and what is expected of it. bbrlab.judge compares it with the runs.
"""

from __future__ import annotations

import ast
import csv
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from bbrlab import campaign, collect, expressions, paths
from bbrlab.errors import UserError
from bbrlab.scenario import Point, SafeLoader, Strict, read_yaml

Exactness = Literal[
    "text", "table", "raw data", "model output", "recomputed", "third party", "secondary", "qualitative"
]
CONDITIONS = (
    "rate_mbit", "base_rtt_ms", "buffer_bytes", "buffer_bdp", "random_loss", "duration_s", "window_start_s",
    "window_end_s",
)  # fmt: skip
PUBLISHED, WARE = "published", "ware"  # columns that bbrlab.judge adds: published values, the Ware model's share
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


@dataclass(frozen=True)
class Chosen:
    """The points that a term selects from a figure, in order."""

    term: Term
    points: list[Point]


def _equal(have: Any, want: Any) -> bool:
    if isinstance(want, list):
        return any(_equal(have, w) for w in want)
    if isinstance(have, (int, float)) and isinstance(want, (int, float)):
        return math.isclose(have, want, rel_tol=RELATIVE_TOLERANCE)
    return bool(have == want)


def select(term: Term, points: list[Point]) -> Chosen:
    """The points that match, in the order of ``along``."""
    found = [p for p in points if all(_equal(p.traits.get(k), v) for k, v in term.where.items())]
    if term.along:
        found.sort(key=lambda p: tuple(p.traits[k] for k in term.keys))
    return Chosen(term, found)


@functools.cache
def full_figures() -> dict[str, campaign.Figure]:
    """Every figure at its full size, by id."""
    return {f.id: f for f in campaign.figures("full", list(campaign.scenario_files()))}


def _lines(path: Path) -> list[int]:
    """The line of each entry of a YAML list."""
    root = yaml.compose(path.read_text(encoding="utf-8"), Loader=SafeLoader)
    return [node.start_mark.line + 1 for node in root.value] if isinstance(root, yaml.SequenceNode) else []


def load(path: Path | None = None) -> list[Claim]:
    """All claims, each checked in itself and against the scenarios at their full size.

    Raises:
        UserError: naming file, line and claim, for whatever is wrong: a missing source, an unknown figure, column or
            group, a selector that matches no point, or several where one is meant.
    """
    path = path or paths.DATA / "claims.yaml"
    content = read_yaml(path)
    if not isinstance(content, list):
        raise UserError(f"{path}: must be a list of claims; see data/README.md")
    check_published()
    figures = full_figures()
    found: list[Claim] = []
    for entry, line in zip(content, _lines(path), strict=True):
        where = f"{path}:{line}: {entry.get('id', 'claim') if isinstance(entry, dict) else 'claim'}"
        try:
            claim = Claim.model_validate({**entry, "line": line} if isinstance(entry, dict) else entry)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(p) for p in first["loc"])
            raise UserError(
                f"{where}: {field + ': ' if field else ''}{first['msg'].removeprefix('Value error, ')}"
            ) from None
        for other in found:
            if other.id == claim.id:
                raise UserError(f"{where}: line {other.line} has this id already")
        try:
            for problem in _problems(claim, figures):
                raise UserError(problem)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        found.append(claim)
    return found


def check_published() -> None:
    """UserError, naming file and line, for a published value without its source."""
    for path in sorted(paths.DATA.glob("*/*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            for row in reader:
                if not (row.get("source") or "").strip():
                    raise UserError(f"{path}:{reader.line_num}: this published value has no source")


def _problems(claim: Claim, figures: dict[str, campaign.Figure]) -> Iterator[str]:
    known: set[str] = set()
    papers = {name.split("/")[0] for name in figures}
    if claim.paper not in papers:
        yield f"paper: there is no '{claim.paper}' (there are {', '.join(sorted(papers))})"
    for name, term in claim.at.items():
        prefix = f"at.{name}: " if name else "at: "
        if term.figure not in figures:
            yield f"{prefix}there is no figure '{term.figure}' (there are {', '.join(figures)})"
        figure = figures[term.figure]
        choices = set().union(*(p.traits for p in figure.points))
        for key in [*term.where, *term.keys]:
            if key not in choices:
                yield f"{prefix}'{key}' tells no points of {term.figure} apart (these do: {', '.join(sorted(choices))})"
        chosen = select(term, figure.points).points
        if not chosen:
            yield f"{prefix}no point of {term.figure} matches {term.where}"
        if not term.along and len(chosen) > 1:
            labels = "; ".join(p.label for p in chosen[:3])
            yield f"{prefix}{len(chosen)} points of {term.figure} match {term.where}, one is meant (or give along): {labels}"
        if term.along and len(chosen) < 2:
            yield f"{prefix}one point of {term.figure} matches {term.where}, but along needs several"
        for point in chosen:
            if term.group >= len(point.scenario.flows):
                yield f"{prefix}group {term.group} does not exist (groups 0 to {len(point.scenario.flows) - 1})"
        if term.published:
            table, column = term.published.split(":")
            file = paths.DATA / f"{table}.csv"
            if not file.exists() or column not in file.read_text(encoding="utf-8").split("\n", 1)[0].split(","):
                yield f"{prefix}published: data/{table}.csv has no column {column}"
        available = {*collect.UNITS, *CONDITIONS, *([PUBLISHED] if term.published else [])}
        if len(figure.scenario.flows) > 1 and term.group == 0:
            available.add(WARE)
        known |= {f"{name}.{column}" if name else column for column in available}
    for column in sorted(claim.columns - known):
        yield f"metric: there is no column '{column}' (docs/results.md lists them; terms: {', '.join(claim.at) or 'none'})"
    if claim.expect.value is not None or claim.expect.range or claim.expect.order:
        # What no function has made one number of would leave open which of its values is meant.
        series = {c for c in claim.columns if claim.at[c.rpartition(".")[0]].along}
        for tree in claim.trees:
            if not expressions.is_scalar(tree, series):
                yield f"metric: '{ast.unparse(tree)}' has a value for each point; take the mean, max or another function of it"
