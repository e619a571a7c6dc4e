"""``bbrlab verify``."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.limits import all_cores
from bbrlab.base.words import number_of
from bbrlab.cli.app import EXIT_MOVED, AsJson, Figures, app, at_once, print_json
from bbrlab.cli.status_line import status_line

SAMPLE = 20


@app.command()
def verify(
    figures: Figures = None,
    sample: Annotated[int, typer.Option(min=1, help="How many runs, chosen at random.")] = SAMPLE,
    seed: Annotated[int | None, typer.Option(help="Of the choice; default: another one each time, which is printed.")] = None,
    results: Annotated[Path | None, typer.Option(help="Anybody's folder of results; default: what ships.")] = None,
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's if it ships, else the largest that ships whole.")] = None,
    cores: Annotated[int | None, at_once("Guests at once")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Run a random sample of finished runs again and compare hashes.

    Ends with 0 if all are equal, 1 if something differs or is missing, 2 if there is nothing to verify.
    """
    from bbrlab.base.console import Console
    from bbrlab.campaign.progress import Progress, key_of, span
    from bbrlab.cli.verification import content_of, progress_words, show_verification
    from bbrlab.comparison.expected_runs import results_at
    from bbrlab.comparison.verify import Outcome, choose, run_again
    from bbrlab.results.config import load_config
    from bbrlab.results.figures import figures_at
    from bbrlab.results.shipped import shipped_scale

    folder = (results or paths.SHIPPED).absolute()
    if not folder.is_dir() and results:
        raise UserError(f"--results {results}: there is no such folder")
    scale = scale or (None if results else shipped_scale(load_config().scale)) or load_config().scale
    chosen = figures_at(scale, figures)
    if not results and shipped_scale(scale) != scale:
        raise UserError(f"{folder}: nothing ships at scale {scale}; give --results FOLDER to verify other results")
    reference = results_at(folder, scale, chosen, figures or [])
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    runs = [reference.expected(key) for key in choose(reference.keys, sample, seed)]
    jobs = min(cores or all_cores(), len(runs))
    console = Console(soft_wrap=True, stderr=as_json)
    progress = Progress.of([run.run for run in runs], jobs)
    console.print(f"{folder}, scale {scale}: {len(runs)} of {number_of(len(reference.keys), 'run')}, chosen with --seed {seed}; about {span(progress.left_s)} on {number_of(jobs, 'core')}")  # fmt: skip
    for older in reference.older:
        console.print(f"{older.words}, and cannot be chosen; {older.remedy}")
    if reference.left_out:
        console.print(f"without a run there, and left out: {', '.join(reference.left_out)}")
    with status_line() as line:
        has_waited = False

        def report(done: list[Outcome], waits: str) -> None:
            nonlocal has_waited
            for one in done:
                if key_of(one.expected.run) not in progress.done:
                    progress.finish(key_of(one.expected.run), ok=not one.problems)
            line.show(progress_words(progress, waits))
            if waits and not has_waited:
                has_waited = True
                line.note(waits)

        outcomes = run_again(reference, runs, jobs, report)
    if as_json:
        content = {"results": folder, "scale": scale, "seed": seed, "left_out": reference.left_out}
        content |= {
            "of_another_version": [
                {"runs": older.runs, "words": older.words, "remedy": older.remedy} for older in reference.older
            ]
        }
        print_json(content | content_of(outcomes, reference.problems))
    else:
        show_verification(outcomes, reference.problems)
    if reference.problems or any(o.problems for o in outcomes):
        raise typer.Exit(EXIT_MOVED)
