"""network.mtu_bytes: packets of another size, in all that counts packets, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bbrlab.base.errors import UserError
from bbrlab.measure.checks.bottleneck import burst_checks
from bbrlab.measure.checks.check import VIRTUAL_TIME
from bbrlab.measure.checks.flows import _segment_size
from bbrlab.scenario.draws import draw_rtt_offsets
from bbrlab.scenario.load import points_of
from bbrlab.scenario.messages import validate
from tests.conftest import scenario_dict
from tests.experiment.test_plan import plan_of

JUMBO = {"network__mtu_bytes": 9000, "network__rate_mbit": 100}


def test_all_that_counts_packets_counts_those_of_the_mtu():
    """Buffer, the limit of a queue that counts packets, CAKE's memory, RED's thresholds, the offset of an RTT."""
    queues = {kind: plan_of(**JUMBO, network__buffer={"packets": 50}, network__qdisc={"kind": kind}).content["bottlenecks"][0] for kind in ("fifo", "codel", "cake", "red")}  # fmt: skip
    assert {link["buffer_bytes"] for link in queues.values()} == {50 * 9014}
    assert queues["codel"]["qdisc"][2] == "50"
    assert queues["cake"]["qdisc"][3] == f"{50 * (8948 + 832)}b"
    words = queues["red"]["qdisc"]
    assert {words[i]: int(words[i + 1]) for i in (3, 7)} == {"min": 37_558, "avpkt": 9014}
    slow = validate(
        scenario_dict(network__mtu_bytes=9000, network__rate_mbit=200, hosts__noise={"rtt_offset_us": 1e6}), "s"
    )
    assert max(draw_rtt_offsets(slow, seed)[0] for seed in range(100)) == pytest.approx(9014 * 8e-3 / 200, rel=0.05)


def test_the_plan_has_it_only_where_a_scenario_does():
    assert plan_of(**JUMBO).content["mtu_bytes"] == 9000
    assert "mtu_bytes" not in plan_of(network__mtu_bytes=1500).content


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"network__mtu_bytes": 575}, ["network.mtu_bytes", "576"]),
     ({"network__mtu_bytes": 9001}, ["network.mtu_bytes", "9000"]),
     ({"network__mtu_bytes": 1400.5}, ["network.mtu_bytes"]),
     ({"network__mtu_bytes": 1400, "network__trace": "leo"}, ["mtu_bytes 1400", "trace"]),
     ({**JUMBO, "network__buffer": {"bytes": 9013}}, ["buffer.bytes 9013", "9014"]),
     ({**JUMBO, "network__reverse": {"rate_mbit": 1, "buffer": {"bytes": 2000}}}, ["reverse.buffer.bytes 2000", "9014"]),
     ({**JUMBO, "network__policer": {"rate_mbit": 5, "burst_bytes": 9000}}, ["policer.burst_bytes 9000", "9014"]),
     ({**JUMBO, "network__links": [{}, {"buffer": {"bytes": 2000}}]}, ["links.1.buffer.bytes 2000", "9014"]),
     ({**JUMBO, "network__buffer": {"packets": 300_000}, "network__qdisc": {"kind": "fq_codel"}}, ["fq_codel holds at most 219579"])],
)  # fmt: skip
def test_what_cannot_be_is_refused(changes, words):
    with pytest.raises(UserError) as told:
        points_of(validate(scenario_dict(**changes), "s"))
    assert all(word in str(told.value) for word in words), told.value


def test_a_burst_of_small_packets_fills_cakes_memory_with_more_of_them():
    """It counts 1356 bytes for a packet of TCP's and 1280 for one of the burst, so that 52 of these fit where 50 of those do."""
    small = scenario_dict(network__mtu_bytes=576, network__buffer={"packets": 50}, network__qdisc={"kind": "cake"})
    for packets, ok in ((52, True), (50, False), (53, False)):
        burst: Any = {"rate_bps": None, "buffer_bytes": packets * 590, "filled": True, "packets": 90}
        assert burst_checks(validate(small, "s"), "forward", burst, VIRTUAL_TIME)[1].ok is ok


def test_a_flow_of_another_segment_size_fails():
    scenario = validate(scenario_dict(**JUMBO), "s")

    def outcome(*sizes: int) -> Any:
        counters: Any = [SimpleNamespace(columns={"snd_mss": np.array(sizes, "<u4")})]
        return [c.ok for c in _segment_size(scenario, counters)]

    assert [outcome(8948, 8948), outcome(8948, 1448), outcome()] == [[True], [False], [None]]
    assert _segment_size(validate(scenario_dict(), "s"), []) == []


@pytest.mark.guest
@pytest.mark.parametrize("mtu_bytes", [576, 1280, 9000])
def test_goodput_is_what_the_headers_leave(run_scenario, mtu_bytes):
    """Of each frame 66 bytes are headers; the buffer holds whole frames, as a burst shows, also where the rate changes."""
    changes = [{"at_s": 4.5, "rate_mbit": 10}] if mtu_bytes == 9000 else []
    run = run_scenario(network__mtu_bytes=mtu_bytes, network__rate_mbit=20, network__buffer={"packets": 60}, network__changes=changes, duration_s=5, window_s=[2, 4], flows=[{"cca": "bbr1"}])  # fmt: skip
    assert run.failed == []
    assert run.check("segment_size")["measured"] == mtu_bytes - 52
    assert run.check("buffer")["measured"] == 60 * (mtu_bytes + 14)
    goodput = 20 * (mtu_bytes - 52) / (mtu_bytes + 14)
    assert run.summary["flows"][0]["goodput_mbit"] == pytest.approx(goodput, rel=0.005)


@pytest.mark.guest
@pytest.mark.parametrize("kind", ["cake", "fq_codel", "fq", "pie"])
def test_queues_that_count_packets_or_memory_hold_frames_of_it(run_scenario, kind):
    run = run_scenario(**JUMBO, network__buffer={"packets": 200}, network__qdisc={"kind": kind}, hosts__segmentation="nic", duration_s=2, window_s=[1, 2])  # fmt: skip
    assert run.failed == []
    assert {"rate", "buffer", "segment_size", "qdisc_values"} <= {c["name"] for c in run.summary["checks"] if c["ok"]}
