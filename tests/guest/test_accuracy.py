"""Against published data, at the paper's own durations (make test-slow)."""

from __future__ import annotations

import math

import pytest

from bbrlab.base import paths
from bbrlab.base.tables import published_table
from bbrlab.claims.load import claims_of, load_statements
from bbrlab.scenario.load import load_scenario

pytestmark = [pytest.mark.guest, pytest.mark.slow]
POINTS = [(n, x) for n in (1, 4, 16) for x in (1, 4, 16, 64)]


@pytest.mark.parametrize("panel", ["fig2a", "fig2c", "fig3a", "fig5a", "fig5c"])
def test_sarpkaya(run_scenario, panel):
    """One seed of up to twelve points at the paper's duration: RMSE within the target of the full comparison."""
    claim = next(c for c in claims_of(load_statements()) if c.id == f"SA-{panel.removeprefix('fig')}-RMSE")
    where = claim.at[""].where
    published = published_table(f"sarpkaya2025/{panel}").set_index(["bbr_flows", "buffer_bdp"])["share_of_capacity"]
    scenario = load_scenario(paths.ROOT / "scenarios" / "sarpkaya2025" / f"{panel}.yaml", {})
    bbr, other = (f.cca for f in scenario.flows)
    errors = []
    for n, x in POINTS:
        if n not in where.get("flows.0.count", [n]) or x not in where.get("network.buffer.bdp", [x]):
            continue
        flows = [{"cca": bbr, "count": n}, {"cca": other}]
        result = run_scenario(
            flows=flows,
            network__buffer__bdp=x,
            duration_s=1000,
            sample_hz=1,
            window_s=list(scenario.window_s),
            hosts__segmentation="nic",
        )
        assert result.failed == []
        errors.append(result.summary["groups"][0]["share_of_capacity"] - published[n, x])
    assert math.sqrt(sum(e * e for e in errors) / len(errors)) <= claim.expect.bounds[1]


@pytest.mark.parametrize("buffer_bdp", [1, 2])
def test_order_of_versions(run_scenario, buffer_bdp):
    """One flow against CUBIC in a small buffer: BBRv2 takes less than BBRv3, BBRv3 less than BBRv1, and at least half as
    much less as published (one seed; .23, .47, .81 at 1 BDP, .20, .47, .57 at 2)."""
    share, published = [], []
    for cca, panel in (("bbr2", "fig3a"), ("bbr3", "fig5a"), ("bbr1", "fig2a")):
        result = run_scenario(flows=[{"cca": cca}, {"cca": "cubic"}], network__buffer__bdp=buffer_bdp, duration_s=1000,
                              window_s=[600, 1000], hosts__segmentation="nic")  # fmt: skip
        share.append(result.summary["groups"][0]["share_of_capacity"])
        table = published_table(f"sarpkaya2025/{panel}").set_index(["bbr_flows", "buffer_bdp"])["share_of_capacity"]
        published.append(table[1, buffer_bdp])
    for i in (1, 2):
        assert share[i] - share[i - 1] > (published[i] - published[i - 1]) / 2


@pytest.mark.parametrize(("cca", "at_1", "at_1_5", "at_3"), [("bbr2", 65, 55, 15), ("bbr3", 72, 70, 20)])
def test_where_random_loss_is_too_much(run_scenario, cca, at_1, at_1_5, at_3):
    """100 Mbit/s, 40 ms, means of 3 seeds, Mbit/s: three quarters of the link at 1 % (BBRv3; BBRv2 a little less), and
    between 1.5 and 3 % both give way."""
    goodput = {}
    for loss in (0.01, 0.015, 0.03):
        runs = [run_scenario(flows=[{"cca": cca}], network__rate_mbit=100, network__loss=loss, hosts__segmentation="nic",
                             duration_s=60, window_s=[10, 60], seed=seed) for seed in (1, 2, 3)]  # fmt: skip
        assert all(r.failed == [] for r in runs)
        goodput[loss] = sum(r.summary["groups"][0]["goodput_mbit"] for r in runs) / len(runs)
    assert goodput[0.01] > at_1
    assert goodput[0.015] < at_1_5
    assert goodput[0.03] < at_3


def test_many_flows_and_high_rate(run_scenario):
    """100 flows at 1 Gbit/s: checks hold, the link is full, memory suffices."""
    result = run_scenario(
        network__rate_mbit=1000,
        network__rtt_ms=10,
        network__buffer__bdp=2,
        flows=[{"cca": "bbr1", "count": 50}, {"cca": "cubic", "count": 50}],
    )
    assert result.failed == []
    assert result.summary["bottleneck"]["utilisation"] > 0.9


@pytest.mark.parametrize("cca", ["bbr1", "bbr2", "bbr3"])
def test_ten_gigabits(run_scenario, cca):
    result = run_scenario(
        network__rate_mbit=10_000,
        network__rtt_ms=10,
        hosts__segmentation="nic",
        flows=[{"cca": cca}],
        duration_s=4,
        window_s=[2, 4],
    )
    assert result.failed == []
    assert result.summary["bottleneck"]["utilisation"] > 0.9
