"""The columns that claims read of a figure's points: measured, published, and what the models say."""

from __future__ import annotations

import functools
import math
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.base.tables import published_table
from bbrlab.claims.schema import BURST, FLUID, PREDICTED, PUBLISHED, WARE, Claim, Term
from bbrlab.claims.select import select
from bbrlab.models import predictions, ware
from bbrlab.results.config import CORES, in_checkout, name_in_checkout
from bbrlab.results.figures import Figure
from bbrlab.results.replacement import replacement
from bbrlab.results.schema import check_columns
from bbrlab.scenario.point import Point

# Columns of published tables that have another name among a point's traits; a term's ``join`` names others.
COMMON_NAMES = {"bbr_flows": "flows.0.count", "buffer_packets": "network.buffer.packets"}
JOINED = 1e-5  # how far a row's number may be from a point's, relative
MODELLED_GROUP = 0  # whose share the models speak of
PREDICTION_OF = {FLUID: predictions.FLUID_OWN, BURST: predictions.BURST}  # of PREDICTED: which of its predictions


def has_models(term: Term, figure: Figure) -> bool:
    """Whether the Ware model may be put beside the points of a term."""
    return term.group == MODELLED_GROUP and len(figure.scenario.flows) > 1


def has_prediction(model: str, term: Term, figure: Figure) -> bool:
    """Whether FLUID or BURST may be: the model must know all of the scenario.

    What stands in the place of another algorithm need not be known to it: its claims have no number then.
    """
    return has_models(term, figure) and (
        bool(replacement()) or all(speaks_of(model, p) for p in select(term, figure.points))
    )


def speaks_of(model: str, point: Point) -> bool:
    """Whether WARE, FLUID or BURST describes a point. Claims may compare with WARE at others, too (beside())."""
    if model == WARE:
        return ware.describes(point.scenario)
    return predictions.KINDS[PREDICTION_OF[model]].world.describes(point.scenario)


def beside(name: str, term: Term, chosen: Sequence[Point], results: Path | None = None) -> Array:
    """What stands beside the measured values: shape (points,).

    UserError if a published table has no row, or several, for a point, or a prediction is missing.

    Args:
        name: PUBLISHED, WARE, FLUID or BURST.
        term, chosen: its points.
        results: the folder of results that has the models' predictions.
    """
    if name == PUBLISHED:
        return published(term, chosen)
    if name == WARE:  # whether or not it describes the point: papers put it beside BBRv2 and BBRv3, too
        return np.array([ware.share_of(p.scenario.network, p.scenario.flows[MODELLED_GROUP].count) for p in chosen])
    kind = PREDICTION_OF[name]
    return np.array([
        _predicted_share(name, predictions.prediction_file(kind, term.figure, p, results)) if speaks_of(name, p) else np.nan for p in chosen
    ])  # fmt: skip


class Cells:
    """A column of a published table, which many points are compared with."""

    def __init__(self, column: pd.Series):
        self.column = column
        self.numbers = column.to_numpy(dtype=float) if pd.api.types.is_numeric_dtype(column) else None
        self.texts = column.astype(str).to_numpy(dtype=object)

    def agree(self, wanted: Any) -> Array:
        """Which cells have the value: numbers as same_number() has it, all cells at once."""
        if self.numbers is None or not isinstance(wanted, int | float):
            return np.asarray(self.texts == str(wanted))
        try:
            value = float(wanted)
        except OverflowError:  # an integer that no float holds
            return np.zeros(len(self.numbers), dtype=bool)
        with np.errstate(invalid="ignore", over="ignore"):  # infinities are near nothing else
            near = np.abs(self.numbers - value) <= JOINED * np.maximum(np.abs(self.numbers), abs(value))
        agree: Array = (self.numbers == value) | (near & np.isfinite(self.numbers) & math.isfinite(value))
        return agree


@functools.cache
def _table(name: str) -> dict[str, Cells]:
    return {str(own): Cells(column) for own, column in published_table(name).items()}


def published(term: Term, chosen: Sequence[Point]) -> Array:
    """The published value of each point, shape (points,): of the row that agrees in every column that table and points share.

    Columns that ``rows`` chooses by are not compared with the points. UserError if a point has no such row or several.
    """
    name, column = (term.published or ":").split(":")
    table = _table(name)
    names = COMMON_NAMES | term.join
    keep = np.ones(len(table[column].column), dtype=bool)
    for own, wanted in term.rows.items():
        keep &= table[own].agree(wanted)
    values = []
    for point in chosen:
        traits = point.traits
        match = keep.copy()
        for own, cells in table.items():
            key = names.get(own, own)
            if key in traits and own != column and own not in term.rows:
                match &= cells.agree(traits[key])
        if match.sum() != 1:
            remedy = "choose among them with rows" if match.any() else "leave the point out with where, or add the row"
            raise UserError(f"data/{name}.csv: {match.sum()} rows for point {point.label}, one is needed; {remedy}")
        values.append(float(table[column].column.to_numpy()[match][0]))
    return np.array(values)


@functools.cache
def _predicted_share(model: str, path: Path) -> float:
    table = predictions.read_prediction(path)
    if table is None:
        command = f"snakemake --cores {CORES} -- {shlex.quote(name_in_checkout(path))}"
        raise UserError(
            f"{path}: {predictions.KINDS[PREDICTION_OF[model]].world.model}'s prediction is missing; run: {in_checkout(command)}"
        )
    check_columns(path, table, ["share_of_capacity"])
    return float(table["share_of_capacity"].iloc[0])


def prediction_files(
    claims: Iterable[Claim], figures: Iterable[Figure], results: Path | None = None
) -> dict[Path, tuple[str, Point]]:
    """The models' predictions that claims read at some figures' points: {file: (kind, point)}."""
    by_id = {f.id: f for f in figures}
    files: dict[Path, tuple[str, Point]] = {}
    for claim in claims:
        for name, term in claim.at.items():
            for model in PREDICTED:
                if (f"{name}.{model}" if name else model) in claim.columns and term.figure in by_id:
                    for point in filter(functools.partial(speaks_of, model), select(term, by_id[term.figure].points)):
                        file = predictions.prediction_file(PREDICTION_OF[model], term.figure, point, results)
                        files[file] = PREDICTION_OF[model], point
    return files
