"""Judges claims by the runs: what the seeds say of each claim's number, against what is expected of it.

The rules and their error rates stand in data/README.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.campaign.figures import Figure
from bbrlab.claims.inference import LOOKS, all_equal, confidence_of, estimate, p_value, standing
from bbrlab.claims.sample import Sample, reach, sample
from bbrlab.claims.schema import Claim, Expectation

REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE = "reproduced", "not reproduced", "inconclusive"
PARTLY_RUN, NOT_RUN = "partly run", "not run"
FINAL = (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE)
VERDICTS = (*FINAL, PARTLY_RUN, NOT_RUN)
ALL, OWN = "all", "the lab's own"  # rows of counts() below those of the papers
MISSING_LARGEST = 0.2  # of a claim's seeds that may have failed or have no number
DETERMINISTIC, EQUAL = "deterministic", "equal in every seed"  # why there is no interval


@dataclass(frozen=True)
class Outcome:
    """What the seeds say of a number.

    Attributes:
        verdict: one of FINAL.
        mean: over the seeds that have a number; NaN without any.
        low, high: its interval; NaN if there is none.
        confidence: of that interval; NaN if there is none.
        p: inference.p_value(); NaN if nothing was tested: repeats are identical, or too many seeds lack a number.
        seeds, failed, without: how many there were, of how many a run failed, and how many had no finite number.
        spread: DETERMINISTIC, EQUAL or "": why there is no interval.
        why: of what is inconclusive, why.
    """

    verdict: str
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    confidence: float = math.nan
    p: float = math.nan
    seeds: int = 0
    failed: int = 0
    without: int = 0
    spread: str = ""
    why: str = ""


def looks_of(expect: Expectation) -> int:
    """How often a claim may be looked at: one with a tolerance gets its seeds whatever the mean, so once."""
    return 1 if math.isfinite(expect.tolerance) else LOOKS


def outcome(expect: Expectation, found: Sample) -> Outcome:
    """What the seeds say."""
    values, lacking = found.values, found.failed + found.without
    result = Outcome(INCONCLUSIVE, seeds=found.seeds, failed=found.failed, without=found.without)
    if len(values):
        result = dataclasses.replace(result, mean=float(np.mean(values)))
    if lacking > MISSING_LARGEST * found.seeds:
        return dataclasses.replace(result, why=f"{_lack(found)} of {found.seeds} seeds")
    if len(values) < 2:
        return dataclasses.replace(result, why=f"{len(values)} seeds with a number: two are needed")
    low, high = expect.bounds
    looks = looks_of(expect)
    if all_equal(values):
        p = math.nan if found.identical else p_value(values, low, high, looks)
        spread = DETERMINISTIC if found.identical else EQUAL
        verdict = REPRODUCED if expect.holds(result.mean) else NOT_REPRODUCED
        return dataclasses.replace(result, verdict=verdict, p=p, spread=spread)
    interval = estimate(values, looks)
    result = dataclasses.replace(
        result,
        low=interval.low,
        high=interval.high,
        confidence=confidence_of(looks),
        p=p_value(values, low, high, looks),
    )
    if low <= interval.low and interval.high <= high:
        return dataclasses.replace(result, verdict=REPRODUCED)
    if interval.high < low or high < interval.low:
        return dataclasses.replace(result, verdict=NOT_REPRODUCED)
    return dataclasses.replace(result, why="the interval straddles what is expected")


def _lack(found: Sample) -> str:
    """How many seeds lack a number, in words."""
    parts = [f"{found.failed} failed"] if found.failed else []
    parts += [f"{found.without} have no number"] if found.without else []
    return " and ".join(parts)


@dataclass(frozen=True)
class Verdict:
    """What came of a claim.

    Attributes:
        verdict: one of VERDICTS.
        outcome: what the seeds say; of a claim that was partly run, for the time being; None if it was not run.
        points, points_full: how many of its points were run, and how many it has at full.
        shorter_s: length of its shortest run, if shorter than it must be.
        stands: whether a final verdict is among those that stand when all claims are judged together; None: no verdict.
        why: what keeps it from a verdict.
    """

    claim: Claim
    verdict: str
    outcome: Outcome | None = None
    points: int = 0
    points_full: int = 0
    shorter_s: float | None = None
    stands: bool | None = None
    why: str = ""

    @property
    def interim(self) -> str:
        """The outcome of a claim that was partly run; empty of others."""
        return self.outcome.verdict if self.outcome and self.verdict == PARTLY_RUN else ""

    def row(self) -> dict[str, Any]:
        """One row of claims.parquet (docs/results.md)."""
        claim, found = self.claim, self.outcome or Outcome("")
        return {
            "id": claim.id,
            "statement": claim.statement,
            "paper": claim.paper,
            "variant": claim.variant or "",
            "says": claim.says,
            "figures": ", ".join(claim.figures),
            "metric": claim.metric or "order",
            "expected": str(claim.expect),
            "verdict": self.verdict,
            "interim": self.interim,
            "mean": found.mean,
            "low": found.low,
            "high": found.high,
            "confidence": found.confidence,
            "spread": found.spread,
            "p": found.p,
            "stands": self.stands,
            "seeds": found.seeds,
            "failed": found.failed,
            "without": found.without,
            "points": self.points,
            "points_full": self.points_full,
            "shorter_s": math.nan if self.shorter_s is None else self.shorter_s,
            "why": self.why or found.why,
            "finding": claim.finding.text if claim.finding else "",
            "shows": claim.finding.shows if claim.finding else "",
            "because": claim.because,
            "chosen_after": claim.chosen_after or "",
            "source": claim.source,
            "exactness": claim.exactness,
            "own": claim.own,
        }


def judge_claim(
    claim: Claim, figures: Mapping[str, Figure], tables: Mapping[str, pd.DataFrame], results: Path | None = None
) -> Verdict:
    """Judge one claim by itself: ``stands`` needs all of them (judge_all()).

    Args:
        claim: what to judge.
        figures: the figures of the scale, by id.
        tables: their tables (collect.figure_table()), by id; a figure that is missing was not run.
        results: the folder of results that has the models' predictions.
    """
    reached = reach(claim, {id: figure for id, figure in figures.items() if id in tables})
    here = Verdict(claim, NOT_RUN, points=reached.have, points_full=reached.full, shorter_s=reached.short_s)
    if reached.why:
        part = f"{reached.have} of {reached.full} points: " if 0 < reached.have < reached.full else ""
        return dataclasses.replace(here, why=part + reached.why)
    try:
        found = outcome(claim.expect, sample(claim, reached.points, tables, results))
    except UserError as error:
        return dataclasses.replace(here, why=str(error))
    if found.seeds == 0:
        return dataclasses.replace(here, why="its points share no seed")
    if not reached.final:
        return dataclasses.replace(here, verdict=PARTLY_RUN, outcome=found, why=reached.told)
    return dataclasses.replace(here, verdict=found.verdict, outcome=found)


def judge_all(
    claims: Iterable[Claim], figures: Iterable[Figure], tables: Mapping[str, pd.DataFrame], results: Path | None = None
) -> list[Verdict]:
    """Judge every claim, and tell which verdicts stand for so many."""
    known = {f.id: f for f in figures}
    return with_standing([judge_claim(claim, known, tables, results) for claim in claims])


def with_standing(verdicts: list[Verdict]) -> list[Verdict]:
    """The verdicts with ``stands``: of a deterministic number always, of an inconclusive one never."""
    tested = [v for v in verdicts if v.verdict in FINAL and v.outcome and v.outcome.spread != DETERMINISTIC]
    # What lacks too many seeds was not tested; it counts among the claims with a p value that shows nothing.
    p_values = [1.0 if math.isnan(v.outcome.p) else v.outcome.p for v in tested if v.outcome]
    stands = dict(zip((v.claim.id for v in tested), standing(p_values), strict=True))

    def one(verdict: Verdict) -> bool | None:
        if verdict.verdict not in FINAL:
            return None
        return verdict.verdict != INCONCLUSIVE and stands.get(verdict.claim.id, True)

    return [dataclasses.replace(v, stands=one(v)) for v in verdicts]


def verdict_frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """claims.parquet: one row per claim."""
    found = pd.DataFrame([v.row() for v in verdicts])
    return found.astype({"stands": "boolean"}) if len(found) else found


def verdict_counts(table: pd.DataFrame) -> pd.DataFrame:
    """How many claims of each paper came out how: counts() of verdict_frame()."""
    return counts(table, VERDICTS)


def counts(table: pd.DataFrame, verdicts: Sequence[str]) -> pd.DataFrame:
    """How many rows of each paper came out how; rows: papers, "all", and OWN, the lab's own, if there are such; columns: the verdicts."""
    found = pd.crosstab(table["paper"][~table["own"]], table["verdict"]).reindex(columns=list(verdicts), fill_value=0)
    found.loc[ALL] = found.sum()
    if table["own"].any():
        found.loc[OWN] = table["verdict"][table["own"]].value_counts().reindex(list(verdicts), fill_value=0)
    return found
