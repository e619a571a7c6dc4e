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
from bbrlab.claims.inference import ERROR, enough_for, estimate, looks, p_equal, p_values, standing
from bbrlab.claims.measurement import fingerprints, measurement
from bbrlab.claims.sample import Reach, Sample, reach, sample
from bbrlab.claims.schema import PREDICTED, Claim, Expectation
from bbrlab.claims.select import select
from bbrlab.claims.table_facts import TableFacts
from bbrlab.results.figures import Figure
from bbrlab.results.statistics import all_equal
from bbrlab.results.verdicts import (
    CLAIM_COLUMNS,
    FINAL,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY_RUN,
    REPRODUCED,
)

# Rows of counts() below those of the papers.
ALL, SECOND_HAND, OWN = "all", "at second hand", "the lab's own"
# Why there is no interval.
DETERMINISTIC, EQUAL = "deterministic", "equal in every seed"
# Why the seeds leave it open, by that; what is deterministic is never open.
UNDECIDED = {"": "the interval straddles what is expected", EQUAL: "equal in {seeds} seeds: too few to tell"}
WIDE = "the interval is wider than what is expected: the seeds scatter too much to show that it is met"


@dataclass(frozen=True)
class Outcome:
    """What the seeds say of a claim's numbers."""

    verdict: str  # one of FINAL
    mean: float = math.nan  # over the seeds that have a number, of the part that decides; NaN without any
    # low, high: its interval; NaN if there is none
    low: float = math.nan
    high: float = math.nan
    confidence: float = math.nan  # of that interval; NaN if there is none
    part: str = ""  # the label of the part that decides (Sample.labels)
    # The smallest error at which there could be a verdict, at most 1; NaN if nothing was tested: repeats are identical, or too
    # many seeds lack a number
    p: float = math.nan
    # seeds, failed, without: how many there were, of how many a run failed, and how many had no finite number
    seeds: int = 0
    failed: int = 0
    without: int = 0
    spread: str = ""  # DETERMINISTIC, EQUAL or "": why there is no interval
    # Of what is inconclusive, how many seeds would settle it if mean and scatter stay as they are; NaN of others, infinite if the
    # mean is on the limit
    settles: float = math.nan
    set_aside: int = 0  # points without enough runs, on whichever side of what is counted they are
    why: str = ""  # of what is inconclusive, why


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


def outcome(expect: Expectation, measured: Sample, looks: int = 1) -> Outcome:
    """What the seeds say: an intersection-union test over the parts.

    Every part must be as expected, so that each is tested at the whole error (Berger 1982); that one of them is not, at the
    error divided by their number (Bonferroni).

    Args:
        looks: how often there may be a look (looks_at()).
    """
    parts = measured.values.shape[1]
    numbers = [measured.of_part(i) for i in range(parts)]
    means = np.array([float(of_part.mean()) if len(of_part) else math.nan for of_part in numbers])
    low, high = expect.bounds
    distances = np.minimum(means - low, high - means)
    result = Outcome(INCONCLUSIVE, set_aside=measured.set_aside)
    # What lacks too much decides nothing of the others, but leaves the whole open.
    lacking = [i for i in range(parts) if measured.lacks(i) or len(numbers[i]) < 2]
    tested = {i: _part(expect, measured, i, looks) for i in range(parts) if i not in lacking}
    verdict, p, chosen = _tested(list(tested.values()), parts) if tested else (INCONCLUSIVE, math.nan, 0)
    if lacking and verdict != NOT_REPRODUCED:
        worst = max(lacking, key=lambda i: measured.failed[i] + measured.without[i])
        result = _at(result, measured, worst, float(means[worst]))
        return dataclasses.replace(result, why=_too_little(measured, worst, len(numbers[worst])))
    part = list(tested)[chosen]
    mean, chosen_part = float(means[part]), tested[part]
    result = dataclasses.replace(
        _at(result, measured, part, mean), verdict=verdict, p=min(1.0, p), spread=chosen_part.spread
    )
    if chosen_part.back and verdict == NOT_REPRODUCED:
        return dataclasses.replace(
            result, part=measured.back_label, p=math.nan if chosen_part.spread == DETERMINISTIC else result.p
        )
    if verdict == INCONCLUSIVE:
        settles = float(enough_for(numbers[part], float(distances[part]), looks))
        result = dataclasses.replace(
            result, why=UNDECIDED[chosen_part.spread].format(seeds=len(numbers[part])), settles=settles
        )
    if chosen_part.spread:
        return dataclasses.replace(result, p=math.nan if chosen_part.spread == DETERMINISTIC else result.p)
    interval = estimate(numbers[part], looks * (1 if low <= mean <= high else parts))
    if verdict == INCONCLUSIVE and interval.high - interval.low > high - low:
        result = dataclasses.replace(result, why=WIDE)
    return dataclasses.replace(result, low=interval.low, high=interval.high, confidence=interval.confidence)


def _at(result: Outcome, measured: Sample, part: int, mean: float) -> Outcome:
    """An outcome that a part decides."""
    seeds, failed, without = (int(a[part]) for a in (measured.seeds, measured.failed, measured.without))
    return dataclasses.replace(
        result, mean=mean, part=measured.labels[part], seeds=seeds, failed=failed, without=without
    )


def _too_little(measured: Sample, part: int, count: int) -> str:
    """Why the numbers of a part are not judged, in words."""
    lacking = [f"{measured.failed[part]} failed"] if measured.failed[part] else []
    lacking += [f"{measured.without[part]} have no number"] if measured.without[part] else []
    if measured.lacks(part):
        return f"{' and '.join(lacking)} of {measured.seeds[part]} seeds"
    return f"{number_of(count, 'seed')} with a number: two are needed"


def _tested(parts: Sequence[_Part], count: int) -> tuple[str, float, int]:
    """The verdict over the parts that have numbers, of ``count``: the smallest error at which it falls, and the part that it rests on."""
    outside, first = min((p.outside * count, i) for i, p in enumerate(parts))
    if outside <= ERROR:
        return NOT_REPRODUCED, outside, first
    inside, _, last = max((p.inside, -p.distance, i) for i, p in enumerate(parts))
    return REPRODUCED if inside <= ERROR else INCONCLUSIVE, min(inside, outside), last


@dataclass(frozen=True)
class _Part:
    """What the seeds say of one part."""

    # inside, outside: the smallest errors at which it is so
    inside: float
    outside: float
    distance: float  # how far inside its mean is
    spread: str = ""
    back: bool = False  # it is outside for a step against its trend


def _part(expect: Expectation, measured: Sample, part: int, looks: int) -> _Part:
    """One part. A number without chance is inside or outside without error."""
    low, high = expect.bounds
    values, identical = measured.of_part(part), bool(measured.identical[part])
    mean = float(values.mean())
    distance = min(mean - low, high - mean)
    spread = DETERMINISTIC if identical else EQUAL if all_equal(values) else ""
    if spread:
        # Equal numbers farther from the limit than their own smallest step are where they are.
        p = 0.0 if identical or abs(distance) > measured.resolution[part] else p_equal(len(values), looks)
        inside, outside = (p, math.inf) if expect.holds(mean) else (math.inf, p)
    else:
        inside, outside = p_values(values, low, high, looks)
    if expect.trend and (against := 2 * looks * measured.back.p) < outside:
        return _Part(math.inf if against == 0 else inside, against, distance, spread, back=True)
    return _Part(inside, outside, distance, spread)


@dataclass(frozen=True)
class Verdict:
    """What came of a claim."""

    claim: Claim
    verdict: str  # one of VERDICTS
    # What the seeds say; of a claim that was partly run, for the time being; None if it was not run
    outcome: Outcome | None = None
    # points, points_full: how many of its points were run, and how many it has at full
    points: int = 0
    points_full: int = 0
    shorter_s: float | None = None  # length of its shortest run, if shorter than it must be
    # Whether a final verdict is among those that stand when all claims are judged together; None: no verdict
    stands: bool | None = None
    why: str = ""  # what keeps it from a verdict
    measurement: str = ""  # what it reads of the runs (measurement.py); empty if it was not run

    @property
    def interim(self) -> str:
        """The outcome of a claim that was partly run; empty of others."""
        return self.outcome.verdict if self.outcome and self.verdict == PARTLY_RUN else ""

    def row(self) -> dict[str, Any]:
        """One row of claims.parquet (docs/reference/results.md)."""
        claim, outcome = self.claim, self.outcome or Outcome("")
        row = dataclasses.asdict(outcome) | {
            "id": claim.id,
            "statement": claim.statement,
            "paper": claim.paper,
            "variant": claim.variant or "",
            "role": claim.role or "",
            "measurement": self.measurement,
            "says": claim.says,
            "figures": ", ".join(claim.figures),
            "metric": claim.metric or "order",
            "expected": str(claim.expect),
            "verdict": self.verdict,
            "interim": self.interim,
            "stands": self.stands,
            "points": self.points,
            "points_full": self.points_full,
            "shorter_s": math.nan if self.shorter_s is None else self.shorter_s,
            "why": self.why or outcome.why,
            "finding": claim.finding.text if claim.finding else "",
            "shows": claim.finding.shows if claim.finding else "",
            "because": claim.because,
            "chosen_after": claim.later_choices,
            "source": claim.source,
            "exactness": claim.exactness,
            "own": claim.own,
        }
        return {name: row[name] for name in CLAIM_COLUMNS}


def judge_claim(
    claim: Claim,
    figures: Mapping[str, Figure],
    tables: Mapping[str, TableFacts],
    results: Path | None = None,
    unmeasured: Mapping[str, Figure] = MappingProxyType({}),
) -> Verdict:
    """Judge one claim by itself: ``stands`` needs all of them (judge_all()).

    Args:
        figures: the figures of the scale, by id, with the points that their tables have.
        tables: what their tables say, by id; a figure that is missing was not run.
        results: the folder of results that has the models' predictions.
        unmeasured: of figures whose tables lack points that the scale has, the figure with these alone.
    """
    reached = reach(claim, {id: figure for id, figure in figures.items() if id in tables})
    unjudged = Verdict(claim, NOT_RUN, points=reached.have, points_full=reached.full, shorter_s=reached.short_s)
    if reached.why:
        part = f"{reached.have} of {reached.full} points: " if 0 < reached.have < reached.full else ""
        return dataclasses.replace(unjudged, why=part + reached.why + _unmeasured(claim, unmeasured))
    try:
        result = _outcome(claim, reached, len(looks_at(claim, reached, figures)), tables, results)
    except UserError as error:
        return dataclasses.replace(unjudged, why=str(error))
    if result.seeds == 0:
        return dataclasses.replace(unjudged, why="its points share no seed")
    if not reached.final:
        return dataclasses.replace(
            unjudged, verdict=PARTLY_RUN, outcome=result, why=reached.shortfall + _unmeasured(claim, unmeasured)
        )
    return dataclasses.replace(unjudged, verdict=result.verdict, outcome=result)


def _unmeasured(claim: Claim, figures: Mapping[str, Figure]) -> str:
    """How many of a claim's points the scale has and the tables lack, in words; empty if none."""
    lacking = {
        (term.figure, point.label)
        for term in claim.at.values()
        if term.figure in figures
        for point in select(term, figures[term.figure].points)
    }
    return f"; {number_of(len(lacking), 'point')} not measured at this scale yet" if lacking else ""


def _outcome(
    claim: Claim, reached: Reach, looks: int, tables: Mapping[str, TableFacts], results: Path | None
) -> Outcome:
    """What the runs say of a claim. Of one that counts points, those without enough runs decide nothing if it comes out the same
    wherever they are."""
    result = outcome(claim.expect, sample(claim, reached.points, tables, results), looks)
    if result.verdict != INCONCLUSIVE or not claim.counts_points:
        return result
    sides = [outcome(claim.expect, sample(claim, reached.points, tables, results, side), looks) for side in (-1.0, 1.0)]
    if not sides[0].set_aside or {s.verdict for s in sides} not in ({REPRODUCED}, {NOT_REPRODUCED}):
        return result
    # The side that is nearer to the limit, and so the larger p.
    return max(sides, key=lambda s: 0.0 if math.isnan(s.p) else s.p)


def judge_all(
    claims: Iterable[Claim], figures: Iterable[Figure], tables: Mapping[str, pd.DataFrame], results: Path | None = None
) -> list[Verdict]:
    """Judge every claim, and tell which verdicts stand for so many.

    A figure's table may be older than its scenario: a point that it lacks is not measured yet, one that the scenario has not any more
    is no claim's.
    """
    by_id = {f.id: f for f in figures}
    labels = {id: set(table["point"]) for id, table in tables.items()}
    run_figures, unmeasured = (
        {id: _points_of(f, labels.get(id, set()), has) for id, f in by_id.items()} for has in (True, False)
    )
    run_figures = {id: f for id, f in run_figures.items() if f.points}
    unmeasured = {id: f for id, f in unmeasured.items() if f.points and id in tables}
    prints = {id: fingerprints(table) for id, table in tables.items()}
    facts = {id: TableFacts(table) for id, table in tables.items()}
    verdicts = [judge_claim(claim, run_figures, facts, results, unmeasured) for claim in claims]
    return with_standing([
        v if v.verdict == NOT_RUN else dataclasses.replace(v, measurement=measurement(v.claim, run_figures, prints)) for v in verdicts
    ])  # fmt: skip


def _points_of(figure: Figure, labels: Collection[str], among: bool) -> Figure:
    """A figure with those of its points that are, or are not, among some."""
    return dataclasses.replace(figure, points=[p for p in figure.points if (p.label in labels) == among])


def with_standing(verdicts: list[Verdict]) -> list[Verdict]:
    """The verdicts with ``stands``: of a deterministic number always, of an inconclusive one never."""
    tested = [v for v in verdicts if v.verdict in FINAL and v.outcome and v.outcome.spread != DETERMINISTIC]
    # What lacks too many seeds was not tested; it counts among the claims with a p value that shows nothing.
    p_values = [1.0 if math.isnan(v.outcome.p) else v.outcome.p for v in tested if v.outcome]
    stands = dict(zip([v.claim.id for v in tested], standing(p_values), strict=True))

    def one(verdict: Verdict) -> bool | None:
        if verdict.verdict not in FINAL:
            return None
        return verdict.verdict != INCONCLUSIVE and stands.get(verdict.claim.id, True)

    return [dataclasses.replace(v, stands=one(v)) for v in verdicts]


def verdict_frame(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """claims.parquet: one row per claim."""
    table = pd.DataFrame([v.row() for v in verdicts])
    return table.astype({"stands": "boolean"}) if len(table) else table


def counts(table: pd.DataFrame, verdicts: Sequence[str]) -> pd.DataFrame:
    """How many rows of each paper came out how; rows: papers, ALL, and, if there are such, what is counted apart(); columns: the verdicts."""
    where = apart(table)
    of_papers = table[where == ""]
    sums = pd.crosstab(of_papers["paper"], of_papers["verdict"]).reindex(columns=list(verdicts), fill_value=0)
    sums.loc[ALL] = sums.sum()
    for name in (SECOND_HAND, OWN):
        if (where == name).any():
            sums.loc[name] = table["verdict"][where == name].value_counts().reindex(list(verdicts), fill_value=0)
    return sums


def apart(table: pd.DataFrame) -> pd.Series:
    """Of each row (a claim or a statement) where it is counted if not among its paper's: OWN, SECOND_HAND, else empty."""
    second_hand = (table["exactness"] == "secondary").map({True: SECOND_HAND, False: ""})
    return second_hand.mask(table["own"].astype(bool), OWN).astype(str)


def standing_counts(table: pd.DataFrame, rows: Iterable[str]) -> list[int]:
    """How many verdicts stand, for each row of counts()."""
    true = table[table["stands"].fillna(False).astype(bool)]
    where = apart(true)
    papers = true["paper"][where == ""].value_counts()
    sums = papers.to_dict() | {ALL: papers.sum()} | {name: (where == name).sum() for name in (SECOND_HAND, OWN)}
    return [int(sums.get(row, 0)) for row in rows]
