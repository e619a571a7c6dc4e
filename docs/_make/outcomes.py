"""docs/reference/outcomes.md: what reproduces and what does not, statement by statement, by the results that ship."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bbrlab.base import paths
from bbrlab.claims.judge import OWN, SECOND_HAND, apart
from bbrlab.claims.schema import later_choices
from bbrlab.results.best_scale import shipped_claims, shipped_statements
from bbrlab.results.config import FULL
from bbrlab.results.shipped import is_shipped, shipped_figures
from bbrlab.results.verdicts import AS_READ, INCONCLUSIVE, NOT_REPRODUCED, NOT_RUN, PARTLY, PARTLY_RUN, REPRODUCED
from bbrlab.show.verdict_counts import CAUSES, COLUMNS, Line, by_code, cause_table, causes, counted, resting_on, tally
from bbrlab.show.verdicts import settles_text
from docs._make.marks import cell, table
from docs._make.readme import names_of_papers, without_noise

PAGE = paths.ROOT / "docs" / "reference" / "outcomes.md"
# What was chosen in each version after a comparison: told once, at the head.
READINGS = {"BBRv2's readings": later_choices(None, ["bbr2"]), "BBRv3's readings": later_choices(None, ["bbr3"])}
# What does not reproduce comes first.
ORDER = (NOT_REPRODUCED, PARTLY, INCONCLUSIVE, AS_READ, REPRODUCED)
WORST_FIRST = [NOT_REPRODUCED, INCONCLUSIVE, PARTLY_RUN, NOT_RUN, REPRODUCED]
HEADS = ("statement", "verdict", "claims", "measured", "expected", "cause", "scale")
HEAD = """<!-- Made by make format from shipped/; do not edit. -->
# What reproduces and what does not
Every statement of the papers that has a verdict, by the results that ship; in each paper what does not reproduce comes first. The site (`bbrlab site`) adds charts, the interval of every claim and what the models say.
How a verdict is found: [verdicts.md](../explanation/verdicts.md).

A statement is tested by claims, a claim by numbers of runs. The columns:

| column | what it says |
|---|---|
| claims | `8 of 9, 1 not`: of nine claims eight reproduce, one surely does not (the rest is inconclusive). `on 3 measurements`: some claims read the same numbers of the same runs. `cells: 32 of 42`: the statement is on a panel, which its root mean square error decides; 32 of its 42 cells are within their tolerance |
| measured, expected | of one claim: the first that does not reproduce, else the first that is inconclusive, else the first. The mean over the seeds (of an order: of the difference), in brackets its 95 % interval (a wider one if the claim is looked at more than once); of what is inconclusive, how many seeds would tell |
| cause | why it is not, or not wholly, reproduced, with the evidence ([the words](../explanation/verdicts.md#statements)) |
| scale | `full`: all points and trials; `quick`: a part |
| ‡ | some of its runs are earlier ones without noise of hosts ([which figures](measured.md#what-ships); [what they are worth](../explanation/phase.md#what-results-without-noise-are-worth)) |
| † | the verdict rests on something that was chosen after a comparison with measurements: named below the table |

What is not decided yet stands below the table, too. *Again*: the figure ships, but its runs, of an older version, lack a column or points that the statement needs.

Two later choices are named below many tables:

CHOICES

## Whose code
Without the statements at second hand and the lab's own.

"""


def outcomes(folder: Path | None = None) -> str:
    """The page."""
    folder = folder or paths.ROOT / "shipped"
    statements = shipped_statements(folder)
    claims = shipped_claims(statements, folder)
    earlier = resting_on(claims, without_noise(folder))
    whole = frozenset(shipped_figures(folder, FULL)) if is_shipped(folder, FULL) else frozenset()
    said = "\n".join(f"- **{name}**: {_linked(text)}" for name, text in READINGS.items())
    parts = [HEAD.replace("CHOICES", said) + _by_code(counted(statements))]
    for paper, name in names_of_papers().items():
        mine = statements[statements["paper"] == paper]
        if len(mine):
            parts.append(
                _of_paper("Questions of our own" if name == "questions" else name, mine, claims, whole, earlier)
            )
    return "\n".join(parts)


def _by_code(statements: pd.DataFrame) -> str:
    """What came of the statements by whose code they rest on, and where the causes lie."""
    rows = [*by_code(statements), Line("all", statements)]
    lines = table(
        ("", "statements", *COLUMNS), [(row.name, row.number, *tally(row.statements).values()) for row in rows]
    )
    lines += ["", "The cause of those that are partly or not reproduced:", ""]
    of_causes = cause_table(statements)
    numbers_of = [*of_causes["rows"], ("all", causes(statements).values())]
    lines += table(("", *of_causes["heads"]), [(name, *numbers) for name, numbers in numbers_of])
    return "\n".join(lines) + "\n"


def _of_paper(
    name: str, mine: pd.DataFrame, claims: pd.DataFrame, whole: Collection[str], earlier: Collection[str]
) -> str:
    """A paper's table, the choices that it rests on, and what is not decided.

    Args:
        whole: the figures that ship at scale full.
        earlier: the statements that rest on runs without noise of hosts.
    """
    decided = mine[mine["verdict"].isin(ORDER)]
    rows = []
    choices: dict[str, list[str]] = {}
    for verdict in ORDER:
        for row in decided[decided["verdict"] == verdict].to_dict("records"):
            own = claims[claims["statement"] == row["id"]]
            rows.append(_row(row, own, row["id"] in earlier))
            if row["chosen_after"]:
                choices.setdefault(_choice(str(row["chosen_after"])), []).append(str(row["id"]))
    lines = [f"## {name}", *(table(HEADS, rows) if rows else ())]
    if choices:
        lines += ["", "† Later choices:", *(f"- {_cell(text)} ({', '.join(ids)})" for text, ids in choices.items())]
    for verdict, words in (
        (PARTLY_RUN, "Not decided yet, a part was run"),
        (NOT_RUN, "Not decided yet, nothing was run"),
    ):
        waits: dict[str, list[str]] = {}
        for id in mine.loc[mine["verdict"] == verdict, "id"]:
            waits.setdefault(_waits_for(claims[claims["statement"] == id], whole), []).append(f"`{id}`")
        for figures, ids in waits.items():
            lines += ["", f"{words} (waits for {figures}): {', '.join(ids)}."]
    return "\n".join(lines) + "\n"


def _linked(text: str) -> str:
    """Text with the pages that it names as links."""
    return re.sub(r"docs/explanation/(\w+\.md)", r"[\1](../explanation/\1)", text)


def _choice(text: str) -> str:
    """What was chosen after a comparison; what stands at the head by its name."""
    for name, whole in READINGS.items():
        text = text.replace(whole, f"{name}.")
    return text


def _waits_for(own: pd.DataFrame, whole: Collection[str]) -> str:
    """The figures of a statement's claims that are not, or not wholly, run; only if there is no other, those that ship at full but lack something."""
    open_ = own.loc[own["verdict"].isin([NOT_RUN, PARTLY_RUN]), "figures"]
    named = list(dict.fromkeys(figure for names in open_ for figure in str(names).split(", ")))
    return ", ".join([figure for figure in named if figure not in whole] or [f"{figure} again" for figure in named])


def _row(row: Mapping[Any, Any], own: pd.DataFrame, is_earlier: bool) -> tuple[object, ...]:
    """A statement's row; ``is_earlier``: whether it rests on runs without noise of hosts."""
    counted = own[own["role"] == ""]
    decides = counted.iloc[counted["verdict"].map(WORST_FIRST.index).argmin()]
    finding = f"<br>*Found:* {_cell(row['finding'])}" if row["finding"] else ""
    mark = " †" if row["chosen_after"] else ""
    as_read = f": {_cell(row['as_read'])}" if row["as_read"] else ""
    where = {OWN: " (ours)", SECOND_HAND: " (at second hand)"}.get(_apart(row), "")
    says = f"`{row['id']}`{where} {_cell(row['says'])}{finding}"
    verdict = f"{row['verdict']}{as_read}{mark}"
    return (
        says,
        verdict,
        _counts(row, own),
        _measured(decides),
        _expected(row, decides),
        _cause(row),
        f"{row['scale']}{' ‡' if is_earlier else ''}",
    )


def _apart(row: Mapping[Any, Any]) -> str:
    """Where a statement is counted if not among its paper's."""
    return str(apart(pd.DataFrame([row])).iloc[0])


def _counts(row: Mapping[Any, Any], own: pd.DataFrame) -> str:
    """How many claims came out how, on how many measurements, and of a panel how many cells."""
    counts = f"{row['reproduced']} of {row['claims']}"
    counts += f", {row['not_reproduced']} not" if row["not_reproduced"] else ""
    if row["measurements"] < row["claims"]:
        counts += f", on {row['measurements']} measurement{'s' if row['measurements'] > 1 else ''}"
    cells = own[own["role"] == "detail"]["verdict"]
    return counts + (f"; cells: {(cells == REPRODUCED).sum()} of {len(cells)}" if len(cells) else "")


def _cause(row: Mapping[Any, Any]) -> str:
    """Where the cause lies that a statement is not wholly reproduced, with the evidence."""
    if row["verdict"] == REPRODUCED or (row["verdict"] == INCONCLUSIVE and not row["cause"]):
        return ""
    if row["verdict"] == AS_READ and not row["cause"]:
        return CAUSES["open-condition"]
    return CAUSES[str(row["cause"])] + (f": {_cell(row['evidence'])}" if row["evidence"] else "")


def _expected(statement: Mapping[Any, Any], claim: pd.Series) -> str:
    """What is expected of the claim's number; an order in the claim's words, and not in names of columns."""
    if " < " not in str(claim["expected"]):
        return _cell(claim["expected"])
    return "as stated" if claim["says"] == statement["says"] else _cell(claim["says"])


def _part(claim: pd.Series) -> str:
    """Which point decides; without the step of an order, which is in names of columns."""
    return re.sub(r"^.* < .*?(, (?=[^,()]+ [^,()]+(?:, |$))|$)", "", str(claim["part"]))


def _measured(claim: pd.Series) -> str:
    """The claim's number with its interval."""
    mean, low, high = (float(claim[key]) for key in ("mean", "low", "high"))
    if not math.isfinite(mean):
        return ""
    interval = f" ({low:.3g} to {high:.3g})" if math.isfinite(low) and math.isfinite(high) else ""
    settles = settles_text(float(claim["settles"])) if claim["verdict"] == INCONCLUSIVE else ""
    part = f"; {_cell(point)}" if (point := _part(claim)) else ""
    return f"{mean:.3g}{interval}{part}" + (f"; {settles}" if settles else "")


def _cell(text: object) -> str:
    """Text within a table, of which nothing is markup."""
    return cell(text).replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    return {PAGE: outcomes()}
