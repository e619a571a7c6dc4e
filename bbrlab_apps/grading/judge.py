"""Judges a rubric's claims by a student's own runs, with the judge of the papers' claims (docs/explanation/verdicts.md)."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path
from typing import TypedDict, cast

from bbrlab.base.errors import UserError
from bbrlab.claims.columns import prediction_files
from bbrlab.claims.judge import outcome
from bbrlab.claims.sample import sample
from bbrlab.claims.schema import Claim
from bbrlab.claims.select import select
from bbrlab.claims.table_facts import TableFacts
from bbrlab.measure.summary import Summary
from bbrlab.models.predictions import write_prediction
from bbrlab.results.figures import Figure, Run
from bbrlab.results.tables import run_rows, table_of_rows
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab_apps.grading.personal import FIGURE, Personal, problem_of
from bbrlab_apps.grading.submitted_content import SubmittedContent


class Judged(TypedDict):
    """A judged claim."""

    verdict: str  # of the judge; "" if the claim could not be judged
    number: float | None  # the judged number, the mean over the seeds; None without one
    # low, high: its interval; None if there is none
    low: float | None
    high: float | None
    told: str  # why it could not be judged, or why it is inconclusive


def points_of_figure(submitted: SubmittedContent) -> list[Point]:
    """The points that the runs of a submission belong to."""
    return [Point(validate(p["scenario"], "scenario"), p["values"]) for p in submitted["points"]]


def judge(
    personal: Personal, submitted: SubmittedContent, counting: Collection[int], scratch: Path
) -> dict[str, Judged]:
    """Judge every claim."""
    points = points_of_figure(submitted)
    rows = []
    present = set()
    for index in counting:
        run = submitted["runs"][index]
        point = points[run["point"]]
        present.add((point.label, run["seed"]))
        rows += run_rows(Run(FIGURE, point, run["seed"], scratch), cast(Summary, run["summary"]))
    facts = TableFacts(table_of_rows(rows))
    return {
        id: _judged(claim, points, personal, present, facts, scratch)
        for id, claim in personal.assignment.claims.items()
    }


def _judged(
    claim: Claim,
    points: list[Point],
    personal: Personal,
    present: set[tuple[str, int]],
    facts: TableFacts,
    scratch: Path,
) -> Judged:
    """Judge one claim."""
    nothing: Judged = {"verdict": "", "number": None, "low": None, "high": None, "told": ""}
    if not points:
        return nothing | {"told": "not judged: there is no scenario"}
    # With values that were free to choose, a claim may find other points than in the scenario that it was written for.
    figure = Figure(FIGURE, personal.assignment.scenario, points, len(personal.seeds))
    if problem := problem_of(claim, figure):
        return nothing | {"told": f"not judged: {'.'.join(problem[0])}: {problem[1]}"}
    chosen = {name: select(term, points) for name, term in claim.at.items()}
    needed = {(p.label, seed) for selected in chosen.values() for p in selected for seed in personal.seeds}
    if missing := len(needed - present):
        return nothing | {"told": f"not judged: {missing} of its {len(needed)} runs missing, or not counted"}
    try:
        for file, (kind, point) in prediction_files([claim], [figure], scratch).items():
            if not file.exists():
                write_prediction(kind, point, file)
        result = outcome(claim.expect, sample(claim, chosen, {FIGURE: facts}, scratch))
    except UserError as error:
        return nothing | {"told": str(error)}
    numbers = {
        k: v if math.isfinite(v) else None
        for k, v in (("number", result.mean), ("low", result.low), ("high", result.high))
    }
    return {"verdict": result.verdict, "told": result.why, **numbers}  # type: ignore[typeddict-item]
