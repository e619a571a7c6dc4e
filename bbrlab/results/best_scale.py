"""For each figure and statement that is shown, the largest scale that has a result.

Of results that ship, a part may ship at a larger scale than the rest. One's own results are shown at the scale that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.words import in_short
from bbrlab.results.config import load_config
from bbrlab.results.figures import Figure, figures_at
from bbrlab.results.schema import read_with
from bbrlab.results.shipped import (
    STATEMENTS,
    Shown,
    commits_of,
    is_shipped,
    missing_sentence,
    older_sentence,
    read_manifest,
    shipped_figures,
)
from bbrlab.results.verdicts import CLAIM_COLUMNS, NOT_RUN, PARTLY_RUN, STATEMENT_COLUMNS, read_claims, read_statements

CLAIMS = "claims.parquet"
COUNTED_BY = ("id", "paper", "verdict", "code", "cause", "chosen_after", "exactness", "own")  # of statements.parquet


def how_decided(verdict: str) -> int:
    """How far a statement is decided: 0 if nothing of it was run, 1 if a part was, 2 if there is a verdict."""
    return 0 if verdict == NOT_RUN else 1 if verdict == PARTLY_RUN else 2


def figures_at_best_scale(which: Shown, paper: str | None = None) -> dict[str, tuple[str, Figure]]:
    """{id: (scale, figure)} of the figures with a table: each at the largest scale of what is shown that has one.

    Args:
        paper: of a paper; default: of all.

    Raises:
        UserError: naming the table of a figure that ships and has none.
    """
    found: dict[str, tuple[str, Figure]] = {}
    for scale in which.scales:
        said = shipped_figures(which.results, scale) if which.shipped else set()
        for figure in figures_at(scale, []):
            if paper not in (None, figure.id.split("/")[0]):
                continue
            path = table_file(which, scale, figure.id)
            if path.exists():
                found[figure.id] = scale, figure
            elif figure.id in said:
                raise UserError(f"{path}: is missing; get these results anew")
    return found


def table_file(which: Shown, scale: str, figure: str) -> Path:
    """Where the table of a figure is."""
    return which.results / scale / f"{figure}.parquet"


def best_statements(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Each statement at the largest scale that decides it; if none does, the largest at which some of it was run; else the smallest.

    Args:
        parts: {scale: its statements, as statements.statement_frame()}, the smallest first.

    Returns:
        Their rows in the order in which they come, with the column ``scale``.
    """
    every = _together(parts)
    best = every.assign(_decided=every["verdict"].map(how_decided)).sort_values("_decided", kind="stable")
    last = best.drop_duplicates("id", keep="last")
    first = every.drop_duplicates("id")  # of what was run nowhere
    best = pd.concat([last[last["_decided"] > 0], first[~first["id"].isin(last.loc[last["_decided"] > 0, "id"])]])
    return _in_order_of(every, best.drop(columns="_decided"))


def best_claims(statements: pd.DataFrame, parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The claims, each as it was judged at the scale of its statement, or, if it was not run there, at a smaller one.

    Args:
        statements: best_statements().
        parts: {scale: its claims, as judge.verdict_frame()}, the smallest first.

    Returns:
        Their rows in the order in which they come, with the column ``scale``.
    """
    every = _together(parts)
    size = {scale: place for place, scale in enumerate(parts)}
    of_statement = every["statement"].map(statements.set_index("id")["scale"].map(size).astype(float)).astype(float)
    within = every[~(every["scale"].map(size).astype(float) > of_statement)]
    run = (within["verdict"] != NOT_RUN).astype(int)
    best = within.assign(_run=run).sort_values("_run", kind="stable").drop(columns="_run")
    return _in_order_of(every, best.drop_duplicates("id", keep="last"))


def best_verdicts(which: Shown, paper: str | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What came of the statements and of the claims that test them, each at the largest scale that has it.

    What ships is judged all together, so that a statement reads the same on every page. One's own results of a paper are judged by its
    figures alone: the others need not have been run since (stand_among()).

    Args:
        paper: those on a paper's figures, whoever made them; default: all.

    Returns:
        best_statements(), best_claims() of SCALE/claims.parquet, of one's own results of a paper of SCALE/PAPER.claims.parquet, and of
        the files beside them. Of one's own results of a part of a campaign, which has no SCALE/claims.parquet, of those of all papers.

    Raises:
        UserError: if there are none of the scale that is shown.
    """
    if paper is None and not which.shipped and not (which.results / which.scale / CLAIMS).exists():
        return _of_papers(which)
    name = f"{paper}.{CLAIMS}" if paper else CLAIMS
    files = {scale: which.results / scale / name for scale in which.scales}
    files = {scale: file for scale, file in files.items() if scale == which.scale or file.exists()}
    statements = {scale: read_statements(file) for scale, file in files.items()}
    claims = {scale: read_claims(file) for scale, file in files.items()}
    if paper and which.shipped:
        every = {scale: which.results / scale / CLAIMS for scale in files}
        statements = {scale: _of(read_statements(file), statements[scale]["id"]) for scale, file in every.items()}
        claims = {scale: _of(read_claims(file), claims[scale]["id"]) for scale, file in every.items()}
    best = best_statements(statements)
    return best, best_claims(best, claims)


def _of_papers(which: Shown) -> tuple[pd.DataFrame, pd.DataFrame]:
    """best_verdicts() of the papers that were judged each by itself; a statement on figures of several papers as the last of them has it."""
    files = sorted((which.results / which.scale).glob(f"*.{CLAIMS}"))
    parts = [read_statements(file) for file in files], [read_claims(file) for file in files]
    columns = STATEMENT_COLUMNS, CLAIM_COLUMNS
    statements, claims = (
        pd.concat(part, ignore_index=True).drop_duplicates("id", keep="last") if part else pd.DataFrame(columns=names)
        for part, names in zip(parts, columns, strict=True)
    )
    return statements.assign(scale=which.scale), claims.assign(scale=which.scale)


def stand_among(which: Shown, paper: str | None = None) -> str:
    """Among which claims the verdicts of best_verdicts() stand, or do not, in words."""
    return "on this paper's figures" if paper and not which.shipped else "of their scale"


def _of(table: pd.DataFrame, ids: pd.Series) -> pd.DataFrame:
    """The rows with these ids."""
    return table[table["id"].isin(ids)].reset_index(drop=True)


def _together(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """All rows, with the scale of each."""
    return pd.concat([table.assign(scale=scale) for scale, table in parts.items()], ignore_index=True)


def _in_order_of(every: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    order = {id: place for place, id in enumerate(dict.fromkeys(every["id"]))}
    return rows.sort_values("id", key=lambda ids: ids.map(order)).reset_index(drop=True)


def shipped_statements(folder: Path | None = None) -> pd.DataFrame:
    """Each statement that ships at the largest scale that decides it: best_statements(), with no rows if nothing ships."""
    folder = folder or paths.SHIPPED
    parts = {
        scale: read_with(folder / scale / STATEMENTS, COUNTED_BY)
        for scale in load_config().scales
        if is_shipped(folder, scale)
    }
    if not parts:
        return pd.DataFrame(columns=[*COUNTED_BY, "scale"])
    return best_statements(parts)


def shipped_claims(statements: pd.DataFrame, folder: Path | None = None) -> pd.DataFrame:
    """Each claim that ships at its best scale: best_claims().

    Args:
        statements: shipped_statements() of the same folder.
    """
    folder = folder or paths.SHIPPED
    scales = [scale for scale in load_config().scales if is_shipped(folder, scale)]
    return best_claims(statements, {scale: read_claims(folder / scale / CLAIMS) for scale in scales})


def in_scales(scales: Mapping[str, str]) -> str:
    """The scales of some figures (Markdown): how many have the most frequent one, and which of them the others.

    Args:
        scales: {figure: its scale}.
    """
    counts = counts_of_scales(scales.values())
    if len(counts) == 1:
        return f"**{next(iter(counts))}**"
    most = max(counts, key=lambda scale: counts[scale])
    parts = [f"**{most}** ({counts[most]} figures)"]
    for scale in counts:
        if scale != most:
            names = [name for name, at in scales.items() if at == scale]
            parts.append(f"**{scale}** ({in_short(names)})")
    return " and ".join(parts)


def results_shown(which: Shown, paper: str | None = None) -> str:
    """Which results are shown (Markdown): of what ships with the runs and commits of each scale, and with the commands.

    Args:
        paper: of a paper's figures; default: of all.
    """
    if not which.larger:
        return which.words
    parts, older = [], []
    known = {id: scale for id, (scale, _) in figures_at_best_scale(which, paper).items()}
    for scale in reversed(counts_of_scales(known.values())):
        manifest = read_manifest(which.results, scale)
        runs = sum(manifest.figures[id] for id, at in known.items() if at == scale)
        commits = ", ".join(commits_of(which.results, scale, [id for id, at in known.items() if at == scale]))
        again = f"bbrlab verify --scale {scale}{f' {paper}' if paper else ''}"
        of = "commits" if ", " in commits else "commit"
        parts.append(f"{runs:,} runs at scale {scale} (of {of} {commits}; `{again}` runs a part again and compares)")
        older.append(older_sentence(which.results, scale, [id for id, at in known.items() if at == scale]))
    missing = [missing_sentence(which.results, scale, paper, f"those at scale {scale}") for scale in which.scales]
    return (
        f"**Results that ship**, each figure at the largest scale at which it does: {' and '.join(parts)}.{''.join(missing)}{''.join(older)} A statement has "
        f"its verdict of the largest scale that decides it. {which.own} The runs' samples do not ship: what is drawn from them is left out here."
    )


def counts_of_scales(scales: Iterable[str]) -> dict[str, int]:
    """{scale: how many are of it}, the smallest first."""
    scales_shown = list(scales)
    return {scale: scales_shown.count(scale) for scale in load_config().scales if scale in scales_shown}
