"""Compares two campaigns, of two kernels, profiles or commits: which points and verdicts differ."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy import stats

from bbrlab.base.errors import UserError
from bbrlab.claims.inference import ERROR, p_equal, standing
from bbrlab.claims.judge import Verdict
from bbrlab.measure import metrics
from bbrlab.results.seeds import identical_points
from bbrlab.results.statistics import all_equal, half_width

METRICS = ("share_of_capacity", "utilisation", "loss", "queue_ms_mean")  # compared by default
MOVED, SAME, OPEN, NOT_COMPARED = "moved", "same", "open", "not compared"
Place = tuple[str, str, int, str]  # figure, name of the point, group, metric
POINTS = (
    "figure", "point", "group", "cca", "metric", "unit", "a_mean", "a_half", "a_seeds", "a_failed", "b_mean",
    "b_half", "b_seeds", "b_failed", "difference", "low", "high", "p", "outcome",
)  # fmt: skip


def compare_points(
    a: Mapping[str, pd.DataFrame], b: Mapping[str, pd.DataFrame], names: Iterable[str] = METRICS
) -> pd.DataFrame:
    """Each point, flow group and metric of two campaigns.

    The two have independent seeds, so that the difference has the interval of Welch's t, for normally distributed numbers. MOVED is
    significant with a false discovery rate of at most ERROR among all that were compared (standing()). Numbers that are equal seed by
    seed are SAME; what is neither is OPEN. A point without a number in either campaign is NOT_COMPARED.

    Numbers without variance are treated as the judge treats them. If every seed of a point measured the same in every column
    (identical_points()), they are not random. If its runs differ, equal numbers say nothing of the variance: the p value is at
    least that of a sign test of so many (p_equal()), for which six are needed. That is also the largest probability that two
    samples with one median each have equal numbers, but different ones; the sample with fewer seeds counts. UserError for an
    unknown metric, or one that no table of a campaign has.

    Args:
        a, b: tables of figures (tables.figure_table()), by id; what only one has is left out (only_in()).
        names: of bbrlab/measure/metrics.py. Those of the whole run are listed with the first group.

    Returns:
        Columns POINTS: means over the good runs that have a number, half the width of their 95 % intervals (NaN where all are equal), how many these runs are,
        how many failed their self-checks, the difference (b - a) with the ends of its interval (NaN: neither side scatters, and one has chance in it), its p value, and
        the outcome.
    """
    wanted = list(dict.fromkeys(names))
    unknown = [m for m in wanted if m not in metrics.METRICS]
    if unknown:
        raise UserError(
            f"--metric {unknown[0]}: there is no such metric (docs/reference/results.md has them: {', '.join(metrics.METRICS)})"
        )
    for name, side in (("A", a), ("B", b)):
        if lacking := [m for m in wanted if side and not any(m in table for table in side.values())]:
            raise UserError(
                f"--metric {lacking[0]}: the tables of side {name} have no such column: made by another version of bbrlab; "
                "choose others with --metric, or delete the tables, and snakemake makes them anew"
            )
    first, second = _values(a, wanted), _values(b, wanted)
    rows = [_row(place, first[place], second[place]) for place in first if place in second]
    points = pd.DataFrame(rows, columns=list(POINTS))
    tested = points["p"].notna()
    moved = pd.Series(standing(points.loc[tested, "p"].tolist()), index=points.index[tested], dtype=bool)
    points.loc[moved.index[moved], "outcome"] = MOVED
    return points


def only_in(a: Mapping[str, pd.DataFrame], b: Mapping[str, pd.DataFrame]) -> list[str]:
    """The points, as figure and name (names_of()), that only the first campaign has."""
    in_second = {(figure, name) for figure, table in b.items() for name in names_of(table)}
    return [
        f"{f} {name}".strip()
        for f, table in a.items()
        for name in dict.fromkeys(names_of(table))
        if (f, name) not in in_second
    ]


def has_numbers(points: pd.DataFrame) -> bool:
    """Whether any point has a number in either campaign."""
    return bool((points[["a_seeds", "b_seeds"]] > 0).any(axis=None))


def one_sided(points: pd.DataFrame, side: str) -> pd.DataFrame:
    """The points that one campaign has lost: only the other one has numbers, or all its runs but one failed their self-checks,
    so that the two cannot be compared.

    Args:
        points: compare_points().
        side: the one that lost them, "a" or "b".
    """
    other = "b" if side == "a" else "a"
    own_seeds, other_seeds = points[f"{side}_seeds"], points[f"{other}_seeds"]
    return points[
        ((own_seeds == 0) & (other_seeds > 0)) | ((own_seeds == 1) & (other_seeds > 1) & (points[f"{side}_failed"] > 0))
    ]


def metric_words(row: dict[Any, Any]) -> str:
    """A metric with its unit."""
    return f"{row['metric']} ({row['unit']})" if row["unit"] != "1" else str(row["metric"])


def names_of(table: pd.DataFrame) -> pd.Series:
    """Each row's swept values: its point's label without the fingerprint, which depends on the algorithm and the scenario's version.

    The whole label, where two points would get the same name.
    """
    labels = table["point"].astype(str)
    values = labels.str.rpartition(",")[0]
    return values if labels.nunique() == values.nunique() else labels


@dataclass(frozen=True)
class _Sample:
    """One campaign's numbers of a figure's point, group and metric."""

    cca: str  # the algorithm; empty of a metric of the whole run
    values: pd.Series  # the metric of its good runs by seed, shape (seeds,), without those that have none
    identical: bool  # whether all these runs measured the same in every column, so that the values are not random
    failed: int  # how many runs failed their self-checks

    @property
    def p_min(self) -> float:
        """The smallest possible p value: for equal numbers of runs that differ a sign test's, else 0."""
        equal = not self.identical and all_equal(self.values.to_numpy())
        return p_equal(len(self.values)) if equal else 0.0


def _values(tables: Mapping[str, pd.DataFrame], names: list[str]) -> dict[Place, _Sample]:
    """The numbers of each place, also where no run is good."""
    samples: dict[Place, _Sample] = {}
    for figure, table in tables.items():
        named = table.assign(point=names_of(table))
        identical = identical_points(named[named["ok"]])
        for place, rows in named.groupby(["point", "group"], sort=False):
            point, group = cast(tuple[str, int], place)
            good = rows[rows["ok"]]
            for metric in names:
                of_run = metric in metrics.RUN
                if metric not in rows or (of_run and group != 0):
                    continue
                # A replaced algorithm has another name: the group identifies the flows.
                cca = "" if of_run else str(rows["cca"].iloc[0])
                values = good.set_index("seed")[metric].dropna().astype(float).sort_index()
                samples[figure, point, int(group), metric] = _Sample(
                    cca, values, point in identical, len(rows) - len(good)
                )
    return samples


def _row(place: Place, a: _Sample, b: _Sample) -> dict[str, Any]:
    figure, point, group, metric = place
    first, second = a.values, b.values
    row: dict[str, Any] = {
        "figure": figure, "point": point, "group": group, "cca": " / ".join(dict.fromkeys([a.cca, b.cca])),
        "metric": metric, "unit": metrics.METRICS[metric].unit,
        "a_mean": first.mean(), "a_half": half_width(first), "a_seeds": len(first), "a_failed": a.failed,
        "b_mean": second.mean(), "b_half": half_width(second), "b_seeds": len(second), "b_failed": b.failed,
        "difference": second.mean() - first.mean(), "low": math.nan, "high": math.nan, "p": math.nan, "outcome": OPEN,
    }  # fmt: skip
    if not len(first) or not len(second):
        return row | {"outcome": NOT_COMPARED}
    if first.equals(second):
        return row | {"outcome": SAME, "low": 0.0, "high": 0.0}
    if min(len(first), len(second)) < 2:
        return row
    x, y = first.to_numpy(), second.to_numpy()
    p_min = max(a.p_min, b.p_min)
    if all_equal(x) and all_equal(y):  # no spread in either
        # If the values are not random, the difference is exact.
        ends = {"low": row["difference"], "high": row["difference"]} if a.identical and b.identical else {}
        return row | ends | {"p": 1.0 if all_equal(np.concatenate([x, y])) else p_min}
    with warnings.catch_warnings():  # with very little variance SciPy warns of lost digits: those beyond the tenth
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        test = stats.ttest_ind(y, x, equal_var=False)
    interval = test.confidence_interval(1 - ERROR)
    return row | {"low": float(interval.low), "high": float(interval.high), "p": max(float(test.pvalue), p_min)}


VERDICTS = (
    "id", "paper", "says", "expected", "a", "a_mean", "a_low", "a_high", "b", "b_mean", "b_low", "b_high", "moved",
)  # fmt: skip


def compare_verdicts(a: Iterable[Verdict], b: Iterable[Verdict]) -> pd.DataFrame:
    """The verdicts of two campaigns on the same claims, without claims that neither could judge.

    Returns:
        Columns VERDICTS: each campaign's verdict (an interim one, if it was partly run), its number with its interval, and whether the
        verdicts differ.
    """
    second = {v.claim.id: v for v in b}
    rows = []
    for first in a:
        matching = second[first.claim.id]
        if not first.outcome and not matching.outcome:
            continue
        outcomes = {side: (v.interim or v.verdict, v.row()) for side, v in (("a", first), ("b", matching))}
        row: dict[str, Any] = {k: outcomes["a"][1][k] for k in ("id", "paper", "says", "expected")}
        for side, (verdict, content) in outcomes.items():
            row |= {side: verdict} | {f"{side}_{k}": content[k] for k in ("mean", "low", "high")}
        rows.append(row | {"moved": row["a"] != row["b"]})
    return pd.DataFrame(rows, columns=list(VERDICTS)).astype({"moved": bool})


def moved_verdicts(first: pd.DataFrame, second: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """The statements, or claims, whose verdicts differ in two tables, by id.

    Args:
        labels: {column for each of the two: text where it has no verdict}.

    Returns:
        Columns ``id``, ``says`` and the two.
    """
    names = list(labels)
    columns = [table[["id", "says", "verdict"]] for table in (first, second)]
    both = columns[0].merge(columns[1], on="id", how="outer", suffixes=("_one", "_two"))
    both["says"] = both["says_two"].fillna(both["says_one"])
    both = both.rename(columns=dict(zip(("verdict_one", "verdict_two"), names, strict=True))).fillna(dict(labels))
    moved = both[names[0]] != both[names[1]]
    return both.loc[moved, ["id", "says", *names]].sort_values("id", ignore_index=True)
