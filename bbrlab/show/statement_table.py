"""Statements as a table for a page, each with its claims and variants below it, whichever way they come out."""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd

from bbrlab.results.verdicts import REPRODUCED
from bbrlab.show.outcomes import CAUSES
from bbrlab.show.verdicts import COLOURS, marks_text, measured_text, verdict_text

MANY = 20  # claims of a statement that are folded below its line
STYLE = """<style scoped>
.statements table {border-collapse: collapse; width: 100%; margin: 0; table-layout: auto !important}
.statements th, .statements td {text-align: left !important; vertical-align: top; padding: 3px 8px; background: none}
.statements td.says {border-top: 1px solid #999; padding-top: 8px}
.statements .small {color: #666; font-size: 85%}
.statements tr.claim td {font-size: 90%}
.statements tr.claim td:first-child {width: 34%}
.statements summary {cursor: pointer; font-size: 90%}
</style>"""
HEAD = ("claim", "expected", "measured", "seeds", "verdict", "")


def statement_table(statements: pd.DataFrame, claims: pd.DataFrame) -> str:
    """HTML of statements with their claims.

    Args:
        statements: rows of statements.parquet.
        claims: claims.parquet; those of other statements are left out.
    """
    by_statement = {str(id): mine.to_dict(orient="records") for id, mine in claims.groupby("statement", sort=False)}
    rows = [_statement(s, by_statement.get(s["id"], [])) for s in statements.to_dict(orient="records")]
    return f'{STYLE}<div class="statements"><table>{"".join(rows)}</table></div>'


def badge(verdict: str, text: str | None = None) -> str:
    """A verdict in its colour."""
    return f'<b style="color: {COLOURS[verdict]}">{escape(text or verdict)}</b>'


def _statement(statement: dict[Any, Any], claims: list[dict[Any, Any]]) -> str:
    """The line of a statement and the lines of its claims."""
    notes = [f"{statement['source']} ({statement['exactness']})"]
    notes += [f"open: {statement['open']}"] if statement["open"] else []
    notes += [f"rests on {statement['code']}"] if statement["code"] else []
    if statement["cause"] and statement["verdict"] != REPRODUCED:
        notes.append(f"where the cause lies: {CAUSES[statement['cause']]}: {statement['evidence']}")
    notes += [f"chosen after a comparison: {statement['chosen_after']}"] if statement["chosen_after"] else []
    notes += [f"tolerance: {statement['because']}"] if statement["because"] else []
    small = "".join(f'<div class="small">{escape(note)}</div>' for note in notes)
    head = (
        f'<tr><td class="says" colspan="4"><b>{escape(statement["id"])}</b> {escape(statement["says"])}{small}</td>'
        f'<td class="says" colspan="2">{badge(statement["verdict"], statement["in_words"])}</td></tr>'
    )
    below = [_claim(claim, statement) for claim in claims]
    if len(below) <= MANY:
        return head + "".join(below)
    heading = "".join(f"<th>{name}</th>" for name in HEAD)
    inner = f"<table><tr>{heading}</tr>{''.join(below)}</table>"
    return f'{head}<tr><td colspan="6"><details><summary>all {len(below)} claims</summary>{inner}</details></td></tr>'


def _claim(claim: dict[Any, Any], statement: dict[Any, Any]) -> str:
    """The line of a claim; what it says is left out where it is the statement's own words."""
    name = escape(claim["id"] if not claim["variant"] else f"{claim['id']}: {claim['variant']}")
    if claim["says"] != statement["says"]:
        name += f"<br>{escape(claim['says'])}"
    for key in ("because", "chosen_after"):
        if claim[key] and claim[key] != statement[key]:
            label = "tolerance" if key == "because" else "chosen after a comparison"
            name += f'<div class="small">{label}: {escape(claim[key])}</div>'
    verdict = badge(claim["interim"] or claim["verdict"], verdict_text(claim))
    seeds = str(claim["seeds"]) if claim["seeds"] else ""
    marks = [marks_text(claim)]
    if claim.get("scale") != statement.get("scale"):  # of what ships at several
        marks.append(f"at scale {claim['scale']}, not counted above")
    told = escape("; ".join(filter(None, marks)))
    cells = (name, escape(claim["expected"]), escape(measured_text(claim)), seeds, verdict, told)
    return f'<tr class="claim">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
