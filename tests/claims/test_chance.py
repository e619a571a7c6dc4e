"""Points that no seed changes: two seeds tell all of them, and claims that compare them with others use every seed of those."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign.planning import seed_request_text
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.claims.sample import reach
from bbrlab.claims.wanted_seeds import wanted_seeds
from bbrlab.results.algorithm_table import draws_nothing
from bbrlab.results.figures import REPEATS, figures_at, runs_of
from bbrlab.results.seeds import seeds_needed
from bbrlab.results.verdicts import REPRODUCED
from bbrlab.scenario.load import load_scenario
from bbrlab.scenario.point import Point
from bbrlab.scenario.schema import NO_NOISE
from bbrlab_apps.shipping.pack import Finished, _runs_of_table
from tests.made_up import judge_claim, sample, table, written

FIG5 = "cao2019/fig5"
MORE = """
- id: CA-x
  says: BBR has more goodput than CUBIC.
  source: Fig. 5
  exactness: raw data
  because: two laboratories differ by so much
  claims:
    - at:
        cubic: {figure: fig5, where: {case: cubic, rate_mbit: 100, base_rtt_ms: 25, buffer_bytes: 100000}}
        bbr: {figure: fig5, where: {case: bbr1, rate_mbit: 100, base_rtt_ms: 25, buffer_bytes: 100000}}
      metric: bbr.goodput_mbit - cubic.goodput_mbit
      expect: {value: 0.4, within: 0.5}
"""


def quiet(point: Point) -> Point:
    hosts = point.scenario.hosts.model_copy(update={"noise": NO_NOISE})
    return Point(point.scenario.model_copy(update={"hosts": hosts}), point.values)


@pytest.fixture(scope="module")
def fig5():
    """At full, two points of it: one flow of each algorithm alone, in hosts without noise."""
    (figure,) = figures_at("full", [FIG5])
    figure = replace(figure, points=[quiet(p) for p in figure.points])
    chosen = {"network.rate_mbit": 100, "network.rtt_ms": 25, "network.buffer.bytes": 100000}
    return replace(figure, points=[p for p in figure.points if chosen.items() <= p.values.items()], seeds_cap=12)


@pytest.fixture
def claim(tmp_path):
    (found,) = claims_of(load_statements([written(tmp_path, MORE, "cao2019")]))
    return found


def runs(figure, cubic=lambda seed: 0.0) -> pd.DataFrame:
    """A table of what each point begins with: BBRv1's goodput goes with the seed, CUBIC's as told."""
    made = table(
        figure, lambda point, seed: seed / 10 if point.values["case"] == "bbr1" else cubic(seed), figure.trials
    )
    made.loc[made["case"] == "cubic", "drops"] = cubic(1)  # which tells the runs of made-up tables apart
    begins = {p.label: figure.trials_of(p) for p in figure.points}
    return made[made["seed"] <= made["point"].map(begins)]


def by_case(figure, seeds):
    return {p.values["case"]: seeds[p.label] for p in figure.points}


@pytest.mark.parametrize(
    ("changes", "nothing"),
    [
        ({}, True),
        ({"flows.0.cca": "reno", "flows.0.count": 3, "hosts.receive_offload": "gro"}, True),
        ({"flows.0.cca": "bbr1"}, False),
        (
            {
                "flows.0.cca": "dctcp",
                "hosts.ecn": "on",
                "cases": {"codel": {"network.qdisc": {"kind": "codel", "ecn": True}}},
            },
            False,
        ),
        ({"hosts.noise": {"processing_us": 0}}, False),
        ({"network.loss": 0.01}, False),
        ({"network.changes": [{"at_s": 1, "loss": 0.1}]}, False),
        ({"network.changes": [{"at_s": 1, "rate_mbit": 5}]}, True),
        ({"network.rtt_ms": [10, 20]}, False),
        ({"flows.0.rtt_ms": [10, 20]}, False),
        ({"network.jitter": {"kind": "slotted", "ms": 1}}, False),
        ({"network.qdisc": {"kind": "red"}}, False),
        ({"flows": [{"cca": "cubic"}, {"cca": "bbr3"}]}, False),
        ({"flows": [{"cca": "cubic", "traffic": {"mode": "replay"}}]}, False),
    ],
)
def test_what_draws_nothing(changes, nothing):
    path = paths.SCENARIOS / "cao2019" / "fig5.yaml"
    base = {"cases": {}, "sweep": {}, "hosts.noise": "off"} | ({} if "flows" in changes else {"flows.0.cca": "cubic"})
    assert draws_nothing(load_scenario(path, base | changes)) is nothing


def test_it_begins_with_two_seeds(fig5):
    counts = {"bbr1": 0, "cubic": 0}
    for run in runs_of(fig5):
        counts[run.point.values["case"]] += 1
    assert counts == {"bbr1": fig5.trials, "cubic": REPEATS} == {"bbr1": 5, "cubic": 2}


def test_equal_seeds_are_enough_and_unequal_ones_have_the_figures_trials(fig5, claim):
    equal, unequal = runs(fig5), runs(fig5, lambda seed: seed * 1e-6)
    assert by_case(fig5, seeds_needed(fig5, equal)) == {"bbr1": 5, "cubic": 2}
    assert by_case(fig5, wanted_seeds(fig5, equal, [claim])) == {"bbr1": 8, "cubic": 2}, "a wide interval asks of BBRv1"
    assert by_case(fig5, seeds_needed(fig5, unequal)) == {"bbr1": 5, "cubic": 5}
    assert by_case(fig5, wanted_seeds(fig5, unequal, [])) == {"bbr1": 5, "cubic": 5}


def test_one_seed_shows_nothing(fig5):
    once = runs(fig5)
    assert by_case(fig5, seeds_needed(fig5, once[once["seed"] == 1])) == {"bbr1": 5, "cubic": 5}


def test_the_workflow_looks_at_such_figures_though_no_claim_asks(fig5):
    assert seed_request_text(fig5, []) is not None
    (other,) = figures_at("full", ["sarpkaya2025/fig2a"])
    assert seed_request_text(other, []) is None


def test_a_claim_uses_every_seed_of_what_it_is_compared_with(fig5, claim):
    found = sample(claim, reach(claim, {FIG5: fig5}).points, {FIG5: runs(fig5, lambda seed: -0.1)})
    assert found.values.ravel() == pytest.approx([0.2, 0.3, 0.4, 0.5, 0.6])
    assert (found.seeds, found.failed, found.without) == (5, 0, 0)
    assert not found.identical.any()
    assert judge_claim(claim, {FIG5: fig5}, {FIG5: runs(fig5)}).verdict == REPRODUCED
    varying = sample(claim, reach(claim, {FIG5: fig5}).points, {FIG5: runs(fig5, lambda seed: seed)})
    assert len(varying.of_part(0)) == REPEATS, "where seeds do differ only so many count as both have"


def test_a_failed_run_fails_beside_every_seed(fig5, claim):
    made = runs(fig5)
    made.loc[made["case"] == "cubic", "ok"] = False
    found = sample(claim, reach(claim, {FIG5: fig5}).points, {FIG5: made})
    assert (found.seeds, found.failed) == (2, 2)
    assert found.lacks(0)


def test_ship_wants_the_figures_trials_where_seeds_differ(fig5, tmp_path):
    campaign = Finished("full", [fig5], tmp_path)
    assert len(_runs_of_table(campaign, fig5, runs(fig5))) == 7
    with pytest.raises(UserError, match=r"case=cubic.* has fewer than 5 seeds"):
        _runs_of_table(campaign, fig5, runs(fig5, lambda seed: seed))
