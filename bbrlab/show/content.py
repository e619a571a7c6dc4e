"""What the site shows: the statements of all papers, what came of them, and the tables of the figures that were run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base.errors import UserError
from bbrlab.claims.load import load_statements
from bbrlab.claims.schema import Statement
from bbrlab.measure.schema import METRICS
from bbrlab.results.best_scale import CLAIMS, best_claims, best_statements, counts_of_scales, figures_at_best_scale
from bbrlab.results.config import FULL, command_for
from bbrlab.results.figures import Figure, figures_at
from bbrlab.results.shipped import Shown, older_versions, shown
from bbrlab.results.tables import read_figure
from bbrlab.results.verdicts import (
    CLAIM_COLUMNS,
    NOT_RUN,
    STATEMENT_COLUMNS,
    STATEMENT_VERDICTS,
    VERDICTS,
    read_claims,
    read_statements,
    statements_beside,
)

# Columns of claims.parquet, statements.parquet and the figure tables (docs/reference/results.md) that pages compute with or choose by.
_CLAIM_NUMBERS = ("mean", "low", "high", "confidence", "p", "settles", "set_aside", "seeds", "failed", "without")
_CLAIM_WORDS = ("id", "statement", "verdict", "interim", "part", "spread", "why", "expected", "says", "variant", "role")
_STATEMENT_NUMBERS = ("claims", "reproduced")
_STATEMENT_WORDS = (
    "id",
    "paper",
    "says",
    "verdict",
    "in_words",
    "finding",
    "shows",
    "open",
    "because",
    "chosen_after",
    "code",
    "cause",
    "evidence",
)
_TABLE_NUMBERS = ("seed", "group", "virtual_s", "wall_s")
_TABLE_WORDS = ("point", "cca", "kernel")


@dataclass(frozen=True)
class Content:
    """All that the pages are made of.

    Attributes:
        shown: whose results, and of which scale.
        statements: every statement of data/, run or not, in the files' order.
        figures: {id: figure}, of those with a table; of shipped results each at the largest scale at which it ships.
        tables: {id: collect.figure_table()}.
        of_statements: {id: row of statements.parquet, and its ``scale``}, of those that were judged.
        of_claims: {id of a claim: row of claims.parquet, and its ``scale``}.
        scales: {id of a figure: the scale that it is shown at}.
        older: {id of a figure: which version its runs are of}, of those that ship and are not of the newest of their scale.
    """

    shown: Shown
    statements: Sequence[Statement]
    figures: Mapping[str, Figure]
    tables: Mapping[str, pd.DataFrame]
    of_statements: Mapping[str, Mapping[str, Any]]
    of_claims: Mapping[str, Mapping[str, Any]]
    scales: Mapping[str, str]
    older: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the results of the scale are."""
        return self.shown.results / self.shown.scale

    @cached_property
    def papers(self) -> dict[str, list[Statement]]:
        """{paper: its statements}, all that have any."""
        found: dict[str, list[Statement]] = {}
        for statement in self.statements:
            found.setdefault(statement.paper, []).append(statement)
        return found

    def verdict(self, statement: str) -> str:
        """One of STATEMENT_VERDICTS."""
        row = self.of_statements.get(statement)
        return str(row["verdict"]) if row else NOT_RUN

    def code(self, statement: str) -> str:
        """Whose code a statement rests on (claims.code.CODES); empty if it was not judged."""
        return str((self.of_statements.get(statement) or {}).get("code", ""))

    def cause(self, statement: str) -> str:
        """Where the cause lies that a statement is not wholly reproduced (a key of causes.CAUSES)."""
        return str((self.of_statements.get(statement) or {}).get("cause", ""))

    @cached_property
    def _of_scale(self) -> frozenset[str]:
        return frozenset(f.id for f in figures_at(self.shown.scale, []))

    def command(self, figure: str) -> str:
        """What runs a figure (PAPER/FIGURE) and no other: at the scale that it is shown at, or, where that leaves the figure out, whole."""
        return command_for(figure, self.scales.get(figure, self.shown.scale if figure in self._of_scale else FULL))

    def counts_of_scales(self, figures: Iterable[Figure]) -> dict[str, int]:
        """{scale: how many of these figures are shown at it}, the smallest first."""
        return counts_of_scales(self.scales[figure.id] for figure in figures)

    def counts(self, statements: Sequence[Statement]) -> dict[str, int]:
        """{verdict: how many of some statements have it}, in the order of STATEMENT_VERDICTS."""
        mine = [self.verdict(s.id) for s in statements]
        return {verdict: mine.count(verdict) for verdict in STATEMENT_VERDICTS}


def shown_on_site(scale: str) -> Shown:
    """What a site shows of a scale: one's own results if they are of a whole campaign, else those that ship (shown())."""
    return shown(scale, needs=CLAIMS)


def read_content(scale: str, results: Path | None = None) -> Content:
    """What there is to show of a scale: one's own results, else those that ship.

    Args:
        results: a folder to take it from and no other.

    Raises:
        UserError: if there is nothing, or naming the file of ours that is not as it must be.
    """
    which = Shown(results, scale, False, "") if results else shown_on_site(scale)
    known = figures_at_best_scale(which)
    if not known:
        raise UserError(
            f"{which.results / which.scale}: nothing was run at this scale, nor ships; run: {command_for('all', which.scale)}"
        )
    scales = {id: scale for id, (scale, _) in known.items()}
    judged = {scale: _judged(which.results / scale) for scale in which.scales}
    statements = best_statements({scale: table for scale, (_, table) in judged.items()})
    claims = best_claims(statements, {scale: table for scale, (table, _) in judged.items()})
    paths_of = {id: which.results / at / f"{id}.parquet" for id, at in scales.items()}
    tables = {
        id: checked(read_figure(path), path, _TABLE_NUMBERS, _TABLE_WORDS, METRICS) for id, path in paths_of.items()
    }
    return Content(
        which,
        load_statements(known_good=True),
        {id: figure for id, (_, figure) in known.items()},
        tables,
        _rows(statements),
        _rows(claims),
        scales,
        _older(which, scales),
    )


def _older(which: Shown, scales: Mapping[str, str]) -> dict[str, str]:
    """Content.older."""
    if not which.shipped:
        return {}
    found: dict[str, list[str]] = {}
    for scale in which.scales:
        mine = [id for id, at in scales.items() if at == scale]
        for words, ids in older_versions(which.results, scale, mine).items():
            for id in ids:
                found.setdefault(id, []).append(words)
    return {id: "; ".join(words) for id, words in found.items()}


def _judged(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The claims and the statements. Of a campaign of some papers alone there are theirs."""
    whole = folder / CLAIMS
    claims, statements = [pd.DataFrame(columns=CLAIM_COLUMNS)], [pd.DataFrame(columns=STATEMENT_COLUMNS)]
    for path in [whole] if whole.exists() else sorted(folder.glob(f"*.{CLAIMS}")):
        beside = statements_beside(path)
        claims.append(_known_verdicts(checked(read_claims(path), path, _CLAIM_NUMBERS, _CLAIM_WORDS), path, VERDICTS))
        statements.append(
            _known_verdicts(
                checked(read_statements(path), beside, _STATEMENT_NUMBERS, _STATEMENT_WORDS), beside, STATEMENT_VERDICTS
            )
        )
    return _each_once(claims), _each_once(statements)


def _each_once(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    there = [part for part in parts if len(part)] or parts[:1]
    return pd.concat(there, ignore_index=True).drop_duplicates("id", keep="last")


def _known_verdicts(table: pd.DataFrame, path: Path, verdicts: Sequence[str]) -> pd.DataFrame:
    if unknown := sorted(set(table["verdict"]) - set(verdicts)):
        raise _wrong(path, f"verdict: there is no verdict {str(unknown[0])[:40]!r}")
    return table


def _rows(table: pd.DataFrame) -> dict[str, Mapping[str, Any]]:
    return {str(row["id"]): {str(k): v for k, v in row.items()} for row in table.to_dict(orient="records")}


def checked(
    table: pd.DataFrame, path: Path, numbers: Sequence[str], words: Sequence[str], metrics: Mapping[str, Any] | None = None
) -> pd.DataFrame:  # fmt: skip
    """The table, if the columns that pages use are there and hold what they should.

    Args:
        numbers, words: columns that must be there.
        metrics: columns of numbers that may be there.

    Raises:
        UserError: naming file and column.
    """
    for column in (*numbers, *words):
        if column not in table:
            raise _wrong(path, f"has no column {column}")
    for column in (*numbers, *(name for name in metrics or () if name in table)):
        if not pd.api.types.is_numeric_dtype(table[column]) and table[column].notna().any():
            raise _wrong(path, f"column {column} holds {table[column].dtype}, not numbers")
    for column in words:
        if not all(isinstance(value, str) for value in table[column]):
            raise _wrong(path, f"column {column} holds {table[column].dtype}, not text")
    return table


def _wrong(path: Path, problem: str) -> UserError:
    return UserError(
        f"{path}: {problem}; was it made by another version of bbrlab? Delete it, and snakemake makes it anew"
    )
