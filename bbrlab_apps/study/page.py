"""A study of one's own as one page: its pictures, its points, and the way to its runs."""

from __future__ import annotations

import base64
import io
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import quote

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from markupsafe import Markup

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.measure import metrics
from bbrlab.measure.metrics import label_of
from bbrlab.results.algorithm_table import label_of_cca
from bbrlab.results.run_folder import RunFolder
from bbrlab.results.tables import point_means
from bbrlab.run.output import PAGE, SAMPLES, SUMMARY
from bbrlab.show.points_table import interval_text, shown_columns, shown_metrics
from bbrlab.show.verdicts import colours_css
from bbrlab_apps.site.html import number, render
from bbrlab_apps.site.run_page import STATIC, options_of, write_run_page
from bbrlab_apps.study.draw_points import NotOnePictureError
from bbrlab_apps.study.plan import RUNS, SCENARIO
from bbrlab_apps.study.plot import FIXED, SALT, Wish, plot
from bbrlab_apps.study.sources import PointsSource, source_of

BESIDES = "queue_ms_mean"  # drawn below the shares
VALUES_SHOWN = 8


def is_study(folder: Path) -> bool:
    """Whether a folder is of a study."""
    return (folder / SCENARIO).is_file() and not (folder / SUMMARY).exists()


def write_study_page(folder: Path, out: Path | None = None) -> Path:
    """Write the page of a study that `bbrlab sweep` has run, and the page of the first run of each of its points.

    UserError if the folder has no finished run, or a damaged one.

    Args:
        out: file; default: index.html of that folder. Its links are to the folder's files, wherever it is.

    Returns:
        The page.
    """
    source = source_of([str(folder)])
    assert isinstance(source, PointsSource)
    table, page = source.table, out or folder / PAGE
    base = "" if page.absolute().parent == folder.absolute() else f"{folder.absolute().as_uri()}/"
    links = {
        (str(point), int(str(seed))): _link(source, str(point), int(str(seed)), first=at == 0, base=base)
        for point, rows in table.groupby("point", sort=False)
        for at, seed in enumerate(sorted(rows["seed"].unique()))
    }
    heads, rows = _points(source, links)
    failed = table.loc[~table["ok"], ["point", "seed"]].drop_duplicates()
    text = render(
        "study.html",
        title=source.name.rsplit("/", 1)[-1],
        swept=_swept_words(source),
        pictures=_pictures(source),
        failed=[f"{point}, seed {seed}" for point, seed in failed.itertuples(index=False)],
        heads=heads,
        rows=rows,
        command=shlex.join(["bbrlab", "sweep", SCENARIO, *_options(source), "--out", "again"]),
        scenario=(folder / SCENARIO).read_text(encoding="utf-8"),
        css=Markup(colours_css() + (STATIC / "site.css").read_text(encoding="utf-8")),
    )
    files.write_text(page, text)
    return page


def _options(source: PointsSource) -> list[str]:
    """What else than the scenario made the runs: kernel, algorithms of one's own."""
    point, seed = source.table[["point", "seed"]].iloc[0]
    return options_of(RunFolder(source.run_folder(str(point), int(seed))).summary)


def _swept_words(source: PointsSource) -> str:
    """What is swept, and how often each point was run, in a sentence."""
    parts = []
    for column in source.swept:
        values = list(dict.fromkeys(source.table[column]))
        listed = ", ".join(number(v) if isinstance(v, int | float) else str(v) for v in values[:VALUES_SHOWN])
        more = f" and {len(values) - VALUES_SHOWN} more" if len(values) > VALUES_SHOWN else ""
        parts.append(f"{column.removeprefix('network.')}: {listed}{more}")
    points, seeds = source.table["point"].nunique(), source.table["seed"].nunique()
    return f"{number_of(points, 'point')}, {number_of(seeds, 'seed')}. {'; '.join(parts)}."


def _pictures(source: PointsSource) -> list[dict[str, str]]:
    """The shares, and the queue, as images that stand in the page."""
    wanted: list[str | None] = [None]
    if source.table[BESIDES].notna().any():
        wanted.append(BESIDES)
    pictures = []
    for metric in wanted if source.table["ok"].any() else []:
        try:
            figure, name = plot(source, Wish(y=[metric] if metric else []))
        except NotOnePictureError:
            continue  # the table below has all
        image = io.BytesIO()
        with mpl.rc_context(SALT):
            figure.savefig(image, format="svg", metadata=FIXED["svg"])
        plt.close(figure)
        data = base64.b64encode(image.getvalue()).decode("ascii")
        drawn = name.rsplit("-", 1)[-1] if metric is None else metric
        pictures.append(
            {"data": f"data:image/svg+xml;base64,{data}", "alt": f"{label_of(drawn)} of the points in the table below"}
        )
    return pictures


def _link(source: PointsSource, point: str, seed: int, *, first: bool, base: str) -> dict[str, Any]:
    """Where a run is; of the first of a point its page, which is written."""
    run = source.run_folder(point, seed)
    at = f"{base}{RUNS}/{quote(point)}/seed-{seed}"
    if first and (run / SAMPLES).exists():
        write_run_page(run, run / PAGE)
        return {"seed": seed, "link": f"{at}/{PAGE}", "has_page": True}
    return {"seed": seed, "link": f"{at}/", "has_page": False}


def _points(
    source: PointsSource, links: dict[tuple[str, int], dict[str, Any]]
) -> tuple[list[str], list[dict[str, Any]]]:
    """The heads of the table of points, and its rows: one for each flow group."""
    table = source.table
    swept, shown = shown_columns(table), shown_metrics(table)
    keys = ["point", "group"]
    means = {column: point_means(table, keys, column).set_index(keys) for column, _, _ in shown}
    lines = []
    for _, rows in table.groupby(keys, sort=False):
        first = rows.iloc[0]
        point, group = str(first["point"]), int(first["group"])
        cells = ["" if pd.isna(first[name]) else f"{first[name]}" for name in swept]
        cells.append(f"{first['count']} {label_of_cca(first['cca'])}")
        cells += [
            "" if group > 0 and column in metrics.RUN else interval_text(means[column], (point, group), digits)
            for column, _, digits in shown
        ]
        runs = [] if group > 0 else [links[point, int(seed)] for seed in sorted(rows["seed"].unique())]
        lines.append({"cells": cells, "runs": runs})
    heads = [
        *(name.removeprefix("network.") for name in swept),
        "flows",
        *(head for _, head, _ in shown),
        "runs",
    ]
    return heads, lines


def folder_of(word: str) -> Path | None:
    """The folder of a study that a word of a command line names; None if it names none. UserError for one without runs."""
    folder = Path(word)
    if not is_study(folder):
        return None
    if not (folder / RUNS).is_dir():
        raise UserError(
            f"{folder}: the study has no run yet; bbrlab sweep {shlex.quote(str(folder / SCENARIO))} --out {shlex.quote(str(folder))}"
        )
    return folder
