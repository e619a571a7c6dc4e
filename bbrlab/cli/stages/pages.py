"""Stage ``pages``: notebooks executed, verdicts and the scorecard printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.cli.app import app


@app.command(hidden=True)
def execute(
    notebook: Path,
    out: Annotated[Path, typer.Option()],
    figures: Annotated[Path | None, typer.Option()] = None,
    parameter: Annotated[list[str] | None, typer.Option("-p")] = None,
) -> None:
    """Execute a notebook, and write its figures as files (used by the workflow)."""
    from bbrlab.show.execute import execute_notebook

    execute_notebook(notebook, out, dict(item.split("=", 1) for item in parameter or []), figures)


@app.command(hidden=True)
def verdicts(claims: Path, table: Annotated[Path | None, typer.Option()] = None) -> None:
    """Print the verdicts of a table of claims and of the statements beside it (used by the workflow).

    With --table, that of one figure: one screen with its points and statements.
    """
    from bbrlab.results.verdicts import read_claims, read_statements

    statements = read_statements(claims)
    if table is not None:
        from bbrlab.base.console import wide_console
        from bbrlab.show.figure_end import show_figure_end

        show_figure_end(table, read_claims(claims), statements, wide_console())
    else:
        from bbrlab.show.terminal import show_verdicts

        show_verdicts(read_claims(claims), statements)


@app.command(hidden=True)
def scorecard(
    tables: list[Path],
    claims: Annotated[Path, typer.Option()],
    scale: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
) -> None:
    """Print and write the scorecard (used by the workflow)."""

    from bbrlab.results.tables import read_tables
    from bbrlab.results.verdicts import read_claims, read_statements
    from bbrlab.show.terminal import write_scorecard

    write_scorecard(read_tables(tables), read_claims(claims), read_statements(claims), scale, out)
