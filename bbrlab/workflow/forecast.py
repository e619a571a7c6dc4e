"""What a campaign would run and cost, as a table."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from bbrlab.base.console import Console
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.sample import reach
from bbrlab.claims.schema import Claim
from bbrlab.models.predictions import KINDS, prediction_file, steps_of
from bbrlab.results.algorithms import draws_nothing
from bbrlab.results.cost import disk_bytes, estimate_s
from bbrlab.results.figures import Figure, has_panel, runs_of
from bbrlab.run.output import SUMMARY
from bbrlab.scenario.schema import Scenario
from bbrlab.workflow.asking import asking
from bbrlab.workflow.budget import disk_words, memory_words
from bbrlab.workflow.progress import span

MANY_CORES = 16
# What a prediction takes on one of two busy cores, with its part of the job around it, and each flow's step of the fluid model.
PREDICTION_S = 1.6
SECONDS_PER_FLOW_STEP = 5e-8


@dataclass(frozen=True)
class Forecast:
    """One figure of a campaign, or the sum of several.

    Attributes:
        figure: its id.
        points, seeds: how many, seeds of each point to begin with.
        runs, done: of those seeds; how many of them are there already.
        more_runs: at most so many more seeds may follow, of points that claims read, where these need them.
        more_core_s, more_bytes: what these would take.
        virtual_s: testbed time of all runs.
        left_core_s, left_bytes: real time on one core, and disk, of what is left.
    """

    figure: str
    points: int
    seeds: int
    runs: int
    done: int
    more_runs: int
    more_core_s: float
    more_bytes: float
    virtual_s: float
    left_core_s: float
    left_bytes: float


def forecasts_of(
    figures: Sequence[Figure], results: Path | None = None, claims: Sequence[Claim] | None = None
) -> list[Forecast]:
    """What figures would run and cost, each by itself, where claims (default: all that there are) may ask for seeds.

    Raises:
        UserError: for a claims file that is wrong (load_statements()).
    """
    claims = claims_of(load_statements()) if claims is None else claims
    return [_forecast_of(figure, claims, results) for figure in figures]


def _forecast_of(figure: Figure, claims: Sequence[Claim], results: Path | None) -> Forecast:
    runs = runs_of(figure, results=results)
    left = [r for r in runs if not (r.folder / SUMMARY).exists()]
    read = {
        p.label
        for claim in asking(figure, claims)
        for chosen in reach(claim, {figure.id: figure}).points.values()
        for p in chosen
    }
    more = {
        p.label: figure.caps[p.label] - figure.trials if p.label in read and not draws_nothing(p.scenario) else 0
        for p in figure.points
    }
    firsts = [r for r in runs if r.seed == 1]
    return Forecast(
        figure=figure.id,
        points=len(figure.points),
        seeds=figure.trials,
        runs=len(runs),
        done=len(runs) - len(left),
        more_runs=sum(more.values()),
        more_core_s=sum(more[r.point.label] * estimate_s(r.point) for r in firsts),
        more_bytes=sum(more[r.point.label] * disk_bytes(r.point) for r in firsts),
        virtual_s=sum(r.point.scenario.duration_s for r in runs),
        left_core_s=sum(estimate_s(r.point) for r in left),
        left_bytes=sum(disk_bytes(r.point) for r in left),
    )


def show_forecast(
    figures: list[Figure],
    console: Console | None = None,
    cores: int | None = None,
    cache_gb: float | None = None,
    claims: Sequence[Claim] | None = None,
) -> None:
    """Print the plan and how long it will take here and on a larger machine.

    Args:
        cores: that the campaign may use; default: all that this process may use.
        claims: of all papers; default: they are read.
        cache_gb: GB that the cache should not exceed; default: config/config.yaml's.
    """
    console = console or Console()
    found = forecasts_of(figures, claims=claims)
    table = Table(box=None, pad_edge=False)
    table.add_column("figure", no_wrap=True, min_width=max((len(row.figure) for row in found), default=0))
    for name in ("points", "seeds", "runs", "done", "virtual h", "core min*", "MB*"):
        table.add_column(name, justify="right")
    for row in found:
        table.add_row(row.figure, str(row.points), str(row.seeds), str(row.runs), str(row.done),
                      f"{row.virtual_s / 3600:.1f}", f"{row.left_core_s / 60:.1f}", f"{row.left_bytes / 1e6:.0f}")  # fmt: skip
    console.print(table)
    left_s, size = sum(row.left_core_s for row in found), sum(row.left_bytes for row in found)
    runs, done, more = (
        sum(row.runs for row in found),
        sum(row.done for row in found),
        sum(row.more_runs for row in found),
    )
    here = len(os.sched_getaffinity(0))
    cores = min(cores or here, here)
    words = (
        f"* of what is left: {runs - done} of {runs} runs ({span(sum(row.virtual_s for row in found))} of testbed "
        f"time): about {span(left_s / cores)} on {_cores_words(cores, here)}, {span(left_s / MANY_CORES)} "
        f"on {MANY_CORES}, {_size(size)} of disk"
    )
    more_bytes = 0.0
    if more:
        more_bytes = sum(row.more_bytes for row in found)
        words += (
            f"\nPoints whose claims these seeds cannot decide get more, in two rounds: at most {more} more runs "
            f"({span(sum(row.more_core_s for row in found) / cores)} more, {_size(more_bytes)})."
        )
    words += _predictions_words(figures, cores)
    left = [r for figure in figures for r in runs_of(figure) if not (r.folder / SUMMARY).exists()]
    if left:
        words += f"\n{memory_words(left, cores)}\n{disk_words(size + more_bytes, cache_gb=cache_gb)}"
    console.print(words, highlight=False, soft_wrap=True)


def _cores_words(cores: int, here: int) -> str:
    return f"the {here} cores of this machine" if cores == here else f"{cores} of the {here} cores of this machine"


def _size(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size > 1e9 else f"{math.ceil(size / 1e6)} MB"


def _predictions_words(figures: list[Figure], cores: int) -> str:
    """What models have yet to say of points for the pages' panels, and how long that takes; empty if nothing."""
    left = [
        (kind, point)
        for figure in filter(has_panel, figures)
        for point in figure.points
        for kind, of in KINDS.items()
        if of.speaks_of(figure.scenario) and not prediction_file(kind, figure.id, point).exists()
    ]
    if not left:
        return ""
    left_s = sum(prediction_s(kind, point.scenario) for kind, point in left)
    return f"\nPages (target all) show what the models say, too: {len(left)} predictions, about {span(left_s / cores)} more."


def prediction_s(kind: str, scenario: Scenario) -> float:
    """Expected wall-clock seconds of what a model says of a point, on one core."""
    flows = sum(f.count for f in scenario.flows)
    return PREDICTION_S + SECONDS_PER_FLOW_STEP * flows * steps_of(kind, scenario)


def to_stderr() -> Console:
    """A console beside snakemake's own words, which go to standard error."""
    return Console(stderr=True)
