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
from studies.beside_google import CELL

PAGE = paths.ROOT / "docs/explanation/beside_google.md"
SIDES = ("published", "before", "ours", "shipped")


def cells(folder: Path = SHIPPED) -> pd.DataFrame:
    """Every cell in which Google's code was run.

    Returns:
        CELL; share of capacity of the BBR flows, means over seeds: published, google, before (this lab's default until November
        2026), ours (data/google/ours.csv, hosts without noise), each of these three with SIDE_sd and SIDE_seeds; and shipped (of
        the paper's number of trials, as the runs ship).
    """
    table = published_table("google/shares")
    ours = published_table("google/ours").groupby(CELL)["share_of_capacity"].agg(["mean", "std", "count"])
    ours = ours.rename(columns={"mean": "ours", "std": "ours_sd", "count": "ours_seeds"})
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


def error(part: pd.DataFrame, side: str) -> float:
    """Root mean square difference of a side's means to Google's."""
    return rms((part[side] - part["google"]).to_numpy(dtype=float))


def by_chance(part: pd.DataFrame, side: str) -> float:
    """What error() of two equal algorithms is by their seeds' standard errors (root mean square over the cells; one seed has none)."""
    google, other = (part[f"{one}_sd"] ** 2 / part[f"{one}_seeds"] for one in ("google", side))
    return float((google + other.fillna(0)).mean() ** 0.5)


def panels_table(table: pd.DataFrame) -> str:
    """A line for each panel, in Markdown."""
    titles = {figure.id: figure.scenario.figure for figure in figures_at(SCALE, list(table["figure"].unique()))}
    lines = [
        "| panel | cells | seeds | Google's, from published | before, from Google's | **ours, from Google's** | by chance | aim | largest group | as it ships, from Google's |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for figure, part in table.groupby("figure", sort=False):
        published, before, ours, shipped = (short(error(part, side)) for side in SIDES)
        aim = short(by_chance(part, "before"))
        bias, group = largest_group_bias(part, "ours")
        missed = ", missed" if float(ours) > float(aim) else ""
        least, most = int(part["ours_seeds"].min()), int(part["ours_seeds"].max())
        seeds = str(most) if least == most else f"{least} to {most}"
        cells = [
            titles[str(figure)],
            str(len(part)),
            seeds,
            published,
            before,
            f"**{ours}**",
            short(by_chance(part, "ours")),
        ]
        lines.append(f"| {' | '.join([*cells, aim + missed, f'{bias:+.3f} ({group})', shipped])} |")
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


def _with_scatter(mean: float, sd: float) -> str:
    return short(mean) + ("" if pd.isna(sd) else f" ± {short(sd)}")


def cells_table(table: pd.DataFrame) -> str:
    """A line for each cell, in Markdown."""
    lines = ["| figure | N | BDP | published | Google's | ours |", "|---|---|---|---|---|---|"]
    for row in table.to_dict("records"):
        google, ours = (_with_scatter(row[side], row[f"{side}_sd"]) for side in ("google", "ours"))
        cells = [row["figure"].split("/")[1], str(row["bbr_flows"]), str(row["buffer_bdp"]), short(row["published"])]
        lines.append(f"| {' | '.join([*cells, google, ours])} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """{page: its text} as it should be."""
    table = cells()
    return {PAGE: page(PAGE, {"panels": panels_table(table), "cells": cells_table(table)})}
