"""Works out the plan of a campaign (plan.py)."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.paths import name_of
from bbrlab.base.yaml_files import read_yaml
from bbrlab.campaign.documents import linked, sources
from bbrlab.campaign.plan import Plan, PlannedFigure, PlannedPoint, signature_of
from bbrlab.campaign.resources import group_of, guest_mb, machine_facts, memory_mb, runtime_min
from bbrlab.campaign.stages import STAGES, stage_hash
from bbrlab.claims.columns import prediction_files
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.sample import reach
from bbrlab.claims.schema import Claim
from bbrlab.claims.wanted_seeds import may_ask
from bbrlab.kernel.users import users_file
from bbrlab.models.predictions import KINDS, prediction_file, steps_of
from bbrlab.results.algorithm_table import draws_nothing
from bbrlab.results.figures import (
    Figure,
    figures_at,
    has_panel,
    lacking_ccas,
    own_of_figure,
    scenario_files,
    write_points,
)
from bbrlab.results.nested import leaves
from bbrlab.results.replacement import UNCHANGED, check_replaced, replacement
from bbrlab.results.run_estimate import disk_bytes, estimate_s
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import Scenario

# What a prediction takes on one of two busy cores, with its part of the job around it, and each flow's step of the fluid model.
PREDICTION_S = 1.6
SECONDS_PER_FLOW_STEP = 5e-8


def make_plan(given: Mapping[str, Any], figures: Sequence[str] | None = None) -> Plan:
    """The plan of a campaign, worked out anew.

    UserError for whatever is wrong with scenarios, claims, or what the configuration names.

    Args:
        given: the configuration: config/config.yaml with what --config adds to it.
        figures: only these, for a job that finds no plan; they ask for no seeds. Default: all of the campaign.
    """
    scale, kernel = given["scale"], given.get("kernel") or None
    chosen = figures_at(scale, list(figures) if figures else given.get("figures"))
    claims = [] if figures else claims_of(load_statements(figures=[figure.id for figure in chosen]))
    if not figures and replacement():
        check_replaced(point for f in figures_at(scale, given.get("figures"), UNCHANGED) for point in f.points)
    planned = {figure.id: planned_figure(figure, claims, kernel) for figure in chosen}
    for figure in chosen:
        write_points(figure)
    return Plan(
        scale=scale,
        kernel=kernel,
        figures=planned,
        code={stage: stage_hash(stage) for stage in STAGES},
        shipped=[name_of(path) for path in sorted(paths.SHIPPED.glob("[!.]*/manifest.json"))],
        documents=[name_of(paths.ROOT / path) for path in [*sources(), *linked()]],
        others=(others := _others(chosen)),
        signature=signature_of(given, others),
        **machine_facts(kernel),
    )


def _others(chosen: Collection[Figure]) -> list[str]:
    """Files beside plan.SOURCES that the plan depends on: own kernels, what scenarios name, results that ship elsewhere."""
    scenarios = scenario_files()
    named = {path for figure in chosen for path in _named_files(scenarios[figure.id])}
    return [str(path) for path in (users_file(), *sorted(named), *sorted(paths.SHIPPED.glob("*/manifest.json")))]


def _named_files(scenario: Path) -> Iterator[Path]:
    """The files that a scenario names anywhere: also in its sweep, cases and scales, and lists of changes, of which a checked scenario
    has the rows alone."""
    texts = [value for _, value in leaves(read_yaml(scenario)) if isinstance(value, str)]
    return (path for text in texts if os.path.isfile(path := scenario.parent / text))


def planned_figure(figure: Figure, claims: Sequence[Claim], kernel: str | None = None) -> PlannedFigure:
    """What a plan says of a figure, with the claims of all papers."""
    may_have_more = max(figure.caps.values()) > figure.trials
    requesting = [claim for claim in claims if may_have_more and may_ask(claim, figure)]
    read = {
        p.label for claim in requesting for chosen in reach(claim, {figure.id: figure}).points.values() for p in chosen
    }
    is_panel = has_panel(figure)
    predictions = {
        name_of(prediction_file(kind, figure.id, point)): prediction_s(kind, point.scenario)
        for point in (figure.points if is_panel else ())
        for kind, of in KINDS.items()
        if of.world.describes(figure.scenario)
    }
    lacking: list[str] = []
    with contextlib.suppress(UserError):  # no such kernel: that is said once, not for each figure
        lacking = lacking_ccas(figure, kernel)
    return PlannedFigure(
        id=figure.id,
        trials=figure.trials,
        points={point.label: _planned_point(figure, point, point.label in read) for point in figure.points},
        own={cca.name: name_of(cca.path) for cca in own_of_figure(figure, kernel)},
        lacking=lacking,
        is_panel=is_panel,
        predictions=predictions,
        judged_by=[name_of(path) for path in prediction_files(claims, [figure])],
        seed_request=seed_request_text(figure, requesting),
    )


def _planned_point(figure: Figure, point: Point, is_read: bool) -> PlannedPoint:
    more = figure.caps[point.label] - figure.trials if is_read and not draws_nothing(point.scenario) else 0
    return PlannedPoint(
        trials=figure.trials_of(point),
        more_seeds=more,
        virtual_s=point.scenario.duration_s,
        core_s=estimate_s(point),
        disk_bytes=disk_bytes(point),
        guest_mb=guest_mb(point),
        memory_mb=memory_mb(point),
        runtime_min=runtime_min(point),
        group=group_of(point),
    )


def prediction_s(kind: str, scenario: Scenario) -> float:
    """Expected wall-clock seconds of what a model says of a point, on one core."""
    flows = sum(f.count for f in scenario.flows)
    return PREDICTION_S + SECONDS_PER_FLOW_STEP * flows * steps_of(kind, scenario)


def seed_request_text(figure: Figure, own: list[Claim]) -> str | None:
    """What decides how many seeds a figure gets, as a file's content: a claim that is corrected has the seeds of its own figure
    counted again (``own``: those that may ask for some), and no other's. None for a figure whose points keep what they begin with."""
    begin = {figure.trials_of(point) for point in figure.points}
    if not own and begin <= {figure.trials}:
        return None
    tables = sorted({t.published.split(":")[0] for c in own for t in c.at.values() if t.published})
    content = {
        "caps": figure.caps,
        "trials": figure.trials,
        "claims": [c.model_dump(mode="json", include={"id", "at", "metric", "expect", "shortest_s"}) for c in own],
        "tables": {name: files.sha256(paths.DATA / f"{name}.csv") for name in tables},
    }
    return json.dumps(content, indent=1) + "\n"
