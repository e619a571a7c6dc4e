"""``bbrlab artifact``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base import paths
from bbrlab.cli.app import app
from bbrlab.cli.shipped import Figures, chosen_figures


@app.command()
def artifact(
    figures: Figures = None,
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")] = None,
    results: Annotated[Path | None, typer.Option(help="The campaign's folder; default: the results folder.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the archive; default: artifact in the results folder.")] = None,
    explained: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Why runs that failed self-checks are in it all the same (docs/howto/shipped_results.md).")] = None,
) -> None:  # fmt: skip
    """Pack a finished campaign into one archive: results, sources, licences, provenance, checksums (docs/howto/artifact.md)."""
    from rich.console import Console

    from bbrlab.archive.pack import pack
    from bbrlab.campaign.config import load_config
    from bbrlab.campaign.figures import figures_at
    from bbrlab.workflow.ship import read_explained

    scale = scale or load_config().scale
    names = chosen_figures(scale, figures)
    with Console(stderr=True).status("") as status:
        made = pack(
            scale,
            figures_at(scale, names),
            (results or paths.results_folder()).absolute(),
            (out or paths.results_folder() / "artifact").absolute(),
            read_explained(explained) if explained else (),
            not names,
            status.update,
        )
    told = made.manifest
    typer.echo(
        f"{made.path}: {made.bytes / 1e6:.1f} MB, {told['files']} files, {sum(told['figures'].values())} runs of {len(told['figures'])} figures, "
        f"sources of commit {told['commit'][:10]}, {'with' if told['site'] else 'without'} the site\nsha256 {made.sha256}"
    )
    if changed := [commit for commit in told["commits"] if commit.endswith("+") or commit == "unknown"]:
        typer.echo(
            f"bbrlab: warning: runs of {changed[0]}: no commit has their code, so that nobody can get it", err=True
        )
