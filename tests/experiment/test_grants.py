"""network.reverse.grants: a way back that sends at a grid of times only, and what comes out of it."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbrlab.base.arrays import Array
from bbrlab.base.errors import UserError
from bbrlab.kernel.built import Kernel
from bbrlab.measure.checks.bottleneck import sends_check
from bbrlab.measure.checks.check import VIRTUAL_TIME
from bbrlab.measure.queues import Queue
from bbrlab.run.capture import Capture
from bbrlab.run.output import BOTTLENECK, RECEIVERS
from bbrlab.run.several import plan_several
from bbrlab.scenario.load import base_point, points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.rates import capacity_mbit, highest_mbit
from bbrlab.scenario.schema import Scenario
from bbrlab_apps.play.playable import playable
from bbrlab_apps.traffic.records import Records
from tests.conftest import scenario_dict
from tests.experiment.test_plan import plan_of

GRANTS = {"period_ms": 5, "bytes": 6600}  # 100 ACKs
PATH = {"network__rate_mbit": 50, "network__reverse": {"grants": GRANTS, "buffer": {"packets": 60}}, "duration_s": 8, "window_s": [4, 8]}  # fmt: skip
PERIOD_NS = 5_000_000
STEP_NS = 1000  # what the clock moves at most while a sample is taken
ACK_BYTES = 66
RECEIVER = bytes([10, 0, 32, 2])


def reverse_of(**grants: Any) -> dict[str, Any]:
    return PATH | {"network__reverse": {"grants": GRANTS | grants, "buffer": {"packets": 60}}}


def test_the_plan_has_one_time_and_its_period():
    """Beside a trace of the other link; what calibration measures is the grants' mean rate."""
    plan = plan_of(**PATH, network__trace="cellular")
    trace, grants = plan.content["opportunities"]
    assert (trace["field"], trace["devices"], grants["devices"]) == ("network.trace", ["s1-s2"], ["s2-s1"])
    assert grants == {
        "field": "network.reverse.grants", "devices": ["s2-s1"], "file": "opportunities-1.u64", "bytes": 6600,
        "first_ns": PERIOD_NS, "period_ns": PERIOD_NS,
    }  # fmt: skip
    assert struct.unpack("<Q", plan.opportunities["opportunities-1.u64"]) == (0,)
    assert plan.content["bottlenecks"][1]["rate_bps"] == 10_560_000
    assert plan_of(**PATH).content["opportunities"] == [grants | {"file": "opportunities-0.u64"}]


def test_its_rate_is_what_all_grants_make():
    """Over a window to a grant; a buffer in BDP is of the mean."""
    scenario = validate(scenario_dict(**PATH, network__rtt_ms=50), "s").towards("reverse")
    assert capacity_mbit(scenario, 4, 8) == highest_mbit(scenario.network) == pytest.approx(10.56)
    assert capacity_mbit(scenario, 4.001, 4.006) == pytest.approx(10.56)
    assert scenario.network.bdp_bytes == pytest.approx(66_000)
    assert scenario.network.grants_ms == 5 and validate(scenario_dict(**PATH), "s").network.grants_ms == 0


def test_without_the_field_nothing_is_another():
    scenario = validate(scenario_dict(network__reverse={"rate_mbit": 1, "buffer": {"bdp": 1}}), "s")
    assert "grants" not in scenario.model_dump()["network"]["reverse"]
    assert scenario.network.towards("reverse").opportunities is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [(PATH | {"network__reverse": {"buffer": {"bdp": 1}}}, ["network.reverse", "exactly one of rate_mbit, grants (found: none)"]),
     (PATH | {"network__reverse": {"rate_mbit": 1, "grants": GRANTS, "buffer": {"bdp": 1}}}, ["network.reverse", "found: both"]),
     (reverse_of(bytes=65), ["network.reverse.grants.bytes", "66"]),
     (reverse_of(period_ms=0.0095), ["network.reverse.grants.period_ms", "0.01"]),
     (reverse_of(period_ms=0.0105), ["network.reverse.grants.period_ms", "whole number of microseconds"]),
     (reverse_of(bytes=2**30), ["network.reverse.grants", "Mbit/s", "0.001 to 12000"]),
     (reverse_of(period_ms=1000, bytes=66), ["network.reverse.grants", "0.000528 Mbit/s"]),
     (reverse_of(period_ms=1000, bytes=6600) | {"window_s": [4.1, 4.9]}, ["network.reverse.grants lets no packet through in window_s"])],
)  # fmt: skip
def test_grants_that_cannot_be_are_refused(changes, words):
    with pytest.raises(UserError) as told:
        points_of(validate(scenario_dict(**changes), "s"))
    assert all(word in str(told.value) for word in words), told.value


def test_plays_and_machines_of_senders_refuse_it():
    point = base_point(validate(scenario_dict(**PATH), "s"))
    with pytest.raises(UserError, match=r"network.reverse.grants: a link that sends at given times"):
        playable(point, 1)
    with pytest.raises(UserError, match=r"--sender-kernel: .*network.reverse.grants"):
        plan_several(point, 1, Kernel("k", "6", "b", "k", "i", {"cubic": "cubic"}, {}, "s", "c", 1.0), {})


def test_a_link_that_leaves_a_grant_out_fails():
    """Between two samples, a grant at each end of them may be on either side."""
    scenario: Scenario = validate(scenario_dict(**reverse_of(bytes=660)), "s").towards("reverse")
    times = np.arange(0, 1, 0.1)
    for sent_each, ok in ((20 * 660, True), (20 * 660 - 300, True), (19 * 660, False)):
        columns = {"time_s": times, "bytes": np.full(10, 50_000), "drops": np.zeros(10), "sent_bytes": np.arange(10) * sent_each}  # fmt: skip
        assert sends_check(scenario, "reverse", Queue(columns), VIRTUAL_TIME).ok is ok, sent_each


def acks_of(folder: Path) -> tuple[Array, Array]:
    """When each packet of the receiver came to the way back, and left it, in ns since the start; each is seen at both ends of a link."""
    came, left = (
        np.array([p.time_ns for p in Records(folder / name) if p.data[26:30] == RECEIVER])
        for name in (RECEIVERS, BOTTLENECK)
    )
    left = np.sort(left)[::2]
    return came[: len(left)], left


def acks_per_grant(left: Array, period_ns: int) -> list[int]:
    """How many left at each grant of the window."""
    grants = left // period_ns
    found = Counter(grants[(grants >= 4e9 // period_ns) & (grants < 8e9 // period_ns)].tolist())
    return list(found.values())


@pytest.mark.guest
def test_each_ack_leaves_at_the_first_grant_after_it_came(run_scenario):
    """To a step of the clock. With the link full an ACK comes every second packet, so that a grant has the whole number below or above of
    so many in a period, each as often as their mean says."""
    run = run_scenario(**PATH, capture=Capture(("bottleneck", "hosts")))
    assert run.failed == []
    came, left = acks_of(run.folder)
    waited = left - came
    assert (left % PERIOD_NS <= STEP_NS).all() and waited.min() >= 0 and waited.max() <= PERIOD_NS + STEP_NS
    assert waited.mean() == pytest.approx(PERIOD_NS / 2, rel=0.02)
    per_grant = Counter(acks_per_grant(left, PERIOD_NS))
    mean = 50e6 / 8 / 1514 / 2 * 5e-3
    assert set(per_grant) == {int(mean), int(mean) + 1}
    assert per_grant[int(mean) + 1] / per_grant.total() == pytest.approx(mean % 1, abs=0.02)


@pytest.mark.guest
def test_a_grant_lets_no_more_through_than_it_is_of(run_scenario):
    """Of 5 ACKs every 10 ms: exactly 5 leave each time, since more wait; the link is full, and sends as its check expects."""
    run = run_scenario(**reverse_of(period_ms=10, bytes=5 * ACK_BYTES), sample_hz=64, capture=Capture(("bottleneck", "hosts")))  # fmt: skip
    assert run.failed == []
    _, left = acks_of(run.folder)
    assert Counter(acks_per_grant(left, 2 * PERIOD_NS)) == {5: 400}
    assert run.summary["bottleneck_reverse"]["link_utilisation"] == pytest.approx(1, abs=0.002)
    assert {"busy_rate_reverse", "queue_sends_reverse", "qdisc_values_reverse"} <= {c["name"] for c in run.summary["checks"] if c["ok"]}  # fmt: skip


@pytest.mark.guest
def test_data_larger_than_a_grant_waits_for_several(run_scenario):
    """Flows against the others send 1514 bytes by grants of 500; nothing of them is lost while something waits."""
    flows = [{"cca": "cubic"}, {"cca": "cubic", "direction": "reverse"}]
    run = run_scenario(**reverse_of(period_ms=2, bytes=500), flows=flows, sample_hz=64)
    assert run.failed == []
    assert run.summary["bottleneck_reverse"]["link_utilisation"] == pytest.approx(1, abs=0.01)
