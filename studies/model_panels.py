"""Panels of N BBR flows against loss-based ones: in words, with the models' predictions, and their errors as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from bbrlab.models import predictions
from bbrlab.models.of_paper import models_of
from bbrlab.models.predict import STEP_TOLERANCE
from bbrlab.results.algorithm_table import label_of_cca
from bbrlab.results.best_scale import figures_at_best_scale, table_file
from bbrlab.results.figures import PANEL_KEYS, Figure, figures_at, has_panel
from bbrlab.results.schema import check_columns
from bbrlab.results.shipped import ShownResults
from bbrlab.results.tables import read_figure
from bbrlab.show.panel import Panel, panel_of, rms_of

AVERAGED = (
    "Each error is of each point's mean over the seeds. Claims of `rms` take the same means, less what the seeds' scatter adds "
    "(jackknife), so that theirs are mostly smaller."
)
NEAR = 0.05  # the published means: how far two laboratories are apart
# The models' names on pages, and their columns of Panel.points (with_fluid(), with_burst()).
MODELS = {"Ware": "ware", "fluid (9 s)": "fluid_9s", "fluid (own length)": "fluid_own", "burst": "burst"}


def in_words(panel: Panel) -> str:
    """How many points are near the published means, the farthest one, and how far the Ware model is (Markdown)."""
    points = panel.points.dropna(subset=["residual"])
    if points.empty:
        return f"**{panel.title}.** None of its points was run."
    worst = points.iloc[int(points["residual"].abs().argmax())]
    interval = f" \u00b1 {worst['ci95']:.3f}" if np.isfinite(worst["ci95"]) else ""
    text = (
        f"**{panel.title}.** {int((points['residual'].abs() <= NEAR).sum())} of {len(points)} points are within {NEAR:g} of the "
        f"published mean; the largest difference is {worst['residual']:+.3f} at {worst['bbr_flows']:.0f} BBR flows and "
        f"{worst['buffer_bdp']:.0f} BDP (published {worst['published']:.3f}, measured {worst['measured']:.3f}{interval})."
    )
    off = (points["ware"] - points["measured"]).groupby(points["buffer_bdp"]).mean().dropna()
    sizes = np.abs(off.to_numpy())
    for words, place in (("nearest", int(sizes.argmin())), ("farthest", int(sizes.argmax()))) if len(off) else ():
        text += f" The Ware model is {words} at {off.index[place]:g} BDP ({off.iloc[place]:+.3f} on average)."
    return text


def fluid_figure(figure: str) -> str:
    """The figure whose fluid predictions stand beside a figure: what data/PAPER/models.yaml says, or the figure itself."""
    paper, name = figure.split("/")
    return f"{paper}/{models_of(paper).fluid_of.get(name, name)}"


def with_fluid(panel: Panel, of: Figure, results: Path) -> Panel:
    """The panel with the fluid model's share_of_capacity at each point, from the workflow's results/models.

    Args:
        of: the figure whose predictions to take (fluid_figure()).

    Returns:
        ``points`` with ``fluid_9s``, ``fluid_own`` (NaN where there is no prediction) and ``fluid_step``: the largest change
        of the two when their step is doubled, or halved where twice is more than the model takes.
    """
    kinds = (predictions.FLUID_SHORT, predictions.FLUID_OWN)
    columns = {kind: {"share_of_capacity": f"fluid_{kind}", "step_difference": f"step_{kind}"} for kind in kinds}
    points = _with_predictions(panel.points, of, results, columns)
    steps = [f"step_{kind}" for kind in kinds]
    return replace(panel, points=points.assign(fluid_step=points[steps].max(axis=1)).drop(columns=steps))


def with_burst(panel: Panel, figure: Figure, results: Path) -> Panel:
    """The panel with the burst model's share_of_capacity at each point, from the workflow's results/models.

    Returns:
        ``points`` with ``burst`` and ``burst_sd``, its standard deviation over seeds (both NaN where there is no prediction).
    """
    columns = {predictions.BURST: {"share_of_capacity": "burst", "share_sd": "burst_sd"}}
    return replace(panel, points=_with_predictions(panel.points, figure, results, columns))


def _with_predictions(
    points: pd.DataFrame, figure: Figure, results: Path, kinds: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """A panel's points with columns of predictions, NaN where there is none; ``kinds``: {kind: {its column: column here}}."""
    rows = []
    for point in figure.points:
        row = {PANEL_KEYS[key]: value for key, value in point.values.items()}
        for kind, columns in kinds.items():
            path = predictions.prediction_file(kind, figure.id, point, results)
            if (table := predictions.read_prediction(path)) is not None:
                check_columns(path, table, columns)
                row |= {name: table[column].iloc[0] for column, name in columns.items()}
        rows.append(row)
    names = [name for columns in kinds.values() for name in columns.values()]
    predicted = pd.DataFrame(rows, columns=[*PANEL_KEYS.values(), *names]).astype(dict.fromkeys(names, float))
    return points.merge(predicted, on=list(PANEL_KEYS.values()), how="left")


def panels_at(shown: ShownResults) -> list[tuple[Figure, Panel]]:
    """Every panel that was run, with all models beside it."""
    of_scale = {scale: {f.id: f for f in figures_at(scale, [])} for scale in shown.scales}
    panels = []
    for scale, figure in figures_at_best_scale(shown).values():
        if has_panel(figure):
            panel = panel_of(figure, read_figure(table_file(shown, scale, figure.id)))
            other = of_scale[scale].get(fluid_figure(figure.id), figure)
            panels.append((figure, with_burst(with_fluid(panel, other, shown.results), figure, shown.results)))
    return panels


def not_run(panels: Sequence[tuple[Figure, Panel]], shown: ShownResults) -> list[str]:
    """What the panels lack, in words: measurements of figures, predictions at points."""
    with_results = figures_at_best_scale(shown)
    missing = [
        f"measurements of {figure.id}"
        for figure in filter(has_panel, figures_at(shown.scale, []))
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
            **{f"{name} - {what}": rms_of(p[column] - p[what]) for what in against for name, column in MODELS.items()},
            "models at fewer points": ", ".join(
                f"{name}: {n}" for name, column in MODELS.items() if 0 < (n := int(p[column].notna().sum())) < len(p)
            ),
            "fluid moves with the step": int((p["fluid_step"] > STEP_TOLERANCE).sum()),
            "shorter than the paper": panel.scaled,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=None if rows else ["panel"]).set_index("panel")
