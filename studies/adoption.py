"""Who would switch? How many of N flows run BBR, and how many CUBIC, when none gains by changing its algorithm.

A Nash equilibrium, as Mishra et al. (IMC 2022, "Are We Heading Towards a BBR-Dominant Internet?") asked of BBRv1 and CUBIC. Every
flow wants goodput. With k BBR flows, b(k) is what one of them gets and c(k) what a CUBIC flow gets; k is an equilibrium if
b(k) >= c(k - 1) (no BBR flow gains by turning to CUBIC) and c(k) >= b(k + 1) (no CUBIC flow gains by turning to BBR).

The tables are data/burst/adoption.csv; ``bbrlab model table adoption`` makes them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bbrlab.models import burst

RATE_MBIT, RTT_MS = 100, 40
DURATION_S, WINDOW_S = 300, (100, 300)
VERSIONS = ("bbr1", "bbr2", "bbr3")
RIVAL = "cubic"


@dataclass(frozen=True)
class Grid:
    """What is computed of a number of flows: every ``step``-th number of BBR flows, at these buffers, with seeds 1 to ``seeds``."""

    step: int
    seeds: int
    buffers_bdp: tuple[float, ...]


GRIDS = {10: Grid(1, 3, (0.5, 1, 2, 4, 8, 16, 32)), 100: Grid(10, 2, (1, 4, 16))}


@dataclass(frozen=True)
class Population:
    """``bbr_flows`` of ``flows`` flows run a version of BBR, the others CUBIC."""

    flows: int
    cca: str
    buffer_bdp: float
    bbr_flows: int


def populations() -> list[Population]:
    """All that are computed."""
    return [
        Population(n, cca, buffer_bdp, k)
        for n, grid in GRIDS.items()
        for cca in VERSIONS
        for buffer_bdp in grid.buffers_bdp
        for k in range(0, n + 1, grid.step)
    ]


def computed(chosen: Iterable[Population]) -> pd.DataFrame:
    """What a flow of each kind gets in each population.

    Returns:
        The populations' fields, bbr_flow_mbit and rival_flow_mbit (goodput of one flow, mean over the flows and the seeds; NaN
        where there is none of the kind), bbr_flow_sd and rival_flow_sd (over the seeds), seeds.
    """
    return pd.DataFrame(_rows(chosen))


def _rows(chosen: Iterable[Population]) -> Iterator[dict[str, float | str]]:
    for p in chosen:
        seeds = GRIDS[p.flows].seeds
        each = np.array([_goodput(p, seed) for seed in range(1, seeds + 1)])
        (bbr, rival), (bbr_sd, rival_sd) = each.mean(axis=0), each.std(axis=0, ddof=1)
        yield {
            **vars(p),
            "bbr_flow_mbit": bbr,
            "rival_flow_mbit": rival,
            "bbr_flow_sd": bbr_sd,
            "rival_flow_sd": rival_sd,
            "seeds": seeds,
        }


def _goodput(p: Population, seed: int) -> tuple[float, float]:
    """Goodput of one BBR flow and of one CUBIC flow; NaN of none."""
    mix = {p.cca: p.bbr_flows, RIVAL: p.flows - p.bbr_flows}
    run = burst.simulate(
        mix, RATE_MBIT, RTT_MS, buffer_bdp=p.buffer_bdp, duration_s=DURATION_S, window_s=WINDOW_S, seed=seed
    )
    means = run.flows.groupby("cca")["goodput_mbit"].mean()
    return float(means.get(p.cca, np.nan)), float(means.get(RIVAL, np.nan))


def equilibria(table: pd.DataFrame) -> pd.DataFrame:
    """The equilibria of each number of flows, version and buffer.

    Args:
        table: computed(), with every population of a group. Between the numbers of BBR flows that were computed, what a flow
            gets is interpolated linearly; beyond the last one that has a flow of its kind, it is as there.

    Returns:
        flows, cca, buffer_bdp, bbr_flows: one row per equilibrium; a group without one has none.
    """
    keys = ["flows", "cca", "buffer_bdp"]
    rows = []
    for _, group in table.groupby(keys, sort=False):
        of = group.iloc[0][keys].to_dict()
        ordered = group.sort_values("bbr_flows")
        rows += [{**of, "bbr_flows": k} for k in _equilibria(int(of["flows"]), ordered)]
    return pd.DataFrame(rows, columns=[*keys, "bbr_flows"])


def _equilibria(flows: int, ordered: pd.DataFrame) -> Iterator[int]:
    at = np.arange(flows + 1, dtype=np.float64)
    some = ordered["bbr_flows"].to_numpy()
    b, c = (_between(at, some, ordered[name].to_numpy()) for name in ("bbr_flow_mbit", "rival_flow_mbit"))
    for k in range(flows + 1):
        bbr_stays = k == 0 or b[k] >= c[k - 1]
        rival_stays = k == flows or c[k] >= b[k + 1]
        if bbr_stays and rival_stays:
            yield k


def _between(at: burst.Floats, some: burst.Floats, values: burst.Floats) -> burst.Floats:
    has_value = ~np.isnan(values)
    return np.interp(at, some[has_value], values[has_value])
