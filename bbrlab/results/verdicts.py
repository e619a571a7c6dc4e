"""Verdicts and the files that hold them: [PAPER.]claims.parquet and, beside it, [PAPER.]statements.parquet."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.results.schema import check_values, other_version_error, read_with

REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE = "reproduced", "not reproduced", "inconclusive"
PARTLY_RUN, NOT_RUN = "partly run", "not run"
FINAL = (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE)
VERDICTS = (*FINAL, PARTLY_RUN, NOT_RUN)
AS_READ, PARTLY = "reproduced as read", "partly reproduced"
DECIDED = (REPRODUCED, AS_READ, PARTLY, NOT_REPRODUCED)
STATEMENT_VERDICTS = (REPRODUCED, AS_READ, PARTLY, NOT_REPRODUCED, INCONCLUSIVE, PARTLY_RUN, NOT_RUN)
# The columns of claims.parquet (judge.verdict_frame()) and of statements.parquet (statement_frame()).
CLAIM_COLUMNS = (
    "id", "statement", "paper", "variant", "role", "measurement", "says", "figures", "metric", "expected", "verdict", "interim", "part",
    "mean", "low", "high", "confidence", "spread", "p", "settles", "set_aside", "stands", "seeds", "failed", "without", "points",
    "points_full", "shorter_s", "why", "finding", "shows", "because", "chosen_after", "source", "exactness", "own",
)  # fmt: skip
STATEMENT_COLUMNS = (
    "id", "paper", "says", "verdict", "in_words", "as_read", "claims", "measurements", "copies", "reproduced", "not_reproduced",
    "inconclusive", "partly_run", "not_run", "interim_reproduced", "interim_not_reproduced", "interim_inconclusive", "code", "cause",
    "evidence", "open", "chosen_after", "finding", "shows", "because", "source", "exactness", "own",
)  # fmt: skip
# Columns of numbers, and of booleans; all others are text.
_NUMBERS = (
    "mean", "low", "high", "confidence", "p", "settles", "set_aside", "seeds", "failed", "without", "points", "points_full", "shorter_s",
    "claims", "measurements", "copies", "reproduced", "not_reproduced", "inconclusive", "partly_run", "not_run", "interim_reproduced",
    "interim_not_reproduced", "interim_inconclusive",
)  # fmt: skip
_NOT_TEXT = {*_NUMBERS, "stands", "own"}


def statements_beside(claims: Path) -> Path:
    """The path of the statements' verdicts, beside their claims' [NAME.]claims.parquet. UserError for another name."""
    if "claims" not in claims.name:
        raise UserError(f"{claims}: claims stand in a file [NAME.]claims.parquet, and statements beside it; name it so")
    return claims.with_name(claims.name.replace("claims", "statements"))


def read_claims(path: Path) -> pd.DataFrame:
    """A file [NAME.]claims.parquet. UserError naming file and column if a column is missing or has invalid values."""
    return _checked(path, CLAIM_COLUMNS, VERDICTS)


def read_statements(claims: Path) -> pd.DataFrame:
    """The statements beside a file [NAME.]claims.parquet. UserError as in read_claims()."""
    return _checked(statements_beside(claims), STATEMENT_COLUMNS, STATEMENT_VERDICTS)


def _checked(path: Path, columns: tuple[str, ...], verdicts: tuple[str, ...]) -> pd.DataFrame:
    table = read_with(path, columns)
    check_values(path, table, words=[c for c in columns if c not in _NOT_TEXT], numbers=_NUMBERS)
    if unknown := sorted(set(table["verdict"]) - set(verdicts)):
        raise other_version_error(path, f"column verdict: there is no verdict {unknown[0][:40]!r}")
    return table
