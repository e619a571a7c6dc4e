"""One's own results beside those that ship: every difference, of runs, points and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.tables import unequal
from bbrlab.base.words import number_of
from bbrlab.measure import schema
from bbrlab.publish.compare import moved_verdicts, names_of, only_in
from bbrlab.results.figures import figures_at
from bbrlab.results.schema import read_with
from bbrlab.results.shipped import shipped_scale
from bbrlab.results.tables import IDENTITY

OK = "ok"  # stands among the metrics: whether a run passed its self-checks (1) or not (0)
DIFFERENT = ["figure", "point", "group", "metric", "unit", "seeds", "shipped", "own", "largest"]
BY_FIGURE = ["figure", "runs", "runs_that_differ", "points_that_differ", "largest_in_proportion", "metric", "runs_only_own", "runs_only_shipped"]  # fmt: skip


@dataclass(frozen=True)
class Differences:
    """One's own results against those that ship.

    Attributes:
        scale: of those that ship.
        figures: a row for each figure that both have (BY_FIGURE): ``runs`` in both; how many of them, and of their points, are
            not equal to the last digit; the largest difference of a seed over the larger of the two means, and its metric; runs of
            points that both have with a seed that only one has.
        points: of the runs of both that are not equal to the last digit, a row for each point, flow group and metric: ``figure``,
            ``point``, ``group``, ``metric``, ``unit``, ``seeds`` (that differ), ``shipped`` and ``own`` (means over
            them), ``largest`` (difference of a seed); the largest in proportion first. ``ok`` stands among the metrics.
        only_own, only_shipped: points that the other has not.
        changed: points that both have with the same swept values, but of another scenario, so that their runs are not compared.
        verdicts, statements: whose verdict differs: ``id``, ``says``, ``shipped``, ``own``.
        compared: whether both have verdicts.
    """

    scale: str
    figures: pd.DataFrame
    points: pd.DataFrame
    only_own: list[str]
    only_shipped: list[str]
    changed: list[str]
    verdicts: pd.DataFrame
    statements: pd.DataFrame
    compared: bool

    @property
    def runs(self) -> int:
        """How many runs both have."""
        return int(self.figures["runs"].sum())


def differences(scale: str, results: Path | None = None, shipped: Path | None = None) -> Differences | None:
    """One's own results of a scale against what ships; None if there is only one of the two."""
    own, folder = results or paths.results_folder(), shipped or paths.SHIPPED
    shipped_at = shipped_scale(scale, folder)
    own_tables = _tables(own, scale)
    if shipped_at is None or not own_tables:
        return None
    shipped_tables = _tables(folder, shipped_at)
    both = {figure: (shipped_tables[figure], own_tables[figure]) for figure in own_tables if figure in shipped_tables}
    parts = [_unequal(figure, *pair) for figure, pair in both.items()]
    points = pd.concat([part for _, part in parts], ignore_index=True) if parts else pd.DataFrame(columns=DIFFERENT)
    return Differences(
        shipped_at,
        pd.DataFrame([row for row, _ in parts], columns=BY_FIGURE),
        points.loc[_in_proportion(points).sort_values(ascending=False, kind="stable").index],
        only_in(own_tables, shipped_tables),
        only_in(shipped_tables, own_tables) if shipped_at == scale else [],
        _changed(own_tables, shipped_tables),
        _moved(folder / shipped_at / "claims.parquet", own / scale / "claims.parquet"),
        _moved(folder / shipped_at / "statements.parquet", own / scale / "statements.parquet"),
        (folder / shipped_at / "claims.parquet").exists() and (own / scale / "claims.parquet").exists(),
    )


def _tables(folder: Path, scale: str) -> dict[str, pd.DataFrame]:
    files = {f.id: folder / scale / f"{f.id}.parquet" for f in figures_at(scale, [])}
    return {id: read_with(path, IDENTITY) for id, path in files.items() if path.exists()}


def _changed(own: Mapping[str, pd.DataFrame], shipped: Mapping[str, pd.DataFrame]) -> list[str]:
    """Differences.changed, as figure and name: points whose name both have, and whose label, with its fingerprint, only one has."""
    changed = []
    for figure, table in own.items():
        if figure not in shipped:
            continue
        names, labels = set(names_of(shipped[figure])), set(shipped[figure]["point"])
        here = dict(zip(table["point"], names_of(table), strict=True))
        changed += [f"{figure} {name}".strip() for label, name in here.items() if name in names and label not in labels]
    return changed


def _in_proportion(points: pd.DataFrame) -> pd.Series:
    """The largest difference of each row over the larger of the two means (NaN where only one has a number)."""
    scaled: pd.Series = (points["largest"] / points[["shipped", "own"]].abs().max(axis=1)).astype(float)
    return scaled


def _unequal(figure: str, theirs: pd.DataFrame, mine: pd.DataFrame) -> tuple[dict[str, object], pd.DataFrame]:
    """A figure's row of Differences.figures, and what of its runs that are in both differs (columns DIFFERENT)."""
    keys = ["point", "seed", "group"]
    metrics = [m for m in (OK, *schema.METRICS) if m in theirs and m in mine]
    long = [t.astype(dict.fromkeys(metrics, float)).melt(keys, metrics, "metric", "value") for t in (theirs, mine)]
    both = long[0].merge(long[1], on=[*keys, "metric"], suffixes=("_shipped", "_own"))
    both = both[unequal(both["value_shipped"], both["value_own"])]
    both = both[~(both["metric"].isin([OK, *schema.RUN]) & (both["group"] != 0))]  # of the run: once
    both["away"] = (both["value_own"] - both["value_shipped"]).abs()
    grouped = both.groupby(["point", "group", "metric"], sort=False)
    points = grouped.agg(seeds=("seed", "nunique"), shipped=("value_shipped", "mean"), own=("value_own", "mean"),
                        largest=("away", "max")).reset_index()  # fmt: skip
    points["figure"] = figure
    points["unit"] = ["" if m == OK else schema.METRICS[m].unit for m in points["metric"]]
    runs = [t[keys[:2]].drop_duplicates() for t in (theirs, mine)]
    of_both = set(theirs["point"]) & set(mine["point"])
    here = [set(t[t["point"].isin(of_both)].itertuples(index=False, name=None)) for t in runs]
    worst = _in_proportion(points)
    row = {
        "figure": figure,
        "runs": len(here[0] & here[1]),
        "runs_that_differ": len(both.drop_duplicates(keys[:2])),
        "points_that_differ": points["point"].nunique(),
        "largest_in_proportion": worst.max(),
        "metric": points["metric"].iloc[int(worst.argmax())] if worst.notna().any() else "",
        "runs_only_own": len(here[1] - here[0]),
        "runs_only_shipped": len(here[0] - here[1]),
    }
    return row, points[DIFFERENT]


def _moved(shipped_file: Path, own_file: Path) -> pd.DataFrame:
    """The claims, or statements, of two tables whose verdict differs, and those that only one has."""
    if not shipped_file.exists() or not own_file.exists():
        return pd.DataFrame(columns=["id", "says", "shipped", "own"])
    shipped, own = (read_with(path, ("id", "says", "verdict")) for path in (shipped_file, own_file))
    return moved_verdicts(shipped, own, {"shipped": "not there", "own": "not there"})


def difference_words(differences: Differences, scale: str) -> str:
    """Differences in words (Markdown)."""
    points = len(differences.points.drop_duplicates(["figure", "point"])) if len(differences.points) else 0
    equal = (
        "all are equal to the last digit." if not points else f"{number_of(points, 'point differs', 'points differ')}."
    )
    lines = [
        f"Shipped: scale {differences.scale}; your own: scale {scale}. "
        + (
            f"{number_of(differences.runs, 'run is', 'runs are')} in both: {equal}"
            if differences.runs
            else "No run is in both."
        )
    ]
    if differences.changed:
        have = number_of(len(differences.changed), "point has", "points have")
        lines.append(f"{have} the same values in both, but another scenario, so that their runs are not compared.")
    if differences.only_own:
        lines.append(f"{number_of(len(differences.only_own), 'point is', 'points are')} only among your own.")
    if differences.only_shipped:
        lines.append(f"{number_of(len(differences.only_shipped), 'point is', 'points are')} only in what ships.")
    other = {
        where: int(differences.figures[name].sum())
        for where, name in (("among your own", "runs_only_own"), ("in what ships", "runs_only_shipped"))
    }
    for where, count in other.items():
        if count:
            lines.append(
                f"Of points that both have, {number_of(count, 'run is', 'runs are')} only {where}, with other seeds."
            )
    if differences.compared:
        moved = f"{number_of(len(differences.statements), 'statement')} and {number_of(len(differences.verdicts), 'claim')} have another verdict"
        less = (
            " (a part of the points decides less than all of them)"
            if differences.scale != scale and len(differences.verdicts)
            else ""
        )
        lines.append(f"{moved}{less}.")
    else:
        lines.append("Verdicts were not compared: one of the two has none.")
    return " ".join(lines)


def difference_tables(differences: Differences, scale: str, rows: int = 200) -> Sequence[tuple[str, pd.DataFrame]]:
    """What differs, as tables with their headings, empty ones left out; of points at most ``rows`` rows, and how to get all."""
    figures = differences.figures[
        differences.figures[["points_that_differ", "runs_only_own", "runs_only_shipped"]].sum(axis=1) > 0
    ].rename(columns=lambda name: name.replace("_", " "))
    all_of = "all: studies.beside_shipped.differences"
    more = f" (the largest {rows} of {len(differences.points):,} rows; {all_of}({scale!r}).points)"
    tables = [
        ("Statements with another verdict", differences.statements),
        ("Claims with another verdict", differences.verdicts),
        ("Figures whose runs differ, or that have other seeds", figures),
        ("Points that differ" + (more if len(differences.points) > rows else ""), differences.points.head(rows)),
    ]
    for heading, name in (
        ("Points of another scenario", "changed"),
        ("Points only among your own", "only_own"),
        ("Points only in what ships", "only_shipped"),
    ):
        points = getattr(differences, name)
        less = f" (the first {rows} of {len(points):,}; {all_of}({scale!r}).{name})" if len(points) > rows else ""
        tables.append((heading + less, pd.DataFrame({"point": points[:rows]})))
    return [(heading, table.reset_index(drop=True)) for heading, table in tables if len(table)]
