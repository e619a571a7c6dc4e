"""Commands that look and run nothing: doctor, schema, check, forecast."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from bbrlab.cli.app import EXIT_MOVED, AsJson, Figures, ScaleName, app, print_json


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine lacks, and how to get it."""
    from rich.console import Console

    from bbrlab.cli.doctor import examine

    console = Console()
    findings = examine()
    ok = all(f.ok for f in findings)
    if as_json:
        print_json({"ok": ok, "findings": [asdict(f) for f in findings]})
    for f in findings if not as_json else ():
        mark = "[green]ok  [/green]" if f.ok else "[bold red]lack[/bold red]"
        console.print(f"{mark} {f.name}: {f.found}", highlight=False, soft_wrap=True)
        if not f.ok:
            console.print(f"     -> {f.remedy}", highlight=False, soft_wrap=True)
    if not ok:
        raise typer.Exit(EXIT_MOVED)
    if not as_json:
        console.print("This machine can run bbrlab.")


@app.command()
def schema(
    kind: Annotated[str, typer.Argument(help="scenario, claims, rubric, kernels or config.")] = "scenario",
) -> None:
    """Print the JSON Schema of a kind of file: what config/schemas/ has for editors."""
    from bbrlab.cli.schemas import schema_of

    print_json(schema_of(kind))


@app.command()
def check(
    scenarios: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.yaml...", help="Scenario files; those called claims.yaml are of claims."),
    ],
    as_json: AsJson = False,
) -> None:
    """Check scenario files, and claims against the scenarios, without running anything."""
    from bbrlab.claims.load import FILE_NAME, claims_of, load_statements
    from bbrlab.scenario.load import load_scenario, points_of

    claims_files = [path for path in scenarios if path.name == FILE_NAME]
    statements = load_statements(claims_files)
    found: list[dict[str, Any]] = []
    for path in claims_files:
        own = [s for s in statements if s.paper == path.absolute().parent.name]
        found.append({"file": path, "statements": len(own), "claims": len(claims_of(own))})
    for path in scenarios:
        if path.name == FILE_NAME:
            continue
        loaded = load_scenario(path)
        found.append({"file": path, "paper": loaded.paper, "name": loaded.name, "points": len(points_of(loaded)),
                      "trials": loaded.trials, "duration_s": loaded.duration_s})  # fmt: skip
    if as_json:
        print_json(found)
        return
    for one in found:
        if "claims" in one:
            typer.echo(f"{one['file']}: {one['statements']} statements, {one['claims']} claims")
        else:
            typer.echo(
                f"{one['file']}: {one['paper']}/{one['name']}, {one['points']} points x {one['trials']} trials, {one['duration_s']:g} s each"
            )


@app.command("plan", hidden=True)  # its old name
@app.command()
def forecast(
    figures: Figures = None,
    scale: ScaleName = None,
    as_json: AsJson = False,
) -> None:
    """Show what a campaign would run: points, seeds, and how long it will take and how much disk it needs."""
    from bbrlab.campaign.figures import figures_at
    from bbrlab.workflow.forecast import forecast_of, show_forecast

    chosen = figures_at(scale, figures or None)
    if as_json:
        print_json([asdict(forecast_of(figure)) for figure in chosen])
        return
    show_forecast(chosen)
