"""The number of seeds of each point: the figure's trials, then more if claims need them, in rounds.

A point that draws nothing (draws_nothing()) has two seeds as long as both measure the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field, ValidationError

from bbrlab.base import files
from bbrlab.base.errors import DamagedFile
from bbrlab.base.strict import Strict, first_problem
from bbrlab.measure.metrics import METRICS
from bbrlab.results.algorithm_table import draws_nothing
from bbrlab.results.figures import Figure

ROUNDS = 3  # the first with the figure's trials, and two in which a point may get more
ANEW = "remove it if it is there; the workflow writes it anew"


class _Seeds(Strict):
    """A file of seeds."""

    seeds: dict[str, Annotated[int, Field(ge=1)]]


def read_seeds(path: Path) -> dict[str, int]:
    """{point label: number of seeds} of a file of write_seeds(). DamagedFile if it is not one."""
    try:
        return _Seeds.model_validate(files.read_json(path, ANEW)).seeds
    except ValidationError as error:
        raise DamagedFile(path, first_problem(error), ANEW) from None


def write_seeds(path: Path, seeds: dict[str, int]) -> None:
    """Write {point label: number of seeds}, whole or not at all."""
    files.write_json(path, {"seeds": dict(sorted(seeds.items()))})


def seeds_after(trials: Mapping[str, int], rounds: int, file_of: Callable[[int], Path]) -> Path | None:
    """The file with the number of seeds of each point after so many rounds.

    A round that asks for no more seeds than the one before is the last.

    Args:
        trials: {point label: the number of seeds that it begins with}.
        rounds: 1 to ROUNDS.
        file_of: the file of a round from 2 on; may raise Snakemake's exception for a file that is not made yet.

    Returns:
        None if all points still have the seeds that they begin with.
    """
    path, before = None, dict(trials)
    for number in range(2, rounds + 1):
        now = read_seeds(file_of(number))
        if now == before:
            break
        path, before = file_of(number), now
    return path


def identical_points(table: pd.DataFrame) -> set[str]:
    """Labels of the points whose seeds, at least two, measured the same in every column."""
    values = table[[c for c in METRICS if c in table]].to_numpy(dtype=float)
    places = table.groupby(["point", "group"], dropna=False).ngroup()
    _, first, group = np.unique(places, return_index=True, return_inverse=True)
    begin = values[first[group]]
    varies = ((values != begin) & ~(np.isnan(values) & np.isnan(begin))).any(axis=1)
    by_point = table[["point", "seed"]].assign(varies=varies).groupby("point")
    repeated, varying = by_point["seed"].nunique() > 1, by_point["varies"].any()
    return set(repeated.index[repeated & ~varying])


def constant_points(figure: Figure, table: pd.DataFrame) -> set[str]:
    """Labels of the points that draw nothing and measured the same with each seed, so that more seeds would add nothing."""
    return {p.label for p in figure.points if draws_nothing(p.scenario)} & identical_points(table)


def seeds_needed(figure: Figure, table: pd.DataFrame) -> dict[str, int]:
    """{point label: the number of seeds that it must have}: the figure's trials, or trials_of() for a constant point."""
    constant = constant_points(figure, table)
    return {p.label: figure.trials_of(p) if p.label in constant else figure.trials for p in figure.points}
