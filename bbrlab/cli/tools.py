"""``bbrlab traffic`` and ``bbrlab ns3``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base import paths
from bbrlab.base.words import number_of
from bbrlab.cli.app import app


@app.command()
def ns3(
    figures: Annotated[
        list[str] | None, typer.Argument(help="paper, paper/figure ...; default: all that it can do a point of.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for PAPER.parquet and .csv; default: where a campaign's pages look.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Per point.")] = 1,
) -> None:
    """Run figures in ns-3, as a check by another engine (optional: make ns3)."""
    from bbrlab.publish.ns3 import able, run
    from bbrlab.results.config import load_config
    from bbrlab.results.figures import figures_at
    from bbrlab.results.tables import write_table

    scale = scale or load_config().scale
    chosen = figures_at(scale, figures)
    if not figures:
        chosen = list({figure.id: figure for figure, _ in able(chosen)}.values())
    folder = out or paths.results_folder() / scale / "ns3"
    for paper in dict.fromkeys(figure.id.split("/")[0] for figure in chosen):
        table = folder / f"{paper}.parquet"
        write_table(run([figure for figure in chosen if figure.id.startswith(f"{paper}/")], seeds), table)
        typer.echo(f"results: {table}")


@app.command()
def traffic(
    capture: Annotated[
        Path,
        typer.Argument(
            metavar="CAPTURE.pcap", help="pcap or pcapng, also compressed with gzip, bzip2 or xz; headers are enough."
        ),
    ],
    out: Annotated[Path, typer.Option(help="CSV for flows[].traffic.trace of a scenario.")],
) -> None:
    """Turn a capture into short flows: its TCP flows and the pauses in them.

    Read are Ethernet (VLAN, MPLS, PPPoE), Linux' cooked captures (SLL, SLL2), BSD's loopback and raw IP; IPv4 and IPv6 with their options,
    extension headers and fragments. What is left out is counted by reason and printed. Of a file that is cut, what is there is read.
    """
    from bbrlab.workload.capture import from_capture
    from bbrlab.workload.chunks import write_chunks

    read = from_capture(capture)
    chunks = read.chunks
    write_chunks(chunks, out)
    flows, transmissions = number_of(chunks["flow"].nunique(), "flow"), number_of(len(chunks), "transmission")
    typer.echo(f"{out}: {flows}, {transmissions}, {chunks['bytes'].sum() / 1e6:.1f} MB")
    for note in read.notes:
        typer.echo(f"bbrlab: {capture}: {note}", err=True)
