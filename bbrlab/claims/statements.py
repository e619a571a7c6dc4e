"""What comes of a statement, by what came of its claims: every row of a table and every variant counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.campaign.versions import read_with
from bbrlab.claims.judge import (
    FINAL,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY_RUN,
    REPRODUCED,
    Verdict,
    counts,
    standing_counts,
)
from bbrlab.claims.schema import Statement

PARTLY = "partly reproduced"
DECIDED = (REPRODUCED, PARTLY, NOT_REPRODUCED)
STATEMENT_VERDICTS = (REPRODUCED, PARTLY, NOT_REPRODUCED, INCONCLUSIVE, PARTLY_RUN, NOT_RUN)


def statement_verdict(verdicts: Sequence[str]) -> str:
    """One of STATEMENT_VERDICTS.

    Args:
        verdicts: of the statement's claims (judge.VERDICTS), at least one.
    """
    if all(v == NOT_RUN for v in verdicts):
        return NOT_RUN
    if any(v not in FINAL for v in verdicts):
        return PARTLY_RUN
    good = verdicts.count(REPRODUCED)
    if good:
        return REPRODUCED if good == len(verdicts) else PARTLY
    return NOT_REPRODUCED if NOT_REPRODUCED in verdicts else INCONCLUSIVE


def statements_beside(claims: Path) -> Path:
    """Where the statements' verdicts stand, beside the file of their claims: [NAME.]claims.parquet. UserError for another name."""
    if "claims" not in claims.name:
        raise UserError(f"{claims}: claims stand in a file [NAME.]claims.parquet, and statements beside it; name it so")
    return claims.with_name(claims.name.replace("claims", "statements"))


# The columns of claims.parquet (judge.verdict_frame()) and of statements.parquet (statement_frame()).
CLAIM_COLUMNS = (
    "id", "statement", "paper", "variant", "says", "figures", "metric", "expected", "verdict", "interim", "part", "mean", "low",
    "high", "confidence", "spread", "p", "stands", "stands_by", "seeds", "failed", "without", "points", "points_full", "shorter_s",
    "why", "finding", "shows", "because", "chosen_after", "source", "exactness", "own",
)  # fmt: skip
STATEMENT_COLUMNS = (
    "id", "paper", "says", "verdict", "in_words", "claims", "reproduced", "not_reproduced", "inconclusive", "partly_run", "not_run",
    "stand", "stand_by", "reproduced_stand", "verdict_stands", "interim_reproduced", "interim_not_reproduced",
    "interim_inconclusive", "open", "chosen_after", "finding", "shows", "because", "source", "exactness", "own",
)  # fmt: skip


def read_claims(path: Path) -> pd.DataFrame:
    """A file [NAME.]claims.parquet. UserError naming file and column if one is missing."""
    return read_with(path, CLAIM_COLUMNS)


def read_statements(claims: Path) -> pd.DataFrame:
    """The statements beside a file [NAME.]claims.parquet. UserError naming file and column if one is missing."""
    return read_with(statements_beside(claims), STATEMENT_COLUMNS)


def in_words(verdict: str, claims: Sequence[Verdict]) -> str:
    """The verdict with its counts, and how many of the claims' verdicts that make it stand, unless all do."""
    final = [v for v in claims if v.verdict in FINAL]
    if verdict == PARTLY:
        good = _decisive(claims)
        return f"partly reproduced: {len(good)} of {len(claims)}{_standing(good)}"
    if verdict in DECIDED:
        return f"{verdict}{_standing(_decisive(claims))}"
    if verdict == PARTLY_RUN:
        return (
            f"partly run: {len(final)} of {len(claims)} judged" if len(claims) > 1 else f"partly run: {claims[0].why}"
        )
    return verdict


def _decisive(claims: Sequence[Verdict]) -> list[Verdict]:
    """The claims that make a statement's verdict: those that reproduced; if none did, those that did not."""
    good = [v for v in claims if v.verdict == REPRODUCED]
    return good or [v for v in claims if v.verdict == NOT_REPRODUCED]


def _if_only_what_stands(claims: Sequence[Verdict]) -> list[str]:
    """The claims' verdicts, inconclusive where they do not stand."""
    return [INCONCLUSIVE if v.verdict in FINAL and not v.stands else v.verdict for v in claims]


def _standing(claims: Sequence[Verdict]) -> str:
    """How many of some verdicts stand, unless all do."""
    stand = sum(v.stands is True for v in claims)
    if stand == len(claims):
        return ""
    return " (does not stand)" if len(claims) == 1 else f" ({stand} of {len(claims)} stand)"


def statement_counts(table: pd.DataFrame) -> pd.DataFrame:
    """How many statements of each paper came out how: judge.counts() of statement_frame(); ``stand``: how many of those that
    (partly) reproduced or did not would come out the same by the claims' verdicts that stand alone."""
    found = counts(table, STATEMENT_VERDICTS)
    found["stand"] = standing_counts(table, "verdict_stands", found.index)
    return found


def statement_frame(statements: Iterable[Statement], verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """statements.parquet: one row per statement (docs/reference/results.md).

    Args:
        statements: those of which a verdict on every claim is there.
        verdicts: judge.judge_all().
    """
    by_id = {v.claim.id: v for v in verdicts}
    rows = []
    for statement in statements:
        mine = [by_id[c.id] for c in statement.claims]
        kinds = [v.verdict for v in mine]
        verdict = statement_verdict(kinds)
        interim = [v.interim for v in mine if v.interim]
        rows.append({
            "id": statement.id,
            "paper": statement.paper,
            "says": statement.says,
            "verdict": verdict,
            "in_words": in_words(verdict, mine),
            "claims": len(mine),
            "reproduced": kinds.count(REPRODUCED),
            "not_reproduced": kinds.count(NOT_REPRODUCED),
            "inconclusive": kinds.count(INCONCLUSIVE),
            "partly_run": kinds.count(PARTLY_RUN),
            "not_run": kinds.count(NOT_RUN),
            "stand": sum(v.stands is True for v in mine),
            "stand_by": sum(v.stands_by is True for v in mine),
            "reproduced_stand": sum(v.stands is True for v in mine if v.verdict == REPRODUCED),
            "verdict_stands": verdict in DECIDED and verdict == statement_verdict(_if_only_what_stands(mine)),
            "interim_reproduced": interim.count(REPRODUCED),
            "interim_not_reproduced": interim.count(NOT_REPRODUCED),
            "interim_inconclusive": interim.count(INCONCLUSIVE),
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
