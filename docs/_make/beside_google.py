"""docs/explanation/beside_google.md: BBRv2 and BBRv3 of this lab beside Google's released code, which was run in this lab, too.

Its tables are from data/google (Google's shares, and ours without noise of
hosts) and from the runs that ship at ``full``.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.tables import published_table
from bbrlab.results.figures import PANEL_KEYS, figures_at
from bbrlab.results.shipped import read_manifest
from bbrlab.results.statistics import rms
from bbrlab.results.tables import read_figure
from docs._make.marks import page
from docs._make.measured import SCALE, SHIPPED, short

PAGE = paths.ROOT / "docs/explanation/beside_google.md"
CELL = ["figure", *PANEL_KEYS.values()]
# What the seeds themselves scatter (root mean square over a panel's cells, three seeds of each side): an error to aim at.
AIMS = {
    "sarpkaya2025/fig5a": 0.020,
    "sarpkaya2025/fig5b": 0.017,
    "sarpkaya2025/fig5c": 0.006,
    "sarpkaya2025/fig3a": 0.013,
    "sarpkaya2025/fig3b": 0.023,
    "sarpkaya2025/fig3c": 0.030,
}
GROUP_BIAS = 0.015  # what the mean error of the cells with one number of flows, or one buffer, should not exceed
SIDES = ("published", "before", "ours", "shipped")


def cells(folder: Path = SHIPPED) -> pd.DataFrame:
    """Every cell in which Google's code was run.

    Returns:
        CELL; share of capacity of the BBR flows: published, google (mean over seeds), google_sd, before (this lab's default until
        November 2026), ours (mean over the seeds of data/google/ours.csv, hosts without noise) and shipped (mean over the seeds of
        the paper's number of trials, as the runs ship). NaN where there is none.
    """
    table = published_table("google/shares")
    ours = published_table("google/ours").groupby(CELL)["share_of_capacity"].mean().rename("ours")
    return table.join(ours, on=CELL).join(_shipped_shares(list(table["figure"].unique()), folder), on=CELL)


def _shipped_shares(names: list[str], folder: Path) -> pd.Series:
    """Mean share of what ships, by CELL."""
    parts = []
    for figure in figures_at(SCALE, sorted(set(names) & set(read_manifest(folder, SCALE).figures))):
        runs = read_figure(folder / SCALE / f"{figure.id}.parquet")
        good = runs[(runs["group"] == 0) & runs["ok"] & (runs["seed"] <= figure.trials)]
        parts.append(good.drop(columns="buffer_bdp").rename(columns=PANEL_KEYS).assign(figure=figure.id))
    rows = pd.concat(parts) if parts else pd.DataFrame(columns=[*CELL, "share_of_capacity"])
    return rows.groupby(CELL)["share_of_capacity"].mean().rename("shipped")


def largest_group_bias(part: pd.DataFrame, side: str) -> tuple[float, str]:
    """The mean difference to Google's that is largest in size over the cells of one number of flows or one buffer, and which these are."""
    away = part[side] - part["google"]
    groups = {
        f"{word} = {value:g}" if word == "N" else f"{value:g} BDP": float(here.mean())
        for word, key in (("N", "bbr_flows"), ("BDP", "buffer_bdp"))
        for value, here in away.groupby(part[key])
    }
    name = max(groups, key=lambda one: abs(groups[one]))
    return groups[name], name


def _error(part: pd.DataFrame, side: str) -> str:
    """Root mean square difference to Google's over the cells that there are."""
    away = (part[side] - part["google"]).dropna()
    return short(rms(away.to_numpy(dtype=float))) if len(away) else "not run"


def panels_table(table: pd.DataFrame) -> str:
    """A line for each panel, in Markdown."""
    titles = {figure.id: figure.scenario.figure for figure in figures_at(SCALE, list(table["figure"].unique()))}
    lines = [
        "| panel | cells | Google's, from published | before, from Google's | **ours, from Google's** | mean | largest group | aim | as it ships, from Google's |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for figure, aim in AIMS.items():
        part = table[table["figure"] == figure]
        published, before, ours, shipped = (_error(part, side) for side in SIDES)
        there = int(part["ours"].notna().sum())
        count = str(len(part)) if there in (0, len(part)) else f"{len(part)} (ours: {there})"
        cells = [titles[figure], count, published, before, f"**{ours}**", "", "", short(aim), shipped]
        if part["ours"].notna().any():
            bias, group = largest_group_bias(part, "ours")
            cells[5:7] = f"{(part['ours'] - part['google']).mean():+.3f}", f"{bias:+.3f} ({group})"
            cells[7] += ", missed" if float(ours) > aim else ""
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def whole_error(table: pd.DataFrame, algorithm: str) -> tuple[float, int]:
    """Root mean square difference of ours to Google's over all cells of an algorithm in which both were run, and how many these are."""
    of = {
        figure.id
        for figure in figures_at(SCALE, list(table["figure"].unique()))
        if figure.scenario.flows[0].cca == algorithm
    }
    away = (table["ours"] - table["google"])[table["figure"].isin(of)].dropna()
    return float(rms(away.to_numpy(dtype=float))), len(away)


def cells_table(table: pd.DataFrame) -> str:
    """A line for each cell, in Markdown."""
    lines = [
        "| figure | N | BDP | published | Google's | ours | before | as it ships |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in table.to_dict("records"):
        ours, before, shipped = (
            "" if pd.isna(row[side]) else short(row[side]) for side in ("ours", "before", "shipped")
        )
        lines.append(
            f"| {row['figure'].split('/')[1]} | {row['bbr_flows']} | {row['buffer_bdp']} | {short(row['published'])} "
            f"| {short(row['google'])} ± {short(row['google_sd'])} | {ours} | {before} | {shipped} |"
        )
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """{page: its text} as it should be."""
    table = cells()
    return {PAGE: page(PAGE, {"panels": panels_table(table), "cells": cells_table(table)})}
