"""Judges claims by the runs: what the seeds say of each claim's number, against what is expected of it.

The rules and their error rates stand in docs/explanation/verdicts.md.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.base.words import number_of
from bbrlab.campaign.figures import Figure
from bbrlab.campaign.interval import all_equal
from bbrlab.claims.inference import ERROR, estimate, looks, p_equal, p_values, standing
from bbrlab.claims.sample import Reach, Sample, reach, sample
from bbrlab.claims.schema import PREDICTED, Claim, Expectation
from bbrlab.claims.select import select

REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE = "reproduced", "not reproduced", "inconclusive"
PARTLY_RUN, NOT_RUN = "partly run", "not run"
FINAL = (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE)
VERDICTS = (*FINAL, PARTLY_RUN, NOT_RUN)
ALL, OWN = "all", "the lab's own"  # rows of counts() below those of the papers
MISSING_LARGEST = 0.2  # of a claim's seeds that may have failed or have no number
# Why there is no interval.
DETERMINISTIC, EQUAL, RANKS = "deterministic", "equal in every seed", "by ranks"
# Why the seeds leave it open, by that; what is deterministic is never open.
UNDECIDED = {
    "": "the interval straddles what is expected",
    EQUAL: "equal in {seeds} seeds: too few to tell",
    RANKS: "the series neither rise nor fall surely",
}
WIDE = "the interval is wider than what is expected: the seeds scatter too much to show that it is met"


@dataclass(frozen=True)
class Outcome:
    """What the seeds say of a claim's numbers.

    Attributes:
        verdict: one of FINAL.
        mean: over the seeds that have a number, of the part that decides; NaN without any.
        low, high: its interval; NaN if there is none.
        confidence: of that interval; NaN if there is none.
        part: the label of the part that decides (Sample.labels).
        p: the smallest error at which there could be a verdict, at most 1; NaN if nothing was tested: repeats are identical,
            or too many seeds lack a number.
        seeds, failed, without: how many there were, of how many a run failed, and how many had no finite number.
        spread: DETERMINISTIC, EQUAL, RANKS or "": why there is no interval.
        why: of what is inconclusive, why.
    """

    verdict: str
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    confidence: float = math.nan
    part: str = ""
    p: float = math.nan
    seeds: int = 0
    failed: int = 0
    without: int = 0
    spread: str = ""
    why: str = ""


def asks(claim: Claim, reached: Reach) -> bool:
    """Whether a claim can ask for seeds: it speaks of one figure alone and can have a final verdict at its scale."""
    return (
        reached.final and len(claim.figures) == 1 and not any(c.rpartition(".")[2] in PREDICTED for c in claim.columns)
    )


def looks_at(claim: Claim, reached: Reach, figures: Mapping[str, Figure]) -> list[int]:
    """With how many seeds a claim is looked at: once, but if it has no tolerance and can ask for more each time.

    One with a tolerance asks for its seeds whatever the mean.
    """
    figure = figures[claim.figures[0]]
    if math.isfinite(claim.expect.tolerance) or not asks(claim, reached):
        return [figure.trials]
    return looks(figure.trials, min(figure.caps[p.label] for points in reached.points.values() for p in points))


def outcome(expect: Expectation, found: Sample, looks: int = 1) -> Outcome:
    """What the seeds say: an intersection-union test over the parts.

    Every part must be as expected, so that each is tested at the whole error (Berger 1982); that one of them is not, at the
    error divided by their number (Bonferroni).

    Args:
        expect: of each part.
        found: the seeds' numbers.
        looks: how often there may be a look (looks_at()).
    """
    values = found.values
    result = Outcome(INCONCLUSIVE, seeds=found.seeds, failed=found.failed, without=found.without)
    low, high = expect.bounds
    if len(values):
        means = values.mean(axis=0)
        farthest = int(np.argmin(np.minimum(means - low, high - means)))
        result = dataclasses.replace(result, mean=float(means[farthest]), part=found.labels[farthest])
    if why := _too_little(found):
        return dataclasses.replace(result, why=why)
    parts = [_part(expect, found, i, looks) for i in range(values.shape[1])]
    verdict, p, chosen = _tested(parts)
    mean, spread = float(means[chosen]), parts[chosen].spread
    label = found.back_label if parts[chosen].back and verdict == NOT_REPRODUCED else found.labels[chosen]
    result = dataclasses.replace(result, verdict=verdict, mean=mean, part=label, p=min(1.0, p))
    if verdict == INCONCLUSIVE:
        result = dataclasses.replace(result, why=UNDECIDED[spread].format(seeds=len(values)))
    if spread:
        tested = math.nan if spread == DETERMINISTIC else result.p
        return dataclasses.replace(result, spread=spread, p=tested)
    interval = estimate(values[:, chosen], looks * (1 if low <= mean <= high else len(parts)))
    if verdict == INCONCLUSIVE and interval.high - interval.low > high - low:
        result = dataclasses.replace(result, why=WIDE)
    return dataclasses.replace(result, low=interval.low, high=interval.high, confidence=interval.confidence)


def _too_little(found: Sample) -> str:
    """Why the seeds' numbers are not judged, in words; empty if they are."""
    lacking, there = found.failed + found.without, len(found.values)
    if lacking > MISSING_LARGEST * found.seeds:
        return f"{_lack(found)} of {found.seeds} seeds"
    return f"{there} seeds with a number: two are needed" if there < 2 else ""


def _tested(parts: Sequence[_Part]) -> tuple[str, float, int]:
    """The verdict over all parts, the smallest error at which it falls, and the part that it rests on."""
    outside, first = min((p.outside * len(parts), i) for i, p in enumerate(parts))
    if outside <= ERROR:
        return NOT_REPRODUCED, outside, first
    inside, _, last = max((p.inside, -p.distance, i) for i, p in enumerate(parts))
    return REPRODUCED if inside <= ERROR else INCONCLUSIVE, min(inside, outside), last


@dataclass(frozen=True)
class _Part:
    """What the seeds say of one part.

    Attributes:
        inside, outside: the smallest errors at which it is so.
        distance: how far inside its mean is.
        spread: as in Outcome.
        back: it is outside for a step against its trend.
    """

    inside: float
    outside: float
    distance: float
    spread: str = ""
    back: bool = False


def _part(expect: Expectation, found: Sample, part: int, looks: int) -> _Part:
    """One part. A number without chance is inside or outside without error."""
    low, high = expect.bounds
    values, identical = found.values[:, part], bool(found.identical[part])
    mean = float(values.mean())
    distance = min(mean - low, high - mean)
    if expect.trend and not expect.beyond and found.trends:
        against = 2 * looks * found.back.p
        if identical:
            good = expect.holds(mean) and against > 0
            return _Part(0.0 if good else math.inf, math.inf if good else 0.0, distance, DETERMINISTIC, against == 0)
        rising, falling = (2 * looks * p for p in found.trends)
        inside, outside = (rising, falling) if expect.trend == "rising" else (falling, rising)
        return _Part(inside, min(outside, against), distance, RANKS, against < outside)
    if not all_equal(values):
        return _Part(*p_values(values, low, high, looks), distance)
    p = 0.0 if identical else p_equal(len(values), looks)
    spread = DETERMINISTIC if identical else EQUAL
    return _Part(p, math.inf, distance, spread) if expect.holds(mean) else _Part(math.inf, p, distance, spread)


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
        stands_by: the same, however the claims depend on each other.
        why: what keeps it from a verdict.
    """

    claim: Claim
    verdict: str
    outcome: Outcome | None = None
    points: int = 0
    points_full: int = 0
    shorter_s: float | None = None
    stands: bool | None = None
    stands_by: bool | None = None
    why: str = ""

    @property
    def interim(self) -> str:
        """The outcome of a claim that was partly run; empty of others."""
        return self.outcome.verdict if self.outcome and self.verdict == PARTLY_RUN else ""

    def row(self) -> dict[str, Any]:
        """One row of claims.parquet (docs/reference/results.md)."""
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
            "part": found.part,
            "mean": found.mean,
            "low": found.low,
            "high": found.high,
            "confidence": found.confidence,
            "spread": found.spread,
            "p": found.p,
            "stands": self.stands,
            "stands_by": self.stands_by,
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
            "chosen_after": claim.later_choices,
            "source": claim.source,
            "exactness": claim.exactness,
            "own": claim.own,
        }


def judge_claim(
    claim: Claim,
    figures: Mapping[str, Figure],
    tables: Mapping[str, pd.DataFrame],
    results: Path | None = None,
    unmeasured: Mapping[str, Figure] = MappingProxyType({}),
) -> Verdict:
    """Judge one claim by itself: ``stands`` needs all of them (judge_all()).

    Args:
        claim: what to judge.
        figures: the figures of the scale, by id, with the points that their tables have.
        tables: their tables (collect.figure_table()), by id; a figure that is missing was not run.
        results: the folder of results that has the models' predictions.
        unmeasured: of figures whose tables lack points that the scale has, the figure with these alone.
    """
    reached = reach(claim, {id: figure for id, figure in figures.items() if id in tables})
    here = Verdict(claim, NOT_RUN, points=reached.have, points_full=reached.full, shorter_s=reached.short_s)
    if reached.why:
        part = f"{reached.have} of {reached.full} points: " if 0 < reached.have < reached.full else ""
        return dataclasses.replace(here, why=part + reached.why + _unmeasured(claim, unmeasured))
    try:
        counted = len(looks_at(claim, reached, figures))
        found = outcome(claim.expect, sample(claim, reached.points, tables, results), counted)
    except UserError as error:
        return dataclasses.replace(here, why=str(error))
    if found.seeds == 0:
        return dataclasses.replace(here, why="its points share no seed")
    if not reached.final:
        return dataclasses.replace(
            here, verdict=PARTLY_RUN, outcome=found, why=reached.told + _unmeasured(claim, unmeasured)
        )
    return dataclasses.replace(here, verdict=found.verdict, outcome=found)


def _unmeasured(claim: Claim, figures: Mapping[str, Figure]) -> str:
    """How many of a claim's points the scale has and the tables lack, in words; empty if none."""
    lacking = {
        (term.figure, point.label)
        for term in claim.at.values()
        if term.figure in figures
        for point in select(term, figures[term.figure].points)
    }
    return f"; {number_of(len(lacking), 'point')} not measured at this scale yet" if lacking else ""


def judge_all(
    claims: Iterable[Claim], figures: Iterable[Figure], tables: Mapping[str, pd.DataFrame], results: Path | None = None
) -> list[Verdict]:
    """Judge every claim, and tell which verdicts stand for so many.

    A figure's table may be older than its scenario: a point that it lacks is not measured yet, one that the scenario has not any more
    is no claim's.
    """
    whole = {f.id: f for f in figures}
    there = {id: set(table["point"]) for id, table in tables.items()}
    known, unmeasured = (
        {id: _points_of(f, there.get(id, set()), has) for id, f in whole.items()} for has in (True, False)
    )
    known = {id: f for id, f in known.items() if f.points}
    unmeasured = {id: f for id, f in unmeasured.items() if f.points and id in tables}
    return with_standing([judge_claim(claim, known, tables, results, unmeasured) for claim in claims])


def _points_of(figure: Figure, labels: Collection[str], among: bool) -> Figure:
    """A figure with those of its points that are, or are not, among some."""
    return dataclasses.replace(figure, points=[p for p in figure.points if (p.label in labels) == among])


def with_standing(verdicts: list[Verdict]) -> list[Verdict]:
    """The verdicts with ``stands`` and ``stands_by``: of a deterministic number always, of an inconclusive one never."""
    tested = [v for v in verdicts if v.verdict in FINAL and v.outcome and v.outcome.spread != DETERMINISTIC]
    # What lacks too many seeds was not tested; it counts among the claims with a p value that shows nothing.
    p_values = [1.0 if math.isnan(v.outcome.p) else v.outcome.p for v in tested if v.outcome]
    ids = [v.claim.id for v in tested]
    stands, stands_by = (dict(zip(ids, standing(p_values, method), strict=True)) for method in ("bh", "by"))

    def one(verdict: Verdict, among: Mapping[str, bool]) -> bool | None:
        if verdict.verdict not in FINAL:
            return None
        return verdict.verdict != INCONCLUSIVE and among.get(verdict.claim.id, True)

    return [dataclasses.replace(v, stands=one(v, stands), stands_by=one(v, stands_by)) for v in verdicts]


def verdict_frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """claims.parquet: one row per claim."""
    found = pd.DataFrame([v.row() for v in verdicts])
    return found.astype({"stands": "boolean", "stands_by": "boolean"}) if len(found) else found


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


def standing_counts(table: pd.DataFrame, column: str, rows: Iterable[str]) -> list[int]:
    """How many rows are true in a column, for each row of counts()."""
    true = table[table[column].fillna(False).astype(bool)]
    papers = true["paper"][~true["own"]].value_counts()
    sums = papers.to_dict() | {ALL: papers.sum(), OWN: true["own"].sum()}
    return [int(sums.get(row, 0)) for row in rows]
