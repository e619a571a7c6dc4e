"""Measured against published values and models, point by point and panel by panel.

Works for any figure whose published table (data/PAPER/FIGURE.csv) has the columns ``buffer_bdp``, ``bbr_flows`` and
``share_of_capacity``: N BBR flows (group 0) against loss-based ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from bbrlab import collect, paths
from bbrlab.campaign import Figure
from bbrlab.models import ware

KEYS = {"network.buffer.bdp": "buffer_bdp", "flows.0.count": "bbr_flows"}


@dataclass(frozen=True)
class Yardstick:
    """How a figure is judged.

    Attributes:
        rmse: the largest RMSE of measured - published that counts as reproduced; None: the figure is not judged.
        buffer_bdp_max, bbr_flows_max: the points that are judged; beyond, the published trials differ among themselves.
        why: reason, for people.
    """

    rmse: float | None
    buffer_bdp_max: float = float("inf")
    bbr_flows_max: float = float("inf")
    why: str = "two laboratories agree to some .03 (docs/trust.md)"


NOISY = "deeper buffers are left out: there the published trials differ by up to .13 among themselves"
YARDSTICKS = {
    "sarpkaya2025/fig3a": Yardstick(0.045, 16, why=f"BBRv2 from the drafts against Google's; {NOISY}"),
    "sarpkaya2025/fig3c": Yardstick(None, why="the published trials against Reno differ too much among themselves"),
    "sarpkaya2025/fig5a": Yardstick(0.035, 16, why=f"BBRv3 from the drafts against Google's; {NOISY}"),
    "sarpkaya2025/fig5c": Yardstick(0.05, 16, 4, why=f"BBRv3 from the drafts against Google's; {NOISY}"),
}
DEFAULT_YARDSTICK = Yardstick(0.03)


@dataclass(frozen=True)
class Panel:
    """One figure's comparison.

    Attributes:
        figure: its id.
        title: for people.
        points: one row per point: buffer_bdp, bbr_flows, measured, ci95, runs, failed, published, published_low,
            published_high, ware, residual (measured - published).
        scaled: whether the runs were shorter than the paper's, so that published values are no yardstick.
    """

    figure: str
    title: str
    points: pd.DataFrame
    scaled: bool
    yardstick: Yardstick = DEFAULT_YARDSTICK

    @property
    def rmse(self) -> float:
        """Root mean square of measured - published over all points; NaN if there are none."""
        return rms(self.points["residual"])

    @property
    def judged(self) -> pd.DataFrame:
        """The points that the figure is judged by."""
        p, y = self.points, self.yardstick
        return p[(p["buffer_bdp"] <= y.buffer_bdp_max) & (p["bbr_flows"] <= y.bbr_flows_max)]

    @property
    def judged_rmse(self) -> float:
        """Root mean square of measured - published over the judged points."""
        return rms(self.judged["residual"])

    @property
    def ware_rmse(self) -> float:
        """Root mean square of Ware model - measured."""
        return rms(self.points["ware"] - self.points["measured"])

    @property
    def ware_published_rmse(self) -> float:
        """Root mean square of Ware model - published, over the same points."""
        return rms(self.points["ware"] - self.points["published"])


def rms(values: pd.Series) -> float:
    """Root mean square of the values that are there; NaN if none is."""
    present = values.dropna().to_numpy(dtype=float)
    return float(np.sqrt((present**2).mean())) if len(present) else float("nan")


def published(figure: str) -> pd.DataFrame:
    """The published table of a figure. FileNotFoundError if there is none."""
    return pd.read_csv(paths.DATA / f"{figure}.csv")


def panel(figure: Figure, runs: pd.DataFrame) -> Panel:
    """Compare a figure's runs (collect.table()) with the published values and the Ware model."""
    bbr = runs[runs["group"] == 0].rename(columns=KEYS)
    measured = collect.points(bbr, list(KEYS.values())).rename(columns={"mean": "measured"})
    reference = published(figure.id).rename(
        columns={"share_of_capacity": "published", "two_sem_low": "published_low", "two_sem_high": "published_high"}
    )
    columns = [*KEYS.values(), "published", "published_low", "published_high"]
    points = measured.merge(reference[columns], on=list(KEYS.values()), how="left")
    network = figure.scenario.network
    points["ware"] = ware.bbr_share(network.rate_mbit, network.mean_rtt_ms, points["buffer_bdp"], points["bbr_flows"])
    points["residual"] = points["measured"] - points["published"]
    scaled = figure.scenario.duration_s < PUBLISHED_DURATION_S.get(figure.id, figure.scenario.duration_s)
    return Panel(figure.id, figure.scenario.figure, points, scaled, YARDSTICKS.get(figure.id, DEFAULT_YARDSTICK))


# There is no fluid model of BBRv3; its panels are put beside BBRv2's.
FLUID_OF = {"sarpkaya2025/fig5a": "sarpkaya2025/fig3a", "sarpkaya2025/fig5c": "sarpkaya2025/fig3c"}


def with_fluid(panel: Panel, of: Figure, results: Path) -> Panel:
    """The panel with the fluid model's share_of_capacity at each point, from the workflow's results/models.

    Args:
        of: the figure whose predictions to take (the panel's own, or FLUID_OF's).
        results: the folder ``results``.

    Returns:
        ``points`` with ``fluid_9s``, ``fluid_own`` (NaN where there is no prediction) and ``fluid_step``: the largest change
        of the two when their step is doubled.
    """
    rows = []
    for point in of.points:
        row = {KEYS[k]: v for k, v in point.values.items()}
        folder = results / "models" / of.id / point.label
        for length in ("9s", "own"):
            path = folder / f"{length}.parquet"
            if path.exists():
                found = pd.read_parquet(path).iloc[0]
                row[f"fluid_{length}"] = found["share_of_capacity"]
                row["fluid_step"] = max(row.get("fluid_step", 0.0), found["step_difference"])
        rows.append(row)
    table = pd.DataFrame(rows, columns=[*KEYS.values(), "fluid_9s", "fluid_own", "fluid_step"])
    return replace(panel, points=panel.points.merge(table, on=list(KEYS.values()), how="left"))


# Seconds of the paper's own runs; a shorter run (scale smoke) is a transient that published values do not describe.
PUBLISHED_DURATION_S = {f"sarpkaya2025/fig{panel}": 1000.0 for panel in ("2a", "2c", "3a", "3c", "5a", "5c")}
