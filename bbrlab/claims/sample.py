"""The numbers that a claim judges, seed by seed, and how much of the claim's points a scale has."""

from __future__ import annotations

import ast
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.campaign.chance import draws_nothing
from bbrlab.campaign.figures import Figure
from bbrlab.campaign.interval import ROUNDING
from bbrlab.campaign.seeds import unchanged
from bbrlab.claims import expressions, series
from bbrlab.claims.columns import beside
from bbrlab.claims.schema import PREDICTED, PUBLISHED, TREND_POINTS, WARE, Claim, Term
from bbrlab.claims.select import full_figures, name_of, ranks, select
from bbrlab.scenario.point import Point


@dataclass(frozen=True)
class Reach:
    """How much of a claim a scale has.

    Attributes:
        points: of each term, those that were run.
        have, full: how many points that are, of all terms, and how many they have at full.
        short_s: length of the shortest run, if that is too short for a verdict.
        elsewhere_s: the window of a run that is not within the window at full, and this, if runs are long enough.
        why: why nothing can be said, even for the time being; empty if something can.
    """

    points: dict[str, list[Point]]
    have: int
    full: int
    short_s: float | None = None
    elsewhere_s: tuple[list[float], list[float]] | None = None
    why: str = ""

    @property
    def final(self) -> bool:
        """Whether there can be a verdict: every point, as long as it must be, measured when it must be."""
        return not self.why and self.have == self.full and self.short_s is None and self.elsewhere_s is None

    @property
    def told(self) -> str:
        """What is missing, in words."""
        parts = [f"{self.have} of {self.full} points"] if self.have < self.full else []
        if self.short_s is not None:
            parts.append(f"runs of {self.short_s:g} s")
        elif self.elsewhere_s is not None:
            (low, high), (low_full, high_full) = self.elsewhere_s
            parts.append(f"measured from {low:g} to {high:g} s, not within {low_full:g} to {high_full:g} s")
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
    elsewhere = None
    for name, term in claim.at.items():
        at_full = _at_full(term)
        full += len(at_full)
        chosen = select(term, figures[term.figure].points) if term.figure in figures else []
        chosen = [p for p in chosen if _key(p) in at_full]
        if not chosen:
            what = "its point of " if term.figure in figures and not term.along else ""
            missing = missing or f"{what}{term.figure} was not run"
        for point in chosen:
            here, there = point.scenario, at_full[_key(point)].scenario
            if here.duration_s < min(there.duration_s, claim.shortest_s or math.inf):
                short = min(short, here.duration_s)
            if here.window_s[0] < there.window_s[0] or here.window_s[1] > there.window_s[1]:
                elsewhere = elsewhere or (here.window_s, there.window_s)
        points[name] = chosen
        if term.along:
            lengths |= {c: len(chosen) for c in claim.columns if c.rpartition(".")[0] == name}
            if len(chosen) < 2:
                missing = missing or f"one point of {term.figure} alone"
    have = sum(map(len, points.values()))
    why = missing or _not_together(claim, lengths)
    return Reach(points, have, full, short if math.isfinite(short) else None, elsewhere, why)


def _not_together(claim: Claim, lengths: Mapping[str, int]) -> str:
    """Why the points that there are do not make a number; empty if they do."""
    try:
        counts = [expressions.points_of(tree, lengths) for tree in claim.trees]
    except UserError:
        return "its terms have different points"
    if len(set(counts)) > 1:
        return "its terms have different points"
    if claim.expect.trend and (counts[0] or 0) < TREND_POINTS:
        return f"a trend needs {TREND_POINTS} points"
    return ""


def _key(point: Point) -> str:
    """A point's values, to find it at another scale."""
    return json.dumps(point.values, sort_keys=True, default=str)


def _at_full(term: Term) -> dict[str, Point]:
    """Each of a term's points at full."""
    return {_key(p): p for p in select(term, full_figures()[term.figure].points)}


@dataclass(frozen=True)
class Sample:
    """The judged numbers over the seeds that every point of a claim was run with.

    A part is what must be as expected by itself: a point of a series, a step of an order; else the one number.

    Attributes:
        values: shape (good seeds with finite numbers, parts). Of a claim of means (Claim.of_means): the jackknife's
            pseudo-values, whose mean and scatter are those of the number.
        seeds: how many there were.
        failed: of how many a run failed its self-checks.
        without: how many more had no finite number.
        identical: shape (parts,), whether every seed measured the same at all points of a part: repeats that say nothing of
            chance.
        labels: what tells the parts apart; empty if there is one.
        trends: of a trend: how surely the seeds' series rise and fall (series.p_trends()).
        back: of a trend: the surest step against it.
        back_label: between which points that is.
    """

    values: Array
    seeds: int
    failed: int
    without: int
    identical: Array
    labels: tuple[str, ...] = ("",)
    trends: tuple[float, float] | None = None
    back: series.StepBack = series.StepBack()
    back_label: str = ""


def sample(
    claim: Claim, points: Mapping[str, list[Point]], tables: Mapping[str, pd.DataFrame], results: Path | None = None
) -> Sample:
    """The numbers of each seed.

    Args:
        claim: what is judged.
        points: of each term (Reach.points).
        tables: of each figure (collect.figure_table()).
        results: the folder of results that has the models' predictions.

    Raises:
        UserError: if a published value or a prediction is missing for a point.
    """
    rows = {name: _rows(term, points[name], tables[term.figure]) for name, term in claim.at.items()}
    every = sorted({seed for r in rows.values() for seed in r.index.unique("seed")})
    rows = {n: _for_every_seed(r, points[n], tables[claim.at[n].figure], every) for n, r in rows.items()}
    whole = [set(_complete(r, len(points[name]))) for name, r in rows.items()]
    seeds = sorted(set.intersection(*whole))
    good = [s for s in seeds if all(r.loc[s]["ok"].all() for r in rows.values())]
    columns = {}
    for name in claim.columns:
        term, _, column = name.rpartition(".")
        columns[name] = _by_seed(column, claim.at[term], points[term], rows[term], good, results)
    along = next((n for n, term in claim.at.items() if term.along and n in _terms(claim)), None)
    key = ranks(claim.at[along], points[along]) if along is not None else []
    numbers = [_numbers(claim, {k: v[i] for k, v in columns.items()}, key) for i in range(len(good))]
    finite = [i for i, n in enumerate(numbers) if np.isfinite(n).all()]
    values = np.array([numbers[i] for i in finite]) if finite else np.empty((0, 1))
    if claim.of_means and len(finite) > 1:
        values = _pseudo_values(claim, {k: v[finite] for k, v in columns.items()}, key)
    names = [name_of(claim.at[along], p) for p in points[along]] if along is not None else []
    labels = _labels(claim, names, values.shape[1])
    same = {n: _same(points[n], tables[claim.at[n].figure], good) for n in claim.at}
    identical = _identical(claim, same, values.shape[1])
    lacking = (len(seeds) - len(good), len(good) - len(values))
    found = Sample(values, len(seeds), *lacking, identical, labels)
    if not claim.expect.trend or len(finite) < 2:
        return found
    curves = [expressions.evaluate(claim.trees[0], {k: v[i] for k, v in columns.items()}) for i in finite]
    places = np.array(key)
    back = series.step_back(curves, places, claim.expect.trend == "rising", bool(identical.all()))
    between = f"{names[back.first]} to {names[back.last]}" if back.first >= 0 else ""
    return replace(found, trends=series.p_trends(curves, places), back=back, back_label=between)


def _terms(claim: Claim) -> set[str]:
    """The terms whose columns it reads."""
    return {name.rpartition(".")[0] for name in claim.columns}


def _numbers(claim: Claim, columns: Mapping[str, Any], key: list[int]) -> Array:
    """The judged number of each part, of one seed or of means: shape (parts,).

    Args:
        columns: each a number, or an array of shape (points,).
        key: of a trend: the place of each point.
    """
    values = [expressions.evaluate(tree, columns) for tree in claim.trees]
    match claim.expect.kind:
        case "order":
            return _steps(np.array(values, dtype=float)).ravel()
        case "trend":
            return np.array([series.trend(values[0], np.array(key))])
        case _:
            return np.atleast_1d(np.asarray(values[0], dtype=float))


def _steps(values: Array) -> Array:
    """Steps between neighbours of shape (terms,) or (terms, points); two that are equal but for the last digits are a tie, 0."""
    steps = np.diff(values, axis=0)
    sizes = np.maximum(np.abs(values[:-1]), np.abs(values[1:]))
    ties = np.isfinite(sizes) & (np.abs(steps) <= ROUNDING * sizes)
    return np.where(ties, 0.0, steps)


def _pseudo_values(claim: Claim, columns: Mapping[str, Array], key: list[int]) -> Array:
    """The jackknife's pseudo-values (Tukey 1958): shape (seeds, parts), without seeds of which one is not finite.

    Args:
        columns: each of shape (seeds,) or (seeds, points), of at least two seeds.
        key: of a trend: the place of each point.
    """
    count = len(next(iter(columns.values())))
    whole = _numbers(claim, {k: v.mean(axis=0) for k, v in columns.items()}, key)
    others = [_numbers(claim, {k: np.delete(v, i, axis=0).mean(axis=0) for k, v in columns.items()}, key) for i in range(count)]  # fmt: skip
    found: Array = count * whole - (count - 1) * np.array(others)
    return found[np.isfinite(found).all(axis=1)]


def _labels(claim: Claim, names: list[str], parts: int) -> tuple[str, ...]:
    """What tells the parts of a claim apart."""
    if parts == 1:
        return ("",)
    texts = [ast.unparse(tree) for tree in claim.trees]
    steps = [f"{a} < {b}" for a, b in itertools.pairwise(texts)] if len(texts) > 2 else [""]
    places = names if len(names) * len(steps) == parts else [""]
    return tuple(", ".join(filter(None, both)) for both in itertools.product(steps, places))


def _identical(claim: Claim, same: Mapping[str, Array], parts: int) -> Array:
    """Whether all points of each part are the same with every seed: shape (parts,).

    Args:
        same: of each term: shape (points,).
    """
    lengths = {len(same[n]) for n, term in claim.at.items() if term.along}
    points = lengths.pop() if len(lengths) == 1 else 0
    steps = max(1, len(claim.trees) - 1)
    if points * steps != parts:
        return np.full(parts, all(s.all() for s in same.values()))
    return np.tile(np.logical_and.reduce([np.broadcast_to(s, points) for s in same.values()]), steps)


def _rows(term: Term, chosen: list[Point], table: pd.DataFrame) -> pd.DataFrame:
    """One row per seed and place of a point, of the term's group."""
    place = {p.label: i for i, p in enumerate(chosen)}
    mine = table[(table["group"] == term.group) & table["point"].isin(place)]
    return mine.assign(place=mine["point"].map(place)).set_index(["seed", "place"]).sort_index()


def _for_every_seed(rows: pd.DataFrame, chosen: list[Point], table: pd.DataFrame, seeds: Sequence[int]) -> pd.DataFrame:
    """Rows (_rows()) in which a point that draws nothing, and measured the same each time, stands beside every seed of the others."""
    still = {p.label: place for place, p in enumerate(chosen) if draws_nothing(p.scenario)}
    places = [still[label] for label in unchanged(table[table["point"].isin(still)])] if still else []
    missing = [(seed, place) for place in places for seed in seeds if (seed, place) not in rows.index]
    if not missing:
        return rows
    first = {place: rows.xs(place, level="place").index[0] for place in places}
    added = rows.loc[[(first[place], place) for _, place in missing]]
    return pd.concat([rows, added.set_axis(pd.MultiIndex.from_tuples(missing, names=rows.index.names))]).sort_index()


def _complete(rows: pd.DataFrame, count: int) -> list[int]:
    """The seeds that have every point."""
    found = rows.groupby(level="seed").size()
    return list(found[found == count].index)


def _by_seed(
    column: str, term: Term, chosen: list[Point], rows: pd.DataFrame, seeds: list[int], results: Path | None
) -> Array:
    """The column of each seed: shape (seeds, points), or (seeds,) of the only point."""
    if column in (PUBLISHED, WARE, *PREDICTED):
        values = np.broadcast_to(beside(column, term, chosen, results), (len(seeds), len(chosen)))
    elif column not in rows:
        raise UserError(
            f"the table of {term.figure} has no column {column}: made by another version of bbrlab; delete it, and snakemake makes it anew"
        )
    else:
        values = rows[column].unstack("place").reindex(index=seeds, columns=range(len(chosen))).to_numpy(dtype=float)
    return values if term.along else values[:, 0]


def _same(chosen: list[Point], table: pd.DataFrame, seeds: list[int]) -> Array:
    """Whether all that was measured at each point is the same with every seed, of at least two: shape (points,)."""
    labels = [p.label for p in chosen]
    same = unchanged(table[table["point"].isin(labels) & table["seed"].isin(seeds)])
    return np.array([label in same for label in labels])
