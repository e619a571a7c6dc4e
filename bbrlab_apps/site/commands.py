"""Stage ``site``: results, statements and documentation as a static site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base import outputs
from bbrlab.base.errors import UserError
from bbrlab.cli.app import app
from bbrlab.cli.status_line import status_line


@app.command()
def site(
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; default: SCALE/site in the results folder.")] = None,
    results: Annotated[Path | None, typer.Option(help="A folder of results to show and no other, of a part of a campaign, too. Default: your own of a whole campaign, else what ships.")] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Execute the notebooks that no campaign has executed, each again once what it is made of has changed (minutes).")] = False,
) -> None:  # fmt: skip
    """Write the site of your own results, else of those that ship. Runs no experiment."""
    from bbrlab.results.config import load_config
    from bbrlab.show.findings import shown_results
    from bbrlab_apps.site.build import build_site, execute_notebooks, site_folder

    scale = scale or load_config().scale
    if results and execute:
        raise UserError("--execute: goes without --results: notebooks show one's own results, or what ships")
    if results and not (results / scale).is_dir():
        raise UserError(
            f"--results {results}: there is no folder {scale} in it, so no results of that scale; give a folder of results, or another --scale"
        )
    outputs.check_folder("--out", out)  # before notebooks are executed
    if execute:
        execute_notebooks(scale, typer.echo)
    with status_line() as status:
        status.show("results are read")
        warnings = build_site(
            scale, out, results, progress=lambda what, done, of: status.show(f"{what}: {done} of {of}")
        )
    for line in warnings:
        typer.echo(f"bbrlab: warning: {line}", err=True)
    if results is None:
        which = shown_results(scale)
        typer.echo(
            f"It shows {'the results that ship' if which.shipped else f'your own results ({which.results / scale})'}."
        )
    typer.echo(f"The site, for a browser: {(out or site_folder(scale)) / 'index.html'}")
