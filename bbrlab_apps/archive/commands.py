"""``bbrlab artifact``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base import paths
from bbrlab.cli.app import Figures, ScaleName, app
from bbrlab.cli.status_line import status_line
from bbrlab_apps.shipping.commands import finished, warn_of_changed_code


@app.command()
def artifact(
    figures: Figures = None,
    scale: ScaleName = None,
    results: Annotated[Path | None, typer.Option(help="The campaign's folder; default: the results folder.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the archive; default: artifact in the results folder.")] = None,
    explained: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Why runs that failed self-checks are in it all the same (docs/howto/shipped_results.md).")] = None,
) -> None:  # fmt: skip
    """Pack a finished campaign into one archive: results, sources, licences, provenance, checksums (docs/howto/artifact.md)."""
    from bbrlab.results.config import load_config
    from bbrlab_apps.archive.pack import pack

    scale = scale or load_config().scale
    with status_line() as line:
        made = pack(
            finished(scale, figures, (results or paths.results_folder()).absolute(), explained),
            (out or paths.results_folder() / "artifact").absolute(),
            not figures,
            line.show,
        )
    manifest = made.manifest
    typer.echo(
        f"{made.path}: {made.bytes / 1e6:.1f} MB, {made.files} files, {sum(manifest['figures'].values())} runs of {len(manifest['figures'])} figures, "
        f"sources of commit {manifest['commit'][:10]}, {'with' if manifest['site'] else 'without'} the site\nsha256 {made.sha256}"
    )
    warn_of_changed_code(manifest["commits"])
