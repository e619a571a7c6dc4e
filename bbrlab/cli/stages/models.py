"""Stage ``models``: what the models say of a point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base.errors import UserError
from bbrlab.cli.app import app


@app.command(hidden=True)
def predict(point: Path, files: Annotated[list[str], typer.Argument(metavar="KIND=FILE...")]) -> None:
    """Say what models say of one point, each kind of prediction into a file of its own (used by the workflow)."""
    from bbrlab.models.predictions import KINDS, write_prediction
    from bbrlab.scenario.point_files import read_point

    pairs = [file.partition("=") for file in files]
    for kind, equals, out in pairs:
        if not (kind and equals and out):
            raise UserError(f"'{kind}{equals}{out}' must be KIND=FILE")
        if kind not in KINDS:
            raise UserError(f"{kind}: there is no such kind of predictions (there are {', '.join(KINDS)})")
    for kind, _, out in pairs:
        write_prediction(kind, read_point(point), Path(out))
