"""The number that a claim judges, seed by seed, and how much of the claim's points a scale has."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.campaign.figures import Figure
from bbrlab.campaign.interval import ROUNDING
from bbrlab.claims import expressions, series
from bbrlab.claims.columns import beside
from bbrlab.claims.schema import PREDICTED, PUBLISHED, TREND_POINTS, WARE, Claim, Term
from bbrlab.claims.select import full_figures, select
from bbrlab.measure.schema import METRICS
from bbrlab.scenario.point import Point


@dataclass(frozen=True)
class Reach:
    """How much of a claim a scale has.

    Attributes:
        points: of each term, those that were run.
        have, full: how many points that are, of all terms, and how many they have at full.
        short_s: length of the shortest run, if that is too short for a verdict.
        why: why nothing can be said, even for the time being; empty if something can.
    """

    points: dict[str, list[Point]]
    have: int
    full: int
    short_s: float | None = None
    why: str = ""

    @property
    def final(self) -> bool:
        """Whether there can be a verdict: every point, as long as it must be."""
        return not self.why and self.have == self.full and self.short_s is None

    @property
    def told(self) -> str:
        """What is missing, in words."""
        parts = [f"{self.have} of {self.full} points"] if self.have < self.full else []
        if self.short_s is not None:
            parts.append(f"runs of {self.short_s:g} s")
        return ", ".join(parts)


def reach(claim: Claim, figures: Mapping[str, Figure]) -> Reach:
    """How much of a claim some figures have.

    Args:
        claim: whose terms.
        figures: those of the scale that were run, by id.
    """
    points: dict[str, list[Point]] = {}
    lengths: dict[str, int] = {}
    full, short, missing = 0, math.inf, ""
    for name, term in claim.at.items():
        at_full = _durations(term)
        full += len(at_full)
        chosen = select(term, figures[term.figure].points) if term.figure in figures else []
        chosen = [p for p in chosen if _key(p) in at_full]
        if not chosen:
            what = "its point of " if term.figure in figures and not term.along else ""
            missing = missing or f"{what}{term.figure} was not run"
        for point in chosen:
            needed_s = min(at_full[_key(point)], claim.shortest_s or math.inf)
            if point.scenario.duration_s < needed_s:
                short = min(short, point.scenario.duration_s)
        points[name] = chosen
        if term.along:
            lengths |= {c: len(chosen) for c in claim.columns if c.rpartition(".")[0] == name}
            if len(chosen) < 2:
                missing = missing or f"one point of {term.figure} alone"
    have = sum(map(len, points.values()))
    why = missing or _not_together(claim, lengths)
    return Reach(points, have, full, short if math.isfinite(short) else None, why)


def _not_together(claim: Claim, lengths: Mapping[str, int]) -> str:
    """Why the points that there are do not make a number; empty if they do."""
    try:
        counts = [expressions.points_of(tree, lengths) for tree in claim.trees]
    except UserError:
        return "its terms have different points"
    if claim.expect.trend and (counts[0] or 0) < TREND_POINTS:
        return f"a trend needs {TREND_POINTS} points"
    return ""


def _key(point: Point) -> str:
    """A point's values, to find it at another scale."""
    return json.dumps(point.values, sort_keys=True, default=str)


def _durations(term: Term) -> dict[str, float]:
    """Of each of a term's points at full how long it runs."""
    return {_key(p): p.scenario.duration_s for p in select(term, full_figures()[term.figure].points)}


@dataclass(frozen=True)
class Sample:
    """The judged number over the seeds that every point of a claim was run with.

    Attributes:
        values: shape (good seeds with a finite number,).
        seeds: how many there were.
        failed: of how many a run failed its self-checks.
        without: how many more had no finite number.
        identical: whether every seed measured the same at every point: repeats that say nothing of chance.
    """

    values: Array
    seeds: int
    failed: int
    without: int
    identical: bool


def sample(
    claim: Claim, points: Mapping[str, list[Point]], tables: Mapping[str, pd.DataFrame], results: Path | None = None
) -> Sample:
    """The number of each seed.

    Args:
        claim: what is judged.
        points: of each term (Reach.points).
        tables: of each figure (collect.figure_table()).
        results: the folder of results that has the models' predictions.

    Raises:
        UserError: if a published value or a prediction is missing for a point.
    """
    rows = {name: _rows(term, points[name], tables[term.figure]) for name, term in claim.at.items()}
    whole = [set(_complete(r, len(points[name]))) for name, r in rows.items()]
    seeds = sorted(set.intersection(*whole))
    good = [s for s in seeds if all(r.loc[s]["ok"].all() for r in rows.values())]
    columns = {}
    for name in claim.columns:
        term, _, column = name.rpartition(".")
        columns[name] = _by_seed(column, claim.at[term], points[term], rows[term], good, results)
    numbers = [_number(claim, {k: v[i] for k, v in columns.items()}) for i in range(len(good))]
    finite = np.array([n for n in numbers if math.isfinite(n)], dtype=float)
    same = len(good) > 1 and all(_same(claim.at[n], points[n], tables[claim.at[n].figure], good) for n in claim.at)
    return Sample(finite, len(seeds), len(seeds) - len(good), len(good) - len(finite), same)


def _rows(term: Term, chosen: list[Point], table: pd.DataFrame) -> pd.DataFrame:
    """One row per seed and place of a point, of the term's group."""
    place = {p.label: i for i, p in enumerate(chosen)}
    mine = table[(table["group"] == term.group) & table["point"].isin(place)]
    return mine.assign(place=mine["point"].map(place)).set_index(["seed", "place"]).sort_index()


def _complete(rows: pd.DataFrame, count: int) -> list[int]:
    """The seeds that have every point."""
    found = rows.groupby(level="seed").size()
    return list(found[found == count].index)


def _by_seed(
    column: str, term: Term, chosen: list[Point], rows: pd.DataFrame, seeds: list[int], results: Path | None
) -> list[Any]:
    """The column of each seed: an array of shape (points,), or one number of the only point."""
    if column in (PUBLISHED, WARE, *PREDICTED):
        values = np.broadcast_to(beside(column, term, chosen, results), (len(seeds), len(chosen)))
    else:
        values = rows[column].unstack("place").reindex(seeds).to_numpy(dtype=float)
    return [v if term.along else float(v[0]) for v in values]


def _number(claim: Claim, columns: Mapping[str, Any]) -> float:
    """The judged number of one seed; NaN if a step of an order or a point of a series has none."""
    values = [expressions.evaluate(tree, columns) for tree in claim.trees]
    match claim.expect.kind:
        case "order":
            return _smallest_step(np.array(values, dtype=float))
        case "trend":
            return series.trend(values[0])
        case "above" | "at_least":
            return float(np.min(values[0]))
        case "below" | "at_most":
            return float(np.max(values[0]))
        case _:
            middle = sum(claim.expect.bounds) / 2
            numbers = np.atleast_1d(values[0])
            return float(numbers[np.argmax(np.abs(numbers - middle))])  # NaN, if there is one


def _smallest_step(values: Array) -> float:
    """The smallest step between neighbours of shape (terms,) or (terms, points); two that are equal but for the last digits are a tie, 0."""
    steps = np.diff(values, axis=0)
    sizes = np.maximum(np.abs(values[:-1]), np.abs(values[1:]))
    ties = np.isfinite(sizes) & (np.abs(steps) <= ROUNDING * sizes)
    return float(np.min(np.where(ties, 0.0, steps)))


def _same(term: Term, chosen: list[Point], table: pd.DataFrame, seeds: list[int]) -> bool:
    """Whether all that was measured at a term's points is the same with every seed."""
    mine = table[table["point"].isin([p.label for p in chosen]) & table["seed"].isin(seeds)]
    measured = [c for c in METRICS if c in mine]
    return bool((mine.groupby(["point", "group"])[measured].nunique(dropna=False) <= 1).all(axis=None))
