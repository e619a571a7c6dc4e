"""Stage ``site``: results, statements and documentation as a static site; a single run as a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.cli.app import app

if TYPE_CHECKING:
    from bbrlab.show.site import Progress


@app.command()
def site(
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; default: SCALE/site in the results folder.")] = None,
    results: Annotated[Path | None, typer.Option(help="A folder of results to show and no other, of a part of a campaign, too. Default: one's own of a whole campaign, else what ships.")] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Execute the notebooks that were not yet (minutes).")] = False,
) -> None:  # fmt: skip
    """Write the site of one's own results, else of those that ship. Runs no experiment."""
    from bbrlab.results.config import load_config
    from bbrlab.show.execute import execute_notebook
    from bbrlab.show.site import OF_MODELS, build_site, missing_notebooks, site_folder

    scale = scale or load_config().scale
    if results and execute:
        raise UserError("--execute: goes without --results: notebooks show one's own results, or what ships")
    for name in missing_notebooks(scale) if execute else []:
        typer.echo(f"notebook {name}")
        given = {"scale": scale} | ({"interactive": "no"} if name in OF_MODELS else {})
        execute_notebook(paths.ROOT / "notebooks" / f"{name}.ipynb", paths.results_folder() / "pages" / scale / f"{name}.ipynb", given)  # fmt: skip
    with _progress() as progress:
        warnings = build_site(scale, out, results, progress=progress)
    for line in warnings:
        typer.echo(f"bbrlab: warning: {line}", err=True)
    typer.echo(f"The site, for a browser: {(out or site_folder(scale)) / 'index.html'}")


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """On a terminal one line that is drawn again; else nothing."""
    from rich.live import Live
    from rich.text import Text

    from bbrlab.base.console import Console

    if not sys.stderr.isatty():
        yield None
        return
    with Live(Text("results are read", "cyan"), console=Console(stderr=True, highlight=False), transient=True) as live:
        yield lambda what, done, number: live.update(Text(f"{what}: {done} of {number}", "cyan"))


@app.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN|STUDY", help="Folder of a run, PAPER/FIGURE/POINT/seed-N of the results folder, or a study's folder.", show_default=False)],
    out: Annotated[Path | None, typer.Option(help="File; default: below pages/runs in the results folder; of a study index.html in its folder.", show_default=False)] = None,
) -> None:  # fmt: skip
    """Write a page of one run, or of a study of your own with its pictures, points and runs.

    A run's page has goodput, window, RTT, queue, rates, losses, BBR's states, self-checks, how to repeat it.
    """
    from bbrlab.show.run_page import default_file, run_folder, write_run_page
    from bbrlab.study.page import folder_of, write_study_page

    if study := folder_of(run):
        typer.echo(write_study_page(study, out))
        return
    folder = run_folder(run)
    page = out or default_file(folder)
    write_run_page(folder, page)
    typer.echo(page)
