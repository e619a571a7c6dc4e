"""For each figure and statement that is shown, the largest scale that has a result.

Some shipped figures may ship at a larger scale than others. A user's own results are shown at the requested scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.base.words import in_short
from bbrlab.results.config import command_in, in_checkout, load_config
from bbrlab.results.figures import Figure, figures_at
from bbrlab.results.judged import CLAIMS, changed_tables, verdict_files
from bbrlab.results.schema import read_with
from bbrlab.results.shipped import (
    STATEMENTS,
    WITHOUT_SAMPLES,
    ShownResults,
    commits_of,
    missing_sentence,
    older_sentence,
    read_manifest,
    shipped_figures,
    shipped_scales,
)
from bbrlab.results.verdicts import CLAIM_COLUMNS, NOT_RUN, PARTLY_RUN, STATEMENT_COLUMNS, read_claims, read_statements

COUNTED_BY = ("id", "paper", "verdict", "code", "cause", "chosen_after", "exactness", "own")  # of statements.parquet


def figures_at_best_scale(shown: ShownResults, paper: str | None = None) -> dict[str, tuple[str, Figure]]:
    """{id: (scale, figure)} of the figures with a table: each at the largest shown scale that has one. UserError if the table of a
    shipped figure is missing."""
    best: dict[str, tuple[str, Figure]] = {}
    for scale in shown.scales:
        shipped = shipped_figures(shown.results, scale) if shown.shipped else set()
        for figure in figures_at(scale, []):
            if paper not in (None, figure.id.split("/")[0]):
                continue
            if shown.judged is not None and figure.id not in shown.judged:
                continue
            path = table_file(shown, scale, figure.id)
            if path.exists():
                best[figure.id] = scale, figure
            elif figure.id in shipped:
                raise UserError(f"{path}: is missing; get these results anew")
    return best


def table_file(shown: ShownResults, scale: str, figure: str) -> Path:
    """The path of a figure's table."""
    return shown.results / scale / f"{figure}.parquet"


def best_statements(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Each statement at the largest scale that decides it; if none does, the largest at which some of it was run; else the smallest.

    Args:
        parts: {scale: its statements, as statement_verdict.statement_frame()}, the smallest first.

    Returns:
        Their rows in the given order, with the column ``scale``.
    """
    rows = _together(parts)
    decided = rows["verdict"].map({NOT_RUN: 0, PARTLY_RUN: 1}).fillna(2)
    best = rows.assign(_decided=decided).sort_values("_decided", kind="stable")
    last = best.drop_duplicates("id", keep="last")
    first = rows.drop_duplicates("id")  # of what was run nowhere
    best = pd.concat([last[last["_decided"] > 0], first[~first["id"].isin(last.loc[last["_decided"] > 0, "id"])]])
    return _in_order_of(rows, best.drop(columns="_decided"))


def best_claims(statements: pd.DataFrame, parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The claims, each as judged at the scale of its statement, or at a smaller one if it was not run there.

    Args:
        statements: best_statements().
        parts: {scale: its claims, as judge.verdict_frame()}, the smallest first.

    Returns:
        Their rows in the given order, with the column ``scale``.
    """
    rows = _together(parts)
    size = {scale: place for place, scale in enumerate(parts)}
    of_statement = rows["statement"].map(statements.set_index("id")["scale"].map(size).astype(float)).astype(float)
    within = rows[~(rows["scale"].map(size).astype(float) > of_statement)]
    run = (within["verdict"] != NOT_RUN).astype(int)
    best = within.assign(_run=run).sort_values("_run", kind="stable").drop(columns="_run")
    return _in_order_of(rows, best.drop_duplicates("id", keep="last"))


def best_verdicts(shown: ShownResults, paper: str | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The verdicts of the statements and of their claims, each at the largest scale that has it.

    Shipped results are judged all together, so that a statement has one verdict on every page. A user's own results of a paper are
    judged by its figures alone, since the others may not have been run (judged_among()). UserError if the shown scale has none, or
    a table of the user's own changed after it was judged.

    Args:
        paper: only statements on this paper's figures, of any paper; default: all.

    Returns:
        best_statements() and best_claims() of SCALE/claims.parquet and the file beside it; of a user's own results as their
        verdict_files() have them, a statement on figures of several papers by the last of these.
    """
    if not shown.shipped:
        return _own_verdicts(shown, paper)
    name = f"{paper}.{CLAIMS}" if paper else CLAIMS
    files = {scale: shown.results / scale / name for scale in shown.scales}
    files = {scale: file for scale, file in files.items() if scale == shown.scale or file.exists()}
    statements = {scale: read_statements(file) for scale, file in files.items()}
    claims = {scale: read_claims(file) for scale, file in files.items()}
    if paper:
        every = {scale: shown.results / scale / CLAIMS for scale in files}
        statements = {scale: _of(read_statements(file), statements[scale]["id"]) for scale, file in every.items()}
        claims = {scale: _of(read_claims(file), claims[scale]["id"]) for scale, file in every.items()}
    best = best_statements(statements)
    return best, best_claims(best, claims)


def _own_verdicts(shown: ShownResults, paper: str | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    place = shown.results / shown.scale
    files = verdict_files(place, paper) or ([place / f"{paper}.{CLAIMS}"] if paper else [])
    parts = [read_statements(file) for file in files], [read_claims(file) for file in files]
    if changed := changed_tables(place, shown.judged or {}):
        target = paper or ("all" if (place / CLAIMS).exists() else changed[0].split("/")[0])
        raise UserError(
            f"{place / changed[0]}.parquet: changed after it was judged, and the verdicts on it are of what it was before; "
            f"run: {in_checkout(command_in(shown.results, target, shown.scale))}"
        )
    columns = STATEMENT_COLUMNS, CLAIM_COLUMNS
    statements, claims = (
        pd.concat(part, ignore_index=True).drop_duplicates("id", keep="last") if part else pd.DataFrame(columns=names)
        for part, names in zip(parts, columns, strict=True)
    )
    return statements.assign(scale=shown.scale), claims.assign(scale=shown.scale)


def judged_among(shown: ShownResults, paper: str | None = None) -> str:
    """The claims among which best_verdicts() are significant or not, in words."""
    return "on this paper's figures" if paper and not shown.shipped else "of their scale"


def _of(table: pd.DataFrame, ids: pd.Series) -> pd.DataFrame:
    """The rows with these ids."""
    return table[table["id"].isin(ids)].reset_index(drop=True)


def _together(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """All rows, with the scale of each."""
    return pd.concat([table.assign(scale=scale) for scale, table in parts.items()], ignore_index=True)


def _in_order_of(all_rows: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    order = {id: place for place, id in enumerate(dict.fromkeys(all_rows["id"]))}
    return rows.sort_values("id", key=lambda ids: ids.map(order)).reset_index(drop=True)


def shipped_statements(folder: Path | None = None) -> pd.DataFrame:
    """Each shipped statement at the largest scale that decides it (best_statements()); no rows if nothing ships."""
    folder = folder or paths.SHIPPED
    parts = {scale: read_with(folder / scale / STATEMENTS, COUNTED_BY) for scale in shipped_scales(folder)}
    if not parts:
        return pd.DataFrame(columns=[*COUNTED_BY, "scale"])
    return best_statements(parts)


def shipped_claims(statements: pd.DataFrame, folder: Path | None = None) -> pd.DataFrame:
    """Each shipped claim at its best scale (best_claims()), by the shipped_statements() of the same folder."""
    folder = folder or paths.SHIPPED
    return best_claims(statements, {scale: read_claims(folder / scale / CLAIMS) for scale in shipped_scales(folder)})


def scale_words(scales: Mapping[str, str]) -> str:
    """The scales of some figures (Markdown): the number of figures at the most frequent one, and the names at the others."""
    counts = counts_of_scales(scales.values())
    if len(counts) < 2:
        return "".join(f"**{scale}**" for scale in counts)
    most_frequent = max(counts, key=lambda scale: counts[scale])
    parts = [f"**{most_frequent}** ({counts[most_frequent]} figures)"]
    for scale in counts:
        if scale != most_frequent:
            names = [name for name, at in scales.items() if at == scale]
            parts.append(f"**{scale}** ({in_short(names)})")
    return " and ".join(parts)


def results_shown(shown: ShownResults, paper: str | None = None) -> str:
    """A paragraph on the results that are shown (Markdown): for shipped ones with runs, commits and commands of each scale."""
    if not shown.shipped:
        return shown.own
    parts, older = [], []
    scale_of = {
        id: scale
        for scale in shown.scales
        for id in shipped_figures(shown.results, scale)
        if paper in (None, id.split("/")[0])
    }
    for scale in reversed(counts_of_scales(scale_of.values())):
        figures = [id for id, at in scale_of.items() if at == scale]
        manifest = read_manifest(shown.results, scale)
        runs = sum(manifest.figures[id] for id in figures)
        commits = ", ".join(commits_of(shown.results, scale, figures))
        again = f"bbrlab verify --scale {scale}{f' {paper}' if paper else ''}"
        of = "commits" if ", " in commits else "commit"
        parts.append(f"{runs:,} runs at scale {scale} (of {of} {commits}; `{again}` repeats a part and compares)")
        older.append(older_sentence(shown.results, scale, figures))
    missing = [missing_sentence(shown.results, scale, paper) for scale in shown.scales]
    return (
        f"**Results that ship**, each figure at the largest scale at which it does: {' and '.join(parts)}.{''.join(missing)}{''.join(older)} A statement has "
        f"its verdict of the largest scale that decides it. {shown.own} {WITHOUT_SAMPLES}"
    )


def counts_of_scales(scales: Iterable[str]) -> dict[str, int]:
    """{scale: its count}, the smallest first."""
    scales_shown = list(scales)
    return {scale: scales_shown.count(scale) for scale in load_config().scales if scale in scales_shown}
