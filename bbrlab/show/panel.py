"""Measured against published values and models, point by point and panel by panel.

Works for any figure whose published table (data/PAPER/FIGURE.csv) has the columns ``buffer_bdp``, ``bbr_flows`` and
``share_of_capacity``: N BBR flows (group 0) against loss-based ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from bbrlab.base.tables import published_table
from bbrlab.models import predictions, ware
from bbrlab.models.of_paper import models_of
from bbrlab.models.predict import STEP_TOLERANCE
from bbrlab.results.algorithms import label_of_cca
from bbrlab.results.best_scale import figures_at_best_scale, table_file
from bbrlab.results.figures import PANEL_KEYS, Figure, figures_at, has_panel, scenario_files
from bbrlab.results.schema import check_columns
from bbrlab.results.shipped import ShownResults
from bbrlab.results.statistics import rms
from bbrlab.results.tables import point_means, read_figure
from bbrlab.scenario.load import load_scenario

AVERAGED = (
    "Each error is of each point's mean over the seeds; claims take each seed by itself, so that theirs may be larger."
)
# The models' names on pages, and their columns of Panel.points (with_fluid(), with_burst()).
MODELS = {"Ware": "ware", "fluid (9 s)": "fluid_9s", "fluid (own length)": "fluid_own", "burst": "burst"}


@dataclass(frozen=True)
class Panel:
    """One figure's comparison.

    Attributes:
        figure: its id.
        title: for people.
        points: one row per point: buffer_bdp, bbr_flows, measured, ci95, runs, failed, published, published_low,
            published_high, trials (of the published mean), ware, residual (measured - published).
        scaled: whether the runs were shorter than the scenario's own, so that published values are no yardstick.
    """

    figure: str
    title: str
    points: pd.DataFrame
    scaled: bool

    @property
    def rmse(self) -> float:
        """Root mean square of measured - published; NaN if there are no points.

        ``measured`` are means over the seeds, so that the seeds' own scatter is not in it; every point weighs the same. (Claims
        take the error of each seed, and may average over the numbers of flows, as the paper does: grouped_rms().)
        """
        return _rms(self.points["residual"])

    @property
    def ware_rmse(self) -> float:
        """Root mean square of Ware model - measured, by the same average."""
        return _rms(self.points["ware"] - self.points["measured"])

    @property
    def ware_published_rmse(self) -> float:
        """Root mean square of Ware model - published, over the same points."""
        return _rms(self.points["ware"] - self.points["published"])


def _rms(values: pd.Series) -> float:
    """Root mean square of the values that are there; NaN if none is."""
    return rms(values.dropna().to_numpy(dtype=float))


def panel_of(figure: Figure, runs: pd.DataFrame) -> Panel:
    """Compare a figure's runs (tables.figure_table()) with the published values and the Ware model."""
    bbr = runs[runs["group"] == 0].drop(columns="buffer_bdp").rename(columns=PANEL_KEYS)
    measured = point_means(bbr, list(PANEL_KEYS.values())).rename(columns={"mean": "measured"})
    reference = published_table(figure.id).rename(
        columns={"share_of_capacity": "published", "two_sem_low": "published_low", "two_sem_high": "published_high"}
    )
    columns = [*PANEL_KEYS.values(), "published", "published_low", "published_high", "trials"]
    points = measured.merge(reference[columns], on=list(PANEL_KEYS.values()), how="left")
    network = figure.scenario.network
    points["ware"] = ware.bbr_share(network.rate_mbit, network.mean_rtt_ms, points["buffer_bdp"], points["bbr_flows"])
    points["residual"] = points["measured"] - points["published"]
    whole = load_scenario(scenario_files()[figure.id]).duration_s
    return Panel(figure.id, figure.scenario.figure, points, figure.scenario.duration_s < whole)


def in_words(panel: Panel, near: float = 0.05) -> str:
    """How many points are near the published means, the farthest one, and how far the Ware model is (Markdown).

    Args:
        near: what counts as near; .05 is how far two laboratories are apart.
    """
    points = panel.points.dropna(subset=["residual"])
    if points.empty:
        return f"**{panel.title}.** None of its points was run."
    worst = points.iloc[int(points["residual"].abs().argmax())]
    interval = f" \u00b1 {worst['ci95']:.3f}" if np.isfinite(worst["ci95"]) else ""
    said = (
        f"**{panel.title}.** {int((points['residual'].abs() <= near).sum())} of {len(points)} points are within {near:g} of the "
        f"published mean; the largest difference is {worst['residual']:+.3f} at {worst['bbr_flows']:.0f} BBR flows and "
        f"{worst['buffer_bdp']:.0f} BDP (published {worst['published']:.3f}, measured {worst['measured']:.3f}{interval})."
    )
    off = (points["ware"] - points["measured"]).groupby(points["buffer_bdp"]).mean().dropna()
    sizes = np.abs(off.to_numpy())
    for words, place in (("nearest", int(sizes.argmin())), ("farthest", int(sizes.argmax()))) if len(off) else ():
        said += f" The Ware model is {words} at {off.index[place]:g} BDP ({off.iloc[place]:+.3f} on average)."
    return said


def fluid_figure(figure: str) -> str:
    """The figure whose fluid predictions stand beside a figure: what data/PAPER/models.yaml says, or the figure itself."""
    paper, name = figure.split("/")
    return f"{paper}/{models_of(paper).fluid_of.get(name, name)}"


def with_fluid(panel: Panel, of: Figure, results: Path) -> Panel:
    """The panel with the fluid model's share_of_capacity at each point, from the workflow's results/models.

    Args:
        of: the figure whose predictions to take (fluid_figure()).
        results: the folder ``results``.

    Returns:
        ``points`` with ``fluid_9s``, ``fluid_own`` (NaN where there is no prediction) and ``fluid_step``: the largest change
        of the two when their step is doubled.
    """
    rows = []
    for point in of.points:
        row = {PANEL_KEYS[k]: v for k, v in point.values.items()}
        for kind in (predictions.FLUID_SHORT, predictions.FLUID_OWN):
            path = predictions.prediction_file(kind, of.id, point, results)
            if (table := predictions.read_prediction(path)) is not None:
                check_columns(path, table, ("share_of_capacity", "step_difference"))
                found = table.iloc[0]
                row[f"fluid_{kind}"] = found["share_of_capacity"]
                row["fluid_step"] = max(row.get("fluid_step", 0.0), found["step_difference"])
        rows.append(row)
    table = pd.DataFrame(rows, columns=[*PANEL_KEYS.values(), "fluid_9s", "fluid_own", "fluid_step"])
    return replace(panel, points=panel.points.merge(table, on=list(PANEL_KEYS.values()), how="left"))


def with_burst(panel: Panel, figure: Figure, results: Path) -> Panel:
    """The panel with the burst model's share_of_capacity at each point, from the workflow's results/models.

    Args:
        figure: the panel's.
        results: the folder ``results``.

    Returns:
        ``points`` with ``burst`` and ``burst_sd``, its standard deviation over seeds (both NaN where there is no prediction).
    """
    rows = []
    for point in figure.points:
        path = predictions.prediction_file(predictions.BURST, figure.id, point, results)
        if (table := predictions.read_prediction(path)) is not None:
            check_columns(path, table, ("share_of_capacity", "share_sd"))
            found = table.iloc[0]
            keys = {PANEL_KEYS[k]: v for k, v in point.values.items()}
            rows.append({**keys, "burst": found["share_of_capacity"], "burst_sd": found["share_sd"]})
    table = pd.DataFrame(rows, columns=[*PANEL_KEYS.values(), "burst", "burst_sd"]).astype(float)
    return replace(panel, points=panel.points.merge(table, on=list(PANEL_KEYS.values()), how="left"))


def panels_at(which: ShownResults) -> list[tuple[Figure, Panel]]:
    """Every panel that was run, with all models beside it.

    Args:
        which: whose results, and of which scale.
    """
    of_scale = {scale: {f.id: f for f in figures_at(scale, [])} for scale in which.scales}
    panels = []
    for scale, figure in figures_at_best_scale(which).values():
        if has_panel(figure):
            panel = panel_of(figure, read_figure(table_file(which, scale, figure.id)))
            other = of_scale[scale].get(fluid_figure(figure.id), figure)
            panels.append((figure, with_burst(with_fluid(panel, other, which.results), figure, which.results)))
    return panels


def not_run(panels: Sequence[tuple[Figure, Panel]], which: ShownResults) -> list[str]:
    """What the panels lack, in words: measurements of figures, predictions at points.

    Args:
        panels: panels_at() of these results.
    """
    with_results = figures_at_best_scale(which)
    missing = [
        f"measurements of {figure.id}"
        for figure in filter(has_panel, figures_at(which.scale, []))
        if figure.id not in with_results
    ]
    for figure, panel in panels:
        for model, columns in {"fluid": ["fluid_9s", "fluid_own"], "burst": ["burst"]}.items():
            if lacking := int(panel.points[columns].isna().any(axis=1).sum()):
                missing.append(f"the {model} model at {lacking} of {len(panel.points)} points of {figure.id}")
    return missing


def panel_rows(panels: Sequence[tuple[Figure, Panel]], against: Sequence[str] = ("measured",)) -> pd.DataFrame:
    """How far published values and the models are from the measurements: a row for each panel.

    Args:
        panels: panels_at().
        against: what each model is compared with: ``measured``, ``published``.

    Returns:
        Indexed by ``panel``; columns ``BBR``, ``against``, ``points``, one root mean square difference for each comparison
        (NaN without a value), ``models at fewer points``: those that have a prediction for some of them only, with how many,
        ``fluid moves with the step``: the points at which it does by more than STEP_TOLERANCE (of
        those that have a prediction), ``shorter than the paper``.
    """
    rows = []
    for figure, panel in panels:
        p = panel.points
        first, second = (label_of_cca(flow.cca) for flow in figure.scenario.flows)
        rows.append({
            "panel": panel.title,
            "BBR": first,
            "against": second,
            "points": len(p),
            "measured - published": panel.rmse,
            **{f"{name} - {what}": _rms(p[column] - p[what]) for what in against for name, column in MODELS.items()},
            "models at fewer points": ", ".join(
                f"{name}: {n}" for name, column in MODELS.items() if 0 < (n := int(p[column].notna().sum())) < len(p)
            ),
            "fluid moves with the step": int((p["fluid_step"] > STEP_TOLERANCE).sum()),
            "shorter than the paper": panel.scaled,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=None if rows else ["panel"]).set_index("panel")
