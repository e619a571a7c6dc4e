"""What README.md says in numbers.

How many statements each paper has, and what came of them by the results that ship.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.words import in_short, number_of
from bbrlab.claims.load import load_statements
from bbrlab.claims.schema import Statement
from bbrlab.claims.select import full_figures
from bbrlab.results.algorithm_table import label_of_cca
from bbrlab.results.best_scale import shipped_claims, shipped_statements
from bbrlab.results.config import FULL
from bbrlab.results.shipped import figures_without_noise, left_out, shipped_scales
from bbrlab.results.verdicts import DECIDED
from bbrlab.show.verdict_counts import (
    COLUMNS,
    MISSED,
    Line,
    causes,
    counted,
    noise_words,
    outcome_words,
    score_lines,
    tally,
)
from docs._make import beside_google
from docs._make.marks import replace_between, table
from docs._make.measured import short

PAGE = paths.ROOT / "README.md"
# How far the shares of ours are from those of Google's code.
DISTANCE = re.compile(r"(shares differ from those of Google's code by )[^:]*?(, root mean square)")
# | [Paper](scenarios/FOLDER) | what | statements |
ROW = re.compile(r"^(\| \[([^\]]*)\]\(scenarios/(\w+)\) \| .* \|) \d+ \|$", re.MULTILINE)


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
        return f"{found[1]} {len(mine)} |"

    return ROW.sub(row, text)


def names_of_papers(text: str | None = None) -> dict[str, str]:
    """{folder: the paper's name} in the order of the page's rows."""
    return {found[3]: found[2] for found in ROW.finditer(text or PAGE.read_text(encoding="utf-8"))}


def with_distance(text: str, cells: pd.DataFrame) -> str:
    """The page with how far BBRv2 and BBRv3 are from Google's code. ValueError if it has no place for it."""
    parts = []
    for algorithm in ("bbr2", "bbr3"):
        error, number = beside_google.whole_error(cells, algorithm)
        parts.append(f"{short(error)} ({label_of_cca(algorithm)}, {number} cells)")
    renewed, count = DISTANCE.subn(lambda found: f"{found[1]}{' and '.join(parts)}{found[2]}", text)
    if count != 1:
        raise ValueError(f"{PAGE}: needs one sentence like {DISTANCE.pattern}")
    return renewed


def with_scorecard(text: str, known: pd.DataFrame, missing: Sequence[str], without_noise: str = "") -> str:
    """The page with what came of the statements. ValueError if the page has no place for it, or a paper of the statements no row.

    Args:
        text: after renewed(): its rows say the papers' names and order.
        known: best_scale.shipped_statements().
        missing: the figures that do not ship at scale full (shipped.left_out()).
        without_noise: outcomes.noise_words().
    """
    names = names_of_papers(text)
    if unknown := sorted(set(known["paper"]) - set(names)):
        raise ValueError(f"the table of counts has no row for {unknown[0]}")
    of_papers = counted(known)
    rows = score_lines(known, names)
    rows.insert(sum(bool(row.paper) for row in rows), Line("**all**", of_papers))
    lines = [
        _in_words(of_papers, missing),
        "",
        *table(
            ("paper", "statements", *COLUMNS),
            [(row.name, row.number, *(n or "" for n in tally(row.statements).values())) for row in rows],
        ),
    ]
    lines += ["", _causes_in_words(of_papers)]
    if without_noise:
        lines += [
            "",
            f"{without_noise} [Which figures these are](docs/reference/measured.md#what-ships); [what they are worth](docs/explanation/phase.md#what-results-without-noise-are-worth).",
        ]
    return replace_between(text, "scorecard", "\n".join(lines))


def _causes_in_words(statements: pd.DataFrame) -> str:
    """Where the cause lies of what is partly or not reproduced."""
    missed = int(statements["verdict"].isin(MISSED).sum())
    by_cause = ", ".join(f"{words} {n}" for words, n in causes(statements).items() if n)
    return f"Of the {missed} that are partly or not reproduced the cause is, each with its evidence: {by_cause}."


def _in_words(statements: pd.DataFrame, missing: Sequence[str]) -> str:
    """What the table is of; `missing`: the figures that do not ship at scale full."""
    decided = statements[statements["verdict"].isin(DECIDED)]
    at_full = int((decided["scale"] == FULL).sum())
    later = int((decided["chosen_after"].fillna("") != "").sum())
    total = len(full_figures())
    words = f"{outcome_words(statements)} {at_full} of the decided were run with all points and trials of the scenarios (scale `full`). "
    if missing:
        words += f"{len(missing)} of the {total} figures {'does' if len(missing) == 1 else 'do'} not ship at `full` ({in_short(missing)}). "
    return words + (
        f"{number_of(later, 'of the decided depends', 'of the decided depend')} on a choice that was made after a comparison with measurements; [each names it](docs/reference/outcomes.md)."
    )


def page() -> str:
    """README.md as it should be."""
    folder = paths.ROOT / "shipped"
    known = shipped_statements(folder)
    text = with_distance(renewed(PAGE.read_text(encoding="utf-8"), load_statements()), beside_google.cells(folder))
    words = noise_words(known, shipped_claims(known, folder), without_noise(folder))
    return with_scorecard(text, known, left_out(folder, FULL), words)


def without_noise(folder: Path) -> dict[str, set[str]]:
    """{scale that ships: its figures with runs without noise of hosts}."""
    return {scale: figures_without_noise(folder, scale) for scale in shipped_scales(folder)}


def pages() -> dict[Path, str]:
    """{page: its text as it should be}."""
    return {PAGE: page()}
