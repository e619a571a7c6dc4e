"""``bbrlab show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base import outputs
from bbrlab.base.errors import UserError
from bbrlab.cli.app import app


@app.command()
def show(
    run: Annotated[str, typer.Argument(metavar="RUN|STUDY", help="Folder of a run, PAPER/FIGURE/POINT/seed-N of the results folder, or a study's folder.", show_default=False)],
    out: Annotated[Path | None, typer.Option(metavar="FILE.html", help="File; default: index.html in the folder of the run or study.", show_default=False)] = None,
) -> None:  # fmt: skip
    """Write a page of one run, or of a study of your own with its pictures, points and runs.

    A run's page has goodput, window, RTT, queue, rates, losses, BBR's states, self-checks, how to repeat it.
    """
    from bbrlab.results.run_folder import find_run
    from bbrlab.run.output import PAGE
    from bbrlab_apps.site.run_page import write_run_page
    from bbrlab_apps.study.page import folder_of, write_study_page

    if out is not None and out.suffix not in (".html", ".htm"):
        raise UserError(f"--out {out}: is to be a page: give a name that ends with .html")
    study = folder_of(run)
    folder = study or find_run(run)
    page = out or folder / PAGE
    outputs.check_file("--out", page, outputs.PAGE)
    if study:
        write_study_page(folder, page)
    else:
        write_run_page(folder, page)
    typer.echo(page)
