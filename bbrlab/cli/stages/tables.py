"""Stage ``tables``: a figure's runs as one table, every point of every figure as another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.cli.app import app


@app.command(hidden=True)
def collect(
    figure: str,
    scale: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
    seeds: Annotated[Path | None, typer.Option(help="How many of each point; default: the figure's trials.")] = None,
) -> None:
    """Gather the runs of a figure into one tidy table (used by the workflow)."""
    from bbrlab.results.figures import figures_at
    from bbrlab.results.seeds import read_seeds
    from bbrlab.results.tables import figure_table, write_table

    (chosen,) = figures_at(scale, [figure])
    write_table(figure_table(chosen, read_seeds(seeds) if seeds else None), out)


@app.command(hidden=True)
def points(tables: list[Path], out: Annotated[Path, typer.Option()]) -> None:
    """Gather every point of every figure into one tidy table (used by the workflow)."""
    from bbrlab.results.tables import read_tables, tidy, write_table

    write_table(tidy(read_tables(tables)), out)
