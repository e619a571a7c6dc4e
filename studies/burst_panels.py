"""The burst model over the published panels of N BBR flows against one other, and what its parts do there.

Which panels: data/burst/panels.yaml. The tables are panels.csv and parts.csv beside it; ``bbrlab model table`` makes them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.strict import Strict, read_model
from bbrlab.base.tables import published_table
from bbrlab.models import burst, burst_versions, ware
from bbrlab.models.burst_versions import Version
from bbrlab.results.statistics import rms

SEEDS = 2
FILE = paths.DATA / "burst" / "panels.yaml"
Positive = Annotated[float, Field(gt=0)]


class Panel(Strict):
    """A published panel: cells of N flows of ``cca`` against one ``rival``."""

    cca: Literal["bbr1", "bbr2", "bbr3"]
    rival: Literal["cubic", "reno"]
    rate_mbit: Positive
    rtt_ms: Positive


class Parts(Strict):
    """Where parts of BBRv3 are left out: a panel, up to a buffer (BDP)."""

    panel: str
    up_to_bdp: Positive


class Published(Strict):
    """data/burst/panels.yaml: which panels of which paper."""

    paper: str
    buffer_scale: Positive  # what the published multiples of the BDP are to be multiplied by
    panels: dict[str, Panel]  # {figure: panel}; data/PAPER/FIGURE.csv has its cells
    parts: Parts  # where parts() are left out
    fluid: str  # the paper's table of the fluid model's shares


def read_published(path: Path = FILE) -> Published:
    """A file of panels. UserError if it is not as it should be."""
    published = read_model(path, Published)
    if published.parts.panel not in published.panels:
        raise UserError(
            f"{path}: parts.panel: there is no panel '{published.parts.panel}' (there are {', '.join(published.panels)})"
        )
    return published


PUBLISHED = read_published()
PANELS = PUBLISHED.panels
# Readings of the drafts (burst_versions.READINGS); BBRv1 has none.
READINGS = {"bbr1": ("draft",), "bbr2": tuple(burst_versions.READINGS), "bbr3": tuple(burst_versions.READINGS)}
# What can be left out of BBRv3, for parts(): the fields of burst_versions.Version that do it.
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


def cells(name: str, up_to_bdp: float = float("inf")) -> pd.DataFrame:
    """The published cells of a panel: columns ``buffer_bdp``, ``bbr_flows``, ``published`` (share of capacity)."""
    table = published_table(f"{PUBLISHED.paper}/{name}").rename(columns={"share_of_capacity": "published"})
    return table.loc[table["buffer_bdp"] <= up_to_bdp, ["buffer_bdp", "bbr_flows", "published"]].reset_index(drop=True)


def modelled(
    name: str, chosen: pd.DataFrame, reading: str, seeds: int = SEEDS, version: Version | None = None
) -> burst.Floats:
    """The model's mean share at some of a panel's cells()."""
    p = PANELS[name]
    changed: dict[str, Version] = {} if version is None else {p.cca: version}
    return np.array(
        [
            burst.shares(
                p.cca,
                int(n),
                p.rival,
                p.rate_mbit,
                p.rtt_ms,
                x * PUBLISHED.buffer_scale,
                reading=reading,
                seeds=seeds,
                versions=changed,
            ).mean()
            for x, n in zip(chosen["buffer_bdp"], chosen["bbr_flows"], strict=True)
        ]
    )


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
    fluid = published_table(f"{PUBLISHED.paper}/{PUBLISHED.fluid}").rename(
        columns={"panel": "figure", "aligned_share": "fluid_9s"}
    )
    keys = ["figure", "bbr_flows", "buffer_bdp"]
    table = table.merge(fluid[[*keys, "fluid_9s"]], on=keys, how="left")
    for reading in READINGS[p.cca]:
        table[reading] = modelled(name, table, reading)
    return table


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Root mean square difference of each model to the published shares, up to 16 and 32 BDP and over all cells.

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
    """What the share owes to parts of BBRv3: at the panel and buffers of ``parts``, the drafts to the letter.

    Returns:
        part, change (root mean square, of the share when the part is left out), rmse (to the published shares, then), rmse_with
        (with all parts).
    """
    place = PUBLISHED.parts
    chosen = cells(place.panel, place.up_to_bdp)
    base = modelled(place.panel, chosen, "draft")
    return pd.DataFrame(_parts(chosen, base, names))


def _parts(chosen: pd.DataFrame, base: burst.Floats, names: Iterable[str]) -> Iterator[dict[str, float | str]]:
    published = chosen["published"].to_numpy()
    for name in names:
        version = replace(burst_versions.VERSIONS["bbr3"], **PARTS[name])  # type: ignore[arg-type]
        without = modelled(PUBLISHED.parts.panel, chosen, "draft", version=version)
        yield {
            "part": name,
            "change": rms(without - base),
            "rmse": rms(without - published),
            "rmse_with": rms(base - published),
        }
