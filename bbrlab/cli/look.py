"""Commands that look and run nothing: doctor, schema, check, forecast."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bbrlab.cli.app import app


@app.command()
def doctor() -> None:
    """Say what this machine lacks, and how to get it."""
    from rich.console import Console

    from bbrlab.cli.doctor import examine

    console = Console()
    findings = examine()
    for f in findings:
        mark = "[green]ok  [/green]" if f.ok else "[bold red]lack[/bold red]"
        console.print(f"{mark} {f.name}: {f.found}", highlight=False, soft_wrap=True)
        if not f.ok:
            console.print(f"     -> {f.remedy}", highlight=False, soft_wrap=True)
    if not all(f.ok for f in findings):
        raise typer.Exit(1)
    console.print("This machine can run bbrlab.")


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files."""
    from bbrlab.scenario.schema import Scenario

    typer.echo(json.dumps(Scenario.model_json_schema(), indent=1))


@app.command()
def check(
    scenarios: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.yaml...", help="Scenario files; those called claims.yaml are of claims."),
    ],
) -> None:
    """Check scenario files, and claims against the scenarios, without running anything."""
    from bbrlab.claims.load import FILE_NAME, claims_of, load_statements
    from bbrlab.scenario.load import load_scenario, points_of

    claims_files = [path for path in scenarios if path.name == FILE_NAME]
    statements = load_statements(claims_files)
    for path in claims_files:
        own = [s for s in statements if s.paper == path.absolute().parent.name]
        typer.echo(f"{path}: {len(own)} statements, {len(claims_of(own))} claims")
    for path in scenarios:
        if path.name == FILE_NAME:
            continue
        loaded = load_scenario(path)
        typer.echo(
            f"{path}: {loaded.paper}/{loaded.name}, {len(points_of(loaded))} points x {loaded.trials} trials, {loaded.duration_s:g} s each"
        )


@app.command("plan", hidden=True)  # its old name
@app.command()
def forecast(
    figures: Annotated[list[str] | None, typer.Argument(help="paper, paper/figure ...; default: all.")] = None,
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")] = None,
) -> None:
    """Show what a campaign would run: points, seeds, and how long it will take and how much disk it needs."""
    from bbrlab.campaign.figures import figures_at
    from bbrlab.workflow.forecast import show_forecast

    show_forecast(figures_at(scale, figures or None))
