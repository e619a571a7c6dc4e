"""The numbers that a claim judges, seed by seed, and how much of the claim's points a scale has."""

from __future__ import annotations

import ast
import itertools
import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.claims import expressions, series
from bbrlab.claims.columns import beside
from bbrlab.claims.resolution import pair_of, resolution, step_of
from bbrlab.claims.schema import PREDICTED, PUBLISHED, TREND_POINTS, WARE, Claim, Term
from bbrlab.claims.select import full_figures, name_of, ranks, select
from bbrlab.claims.table_facts import TableFacts
from bbrlab.results.figures import Figure
from bbrlab.results.statistics import ROUNDING
from bbrlab.scenario.draws import draws_flows
from bbrlab.scenario.point import Point

MISSING_LARGEST = 0.2  # of a point's runs that may have failed or have no number


@dataclass(frozen=True)
class Reach:
    """How much of a claim a scale has."""

    points: dict[str, list[Point]]  # of each term, those that were run
    # have, full: how many points that are, of all terms, and how many they have at full
    have: int
    full: int
    short_s: float | None = None  # length of the shortest run, if that is too short for a verdict
    # The window of a run that is not within the window at full, and this, if runs are long enough
    elsewhere_s: tuple[list[float], list[float]] | None = None
    why: str = ""  # why nothing can be said, even for the time being; empty if something can

    @property
    def final(self) -> bool:
        """Whether there can be a verdict: every point, as long as it must be, measured when it must be."""
        return not self.why and self.have == self.full and self.short_s is None and self.elsewhere_s is None

    @property
    def shortfall(self) -> str:
        """What is missing, in words."""
        parts = [f"{self.have} of {self.full} points"] if self.have < self.full else []
        if self.short_s is not None:
            parts.append(f"runs of {self.short_s:g} s")
        elif self.elsewhere_s is not None:
            (low, high), (low_full, high_full) = self.elsewhere_s
            parts.append(f"measured from {low:g} to {high:g} s, not within {low_full:g} to {high_full:g} s")
        return ", ".join(parts)


def reach(claim: Claim, figures: Mapping[str, Figure]) -> Reach:
    """How much of a claim some figures have."""
    points: dict[str, list[Point]] = {}
    lengths: dict[str, int] = {}
    full, short, missing = 0, math.inf, ""
    elsewhere = None
    for name, term in claim.at.items():
        at_full = {_key(p): p for p in select(term, full_figures()[term.figure].points)}
        full += len(at_full)
        chosen = select(term, figures[term.figure].points) if term.figure in figures else []
        chosen = [p for p in chosen if _key(p) in at_full]
        if not chosen:
            what = "its point of " if term.figure in figures and not term.along else ""
            missing = missing or f"{what}{term.figure} was not run"
        for point in chosen:
            run, whole = point.scenario, at_full[_key(point)].scenario
            if run.duration_s < min(whole.duration_s, claim.shortest_s or math.inf):
                short = min(short, run.duration_s)
            if run.window_s[0] < whole.window_s[0] or run.window_s[1] > whole.window_s[1]:
                elsewhere = elsewhere or (run.window_s, whole.window_s)
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


@dataclass(frozen=True)
class Sample:
    """The judged numbers, one of each good run that every point of a part was run with.

    A part is what must be as expected by itself: a point of a series, a step of an order; else the one number. Each point has its own good
    runs (verdicts.md, "Runs that failed"): the first of every point make the first number, the second the second. Where the seed draws
    the flows of all points (draws_flows()), the runs of a seed make a number instead.
    """

    # Shape (most numbers of a part, parts), NaN where a part has no number. Of a claim of means (Claim.of_means): the jackknife's
    # pseudo-values, whose mean and scatter are those of the number
    values: Array
    seeds: Array  # shape (parts,): how many runs the point of each part has that lost most
    failed: Array  # of how many of these a run failed its self-checks
    without: Array  # how many more numbers are not finite
    # Shape (parts,), whether every seed measured the same at all points of a part: repeats that say nothing of chance
    identical: Array
    # Shape (parts,), the smallest step that the number can take (resolution.py); infinite if none is known
    resolution: Array
    labels: tuple[str, ...] = ("",)  # what tells the parts apart; empty if there is one
    back: series.StepBack = series.StepBack()  # of a trend: the surest step against it
    back_label: str = ""  # that it is one, and between which points
    set_aside: int = 0  # points without enough runs, which were put on one side of what is counted (Sides)

    def of_part(self, part: int) -> Array:
        """The numbers of a part: shape (numbers,)."""
        numbers: Array = self.values[:, part]
        return numbers[np.isfinite(numbers)]

    def lacks(self, part: int) -> bool:
        """Whether more than MISSING_LARGEST of its runs failed or gave no number."""
        return bool(self.failed[part] + self.without[part] > MISSING_LARGEST * self.seeds[part])


@dataclass(frozen=True)
class _Runs:
    """The runs of a point."""

    seeds: list[int]
    every: list[int]
    # One run stands for as many as are wanted: nothing random is drawn, and two measured the same
    for_all: bool = False

    @property
    def ran(self) -> int:
        """How many seeds were run."""
        return len(self.every)

    def of(self, number: int, paired: list[int] | None) -> int | None:
        """The seed of the run that is in a number; None if there is no good one.

        Args:
            paired: the seed of each number; None if the point's first good run is in the first number.
        """
        if self.for_all and self.seeds:
            return self.seeds[0]
        if paired is not None:
            return paired[number] if paired[number] in self.seeds else None
        return self.seeds[number] if number < len(self.seeds) else None

    @property
    def lost(self) -> float:
        """The part of the runs that failed."""
        return 1 - len(self.seeds) / self.ran if self.ran else 1.0


def sample(
    claim: Claim,
    points: Mapping[str, list[Point]],
    tables: Mapping[str, TableFacts],
    results: Path | None = None,
    aside: float | None = None,
) -> Sample:
    """The numbers of the runs. UserError if a published value or a prediction is missing for a point.

    Args:
        points: of each term (Reach.points).
        tables: of each term's figure, by id.
        results: the folder of results that has the models' predictions.
        aside: of a claim that counts points (Claim.counts_points): put those without enough runs above (1) or below (-1) the
            limit; default: they are missing, and so is the number.
    """
    rows = {name: _rows(tables[claim.at[name].figure], chosen) for name, chosen in points.items()}
    runs = {name: term_rows.runs for name, term_rows in rows.items()}
    all_runs = [one for term_runs in runs.values() for one in term_runs]
    set_aside = (
        [one for one in all_runs if one.lost > MISSING_LARGEST or len(one.seeds) < 2] if aside is not None else []
    )
    counted = [len(one.seeds) for one in all_runs if not one.for_all and one not in set_aside]
    count = max(counted or [len(one.seeds) for one in all_runs] or [0])
    paired = _paired(points, all_runs)
    numbers = len(paired) if paired is not None else count
    columns = {}
    for name in claim.columns:
        term, _, column = name.rpartition(".")
        wanted = [[one.of(i, paired) for one in rows[term].runs] for i in range(numbers)]
        columns[name] = _by_number(column, claim.at[term], points[term], rows[term], wanted, results)
    along = claim.along
    key = ranks(claim.at[along], points[along]) if along is not None else []
    # Shape (numbers, parts)
    values = np.empty((0, 1)) if not numbers else np.array([
        _numbers(claim, {k: v[i] for k, v in columns.items()}, key, aside) for i in range(numbers)
    ])  # fmt: skip
    if aside is not None:
        # Only what is set aside may be on either side: of every other point a number needs a run.
        needed = [one for one in all_runs if one not in set_aside]
        values[[i for i in range(numbers) if any(one.of(i, paired) is None for one in needed)]] = np.nan
    parts = values.shape[1]
    names = [name_of(claim.at[along], p) for p in points[along]] if along is not None else []
    seeds, failed, possible = _lost(claim, runs, set_aside, parts, paired)
    finite = np.isfinite(values)
    without = np.array([int((~finite[possible[i], i]).sum()) for i in range(parts)])
    whole = values[finite.all(axis=1)]
    if claim.of_means:
        values = whole  # a seed that some point lacks makes no number of the others, either
        if len(whole) > 1:
            values = pseudo_values(claim, {k: v[finite.all(axis=1)] for k, v in columns.items()}, key)
        parts = values.shape[1]
    same = {name: term_rows.same for name, term_rows in rows.items()}
    result = Sample(
        values, seeds, failed, without, _identical(claim, same, parts), _resolution(claim, points, rows, columns, parts),
        _labels(claim, names, parts), set_aside=len(set_aside),
    )  # fmt: skip
    if not claim.expect.trend or len(whole) < 2:
        return result
    curves = [expressions.evaluate(claim.trees[0], {k: v[i] for k, v in columns.items()}) for i in range(numbers)]
    rising, identical = claim.expect.trend == "rising", bool(result.identical.all())
    back = series.step_back(curves, np.array(key), rising, identical, paired is not None)
    between = f"a step back from {names[back.first]} to {names[back.last]}" if back.first >= 0 else ""
    return replace(result, back=back, back_label=between)


@dataclass(frozen=True)
class _Rows:
    """What a table has of a term's points, in their order."""

    facts: TableFacts
    runs: list[_Runs]
    same: Array  # whether all that was measured at a point is the same in every good run, of at least two
    utilisation: Array  # of the link, mean over the runs; NaN without any


def _rows(facts: TableFacts, chosen: list[Point]) -> _Rows:
    labels = [p.label for p in chosen]
    return _Rows(
        facts,
        # By what was measured: what ships may be of a version whose hosts had no noise, and then CUBIC alone drew nothing.
        [_Runs(facts.good.get(label, []), facts.seeds.get(label, []), label in facts.still) for label in labels],
        np.array([label in facts.good_still for label in labels]),
        np.array([facts.utilisation.get(label, np.nan) for label in labels], dtype=float),
    )


def _paired(points: Mapping[str, list[Point]], runs: list[_Runs]) -> list[int] | None:
    """The seed of each number if the seed draws the flows of all points; else None."""
    if not all(draws_flows(p.scenario) for chosen in points.values() for p in chosen):
        return None
    return sorted({seed for one in runs if not one.for_all for seed in one.every}) or None


def _lost(
    claim: Claim, runs: Mapping[str, list[_Runs]], aside: list[_Runs], parts: int, paired: list[int] | None
) -> tuple[Array, Array, list[list[int]]]:
    """Of each part: the runs of its point that lost most, how many of these failed, shape (parts,) each, and which numbers it can have.

    Args:
        paired: the seed of each number (_paired()): a part loses one if any of its runs failed.
    """
    lengths = {len(term_runs) for n, term_runs in runs.items() if claim.at[n].along}
    points = lengths.pop() if len(lengths) == 1 else 0
    steps = max(1, len(claim.trees) - 1)
    seeds, failed, possible = [], [], []
    for part in range(parts):
        of_part = runs.values() if points * steps != parts else [
            [term_runs[part % points]] if claim.at[n].along else term_runs for n, term_runs in runs.items()
        ]  # fmt: skip
        point_runs = [one for several in of_part for one in several if one not in aside]
        varying = [one for one in point_runs if not one.for_all] or point_runs
        if paired is not None:
            shared = [seed for seed in paired if all(seed in one.every for one in varying)]
            good = [i for i, seed in enumerate(paired) if all(seed in one.seeds for one in varying)]
            seeds.append(len(shared))
            failed.append(len(shared) - len(good))
            possible.append(good)
            continue
        worst = max(point_runs, key=lambda one: (one.lost, -one.ran), default=_Runs([], []))
        seeds.append(worst.ran if worst.lost else min([one.ran for one in varying] or [0]))
        failed.append(worst.ran - len(worst.seeds))
        possible.append(list(range(min([len(one.seeds) for one in varying] or [0]))))
    return np.array(seeds), np.array(failed), possible


def _resolution(
    claim: Claim, points: Mapping[str, list[Point]], rows: Mapping[str, _Rows], columns: Mapping[str, Array], parts: int
) -> Array:
    """The smallest step of each part: shape (parts,)."""
    means, steps = {}, {}
    for name, values in columns.items():
        term, _, column = name.rpartition(".")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a point without a run has no mean
            means[name] = np.nanmean(values, axis=0) if len(values) else np.nan
        each = np.array([step_of(column, p, u) for p, u in zip(points[term], rows[term].utilisation, strict=True)])
        steps[name] = each if claim.at[term].along else float(each[0])
    if claim.expect.trend:
        of_points = {name: len(v) for name, v in steps.items() if isinstance(v, np.ndarray)}
        return np.full(parts, pair_of(expressions.points_of(claim.trees[0], of_points) or 0))
    of_trees = [np.atleast_1d(resolution(tree, means, steps)) for tree in claim.trees]
    if claim.expect.order:
        of_trees = [np.concatenate(np.broadcast_arrays(a + b)) for a, b in itertools.pairwise(of_trees)]
    steps_of_parts = np.concatenate(of_trees)
    return (
        np.broadcast_to(steps_of_parts, parts)
        if len(steps_of_parts) in (1, parts)
        else np.full(parts, steps_of_parts.max())
    )


def _numbers(claim: Claim, columns: Mapping[str, Any], key: list[int], aside: float | None = None) -> Array:
    """The judged number of each part, of one run or of means: shape (parts,).

    Args:
        columns: each a number, or an array of shape (points,).
        key: of a trend: the place of each point.
    """
    values = [expressions.evaluate(tree, columns, aside) for tree in claim.trees]
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


def pseudo_values(claim: Claim, columns: Mapping[str, Array], key: list[int]) -> Array:
    """The jackknife's pseudo-values (Tukey 1958): shape (seeds, parts), without seeds of which one is not finite.

    Args:
        columns: each of shape (seeds,) or (seeds, points), of at least two seeds.
        key: of a trend: the place of each point.
    """
    count = len(next(iter(columns.values())))
    whole = _numbers(claim, {k: v.mean(axis=0) for k, v in columns.items()}, key)
    others = [_numbers(claim, {k: np.delete(v, i, axis=0).mean(axis=0) for k, v in columns.items()}, key) for i in range(count)]  # fmt: skip
    pseudo: Array = count * whole - (count - 1) * np.array(others)
    return pseudo[np.isfinite(pseudo).all(axis=1)]


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


def _by_number(
    column: str, term: Term, chosen: list[Point], rows: _Rows, wanted: list[list[int | None]], results: Path | None
) -> Array:
    """The column of each number: shape (numbers, points), or (numbers,) of the only point; NaN where a point has no such run.

    Args:
        wanted: the seed of each number at each point.
    """
    shape = len(wanted), len(chosen)
    if column in (PUBLISHED, WARE, *PREDICTED):
        values = np.broadcast_to(beside(column, term, chosen, results), shape)
    elif column not in rows.facts.columns:
        raise UserError(
            f"the table of {term.figure} has no column {column}: made by another version of bbrlab; delete it, and snakemake makes it anew"
        )
    elif older := rows.facts.unmeasured(column).intersection(p.label for p in chosen):
        raise UserError(
            f"{term.figure}: {len(older)} of {number_of(len(chosen), 'point')} have no {column}: made by an older version of bbrlab"
        )
    else:
        by_run = rows.facts.values(column, term.group)
        labels = [p.label for p in chosen]
        lines = [
            [
                np.nan if seed is None else by_run.get((label, seed), np.nan)
                for label, seed in zip(labels, line, strict=True)
            ]
            for line in wanted
        ]
        values = np.array(lines, dtype=float).reshape(shape)
    return values if term.along else values[:, 0]
