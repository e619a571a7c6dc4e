"""Maps: the burst model's share over buffer and flows, and over rate and RTT, where the lab could not run every cell.

The tables are data/burst/MAP.csv; ``bbrlab model table MAP`` makes them again. The cells that the lab ran
beside them were drawn at random (drawn_cells()).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bbrlab.models import burst


@dataclass(frozen=True)
class Cell:
    """A point of a map: ``flows`` flows of a version of BBR against one loss-based flow."""

    cca: str
    rival: str
    rate_mbit: float
    rtt_ms: float
    flows: int
    buffer_bdp: float


@dataclass(frozen=True)
class Map:
    """What is on a map's axes; every cell has one value of each."""

    ccas: tuple[str, ...]
    rivals: tuple[str, ...]
    rates_mbit: tuple[float, ...]
    rtts_ms: tuple[float, ...]
    flows: tuple[int, ...]
    buffers_bdp: tuple[float, ...]

    def cells(self) -> list[Cell]:
        """All cells, the last axis fastest."""
        axes = (self.ccas, self.rivals, self.rates_mbit, self.rtts_ms, self.flows, self.buffers_bdp)
        return list(itertools.starmap(Cell, itertools.product(*axes)))


VERSIONS = ("bbr1", "bbr2", "bbr3")
SEEDS = 2
MAPS = {
    "buffer_flows": Map(
        VERSIONS, ("cubic", "reno"), (10,), (40,), (1, 2, 3, 4, 6, 8, 12, 16, 24, 32),
        (0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.7, 8, 11, 16, 23, 32),
    ),
    "rate_rtt": Map(VERSIONS, ("cubic",), (5, 10, 20, 50, 100), (10, 20, 40, 80, 160, 320), (1,), (2,)),
}  # fmt: skip


def computed(cells: Iterable[Cell]) -> pd.DataFrame:
    """The model's share of each cell's BBR flows, as published shares are taken (burst.share()).

    Returns:
        The cells' fields, share_of_capacity (mean over seeds 1 to SEEDS), share_sd, seeds.
    """
    return pd.DataFrame(_rows(cells))


def _rows(cells: Iterable[Cell]) -> Iterator[dict[str, float | str]]:
    for cell in cells:
        shares = burst.shares(
            cell.cca, cell.flows, cell.rival, cell.rate_mbit, cell.rtt_ms, cell.buffer_bdp, seeds=SEEDS
        )
        spread = float(shares.std(ddof=1))
        yield {**vars(cell), "share_of_capacity": float(shares.mean()), "share_sd": spread, "seeds": SEEDS}


def drawn_cells(name: str, count: int) -> list[Cell]:
    """Cells of a map at random, without repetition: the first ``count`` of one order that never changes."""
    cells = MAPS[name].cells()
    order = np.random.default_rng(list(name.encode())).permutation(len(cells))
    return [cells[i] for i in order[:count]]
