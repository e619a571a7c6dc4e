"""A finished campaign of one figure, for the tests of what comes after runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.claims.statement_verdict import verdict_tables
from bbrlab.results.figures import Figure, figures_at, runs_of
from bbrlab.results.judged import write_verdicts
from bbrlab.results.tables import figure_table, tidy, write_table
from bbrlab.run.run import run_point

FIGURE = "tang/fig2"


def figure() -> Figure:
    return figures_at("smoke", [FIGURE])[0]


def make_tables(results: Path) -> None:
    """What the workflow makes of the runs."""
    chosen = figure()
    before, paths.results_folder = paths.results_folder, lambda: results
    try:
        table = figure_table(chosen)
    finally:
        paths.results_folder = before
    write_table(table, results / "smoke" / f"{FIGURE}.parquet")
    write_table(tidy({FIGURE: table}), results / "smoke" / "points.parquet")
    for part in ("", "tang."):
        claims, statements = verdict_tables({FIGURE: table}, "smoke", bool(part), results)
        out = results / "smoke" / f"{part}claims.parquet"
        write_verdicts(claims, statements, out, [results / "smoke" / f"{FIGURE}.parquet"])


@pytest.fixture(scope="session")
def finished_campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its results, run by real guests; not to be changed."""
    results = tmp_path_factory.mktemp("finished") / "results"
    for run in runs_of(figure(), results=results):
        run_point(run.point, run.seed, run.folder)
    make_tables(results)
    return results
