"""``bbrlab ship`` and ``bbrlab rejudge``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.git import git
from bbrlab.base.limits import all_cores
from bbrlab.base.words import in_short, number_of
from bbrlab.cli.app import Figures, ScaleName, app, at_once
from bbrlab.cli.status_line import StatusLine, status_line

if TYPE_CHECKING:
    from bbrlab_apps.shipping.pack import Finished


def finished(
    scale: str, figures: list[str] | None, results: Path, explained: Path | None, by_point: bool = False
) -> Finished:
    """The campaign to pack, of the names that a command was given (Figures)."""
    from bbrlab.results.figures import figures_at
    from bbrlab_apps.shipping.accepted_failures import read_accepted_failures
    from bbrlab_apps.shipping.pack import Finished

    accepted = read_accepted_failures(explained) if explained else ()
    return Finished(scale, figures_at(scale, figures), results, accepted, by_point)


def warn_of_changed_code(commits: Mapping[str, int]) -> None:
    """Say it if runs are of code that no commit has, or of commits that are not in the history of what is checked out.

    Args:
        commits: {commit: its runs}, as a manifest has them.
    """
    changed = {name: runs for name, runs in commits.items() if name.endswith("+") or name == "unknown"}
    gone = {name: runs for name, runs in commits.items() if name not in changed and not _is_in_history(name)}
    for lost, why in (
        (changed, "no commit has their code, so that nobody can get it"),
        (
            gone,
            "not in the history of what is checked out; run them again if these commits are of a branch that will not be kept",
        ),
    ):
        if lost:
            listed = ", ".join(f"{runs} of {name}" for name, runs in lost.items())
            typer.echo(f"bbrlab: warning: runs of commits that others may not get ({listed}): {why}", err=True)


def _is_in_history(commit: str) -> bool:
    """Whether a commit is the checked-out one or an ancestor of it; True, too, if Git cannot tell: without Git or a commit, in a
    shallow clone, and in a folder of another repository."""
    top = git("rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != paths.ROOT.resolve() or not git("rev-parse", "--verify", "--quiet", "HEAD"):
        return True
    if git("rev-parse", "--is-shallow-repository") != "false":
        return True
    return git("merge-base", "--is-ancestor", commit, "HEAD") is not None


def _show(line: StatusLine, text: str) -> None:
    """How far a command is; that it waits for another one stays in sight."""
    from bbrlab_apps.shipping.shipped_folder import WAITS

    line.show(text)
    if text == WAITS:
        line.note(text)


@app.command()
def ship(
    figures: Figures = None,
    scale: ScaleName = None,
    results: Annotated[Path | None, typer.Option(help="The campaign's folder; default: the results folder.")] = None,
    out: Annotated[Path | None, typer.Option(help="Default: where the package has its results.")] = None,
    explained: Annotated[Path | None, typer.Option(metavar="FILE.yaml", help="Why runs that failed self-checks ship all the same (docs/howto/shipped_results.md).")] = None,
    add: Annotated[bool, typer.Option("--add", help="Put the figures beside those that ship at this scale, or in their place, and judge all of them anew.")] = False,
    by_point: Annotated[bool, typer.Option("--by-point", help="With --add: of each figure take the points that have all of their runs; its others stay as they ship.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Drop other figures that ship at this scale.")] = False,
    cores: Annotated[int | None, at_once("Predictions at once, of those that are missing")] = None,
) -> None:  # fmt: skip
    """Pack finished figures of a campaign, with the hashes of all their runs, and judge them, to ship with the package.

    Figures that ship at the scale already stay with --add, and go with --replace.
    """
    from bbrlab.results.config import load_config
    from bbrlab.results.shipped import older_versions
    from bbrlab_apps.shipping.pack import OtherFigures, pack

    scale = scale or load_config().scale
    place = out or paths.SHIPPED
    campaign = finished(scale, figures, results or paths.results_folder(), explained, by_point)
    if add and replace:
        raise UserError("--add and --replace: give one of them: keep other figures that ship, or drop them")
    if by_point and not add:
        raise UserError("--by-point: is of --add alone: the other points stay as they ship; give both")
    others = OtherFigures.KEEP if add else OtherFigures.DROP if replace else OtherFigures.REFUSE
    with status_line() as line:
        packed = pack(campaign, place, cores or all_cores(), lambda text: _show(line, text), others)
    size = sum((place / scale / name).stat().st_size for name in packed.files)
    typer.echo(
        f"{place / scale}: {number_of(packed.runs, 'run')} of {number_of(len(packed.figures), 'figure')}, {size / 1e6:.1f} MB; "
        f"kernel {' and '.join(f'{name} {key}' for key, name in packed.kernels.items())}; commits {', '.join(packed.commits)}; {number_of(len(packed.failed), 'failed run')}, explained"
    )
    for words, ids in older_versions(place, scale).items():
        typer.echo(f"of an older version of bbrlab ({words}): {in_short(ids)}")
    warn_of_changed_code(packed.commits)


@app.command()
def rejudge(
    scale: Annotated[str | None, typer.Option(help="smoke, quick or full; default: config.yaml's if it ships, else the largest that ships whole.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Compute these predictions anew: 9s and own (the fluid model), burst; may be given several times. Default: those that are missing.")] = None,
    cores: Annotated[int | None, at_once("Predictions at once")] = None,
) -> None:  # fmt: skip
    """Judge the results that ship by today's claims and models. Runs no experiment."""
    from bbrlab.results.config import load_config
    from bbrlab.results.shipped import shipped_scale
    from bbrlab_apps.shipping.rejudge import rejudge as judge_again

    scale = scale or shipped_scale(load_config().scale) or load_config().scale
    with status_line() as line:
        moved = judge_again(paths.SHIPPED, scale, model or (), cores or all_cores(), lambda text: _show(line, text))
    typer.echo(
        f"{paths.SHIPPED / scale}: {number_of(len(moved), 'statement')} {'has' if len(moved) == 1 else 'have'} another verdict"
    )
    for row in moved.to_dict(orient="records"):
        typer.echo(f"  {row['id']}: {row['before']} -> {row['now']}")
