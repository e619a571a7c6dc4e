"""Stage ``models``: what the fluid model and the burst model say of a point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.cli.app import app


@app.command(hidden=True)
def predict(
    point: Path,
    out: Annotated[Path, typer.Option()],
    step_ms: Annotated[float, typer.Option("--step-ms")],
    duration_s: Annotated[float | None, typer.Option("--duration-s")] = None,
) -> None:
    """Integrate the fluid model for one point, aligned (used by the workflow)."""
    from bbrlab.models import fluid
    from bbrlab.models.predict import write_predictions
    from bbrlab.scenario.point_files import read_point

    write_predictions([read_point(point)], duration_s, step_ms, fluid.ALIGNED, out)


@app.command(hidden=True)
def predict_burst(
    point: Path,
    out: Annotated[Path, typer.Option()],
    seeds: Annotated[int, typer.Option()],
) -> None:
    """Simulate one point burst by burst (used by the workflow)."""
    from bbrlab.models.burst_scenario import write_predictions
    from bbrlab.scenario.point_files import read_point

    write_predictions([read_point(point)], seeds, None, out)
