"""Points and verdicts of a finished campaign are those that its tables give today."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.base.tables import unequal
from bbrlab.claims.statement_verdict import verdict_tables_by_file
from bbrlab.results.config import command_for, in_checkout
from bbrlab.results.figures import figures_at
from bbrlab.results.tables import read_figure, read_points, tidy
from bbrlab.results.verdicts import read_claims, read_statements
from bbrlab_apps.shipping.pack import Finished

NOT_COMPARED = "why"  # names folders where a prediction is missing


def check_judged(campaign: Finished, whole: bool = True) -> None:
    """UserError naming the first file of points or verdicts that is missing, or that is not of the tables beside it and of today's claims.

    Verdicts are by all tables that are there, also where some of the figures are packed.

    Args:
        whole: that all figures of the scale are packed, so that all of these files must be there; of a part those that are there are
            packed.
    """
    place, scale = campaign.results / campaign.scale, campaign.scale
    papers = sorted({figure.id.split("/")[0] for figure in campaign.figures})
    parts = ["", *(f"{paper}." for paper in papers)]
    names = ["points.parquet", *(f"{part}{kind}.parquet" for part in parts for kind in ("claims", "statements"))]
    for name in names if whole else ():
        if not (place / name).exists():
            raise UserError(
                f"{place / name}: is missing: the campaign is not finished; run: {in_checkout(command_for('all', scale))}"
            )
    for path, there, now in _pairs(place, scale, campaign.results):
        if not _equal(there, now):
            raise UserError(
                f"{path}: is not what the tables beside it and the claims that there are now give; start the campaign again, it "
                f"makes it anew: {in_checkout(command_for('all', scale))}"
            )


def _pairs(place: Path, scale: str, results: Path) -> Iterator[tuple[Path, pd.DataFrame, pd.DataFrame]]:
    """Of each file of points or verdicts that is there: where it is, what it has, what it should have."""
    files = {figure.id: place / f"{figure.id}.parquet" for figure in figures_at(scale, [])}
    tables = {id: read_figure(path) for id, path in files.items() if path.exists()}
    if (place / "points.parquet").exists():
        yield place / "points.parquet", read_points(place / "points.parquet"), tidy(tables)
    for part, claims, statements in verdict_tables_by_file(tables, scale, results):
        path = place / f"{part}claims.parquet"
        if path.exists():
            yield path, read_claims(path), claims
            yield place / f"{part}statements.parquet", read_statements(path), statements


def _equal(there: pd.DataFrame, now: pd.DataFrame) -> bool:
    """Whether two tables have the same cells in the columns of the second."""
    if len(there) != len(now) or not set(now) <= set(there):
        return False
    return not any(unequal(there[name], now[name]).any() for name in now if name != NOT_COMPARED)
