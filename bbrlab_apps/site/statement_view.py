"""One statement for its paper's page, run or not: what came of it, where its numbers are, its claims, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from bbrlab.claims.expected import measured_point
from bbrlab.claims.schema import Claim, Statement
from bbrlab.results.verdicts import (
    AS_READ,
    FINAL,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_RUN,
    PARTLY,
    PARTLY_RUN,
    REPRODUCED,
)
from bbrlab.show.findings import Findings, Row
from bbrlab.show.verdict_counts import CAUSES, HALF, HARDLY, MISSED, MOSTLY
from bbrlab.show.verdicts import marks_text, measured_text, verdict_text
from bbrlab_apps.site.charts import MODELLED, MODELS, share_by
from bbrlab_apps.site.html import number

WORST_FIRST = (NOT_REPRODUCED, HARDLY, HALF, PARTLY, MOSTLY, INCONCLUSIVE, PARTLY_RUN, AS_READ, REPRODUCED, NOT_RUN)
MANY = 8  # claims of a statement that are folded below its words
_NAMES = {model: label.split(",")[0] for model, label in MODELS.items()}
# Of the strip: its width, a row's height, how many tolerances to each side, and how many rows.
WIDTH, ROW, EDGE, ROWS = 640, 9, 3.0, 8
AXIS = ((-2, "−2"), (-1, "−1 tolerance"), (0, "expected"), (1, "+1 tolerance"), (2, "+2"))


def statement_view(findings: Findings, statement: Statement) -> dict[str, Any]:
    """What templates/statement.html says of a statement."""
    row = findings.of_statement.get(statement.id)
    verdict = str(row["verdict"]) if row else NOT_RUN
    rows = [findings.of_claim.get(claim.id) for claim in statement.claims]
    modelled = [_models_say(findings, claim) for claim in statement.claims]
    models = [m for m in MODELS if any(m in shares for shares in modelled)]
    scale = row["scale"] if row else findings.shown.scale
    return {
        **statement_line(findings, statement),
        "in_words": str(row["in_words"]) if row else NOT_RUN,
        "strip": _strip([dot for c, r in zip(statement.claims, rows, strict=True) if (dot := _dot(c, r))]),
        "models": _models_within(statement.claims, modelled),
        "heads": ["claim", "expected", "measured", *(_NAMES[m] for m in models), "seeds", "verdict"],
        "claims": [
            _claim(c, r, statement, scale) | {"models": [(_NAMES[m], number(shares.get(m))) for m in models]}
            for c, r, shares in zip(statement.claims, rows, modelled, strict=True)
        ],
        "folded": len(statement.claims) > MANY,
        "judged": sum(r is not None and r["verdict"] in FINAL for r in rows),
        "unsure": _unsure(row, rows),
        "facts": _facts(findings, statement, row, verdict),
        "findings": _explained(statement) if verdict not in (REPRODUCED, NOT_RUN) else [],
        "figures": [_link(findings, statement, id) for id in dict.fromkeys(f for c in statement.claims for f in c.figures)],
    }  # fmt: skip


def statement_line(findings: Findings, statement: Statement) -> dict[str, Any]:
    """What a list says of a statement: its step, how many of its claims came out how, and where the cause lies."""
    row = findings.of_statement.get(statement.id)
    counts = [int(row[name]) if row else 0 for name in ("reproduced", "not_reproduced", "inconclusive")]
    missed = row is not None and row["verdict"] in MISSED
    return {
        "id": statement.id, "paper": statement.paper, "says": statement.says, "step": findings.step_of[statement.id],
        "of": len(statement.claims) if row is None else int(row["claims"]), "reproduced": counts[0], "missed": counts[1], "undecided": counts[2],
        "cause": CAUSES[statement.cause.kind if statement.cause else ""] if missed else "",
    }  # fmt: skip


def _unsure(row: Row | None, claims: Sequence[Row | None]) -> int:
    """How many claims have a verdict alone and count as inconclusive, since the statement's error rate does not keep it."""
    if row is None:
        return 0
    alone = len([c for c in claims if c is not None and not c["role"] and c["verdict"] == INCONCLUSIVE])
    return max(0, int(row["inconclusive"]) - alone)


def worst_first(line: dict[str, Any]) -> tuple[int, float]:
    """To sort statements by: what failed, then what is partly so, then what is not decided, then what reproduced."""
    return WORST_FIRST.index(line["step"]), line["reproduced"] / max(line["of"], 1)


def _models_say(findings: Findings, claim: Claim) -> dict[str, float]:
    """{model: the number that it gives}, of those that speak of what the claim measures."""
    figure = findings.figures.get(claim.figures[0])
    one = measured_point(claim, figure) if figure else None
    if figure is None or one is None or one[:2] != (MODELLED, "0"):
        return {}
    shares = {model: share_by(model, figure.id, one[2], findings.shown.results) for model in MODELS}
    return {model: share for model, share in shares.items() if share is not None}


def _models_within(claims: Sequence[Claim], modelled: Sequence[dict[str, float]]) -> list[str]:
    """At how many of a statement's points each model is within the tolerance, in words."""
    texts = []
    for model in MODELS:
        here = [
            claim.expect.holds(shares[model]) for claim, shares in zip(claims, modelled, strict=True) if model in shares
        ]
        texts += [f"{_NAMES[model]} at {sum(here)} of {len(here)}"] if here else []
    return texts


def _claim(claim: Claim, row: Row | None, statement: Statement, scale: str) -> dict[str, Any]:
    """A claim's line; what it says is left out where it is the statement's own words."""
    line: dict[str, Any] = {
        "name": claim.id if not claim.variant else f"{claim.id}: {claim.variant}",
        "says": "" if claim.says == statement.says else claim.says,
        "notes": [
            f"{label}: {text}"
            for label, text, whole in (
                ("tolerance", claim.because, statement.because),
                ("chosen after a comparison", claim.chosen_after, statement.chosen_after),
            )
            if text and text != whole
        ],
    }
    if row is None:
        return line | {"expected": str(claim.expect), "measured": "–", "seeds": "–", "look": NOT_RUN, "verdict": "", "marks": ""}  # fmt: skip
    return line | {
        "expected": row["expected"],
        "measured": measured_text(row),
        "seeds": str(int(row["seeds"]) or "–"),
        "look": row["interim"] or row["verdict"],
        "verdict": verdict_text(row),
        "marks": marks_text(row, scale),
    }


def _facts(findings: Findings, statement: Statement, row: Row | None, verdict: str) -> Iterable[tuple[str, str]]:
    """What else is told of a statement: names and texts."""
    code = str(row["code"]) if row else ""
    cause = ""
    if verdict not in (REPRODUCED, NOT_RUN) and statement.cause:
        cause = f"{CAUSES[statement.cause.kind]}: {statement.cause.evidence}"
    elif verdict in MISSED:
        cause = CAUSES[""]
    facts = (
        ("source", f"{statement.source} ({statement.exactness})"),
        ("scale of the verdict", str(row["scale"]) if row and findings.shown.larger and verdict != NOT_RUN else ""),
        ("the lab's own", "not the paper's: a reading of the lab's, counted apart" if statement.own else ""),
        ("at second hand", "what others say of this paper; counted apart" if statement.exactness == "secondary" and not statement.own else ""),
        ("rests on", code),
        ("where the cause lies", cause),
        ("left open", statement.open or ""),
        ("tolerance", statement.because or ""),
        ("chosen after a comparison", statement.later_choices),
    )  # fmt: skip
    return [(name, text) for name, text in facts if text]


def _explained(statement: Statement) -> list[Any]:
    """The findings of a statement and of its claims, each once."""
    texts = [statement.finding, *(c.finding for c in statement.claims)]
    return list({f.text: f for f in texts if f is not None}.values())


def _link(findings: Findings, statement: Statement, figure: str) -> dict[str, Any]:
    """A figure that it reads: the page with its chart (None: there is none), and the command that runs it."""
    paper = figure.split("/", maxsplit=1)[0]
    there = figure in findings.figures and paper in findings.papers
    page = ("" if paper == statement.paper else f"{paper}.html") if there else None
    return {"id": figure, "page": page, "command": findings.command(figure)}


def _dot(claim: Claim, row: Row | None) -> dict[str, Any] | None:
    """A claim's number in tolerances from the middle of what is expected; None without a number or a tolerance."""
    width = claim.expect.tolerance
    if row is None or not math.isfinite(width) or not width or not math.isfinite(row["mean"]):
        return None
    low, high = claim.expect.bounds
    ends = {name: (float(row[name]) - (low + high) / 2) / width for name in ("mean", "low", "high")}
    return {"claim": claim.id, "verdict": row["interim"] or row["verdict"], **ends}


def _strip(dots: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """A drawing that needs no script: the numbers of a statement's claims beside what is expected; None without any."""
    if not dots:
        return None
    rows = min(ROWS, len(dots))
    inside = sum(abs(d["mean"]) <= 1 for d in dots)
    drawn = []
    for i, dot in enumerate(sorted(dots, key=lambda d: d["mean"])):
        ends = [f"{_x(dot[name]):.1f}" for name in ("low", "high") if math.isfinite(dot[name])]
        drawn.append({
            "look": dot["verdict"], "title": f"{dot['claim']}: {dot['verdict']}, {dot['mean']:+.2f} tolerances from what is expected", "ends": ends if len(ends) == 2 else None,
            "x": f"{_x(dot['mean']):.1f}", "y": f"{4 + ROW / 2 + (i % rows) * ROW:.1f}",
        })  # fmt: skip
    return {
        "width": WIDTH, "height": rows * ROW + 8, "whole": rows * ROW + 26, "middle": f"{_x(0):.1f}", "left": f"{_x(-1):.1f}", "tolerance": f"{_x(1) - _x(-1):.1f}",
        "words": f"{inside} of {len(dots)} measured numbers are within their tolerance", "outside": [d["claim"] for d in dots if d["verdict"] != REPRODUCED], "axis": [(f"{_x(t):.1f}", words) for t, words in AXIS], "dots": drawn,
    }  # fmt: skip


def _x(tolerances: float) -> float:
    return WIDTH / 2 + max(-EDGE, min(EDGE, tolerances)) / EDGE * (WIDTH / 2 - 8)
