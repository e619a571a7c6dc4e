"""``bbrlab ship``, ``bbrlab pages`` and ``bbrlab verify``."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.cli.app import EXIT_MOVED, AsJson, app, print_json

Figures = Annotated[list[str] | None, typer.Argument(metavar="[PAPER|FIGURE|all]...", help="Default: all.", show_default=False)]  # fmt: skip
SAMPLE = 20


def chosen_figures(scale: str, figures: list[str] | None) -> list[str] | None:
    """Names for figures_at(), which has no word for all, and wants a paper before a figure's name."""
    from bbrlab.campaign.figures import figures_at
    from bbrlab.workflow.targets import targets_of

    known = targets_of(f.id for f in figures_at(scale, []))
    return [id for name in figures or [] for id in known.get(name, [name])] if "all" not in (figures or ["all"]) else []


@app.command()
def ship(
    figures: Figures = None,
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")] = None,
    results: Annotated[Path | None, typer.Option(help="The campaign's folder; default: the results folder.")] = None,
    out: Annotated[Path | None, typer.Option(help="Default: where the package has its results.")] = None,
    explained: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Why runs that failed self-checks ship all the same (docs/howto/shipped_results.md).")] = None,
) -> None:  # fmt: skip
    """Pack a finished campaign's results, with the hashes of all its runs, to ship with the package."""
    from rich.console import Console

    from bbrlab.campaign.config import load_config
    from bbrlab.campaign.figures import figures_at
    from bbrlab.workflow.ship import pack, read_explained

    scale = scale or load_config().scale
    chosen = figures_at(scale, chosen_figures(scale, figures))
    place = out or paths.SHIPPED
    with Console(stderr=True).status("") as status:
        found = pack(scale, chosen, results or paths.results_folder(), place, read_explained(explained) if explained else (), status.update)  # fmt: skip
    size = sum((place / scale / name).stat().st_size for name in found["files"])
    kernel = found["kernel"]
    typer.echo(
        f"{place / scale}: {sum(found['figures'].values())} runs of {len(found['figures'])} figures, {size / 1e6:.1f} MB; "
        f"kernel {kernel['name']} {kernel['key']}; commits {', '.join(found['commits'])}; {len(found['failed'])} failed runs, explained"
    )
    if changed := [commit for commit in found["commits"] if commit.endswith("+") or commit == "unknown"]:
        typer.echo(
            f"bbrlab: warning: runs of {changed[0]}: no commit has their code, so that nobody can get it", err=True
        )


@app.command()
def pages(
    names: Annotated[list[str] | None, typer.Argument(metavar="[PAPER|models|overview]...", help="Default: all.", show_default=False)] = None,
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; default: pages/SCALE in the results folder.")] = None,
) -> None:  # fmt: skip
    """Write pages from the results that are there: one's own, else those that ship. Runs nothing."""
    from rich.console import Console

    from bbrlab.campaign.config import load_config
    from bbrlab.campaign.figures import figures_at
    from bbrlab.report.render import render_notebook

    scale = scale or load_config().scale
    papers = dict.fromkeys(f.id.split("/")[0] for f in figures_at(scale, []))
    known = [*papers, "models", "overview"]
    for name in names or []:
        if name not in known:
            raise UserError(f"there is no page '{name}' (there are {', '.join(known)})")
    folder = out or paths.results_folder() / "pages" / scale
    with Console(stderr=True).status("") as status:
        for number, name in enumerate(names or known, 1):
            status.update(f"{name}: page {number} of {len(names or known)}")
            given = {"scale": scale} | ({"interactive": "no"} if name == "models" else {})
            render_notebook(paths.ROOT / "notebooks" / f"{name}.ipynb", folder / f"{name}.html", given)
            typer.echo(folder / f"{name}.html")


@app.command()
def verify(
    figures: Figures = None,
    sample: Annotated[int, typer.Option(min=1, help="So many runs, chosen by chance.")] = SAMPLE,
    seed: Annotated[int | None, typer.Option(help="Of the choice; default: another one each time, which is told.")] = None,
    results: Annotated[Path | None, typer.Option(help="Anybody's folder of results; default: what ships.")] = None,
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: what ships, or config.yaml's.")] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="Guests at once; default: all cores.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Run a random sample of finished runs again and compare hashes.

    Ends with 0 if all are equal, 1 if something differs or is missing, 2 if there is nothing to verify.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from bbrlab.campaign.config import load_config
    from bbrlab.campaign.figures import figures_at
    from bbrlab.cli.verification import content_of, show_verification
    from bbrlab.report.shipped import shipped_scale
    from bbrlab.workflow.estimate import estimate_s
    from bbrlab.workflow.progress import span
    from bbrlab.workflow.verify import Outcome, again, choose, results_at

    folder = (results or paths.SHIPPED).absolute()
    if not folder.is_dir() and results:
        raise UserError(f"--results {results}: there is no such folder")
    scale = scale or (None if results else shipped_scale(load_config().scale)) or load_config().scale
    if not results and shipped_scale(scale) != scale:
        raise UserError(f"{folder}: nothing ships at scale {scale}; give --results FOLDER to verify other results")
    found = results_at(folder, scale, figures_at(scale, chosen_figures(scale, figures)))
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    records = [found.record(key) for key in choose(found.keys, sample, seed)]
    jobs = min(cores or len(os.sched_getaffinity(0)), len(records))
    console = Console(highlight=False, soft_wrap=True, stderr=as_json)
    expected_s = sum(estimate_s(r.run.point) for r in records) / jobs
    console.print(f"{folder}, scale {scale}: {len(records)} of {len(found.keys)} runs, chosen with --seed {seed}; about {span(expected_s)} on {jobs} cores")  # fmt: skip
    start = time.monotonic()
    with Live(Text(""), console=Console(stderr=True), transient=True, refresh_per_second=2) as live:

        def tell(done: list[Outcome]) -> None:
            part = sum(estimate_s(o.record.run.point) for o in done) / jobs / expected_s
            left_s = (time.monotonic() - start) * (1 - part) / part
            bad = sum(bool(o.wrong) for o in done)
            live.update(Text(f"runs {len(done)} of {len(records)} · {bad} differ · {span(left_s)} left", style="cyan"))

        outcomes = again(found, records, jobs, tell)
    if as_json:
        print_json({"results": folder, "scale": scale, "seed": seed, **content_of(outcomes, found.wrong)})
    else:
        show_verification(outcomes, found.wrong)
    if found.wrong or any(o.wrong for o in outcomes):
        raise typer.Exit(EXIT_MOVED)
