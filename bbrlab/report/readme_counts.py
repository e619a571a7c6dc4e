"""How many statements and claims each paper has, in README.md's table: ``python -m bbrlab.report.readme_counts`` writes them anew."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bbrlab.base import files, paths
from bbrlab.claims.load import load_statements
from bbrlab.claims.schema import Statement

PAGE = paths.ROOT / "README.md"
# | [Paper](scenarios/FOLDER) | what | statements | claims |
ROW = re.compile(r"^(\| \[[^\]]*\]\(scenarios/(\w+)\) \| .* \|) \d+ \| \d+ \|$", re.MULTILINE)


def renewed(text: str, statements: Iterable[Statement]) -> str:
    """The page with the numbers of every paper. ValueError if a paper with statements has no row, or a row no statements."""
    of_paper: dict[str, list[Statement]] = {}
    for statement in statements:
        of_paper.setdefault(statement.paper, []).append(statement)
    rows = [found[2] for found in ROW.finditer(text)]
    if sorted(rows) != sorted(of_paper):
        raise ValueError(
            f"the table of counts has rows for {', '.join(rows)}; there are statements of {', '.join(of_paper)}"
        )

    def row(found: re.Match[str]) -> str:
        mine = of_paper[found[2]]
        return f"{found[1]} {len(mine)} | {sum(len(s.claims) for s in mine)} |"

    return ROW.sub(row, text)


if __name__ == "__main__":
    files.write_text(PAGE, renewed(PAGE.read_text(encoding="utf-8"), load_statements()))
