"""``bbrlab keep`` and ``bbrlab missing``: figures that are run part by part."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.cli.app import EXIT_MOVED, app
from bbrlab.cli.shipped import telling, warn_of_changed_code

if TYPE_CHECKING:
    from bbrlab.workflow.ship_more import Kept

Figures = Annotated[list[str], typer.Argument(metavar="PAPER|FIGURE...", show_default=False)]
Scale = Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")]
Results = Annotated[Path | None, typer.Option(help="The campaign's folder; default: the results folder (BBRLAB_RESULTS).")]  # fmt: skip
Out = Annotated[Path | None, typer.Option(help="Where results ship; default: where the package has them.")]


@app.command()
def keep(
    figures: Figures,
    scale: Scale = None,
    results: Results = None,
    out: Out = None,
    forget: Annotated[bool, typer.Option("--forget", help="Drop the runs of these figures that wait.")] = False,
) -> None:
    """Keep the runs that are there of figures that are not finished beside what ships.

    They wait there, not judged and not shown, until `bbrlab ship --add` has the others.
    """
    from bbrlab.campaign.config import load_config
    from bbrlab.campaign.figures import figures_at
    from bbrlab.workflow.ship_more import forget as forget_runs
    from bbrlab.workflow.ship_more import keep as keep_runs

    scale, place = scale or load_config().scale, out or paths.SHIPPED
    chosen = figures_at(scale, figures)
    if forget:
        if results:
            raise UserError("--forget and --results: leave --results out: what is dropped waits with what ships")
        with telling() as say:
            dropped = forget_runs([figure.id for figure in chosen], place, scale, say)
        for id, runs in dropped.items():
            typer.echo(f"{id}: {number_of(runs, 'run')} dropped")
        return
    with telling() as say:
        kept = keep_runs(chosen, scale, (results or paths.results_folder()).absolute(), place, say)
    for one in kept.figures:
        typer.echo(f"{one.figure.id}: {one.told}")
    _warn_of(kept)


def _warn_of(kept: Kept) -> None:
    """Figures that were left out, failed runs, runs of commits that others may not get."""
    for id, why in kept.left_out.items():
        typer.echo(f"bbrlab: {id}: {why}; left out", err=True)
    for one in kept.figures:
        for run, checks in one.failed:
            typer.echo(
                f"bbrlab: warning: {run.figure}, {run.point.label} seed {run.seed}: failed {', '.join(checks)}; find out why while its "
                "samples are there: `bbrlab ship --add` will ask for the reason (--explained)",
                err=True,
            )
    warn_of_changed_code(kept.commits)


@app.command()
def missing(figures: Figures, scale: Scale = None, results: Results = None, out: Out = None) -> None:
    """List the runs that figures still need, beside those of the results and those that wait with what ships.

    One file a line, as snakemake takes them: files=$(bbrlab missing FIGURE) && snakemake --cores 2 -- $files. Ends with 0 if there
    are some, 1 if none is missing: all runs are there that the figures and their claims ask for.
    """
    from bbrlab.campaign.config import load_config
    from bbrlab.campaign.figures import figures_at
    from bbrlab.report.shipped import is_shipped, read_manifest
    from bbrlab.workflow.digest import SUMMARY
    from bbrlab.workflow.snakemake import name_of
    from bbrlab.workflow.waiting import gather, other_origin, waiting_table

    scale, place = scale or load_config().scale, out or paths.SHIPPED
    folder = (results or paths.results_folder()).absolute()
    if not is_shipped(place, scale):
        raise UserError(
            f"{place}: nothing ships at scale {scale}, so no run waits there; snakemake runs what is missing by itself"
        )
    manifest, found = read_manifest(place, scale), []
    for figure in figures_at(scale, figures):
        if figure.id in manifest.figures:
            typer.echo(f"bbrlab: {figure.id} ships at scale {scale}: it needs no run", err=True)
            continue
        gathered = gather(figure, waiting_table(place, scale, figure), folder)
        typer.echo(f"bbrlab: {figure.id}: {gathered.told}", err=True)
        found += [name_of(run.folder / SUMMARY) for run in gathered.missing]
    if not found:
        raise typer.Exit(EXIT_MOVED)
    if other := other_origin(manifest):
        typer.echo(
            f"bbrlab: warning: {other}: runs that are made here cannot be kept beside what ships at scale {scale}",
            err=True,
        )
    typer.echo("\n".join(found))
