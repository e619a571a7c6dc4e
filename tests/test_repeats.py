"""What ships is what today's code would make: a run of each commit that made some, again, by every hash."""

from __future__ import annotations

import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.campaign.config import load_config
from bbrlab.campaign.figures import figures_at
from bbrlab.kernel.built import describe_kernel, get_kernel
from bbrlab.report.shipped import RUNS, is_shipped, read_manifest
from bbrlab.run.manifest import package_versions
from bbrlab.workflow.estimate import estimate_s
from bbrlab.workflow.records import results_at
from bbrlab.workflow.verify import again

SHIPPED = paths.ROOT / "shipped"
SCALES = [scale for scale in load_config().scales if is_shipped(SHIPPED, scale)]


LONGEST_S = 60  # of a run that `make test` makes again


def cheapest_of_each_commit(scale: str) -> list[tuple[tuple[str, str, int], float]]:
    """Figure, point and seed of the run of each commit that takes least time, and how long that is estimated to take (s)."""
    figures = figures_at(scale, list(read_manifest(SHIPPED, scale).figures))
    points = {(figure.id, point.label): point for figure in figures for point in figure.points}
    runs = pd.read_parquet(SHIPPED / scale / RUNS)
    runs["cost_s"] = [estimate_s(points[place]) for place in zip(runs["figure"], runs["point"], strict=True)]
    found = runs.sort_values("cost_s", kind="stable").drop_duplicates("commit")
    return [((row.figure, row.point, row.seed), row.cost_s) for row in found.itertuples()]


@pytest.mark.parametrize("scale", SCALES)
def test_a_run_of_each_commit_that_ships_comes_out_the_same(scale):
    cheapest = cheapest_of_each_commit(scale)
    assert len(cheapest) == len(read_manifest(SHIPPED, scale).commits)
    short = [key for key, cost_s in cheapest if cost_s <= LONGEST_S]
    assert len(short) > len(cheapest) / 2, "most commits have a run that is made again"
    come_out_the_same(scale, short)


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_long_runs_come_out_the_same(scale):
    """Of commits that made long runs alone: minutes each."""
    come_out_the_same(scale, [key for key, cost_s in cheapest_of_each_commit(scale) if cost_s > LONGEST_S])


def come_out_the_same(scale: str, wanted: list[tuple[str, str, int]]) -> None:
    manifest = read_manifest(SHIPPED, scale)
    if describe_kernel(get_kernel(manifest.kernel["name"]))["key"] != manifest.kernel["key"]:
        pytest.skip("the kernel's source or its compiler is another one here")
    if other := {f"{name} {version}" for name, version in package_versions().items()} - set(manifest.packages):
        pytest.skip(f"another version of a package that the guest uses: {min(other)}")
    results = results_at(SHIPPED, scale, figures_at(scale, list(manifest.figures)))
    records = [results.record(key) for key in wanted]
    outcomes = again(results, records, cores=1)
    names = [f"{one.run.figure} {one.run.point.label} seed {one.run.seed}" for one in records]
    assert {name: outcome.wrong for name, outcome in zip(names, outcomes, strict=True) if outcome.wrong} == {}
