"""``bbrlab qlog``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.cli.app import app


@app.command()
def qlog(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Folder of a run with --trace-acks.")],
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Gets flow-0.sqlog ...; default: the run's folder.", show_default=False)] = None,
    packed: Annotated[bool, typer.Option("--gzip", help="Pack each file: flow-0.sqlog.gz.")] = False,
) -> None:  # fmt: skip
    """Write each flow's ACKs as qlog: recovery and congestion events, for tools that look at QUIC."""
    from bbrlab.results.run_folder import find_run
    from bbrlab_apps.qlog.records import write_qlog

    folder = find_run(run)
    for file in write_qlog(folder, out or folder, packed=packed):
        typer.echo(str(file))
