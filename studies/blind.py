"""What the lab predicted of published data before its authors knew them (data/blind), over what was published."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from bbrlab.base.strict import Strict, read_model
from bbrlab.measure.metrics import label_of
from bbrlab.results.algorithm_table import COLOURS, OTHER_COLOURS, label_of_cca
from bbrlab.results.statistics import rms

COLUMNS = 2
Pair = Annotated[list[float], Field(min_length=2, max_length=2)]


class Note(Strict):
    """Words at a place of a panel: [published, predicted]."""

    text: str
    at: Pair


class BlindPanel(Strict):
    """An entry of data/blind/panels.yaml, which says what its fields are."""

    table: str
    title: str
    by: str
    label: str = "{}"
    names: dict[str, str] = {}
    where: dict[str, str] = {}
    scale: Literal["linear", "log"] = "linear"
    limits: Pair | None = None
    note: Note | None = None


def blind_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables of blind comparisons by name; columns ``metric``, ``here``, ``published`` and the conditions."""
    return {path.stem: pd.read_csv(path, dtype={"kernel": str}) for path in sorted(folder.glob("*.csv"))}


def agreement(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """How far prediction and publication are apart, a row per table and metric.

    Returns:
        Columns ``data``, ``metric``, ``values`` (how many), ``rms`` and ``largest`` (of here - published, in the metric's
        unit), ``median_percent`` (of the absolute difference over the published value).
    """
    rows = []
    for name, table in tables.items():
        if "published" not in table:  # of unseen panels only the distance is known
            continue
        for metric, part in table.dropna(subset=["here", "published"]).groupby("metric", sort=False):
            difference = (part["here"] - part["published"]).to_numpy(dtype=float)
            published = part["published"].to_numpy(dtype=float)
            nonzero = published != 0
            relative = np.abs(difference[nonzero] / published[nonzero])
            rows.append(
                {
                    "data": name,
                    "metric": metric,
                    "values": len(part),
                    "rms": rms(difference),
                    "largest": float(np.abs(difference).max()),
                    "median_percent": 100 * float(np.median(relative)) if len(relative) else float("nan"),
                }
            )
    return pd.DataFrame(rows)


def agreement_table(comparisons: pd.DataFrame) -> Any:
    """agreement() as a page shows it: the metrics' names, and columns that say what they are."""
    shown = comparisons.assign(metric=[label_of(metric) for metric in comparisons["metric"]]).rename(
        columns={
            "data": "data/blind/",
            "rms": "root mean square of here - published",
            "largest": "largest difference",
            "median_percent": "median difference (%)",
        }
    )
    return shown.style.hide(axis="index").format(_digits, subset=list(shown.columns[3:]), na_rep="–")


def _digits(value: Any) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def blind_panels(folder: Path) -> list[BlindPanel]:
    """How they are drawn: panels.yaml of the folder. UserError for what is wrong there."""
    return read_model(folder / "panels.yaml", list[BlindPanel])


def blind_comparisons(tables: dict[str, pd.DataFrame], panels: Sequence[BlindPanel]) -> Figure:
    """A dot for each value, in panels: what the lab predicted over what was published; on the diagonal they agree."""
    rows = -(-len(panels) // COLUMNS)
    figure, grid = plt.subplots(rows, COLUMNS, figsize=(9.5, 4.3 * rows), squeeze=False, layout="constrained")
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw(axes, panel, tables[panel.table])
    return figure


def _draw(axes: Axes, panel: BlindPanel, table: pd.DataFrame) -> None:
    for column, wanted in panel.where.items():
        table = table[table[column] == wanted]
    others = itertools.cycle(OTHER_COLOURS)
    for value, part in table.groupby(panel.by):
        if panel.names and value not in panel.names:
            continue
        name = panel.names.get(str(value), f"{value:g}" if isinstance(value, float) else label_of_cca(str(value)))
        axes.plot(
            part["published"],
            part["here"],
            "o",
            ms=5,
            alpha=0.8,
            label=panel.label.format(name),
            color=COLOURS.get(str(value)) or next(others),
        )
    both = table[["published", "here"]].to_numpy(dtype=float)
    low, high = panel.limits or (0 if panel.scale == "linear" else 0.8 * np.nanmin(both), 1.1 * np.nanmax(both))
    axes.plot([low, high], [low, high], color="0.6", lw=1, zorder=0)
    axes.set(
        xlim=(low, high),
        ylim=(low, high),
        xscale=panel.scale,
        yscale=panel.scale,
        title=panel.title,
        xlabel="published",
        ylabel="predicted",
    )
    if panel.note:
        axes.text(panel.note.at[0], panel.note.at[1], panel.note.text, fontsize=8, color="0.3")
    axes.legend(fontsize=8)
