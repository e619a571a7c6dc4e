"""What claims expect at single points of a figure, to stand beside what was measured there."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bbrlab.base.errors import UserError
from bbrlab.claims.columns import published
from bbrlab.claims.schema import PUBLISHED, Claim
from bbrlab.claims.select import select
from bbrlab.measure.metrics import METRICS, RUN
from bbrlab.results.figures import Figure
from bbrlab.scenario.point import Point

WHOLE_RUN = "run"  # in place of a group's number, for metrics of the whole run
# Exactness of claims whose number nobody printed or measured: another paper's model computed it, or it is our reading of words. A
# paper that is about its own model publishes what that gives; its claims are "secondary" (scherrer2022).
NOT_PUBLISHED = ("model output", "qualitative")


class Expected(NamedTuple):
    """What a claim expects of a metric at a point: a published value (published_value()) and its bounds, or bounds alone; None
    where there is none."""

    value: float | None
    low: float | None
    high: float | None
    claim: str


def published_value(claim: Claim) -> float | None:
    """The number that a claim compares with, if it is published; None for a model's, our reading of words, and a claim without one."""
    return None if claim.exactness in NOT_PUBLISHED else claim.expect.value


def measured_point(claim: Claim, figure: Figure) -> tuple[str, str, Point] | None:
    """Metric, group (or WHOLE_RUN) and point of a claim that reads one metric at one point of the figure; None for others."""
    metric, terms = claim.metric or "", list(claim.at.values())
    if metric not in METRICS or len(terms) != 1 or terms[0].figure != figure.id or terms[0].along:
        return None
    chosen = select(terms[0], figure.points)
    return (metric, _group_of(metric, terms[0].group), chosen[0]) if len(chosen) == 1 else None


def expected_at(
    figure: Figure, points: Sequence[Point], claims: Iterable[Claim]
) -> dict[str, dict[str, list[Expected | None]]]:
    """{metric: {group or WHOLE_RUN: what is expected at each point}}; of several claims on one point the first with a value counts.

    A claim expects something of one point, or compares a metric with published values along several: those of one point come first.
    """
    places = {p.label: i for i, p in enumerate(points)}
    expected: dict[str, dict[str, list[Expected | None]]] = {}
    of_figure = [claim for claim in claims if figure.id in claim.figures and not claim.own]
    for values_of in (_of_one_point, _of_published_values):
        for metric, group, point, value in (one for claim in of_figure for one in values_of(claim, figure)):
            if point.label in places:
                cells = expected.setdefault(metric, {}).setdefault(group, [None] * len(points))
                known = cells[places[point.label]]
                if known is None or (known.value is None and value.value is not None):
                    cells[places[point.label]] = value
    return expected


def _of_one_point(claim: Claim, figure: Figure) -> Iterator[tuple[str, str, Point, Expected]]:
    if place := measured_point(claim, figure):
        low, high = claim.expect.bounds
        if math.isfinite(high - low):
            yield *place, Expected(published_value(claim), low, high, claim.id)


def _of_published_values(claim: Claim, figure: Figure) -> Iterator[tuple[str, str, Point, Expected]]:
    columns = {column.rpartition(".")[2] for column in claim.columns}
    metrics = columns & METRICS.keys()
    if claim.exactness in NOT_PUBLISHED or PUBLISHED not in columns or len(metrics) != 1 or len(claim.at) != 1:
        return
    (metric,), (term,) = metrics, claim.at.values()
    times = _times_published(claim.trees[0], metric)
    if term.published is None or term.figure != figure.id or times is None:
        return
    chosen = select(term, figure.points)
    try:
        values = published(term, chosen)
    except UserError:  # the judge reports it in the claim's row
        return
    for point, value in zip(chosen, values, strict=True):
        if math.isfinite(value):
            yield metric, _group_of(metric, term.group), point, Expected(float(value) / times, None, None, claim.id)


def _times_published(expression: ast.expr, metric: str) -> float | None:
    """By what a metric is multiplied where published values are taken from it (100: they are percent); None where they are not."""
    for node in ast.walk(expression):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            one, other = (node.left, node.right) if _names(node.right, PUBLISHED) else (node.right, node.left)
            if not _names(other, PUBLISHED):
                continue
            if _names(one, metric):
                return 1.0
            if (
                isinstance(one, ast.BinOp)
                and isinstance(one.op, ast.Mult)
                and _names(one.right, metric)
                and isinstance(one.left, ast.Constant)
                and isinstance(one.left.value, int | float)
            ):
                return float(one.left.value)
    return None


def _names(node: ast.expr, column: str) -> bool:
    """Whether an expression is a column and nothing else; of which term, no matter."""
    return (isinstance(node, ast.Name) and node.id == column) or (
        isinstance(node, ast.Attribute) and node.attr == column
    )


def _group_of(metric: str, group: int) -> str:
    return WHOLE_RUN if metric in RUN else str(group)


def metrics_read(figure: str, claims: Iterable[Claim]) -> list[str]:
    """The metrics that claims on a figure (PAPER/FIGURE) read, those of most claims first."""
    claims_on: dict[str, int] = {}
    for claim in claims:
        if figure in claim.figures:
            for column in claim.columns:
                name = column.rpartition(".")[2]
                if name in METRICS:
                    claims_on[name] = claims_on.get(name, 0) + 1
    return sorted(claims_on, key=lambda name: (-claims_on[name], list(METRICS).index(name)))
