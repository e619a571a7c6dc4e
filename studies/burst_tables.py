"""The tables that are computed with the burst model and kept: data/burst/NAME.csv."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.tables import published_table
from bbrlab.results.statistics import over_seeds
from studies import adoption, burst_panels, maps

FOLDER = paths.DATA / "burst"


@dataclass(frozen=True)
class Table:
    """How a table is computed."""

    items: Sequence[Any]
    of: Callable[[Iterable[Any]], pd.DataFrame]
    minutes: float


TABLES = {
    "panels": Table(list(burst_panels.PANELS), burst_panels.panels, 3),
    "parts": Table(list(burst_panels.PARTS), burst_panels.parts, 1),
    **{name: Table(chosen.cells(), maps.computed, 2) for name, chosen in maps.MAPS.items()},
    "adoption": Table(adoption.populations(), adoption.computed, 6),
}


def table_of(name: str) -> Table:
    """How a table is computed. UserError if there is none of this name."""
    if name not in TABLES:
        raise UserError(f"there is no table '{name}' of the burst model; there are {', '.join(TABLES)}")
    return TABLES[name]


def read(name: str) -> pd.DataFrame:
    """A kept table, without its source. UserError if there is none."""
    table_of(name)
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        raise UserError(f"{path}: is not there; run: bbrlab model table {name}")
    return pd.read_csv(path).drop(columns=list(_source(name)))


def _source(name: str) -> dict[str, str]:
    """What every table of data/ says of each row."""
    return {
        "source": f"this package's models (docs/explanation/models.md): bbrlab model table {name}",
        "exactness": "recomputed",
    }


def write(name: str, found: pd.DataFrame, out: Path | None = None) -> Path:
    """A table as a file, whole or not at all; numbers to four decimals. Returns the file."""
    path = out or FOLDER / f"{name}.csv"
    with files.aside(path) as temporary:
        found.assign(**_source(name)).to_csv(temporary, index=False, float_format="%.4f", lineterminator="\n")
    return path


def beside_lab(name: str) -> pd.DataFrame:
    """The cells of a map that the lab ran, drawn at random (maps.drawn_cells()).

    From data/questions/map_cells.csv, which scenarios/questions/map_NAME.yaml gave.

    Returns:
        A row per cell: its fields; ``model`` (the map's share of capacity), ``lab`` (mean over the seeds), ``half``
        (of its 95 % interval), ``seeds``, ``difference`` (model - lab).
    """
    place = list(maps.Cell.__dataclass_fields__)
    runs = published_table("questions/map_cells").query("map == @name")
    lab = over_seeds(runs.groupby(place, sort=False)["share_of_capacity"]).rename(columns={"mean": "lab"})
    model = read(name).rename(columns={"share_of_capacity": "model"})[[*place, "model"]]
    both = model.merge(lab.drop(columns="standard_deviation").reset_index(), on=place, validate="1:1")
    return both.assign(difference=both["model"] - both["lab"])
