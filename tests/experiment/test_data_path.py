"""network.data_path: delay, jitter and reordering of data packets, each against a known answer, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bbrlab.base.errors import UserError
from bbrlab.measure.checks.check import VIRTUAL_TIME
from bbrlab.measure.checks.data_path import data_path_checks
from bbrlab.run.capture import Capture
from bbrlab.run.output import BOTTLENECK, RECEIVERS
from bbrlab.scenario.load import points_of
from bbrlab.scenario.messages import validate
from bbrlab_apps.traffic.records import Records
from tests.conftest import scenario_dict
from tests.experiment.test_plan import plan_of

FULL = {"delay_ms": 10, "jitter": {"kind": "per-packet", "ms": 5}, "reordering": {"share": 0.1, "late_ms": 3}}
QUICK = {"network__rate_mbit": 20, "duration_s": 3, "window_s": [1, 3]}


def test_the_delay_of_data_is_a_part_of_the_rtt():
    """What data has ACKs have not, also of an RTT that changes; what comes late stands before a switch of the receivers' own."""
    plan = plan_of(network__data_path=FULL, network__changes=[{"at_s": 1, "rtt_ms": 60}]).content
    sender, receiver = plan["hosts"]
    assert sender["delay_us"] - sender["rtt_offset_us"] == 30_000
    assert (receiver["delay_us"], receiver["jitter_kind"], receiver["jitter_us"]) == (10_000, "per-packet", 5000)
    assert plan["changes"][0]["delay_us"] == {"h1": 50_000 + sender["rtt_offset_us"]}
    assert (receiver["switch"], plan["switch_links"]) == ("s6", [("s1", "s2"), ("s6", "s2")])
    assert plan["late"] == {"devices": ["s2-s6"], "share": 0.1, "late_us": 3000}
    assert plan["probes"] == [{"host": "h1", "receiver": "r1"}]


def test_flows_against_the_others_have_it_too():
    flows = [{"cca": "cubic"}, {"cca": "cubic", "direction": "reverse"}]
    plan = plan_of(
        network__data_path={**FULL, "jitter": {"kind": "per-packet", "ms": 5, "order": "free"}}, flows=flows
    ).content
    assert plan["late"]["devices"] == ["s1-s5", "s2-s6"]
    assert [h["name"] for h in plan["hosts"] if h.get("overtakes")] == ["r1", "h2"]
    assert len(plan["probes"]) == 2


def test_without_the_field_the_plan_has_nothing_of_it():
    plan = plan_of().content
    assert not {"late", "probes"} & plan.keys()
    assert not any("overtakes" in host for host in plan["hosts"])


@pytest.mark.parametrize(
    ("path", "words"),
    [({}, ["network.data_path", "at least one of delay_ms"]),
     ({"delay_ms": 0}, ["network.data_path", "at least one of delay_ms"]),
     ({"delay_ms": 41}, ["network.data_path.delay_ms 41", "network.rtt_ms is 40"]),
     ({"jitter": {"kind": "per-packet", "ms": 4294}}, ["network.data_path.jitter", "4293 ms at most"]),
     ({"jitter": {"kind": "slotted", "ms": 4, "order": "free"}}, ["network.data_path.jitter", "order free is of per-packet"]),
     ({"jitter": {"kind": "per-packet", "ms": 1, "order": "free"}}, ["network.data_path.jitter.order free", "no effect", "1.211 ms"]),
     ({"reordering": {"share": 0.1, "late_ms": 1.2}}, ["network.data_path.reordering.late_ms 1.2", "none overtakes another"]),
     ({"reordering": {"share": 0, "late_ms": 3}}, ["network.data_path.reordering.share"]),
     ({"reordering": {"share": 1e-9, "late_ms": 3}}, ["network.data_path.reordering.share", "netem"]),
     ({"reordering": {"share": 0.1}}, ["network.data_path.reordering.late_ms"])],
)  # fmt: skip
def test_paths_that_cannot_be_are_refused(path, words):
    with pytest.raises(UserError) as told:
        points_of(validate(scenario_dict(network__data_path=path), "s"))
    assert all(word in str(told.value) for word in words), told.value


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"network__changes": [{"at_s": 1, "rtt_ms": 5}]}, ["delay_ms 10", "network.changes.0.rtt_ms is 5"]),
     ({"network__rtt_ms": [9, 50]}, ["delay_ms 10", "network.rtt_ms is 9"]),
     ({"flows": [{"cca": "cubic", "count": 2, "rtts_ms": [20, 8]}]}, ["delay_ms 10", "flows.0.rtts_ms is 8"]),
     ({"flows": [{"cca": "cubic", "traffic": {}}]}, ["flows.0.traffic", "network.data_path.delay_ms"])],
)  # fmt: skip
def test_every_rtt_has_room_for_the_delay_of_data(changes, words):
    with pytest.raises(UserError) as told:
        validate(scenario_dict(network__data_path=FULL, **changes), "s")
    assert all(word in str(told.value) for word in words), told.value


def checks_of(path: dict[str, Any], took_ms: Any, packets: int = 10_000, late: int = 1000) -> list[Any]:
    scenario = validate(scenario_dict(network__data_path=path), "s")
    report: Any = {
        "data_delays_us": [list(1000 * np.asarray(took_ms))],
        "late": {"s2-s6": {"packets": packets, "late": late}},
    }
    return data_path_checks(scenario, report, VIRTUAL_TIME)


def test_delays_are_judged_by_their_law():
    """Another spread, another shape and a single packet beyond the ends fail."""
    uniform = np.linspace(0, 5, 200)
    jitter = {"delay_ms": 10, "jitter": {"kind": "per-packet", "ms": 5}}
    for path, took_ms, ok in (
        (jitter, 10 + uniform, True),
        (jitter, 10 + uniform / 2, False),
        (jitter, 10 + uniform**2 / 5, False),
        (jitter, [*(10 + uniform[1:]), 15.1], False),
        (jitter, np.full(200, 12.5), False),
        ({"delay_ms": 10}, np.full(200, 10.01), True),
        ({"delay_ms": 10}, [*np.full(199, 10), 10.1], False),
        ({"reordering": {"share": 0.4, "late_ms": 3}}, [*np.zeros(120), *np.full(80, 3)], True),
        ({"reordering": {"share": 0.4, "late_ms": 3}}, np.zeros(200), False),
    ):
        assert checks_of(path, took_ms)[0].ok is ok, (path, took_ms)


def test_the_share_of_late_packets_is_judged():
    took_ms = [*np.full(180, 10 + 2.5), *np.full(20, 13)]
    path = {"delay_ms": 10, "reordering": {"share": 0.1, "late_ms": 3}}
    assert [checks_of(path, took_ms, late=late)[1].ok for late in (1000, 1150, 1160, 0)] == [True, True, False, False]
    few = {"reordering": {"share": 1e-6, "late_ms": 3}}
    at_once = np.zeros(200)
    assert [checks_of(few, at_once, packets=100_000, late=late)[1].ok for late in (0, 2, 20)] == [True, True, False]
    assert checks_of(path, took_ms, packets=0, late=0)[1].ok is None


def crossings(run: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each data packet that left the bottleneck and came: the IP header's number, when it left and when it came (s)."""
    left, came = ({(p.data[18:20], p.data[38:42]): p.time_ns for p in Records(run.folder / name) if p.wire_bytes > 1000} for name in (BOTTLENECK, RECEIVERS))  # fmt: skip
    both = [(left[key], came[key]) for key in left if key in came]
    return len(left), *(np.array(column) / 1e6 for column in zip(*both, strict=True))


@pytest.mark.guest
def test_so_many_packets_come_late_by_so_much_and_are_overtaken(run_scenario):
    """Reordered packets as RFC 4737 counts them (later than one sent after them) are the share; each is late by the same."""
    path = {"reordering": {"share": 0.02, "late_ms": 5}}
    run = run_scenario(
        **QUICK, network__data_path=path, flows=[{"cca": "bbr1"}], capture=Capture(("bottleneck", "hosts"))
    )
    assert run.failed == []
    count, left_ms, came_ms = crossings(run)
    took_ms = came_ms - left_ms
    late = took_ms > 2.5
    assert took_ms[~late] == pytest.approx(took_ms[~late].min(), abs=0.01)
    assert took_ms[late] - took_ms[~late].min() == pytest.approx(5, abs=0.01)
    reordered = came_ms > np.minimum.accumulate(came_ms[::-1])[::-1]
    assert abs(reordered.mean() - 0.02) < 4 * math.sqrt(0.02 * 0.98 / count)
    assert (reordered <= late).all()


@pytest.mark.guest
@pytest.mark.parametrize(("kind", "order"), [("per-packet", "kept"), ("per-packet", "free"), ("slotted", "kept")])
def test_jitter_of_data_has_its_law_and_keeps_order_if_it_is_asked_to(run_scenario, kind, order):
    jitter = {"kind": kind, "ms": 8} | ({} if kind == "slotted" else {"order": order})
    path = {"delay_ms": 15, "jitter": jitter}
    run = run_scenario(
        **QUICK, network__data_path=path, flows=[{"cca": "bbr1"}], capture=Capture(("bottleneck", "hosts"))
    )
    assert run.failed == []
    assert run.check("data_delay")["asked"] == 19
    _, left_ms, came_ms = crossings(run)
    took_ms = came_ms - left_ms
    assert took_ms.min() >= 15 - 0.01 and took_ms.max() <= 23.3
    assert (np.diff(came_ms) < 0).any() == (order == "free")
    steady = took_ms[left_ms - left_ms[0] > 1000]
    assert steady.mean() == pytest.approx(15 + mean_ms(kind, order), abs=0.25)


def mean_ms(kind: str, order: str) -> float:
    """Of jitter of up to 8 ms, where packets follow each other by 0.606 ms: each on its own; as late as the latest of those before;
    or the rest of a slot, whose length is uniform (the mean of its square over twice its mean)."""
    if kind == "slotted":
        return 8**2 / 3 / 8
    if order == "free":
        return 4.0
    ms = np.linspace(0, 8, 8001)
    at_most = np.prod([np.clip((ms + 0.606 * k) / 8, 0, 1) for k in range(14)], axis=0)
    return float((1 - at_most).mean() * 8)


@pytest.mark.guest
def test_the_same_seed_makes_the_same_packets_late(run_scenario):
    path = {**FULL, "jitter": {"kind": "per-packet", "ms": 5, "order": "free"}}
    flows = [{"cca": "bbr3"}, {"cca": "cubic", "direction": "reverse"}]
    runs = [run_scenario(**QUICK, network__data_path=path, network__loss=0.001, hosts__receive_offload="gro", flows=flows) for _ in range(2)]  # fmt: skip
    assert runs[0].failed == []
    assert runs[0].manifest["outputs_sha256"] == runs[1].manifest["outputs_sha256"]
