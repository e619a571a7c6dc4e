"""``bbrlab plot``: which picture, and its file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from bbrlab.base import files, outputs
from bbrlab.base.errors import UserError
from bbrlab.results.series import STATE
from bbrlab.show.plots.style import set_style
from bbrlab_apps.study import draw_points, draw_runs
from bbrlab_apps.study.sources import PointsSource, RunSource, Source

KINDS = ("line", "box", "cdf", "heat")
FORMATS = ("png", "svg", "pdf")
DPI = 150
# What makes the bytes of a file those of its data alone, and says whose it is.
SALT: dict[Any, Any] = {"svg.hashsalt": "bbrlab"}
MARK = outputs.PICTURE.decode()
FIXED: dict[str, dict[str, Any]] = {
    "png": {"Software": MARK},
    "svg": {"Date": None, "Creator": MARK},
    "pdf": {"CreationDate": None, "Creator": MARK},
}
OF_SAMPLES = ("queue", "rtt")  # whose distributions are drawn of runs if nothing is asked for


@dataclass(frozen=True)
class Wish:
    """What somebody wants to see; what is left out has a default."""

    kind: str = "line"  # one of KINDS
    # x, hue: fields of a scenario, or ``flows``
    x: str | None = None
    y: Sequence[str] = ()  # metrics, or series of samples
    hue: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)  # {field: value} of the points that are drawn
    acks: bool = False  # whether runs' records of ACKs are drawn, in place of their samples


def check_out(out: Path | None) -> None:
    """UserError for a file of a format that is not drawn, and for one that is there and is no picture of bbrlab's."""
    if out is not None and out.suffix.removeprefix(".") not in FORMATS:
        raise UserError(
            f"--out {out}: the file's name says what is drawn: give one that ends with {', '.join('.' + f for f in FORMATS)}"
        )
    outputs.check_file("--out", out, outputs.PICTURE)


def plot(source: Source, wish: Wish) -> tuple[Figure, str]:
    """Draw. Returns the picture, and a name for its file. UserError for what cannot be drawn so."""
    if wish.kind not in KINDS:
        raise UserError(f"--kind {wish.kind}: no such kind; use one of {', '.join(KINDS)}")
    mpl.use("Agg")  # no window: the picture is a file
    set_style(math=False)
    return _of_points(source, wish) if isinstance(source, PointsSource) else _of_runs(source, wish)


def _of_points(source: PointsSource, wish: Wish) -> tuple[Figure, str]:
    if wish.acks:
        raise UserError("--acks: is for runs; of points there are means only")
    if len(wish.y) > 1:
        raise UserError(f"--y {' --y '.join(wish.y)}: a picture of points has one; only runs over time have several")
    table = draw_points.with_flows(
        draw_points.where(draw_points.with_equal_share(source.table), source.swept, wish.where)
    )
    choice = draw_points.choose(source, table, wish.kind, wish.x, wish.y[0] if wish.y else None, wish.hue)
    drawn = draw_points.draw(source, table, wish.kind, choice)
    return drawn, "-".join([source.name.replace("/", "-"), choice.y, *([] if wish.kind == "line" else [wish.kind])])


def _of_runs(runs: Sequence[RunSource], wish: Wish) -> tuple[Figure, str]:
    for option, given in (("--x", wish.x), ("--hue", wish.hue), ("--where", wish.where)):
        if given:
            raise UserError(
                f"{option}: is for the points of a study or figure; runs are drawn over time, each with its own dashes"
            )
    runs = [replace(run, of_acks=wish.acks) for run in runs]
    name = re.sub(r"\s+", "", "-".join(run.name.replace("/", "-") for run in runs))  # no quotes are needed to type it
    if wish.kind == "line":
        return draw_runs.over_time(
            runs, draw_runs.chosen(wish.y, of_acks=wish.acks)
        ), f"{name}-{'acks' if wish.acks else 'over-time'}"
    if wish.kind == "heat":
        raise UserError("--kind heat: is for the points of a study or figure; for runs use line, box or cdf")
    wanted = draw_runs.chosen(wish.y or OF_SAMPLES, of_acks=wish.acks)
    if STATE in wanted:
        raise UserError(f"--y {STATE}: a state is no number; leave --kind out to see it over time")
    return draw_runs.distributions(runs, wanted, wish.kind), f"{name}-{wish.kind}"


def save(figure: Figure, *out: Path) -> None:
    """Write a picture to files of several formats, each whole or not at all: the same bytes for the same data."""
    for file in out:
        kind = file.suffix.removeprefix(".")
        with mpl.rc_context(SALT), files.aside(file) as temporary:
            figure.savefig(temporary, format=kind, dpi=DPI, metadata=FIXED[kind])
    plt.close(figure)
