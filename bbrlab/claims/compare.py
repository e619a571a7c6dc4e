"""Two campaigns against each other, of two kernels, profiles or commits: which points and verdicts move."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy import stats

from bbrlab.base.errors import UserError
from bbrlab.campaign.interval import all_equal, half_width
from bbrlab.claims.inference import ERROR, standing
from bbrlab.claims.judge import Verdict
from bbrlab.measure import schema

METRICS = ("share_of_capacity", "utilisation", "loss", "queue_ms_mean")  # compared if nothing else is asked for
MOVED, SAME, OPEN, NOT_COMPARED = "moved", "same", "open", "not compared"
Place = tuple[str, str, int, str]  # figure, name of the point, group, metric
POINTS = ("figure", "point", "group", "cca", "metric", "unit", "a_mean", "a_half", "a_seeds", "b_mean", "b_half", "b_seeds", "difference", "low", "high", "p", "outcome")  # fmt: skip


def compare_points(
    a: Mapping[str, pd.DataFrame], b: Mapping[str, pd.DataFrame], metrics: Iterable[str] = METRICS
) -> pd.DataFrame:
    """Each point, flow group and metric of two campaigns.

    The seeds of the two are independent of each other: the difference has the interval of Welch's t. An outcome MOVED
    is one of those of which at most ERROR are expected to be wrong (standing()) among all that were compared. Two
    campaigns whose numbers are equal seed by seed are the SAME; where there is no such proof either way, it is OPEN.

    Args:
        a, b: tables of figures (collect.figure_table()), by id; what only one has is left out, see only_in().
        metrics: names of bbrlab/measure/schema.py. Those of the whole run stand at the first group.

    Returns:
        Columns POINTS: means over the good runs, half the width of their 95 % intervals, the difference (b - a) with the
        ends of its interval, its p value, and the outcome.

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
    rows = [_row(place, *first[place], *second[place]) for place in first if place in second]
    found = pd.DataFrame(rows, columns=list(POINTS))
    tested = found["p"].notna()
    moved = pd.Series(standing(found.loc[tested, "p"].tolist()), index=found.index[tested], dtype=bool)
    found.loc[moved.index[moved], "outcome"] = MOVED
    return found


def only_in(a: Mapping[str, pd.DataFrame], b: Mapping[str, pd.DataFrame]) -> list[str]:
    """The points, as figure and name, that the first has and the second has not."""
    have = {(figure, name) for figure, table in b.items() for name in _names(table)}
    return [
        f"{f} {name}".strip()
        for f, table in a.items()
        for name in dict.fromkeys(_names(table))
        if (f, name) not in have
    ]


def _names(table: pd.DataFrame) -> pd.Series:
    """The swept values of each row in words: a point's label without its fingerprint, which another algorithm in its place
    or another version of the scenario changes. The whole label where two points would be called the same."""
    whole = table["point"].astype(str)
    short = whole.str.rpartition(",")[0]
    return short if whole.nunique() == short.nunique() else whole


def _values(tables: Mapping[str, pd.DataFrame], metrics: list[str]) -> dict[Place, tuple[str, pd.Series]]:
    """{place: its algorithm, the metric of its good runs by seed}."""
    found: dict[Place, tuple[str, pd.Series]] = {}
    for figure, table in tables.items():
        good = table.assign(point=_names(table))[table["ok"]]
        for place, rows in good.groupby(["point", "group"], sort=False):
            point, group = cast(tuple[str, int], place)
            for metric in metrics:
                of_run = metric in schema.RUN
                if metric not in rows or (of_run and group != 0):
                    continue
                # Another algorithm in its place is another name: the group tells which flows are meant.
                values = rows.set_index("seed")[metric].dropna().astype(float).sort_index()
                found[figure, point, int(group), metric] = ("" if of_run else str(rows["cca"].iloc[0]), values)
    return found


def _row(place: Place, a_cca: str, first: pd.Series, b_cca: str, second: pd.Series) -> dict[str, Any]:
    figure, point, group, metric = place
    row: dict[str, Any] = {
        "figure": figure, "point": point, "group": group, "cca": " / ".join(dict.fromkeys([a_cca, b_cca])),
        "metric": metric, "unit": schema.METRICS[metric].unit,
        "a_mean": first.mean(), "a_half": half_width(first), "a_seeds": len(first),
        "b_mean": second.mean(), "b_half": half_width(second), "b_seeds": len(second),
        "difference": second.mean() - first.mean(), "low": math.nan, "high": math.nan, "p": math.nan, "outcome": OPEN,
    }  # fmt: skip
    if not len(first) or not len(second):
        return row | {"outcome": NOT_COMPARED}
    if first.equals(second):
        return row | {"outcome": SAME, "low": 0.0, "high": 0.0}
    if min(len(first), len(second)) < 2:
        return row
    x, y = first.to_numpy(), second.to_numpy()
    if all_equal(x) and all_equal(y):  # no spread in either: the means are what they are
        same = all_equal(np.concatenate([x, y]))
        return row | {"low": row["difference"], "high": row["difference"], "p": 1.0 if same else 0.0}
    with (
        warnings.catch_warnings()
    ):  # of two sides that hardly scatter SciPy says that digits are lost: those beyond the tenth
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        test = stats.ttest_ind(y, x, equal_var=False)
    interval = test.confidence_interval(1 - ERROR)
    return row | {"low": float(interval.low), "high": float(interval.high), "p": float(test.pvalue)}


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
