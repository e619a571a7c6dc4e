"""Stage ``models``: what the models say of a point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base.errors import UserError
from bbrlab.cli.app import app


@app.command(hidden=True)
def predict(
    point: Path,
    kind: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
) -> None:
    """Say what a model says of one point (used by the workflow)."""
    from bbrlab.models.predictions import KINDS, write_prediction
    from bbrlab.scenario.point_files import read_point

    if kind not in KINDS:
        raise UserError(f"--kind {kind}: there is no such kind of predictions (there are {', '.join(KINDS)})")
    write_prediction(kind, read_point(point), out)
