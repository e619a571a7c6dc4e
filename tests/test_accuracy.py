"""Against published data, at the paper's own durations (make test-slow)."""

from __future__ import annotations

import math

import pytest

from bbrlab import compare

pytestmark = [pytest.mark.guest, pytest.mark.slow]
POINTS = [(n, x) for n in (1, 4, 16) for x in (1, 4, 16, 64)]


@pytest.mark.parametrize(
    ("panel", "other", "window"), [("fig2a", "cubic", [600, 1000]), ("fig2c", "reno", [800, 1000])]
)
def test_sarpkaya(run_scenario, panel, other, window):
    """One seed of twelve points: RMSE within the target of the full comparison."""
    published = compare.published(f"sarpkaya2025/{panel}").set_index(["bbr_flows", "buffer_bdp"])["share_of_capacity"]
    errors = []
    for n, x in POINTS:
        flows = [{"cca": "bbr1", "count": n}, {"cca": other}]
        result = run_scenario(flows=flows, network__buffer__bdp=x, duration_s=1000, window_s=window)
        assert result.failed == []
        errors.append(result.summary["groups"][0]["share_of_capacity"] - published[n, x])
    assert math.sqrt(sum(e * e for e in errors) / len(errors)) <= compare.DEFAULT_YARDSTICK.rmse


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


def test_ten_gigabits(run_scenario):
    result = run_scenario(
        network__rate_mbit=10_000,
        network__rtt_ms=10,
        hosts__segmentation="nic",
        flows=[{"cca": "bbr1"}],
        duration_s=4,
        window_s=[2, 4],
    )
    assert result.failed == []
    assert result.summary["bottleneck"]["utilisation"] > 0.9
