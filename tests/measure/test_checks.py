"""The self-checks can fail: what differs from what was asked for is caught, and the run is marked.

First each check by itself, on what a sound run would have measured and one thing that is wrong in it; then whole runs of a
guest whose plan was tampered with.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bbrlab.base import paths
from bbrlab.experiment.plan import make_plan
from bbrlab.measure.checks.check import VIRTUAL_TIME, failed_of, left_out_of
from bbrlab.measure.checks.flows import short_flows_check
from bbrlab.measure.checks.guest import parameter_checks
from bbrlab.measure.checks.reception import receive_offload_check
from bbrlab.measure.checks.suite import run_checks
from bbrlab.measure.flow_counters import FlowCounters
from bbrlab.measure.queues import Queue
from bbrlab.measure.short_flows import Read, ShortFlows
from bbrlab.measure.sockets import Flows
from bbrlab.scenario.frames import FRAME_BYTES
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from tests.conftest import scenario_dict
from tests.measure.kernel_settings import attribute, htb, netem, red, settings

RATE_MBIT, BUFFER_BYTES, HZ, DURATION_S = 10, 100_000, 10, 10
FLOWS = [
    {"cca": "cubic"},
    {"cca": "bbr3", "params": {"ecn": "on", "round_ms": 5}},
    {"cca": "cubic", "direction": "reverse"},
    {"cca": "bbr3", "params": {"ecn": "on", "round_ms": 5}, "traffic": {"offered_mbit": 10}},
]


def sound_queue() -> Queue:
    """A queue that is busy throughout and carries what the rate allows."""
    times = np.arange(DURATION_S * HZ + 1) / HZ + 2e-7
    sent = np.arange(len(times)) * int(RATE_MBIT * 1e6 / 8 / HZ)
    same = np.full(len(times), 50_000)
    return Queue({"time_s": times, "bytes": same, "packets": same // 1514, "sent_bytes": sent, "sent_packets": sent // 1514,
                  "drops": 0 * sent, "marks": 0 * sent})  # fmt: skip


def sound_counter() -> FlowCounters:
    """A flow that sends from beginning to end and is never limited by its buffers."""
    times = np.arange(DURATION_S * HZ + 1) / HZ
    columns = {
        "bytes_acked": 38 + (times * 1e5).astype(int), "bytes_sent": 37 + (times * 1e5).astype(int),
        "bytes_retrans": np.zeros(len(times), int), "busy_us": (times * 1e6).astype(int), "state": np.full(len(times), 1),
        "notsent_bytes": np.full(len(times), 90_000), "snd_mss": np.full(len(times), 1448),
        "unacked": np.full(len(times), 10), "cwnd": np.full(len(times), 10), "rwnd_limited_us": np.zeros(len(times), int),
    }  # fmt: skip
    return FlowCounters(times, columns, None)


def sound_run(**changes: Any) -> SimpleNamespace:
    """What a run measures that goes as its scenario says: all that run_checks() looks at."""
    fields = {
        "flows": FLOWS,
        "hosts__ecn": "on",
        "network__loss": 0.01,
        "network__buffer": {"bytes": BUFFER_BYTES},
    } | changes
    point = base_point(validate(scenario_dict(**fields), "test"))
    plan = make_plan(point, 1, {"cubic": "cubic", "bbr3": "bbr3"}, trace="acks")
    links, hosts = plan.content["bottlenecks"], plan.content["hosts"]
    rtt = {h["name"]: h["delay_us"] / 1000 for h in hosts}
    lossy = [{"device": f"{h['switch']}-{h['name']}", "handle": 1, "kind": "netem"} for h in hosts if h["receives"]]
    report = {
        "burst": [{"rate_bps": RATE_MBIT * 1e6, "buffer_bytes": BUFFER_BYTES - 80, "filled": True, "packets": 100} for _ in links],
        "ping_ms": [rtt[p["host"]] + 0.001 for p in plan.content["pings"]],
        "qdiscs_before": [q | {"drops": 5, "packets": 100} for q in lossy],
        "qdiscs": [q | {"drops": 105, "packets": 10_000} for q in lossy]
        + [{"device": link["device"], "handle": 30, "kind": "bfifo", "drops": 7, "packets": 9} for link in links]
        + [{"device": "s1-x", "handle": 1, "kind": "netem", "drops": 0, "packets": 9}],
        "host_drops": {h["name"]: {"TcpExtTCPRcvQDrop": 0} for h in hosts},
        "received_before": {h["name"]: dict(tso=False, gso=False, gro=False, gro_timer_ns=0) | { "packets": 70, "drops": 3, "tcp_segments": 2} for h in hosts},
        "received": {h["name"]: dict(tso=False, gso=False, gro=False, gro_timer_ns=0) | { "packets": 9_070, "drops": 3, "tcp_segments": 9_000} for h in hosts},
        "switch_misses": 0,
        "settings": settings(point.scenario, plan),
        "traffic_failures": [],
        "parameters": {"bbr3": {"ecn": "on", "round_ms": "5"}, "ack_records": {"kept": str(1 << 17)}},
    }  # fmt: skip
    plan.content["capture"] = {"snaplen": 128, "frame_bytes": 256, "frames": 4096, "interfaces": [{"host": None, "device": "s1-s2"}]}  # fmt: skip
    report["capture"] = {"real_ahead_ns": 0, "interfaces": [{"packets": 9, "dropped": 0}]}
    short = {}
    for group, chunks in plan.workloads.items():
        first = chunks["chunk"] == 0
        table = chunks.assign(begin_s=chunks["start_s"] + np.where(first, 1e-6, 0.5))
        low, high = point.scenario.window_s
        short[group] = ShortFlows(point.scenario, 40, table, Read(0, (low + 1e-6, high + 1e-6)))
    acks = {"time_ns": np.arange(5)} if plan.content["trace_acks"] else None
    return SimpleNamespace(
        scenario=point.scenario, plan=plan, report=report, counters=[sound_counter() for _ in plan.flows],
        queues={link["direction"]: sound_queue() for link in links}, short=short, flows=Flows({}, {}, acks, 0),
    )  # fmt: skip


def outcome_of(run: SimpleNamespace) -> list[dict[str, Any]]:
    return run_checks(run.scenario, run.plan, run.report, run.counters, run.queues, run.short, run.flows)


def cut_off(run: SimpleNamespace, at_s: float) -> None:
    for queue in run.queues.values():
        inside = queue.columns["time_s"] <= at_s + 1e-3
        queue.columns = {name: values[inside] for name, values in queue.columns.items()}


def carry(run: SimpleNamespace, direction: str, factor: float) -> None:
    columns = run.queues[direction].columns
    columns["sent_bytes"] = (columns["sent_bytes"] * factor).astype(int)


def only_the_cookie(run: SimpleNamespace) -> None:
    columns = run.counters[1].columns
    columns["bytes_acked"] = np.minimum(columns["bytes_acked"], 38)
    columns["bytes_sent"] = np.minimum(columns["bytes_sent"], 37)


def late_data(run: SimpleNamespace) -> None:
    """A flow whose data begins at 6 s, a second after the window."""
    columns = run.counters[1].columns
    columns["bytes_sent"][run.counters[1].times_s < 6] = 37


def late_short_flow(run: SimpleNamespace) -> None:
    (short,) = run.short.values()
    short.table.loc[short.table.index[0], "begin_s"] += 0.002


def kernel_has(run: SimpleNamespace, device: str, handle: str, options: str) -> None:
    (entry,) = (e for e in run.report["settings"]["ports"] if (e["device"], e["handle"]) == (device, handle))
    entry["options"] = options


def rest(run: SimpleNamespace, direction: str) -> None:
    """For an interval the link carries nothing, though 50,000 bytes are waiting."""
    run.queues[direction].columns["sent_bytes"][50:] -= int(RATE_MBIT * 1e6 / 8 / HZ)


WRONG = {
    "queue_sends": lambda r: rest(r, "forward"),
    "queue_sends_reverse": lambda r: rest(r, "reverse"),
    "qdisc_values": lambda r: kernel_has(r, "s1-s2", "1:3", htb(RATE_MBIT * 1e6 + 100)),
    "qdisc_values_reverse": lambda r: kernel_has(r, "s2-s1", "30:", "a1860100"),
    "path_values": lambda r: kernel_has(r, "s1-h1", "2:", netem(40_002, 0)),
    "host_values": lambda r: r.report["settings"]["hosts"]["r1"]["sysctls"].update({"net.ipv4.tcp_ecn": "0"}),
    "rate": lambda r: r.report["burst"][0].update(rate_bps=9.9e6),
    "rate_reverse": lambda r: r.report["burst"][1].update(rate_bps=10.1e6),
    "buffer": lambda r: r.report["burst"][0].update(buffer_bytes=BUFFER_BYTES - 1514),
    "buffer_reverse": lambda r: r.report["burst"][1].update(buffer_bytes=BUFFER_BYTES + 1),
    "queue_peak": lambda r: r.queues["forward"].columns["bytes"].__setitem__(3, BUFFER_BYTES + 1),
    "queue_peak_reverse": lambda r: r.queues["reverse"].columns["bytes"].__setitem__(3, BUFFER_BYTES + 1),
    "busy_rate": lambda r: carry(r, "forward", 1.01),
    "busy_rate_reverse": lambda r: carry(r, "reverse", 1.01),
    "base_rtt": lambda r: r.report["ping_ms"].__setitem__(-1, 40.1),
    "random_loss": lambda r: [q.update(drops=300) for q in r.report["qdiscs"] if q["drops"] == 105],
    "drops_elsewhere": lambda r: r.report["qdiscs"][-1].update(drops=1),
    "segmentation": lambda r: r.report["received"]["h1"].update(gso=True),
    "receive_offload": lambda r: r.report["received"]["r1"].update(gro=True),
    "flows_ran": only_the_cookie,
    "first_data": late_data,
    "receive_window": lambda r: r.counters[0].columns["rwnd_limited_us"].__setitem__(slice(50, None), 10**6),
    "send_buffer": lambda r: r.counters[2].columns.update(unacked=np.full(101, 8), notsent_bytes=np.zeros(101, int)),
    "short_flows": late_short_flow,
    "parameter bbr3.ecn": lambda r: r.report["parameters"]["bbr3"].update(ecn="off"),
    "parameter bbr3.round_ms": lambda r: r.report["parameters"]["bbr3"].pop("round_ms"),
    "parameter ack_records.kept": lambda r: r.report["parameters"]["ack_records"].update(kept="0"),
    "samples": lambda r: cut_off(r, 5),
    "acks_traced": lambda r: setattr(r.flows, "acks_missing", 1),
    "packets_captured": lambda r: r.report["capture"]["interfaces"][0].update(dropped=1),
}


@pytest.mark.parametrize(
    ("qdisc", "options", "words"),
    [({"kind": "red", "probability": 1}, red(100_000, 8333, 25_000, 4, 15, 0.52), ["network.qdisc.probability", "asked 1,", "has 0.52"]),
     ({"kind": "cake"}, (attribute(2, bytes(8)) + attribute(5, struct.pack("<I", 7)) + attribute(10, struct.pack("<I", 100_000))).hex(),
      ["network.buffer (bytes of memory)", "asked 150480", "has 100000"])],
)  # fmt: skip
def test_what_tc_made_of_a_value_is_found(qdisc, options, words):
    """tc made 0.52 of RED's probability 1, and CAKE was given the wire's bytes as its memory: so it was until 2026-11."""
    run = sound_run(network__qdisc=qdisc, flows=FLOWS[:1])
    kernel_has(run, "s1-s2", "30:", options)
    check = next(c for c in outcome_of(run) if c["name"] == "qdisc_values")
    assert check["ok"] is False
    assert all(word in check["detail"] for word in words)


def test_a_kernel_without_the_lateness_patch_fails_host_values():
    """One without kernels/patches/lateness; and one that lets packets leave late that nobody asked to."""
    for changes, has, words in (
        ({}, None, "asked 50000, the kernel has none"),
        ({"hosts__noise": "off"}, 7, "asked 0, the kernel has 7"),
    ):
        run = sound_run(**changes)
        run.report["settings"]["pacing_late_ns"] = has
        check = next(c for c in outcome_of(run) if c["name"] == "host_values")
        assert check["ok"] is False
        assert f"hosts.noise.processing_us (pacing_late_ns of kernels/patches/lateness): {words}" in check["detail"]
    run = sound_run(hosts__noise="off")
    run.report["settings"]["pacing_late_ns"] = None
    assert next(c for c in outcome_of(run) if c["name"] == "host_values")["ok"], "not needed"


def test_a_link_that_hardly_ever_sends_must_send():
    """At 1 kbit/s a packet takes 12 s, 121 samples: what an interval may miss adds up."""
    run = sound_run(network__rate_mbit=0.001, flows=FLOWS[:1], duration_s=100, window_s=[0, 100])
    times = np.arange(1001) / 10
    sampled_at(run, times)
    columns = run.queues["forward"].columns
    columns["bytes"] = np.full(1001, 50_000)
    sent = (times / 12.112).astype(int) * 1514
    for stalled_s, ok in ((0, True), (30, False)):
        columns["sent_bytes"] = np.interp(times, [0, 20, 20 + stalled_s + 1e-9, 100 + stalled_s], [0, 20, 20, 100])
        columns["sent_bytes"] = np.interp(columns["sent_bytes"], times, sent).astype(int)
        assert next(c for c in outcome_of(run) if c["name"] == "queue_sends")["ok"] is ok


def test_a_packet_that_the_limiter_has_taken_out_of_cake_is_none_too_many():
    """tbf, which limits where the rate changes, asks for the next packet before it may leave: CAKE counts it no longer."""
    changes = [{"at_s": 5, "rate_mbit": 9}]
    run = sound_run(network__qdisc={"kind": "cake"}, network__changes=changes, flows=FLOWS[:1])
    for beyond, ok in ((1514, True), (1515, False)):
        run.queues["forward"].columns["bytes"][3] = BUFFER_BYTES + beyond
        assert next(c for c in outcome_of(run) if c["name"] == "queue_peak")["ok"] is ok


def test_a_sound_run_has_every_check_and_passes_it():
    found = outcome_of(sound_run())
    assert {c["name"]: c["ok"] for c in found} == dict.fromkeys(WRONG, True), (
        "a new check needs its way to fail in WRONG"
    )


@pytest.mark.parametrize("name", WRONG)
def test_each_check_can_fail(name):
    run = sound_run()
    WRONG[name](run)
    assert [c["name"] for c in failed_of(outcome_of(run))] == [name]


def test_counters_that_are_not_there_are_no_proof():
    """Of a queue without counters it cannot be said that it dropped nothing."""
    run = sound_run()
    run.report["qdiscs"] = []
    (failed,) = [c for c in failed_of(outcome_of(run)) if c["name"] == "drops_elsewhere"]
    assert "s1-s2 has no counters" in failed["detail"]


def test_random_loss_is_looked_for_where_it_was_asked_for():
    """What was lost behind the bottleneck is no loss before it."""
    run = sound_run()
    run.scenario = sound_run(network__loss_place="before").scenario
    assert [c["name"] for c in failed_of(outcome_of(run))] == ["path_values", "random_loss", "drops_elsewhere"]


@pytest.mark.parametrize(
    ("loss", "burst_packets", "lost", "ok"),
    [(1e-7, None, 1, True),  # of 100,000 packets: one run in a hundred
     (1e-7, None, 10, False),
     (0.001, 1000, 5000, True),  # a burst begins once in 10 runs, and may be this long
     (0.01, None, 1170, False),
     (0.01, None, 830, False),
     (0.01, 8, 1170, True),
     (0.01, 8, 1700, False)],
)  # fmt: skip
def test_random_loss_may_be_off_by_chance_alone(loss, burst_packets, lost, ok):
    run = sound_run(network__loss=loss, network__loss_burst_packets=burst_packets, flows=[{"cca": "cubic"}])
    run.report["qdiscs"][0].update(drops=5 + lost, packets=100 + 100_000 - lost)
    (check,) = [c for c in outcome_of(run) if c["name"] == "random_loss"]
    assert (check["ok"], check["measured"]) == (ok, lost / 100_000)


def offloading_run(rate_mbit: float = 100, **fields: Any) -> SimpleNamespace:
    """A sound run whose hosts merge three packets on average."""
    run = sound_run(hosts__noise="off")
    changes = {
        "hosts__noise": "off",
        "network__rate_mbit": rate_mbit,
        "hosts__receive_offload": "gro",
        "hosts__receive_offload_us": 300,
    } | fields
    run.scenario = sound_run(**changes).scenario
    for entry in run.report["received"].values():
        entry.update(gro=True, tcp_segments=3_002)
    run.report["qdiscs"] += [
        {"device": f"{h['switch']}-{h['name']}", "handle": "3:", "kind": "netem", "drops": 0, "packets": 9}
        for h in run.plan.content["hosts"]
    ]
    return run


def receive_offload(run: SimpleNamespace) -> dict[str, Any]:
    return next(c for c in outcome_of(run) if c["name"] == "receive_offload")


def test_receive_offload_that_merges_passes():
    assert receive_offload(offloading_run()) == {
        "name": "receive_offload", "asked": None, "measured": 3.0, "ok": True,
        "detail": "packets for each segment that receivers got; GRO on at 5 of 5 hosts, interrupts delayed at 5",
    }  # fmt: skip


OFFLOAD_FAULTS = {
    "a host without GRO": lambda r: r.report["received"]["h1"].update(gro=False),
    "a host with prompt interrupts": lambda r: r.report["qdiscs"].pop(),
    "a timer besides": lambda r: r.report["received"]["h1"].update(gro_timer_ns=50_000),
    "nothing merged": lambda r: [e.update(tcp_segments=9_000) for e in r.report["received"].values()],
}


@pytest.mark.parametrize("fault", OFFLOAD_FAULTS)
def test_receive_offload_that_is_not_there_is_seen(fault):
    run = offloading_run()
    OFFLOAD_FAULTS[fault](run)
    assert receive_offload(run)["ok"] is False


def test_receive_offload_by_a_timer_is_that_and_no_delay_of_interrupts():
    run = offloading_run()
    run.scenario = sound_run(
        network__rate_mbit=100, hosts__receive_offload="gro-timer", hosts__receive_offload_us=300
    ).scenario
    assert receive_offload(run)["ok"] is False
    run.report["qdiscs"] = [q for q in run.report["qdiscs"] if q["handle"] != "3:"]
    for entry in run.report["received"].values():
        entry["gro_timer_ns"] = 300_000
    assert receive_offload(run)["ok"] is True


def test_packets_that_come_one_by_one_cannot_be_merged():
    run = offloading_run(rate_mbit=10)
    OFFLOAD_FAULTS["nothing merged"](run)
    assert receive_offload(run)["ok"] is True


@pytest.mark.parametrize(
    "fields",
    [
        {"network__links": [{}, {"rate_mbit": 10}], "flows": [{"cca": "cubic"}]},
        {"network__changes": [{"at_s": 0.1, "rate_mbit": 10}], "flows": [{"cca": "cubic"}]},
        {"network__policer": {"rate_mbit": 10, "burst_bytes": 100_000}, "flows": [{"cca": "cubic"}]},
        {"network__trace": "leo", "flows": [{"cca": "cubic"}]},
        {"network__reverse": {"rate_mbit": 10, "buffer": {"bdp": 1}}, "flows": [{"cca": "cubic", "direction": "reverse"}]},
    ],
    ids=lambda fields: next(iter(fields)),
)  # fmt: skip
def test_packets_that_something_spaces_farther_apart_need_not_be_merged(fields):
    run = offloading_run(**fields)
    OFFLOAD_FAULTS["nothing merged"](run)
    assert receive_offload_check(run.scenario, run.plan, run.report).ok is True


def test_packets_merged_unasked_are_seen():
    run = sound_run()
    run.report["received"]["r1"]["tcp_segments"] = 3_002
    assert receive_offload(run)["ok"] is False


def test_pings_of_a_play_are_not_taken_for_merged_packets():
    run = sound_run()
    run.report["received"]["r1"]["packets"] += 100
    assert receive_offload(run)["ok"] is False
    run.plan.content["prompt"] = {}
    assert receive_offload(run)["ok"] is True
    run.report["received"]["r1"]["gro"] = True
    assert receive_offload(run)["ok"] is False


def test_packets_lost_in_a_host_s_interface_are_seen():
    run = sound_run()
    run.report["received"]["h1"]["drops"] += 1
    assert [c["detail"] for c in failed_of(outcome_of(run))] == ["h1 interface: 1"]


def test_a_receiver_that_noted_an_edge_late_is_seen():
    run = sound_run()
    ((group, short),) = run.short.items()
    run.short[group] = replace(short, read=Read(0, (short.read.at_s[0], short.read.at_s[1] + 0.03)))
    (check,) = failed_of(outcome_of(run))
    assert check["name"] == "short_flows"
    assert check["detail"].endswith("noted 30 ms late")
    run.plan.content["virtual"] = False
    assert failed_of(outcome_of(run)) == []


@pytest.mark.parametrize(("late", "lost", "ok"), [(0, 0, True), (2, 0, True), (3, 0, False), (0, 1, False)])
def test_one_short_flow_in_ten_thousand_may_begin_late(late, lost, ok):
    """20,000 flows: two may be late by some milliseconds, none may be missing."""
    starts = np.arange(20_000) * 1e-4
    due = pd.DataFrame({"flow": np.arange(20_000), "chunk": 0, "start_s": starts})
    begun = due.assign(begin_s=starts + np.where(np.arange(20_000) < late, 5e-3, 0))[: 20_000 - lost]
    scenario = SimpleNamespace(duration_s=10.0, window_s=[0.0, 10.0])
    short = SimpleNamespace(table=begun, read=Read(0, (0.0, 10.0)))
    check = short_flows_check(scenario, SimpleNamespace(workloads={0: due}), 0, short, VIRTUAL_TIME)
    assert (check.ok, check.measured) == (ok, 20_000 - late - lost)


def test_which_short_flows_failed_is_said():
    run = sound_run()
    run.report["traffic_failures"] = [
        (2, "unable to connect"),
        ("short flows of group 3, send", "short_flows.py ended with 1"),
    ]
    assert [c["detail"] for c in failed_of(outcome_of(run))] == [
        "transfer 2: unable to connect; short flows of group 3, send: short_flows.py ended with 1"
    ]


def samples_outcome(run: SimpleNamespace) -> tuple[bool | None, float | None, float | None]:
    (check,) = [c for c in outcome_of(run) if c["name"] == "samples"]
    return check["ok"], check["asked"], check["measured"]


def sampled_at(run: SimpleNamespace, times_s: np.ndarray) -> None:
    """Samples at these instants only."""
    for queue in run.queues.values():
        queue.columns = {n: np.resize(v, len(times_s)) for n, v in queue.columns.items()} | {"time_s": times_s}


def test_edges_of_the_window_must_be_sampled():
    run = sound_run(sample_hz=1, window_s=[2.25, 7.75])
    sampled_at(run, np.arange(11) + 2e-7)
    assert samples_outcome(run)[:2] == (False, 13)
    sampled_at(run, np.sort([*np.arange(11), 2.25, 7.75]) + 2e-7)
    assert samples_outcome(run) == (True, 13, 13)


@pytest.mark.parametrize(
    ("filled", "held", "ok"),
    [
        (True, BUFFER_BYTES - FRAME_BYTES, True),  # one packet had left before it was counted
        (True, BUFFER_BYTES // 2, False),
        (True, BUFFER_BYTES + 1, False),
        (False, 3 * FRAME_BYTES, None),  # the link carried off what came in
        (False, BUFFER_BYTES + FRAME_BYTES, False),  # no link explains that
    ],
)
def test_the_burst_of_a_play_may_lose_what_the_link_carries_meanwhile(filled, held, ok):
    run = sound_run()
    run.plan.content["virtual"] = False
    run.report["burst"][0].update(filled=filled, buffer_bytes=held)
    found = {c["name"]: c for c in outcome_of(run)}
    assert found["buffer"]["ok"] is ok and found["buffer"]["measured"] == held


def test_one_sample_serves_one_instant_in_real_time_too():
    run = sound_run(sample_hz=100)
    run.plan.content["virtual"] = False
    sampled_at(run, np.arange(0, 1001) / 100 + 0.03)
    assert samples_outcome(run) == (True, 1001, 1001)
    sampled_at(run, np.arange(0, 1001, 5) / 100 + 0.03)
    assert samples_outcome(run)[0] is False


def test_outside_of_the_window_a_real_machine_may_be_later():
    """It starts and ends iperf3 there."""
    run = sound_run(sample_hz=10, window_s=[2, 8])
    run.plan.content["virtual"] = False
    grid = np.arange(0, 101) / 10
    late = np.where((grid < 2) | (grid > 8), 0.4, 0.03)
    sampled_at(run, grid + late)
    assert samples_outcome(run) == (True, 101, 101)
    for instant_s in (2, 5, 8):
        sampled_at(run, grid + np.where(grid == instant_s, 0.08, late))
        assert samples_outcome(run) == (False, 101, 100)
    run.plan.content["virtual"] = True
    sampled_at(run, grid + np.where(grid == 1, 0.002, 0))
    assert samples_outcome(run) == (False, 101, 100), "in virtual time nothing is late"


def test_each_bottleneck_must_be_sampled():
    run = sound_run()
    columns = run.queues["reverse"].columns
    run.queues["reverse"].columns = {name: values[columns["time_s"] < 5] for name, values in columns.items()}
    assert samples_outcome(run) == (False, 101, 50)


def test_a_sample_too_many_is_told():
    run = sound_run()
    times = run.queues["forward"].columns["time_s"]
    sampled_at(run, np.append(times, times[-1] + 1e-6))
    assert samples_outcome(run) == (False, 101, 101)


def test_a_sample_before_its_instant_is_none():
    """As many as are due, but one twice and none at the end: the rest comes an interval early."""
    run = sound_run()
    times = run.queues["forward"].columns["time_s"]
    sampled_at(run, np.insert(times, 10, times[10])[:-1])
    assert samples_outcome(run) == (False, 101, 11)


def test_a_link_may_seem_as_fast_as_the_rate_may_be_wrong():
    """3 % in real time, .5 % in virtual time."""
    run = sound_run()
    carry(run, "forward", 1.02)
    assert [c["name"] for c in failed_of(outcome_of(run))] == ["busy_rate"]
    run.plan.content["virtual"] = False
    assert failed_of(outcome_of(run)) == []
    carry(run, "forward", 1.02)
    assert [c["name"] for c in failed_of(outcome_of(run))] == ["busy_rate"]


@pytest.mark.parametrize("at_s", [0.05, 5, 9.95])
def test_a_missing_tail_is_seen(at_s):
    run = sound_run()
    cut_off(run, at_s)
    (check,) = [c for c in outcome_of(run) if c["name"] == "samples"]
    assert (check["ok"], check["asked"], check["measured"]) == (False, 101, int(at_s * 10) + 1)


def test_a_flow_that_closed_after_its_cookie_sent_no_data():
    run = sound_run()
    final = {
        "time_ns": 10**9,
        "bytes_acked": 39,
        "bytes_sent": 37 + 37,
        "bytes_retrans": 37,
        "busy_us": 1,
        "rwnd_limited_us": 0,
    }
    run.counters[0] = FlowCounters(np.array([]), {k: v[:0] for k, v in sound_counter().columns.items()}, final)
    assert [c["detail"] for c in failed_of(outcome_of(run))] == ["flow 0 sent no data"]
    run.counters[0].final.update(bytes_acked=40, bytes_sent=38 + 37)
    assert failed_of(outcome_of(run)) == [], "a byte of data; the kernel counts no FIN in bytes_sent"


def test_a_flow_that_starved_ran():
    """Its first window was lost, and each retransmission (seen with 32 BBRv1 flows in a buffer of 32 packets: nine in 200 s).
    A check that failed here would take the worst starvation out of the means."""
    run = sound_run()
    starved = sound_counter().columns
    starved["bytes_acked"] = np.minimum(starved["bytes_acked"], 38)
    starved["bytes_retrans"] = np.maximum(starved["bytes_sent"] - 37 - 12 * 1448, 0)
    run.counters[0] = FlowCounters(run.counters[0].times_s, starved, None)
    assert failed_of(outcome_of(run)) == []


NOT_MADE = {
    "a qdisc that drops early": ({"network__qdisc": {"kind": "red"}}, lambda r: r.report.update(burst=[None, None]),
                                 {"rate", "rate_reverse", "buffer", "buffer_reverse"}),
    "a burst too short to time": ({}, lambda r: r.report["burst"][0].update(rate_bps=None), {"rate"}),
    "a queue that is never busy": ({}, lambda r: r.queues["forward"].columns["bytes"].fill(0),
                                    {"busy_rate", "queue_sends"}),
    "a trace without ACKs": ({}, lambda r: r.flows.acks.update(time_ns=np.array([])), {"acks_traced"}),
    "a window of the scenario's": ({"hosts__rmem_max_bytes": 30_000}, lambda r: None, {"receive_window"}),
    "memory that grows": ({"hosts__rmem_initial_bytes": 30_000, "hosts__wmem_initial_bytes": 30_000}, lambda r: None, {"receive_window", "send_buffer"}),
    "nothing but short flows": ({"flows": FLOWS[3:]}, lambda r: None, {"flows_ran", "receive_window", "send_buffer"}),
    "short flows that are all due later": ({"flows": FLOWS[3:] + FLOWS[:1]}, lambda r: r.plan.workloads.update(
        {g: w.assign(start_s=99.0) for g, w in r.plan.workloads.items()}), {"short_flows"}),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_MADE)
def test_what_a_run_cannot_show_is_told_and_is_no_pass(case):
    changes, spoil, names = NOT_MADE[case]
    run = sound_run(**changes)
    spoil(run)
    found = outcome_of(run)
    assert {c["name"] for c in left_out_of(found)} == names
    assert all(c["detail"].startswith("not checked: ") for c in left_out_of(found))
    assert failed_of(found) == []


@pytest.mark.guest
def test_a_sound_run_passes_everything(run_scenario):
    result = run_scenario()
    assert result.failed == []
    assert result.summary["ok"] is True
    assert {"rate", "buffer", "base_rtt", "drops_elsewhere", "flows_ran", "samples"} <= {
        c["name"] for c in result.summary["checks"]
    }
    readme = (paths.ROOT / "README.md").read_text(encoding="utf-8")
    assert f"all {len(result.summary['checks'])} self-checks passed" in readme, "the README's run, of the same kind"


@pytest.mark.guest
def test_a_wrong_rate_is_caught(run_scenario):
    def tamper(plan):
        plan["bottlenecks"][0]["rate_bps"] = 9_900_000  # 1 % too slow

    result = run_scenario(tamper=tamper)
    assert "rate" in result.failed
    assert result.summary["ok"] is False


@pytest.mark.guest
def test_a_rate_that_is_too_high_is_also_caught_during_the_run(run_scenario):
    def tamper(plan):
        plan["bottlenecks"][0]["rate_bps"] = 11_000_000

    assert {"rate", "busy_rate"} <= set(run_scenario(tamper=tamper).failed)


QDISCS: dict[str, dict[str, Any]] = {
    "red": {"ecn": True, "probability": 0.37, "min_bytes": 30_000, "max_bytes": 99_999, "avpkt_bytes": 1000, "burst_packets": 55},
    "codel": {"ecn": True, "target_ms": 3.333, "interval_ms": 77.7, "ce_threshold_ms": 1.234},
    "fq_codel": {"ecn": True, "target_ms": 3.333, "interval_ms": 77.7, "ce_threshold_ms": 1.234, "flows": 77,
                 "quantum_bytes": 333},
    "pie": {"ecn": True, "target_ms": 3.333, "tupdate_ms": 7, "alpha": 3, "beta": 21},
    "cake": {"rtt_ms": 33.333, "isolation": "dual-dsthost"},
    "fq": {"ce_threshold_ms": 3.333, "quantum_bytes": 4444, "flow_limit_packets": 50},
}  # fmt: skip
# Where a tenth and five more is not possible, or makes the same of it.
OTHER = {"codel": {"target_ms": 4.5, "interval_ms": 80, "ce_threshold_ms": 2}, "fq_codel": {"target_ms": 4.5, "interval_ms": 80, "ce_threshold_ms": 2},
         "pie": {"target_ms": 4.5, "tupdate_ms": 8}, "fq": {"ce_threshold_ms": 4},
         "red": {"probability": 0.38, "min_bytes": 30_001, "max_bytes": 100_000, "avpkt_bytes": 5000, "burst_packets": 200},
         "cake": {"isolation": "flows", "rtt_ms": 34}}  # fmt: skip


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("kind", QDISCS)
def test_every_option_of_a_queue_is_read_back(run_scenario, kind):
    """What is there passes, and each option fails when the guest is given another value than the scenario's."""
    scenario = {
        "network__qdisc": {"kind": kind, **QDISCS[kind]},
        "hosts__ecn": "on",
        "network__buffer": {"packets": 200},
    }
    short = {"duration_s": 1, "window_s": [0, 1]}

    def check(result):
        return next(c for c in result.summary["checks"] if c["name"] == "qdisc_values")

    assert check(run_scenario(**scenario, **short))["ok"] is True
    for name, value in QDISCS[kind].items():
        listed = OTHER.get(kind, {})
        other = listed[name] if name in listed else not value if value is True else type(value)(1.1 * value + 5)
        point = base_point(
            validate(scenario_dict(**scenario | {"network__qdisc": {"kind": kind, **QDISCS[kind], name: other}}), "t")
        )
        words = make_plan(point, 1, {"cubic": "cubic"}).content["bottlenecks"][0]["qdisc"]
        found = check(
            run_scenario(
                tamper=lambda plan, words=words: plan["bottlenecks"][0].update(qdisc=words), **scenario, **short
            )
        )
        assert found["ok"] is False, (kind, name)
        assert "asked" in found["detail"] and "the kernel has" in found["detail"]


@pytest.mark.guest
def test_a_wrong_delay_is_caught(run_scenario):
    def tamper(plan):
        plan["hosts"][0]["delay_us"] = 40_100  # .1 ms too long

    assert "base_rtt" in run_scenario(tamper=tamper, hosts__noise="off").failed


@pytest.mark.guest
@pytest.mark.parametrize("change", [-3000, +3000])
def test_a_wrong_buffer_is_caught(run_scenario, change):
    def tamper(plan):
        plan["bottlenecks"][0]["qdisc"] = ["bfifo", "limit", str(100_000 + change)]

    assert "buffer" in run_scenario(tamper=tamper).failed


@pytest.mark.guest
def test_drops_elsewhere_are_caught(run_scenario):
    def tamper(plan):
        plan["loss_devices"], plan["loss"] = ["s2-r1"], 0.001

    assert "drops_elsewhere" in run_scenario(tamper=tamper).failed


@pytest.mark.guest
def test_random_loss_in_the_wrong_place_is_caught(run_scenario):
    def tamper(plan):
        plan["loss_devices"] = ["s2-r1"]

    assert {"random_loss", "drops_elsewhere"} <= set(
        run_scenario(tamper=tamper, network__loss=0.01, network__loss_place="before").failed
    )


@pytest.mark.guest
def test_a_wrong_loss_rate_is_caught(run_scenario):
    def tamper(plan):
        plan["loss"] = 0.05

    assert "random_loss" in run_scenario(tamper=tamper, network__loss=0.01).failed


@pytest.mark.guest
def test_a_window_that_was_the_limit_is_caught(run_scenario):
    def tamper(plan):
        plan["sysctls"]["net.ipv4.tcp_rmem"] = "4096 30000 30000"
        plan["transfers"][0]["receive_lowat_bytes"] = 0

    assert "receive_window" in run_scenario(tamper=tamper).failed


@pytest.mark.guest
def test_a_send_buffer_that_was_the_limit_is_caught(run_scenario):
    def tamper(plan):
        plan["sysctls"]["net.ipv4.tcp_wmem"] = "4096 30000 30000"

    assert "send_buffer" in run_scenario(tamper=tamper).failed


@pytest.mark.guest
def test_a_flow_that_could_not_run_is_caught(run_scenario):
    def tamper(plan):
        plan["transfers"][1]["server_ip"] = "10.0.200.200"  # nobody there

    assert "flows_ran" in run_scenario(tamper=tamper, flows=[{"cca": "cubic"}, {"cca": "reno"}]).failed


def test_parameters_of_a_set_are_checked():
    """Each value of a flow group's own set is compared with what the module says that it has."""
    flows = [{"cca": "bbr3", "params": {"profile": "v3-06", "headroom": False}}]
    point = base_point(validate(scenario_dict(flows=flows), "s"))
    plan = make_plan(point, 1, {"bbr3": "bbr3"}, modules={"bbr3": "bbr_model"})
    for headroom, passed in (("N", True), ("Y", False)):
        report: Any = {"parameters": {"bbr3_set1": {"profile": "v3-06", "headroom": headroom}}}
        found = {c.name: c.ok for c in parameter_checks(plan, report)}
        assert found == {"parameter bbr3_set1.profile": True, "parameter bbr3_set1.headroom": passed}
