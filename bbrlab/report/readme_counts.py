"""What README.md says in numbers: ``python -m bbrlab.report.readme_counts`` writes it anew.

How many statements and claims each paper has, and what came of the statements by the results that ship.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pandas as pd

from bbrlab.base import files, paths
from bbrlab.base.words import in_short
from bbrlab.campaign.config import FULL
from bbrlab.campaign.figures import figures_at
from bbrlab.claims.judge import INCONCLUSIVE, NOT_REPRODUCED, NOT_RUN, PARTLY_RUN, REPRODUCED, WIDE
from bbrlab.claims.load import load_statements
from bbrlab.claims.schema import Statement
from bbrlab.claims.statements import PARTLY
from bbrlab.report.known import known_claims, known_statements
from bbrlab.report.shipped import left_out

PAGE = paths.ROOT / "README.md"
# | [Paper](scenarios/FOLDER) | what | statements | claims |
ROW = re.compile(r"^(\| \[([^\]]*)\]\(scenarios/(\w+)\) \| .* \|) \d+ \| \d+ \|$", re.MULTILINE)
UNDECIDED = (NOT_RUN, PARTLY_RUN)
COMPUTED = ("model output", "recomputed")  # exactness of what no paper prints
COLUMNS = (
    "reproduced", "partly, none failed", "partly, more reproduce than fail", "partly, as many fail or more", "not reproduced",
    "inconclusive", "not decided yet",
    "claims of the decided that reproduce", "rest on a later choice",
)  # fmt: skip
BEGIN, END = "<!-- scorecard: made by python -m bbrlab.report.readme_counts -->\n", "<!-- end of the scorecard -->"


def renewed(text: str, statements: Iterable[Statement]) -> str:
    """The page with the numbers of every paper. ValueError if a paper with statements has no row, or a row no statements."""
    of_paper: dict[str, list[Statement]] = {}
    for statement in statements:
        of_paper.setdefault(statement.paper, []).append(statement)
    rows = [found[3] for found in ROW.finditer(text)]
    if sorted(rows) != sorted(of_paper):
        raise ValueError(
            f"the table of counts has rows for {', '.join(rows)}; there are statements of {', '.join(of_paper)}"
        )

    def row(found: re.Match[str]) -> str:
        mine = of_paper[found[3]]
        return f"{found[1]} {len(mine)} | {sum(len(s.claims) for s in mine)} |"

    return ROW.sub(row, text)


def names_of_papers(text: str | None = None) -> dict[str, str]:
    """{folder: the paper's name} in the order of the page's rows.

    Args:
        text: default: README.md's.
    """
    return {found[3]: found[2] for found in ROW.finditer(text or PAGE.read_text(encoding="utf-8"))}


def with_scorecard(text: str, known: pd.DataFrame, claims: pd.DataFrame, missing: Sequence[str]) -> str:
    """The page with what came of the statements.

    Args:
        text: after renewed(): its rows say the papers' names and order.
        known: known.known_statements().
        claims: known.known_claims().
        missing: the figures that do not ship at scale full.

    Raises:
        ValueError: if the page has no place for it, or a paper of the statements no row.
    """
    names = names_of_papers(text)
    if BEGIN not in text or END not in text:
        raise ValueError(f"{PAGE.name} has no place for the scorecard ({BEGIN.strip()} ... {END})")
    if unknown := sorted(set(known["paper"]) - set(names)):
        raise ValueError(f"the table of counts has no row for {unknown[0]}")
    own = known["own"].astype(bool)  # the lab's, not a paper's: counted apart
    papers = [(name, known[~own & (known["paper"] == paper)]) for paper, name in names.items()]
    lines = [
        _in_words(known[~own], claims, missing),
        "",
        f"| paper | {' | '.join(COLUMNS)} |",
        "|---|" + "---|" * len(COLUMNS),
    ]
    for name, mine in [*papers, ("**all**", known[~own]), ("the lab's own, counted apart", known[own])]:
        if len(mine):
            lines.append(f"| {name} | {' | '.join(_cells(mine))} |")
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END, 1)[1]


def _cells(mine: pd.DataFrame) -> list[str]:
    """A row of the scorecard: COLUMNS of some statements."""
    partly = mine["verdict"] == PARTLY
    failed = mine["not_reproduced"] > 0
    mostly = mine["reproduced"] > mine["not_reproduced"]
    decided = _decided(mine)
    counts = [
        (mine["verdict"] == REPRODUCED).sum(),
        (partly & ~failed).sum(),
        (partly & failed & mostly).sum(),
        (partly & failed & ~mostly).sum(),
        (mine["verdict"] == NOT_REPRODUCED).sum(),
        (mine["verdict"] == INCONCLUSIVE).sum(),
        len(mine) - len(decided),
    ]
    of_claims = f"{decided['reproduced'].sum()} of {decided['claims'].sum()}" if len(decided) else ""
    return [str(int(n) or "") for n in counts] + [of_claims, str(_later(decided) or "")]


def _decided(statements: pd.DataFrame) -> pd.DataFrame:
    return statements[~statements["verdict"].isin(UNDECIDED)]


def _later(statements: pd.DataFrame) -> int:
    """How many rest on something that was chosen after a comparison."""
    return int((statements["chosen_after"].fillna("") != "").sum())


def _undecided(count: int, missing: Sequence[str]) -> str:
    """How many statements have no verdict, and why: figures of scale full that do not ship with it."""
    if not count:
        return ""
    total = len(figures_at(FULL, []))
    why = (
        f"{len(missing)} of the {total} figures {'does' if len(missing) == 1 else 'do'} not ship at `full` ({in_short(missing)})"
        if missing
        else "[why](docs/reference/outcomes.md)"
    )
    return f"{'One other is' if count == 1 else f'The other {count} are'} not decided yet: {why}. "


def _in_words(known: pd.DataFrame, claims_known: pd.DataFrame, missing: Sequence[str]) -> str:
    """The sum of the table, in words; `missing`: the figures that do not ship at scale full."""
    decided = _decided(known)
    of_decided = claims_known[claims_known["statement"].isin(decided["id"])]
    wide = int(((of_decided["verdict"] == INCONCLUSIVE) & (of_decided["why"] == WIDE)).sum())
    claims, good, bad = (int(decided[column].sum()) for column in ("claims", "reproduced", "not_reproduced"))
    at_full = int((decided["scale"] == FULL).sum())
    return (
        f"Of {len(known)} statements {len(decided)} have a verdict, {at_full} of them by all points and trials of the scenarios (scale `full`). "
        f"{_undecided(len(known) - len(decided), missing)}Behind the {len(decided)} are {claims:,} claims: "
        f"{good} reproduce, {bad} do not, {claims - good - bad} are inconclusive ({wide} of them scatter so much from seed to seed that the interval is wider than the tolerance). {_later(decided)} of the {len(decided)} rest on a choice that was made after a "
        "comparison with measurements (last column); each names it. "
        f"{int(decided['exactness'].isin(COMPUTED).sum())} compare with what was computed from a paper's data or published code, not with a printed value."
    )


def page() -> str:
    """README.md as it should be."""
    folder = paths.ROOT / "shipped"
    known = known_statements(folder)
    text = renewed(PAGE.read_text(encoding="utf-8"), load_statements())
    return with_scorecard(text, known, known_claims(known, folder), left_out(folder, FULL))


if __name__ == "__main__":
    files.write_text(PAGE, page())
