"""Judges shipped results anew: points, predictions and verdicts by today's models and claims. Runs stay as they are."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.base.limits import all_cores
from bbrlab.base.workers import workers
from bbrlab.claims.columns import prediction_files
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.statement_verdict import verdict_tables_by_file
from bbrlab.comparison.compare import moved_verdicts
from bbrlab.models.predictions import KINDS, PACKED, PLACE, files_of, packed
from bbrlab.results.figures import Figure, figures_at, has_panel
from bbrlab.results.shipped import STATEMENTS
from bbrlab.results.tables import tidy
from bbrlab.scenario.point import Point
from bbrlab_apps.shipping.shipped_folder import Say, exclusive_access, read_shipped, replace_shipped


def rejudge(
    folder: Path, scale: str, models: Sequence[str] = (), jobs: int = 1, say: Say = lambda text: None
) -> pd.DataFrame:
    """Replace points, verdicts and predictions of shipped results by those of today's claims and models.

    UserError if nothing ships at the scale, or a file is not as the manifest says.

    Args:
        models: kinds of predictions (models.predictions.KINDS) to compute anew; others are computed only where missing.

    Returns:
        The statements with another verdict: ``id``, ``before``, ``now``.
    """
    with exclusive_access(folder, scale, say, "bbrlab ship packs a campaign"):
        manifest, content = read_shipped(folder, scale)
        before = content[STATEMENTS]
        figures = figures_at(scale, list(manifest.figures))
        renew(content, scale, figures, say, models=models, jobs=jobs)
        say("writing")
        replace_shipped(folder / scale, content, manifest.model_dump(mode="json", exclude={"files", "sha256"}))
        return moved_verdicts(before, content[STATEMENTS], {"before": "is new", "now": "is gone"})


def renew(
    content: dict[str, pd.DataFrame], scale: str, figures: Sequence[Figure], say: Say, *, models: Sequence[str] = (), jobs: int
) -> None:  # fmt: skip
    """Replace points, predictions and verdicts in the content of shipped results.

    Args:
        content: {file: table}, with the figures' tables and existing predictions.
        models: kinds of predictions to compute anew.

    Points that a scenario no longer has are not judged.
    """
    tables = {figure.id: content[f"{figure.id}.parquet"] for figure in figures}
    content["points.parquet"] = tidy(tables)
    content[PACKED] = _predictions(content[PACKED], figures, say, models, jobs)
    say("claims")
    with tempfile.TemporaryDirectory(prefix="bbrlab-rejudge-") as place:
        (Path(place) / scale).mkdir()
        content[PACKED].to_parquet(Path(place) / scale / PACKED)
        for part, claims, statements in verdict_tables_by_file(tables, scale, Path(place)):
            content[f"{part}claims.parquet"], content[f"{part}statements.parquet"] = claims, statements


def _predictions(
    old: pd.DataFrame, figures: Sequence[Figure], say: Say, models: Sequence[str], jobs: int
) -> pd.DataFrame:
    """The predictions that claims and panels of the figures read: old ones, unless they are missing or of a model to compute anew."""
    if unknown := sorted(set(models) - set(KINDS)):
        raise UserError(f"--model {unknown[0]}: there is no such kind of predictions (there are {', '.join(KINDS)})")
    points = {(figure.id, point.label): point for figure in figures for point in figure.points}
    kept = {tuple(map(str, place)): rows for place, rows in old.groupby(list(PLACE))}
    parts, todo = {}, {}
    for path in predictions_read(figures, Path()):  # only the names below it are used
        place = place_of(path)
        if place[2] in models or place not in kept:
            todo[place] = points[place[:2]]
        else:
            parts[place] = kept[place]
    count = min(jobs, len(todo) or 1, all_cores())
    killed = "a process that computed predictions was killed"
    with workers(count, _begin_worker, killed, "what ships is as it was") as pool:
        # Not with the pool's map, which cancels waiting jobs when a process is killed, at which Python 3.11 prints a traceback.
        running = {place: pool.submit(_predict, place[2], point) for place, point in todo.items()}
        for number, (place, job) in enumerate(running.items(), 1):
            parts[place] = job.result().assign(**dict(zip(PLACE, place, strict=True)))
            say(f"predictions: {number} of {len(todo)}")
    return packed(parts.values())


def predictions_read(figures: Sequence[Figure], results: Path) -> list[Path]:
    """The files of the predictions that claims and panels of the figures read, in order of their names."""
    wanted = set(prediction_files(claims_of(load_statements(known_good=True)), figures, results))
    for figure in filter(has_panel, figures):
        wanted |= set(files_of(figure.id, figure.scenario, figure.points, results))
    return sorted(wanted)


def place_of(path: Path) -> tuple[str, str, str]:
    """(figure, point, kind) of a prediction's file."""
    point = path.parent
    return f"{point.parent.parent.name}/{point.parent.name}", point.name, path.stem


def _begin_worker() -> None:
    """Ignore Ctrl-C and hangups, which the parent handles by ending this process."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _predict(kind: str, point: Point) -> pd.DataFrame:
    return KINDS[kind].of_points([point])
