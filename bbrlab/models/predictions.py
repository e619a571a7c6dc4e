"""The models' predictions of a campaign's points, as files: results/models/PAPER/FIGURE/POINT/KIND.parquet."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bbrlab.base import files, paths
from bbrlab.base.tables import read_table
from bbrlab.models import burst_scenario, fluid, predict
from bbrlab.models.burst_versions import LETTER
from bbrlab.models.world import World
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Scenario


@dataclass(frozen=True)
class Kind:
    """A kind of predictions: what its model describes, and its table of some points."""

    world: World
    of_points: Callable[[list[Point]], pd.DataFrame]


SHORT_S = 9  # as long as the fluid model's published curves
# Of the fluid model. As long as the experiment it takes five times the step: what that changes stands beside the result
# (step_difference).
SHORT_STEP_MS, OWN_STEP_MS = 0.01, 0.05
BURST_SEEDS = 3
FLUID_SHORT, FLUID_OWN, BURST = "9s", "own", "burst"
KINDS = {
    FLUID_SHORT: Kind(predict.WORLD, lambda points: predict.predictions_of(points, SHORT_S, SHORT_STEP_MS, fluid.ALIGNED)),
    FLUID_OWN: Kind(predict.WORLD, lambda points: predict.predictions_of(points, None, OWN_STEP_MS, fluid.ALIGNED)),
    BURST: Kind(burst_scenario.WORLD, lambda points: burst_scenario.predictions_of(points, BURST_SEEDS, LETTER)),
}  # fmt: skip


def prediction_file(kind: str, figure: str, point: Point, results: Path | None = None) -> Path:
    """The path of a prediction, one of KINDS, of a figure's point."""
    return (results or paths.results_folder()) / "models" / figure / point.label / f"{kind}.parquet"


def files_of(figure: str, scenario: Scenario, points: Iterable[Point], results: Path | None = None) -> list[Path]:
    """The prediction files of a figure's points, of every kind that describes its scenario."""
    kinds = [name for name, kind in KINDS.items() if kind.world.describes(scenario)]
    return [prediction_file(name, figure, point, results) for point in points for name in kinds]


def steps_of(kind: str, scenario: Scenario) -> float:
    """The number of time steps of the fluid model for a prediction; 0 for other models."""
    return {FLUID_SHORT: SHORT_S / SHORT_STEP_MS, FLUID_OWN: scenario.duration_s / OWN_STEP_MS}.get(kind, 0.0) * 1e3


def write_prediction(kind: str, point: Point, out: Path) -> None:
    """A point's prediction as a Parquet file of one row, whole or not at all. UserError if the model does not describe the point."""
    table = KINDS[kind].of_points([point])
    with files.aside(out) as temporary, open(temporary, "wb") as file:
        table.to_parquet(file, index=False)


# Below SCALE/ of shipped results: all of them in one file, with columns PLACE; a kind's own columns are empty for others.
PACKED = "predictions.parquet"


def packed(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The content of PACKED, the same whatever order the predictions are given in.

    Args:
        parts: tables with the columns PLACE; of two predictions of one place the later one counts.

    Returns:
        Rows in the order of their places; PLACE first, then the other columns by name, numbers as floats.
    """
    given = [part for part in parts if len(part)]
    if not given:
        return pd.DataFrame(columns=list(PLACE), dtype=str)
    together = pd.concat(given, ignore_index=True).drop_duplicates(list(PLACE), keep="last")
    others = sorted(set(together.columns) - set(PLACE))
    numbers = [
        c for c in others if pd.api.types.is_numeric_dtype(together[c]) and not pd.api.types.is_bool_dtype(together[c])
    ]
    ordered = together[[*PLACE, *others]].astype(dict.fromkeys(numbers, float))
    return ordered.sort_values(list(PLACE), kind="stable", ignore_index=True)


PLACE = ("figure", "point", "kind")


def read_prediction(path: Path) -> pd.DataFrame | None:
    """A prediction, of one row; None if there is none.

    Args:
        path: prediction_file(); in shipped results it stands for its row of a PACKED file.
    """
    if path.exists():
        return read_table(path)
    point = path.parent
    return _packed(point.parents[3]).get((f"{point.parent.parent.name}/{point.parent.name}", point.name, path.stem))


@functools.cache
def _packed(results: Path) -> dict[tuple[str, str, str], pd.DataFrame]:
    """{figure, point, kind: prediction} of a folder's PACKED files."""
    by_place = {}
    for file in sorted(results.glob(f"[!.]*/{PACKED}")):
        for place, rows in read_table(file).groupby(list(PLACE)):
            figure, point, kind = map(str, place)
            by_place[figure, point, kind] = rows.drop(columns=list(PLACE))
    return by_place
