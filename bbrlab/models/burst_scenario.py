"""Predictions of the burst model for a scenario of experiments, point by point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.models import burst_versions
from bbrlab.models.world import World
from bbrlab.scenario.draws import draw_rtts
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Scenario

if TYPE_CHECKING:
    from bbrlab.models import burst

WORLD = World("the burst model", ccas=tuple(burst_versions.CCAS), pacing=("internal",))


@dataclass(frozen=True)
class Prediction:
    """The burst model of one point, over several seeds."""

    runs: list[burst.Run]  # one per seed
    shares: burst.Floats  # goodput over capacity, shape (seeds, flow groups)

    @property
    def means(self) -> burst.Floats:
        """Of each group, over the seeds."""
        return np.asarray(self.shares.mean(axis=0))

    @property
    def spreads(self) -> burst.Floats:
        """Standard deviation of each group over the seeds; NaN of one seed."""
        if len(self.shares) < 2:
            return np.full(self.shares.shape[1], math.nan)
        return np.asarray(self.shares.std(axis=0, ddof=1))


def predict(
    scenario: Scenario,
    seeds: int = 3,
    reading: str | burst_versions.Reading = burst_versions.LETTER,
    duration_s: float | None = None,
) -> Prediction:
    """Simulate a scenario with seeds 1 to ``seeds``.

    UserError naming the field, if the model does not speak of such a scenario, or refuses an argument.

    Args:
        reading: of the drafts of BBRv2 and BBRv3 (burst_versions.READINGS).
        duration_s: default: the scenario's own, with its window; else the means are over the last 40 %.
    """
    from bbrlab.models import burst  # only here: numba takes half a second to import

    WORLD.check(scenario)
    if isinstance(seeds, bool) or not 1 <= seeds <= 1000:
        raise UserError(f"seeds: must be a whole number from 1 to 1000, found {seeds!r}")
    runs = [burst.simulate(seed=seed, reading=reading, **_arguments(scenario, seed, duration_s))
            for seed in range(1, seeds + 1)]  # fmt: skip
    return Prediction(runs, np.array([_group_shares(scenario, run) for run in runs]))


def _arguments(scenario: Scenario, seed: int, duration_s: float | None) -> dict[str, Any]:
    network = scenario.network
    whole = duration_s is None
    return {
        "flows": [flow.cca for flow in scenario.flows for _ in range(flow.count)],
        "rate_mbit": network.rate_mbit,
        "rtt_ms": [rtt for group in draw_rtts(scenario, seed) for rtt in group],
        "buffer_bytes": network.buffer_bytes,
        "duration_s": scenario.duration_s if duration_s is None else duration_s,
        "window_s": (scenario.window_s[0], scenario.window_s[1]) if whole else None,
        "start_s": [flow.start_s for flow in scenario.flows for _ in range(flow.count)],
        "segments": scenario.hosts.segmentation == "nic",
    }


def _group_shares(scenario: Scenario, run: burst.Run) -> list[float]:
    shares, first = [], 0
    each = run.flows["share"].to_numpy()
    for flow in scenario.flows:
        shares.append(float(each[first : first + flow.count].sum()))
        first += flow.count
    return shares


def predictions_of(points: Sequence[Point], seeds: int, reading: str) -> pd.DataFrame:
    """Predictions of several points: their swept values, share_of_capacity and share_sd (group 0), jain_index, loss,
    occupancy, rtt_p50_ms, rtt_p95_ms (means over the seeds), seeds, reading."""
    rows = []
    for point in points:
        p = predict(point.scenario, seeds, reading)
        means = {
            "jain_index": [r.jain_index for r in p.runs], "loss": [r.loss for r in p.runs],
            "occupancy": [r.occupancy for r in p.runs], "rtt_p50_ms": [r.rtt_ms(50) for r in p.runs],
            "rtt_p95_ms": [r.rtt_ms(95) for r in p.runs],
        }  # fmt: skip
        rows.append({
            **point.values, "share_of_capacity": p.means[0], "share_sd": p.spreads[0],
            **{k: float(np.mean(v)) for k, v in means.items()},
            "seeds": seeds, "reading": reading,
        })  # fmt: skip
    return pd.DataFrame(rows)
