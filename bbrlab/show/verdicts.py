"""How verdicts look and read, on pages and on the terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bbrlab.base.words import number_of
from bbrlab.claims.schema import rounded
from bbrlab.results.algorithm_table import OTHER_COLOURS
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
from bbrlab.show.verdict_counts import HALF, HARDLY, MOSTLY

MOST_SEEDS = 1000  # that are told


@dataclass(frozen=True)
class Look:
    """How a verdict looks."""

    css: str
    mark: str  # its sign, so that colour is never the only one
    terminal: str
    colour: str  # its colour on a page, light or dark
    means: str

    @property
    def ink(self) -> str:
        """The colour of words on ``colour``."""
        return ink_on(self.colour)


_WHITE, _BLACK = "#ffffff", "#10151b"
_SOME = "Some of its claims came out as the paper says, others did not, in every reading"
# From indigo to brown in steps of lightness, which people with red-green blindness tell apart too; grey: no verdict. No algorithm
# has one of these (results/algorithm_table.py).
_HALF = Look("half", "◑", "cyan", "#f6ecc0", f"{_SOME}: more than a third of those judged, less than two thirds.")
LOOKS = {
    REPRODUCED: Look("good", "✓", "green", "#3f3384", "Every claim that tests the statement came out as the paper says, each with its tolerance and at most 5 % error."),
    AS_READ: Look("read", "(✓)", "bright_green", "#8a80c4", "All of it did in one reading of what the paper leaves open, and not in another."),
    MOSTLY: Look("most", "◕", "cyan", "#c6c0e4", f"{_SOME}: two thirds of those judged or more."),
    HALF: _HALF,
    PARTLY: _HALF,
    HARDLY: Look("few", "◔", "cyan", "#d6b676", f"{_SOME}: a third of those judged or less."),
    NOT_REPRODUCED: Look("bad", "✗", "red", "#6f420c", "None of its claims did, and in every reading at least one is surely outside of what is expected."),
    INCONCLUSIVE: Look("open", "?", "yellow", "#8d949c", "The seeds do not tell: the intervals straddle what is expected."),
    PARTLY_RUN: Look("part", "…", "blue", "#d3cdc6", "Some of its points, or runs of the paper's length, are still to be run at this scale. No verdict is given before that."),
    NOT_RUN: Look("none", "–", "dim", "#ffffff", "None of its points belongs to what was run."),
}  # fmt: skip


def ink_on(colour: str) -> str:
    """The colour of words on a colour: the one of two that is easier to read."""
    return max((_WHITE, _BLACK), key=lambda ink: contrast(ink, colour))


def contrast(one: str, other: str) -> float:
    """How much two colours (#rrggbb) differ in luminance, 1 to 21 (WCAG 2)."""
    dark, light = sorted(_luminance(colour) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def colours_css() -> str:
    """The verdicts' colours and classes as a style sheet, and the colours of lines that are of no algorithm, for site.js."""
    verdicts = (
        f".bb-{look.css} {{ --bb: {look.colour}; --bb-ink: {look.ink}; }}\n" for look in dict.fromkeys(LOOKS.values())
    )
    return f":root {{ --bb-lines: {' '.join(OTHER_COLOURS)}; }}\n" + "".join(verdicts)


def measured_text(claim: Any) -> str:
    """The judged number of a row of claims.parquet with its interval or why there is none; "-" if it was not run.

    Of several parts it is the one that decides, with its name.
    """
    if pd.isna(claim["mean"]):
        return "-"
    text = rounded(claim["mean"], 4)
    if not pd.isna(claim["low"]):
        text += f" ± {rounded((claim['high'] - claim['low']) / 2, 2)}"
    elif claim["spread"]:
        text += f" ({claim['spread']})"
    return f"{text} ({claim['part']})" if claim["part"] else text


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
        points = number_of(int(claim["set_aside"]), "point")
        parts.append(f"{points} without enough runs: the same verdict on either side")
    if not claim["why"] or claim["verdict"] == PARTLY_RUN:
        parts += [f"{claim['failed']} of {claim['seeds']} seeds failed"] if claim["failed"] else []
        parts += [f"{claim['without']} of {claim['seeds']} seeds have no number"] if claim["without"] else []
    if claim["verdict"] in FINAL and claim["verdict"] != INCONCLUSIVE and not claim["stands"]:
        parts.append("not significant among so many claims (Benjamini-Hochberg)")
    if scale is not None and claim.get("scale") != scale:
        parts.append(f"at scale {claim['scale']}, not counted above")
    return "; ".join(parts)
