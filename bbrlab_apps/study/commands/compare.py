"""``bbrlab compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bbrlab.base import outputs
from bbrlab.base.errors import UserError
from bbrlab.base.limits import all_cores
from bbrlab.base.tables import csv_head, write_csv
from bbrlab.cli.app import EXIT_MOVED, AsJson, ScaleName, app, at_once, print_json
from bbrlab_apps.study.commands.compare_runs import compare_runs


@app.command()
def compare(
    figures: Annotated[list[str] | None, typer.Argument(metavar="[RUN RUN|PAPER|FIGURE]...", help="Two folders of runs; or papers and figures of two sides, by default what both have.")] = None,
    kernel: Annotated[list[str] | None, typer.Option(help="A kernel (bbrlab kernel list); give two.")] = None,
    config: Annotated[list[str] | None, typer.Option(metavar="'KEY=VALUE ...'", help="Settings of a campaign, as for snakemake --config; give two.")] = None,
    results: Annotated[list[Path] | None, typer.Option(help="A folder of results, of another commit for example; give two.")] = None,
    scale: ScaleName = None,
    metric: Annotated[list[str] | None, typer.Option(help="What to compare (docs/reference/results.md); may be given several times. Default: share_of_capacity, utilisation, loss, queue_ms_mean.")] = None,
    run: Annotated[bool, typer.Option("--run", help="Run what is missing.")] = False,
    cores: Annotated[int | None, at_once("With --run: guests at once")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write every point to this file.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE.png|.svg|.pdf", help="Of two runs: draw them over each other.")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write every point and verdict of both sides to this page.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Say in what two runs differ; or which points and verdicts move between two kernels, settings, or folders of results.

    Ends with 0 if nothing moves, 1 if something does or a side has too few good runs, 2 if there is nothing to compare.
    """
    from bbrlab.run.output import SUMMARY

    if any((Path(word) / SUMMARY).is_file() for word in figures or []):
        options = {
            "--kernel": kernel,
            "--config": config,
            "--results": results,
            "--scale": scale,
            "--run": run,
            "--cores": cores,
            "--csv": csv,
            "--page": page,
        }
        compare_runs(figures or [], metric, out, [name for name, given in options.items() if given], as_json)
        return
    if out:
        raise UserError(
            f"--out {out}: is the picture of two runs; give their folders (bbrlab compare RUN RUN --out {out})"
        )
    _compare_campaigns(
        figures or [],
        sides_given=(kernel or [], results or [], config or []),
        scale=scale,
        metric=metric,
        run=run,
        cores=cores,
        csv=csv,
        page=page,
        as_json=as_json,
    )


def _compare_campaigns(
    figures: list[str],
    *,
    sides_given: tuple[list[str], list[Path], list[str]],
    scale: str | None,
    metric: list[str] | None,
    run: bool,
    cores: int | None,
    csv: Path | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Compare two sides point by point and verdict by verdict: arguments as of compare().

    UserError if there is nothing to compare; typer.Exit if something moves.

    Args:
        sides_given: kernels, folders of results and settings, of which two name the sides (sources_of()).
    """
    from bbrlab.claims.judge import judge_all
    from bbrlab.claims.load import claims_of, load_statements
    from bbrlab.comparison.compare import METRICS, compare_points, compare_verdicts, only_in
    from bbrlab.results.config import load_config
    from bbrlab.results.figures import figures_at
    from bbrlab_apps.study.campaign_source import (
        figures_with_tables,
        kernels_of,
        left_out,
        run_side,
        sources_of,
        tables_at,
    )
    from bbrlab_apps.study.comparison import Comparison, content_of, show_comparison, write_page

    metrics = metric or METRICS
    nothing = compare_points({}, {}, metrics)  # says if there is no such metric, before a campaign runs
    outputs.check_file("--csv", csv, csv_head(nothing))
    outputs.check_file("--page", page, outputs.PAGE)
    sides = sources_of(*sides_given)
    scale = scale or load_config().scale
    jobs = cores or all_cores()
    by_id = {f.id: f for f in figures_at(scale, figures or None)}
    wanted = list(by_id) if figures else [id for id in by_id if all(id in figures_with_tables(s, scale) for s in sides)]
    if not wanted:
        raise UserError(f"both sides have no figure at scale {scale} in common; name the papers or figures to compare")
    wanted = _runnable(wanted, {side.name: left_out(side, scale, wanted) for side in sides})
    if run:
        for side in sides:
            if side.settings is not None:
                run_side(side, scale, wanted, jobs)
    tables = [tables_at(side, scale, wanted, jobs) for side in sides]
    points = compare_points(tables[0], tables[1], metrics)
    claims = [c for c in claims_of(load_statements(known_good=True)) if set(c.figures) <= set(wanted)]
    # The same points have other fingerprints where another algorithm stands in the place of one.
    chosen = [figures_at(scale, wanted, side.swap) for side in sides]
    verdicts = [judge_all(claims, f, t, side.folder) for f, t, side in zip(chosen, tables, sides, strict=True)]
    columns = [
        {"name": side.name, "folder": side.folder, "kernels": kernels_of(t.values())}
        for t, side in zip(tables, sides, strict=True)
    ]
    comparison = Comparison(
        (columns[0], columns[1]),
        scale,
        points,
        compare_verdicts(verdicts[0], verdicts[1]),
        (only_in(tables[0], tables[1]), only_in(tables[1], tables[0])),
    )
    if csv:
        write_csv(comparison.points, csv)
    if page:
        write_page(comparison, page)
    if as_json:
        print_json(content_of(comparison))
    else:
        show_comparison(comparison)
    if not len(points):
        raise UserError("the two sides have no point in common")
    if not comparison.compared:
        raise UserError(
            "no point has a number of these metrics on either side: every run failed, or none observed them"
        )
    if comparison.moved:
        raise typer.Exit(EXIT_MOVED)


def _runnable(wanted: list[str], lacking: dict[str, dict[str, list[str]]]) -> list[str]:
    """The figures that both sides can run; says which are left out, and why. UserError if none is left."""
    why = []
    for side, figures in lacking.items():
        if figures:
            ccas = sorted({cca for of_figure in figures.values() for cca in of_figure})
            why.append(f"{side} has no {', '.join(ccas)}: {', '.join(figures)}")
    left = [figure for figure in wanted if not any(figure in figures for figures in lacking.values())]
    if not left:
        raise UserError(f"no figure that both sides can run; {'; '.join(why)}")
    for words in why:
        typer.echo(f"bbrlab: left out, since {words}", err=True)
    return left
