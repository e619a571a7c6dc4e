"""Curves of chosen runs, over time or as distributions, which ship in place of the runs' samples; data/curves.yaml chooses them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from bbrlab.base import paths
from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.base.strict import NonNegative, Strict, read_model
from bbrlab.results.figures import Figure
from bbrlab.results.schema import RUN_AGAIN, read_with
from bbrlab.results.series import STATE, columns_of, names, values_of
from bbrlab.run.output import SAMPLES
from bbrlab.scenario.point import Point

SUFFIX = ".curves.parquet"
SEED = 1  # of the runs whose curves ship
POINTS = 600  # of a curve that ships, at most
DIGITS = 5
TIME, DISTRIBUTION = "time", "distribution"
COLUMNS = ("point", "curve", "kind", "of", "x", "y")

Name = Annotated[str, Field(min_length=1)]


class Choice(Strict):
    """Which runs of some figures have curves, and which (an entry of data/curves.yaml)."""

    figures: Annotated[list[Name], Field(min_length=1)]
    # over_time, distribution: names of series (series.names()); a distribution is of the samples in the metrics' window
    over_time: list[Name] = []
    distribution: list[Name] = []
    points: dict[str, list[Any]] = {}  # {trait: values}: points that have one of the values of each; default: all
    by: Literal["group", "flow"] = "group"  # what of the flows has a curve of its own
    groups: list[int] | None = None  # whose flows are drawn; default: all
    together: Name | None = None  # the trait whose values are drawn over each other
    # What is drawn of the run; default: all of it
    between_s: Annotated[list[NonNegative], Field(min_length=2, max_length=2)] | None = None
    in_rtts: bool = False  # whether the queueing delay is in base RTTs, not in ms
    because: Name

    @model_validator(mode="after")
    def _has_curves(self) -> Choice:
        if not self.curves:
            raise ValueError("has neither over_time nor distribution")
        if unknown := [name for _, name in self.curves if name not in names() or name == STATE]:
            raise ValueError(f"{unknown[0]}: there is no such curve (there are {', '.join(names())})")
        return self

    @property
    def curves(self) -> list[tuple[str, str]]:
        """Kind and name of each curve."""
        return [*((TIME, name) for name in self.over_time), *((DISTRIBUTION, name) for name in self.distribution)]

    def points_of(self, figure: Figure) -> list[Point]:
        """The points of a figure, at its scale, whose runs have curves."""
        return [p for p in figure.points if all(p.traits.get(k) in values for k, values in self.points.items())]


@functools.cache
def choices(path: Path = paths.DATA / "curves.yaml") -> dict[str, Choice]:
    """{figure: its choice}. UserError for an entry that is none, or a figure that is there twice."""
    chosen: dict[str, Choice] = {}
    for choice in read_model(path, list[Choice]):
        for figure in choice.figures:
            if figure in chosen:
                raise UserError(f"{path}: {figure} is there twice; leave it in one entry")
            chosen[figure] = choice
    return chosen


def file_of(figure: str) -> str:
    """Where the curves of a figure are, below SCALE/."""
    return f"{figure}{SUFFIX}"


def figure_of(file: str) -> str:
    """The figure that a file below SCALE/PAPER/ is of."""
    return file.removesuffix(SUFFIX).removesuffix(".parquet")


def curves_of_point(choice: Choice, point: Point, samples: Path) -> pd.DataFrame:
    """The curves of a point's run, each with at most POINTS points.

    Returns:
        Columns COLUMNS: label of the ``point``, ``kind`` (TIME, DISTRIBUTION) and name of the ``curve``, ``of`` which flow group or flow
        (-1: the bottleneck), ``x`` and ``y``: s and the value; of a distribution the value and the fraction of the samples up to it.
    """
    scenario = point.scenario
    columns = list(
        dict.fromkeys(
            ["time_s", "flow", "group", *(c for _, name in choice.curves for c in columns_of(scenario, name))]
        )
    )
    table = read_with(samples, columns, columns, RUN_AGAIN)
    low, high = scenario.window_s
    parts = []
    for kind, name in choice.curves:
        for of, (times, values) in values_of(scenario, name, table, choice.by).items():
            if kind == TIME:
                begin, end = choice.between_s or (0.0, np.inf)
                drawn = (times >= begin) & (times <= end)
                x, y = thinned(times[drawn], values[drawn], POINTS)
            else:
                x, y = _distribution(values[(times >= low) & (times <= high) & np.isfinite(values)])
            parts.append(pd.DataFrame({"x": _rounded(x), "y": _rounded(y)}).assign(curve=name, kind=kind, of=of))
    return pd.concat(parts, ignore_index=True).assign(point=point.label)[list(COLUMNS)].astype({"of": int})


def curves_of_figure(choice: Choice, figure: Figure, runs: Path) -> pd.DataFrame | None:
    """The curves of a figure's chosen points that were run; None if none was.

    Args:
        runs: the folder that has PAPER/FIGURE/POINT/seed-N.
    """
    parts = []
    for point in choice.points_of(figure):
        samples = runs / figure.id / point.label / f"seed-{SEED}" / SAMPLES
        if samples.exists():
            parts.append(curves_of_point(choice, point, samples))
    return pd.concat(parts, ignore_index=True) if parts else None


def read_curves(path: Path) -> pd.DataFrame:
    """PAPER/FIGURE.curves.parquet. UserError naming file and column if a column is missing."""
    return read_with(path, COLUMNS)


def _distribution(values: Array) -> tuple[Array, Array]:
    """Values and the fraction of the samples up to each: of many samples at POINTS fractions that are equally far apart."""
    if not len(values):
        return values, values
    fractions = np.arange(1, len(values) + 1) / len(values)
    if len(values) > POINTS:
        fractions = np.linspace(fractions[0], 1, POINTS)
    return np.quantile(values, fractions, method="inverted_cdf"), fractions


def _rounded(values: Array) -> Array:
    return np.array([float(f"{value:.{DIGITS}g}") for value in values], dtype=float)


def thinned(times: Array, values: Array, most: int) -> tuple[Array, Array]:
    """At most ``most`` points of a curve: of each stretch the lowest and the highest, so that no peak is lost.

    Args:
        times, values: shape (samples,).
    """
    if len(values) <= most:
        return times, values
    keep: list[int] = []
    for part in np.array_split(np.arange(len(values)), most // 2):
        filled = np.nan_to_num(values[part])
        keep += sorted({int(part[filled.argmin()]), int(part[filled.argmax()])})
    return times[keep], values[keep]
