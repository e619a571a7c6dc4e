"""What a figure's campaign ends with on the terminal: one screen with its points, its statements, and where the rest is."""

from __future__ import annotations

import shlex
from pathlib import Path

import pandas as pd
from rich.text import Text

from bbrlab.base.console import Console
from bbrlab.base.words import in_short, number_of
from bbrlab.claims.expected import WHOLE_RUN, Expected, expected_at
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.results.figures import Figure, figures_at
from bbrlab.results.replacement import replacement
from bbrlab.results.tables import read_figure
from bbrlab.results.verdicts import INCONCLUSIVE, NOT_REPRODUCED
from bbrlab.show.points_table import Beside, show_points
from bbrlab.show.verdicts import LOOKS, measured_text

ROWS_MAX = 24  # of points on one screen
NAMES_MAX = 6  # statements that are named in a line
EXPECTED_MAX = 40  # letters of what a claim expects; of a longer one its file has the whole
_WORST = {NOT_REPRODUCED: 0, INCONCLUSIVE: 1}


def show_figure_end(path: Path, claims: pd.DataFrame, statements: pd.DataFrame, console: Console) -> None:
    """Print the end of a figure's campaign.

    Args:
        path: of its table, SCALE/PAPER/FIGURE.parquet.
        claims: judge.verdict_frame() of those that read the figure.
        statements: statement_verdict.statement_frame() of theirs.
    """
    table = read_figure(path)
    scale, id = path.parent.parent.name, f"{path.parent.name}/{path.stem}"
    (figure,) = figures_at(scale, [id])
    beside = _beside(figure, table, claims)
    rows = _worst_first(table, claims, beside) if beside else table
    some = rows[rows["point"].isin(list(dict.fromkeys(rows["point"]))[: max(1, ROWS_MAX // rows["group"].nunique())])]
    console.print(f"{id}: {figure.scenario.figure}, scale {scale}")
    show_points(some, console, beside)
    if hidden := rows["point"].nunique() - some["point"].nunique():
        console.print(f"and {number_of(hidden, 'more point')}")
    if len(statements):
        _show_statements(id, claims, statements, console)
    places = {
        "numbers": str(path.with_suffix(".csv")),
        "all claims": f"bbrlab verdicts {shlex.quote(str(path.with_suffix('.claims.parquet')))}",
    }
    if replacement() is None:
        places["picture"] = f"bbrlab plot {id} --scale {scale}"
    console.print("\n" + "\n".join(f"{name:12}{place}" for name, place in places.items()), soft_wrap=True)


def _beside(figure: Figure, table: pd.DataFrame, claims: pd.DataFrame) -> Beside | None:
    """Published values and verdicts of the metric of which claims name most points; None where they name none."""
    paper = figure.id.split("/")[0]
    defined = [c for c in claims_of(load_statements(known_good=True)) if c.id in set(claims["id"]) and not c.own]
    points = [p for p in figure.points if p.label in set(table["point"])]
    expected = expected_at(figure, points, [c for c in defined if paper == c.figures[0].split("/")[0]])
    if not expected:
        return None
    metric = max(
        expected, key=lambda name: sum(cell is not None for cells in expected[name].values() for cell in cells)
    )
    by_id = claims.drop_duplicates("id").set_index("id")
    cells: dict[tuple[str, int], tuple[str, str]] = {}
    for group, values in expected[metric].items():
        for point, value in zip(points, values, strict=True):
            if value is not None:
                cells[point.label, 0 if group == WHOLE_RUN else int(group)] = (
                    _published(value),
                    _outcome(by_id, value.claim),
                )
    return Beside(metric, cells)


def _published(expected: Expected) -> str:
    if expected.low is None or expected.high is None:
        return f"{expected.value:.4g}"
    if expected.value is None:
        return f"{expected.low:.4g} to {expected.high:.4g}"
    return f"{expected.value:.4g} ± {(expected.high - expected.low) / 2:.2g}"


def _outcome(claims: pd.DataFrame, id: str) -> str:
    """The outcome of a claim on one point, that of short runs in brackets; nothing for one over several."""
    claim = claims.loc[id] if id in claims.index else None
    if claim is None or claim["points_full"] != 1:
        return ""
    outcome = str(claim["interim"] or claim["verdict"])
    return f"so far {LOOKS[outcome].mark}" if claim["interim"] else f"{LOOKS[outcome].mark} {outcome}"


def _worst_first(table: pd.DataFrame, claims: pd.DataFrame, beside: Beside) -> pd.DataFrame:
    """The rows, first those of points whose claims do not reproduce, if they are more than a screen has."""
    if len(table.drop_duplicates(["point", "group"])) <= ROWS_MAX:
        return table
    marks = {LOOKS[outcome].mark: rank for outcome, rank in _WORST.items()}
    ranks = {point: min(marks.get(mark.removeprefix("so far ").split(" ")[0], 2) for (p, _), (_, mark) in beside.cells.items() if p == point)
             for point, _ in beside.cells}  # fmt: skip
    return (
        table.assign(_rank=table["point"].map(ranks).fillna(3))
        .sort_values("_rank", kind="stable")
        .drop(columns="_rank")
    )


def _show_statements(id: str, claims: pd.DataFrame, statements: pd.DataFrame, console: Console) -> None:
    """What this figure alone decides, a line each, with the claims that did not reproduce; the others are counted."""
    others_of = {row["statement"] for row in claims.to_dict("records") if row["figures"] != id}
    is_alone = pd.Series([s not in others_of for s in statements["id"]], statements.index, dtype=bool)
    alone = statements[is_alone]
    console.print()
    others = statements[~is_alone]
    for statement in alone.to_dict("records"):
        colour = LOOKS[statement["verdict"]].terminal
        console.print(Text.assemble((statement["id"], "bold"), ": ", (statement["in_words"], colour)), soft_wrap=True)
        own_claims = claims[(claims["statement"] == statement["id"]) & (claims["role"] == "")]
        for claim in own_claims[own_claims["verdict"].isin([NOT_REPRODUCED, INCONCLUSIVE])].to_dict("records"):
            goal = f"expected {claim['expected']}, " if len(claim["expected"]) <= EXPECTED_MAX else ""
            console.print(f"  {claim['id']}: {goal}measured {measured_text(claim)}", soft_wrap=True)
    if len(others):
        needs = "statement needs" if len(others) == 1 else "statements need"
        console.print(
            f"{len(others)} {needs} other figures, too: {in_short(list(others['id']), NAMES_MAX)}",
            soft_wrap=True,
        )
