"""What comes of a statement, by what came of its claims, reading by reading (docs/explanation/verdicts.md, "Statements")."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from bbrlab.claims.code import code_of
from bbrlab.claims.inference import ERROR, kept_by_holm
from bbrlab.claims.judge import Verdict, counts, judge_all, verdict_frame, with_standing
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.schema import Statement
from bbrlab.results.figures import figures_at
from bbrlab.results.verdicts import (
    AS_READ,
    FINAL,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY,
    PARTLY_RUN,
    REPRODUCED,
    STATEMENT_VERDICTS,
)


@dataclass(frozen=True)
class Judgement:
    """What came of a statement."""

    verdict: str  # one of STATEMENT_VERDICTS
    as_read: tuple[str, ...]  # of AS_READ, the readings that reproduce
    claims: Sequence[Verdict]  # those that count: no controls, no details, no copies
    copies: int  # how many more ask the same of the same numbers
    # Claims with a verdict that the statement's error rate does not keep (Holm): they count as inconclusive
    unsure: frozenset[str] = frozenset()

    @property
    def measurements(self) -> int:
        """How many measurements the claims are of; one that was not run counts by itself."""
        return len({v.measurement or v.claim.id for v in self.claims})

    def count(self, verdict: str) -> int:
        """How many of the claims count so."""
        return sum((INCONCLUSIVE if v.claim.id in self.unsure else v.verdict) == verdict for v in self.claims)

    @property
    def in_words(self) -> str:
        """The verdict with its counts."""
        of = f"{len(self.claims)} claims"
        if self.measurements < len(self.claims):
            of += f" on {self.measurements} measurement{'s' if self.measurements > 1 else ''}"
        if self.verdict == AS_READ:
            return f"{AS_READ}: {'; '.join(self.as_read)}"
        if self.verdict == PARTLY:
            return f"{PARTLY}: {self.count(REPRODUCED)} of {of}"
        if self.verdict == PARTLY_RUN:
            final = sum(v.verdict in FINAL for v in self.claims)
            return (
                f"{PARTLY_RUN}: {final} of {of} judged"
                if len(self.claims) > 1
                else f"{PARTLY_RUN}: {self.claims[0].why}"
            )
        return self.verdict


def judgement(verdicts: Sequence[Verdict]) -> Judgement:
    """What comes of a statement.

    Args:
        verdicts: of all its claims, one at least without a role.
    """
    counted = [v for v in verdicts if not v.claim.role]
    claims = _without_copies(counted)
    sure = {v.claim.id for v, kept in zip(claims, kept_by_holm([_p(v) for v in claims]), strict=True) if kept}
    verdict, as_read = _verdict(claims, sure)
    by_holm = verdict in (PARTLY, NOT_REPRODUCED, INCONCLUSIVE)
    unsure = frozenset(v.claim.id for v in claims if by_holm and v.verdict in FINAL and v.claim.id not in sure)
    return Judgement(verdict, as_read, claims, len(counted) - len(claims), unsure)


def _without_copies(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The first of those that ask the same of the same numbers, in one reading."""
    first: dict[object, Verdict] = {}
    for verdict in verdicts:
        claim, outcome = verdict.claim, verdict.outcome
        same: object = claim.id
        if verdict.measurement and outcome and verdict.verdict in FINAL:
            number = None if math.isnan(outcome.mean) else (outcome.mean, str(outcome.low), str(outcome.high))
            same = (
                verdict.measurement,
                claim.variant,
                claim.expect.bounds,
                claim.metric,
                str(claim.expect.order),
                number,
            )
        first.setdefault(same, verdict)
    return list(first.values())


def _verdict(claims: Sequence[Verdict], sure: Set[str]) -> tuple[str, tuple[str, ...]]:
    """The verdict, and of AS_READ the readings, where Holm's procedure keeps the claims that are ``sure``."""
    if all(v.verdict == NOT_RUN for v in claims):
        return NOT_RUN, ()
    if any(v.verdict not in FINAL for v in claims):
        return PARTLY_RUN, ()
    if all(v.verdict == REPRODUCED for v in claims):
        return REPRODUCED, ()
    names = dict.fromkeys(v.claim.variant for v in claims if v.claim.variant)
    readings = {name: [v for v in claims if v.claim.variant in (name, None)] for name in names} or {"": list(claims)}
    # One of several readings may be chosen: each is tested with its part of the error.
    limit = ERROR / len(readings)
    as_read = tuple(
        name
        for name, of_reading in readings.items()
        if all(v.verdict == REPRODUCED and _p(v) <= limit for v in of_reading)
    )
    if as_read:
        return AS_READ, as_read
    if any(v.verdict == REPRODUCED and v.claim.id in sure for v in claims):
        return PARTLY, ()
    fails = all(
        any(v.verdict == NOT_REPRODUCED and v.claim.id in sure for v in of_reading) for of_reading in readings.values()
    )
    return NOT_REPRODUCED if fails else INCONCLUSIVE, ()


def _p(verdict: Verdict) -> float:
    """The p value of a claim's verdict; 1 if there is none, 0 if there is no chance in the number."""
    if verdict.verdict not in (REPRODUCED, NOT_REPRODUCED):
        return 1.0
    p = verdict.outcome.p if verdict.outcome else math.nan
    return 0.0 if math.isnan(p) else p


def statement_counts(table: pd.DataFrame) -> pd.DataFrame:
    """How many statements of each paper came out how: judge.counts() of statement_frame()."""
    return counts(table, STATEMENT_VERDICTS)


def statement_frame(statements: Iterable[Statement], verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """statements.parquet: one row per statement (docs/reference/results.md).

    Args:
        statements: those of which a verdict on every claim is there.
        verdicts: judge.judge_all().
    """
    by_id = {v.claim.id: v for v in verdicts}
    rows = []
    for statement in statements:
        result = judgement([by_id[c.id] for c in statement.claims])
        interim = [v.interim for v in result.claims if v.interim]
        rows.append({
            "id": statement.id,
            "paper": statement.paper,
            "says": statement.says,
            "verdict": result.verdict,
            "in_words": result.in_words,
            "as_read": "; ".join(result.as_read),
            "claims": len(result.claims),
            "measurements": result.measurements,
            "copies": result.copies,
            "reproduced": result.count(REPRODUCED),
            "not_reproduced": result.count(NOT_REPRODUCED),
            "inconclusive": result.count(INCONCLUSIVE),
            "partly_run": result.count(PARTLY_RUN),
            "not_run": result.count(NOT_RUN),
            "interim_reproduced": interim.count(REPRODUCED),
            "interim_not_reproduced": interim.count(NOT_REPRODUCED),
            "interim_inconclusive": interim.count(INCONCLUSIVE),
            "code": code_of(statement),
            "cause": statement.cause.kind if statement.cause else "",
            "evidence": statement.cause.evidence if statement.cause else "",
            "open": statement.open or "",
            "chosen_after": statement.later_choices,
            "finding": statement.finding.text if statement.finding else "",
            "shows": statement.finding.shows if statement.finding else "",
            "because": statement.because or "",
            "source": statement.source,
            "exactness": statement.exactness,
            "own": statement.own,
        })  # fmt: skip
    return pd.DataFrame(rows)


def verdict_tables(
    tables: Mapping[str, pd.DataFrame], scale: str, only: bool = False, results: Path | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The verdicts on the claims of data/, and on their statements.

    Args:
        tables: {figure: its table at that scale}.
        only: statements of which these figures alone can judge a claim, in place of all.
        results: where the models' predictions are; default: the results folder.

    Returns:
        judge.verdict_frame() and statement_frame(): what claims.parquet and statements.parquet hold.
    """
    chosen = [
        s for s in load_statements(known_good=True) if not only or any(set(c.figures) <= set(tables) for c in s.claims)
    ]
    verdicts = judge_all(claims_of(chosen), figures_at(scale, list(tables)), tables, results)
    return verdict_frame(verdicts), statement_frame(chosen, verdicts)


def verdict_tables_by_file(
    tables: Mapping[str, pd.DataFrame], scale: str, results: Path | None = None
) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """verdict_tables() of a whole scale and of each of its papers: all files of verdicts that a campaign has.

    A claim is judged once for all files in which it has the same figures; which verdicts stand among how many is a file's own.

    Yields:
        What stands before claims.parquet and statements.parquet ("", then "PAPER." of each paper), and what the two hold.
    """
    statements = load_statements(known_good=True)
    verdicts = judge_all(claims_of(statements), figures_at(scale, list(tables)), tables, results)
    yield "", verdict_frame(verdicts), statement_frame(statements, verdicts)
    for paper in dict.fromkeys(id.split("/")[0] for id in tables):
        of_paper = {id: table for id, table in tables.items() if id.split("/")[0] == paper}
        chosen = [s for s in statements if any(set(c.figures) <= set(of_paper) for c in s.claims)]
        by_id = {v.claim.id: v for v in verdicts if set(v.claim.figures) & set(tables) <= set(of_paper)}
        others = [c for c in claims_of(chosen) if c.id not in by_id]
        by_id |= {v.claim.id: v for v in judge_all(others, figures_at(scale, list(of_paper)), of_paper, results)}
        of_file = with_standing([by_id[c.id] for c in claims_of(chosen)])
        yield f"{paper}.", verdict_frame(of_file), statement_frame(chosen, of_file)
