"""What is wrong with a claim beside the scenarios: figures, points, columns and published values that are not there."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from bbrlab.base.errors import UserError
from bbrlab.claims import expressions
from bbrlab.claims.columns import has_models, has_prediction, published
from bbrlab.claims.expand import published_columns
from bbrlab.claims.schema import CONDITIONS, PREDICTED, PUBLISHED, TREND_POINTS, WARE, Claim, Term
from bbrlab.claims.select import select, traits_of
from bbrlab.measure.metrics import METRICS
from bbrlab.results.figures import Figure
from bbrlab.scenario.point import Point

Field = tuple[str, ...]  # of a claim: keys from the outermost


def problems_of(
    claim: Claim, figures: Mapping[str, Figure], traits: Callable[[str], Collection[str]] = traits_of
) -> Iterator[tuple[Field, str]]:
    """What is wrong with a claim beside the scenarios: (field, problem) each, the field as its place below the claim.

    Args:
        figures: that it may speak of, by id, with all their points.
        traits: what the points of each of them can be chosen by.
    """
    if in_itself := list(problems_in_itself(claim)):
        yield from in_itself
        return
    field, read = _field_of(claim), claim.columns
    available: set[str] = set()
    lengths: dict[str, int] = {}
    for name, term in claim.at.items():
        if term.figure not in figures:
            close = difflib.get_close_matches(term.figure, figures, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(figures)}"
            yield ("at", name, "figure"), f"there is no figure '{term.figure}' ({hint})"
            return
        figure = figures[term.figure]
        chosen = select(term, figure.points)
        for term_field, problem in _term_problems(term, chosen, traits(term.figure)):
            yield ("at", name, term_field), problem
        of_term = {f"{name}.{c}" if name else c for c in _columns_of(term, figure)}
        for model in PREDICTED:
            if (own := f"{name}.{model}" if name else model) in read and has_prediction(model, term, figure):
                of_term.add(own)
        available |= of_term
        if term.along:
            lengths |= dict.fromkeys(of_term, len(chosen))
    for column in sorted(read - available):
        yield (field,), _no_column(claim, column)
    if read <= available:
        for name in sorted(claim.at.keys() - claim.terms):
            yield ("at", name), f"nothing reads it; write '{name}.' and a column in {field}, or leave it out"
    try:
        counts = [expressions.points_of(tree, lengths) for tree in claim.trees]
    except UserError as error:
        yield (field,), str(error)
        return
    yield from _series_problems(claim, counts, lengths, field)


def problems_in_itself(claim: Claim) -> Iterator[tuple[Field, str]]:
    """What is wrong with a claim wherever it is read: expressions that are none, that read no column, or one of a term that there is not."""
    try:
        read = claim.columns
    except UserError as error:
        yield (_field_of(claim),), str(error)
        return
    if not read:
        yield (_field_of(claim),), "reads no column: it would say the same of every run"
    for column in sorted(read):
        if column.rpartition(".")[0] not in claim.at:
            yield (_field_of(claim),), _no_column(claim, column)


def _field_of(claim: Claim) -> str:
    """The field that has a claim's expressions."""
    return "expect" if claim.expect.order else "metric"


def _no_column(claim: Claim, column: str) -> str:
    terms = ", ".join(name for name in claim.at if name) or "without names"
    return f"there is no column '{column}' (docs/reference/results.md lists them; terms: {terms})"


def _term_problems(term: Term, chosen: list[Point], choices: Collection[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with a term whose points can be chosen by ``choices``: (field, problem) each."""
    for field, keys in (("where", term.where), ("along", term.keys)):
        for key in keys:
            if key not in choices:
                yield (
                    field,
                    f"'{key}' tells no points of {term.figure} apart (these do: {', '.join(sorted(choices))})",
                )
    if not chosen:
        yield "where", f"no point of {term.figure} matches {term.where}"
    if not term.along and len(chosen) > 1:
        labels = "; ".join(p.label for p in chosen[:3])
        yield (
            "where",
            f"{len(chosen)} points of {term.figure} match {term.where}, one is meant (or give along): {labels}",
        )
    if term.along is not None and len(chosen) < 2:
        yield "along", f"one point of {term.figure} matches {term.where}, but along needs several"
    for point in chosen:
        if term.group >= len(point.scenario.flows):
            yield "group", f"group {term.group} does not exist (groups 0 to {len(point.scenario.flows) - 1})"
    if term.published:
        yield from _published_problems(term, chosen, choices)


def _published_problems(term: Term, chosen: list[Point], choices: Collection[str]) -> Iterator[tuple[str, str]]:
    """What is wrong with a term's published values: (field, problem) each."""
    table, column = (term.published or ":").split(":")
    try:
        columns = published_columns(table)
    except UserError as error:
        yield "published", str(error)
        return
    for field, names in (("published", [column]), ("rows", term.rows), ("join", term.join)):
        for name in names:
            if name not in columns:
                yield field, f"data/{table}.csv has no column '{name}' (it has {', '.join(columns)})"
    for name, key in term.join.items():
        if key not in choices:
            yield "join", f"{name}: '{key}' tells no points of {term.figure} apart"
    try:
        if not np.isfinite(published(term, chosen)).all():
            yield (
                "published",
                f"data/{table}.csv lacks a value of {column} for one of the points; leave it out with where",
            )
    except (UserError, ValueError) as error:
        yield "published", str(error)


def _columns_of(term: Term, figure: Figure) -> set[str]:
    """The columns that a claim may read of a term, but for those of models whose predictions are files."""
    available = {*METRICS, *CONDITIONS}
    if term.published:
        available.add(PUBLISHED)
    if has_models(term, figure):
        available.add(WARE)
    return available


def _series_problems(
    claim: Claim, counts: list[int | None], lengths: Mapping[str, int], field: str
) -> Iterator[tuple[Field, str]]:
    """A series where one is needed, of an order all over as many points, of a trend over the points of its keys."""
    kind = claim.expect.kind
    if kind == "order" and len(set(counts)) > 1:
        terms = ", ".join(
            f"'{ast.unparse(t)}' has {n or 'one number'}" for t, n in zip(claim.trees, counts, strict=True)
        )
        yield (field,), f"each expression must have a value for each of the same points, or one number ({terms})"
    if kind == "trend" and (counts[0] or 0) < TREND_POINTS:
        yield (
            ("expect", "trend"),
            f"needs a metric with a value for each of at least {TREND_POINTS} points (found: {counts[0] or 'one number'})",
        )
    elif kind == "trend":
        over = {column.rpartition(".")[0] for column in expressions.series_in(claim.trees[0], lengths)}
        if claim.along not in over:
            terms = ", ".join(sorted(over))
            yield (
                ("expect", "trend"),
                f"is along the points of '{claim.along}', but metric has a value for each of those of {terms}; write {terms} before {claim.along} in at",
            )
    if kind in ("value", "range") and not math.isfinite(claim.expect.tolerance):  # others are open on a side
        yield ("expect",), "its bounds are too large"
