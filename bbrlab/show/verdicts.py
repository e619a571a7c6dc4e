"""How verdicts look and read, on pages and on the terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Look:
    """How a verdict looks.

    Attributes:
        css: what its CSS class ends with.
        mark: its sign, so that colour is never the only one.
        terminal: its colour on a terminal.
        light, dark: its colour on a page with a background so.
        means: in words.
    """

    css: str
    mark: str
    terminal: str
    light: str
    dark: str
    means: str


LOOKS = {
    REPRODUCED: Look("good", "✓", "green", "#1b7837", "#7fce93", "Every claim that tests the statement came out as the paper says, each with its tolerance and at most 5 % error."),
    AS_READ: Look("read", "✓", "bright_green", "#2f7d4f", "#9ad9a9", "All of it did in one reading of what the paper leaves open, and not in another."),
    PARTLY: Look("half", "◐", "cyan", "#4d7c00", "#b4d664", "Some of its claims did, others did not: k of n, in every reading."),
    NOT_REPRODUCED: Look("bad", "✗", "red", "#b2182b", "#ff9a94", "None of its claims did, and in every reading at least one is surely outside of what is expected."),
    INCONCLUSIVE: Look("open", "?", "yellow", "#7a5f00", "#e6c75a", "The seeds do not tell: the intervals straddle what is expected."),
    PARTLY_RUN: Look("part", "…", "blue", "#3b5f82", "#9cc3ea", "Some of its points, or runs of the paper's length, are still to be run at this scale. No verdict is given before that."),
    NOT_RUN: Look("none", "–", "dim", "#5f6368", "#b0b6bc", "None of its points belongs to what was run."),
}  # fmt: skip


def colours_css() -> str:
    """The verdicts' colours and classes as a style sheet, for light and dark pages."""
    light, dark = (
        " ".join(f"--bb-{look.css}: {getattr(look, page)};" for look in LOOKS.values()) for page in ("light", "dark")
    )
    classes = " ".join(f".bb-{look.css} {{ --bb: var(--bb-{look.css}); }}" for look in LOOKS.values())
    return f':root {{ {light} }}\nhtml[data-theme="dark"] {{ {dark} }}\n{classes}\n'


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


def marks_text(claim: Any, scale: str | None = None) -> str:
    """What a reader should know of a verdict of claims.parquet: what is missing, seeds without a number, whether it stands.

    Args:
        scale: of its statement's verdict, where claims may be of several.
    """
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
    if scale is not None and claim.get("scale") != scale:
        parts.append(f"at scale {claim['scale']}, not counted above")
    return "; ".join(parts)
