"""Stages ``seeds`` and ``claims``: how many seeds claims ask for, and what comes of the claims by the tables of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.cli.app import app


@app.command(hidden=True)
def seeds(
    figure: str,
    scale: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
    before: Annotated[
        Path | None, typer.Option(help="Seeds of the round before; default: the figure's trials.")
    ] = None,
) -> None:
    """Say how many seeds each point of a figure needs for its claims (used by the workflow)."""
    from bbrlab.claims.load import claims_of, load_statements
    from bbrlab.claims.wanted_seeds import wanted_seeds
    from bbrlab.results.figures import figures_at
    from bbrlab.results.seeds import read_seeds, write_seeds
    from bbrlab.results.tables import figure_table

    (chosen,) = figures_at(scale, [figure])
    table = figure_table(chosen, read_seeds(before) if before else None)
    write_seeds(out, wanted_seeds(chosen, table, claims_of(load_statements(known_good=True))))


@app.command(hidden=True)
def judge(
    tables: list[Path],
    scale: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
    only: Annotated[
        bool, typer.Option("--only", help="Only statements of which these figures alone can judge a claim.")
    ] = False,
) -> None:
    """Judge the papers' claims by the tables of a campaign; statements go beside them (used by the workflow)."""
    from bbrlab.claims.statement_verdict import verdict_tables
    from bbrlab.results.judged import write_verdicts
    from bbrlab.results.replacement import replacement
    from bbrlab.results.tables import read_tables

    claims, statements = verdict_tables(read_tables(tables), scale, only)
    swap = replacement()
    extra_columns = {"replaced": swap.text} if swap else {}
    write_verdicts(claims.assign(**extra_columns), statements.assign(**extra_columns), out, tables)
