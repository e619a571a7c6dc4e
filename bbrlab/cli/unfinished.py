"""``bbrlab keep`` and ``bbrlab missing``: figures that are run part by part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base import paths
from bbrlab.cli.app import app
from bbrlab.cli.shipped import finished, telling

Figures = Annotated[list[str], typer.Argument(metavar="PAPER|FIGURE...", show_default=False)]
Scale = Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")]
Results = Annotated[Path | None, typer.Option(help="The campaign's folder; default: the results folder.")]
Out = Annotated[Path | None, typer.Option(help="Where results ship; default: where the package has them.")]


@app.command()
def keep(figures: Figures, scale: Scale = None, results: Results = None, out: Out = None) -> None:
    """Keep the runs that are there of figures that are not finished beside what ships.

    They wait there, not judged and not shown, until `bbrlab ship --add` has the others.
    """
    from bbrlab.campaign.config import load_config
    from bbrlab.workflow.ship_more import keep as keep_runs

    scale = scale or load_config().scale
    campaign = finished(scale, figures, results or paths.results_folder(), None)
    with telling() as say:
        kept = keep_runs(campaign, out or paths.SHIPPED, say)
    for one in kept:
        typer.echo(f"{one.figure.id}: {one.told}")


@app.command()
def missing(figures: Figures, scale: Scale = None, results: Results = None, out: Out = None) -> None:
    """List the runs that figures still need, beside those of the results and those that wait with what ships.

    One file a line, as snakemake takes them: snakemake --cores 2 -- $(bbrlab missing FIGURE). Nothing, once all runs are there
    that the figure and its claims ask for.
    """
    from bbrlab.base.tables import read_table
    from bbrlab.campaign.config import load_config
    from bbrlab.campaign.figures import figures_at
    from bbrlab.report.shipped import is_shipped, shipped_figures, waiting_file
    from bbrlab.workflow.digest import SUMMARY
    from bbrlab.workflow.snakemake import name_of
    from bbrlab.workflow.unfinished import gather

    scale = scale or load_config().scale
    folder, place = results or paths.results_folder(), out or paths.SHIPPED
    there = shipped_figures(place, scale) if is_shipped(place, scale) else set()
    for figure in figures_at(scale, figures):
        if figure.id in there:
            typer.echo(f"bbrlab: {figure.id} ships at scale {scale}: it needs no run", err=True)
            continue
        waiting = place / scale / waiting_file(figure.id)
        found = gather(figure, read_table(waiting) if waiting.exists() else None, folder)
        for run in found.missing:
            typer.echo(name_of(run.folder / SUMMARY))
