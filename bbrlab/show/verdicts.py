"""How verdicts look and read, on pages and on the terminal."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from bbrlab.claims.schema import rounded
from bbrlab.results.verdicts import (
    AS_READ,
    FINAL,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY,
    PARTLY_RUN,
    REPRODUCED,
)

MOST_SEEDS = 1000  # that are told
# Of each verdict: on a page, on the terminal.
_LOOKS = {
    REPRODUCED: ("#1b7837", "green"),
    AS_READ: ("#3d9140", "bright_green"),
    PARTLY: ("#5a8f00", "cyan"),
    NOT_REPRODUCED: ("#b2182b", "red"),
    INCONCLUSIVE: ("#8a6d00", "yellow"),
    PARTLY_RUN: ("#4a6b8a", "blue"),
    NOT_RUN: ("#777777", "dim"),
}
COLOURS = {verdict: page for verdict, (page, _) in _LOOKS.items()}
TERMINAL = {verdict: terminal for verdict, (_, terminal) in _LOOKS.items()}


def measured_text(claim: Any) -> str:
    """The judged number of a row of claims.parquet with its interval or why there is none; "-" if it was not run.

    Of several parts it is the one that decides, with its name.
    """
    if pd.isna(claim["mean"]):
        return "-"
    said = rounded(claim["mean"], 4)
    if not pd.isna(claim["low"]):
        said += f" ± {rounded((claim['high'] - claim['low']) / 2, 2)}"
    elif claim["spread"]:
        said += f" ({claim['spread']})"
    return f"{said} at {claim['part']}" if claim["part"] else said


def verdict_text(claim: Any) -> str:
    """The verdict of a row of claims.parquet, that of what was partly run with its interim outcome; with its role, if it does not count."""
    role = f"{claim['role']}: " if claim["role"] else ""
    return role + (f"{claim['verdict']} (so far: {claim['interim']})" if claim["interim"] else str(claim["verdict"]))


def settles_text(seeds: float) -> str:
    """How many seeds would settle what is inconclusive; empty where that is not known."""
    if math.isnan(seeds):
        return ""
    return (
        f"about {int(seeds):,} seeds would tell"
        if seeds <= MOST_SEEDS
        else f"more than {MOST_SEEDS:,} seeds would be needed"
    )


def marks_text(claim: Any) -> str:
    """What a reader should know of a verdict of claims.parquet: what is missing, seeds without a number, whether it stands."""
    parts = [claim["why"]] if claim["why"] else []
    if claim["verdict"] == INCONCLUSIVE and (settles := settles_text(claim["settles"])):
        parts.append(settles)
    if claim["set_aside"]:
        parts.append(f"{claim['set_aside']} points without enough runs: the same on whichever side they are")
    if not claim["why"] or claim["verdict"] == PARTLY_RUN:
        parts += [f"{claim['failed']} of {claim['seeds']} seeds failed"] if claim["failed"] else []
        parts += [f"{claim['without']} of {claim['seeds']} seeds have no number"] if claim["without"] else []
    if claim["verdict"] in FINAL and claim["verdict"] != INCONCLUSIVE and not claim["stands"]:
        parts.append("does not stand among so many claims")
    return "; ".join(parts)
