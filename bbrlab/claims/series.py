"""What claims make of a series of values, one per point: trends, crossings, averages of groups, a decision tree."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bbrlab.base.arrays import Array
from bbrlab.results.statistics import all_equal, rms

# Of the span of a series' means: a smaller step back leaves it rising (or falling). It is what a figure can be read to.
STEP_BACK = 1 / 20


def trend(values: Array, key: Array) -> float:
    """Kendall's rank correlation (tau-b) of values with a key: 1 only rising, -1 only falling; 0 if all are equal.

    Args:
        values: shape (points,). NaN if one of them, or of the key, is not finite.
        key: shape (points,); points of one key are not compared with each other.
    """
    values = np.atleast_1d(values)
    if not (np.isfinite(values).all() and np.isfinite(key).all()):
        return float("nan")
    from scipy import stats  # only here: it takes a second to import

    tau = stats.kendalltau(key, values).statistic
    return 0.0 if np.isnan(tau) else float(tau)


@dataclass(frozen=True)
class StepBack:
    """The surest step against a trend."""

    p: float = 1.0  # one-sided, of all pairs of points together (Bonferroni), at most 1
    # first, last: the places of its points in the series; -1 if there is no pair
    first: int = -1
    last: int = -1


def step_back(
    seeds: Sequence[Array], key: Array, rising: bool, identical: bool = False, paired: bool = False
) -> StepBack:
    """Whether a series that should rise (or fall) surely goes back between two of its points, by more than STEP_BACK of its span.

    Rank correlations of many seeds see no step back: seeds repeat one curve, and its points do not scatter anew with each.
    Each pair of points is tested with all good runs of both, also where a third point has fewer.

    Args:
        seeds: the series of each number, shape (points,); NaN where a point has no such run.
        key: shape (points,); points of one key are not compared with each other.
        rising: what is expected; else falling.
        identical: the seeds are repeats without chance.
        paired: a number is of one seed that draws the flows of all points; else runs of two points have nothing in common.
    """
    values = np.array(seeds) * (1 if rising else -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a point without a run has no mean, and no pair below
        means = np.nanmean(values, axis=0)
    limit = STEP_BACK * (np.nanmax(means) - np.nanmin(means))
    first, last = np.nonzero(np.less.outer(key, key))
    p = _p_more(values[:, first], values[:, last], limit, identical, paired)
    steps = [StepBack(*pair) for pair in zip(p.tolist(), first.tolist(), last.tolist(), strict=True)]
    # Of several that are as sure, the largest.
    surest = min(steps, key=lambda s: (s.p, means[s.last] - means[s.first]), default=StepBack())
    return StepBack(min(1.0, surest.p * len(steps)), surest.first, surest.last)


def _p_more(before: Array, after: Array, limit: float, identical: bool, paired: bool) -> Array:
    """One-sided p values that one mean is more than another by more than a limit: a t test, paired or Welch's; a sign test where
    nothing scatters; 1 with fewer than two numbers.

    Args:
        before, after: shape (numbers, pairs); NaN where there is no run.

    Returns:
        Shape (pairs,).
    """
    from scipy import stats  # only here: it takes a second to import

    samples = [before - after] if paired else [before, after]
    counts = np.array([np.isfinite(x).sum(axis=0) for x in samples])
    least = counts.min(axis=0)
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # fewer than two numbers have no variance
        means = [np.nanmean(x, axis=0) for x in samples]
        squares = np.array([np.nanvar(x, axis=0, ddof=1) for x in samples]) / counts
        more = (means[0] if paired else means[0] - means[1]) - limit
        freedom = squares.sum(axis=0) ** 2 / (squares**2 / (counts - 1)).sum(axis=0)
        p = stats.t.sf(more / np.sqrt(squares.sum(axis=0)), freedom)
    same = np.array(
        [all(all_equal(x[np.isfinite(x)]) for x in pair) for pair in zip(*(x.T for x in samples), strict=True)]
    )
    p = np.where(same, np.where(more <= 0, 1.0, 0.0 if identical else 0.5 ** least.astype(float)), p)
    result: Array = np.where((least < 2) | ~np.isfinite(p), 1.0, p)
    return result


def crossing(x: Array, y: Array, fraction: float) -> float:
    """The x at which y, in the order of x, first falls below ``fraction`` of its first value; NaN if it never does.

    Linear between points.

    Args:
        x, y: shape (points,). NaN if one of them is not finite.
        fraction: of y at the smallest x.
    """
    x, y = np.atleast_1d(x), np.atleast_1d(y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return float("nan")  # else a run that a few points have and the others lack would be a series of these points
    order = np.argsort(x)
    x, y = x[order], y[order]
    limit = float(fraction) * y[0]
    below = np.flatnonzero(y < limit)
    if not len(below) or below[0] == 0:
        return float("nan")
    i = int(below[0])
    return float(x[i - 1] + (x[i] - x[i - 1]) * (y[i - 1] - limit) / (y[i - 1] - y[i]))


def fraction_above(values: Array, limit: float) -> float:
    """The part of the values that exceeds ``limit``; NaN if one of them is not finite."""
    values = np.atleast_1d(values)
    return float(np.mean(values > limit)) if np.isfinite(values).all() else float("nan")


def grouped_rms(values: Array, key: Array) -> float:
    """Mean over the distinct values of ``key`` of the root mean square within each; NaN if a point has no key (was not run).

    So Sarpkaya et al. (2025) average their RMSEs: over the buffers for each number of flows, then over these numbers.

    Args:
        values, key: shape (points,).
    """
    values, key = np.atleast_1d(values), np.atleast_1d(key)
    if not np.isfinite(key).all():
        return float("nan")
    return float(np.mean([rms(values[key == one]) for one in np.unique(key)]))


def tree_accuracy(first: Array, second: Array, *features: Array) -> float:
    """How well a decision tree tells from ``features`` whether ``first`` exceeds ``second``: winner_tree.accuracy().

    Args:
        first, second, features: shape (points,). NaN if a value is not finite.
    """
    from bbrlab.claims import winner_tree

    if not all(np.isfinite(np.atleast_1d(series)).all() for series in (first, second, *features)):
        return float("nan")
    return winner_tree.accuracy(np.column_stack(features), np.atleast_1d(first) > np.atleast_1d(second))
