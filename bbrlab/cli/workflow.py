"""Commands that the workflow's rules call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bbrlab.cli.app import app, make_interruptible


@app.command(hidden=True)
def point(
    file: Annotated[Path, typer.Argument(help="Point file made by the workflow.")],
    seed: Annotated[int, typer.Option()],
    out: Annotated[Path, typer.Option()],
    kernel: Annotated[str | None, typer.Option()] = None,
) -> None:
    """Run one point of a campaign (used by the workflow)."""
    from bbrlab.measure.checks.check import failed_of
    from bbrlab.run.run import run_point
    from bbrlab.scenario.point_files import read_point

    make_interruptible()
    summary = run_point(read_point(file), seed, out, kernel_name=kernel, die_with_parent=True)
    failed = [c["name"] for c in failed_of(summary["checks"])]
    if failed:
        typer.echo(
            f"bbrlab: {out}: self-checks failed: {', '.join(failed)}; the run is marked and left out of averages",
            err=True,
        )


@app.command(hidden=True)
def collect(figure: str, scale: Annotated[str, typer.Option()], out: Annotated[Path, typer.Option()]) -> None:
    """Gather the runs of a figure into one tidy table (used by the workflow)."""
    from bbrlab.campaign.collect import figure_table, write_table
    from bbrlab.campaign.figures import figures_at

    (chosen,) = figures_at(scale, [figure])
    write_table(figure_table(chosen), out)


def _tables(paths: list[Path]) -> dict[str, Any]:
    """{figure: its table} of results/SCALE/PAPER/FIGURE.parquet files."""
    import pandas as pd

    return {f"{p.parent.name}/{p.stem}": pd.read_parquet(p) for p in paths}


@app.command(hidden=True)
def points(tables: list[Path], out: Annotated[Path, typer.Option()]) -> None:
    """Gather every point of every figure into one tidy table (used by the workflow)."""
    from bbrlab.campaign.collect import tidy, write_table

    write_table(tidy(_tables(tables)), out)


@app.command(hidden=True)
def judge(
    tables: list[Path],
    scale: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
    only: Annotated[bool, typer.Option("--only", help="Print and keep only the claims about these figures.")] = False,
) -> None:
    """Judge the papers' claims by the tables of a campaign (used by the workflow)."""
    from bbrlab.campaign.collect import write_table
    from bbrlab.campaign.figures import figures_at
    from bbrlab.claims.judge import judge_all, verdict_frame
    from bbrlab.claims.load import claims_of, load_statements
    from bbrlab.report.scorecard import show_verdicts

    found = _tables(tables)
    chosen = [c for c in claims_of(load_statements()) if not only or {t.figure for t in c.at.values()} & set(found)]
    verdicts = judge_all(chosen, figures_at(scale, list(found)), found)
    frame = verdict_frame(verdicts)
    if only:
        show_verdicts(frame)
    write_table(frame, out)


@app.command(hidden=True)
def render(
    notebook: Path,
    out: Annotated[Path, typer.Option()],
    figures: Annotated[Path | None, typer.Option()] = None,
    parameter: Annotated[list[str] | None, typer.Option("-p")] = None,
) -> None:
    """Execute a notebook and write it as HTML, its figures as files (used by the workflow)."""
    from bbrlab.report.render import render_notebook

    render_notebook(notebook, out, dict(item.split("=", 1) for item in parameter or []), figures)


@app.command(hidden=True)
def report(
    tables: list[Path],
    claims: Annotated[Path, typer.Option()],
    scale: Annotated[str, typer.Option()],
    out: Annotated[Path, typer.Option()],
) -> None:
    """Print and write the scorecard (used by the workflow)."""
    import pandas as pd

    from bbrlab.report.scorecard import write_scorecard

    write_scorecard(_tables(tables), pd.read_parquet(claims), scale, out)


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
