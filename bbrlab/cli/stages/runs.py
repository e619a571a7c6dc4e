"""Stage ``runs``: one guest per point and seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.cli.app import CcaSources, app


@app.command(hidden=True)
def point(
    file: Annotated[Path, typer.Argument(help="Point file made by the workflow.")],
    seed: Annotated[int, typer.Option()],
    out: Annotated[Path, typer.Option()],
    kernel: Annotated[str | None, typer.Option()] = None,
    cca_source: CcaSources = None,
) -> None:
    """Run one point of a campaign (used by the workflow)."""
    from bbrlab.measure.checks.check import failure_words
    from bbrlab.run.run import run_point
    from bbrlab.scenario.point_files import read_point

    sources = tuple(cca_source or ())
    summary = run_point(read_point(file, sources), seed, out, kernel_name=kernel, sources=sources, die_with_parent=True)
    if words := failure_words(summary["checks"]):
        typer.echo(f"bbrlab: {out}: {words}", err=True)
