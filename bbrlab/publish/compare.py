"""Two campaigns against each other, of two kernels, profiles or commits: which points and verdicts move."""

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
from bbrlab.measure import schema
from bbrlab.results.seeds import unchanged
from bbrlab.results.statistics import all_equal, half_width

METRICS = ("share_of_capacity", "utilisation", "loss", "queue_ms_mean")  # compared if nothing else is asked for
MOVED, SAME, OPEN, NOT_COMPARED = "moved", "same", "open", "not compared"
Place = tuple[str, str, int, str]  # figure, name of the point, group, metric
POINTS = (
    "figure",
    "point",
    "group",
    "cca",
    "metric",
    "unit",
    "a_mean",
    "a_half",
    "a_seeds",
    "a_failed",
    "b_mean",
    "b_half",
    "b_seeds",
    "b_failed",
    "difference",
    "low",
    "high",
    "p",
    "outcome",
)


def compare_points(
    a: Mapping[str, pd.DataFrame], b: Mapping[str, pd.DataFrame], metrics: Iterable[str] = METRICS
) -> pd.DataFrame:
    """Each point, flow group and metric of two campaigns.

    The seeds of the two are independent of each other: the difference has the interval of Welch's t, which supposes numbers that
    scatter normally. An outcome MOVED is one of those of which at most ERROR are expected to be wrong (standing()) among all
    that were compared. Two campaigns whose numbers are equal seed by seed are the SAME; where there is no such proof either way, it
    is OPEN. A point without a number on either side is NOT_COMPARED.

    Numbers that do not scatter are taken as the judge takes them. Where every seed of a point measured the same in every column
    (unchanged()), they have no chance in them. Where its runs differ, equal numbers tell no variance: the p value is no smaller than a
    sign test's of so many (p_equal()), and six are needed. It is also the largest probability that two sides of one median both have equal
    numbers, and not the same ones; of the two sides that with fewer seeds counts.

    Args:
        a, b: tables of figures (tables.figure_table()), by id; what only one has is left out, see only_in().
        metrics: names of bbrlab/measure/schema.py. Those of the whole run stand at the first group.

    Returns:
        Columns POINTS: means over the good runs that have a number, half the width of their 95 % intervals (NaN where all are equal), how many these runs are,
        how many failed their self-checks, the difference (b - a) with the ends of its interval (NaN: neither side scatters, and one has chance in it), its p value, and
        the outcome.

    Raises:
        UserError: for a metric that there is not, or that none of a side's tables has.
    """
    wanted = list(dict.fromkeys(metrics))
    unknown = [m for m in wanted if m not in schema.METRICS]
    if unknown:
        raise UserError(
            f"--metric {unknown[0]}: there is no such metric (docs/reference/results.md has them: {', '.join(schema.METRICS)})"
        )
    for name, side in (("A", a), ("B", b)):
        if lacking := [m for m in wanted if side and not any(m in table for table in side.values())]:
            raise UserError(
                f"--metric {lacking[0]}: the tables of side {name} have no such column: made by another version of bbrlab; "
                "choose others with --metric, or delete the tables, and snakemake makes them anew"
            )
    first, second = _values(a, wanted), _values(b, wanted)
    rows = [_row(place, first[place], second[place]) for place in first if place in second]
    found = pd.DataFrame(rows, columns=list(POINTS))
    tested = found["p"].notna()
    moved = pd.Series(standing(found.loc[tested, "p"].tolist()), index=found.index[tested], dtype=bool)
    found.loc[moved.index[moved], "outcome"] = MOVED
    return found


def only_in(a: Mapping[str, pd.DataFrame], b: Mapping[str, pd.DataFrame]) -> list[str]:
    """The points, as figure and name (names_of()), that the first has and the second has not."""
    have = {(figure, name) for figure, table in b.items() for name in names_of(table)}
    return [
        f"{f} {name}".strip()
        for f, table in a.items()
        for name in dict.fromkeys(names_of(table))
        if (f, name) not in have
    ]


def has_numbers(points: pd.DataFrame) -> bool:
    """Whether there is anything to compare: a point with a number on either side.

    Args:
        points: compare_points().
    """
    return bool((points[["a_seeds", "b_seeds"]] > 0).any(axis=None))


def one_sided(points: pd.DataFrame, side: str) -> pd.DataFrame:
    """The points that one side has lost: it has no number of them and the other side has, or its runs failed their self-checks but
    for one, so that it cannot be told from the other.

    Args:
        points: compare_points().
        side: the one that lost them, "a" or "b".
    """
    other = "b" if side == "a" else "a"
    own_seeds, other_seeds = points[f"{side}_seeds"], points[f"{other}_seeds"]
    return points[
        ((own_seeds == 0) & (other_seeds > 0)) | ((own_seeds == 1) & (other_seeds > 1) & (points[f"{side}_failed"] > 0))
    ]


def names_of(table: pd.DataFrame) -> pd.Series:
    """The swept values of each row in words: a point's label without its fingerprint, which another algorithm in its place
    or another version of the scenario changes. The whole label where two points would be called the same."""
    whole = table["point"].astype(str)
    short = whole.str.rpartition(",")[0]
    return short if whole.nunique() == short.nunique() else whole


@dataclass(frozen=True)
class _Side:
    """What one side has at a place.

    Attributes:
        cca: the algorithm; empty of a metric of the whole run.
        values: the metric of its good runs by seed, shape (seeds,), without those that have none.
        identical: whether each of these runs measured the same in every column, so that there is no chance in the values.
        failed: how many runs failed their self-checks.
    """

    cca: str
    values: pd.Series
    identical: bool
    failed: int

    @property
    def least_p(self) -> float:
        """What no p value is below, whatever the other side has: of equal numbers of runs that differ, a sign test's."""
        equal = not self.identical and all_equal(self.values.to_numpy())
        return p_equal(len(self.values)) if equal else 0.0


def _values(tables: Mapping[str, pd.DataFrame], metrics: list[str]) -> dict[Place, _Side]:
    """What there is at each place, also where no run is good."""
    found: dict[Place, _Side] = {}
    for figure, table in tables.items():
        named = table.assign(point=names_of(table))
        identical = unchanged(named[named["ok"]])
        for place, every in named.groupby(["point", "group"], sort=False):
            point, group = cast(tuple[str, int], place)
            good = every[every["ok"]]
            for metric in metrics:
                of_run = metric in schema.RUN
                if metric not in every or (of_run and group != 0):
                    continue
                # Another algorithm in its place is another name: the group tells which flows are meant.
                cca = "" if of_run else str(every["cca"].iloc[0])
                values = good.set_index("seed")[metric].dropna().astype(float).sort_index()
                found[figure, point, int(group), metric] = _Side(
                    cca, values, point in identical, len(every) - len(good)
                )
    return found


def _row(place: Place, a: _Side, b: _Side) -> dict[str, Any]:
    figure, point, group, metric = place
    first, second = a.values, b.values
    row: dict[str, Any] = {
        "figure": figure, "point": point, "group": group, "cca": " / ".join(dict.fromkeys([a.cca, b.cca])),
        "metric": metric, "unit": schema.METRICS[metric].unit,
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
    least = max(a.least_p, b.least_p)
    if all_equal(x) and all_equal(y):  # no spread in either
        # Without chance the means are what they are.
        ends = {"low": row["difference"], "high": row["difference"]} if a.identical and b.identical else {}
        return row | ends | {"p": 1.0 if all_equal(np.concatenate([x, y])) else least}
    with (
        warnings.catch_warnings()
    ):  # of two sides that hardly scatter SciPy says that digits are lost: those beyond the tenth
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        test = stats.ttest_ind(y, x, equal_var=False)
    interval = test.confidence_interval(1 - ERROR)
    return row | {"low": float(interval.low), "high": float(interval.high), "p": max(float(test.pvalue), least)}


VERDICTS = (
    "id",
    "paper",
    "says",
    "expected",
    "a",
    "a_mean",
    "a_low",
    "a_high",
    "b",
    "b_mean",
    "b_low",
    "b_high",
    "moved",
)


def compare_verdicts(a: Iterable[Verdict], b: Iterable[Verdict]) -> pd.DataFrame:
    """The verdicts of two campaigns on the same claims, those left out that neither could judge.

    Returns:
        Columns VERDICTS: what came of the claim in either (of one that was partly run, for the time being), its number with
        its interval, and whether the verdicts differ.
    """
    second = {v.claim.id: v for v in b}
    rows = []
    for one in a:
        other = second[one.claim.id]
        if not one.outcome and not other.outcome:
            continue
        sides = {side: (v.interim or v.verdict, v.row()) for side, v in (("a", one), ("b", other))}
        row: dict[str, Any] = {k: sides["a"][1][k] for k in ("id", "paper", "says", "expected")}
        for side, (verdict, content) in sides.items():
            row |= {side: verdict} | {f"{side}_{k}": content[k] for k in ("mean", "low", "high")}
        rows.append(row | {"moved": row["a"] != row["b"]})
    return pd.DataFrame(rows, columns=list(VERDICTS)).astype({"moved": bool})


def moved_verdicts(one: pd.DataFrame, two: pd.DataFrame, sides: Mapping[str, str]) -> pd.DataFrame:
    """The statements, or claims, of two tables whose verdict differs, in the order of their ids.

    Args:
        sides: {what each of the two is called: what to say where it has none}.

    Returns:
        Columns ``id``, ``says`` and the two.
    """
    names = list(sides)
    columns = [table[["id", "says", "verdict"]] for table in (one, two)]
    both = columns[0].merge(columns[1], on="id", how="outer", suffixes=("_one", "_two"))
    both["says"] = both["says_two"].fillna(both["says_one"])
    both = both.rename(columns=dict(zip(("verdict_one", "verdict_two"), names, strict=True))).fillna(dict(sides))
    moved = both[names[0]] != both[names[1]]
    return both.loc[moved, ["id", "says", *names]].sort_values("id", ignore_index=True)
