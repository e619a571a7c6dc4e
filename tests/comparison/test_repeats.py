"""What ships is what today's code would make: a run of each commit that made some, again, by every hash. Runs of other versions are left out."""

from __future__ import annotations

import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.comparison.expected_runs import ExpectedResults, Key, results_at
from bbrlab.comparison.verify import run_again
from bbrlab.results.config import FULL, load_config
from bbrlab.results.figures import figures_at
from bbrlab.results.run_estimate import estimate_s
from bbrlab.results.shipped import RUNS, is_shipped, read_manifest
from tests.recorded import skip_for_another_guest

SHIPPED = paths.ROOT / "shipped"
SCALES = [scale for scale in load_config().scales if is_shipped(SHIPPED, scale)]
LONGEST_S = 60  # of a run that is made again


def verifiable(scale: str) -> ExpectedResults:
    """What ships, with the runs that this version makes again."""
    try:
        return results_at(SHIPPED, scale, figures_at(scale, list(read_manifest(SHIPPED, scale).figures)))
    except UserError as error:
        pytest.skip(str(error))


def cheapest_of_each_commit(results: ExpectedResults) -> list[tuple[Key, float]]:
    """Figure, point and seed of the run of each commit that takes least time, and how long that is estimated to take (s)."""
    points = {(id, point.label): point for id, figure in results.figures.items() for point in figure.points}
    runs = pd.read_parquet(SHIPPED / results.scale / RUNS).set_index(["figure", "point", "seed"]).loc[results.keys]
    runs = runs.reset_index()
    runs["cost_s"] = [estimate_s(points[place]) for place in zip(runs["figure"], runs["point"], strict=True)]
    cheapest = runs.sort_values("cost_s", kind="stable").drop_duplicates("commit")
    return [((row.figure, row.point, row.seed), row.cost_s) for row in cheapest.itertuples()]


@pytest.mark.parametrize(
    "scale", [pytest.param(scale, marks=[pytest.mark.slow] if scale == FULL else []) for scale in SCALES]
)
def test_a_run_of_each_commit_that_ships_comes_out_the_same(scale):
    results = verifiable(scale)
    cheapest = cheapest_of_each_commit(results)
    short = [key for key, cost_s in cheapest if cost_s <= LONGEST_S]
    assert len(short) > len(cheapest) / 2, "most commits have a run that is made again"
    records = [results.expected(key) for key in short]
    versions = read_manifest(SHIPPED, results.scale).versions
    made_by = {record.kernel for record in records}
    skip_for_another_guest([one for one in versions if (one.kernel["name"], one.kernel["key"]) in made_by])
    outcomes = run_again(results, records, cores=1)
    names = [f"{one.run.figure} {one.run.point.label} seed {one.run.seed}" for one in records]
    assert {name: outcome.problems for name, outcome in zip(names, outcomes, strict=True) if outcome.problems} == {}
