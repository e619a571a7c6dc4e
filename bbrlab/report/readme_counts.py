"""What README.md says in numbers: ``python -m bbrlab.report.readme_counts`` writes it anew.

How many statements and claims each paper has, and what came of the statements by the results that ship.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from bbrlab.base import files, paths
from bbrlab.campaign.config import FULL
from bbrlab.claims.judge import NOT_RUN, PARTLY_RUN
from bbrlab.claims.load import load_statements
from bbrlab.claims.schema import Statement
from bbrlab.claims.statements import STATEMENT_VERDICTS
from bbrlab.report.known import known_statements

PAGE = paths.ROOT / "README.md"
# | [Paper](scenarios/FOLDER) | what | statements | claims |
ROW = re.compile(r"^(\| \[([^\]]*)\]\(scenarios/(\w+)\) \| .* \|) \d+ \| \d+ \|$", re.MULTILINE)
UNDECIDED = (NOT_RUN, PARTLY_RUN)
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


def with_scorecard(text: str, known: pd.DataFrame) -> str:
    """The page with what came of the statements.

    Args:
        text: after renewed(): its rows say the papers' names and order.
        known: known.known_statements().

    Raises:
        ValueError: if the page has no place for it, or a paper of the statements no row.
    """
    names = {found[3]: found[2] for found in ROW.finditer(text)}
    if BEGIN not in text or END not in text:
        raise ValueError(f"{PAGE.name} has no place for the scorecard ({BEGIN.strip()} ... {END})")
    if unknown := sorted(set(known["paper"]) - set(names)):
        raise ValueError(f"the table of counts has no row for {unknown[0]}")
    lines = [f"| paper | {' | '.join(v.replace(' reproduced', '') for v in STATEMENT_VERDICTS)} | at `full` |"]
    lines += ["|---|" + "---|" * (len(STATEMENT_VERDICTS) + 1)]
    own = known["own"].astype(bool)  # the lab's, not a paper's: counted apart
    papers = [(name, ~own & (known["paper"] == paper)) for paper, name in names.items()]
    for name, mine in [*papers, ("**all**", ~own), ("the lab's own, counted apart", own)]:
        if not mine.any():
            continue
        verdicts = known.loc[mine, "verdict"]
        counts = [str(int((verdicts == verdict).sum()) or "") for verdict in STATEMENT_VERDICTS]
        decided = int(((known.loc[mine, "scale"] == FULL) & ~verdicts.isin(UNDECIDED)).sum())
        lines.append(f"| {name} | {' | '.join(counts)} | {decided or ''} |")
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END, 1)[1]


def page() -> str:
    """README.md as it should be."""
    return with_scorecard(
        renewed(PAGE.read_text(encoding="utf-8"), load_statements()), known_statements(paths.ROOT / "shipped")
    )


if __name__ == "__main__":
    files.write_text(PAGE, page())
