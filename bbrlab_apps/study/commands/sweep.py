"""``bbrlab sweep``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bbrlab.base.limits import all_cores
from bbrlab.base.words import in_short, number_of
from bbrlab.cli.app import CcaSources, KernelName, Overrides, ScenarioFile, app, at_once, settings_of
from bbrlab.cli.interrupts import Interrupted
from bbrlab.cli.status_line import status_line

if TYPE_CHECKING:
    from bbrlab_apps.study.plan import Study

EVERY_S = 30  # between two lines of progress where there is no terminal


@app.command()
def sweep(
    scenario: ScenarioFile,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds for each point; default: the scenario's trials.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for all of it; default: one of the scenario's name, here.", show_default=False)] = None,
    set_: Overrides = None,
    cores: Annotated[int | None, at_once("Runs at once")] = None,
    kernel: KernelName = None,
    cca_source: CcaSources = None,
) -> None:  # fmt: skip
    """Run a study of your own, all points of a scenario's sweep and cases, and draw it.

    Runs that are there already are kept, so that the same command goes on after an interruption, or with more seeds.
    """
    from bbrlab_apps.study.plan import plan_study

    sources = tuple(cca_source or ())
    study = plan_study(scenario, out, settings_of(set_, trials=seeds is None), seeds, sources)
    make_runs(study, kernel, sources, cores)
    _show_results(study)


def make_runs(study: Study, kernel: str | None, sources: tuple[Path, ...], cores: int | None) -> None:
    """Run what is not there yet of a study, and show how far it is."""
    from bbrlab.campaign.lock import hold_lock
    from bbrlab.run.output import SUMMARY
    from bbrlab.scenario.notes import notes_of
    from bbrlab_apps.study.plan import is_kept, remove_made, write_scenario
    from bbrlab_apps.study.run import kernel_of, run_study

    points = study.figure.points
    for note in notes_of(points):
        typer.echo(f"note: {note}")
    guest = kernel_of(study, kernel, sources, lambda text: typer.echo(f"kernel: {text}"))
    hold_lock(study.folder)
    if differing := write_scenario(study):
        typer.echo(
            f"note: {study.folder} had another sweep ({in_short(differing, 3)}): its tables, pictures and page are removed; its runs are kept, "
            "and the command that made them gives the rest back. --out FOLDER keeps both"
        )
    left = [run for run in study.runs if not is_kept(run, guest.key)]
    if replaced := [run for run in left if (run.folder / SUMMARY).exists()]:
        remove_made(study)
        typer.echo(
            f"note: {study.folder}: {number_of(len(replaced), 'run')} of another kernel, of an older version or damaged: made anew"
        )
    at_most = min(cores or all_cores(), max(len(left), 1))
    typer.echo(_plan_words(study, len(left), at_most))
    if left:
        try:
            with status_line(EVERY_S) as line:
                run_study(
                    study,
                    left,
                    at_most,
                    kernel,
                    sources,
                    lambda progress, waits: line.show(
                        f"{number_of(len(points), 'point')}: {progress.words()}{f' · {waits}' if waits else ''}"
                    ),
                )
        except Interrupted:
            there = number_of(len(study.finished), "run")
            typer.echo(
                f"bbrlab: {study.folder}: {there} of {len(study.runs)} are kept; the same command goes on", err=True
            )
            raise


def _plan_words(study: Study, left: int, cores: int) -> str:
    from bbrlab.campaign.progress import span
    from bbrlab.results.run_estimate import estimate_s

    points, runs = study.figure.points, study.runs
    words = f"{study.name}: {number_of(len(points), 'point')}, {number_of(len(runs), 'run')}"
    if len(runs) < len(points) * study.figure.trials:
        words += " (where nothing is random, two seeds tell all)"
    if left < len(runs):
        words += f"; {len(runs) - left} are there"
    if not left:
        return words
    work_s = sum(estimate_s(run.point) for run in runs) * left / len(runs)
    return f"{words}; about {span(work_s / cores)} on {number_of(cores, 'core')}"


def _show_results(study: Study) -> None:
    """Tables and pictures: in files, and the table here."""
    from bbrlab.base.console import wide_console
    from bbrlab.run.output import PAGE
    from bbrlab.show.points_table import show_points
    from bbrlab_apps.study.draw_points import NotOnePictureError
    from bbrlab_apps.study.page import write_study_page
    from bbrlab_apps.study.plot import Wish, plot, save
    from bbrlab_apps.study.sources import source_of
    from bbrlab_apps.study.table import study_table, write_tables

    table = study_table(study)
    tables = write_tables(study, table)
    show_points(table, wide_console())
    failed = table.loc[~table["ok"], ["point", "seed"]].drop_duplicates()
    if len(failed):
        names = [f"{point}, seed {seed}" for point, seed in failed.itertuples(index=False)]
        typer.echo(
            f"bbrlab: self-checks failed in {number_of(len(names), 'run')}, which no mean is of: {in_short(names, 3)}; "
            "docs/howto/troubleshooting.md says what they mean",
            err=True,
        )
    if (study.folder / PAGE).exists():
        tables.append(write_study_page(study.folder))
    if table["ok"].any():
        try:
            save(plot(source_of([str(study.folder)]), Wish())[0], *study.pictures)
            tables += study.pictures
        except NotOnePictureError as error:
            typer.echo(f"bbrlab: no picture was drawn: {error}", err=True)
    typer.echo(f"\nfiles: {'  '.join(str(path) for path in tables)}")
    typer.echo(
        f"other pictures: bbrlab plot {shlex.quote(str(study.folder))} --y queue_ms_mean    (or --kind cdf, box, heat)"
    )
    typer.echo(f"as a page, with the runs: bbrlab show {shlex.quote(str(study.folder))}")
