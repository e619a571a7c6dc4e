"""Compares a panel's measurements with published values and the Ware model, point by point.

Works for any figure whose published table (data/PAPER/FIGURE.csv) has the columns ``buffer_bdp``, ``bbr_flows`` and
``share_of_capacity``: N BBR flows (group 0) against loss-based ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from bbrlab.base.tables import published_table
from bbrlab.models import ware
from bbrlab.results.figures import PANEL_KEYS, Figure, scenario_files
from bbrlab.results.statistics import rms
from bbrlab.results.tables import point_means
from bbrlab.scenario.load import load_scenario


@dataclass(frozen=True)
class Panel:
    """One figure's comparison."""

    figure: str
    title: str
    # One row per point: buffer_bdp, bbr_flows, measured, ci95, runs, failed, published, published_low, published_high, trials (of
    # the published mean), ware, residual (measured - published)
    points: pd.DataFrame
    bbr: str  # the algorithm of the BBR flows
    scaled: bool  # whether the runs were shorter than the scenario's own, so that published values are no yardstick

    @property
    def rmse(self) -> float:
        """Root mean square of measured - published; NaN if there are no points.

        ``measured`` are means over the seeds; every point weighs the same. (Claims of rms take the same means, with the jackknife's
        mean, which is less what the seeds' scatter adds, and may average over the numbers of flows, as the paper does:
        grouped_rms().)
        """
        return rms_of(self.points["residual"])

    @property
    def ware_rmse(self) -> float:
        """Root mean square of Ware model - measured, by the same average."""
        return rms_of(self.points["ware"] - self.points["measured"])

    @property
    def ware_published_rmse(self) -> float:
        """Root mean square of Ware model - published, over the same points."""
        return rms_of(self.points["ware"] - self.points["published"])


def rms_of(values: pd.Series) -> float:
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
    return Panel(
        figure.id, figure.scenario.figure, points, figure.scenario.flows[0].cca, figure.scenario.duration_s < whole
    )
