"""docs/explanation/beside_google.md: BBRv2 and BBRv3 of this lab beside Google's released code, which was run in this lab, too.

Its tables are from data/google (Google's shares, and ours without noise of
hosts) and from the runs that ship at ``full``.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.tables import published_table
from bbrlab.measure.bbr_record import STATES
from bbrlab.results.algorithm_table import label_of_cca
from bbrlab.results.figures import PANEL_KEYS, figures_at
from bbrlab.results.shipped import read_manifest
from bbrlab.results.statistics import rms
from bbrlab.results.tables import read_figure
from docs._make import marks
from docs._make.measured import SCALE, SHIPPED, short
from studies import google_traces
from studies.beside_google import CELL, LOSS_CELL, QUEUE_CELL, compared

PAGE = paths.ROOT / "docs/explanation/beside_google.md"
SIDES = ("published", "before", "ours", "shipped")
AIM = 2.0  # standard errors
BIAS_AIM = 0.015  # of the share, of a group of cells
DELAYED = "bless2025/fig10"


def cells(folder: Path = SHIPPED) -> pd.DataFrame:
    """compared(), and ``shipped``: the mean share of the paper's number of trials, as the runs ship."""
    table = compared()
    return table.join(_shipped_shares(list(table["figure"].unique()), folder), on=CELL)


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
    rows = []
    for figure, part in table.groupby("figure", sort=False):
        published, before, ours, shipped = (short(error(part, side)) for side in SIDES)
        aim = short(by_chance(part, "before"))
        bias, group = largest_group_bias(part, "ours")
        missed = [", missed" if over else "" for over in (float(ours) > float(aim), abs(bias) > BIAS_AIM)]
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
        rows.append([*cells, aim + missed[0], f"{bias:+.3f} ({group}){missed[1]}", shipped])
    heads = (
        "panel", "cells", "seeds", "Google's, from published", "before, from Google's", "**ours, from Google's**", "by chance", "aim",
        "largest group", "as it ships, from Google's",
    )  # fmt: skip
    return "\n".join(marks.table(heads, rows)) + "\n"


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
    rows = []
    for row in table.to_dict("records"):
        google, ours = (_with_scatter(row[side], row[f"{side}_sd"]) for side in ("google", "ours"))
        cells = [row["figure"].split("/")[1], str(row["bbr_flows"]), str(row["buffer_bdp"]), short(row["published"])]
        rows.append([*cells, google, ours])
    return "\n".join(marks.table(("figure", "N", "BDP", "published", "Google's", "ours"), rows)) + "\n"


def losses() -> pd.DataFrame:
    """Goodput with random loss (Mbit/s): a row for each of LOSS_CELL; google, before, ours, each with SIDE_sd and SIDE_seeds."""
    google = published_table("google/loss")
    parts = {code: part for code, part in google.groupby("code")} | {"ours": published_table("google/ours_loss")}
    sides = []
    for side in ("google", "before", "ours"):
        of = parts[side].groupby(LOSS_CELL)["goodput_mbit"].agg(["mean", "std", "count"])
        sides.append(of.set_axis([side, f"{side}_sd", f"{side}_seeds"], axis=1))
    return pd.concat(sides, axis=1).reset_index()


def queues() -> pd.DataFrame:
    """Median queue of two BBRv3 flows in RTTs: a row for each of QUEUE_CELL with the columns of losses().

    Where the scatter of Google's seeds was not kept, it is taken to be ours over the cells of the figure, for both sides.
    """
    table = published_table("google/queues").rename(
        columns={"google_median_rtts": "google", "before_median_rtts": "before"}
    )
    ours = published_table("google/ours_queues").groupby(QUEUE_CELL)["median_rtts"].agg(["mean", "std", "count"])
    table = table.join(ours.set_axis(["ours", "ours_sd", "ours_seeds"], axis=1), on=QUEUE_CELL, how="inner")
    pooled = (table["ours_sd"] ** 2).groupby(table["figure"]).transform("mean") ** 0.5
    not_kept = table["google_sd"].isna()
    return table.assign(
        ours_sd=table["ours_sd"].mask(not_kept, pooled),
        google_sd=table["google_sd"].mask(not_kept, pooled),
        not_kept=not_kept,
    )


def in_errors(table: pd.DataFrame) -> pd.Series:
    """The difference of ours to Google's in standard errors of the difference."""
    error = (table["google_sd"] ** 2 / table["google_seeds"] + table["ours_sd"] ** 2 / table["ours_seeds"]) ** 0.5
    return (table["ours"] - table["google"]) / error


def _with_error(row: dict[Hashable, Any], side: str, digits: int) -> str:
    error = row[f"{side}_sd"] / row[f"{side}_seeds"] ** 0.5
    return f"{row[side]:.{digits}f}" + ("" if pd.isna(error) else f" ± {error:.{digits}f}")


def conditions_table(loss: pd.DataFrame, queue: pd.DataFrame) -> str:
    """A line for each setting with random loss and each queue, and how many meet the aim, in Markdown."""
    rows, missed = [], []
    for table, digits in ((loss, 1), (queue, 2)):
        for row, errors in zip(table.to_dict("records"), in_errors(table), strict=True):
            words = _loss_words(row) if "cca" in row else _queue_words(row)
            google = f"{row['google']:.{digits}f}" if row.get("not_kept") else _with_error(row, "google", digits)
            ours, seeds = _with_error(row, "ours", digits), f"{row['ours_seeds']:.0f}"
            missed.append(abs(errors) > AIM)
            away = f"**{errors:+.1f}, missed**" if missed[-1] else f"{errors:+.1f}"
            rows.append((words, google, ours, seeds, away))
    lines = marks.table(
        ("Mbit/s with random loss, or queue in RTTs", "Google's", "ours", "seeds", "in standard errors"), rows
    )
    return (
        "\n".join([*lines, "", f"{len(missed) - sum(missed)} of {len(missed)} are within two standard errors."]) + "\n"
    )


def _loss_words(row: dict[Hashable, Any]) -> str:
    return f"{label_of_cca(row['cca'])}, {row['loss_percent']:g} % lost"


def _queue_words(row: dict[Hashable, Any]) -> str:
    late = f", the second {row['second_starts_s']:g} s later" if row["figure"] == DELAYED else ""
    paced = "" if str(row["figure"]).startswith("bless2025") else ", paced by TCP"
    return f"two flows, {row['rtt_ms']:g} ms, {row['buffer_bdp']:g} BDP{late}{paced}"


def traces_table(states: pd.DataFrame) -> str:
    """Two lines for each trace, Google's and ours, in Markdown.

    Args:
        states: data/google/states.csv.
    """
    columns = [state for state in STATES if state not in ("Startup", "Drain")]
    rows = []
    for trace, path in google_traces.index().items():
        for row in states[states["trace"] == trace].sort_values("code").to_dict("records"):
            words = f"{path['flows'].replace('1 ', '')}; {path['rate_mbit']:g} Mbit/s, {path['rtt_ms']:g} ms, {path['buffer_bdp']:g} BDP"
            words += f", {100 * path['loss']:g} % lost" if path["loss"] else ""
            is_google = row["code"] == "google"
            whose = (
                [f"{words}, {path['duration_s']:g} s", f"{row['parts_s']:g}", "Google's"]
                if is_google
                else ["", "", "ours"]
            )
            lengths = [_stays(row, state) for state in columns]
            moves = [_moves(row, name) for name in ("falls", "rises")]
            rows.append([*whose, *lengths, *moves])
    heads = ("flows, path", "parts at (s)", "", *columns, "inflight_hi falls", "rises")
    return "\n".join(marks.table(heads, rows)) + "\n"


def _moves(row: dict[Hashable, Any], name: str) -> str:
    """How often inflight_hi moves a minute, and to what part of itself."""
    often, to = row[f"{name}_per_min"], row[f"{name}_to"]
    return "" if pd.isna(often) else f"{often:.1f}" + ("" if pd.isna(to) else f" x {to:.2f}")


def _stays(row: dict[Hashable, Any], state: str) -> str:
    stays = row[f"{state}_stays"]
    return "" if pd.isna(stays) else f"{stays:.0f}" + (f" x {row[f'{state}_s']:.2f}" if stays else "")


def pages() -> dict[Path, str]:
    """{page: its text} as it should be."""
    table = cells()
    parts = {
        "panels": panels_table(table),
        "cells": cells_table(table),
        "conditions": conditions_table(losses(), queues()),
    }
    return {PAGE: marks.page(PAGE, parts | {"traces": traces_table(published_table("google/states"))})}
