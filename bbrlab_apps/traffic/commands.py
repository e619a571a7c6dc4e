"""``bbrlab traffic``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base.outputs import check_file
from bbrlab.base.words import number_of
from bbrlab.cli.app import app


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
    from bbrlab.workload.chunks import write_chunks
    from bbrlab_apps.traffic.capture import from_capture

    check_file("--out", out)  # people write such tables, too
    read = from_capture(capture)
    chunks = read.chunks
    write_chunks(chunks, out)
    flows, transmissions = number_of(chunks["flow"].nunique(), "flow"), number_of(len(chunks), "transmission")
    typer.echo(f"{out}: {flows}, {transmissions}, {chunks['bytes'].sum() / 1e6:.1f} MB")
    for note in read.notes:
        typer.echo(f"bbrlab: {capture}: {note}", err=True)
