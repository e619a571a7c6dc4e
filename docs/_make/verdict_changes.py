"""docs/development/verdict_changes.md: every statement whose verdict is another than before, with the reason.

From data/verdict_changes.yaml and the results that ship.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import Field

from bbrlab.base import paths
from bbrlab.base.strict import Strict, read_model
from bbrlab.results.best_scale import shipped_statements
from bbrlab.results.verdicts import AS_READ, INCONCLUSIVE, NOT_REPRODUCED, NOT_RUN, PARTLY, PARTLY_RUN, REPRODUCED
from docs._make.marks import cell, table

PAGE = paths.ROOT / "docs" / "development" / "verdict_changes.md"
FILE = paths.DATA / "verdict_changes.yaml"
WORST_FIRST = (NOT_REPRODUCED, INCONCLUSIVE, PARTLY, AS_READ, REPRODUCED)
UNDECIDED = (PARTLY_RUN, NOT_RUN)
NEW, GONE = "is new", "is gone"
MANY = 4  # statements with one reason: it is told once, and has a number
HEAD = """<!-- Made by make format from data/verdict_changes.yaml and shipped/; do not edit. -->
# Verdicts before and after
How verdicts changed since commit {commit} (scale `{scale}`), and why. The rules of [verdicts.md](../explanation/verdicts.md) were written before any verdict was made again. Now: the results that ship,
each statement at the largest scale that decides it. What got worse comes first.

- **rules**: how a statement is judged. **conditions**: what is run, where the paper leaves it open or says otherwise. **claims**: what the statement is tested by. **algorithm**: the lab's BBRv2 or
  BBRv3. **noise**: hosts' processing times and RTTs drawn by the seed. **seeds**: more or other seeds.
"""


class Reason(Strict):
    """Why some verdicts are others now."""

    kind: Literal["rules", "conditions", "claims", "algorithm", "noise", "seeds"]
    reason: str = Field(min_length=10)
    statements: list[str] = Field(min_length=1)


class Changes(Strict):
    """data/verdict_changes.yaml."""

    # commit, scale: of the results before
    commit: str
    scale: str
    before: dict[str, str]  # {statement: its verdict in words}
    reasons: list[Reason]

    def why(self, statement: str) -> str:
        """The reasons of a statement, in words."""
        return "; ".join(f"**{r.kind}**: {r.reason}" for r in self.reasons if statement in r.statements)

    def shared(self) -> dict[str, str]:
        """{a reason that many statements have, in words: its number}."""
        many = [f"**{r.kind}**: {r.reason}" for r in self.reasons if len(r.statements) >= MANY]
        return {words: f"reason {number}" for number, words in enumerate(many, 1)}


def read_changes(path: Path = FILE) -> Changes:
    """The file. UserError naming file and field if it is not as it should be."""
    return read_model(path, Changes)


def verdict_of(words: str) -> str:
    """The verdict that words of statements.parquet (in_words) begin with."""
    known = (*WORST_FIRST, *UNDECIDED)
    return next(v for v in sorted(known, key=len, reverse=True) if words.startswith(v))


def changed(changes: Changes, now: pd.DataFrame) -> pd.DataFrame:
    """The statements whose verdict differs, or how much of them holds for a reason that is given: id, before and now (in words),
    better (1, 0: not comparable, -1), same (whether the verdict is), why.

    Args:
        now: best_scale.shipped_statements() with in_words and scale.
    """
    rows = []
    after = {str(row["id"]): row for row in now.to_dict("records")}
    for id in dict.fromkeys([*changes.before, *after]):
        old, new = changes.before.get(id), after.get(id)
        verdicts = [verdict_of(old) if old else NEW, str(new["verdict"]) if new else GONE]
        why, same = changes.why(id), verdicts[0] == verdicts[1]
        if same and (not new or not why or str(new["in_words"]) == old):
            continue
        ranks = [WORST_FIRST.index(v) if v in WORST_FIRST else None for v in verdicts]
        better = 0 if same or None in ranks else 1 if ranks[1] > ranks[0] else -1  # type: ignore[operator]
        told = f"{new['in_words']} ({new['scale']})" if new else GONE
        rows.append({"id": id, "before": old or NEW, "now": told, "better": better, "same": same, "why": why})
    return pd.DataFrame(rows, columns=["id", "before", "now", "better", "same", "why"])


def page(folder: Path | None = None) -> str:
    """The page."""
    changes = read_changes()
    now = shipped_statements(folder or paths.ROOT / "shipped")
    everything = changed(changes, now)
    found = everything[~everything["same"]]
    same = len(set(changes.before) & set(now["id"])) - int(
        (~found["before"].isin([NEW]) & (found["now"] != GONE)).sum()
    )
    parts = [HEAD.format(commit=changes.commit, scale=changes.scale)]
    parts.append(f"{same} of {len(changes.before)} verdicts are the same as before.\n")
    shared = changes.shared()
    parts.append("Reasons that many statements have, to which the tables point:\n")
    parts.append("\n".join(f"{number}. {cell(words)}" for number, words in enumerate(shared, 1)) + "\n")
    for title, mine in (
        ("Worse", found[found["better"] < 0]),
        ("Better", found[found["better"] > 0]),
        ("New, gone, or not decided on one side", found[found["better"] == 0]),
        ("The same verdict, by other claims or rules", everything[everything["same"]]),
    ):
        rows = []
        for r in mine.itertuples():
            why = str(r.why)
            for words, number in shared.items():
                why = why.replace(words, number)
            rows.append((f"`{r.id}`", r.before, cell(r.now), cell(why)))
        lines = [f"## {title} ({len(mine)})", *table(("statement", "before", "now", "why"), rows)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    return {PAGE: page()}
