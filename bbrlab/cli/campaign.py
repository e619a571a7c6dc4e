"""``bbrlab campaign``: checks the targets, plans, and calls snakemake."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from bbrlab.base import paths
from bbrlab.base.python import become
from bbrlab.cli.app import Figures, KernelName, ScaleName, all_cores, app, at_once


@app.command()
def campaign(
    figures: Figures = None,
    scale: ScaleName = None,
    cores: Annotated[int | None, at_once("Runs at once")] = None,
    kernel: KernelName = None,
    dry: Annotated[bool, typer.Option("--dry-run", "-n", help="Only say what would be run.")] = False,
) -> None:
    """Run papers and figures: check the names, say what it takes, and have snakemake make what is not there yet.

    The same as `snakemake --cores N --config scale=S -- FIGURE...`, which takes all other options of Snakemake.
    """
    from bbrlab.base.console import Console
    from bbrlab.base.yaml_files import read_yaml
    from bbrlab.campaign.forecast import show_forecast
    from bbrlab.campaign.lock import hold_lock
    from bbrlab.campaign.snakefile import current_plan
    from bbrlab.campaign.targets import checked_targets
    from bbrlab.results.config import load_config

    load_config()
    given = {name: value for name, value in (("scale", scale), ("kernel", kernel)) if value}
    os.chdir(paths.ROOT)  # the plan names files as snakemake will
    plan = current_plan(read_yaml(paths.CONFIG / "config.yaml") | given)
    words = figures or ["all"]
    chosen = checked_targets(words, plan, ["all", "site"])
    if not dry:  # of a dry run the Snakefile says it
        show_forecast(chosen, Console(stderr=True), cores)
        hold_lock()  # is let go when snakemake takes this process's place, and takes it itself
    config = ["--config", *(f"{name}={value}" for name, value in given.items())] if given else []
    become("snakemake", "--cores", str(cores or all_cores()), *(["-n"] if dry else []), *config, "--", *words)
