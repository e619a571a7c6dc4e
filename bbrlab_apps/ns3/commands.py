"""``bbrlab ns3``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base import paths
from bbrlab.base.outputs import check_file
from bbrlab.cli.app import ScaleName, app


@app.command()
def ns3(
    figures: Annotated[
        list[str] | None, typer.Argument(help="paper, paper/figure ...; default: all that it can do a point of.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for PAPER.parquet and .csv; default: where a campaign's pages look.")
    ] = None,
    scale: ScaleName = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds for each point.")] = 1,
) -> None:
    """Run figures in ns-3, as a check by another engine (optional: make ns3)."""
    from bbrlab.results.config import load_config
    from bbrlab.results.figures import figures_at
    from bbrlab.results.tables import write_table
    from bbrlab_apps.ns3.runs import able, run

    scale = scale or load_config().scale
    chosen = figures_at(scale, figures)
    if not figures:
        chosen = list({figure.id: figure for figure, _ in able(chosen)}.values())
    folder = out or paths.results_folder() / scale / "ns3"
    tables = {paper: folder / f"{paper}.parquet" for paper in (figure.id.split("/")[0] for figure in chosen)}
    for table in tables.values() if out else ():  # the default place is bbrlab's own
        check_file("--out", table, b"left_out")  # a column of each
        check_file("--out", table.with_suffix(".csv"), b",left_out,")
    for paper, table in tables.items():
        write_table(run([figure for figure in chosen if figure.id.startswith(f"{paper}/")], seeds), table)
        typer.echo(f"results: {table}")
