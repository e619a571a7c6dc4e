"""How many seeds each point of a figure has: the figure's trials, then more where claims need them, in rounds.

A point that draws nothing (chance.py) has two as long as both measure the same: a third would say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field, ValidationError

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.strict import Strict
from bbrlab.measure.schema import METRICS
from bbrlab.results.algorithms import draws_nothing
from bbrlab.results.figures import Figure

ROUNDS = 3  # the first, with the figure's trials, and two looks after which a point may get more


class _Seeds(Strict):
    """A file of seeds."""

    seeds: dict[str, Annotated[int, Field(ge=1)]]


def read_seeds(path: Path) -> dict[str, int]:
    """{point label: number of seeds} of a file of write_seeds(). UserError if it is not one."""
    try:
        return _Seeds.model_validate_json(path.read_text(encoding="utf-8")).seeds
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; `bbrlab seeds` writes it") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(
            f"{path}: {'.'.join(map(str, first['loc'])) or 'content'}: {first['msg']}; remove it, the workflow writes it anew"
        ) from None


def write_seeds(path: Path, seeds: dict[str, int]) -> None:
    """Write {point label: number of seeds}, whole or not at all."""
    files.write_json(path, {"seeds": dict(sorted(seeds.items()))})


def settled(trials: Mapping[str, int], rounds: int, file_of: Callable[[int], Path]) -> Path | None:
    """The file that says how many seeds each point of a figure has when so many rounds are over.

    A round that asks for no more than the one before it is the last.

    Args:
        trials: {point label: how many it begins with}.
        rounds: 1 to ROUNDS.
        file_of: the file of a round from 2 on; may raise what makes the workflow come back when it has it.

    Returns:
        None as long as it is what each begins with.
    """
    path, before = None, dict(trials)
    for number in range(2, rounds + 1):
        now = read_seeds(file_of(number))
        if now == before:
            break
        path, before = file_of(number), now
    return path


def unchanged(table: pd.DataFrame) -> set[str]:
    """Labels of the points of a figure's table whose seeds, two at least, measured the same in every column."""
    values = table[[c for c in METRICS if c in table]].to_numpy(dtype=float)
    places = table.groupby(["point", "group"], dropna=False).ngroup()
    _, first, which = np.unique(places, return_index=True, return_inverse=True)
    begin = values[first[which]]
    varies = ((values != begin) & ~(np.isnan(values) & np.isnan(begin))).any(axis=1)
    by_point = table.assign(varies=varies).groupby("point")
    repeated, varying = by_point["seed"].nunique() > 1, by_point["varies"].any()
    return set(repeated.index[repeated & ~varying])


def still(figure: Figure, table: pd.DataFrame) -> set[str]:
    """Labels of the points of a figure that draw nothing and measured the same with each seed: more seeds would say nothing."""
    return {p.label for p in figure.points if draws_nothing(p.scenario)} & unchanged(table)


def least_seeds(figure: Figure, table: pd.DataFrame) -> dict[str, int]:
    """{point label: how many seeds it must have}: the figure's trials, or what it begins with if it is still()."""
    enough = still(figure, table)
    return {p.label: figure.trials_of(p) if p.label in enough else figure.trials for p in figure.points}
