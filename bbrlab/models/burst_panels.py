"""The burst model over the published panels of N BBR flows against one other, and what its parts do there.

The tables are data/burst/panels.csv and parts.csv; ``bbrlab model table`` makes them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from bbrlab.base.tables import published_table
from bbrlab.models import burst, ware
from bbrlab.models.burst import Version

PAPER = "sarpkaya2025"
# tc counts a kilobyte as 1024 bytes; the testbed's buffers are written in kilobytes at 10 Mbit/s.
KILOBYTE = 1.024
SEEDS = 2


@dataclass(frozen=True)
class Panel:
    """A published panel: 42 cells of N flows of ``cca`` against one ``rival``."""

    cca: str
    rival: str
    rate_mbit: float
    rtt_ms: float
    buffer_scale: float
    """What the published multiples of the BDP are to be multiplied by."""


PANELS = {
    "fig2a": Panel("bbr1", "cubic", 10, 40, KILOBYTE),
    "fig2c": Panel("bbr1", "reno", 10, 40, KILOBYTE),
    "fig2b": Panel("bbr1", "cubic", 50, 30, 1.0),
    "fig3a": Panel("bbr2", "cubic", 10, 40, KILOBYTE),
    "fig3c": Panel("bbr2", "reno", 10, 40, KILOBYTE),
    "fig5a": Panel("bbr3", "cubic", 10, 40, KILOBYTE),
    "fig5c": Panel("bbr3", "reno", 10, 40, KILOBYTE),
}
# Readings of the drafts (burst.READINGS); BBRv1 has none.
READINGS = {"bbr1": ("draft",), "bbr2": tuple(burst.READINGS), "bbr3": tuple(burst.READINGS)}
# What can be left out of BBRv3, for parts(): the fields of burst.Version that do it.
PARTS = {
    "inflight_hi's growth in UP": {"growth": 0.0},
    "ProbeRTT": {"probe_rtt_interval_s": float("inf")},
    "inflight_hi's response to loss": {"loss_threshold": float("inf")},
    "headroom": {"headroom": 0.0},
    "the precautionary probe": {"precautionary": False},
    "the bound on rounds between probes": {"reno_rounds": float("inf")},
    "ProbeRTT's window of .5 BDP (4 packets in its place)": {"probe_rtt_gain": 0.0},
    "extra_acked": {"extra_acked": 0.0},
    "a window of 2.25 BDP in UP (2 in its place)": {"up_cwnd_gain": 2.0},
    "DOWN's gain of .9 (.75 in its place)": {"down_pacing_gain": 0.75},
}
PARTS_PANEL, PARTS_BUFFER_BDP = "fig5a", 16


def cells(name: str, up_to_bdp: float = float("inf")) -> pd.DataFrame:
    """The published cells of a panel: columns ``buffer_bdp``, ``bbr_flows``, ``published`` (share of capacity)."""
    table = published_table(f"{PAPER}/{name}").rename(columns={"share_of_capacity": "published"})
    return table.loc[table["buffer_bdp"] <= up_to_bdp, ["buffer_bdp", "bbr_flows", "published"]].reset_index(drop=True)


def modelled(
    name: str, chosen: pd.DataFrame, reading: str, seeds: int = SEEDS, version: Version | None = None
) -> burst.Floats:
    """The model's mean share at some of a panel's cells().

    Args:
        reading: of the drafts (burst.READINGS).
        version: in place of the panel's own.
    """
    p = PANELS[name]
    changed = {} if version is None else {p.cca: version}
    return np.array([
        burst.shares(p.cca, int(n), p.rival, p.rate_mbit, p.rtt_ms, x * p.buffer_scale, reading=reading, seeds=seeds,
                     versions=changed).mean()
        for x, n in zip(chosen["buffer_bdp"], chosen["bbr_flows"], strict=True)
    ])  # fmt: skip


def panels(names: Iterable[str]) -> pd.DataFrame:
    """All cells of some panels.

    Returns:
        figure, bbr_flows, buffer_bdp, published, ware, fluid_9s (aligned, as drawn nowhere; NaN where there is none), and a
        column per reading; of BBRv1 ``draft`` alone.
    """
    return pd.concat([_panel(name) for name in names], ignore_index=True)


def _panel(name: str) -> pd.DataFrame:
    p, table = PANELS[name], cells(name)
    table.insert(0, "figure", name)
    table["ware"] = ware.bbr_share(p.rate_mbit, p.rtt_ms, table["buffer_bdp"], table["bbr_flows"])
    fluid = published_table(f"{PAPER}/fluid_9s").rename(columns={"panel": "figure", "aligned_share": "fluid_9s"})
    keys = ["figure", "bbr_flows", "buffer_bdp"]
    table = table.merge(fluid[[*keys, "fluid_9s"]], on=keys, how="left")
    for reading in READINGS[p.cca]:
        table[reading] = modelled(name, table, reading)
    return table


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Root mean square difference of each model to the published shares, up to 16 and 32 BDP and over all cells.

    Args:
        table: panels().

    Returns:
        Columns: figure, up_to_bdp, a column per model.
    """
    models = [c for c in table.columns if c not in ("figure", "bbr_flows", "buffer_bdp", "published")]
    rows = []
    for figure, panel in table.groupby("figure", sort=False):
        for limit in (16, 32, 64):
            some = panel[panel["buffer_bdp"] <= limit]
            missed = some[models].sub(some["published"], axis=0)
            rows.append({"figure": figure, "up_to_bdp": limit, **((missed**2).mean(skipna=False) ** 0.5)})
    return pd.DataFrame(rows)


def parts(names: Iterable[str]) -> pd.DataFrame:
    """What the share owes to parts of BBRv3: Fig. 5a up to 16 BDP, the drafts to the letter.

    Args:
        names: in PARTS.

    Returns:
        part, change (root mean square, of the share when the part is left out), rmse (to the published shares, then), rmse_with
        (with all parts).
    """
    chosen = cells(PARTS_PANEL, PARTS_BUFFER_BDP)
    base = modelled(PARTS_PANEL, chosen, "draft")
    return pd.DataFrame(_parts(chosen, base, names))


def _parts(chosen: pd.DataFrame, base: burst.Floats, names: Iterable[str]) -> Iterator[dict[str, float | str]]:
    published = chosen["published"].to_numpy()
    for name in names:
        version = replace(burst.VERSIONS["bbr3"], **PARTS[name])  # type: ignore[arg-type]
        without = modelled(PARTS_PANEL, chosen, "draft", version=version)
        yield {"part": name, "change": _rms(without - base), "rmse": _rms(without - published),
               "rmse_with": _rms(base - published)}  # fmt: skip


def _rms(values: burst.Floats) -> float:
    return float(np.sqrt((values**2).mean()))
