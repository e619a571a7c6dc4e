"""How many statements and claims came out how, whose code they rest on, and where the causes lie: counted and worded here for every view.

A table of statements is statements.parquet's, or any with its columns best_scale.COUNTED_BY.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bbrlab.claims.code import CODES, LAB, LINUX, MODEL
from bbrlab.claims.judge import OWN, SECOND_HAND, apart
from bbrlab.results.verdicts import (
    AS_READ,
    DECIDED,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY,
    PARTLY_RUN,
    REPRODUCED,
    STATEMENT_VERDICTS,
)

# "Partly reproduced" in three steps, by how many of the judged claims reproduced.
MOSTLY, HALF, HARDLY = "mostly reproduced", "half reproduced", "hardly reproduced"
_MOST, _FEW = 2 / 3, 1 / 3
STEPS = (REPRODUCED, AS_READ, MOSTLY, HALF, HARDLY, NOT_REPRODUCED, INCONCLUSIVE, PARTLY_RUN, NOT_RUN)

NOT_LOOKED_INTO = "not looked into"
# Kinds of causes (claims.yaml) in words.
CAUSES = {
    "paper": "the paper",
    "open-condition": "an open condition",
    "algorithm": "the lab's BBRv2 or BBRv3",
    "environment": "the lab",
    "unknown": "not known",
    "": NOT_LOOKED_INTO,
}
OPEN = (INCONCLUSIVE, PARTLY_RUN, NOT_RUN)
# Columns of a scorecard: what a reader sees, and the verdicts that it counts.
COLUMNS = {
    "reproduced": (REPRODUCED,),
    "as read": (AS_READ,),
    "partly": (PARTLY,),
    "not": (NOT_REPRODUCED,),
    "open": OPEN,
}
MISSED = (PARTLY, NOT_REPRODUCED)
RESTING_ON = {
    LINUX: "resting on Linux's own BBRv1, CUBIC and Reno",
    LAB: "resting on the lab's BBRv2 or BBRv3",
    MODEL: "resting on a model, no run",
}


def by_verdict(statements: pd.DataFrame) -> dict[str, int]:
    """How many statements came out how: {verdict: number}, all of them, in their order."""
    counts = statements["verdict"].value_counts()
    return {verdict: int(counts.get(verdict, 0)) for verdict in STATEMENT_VERDICTS}


def step(verdict: str, reproduced: int, judged: int) -> str:
    """One of STEPS: a statement's verdict, that of what is partly reproduced by the share of its judged claims that are."""
    if verdict != PARTLY or not judged:
        return verdict
    share = reproduced / judged
    return MOSTLY if share >= _MOST else HARDLY if share <= _FEW else HALF


def by_step(statements: pd.DataFrame) -> dict[str, int]:
    """How many statements are at which step (column ``step``): {one of STEPS: number}, all of them, in their order."""
    counts = statements["step"].value_counts()
    return {name: int(counts.get(name, 0)) for name in STEPS}


def tally(statements: pd.DataFrame) -> dict[str, int]:
    """The same by what a scorecard has: {one of COLUMNS: number}."""
    counts = by_verdict(statements)
    return {name: sum(counts[verdict] for verdict in verdicts) for name, verdicts in COLUMNS.items()}


def counted(statements: pd.DataFrame) -> pd.DataFrame:
    """The statements of papers, without those that are counted apart."""
    return statements[apart(statements) == ""]


def outcome_words(statements: pd.DataFrame) -> str:
    """How many statements of papers are decided, and how; behind them those that are counted apart (Markdown)."""
    where = apart(statements)
    counts = by_verdict(statements[where == ""])
    total, decided = sum(counts.values()), sum(counts[verdict] for verdict in DECIDED)
    if decided:
        words = f"Of **{total}** statements **{decided}** are decided: {_listed(counts, DECIDED)}."
        if undecided := _listed(counts, OPEN):
            words += f" Not decided: {undecided}."
    elif len(statements) and not total:
        words = ""
    else:
        words = f"None of the **{total}** statements is decided yet: that needs more runs, or longer ones."
    for name in (SECOND_HAND, OWN):
        if (where == name).any():
            listed = ", ".join(f"{n} {v}" for v, n in by_verdict(statements[where == name]).items() if n)
            words += f" (And {name}: {listed}.)" if words else f"Counted apart, {name}: {listed}."
    return words


def resting_on(claims: pd.DataFrame, figures: Mapping[str, Collection[str]]) -> set[str]:
    """The statements of which some claim that counts reads some figures.

    Args:
        claims: best_scale.best_claims().
        figures: {scale: figures}.
    """
    counting = claims.loc[claims["role"] == "", ["statement", "scale", "figures"]].astype(str).to_numpy()
    return {name for name, scale, of in counting if set(of.split(", ")) & set(figures.get(scale, ()))}


def noise_words(statements: pd.DataFrame, claims: pd.DataFrame, figures: Mapping[str, Collection[str]]) -> str:
    """How many of the decided statements of papers rest on runs of versions without noise of hosts (Markdown); empty if none does.

    Args:
        claims: best_scale.best_claims().
        figures: {scale: the figures with such runs} (shipped.figures_without_noise()).
    """
    if not any(figures.values()):
        return ""
    resting = resting_on(claims, figures)
    decided = counted(statements)[lambda table: table["verdict"].isin(DECIDED)]
    older = decided[decided["id"].isin(resting)]
    if older.empty:
        return ""
    lab = int((older["code"] == LAB).sum())
    words = (
        f"**{len(older)} of the {len(decided)} decided rest wholly or partly on earlier runs, without noise of hosts**"
    )
    which = "all" if lab == len(older) else str(lab)
    return words + (
        f"; {which} of these have flows of the lab's BBRv2 or BBRv3, whose code has been changed since." if lab else "."
    )


def _listed(counts: Mapping[str, int], verdicts: Sequence[str]) -> str:
    """Those that there are; of reproduced ones also that there is none."""
    return ", ".join(f"**{counts[v]}** {v}" for v in verdicts if counts[v] or v == REPRODUCED)


@dataclass(frozen=True)
class Line:
    """A line of a scorecard: the statements of a paper, of a kind, or of all papers. ``paper``: whose; else empty."""

    name: str
    statements: pd.DataFrame
    paper: str = ""

    @property
    def number(self) -> int:
        """How many statements."""
        return len(self.statements)

    @property
    def counts(self) -> dict[str, int]:
        """by_step()."""
        return by_step(self.statements)


def score_lines(statements: pd.DataFrame, papers: Mapping[str, str]) -> list[Line]:
    """A scorecard's lines: each paper, whose code they rest on, and what is counted apart; lines without a statement are left out."""
    where, of_papers = apart(statements), counted(statements)
    lines = [Line(name, of_papers[of_papers["paper"] == paper], paper) for paper, name in papers.items()]
    lines += by_code(of_papers)
    lines += [Line(f"{name}, counted apart", statements[where == name]) for name in (SECOND_HAND, OWN)]
    return [line for line in lines if line.number]


def by_code(statements: pd.DataFrame) -> list[Line]:
    """The statements by whose code they rest on; without those of which there are none."""
    lines = [Line(RESTING_ON[code], statements[statements["code"] == code]) for code in CODES]
    return [line for line in lines if line.number]


def causes(statements: pd.DataFrame) -> dict[str, int]:
    """Of the statements that are partly or not reproduced: {one of CAUSES in words: how many}."""
    missed = statements[statements["verdict"].isin(MISSED)]["cause"]
    return {words: int((missed == kind).sum()) for kind, words in CAUSES.items()}


def cause_table(statements: pd.DataFrame) -> dict[str, Any]:
    """causes() by whose code the statements rest on: ``heads``, and ``rows`` of a name and numbers (none where nothing missed)."""
    rows = [
        (line.name, numbers) for line in by_code(statements) if any(numbers := list(causes(line.statements).values()))
    ]
    return {"heads": list(CAUSES.values()), "rows": rows}
