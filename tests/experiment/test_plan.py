"""From scenario to plan: hosts, transfers, queues, draws."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from bbrlab.base.errors import UserError
from bbrlab.cli.checks import check
from bbrlab.experiment.plan import make_plan
from bbrlab.experiment.qdisc import qdisc_words
from bbrlab.kernel.built import Kernel
from bbrlab.run.compatibility import check_parameters
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from bbrlab.scenario.schema import Network
from bbrlab.scenario.windows import first_data_s, partly_there
from tests.conftest import scenario_dict

CCAS = {"bbr1": "bbr", "cubic": "cubic", "reno": "reno", "dctcp": "dctcp"}


def plan_of(seed=1, **changes):
    """Without noise, where it is not asked for."""
    return make_plan(
        base_point(validate(scenario_dict(**({"hosts__noise": "off"} | changes)), "s", folder=Path.cwd())), seed, CCAS
    )


def test_the_seed_moves_the_rtt_of_each_group_within_a_packets_time():
    """The issue is Floyd and Jacobson's phase effect: no two groups, and no two seeds, meet the queue at the same fraction."""
    noise = {"rtt_offset_us": 5000, "processing_us": 50}
    flows = [{"cca": "bbr1", "count": 4}, {"cca": "cubic"}]
    drawn = [
        plan_of(seed, hosts__noise=noise, network__rate_mbit=10, network__rtt_ms=40, flows=flows) for seed in range(60)
    ]
    senders = [[h for h in plan.content["hosts"] if h["sends"]] for plan in drawn]
    assert all(len(hosts) == 2 and hosts[0]["delay_us"] != hosts[1]["delay_us"] for hosts in senders)
    offsets_us = [h["delay_us"] - 40_000 for hosts in senders for h in hosts]
    packet_us = 1514 * 8 / 10
    assert all(0 <= us <= packet_us + 0.5 for us in offsets_us) and len(set(offsets_us)) > 100
    assert abs(sum(offsets_us) / len(offsets_us) - packet_us / 2) < 3 * packet_us / (12 * len(offsets_us)) ** 0.5
    assert min(offsets_us) < 0.05 * packet_us and max(offsets_us) > 0.95 * packet_us
    assert all(f.rtt_ms == drawn[0].flows[0].rtt_ms for f in drawn[0].flows[:4])
    assert {h["processing_us"] for hosts in senders for h in hosts} == {50}


@pytest.mark.parametrize(("rate_mbit", "longest_us"), [(1, 600), (10, 600), (20, 600), (50, 242.24), (1000, 12.112)])
def test_an_rtt_is_longer_by_what_testbeds_add_or_a_packets_time(rate_mbit, longest_us):
    noise = {"processing_us": 50}
    drawn_us = [
        host["rtt_offset_us"]
        for seed in range(60)
        for host in plan_of(seed, hosts__noise=noise, network__rate_mbit=rate_mbit).content["hosts"]
        if host["sends"]
    ]
    assert min(drawn_us) >= 0 and 0.9 * longest_us < max(drawn_us) <= longest_us + 0.5


def test_noise_keeps_its_offset_when_the_rtt_changes():
    noise = {"rtt_offset_us": 1000, "processing_us": 0}
    plan = plan_of(hosts__noise=noise, network__rate_mbit=10, network__changes=[{"at_s": 1, "rtt_ms": 90}])
    (sender,) = (h for h in plan.content["hosts"] if h["sends"])
    assert (
        plan.content["changes"][0]["delay_us"] == {"h1": 90_000 + sender["rtt_offset_us"]} and sender["rtt_offset_us"]
    )
    assert plan.content["pacing_late_ns"] == 0 and plan_of().content["hosts"][0]["processing_us"] == 0
    drawn = plan_of(hosts__noise=noise, network__rate_mbit=0.1, network__rtt_ms=[20, 30])
    assert {h["rtt_offset_us"] for h in drawn.content["hosts"]} == {0}, "a range is drawn already"


def test_flows_with_one_delay_share_a_host():
    plan = plan_of(flows=[{"cca": "bbr1", "count": 4}, {"cca": "cubic"}])
    assert [h["name"] for h in plan.content["hosts"]] == ["h1", "r1"]
    assert [(t["cca"], t["streams"]) for t in plan.content["transfers"]] == [("bbr", 4), ("cubic", 1)]
    assert [(f.flow, f.group, f.transfer, f.stream) for f in plan.flows] == [
        (0, 0, 0, 0), (1, 0, 0, 1), (2, 0, 0, 2), (3, 0, 0, 3), (4, 1, 1, 0),
    ]  # fmt: skip


def test_each_delay_gets_a_host_of_its_own():
    plan = plan_of(network__rtt_ms=[20, 30], flows=[{"cca": "reno", "count": 10}])
    senders = [h for h in plan.content["hosts"] if h["sends"]]
    assert len(senders) == 10
    assert all(20_000 <= h["delay_us"] <= 30_000 for h in senders)
    assert len({h["ip"] for h in plan.content["hosts"]}) == 11


def test_draws_depend_on_seed_group_and_flow_only():
    draws = [
        [f.rtt_ms for f in plan_of(seed, network__rtt_ms=[20, 30], flows=[{"cca": "reno", "count": 3}]).flows]
        for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]
    longer = plan_of(1, network__rtt_ms=[20, 30], flows=[{"cca": "reno", "count": 5}])
    assert [f.rtt_ms for f in longer.flows][:3] == draws[0]


def test_many_flows_are_split_as_iperf3_needs():
    plan = plan_of(flows=[{"cca": "reno", "count": 300}])
    assert [t["streams"] for t in plan.content["transfers"]] == [128, 128, 44]
    finite = plan_of(flows=[{"cca": "reno", "count": 3, "bytes": 1000}])
    assert [t["streams"] for t in finite.content["transfers"]] == [1, 1, 1]


def test_streams_that_begin_together_have_a_library_for_it():
    """The default is not written down: points of before keep their names, and their plans."""
    flows = [{"cca": "reno", "count": 130, "start": "together"}, {"cca": "reno", "count": 2}]
    plan = plan_of(flows=flows).content
    assert [t.get("together") for t in plan["transfers"]] == ["/run/lib/iperf3_together.so"] * 2 + [None]
    assert [t["streams"] for t in plan["transfers"]] == [128, 2, 2]
    alone = plan_of(flows=[{"cca": "reno", "start": "together"}]).content
    assert "together" not in alone["transfers"][0]
    plain, written = (base_point(validate(scenario_dict(flows=[flow]), "s")) for flow in ({"cca": "reno"}, {"cca": "reno", "start": "in-turn"}))  # fmt: skip
    assert plain.fingerprint == written.fingerprint
    other = base_point(validate(scenario_dict(flows=[{"cca": "reno", "start": "together"}]), "s"))
    assert other.fingerprint != plain.fingerprint


APART = [{"cca": "cubic", "count": 1000, "rtts_ms": [10 + 20 * g + i / 100 for i in range(1000)]} for g in range(5)]
TOO_MANY = [
    ([{"cca": "cubic", "count": 1000, "bytes": 9}, {"cca": "cubic", "count": 3, "bytes": 9}, {"cca": "cubic", "traffic": {}}],
     "number 1003 would listen on r1:6203, where the short flows of group 2 arrive: at most 1002"),
    ([{"cca": "cubic", "count": 1000, "bytes": 9}] * 61, "number 60336 would listen on port 65536, and the last is 65535: at most 60335"),
    (APART, "host h4001 would have the address 10.0.32.2, which is that of r1: at most 4000"),
]  # fmt: skip


@pytest.mark.parametrize(("flows", "words"), TOO_MANY, ids=[words[:12] for _, words in TOO_MANY])
def test_more_flows_than_ports_or_addresses_are_refused(flows, words, tmp_path):
    """By ``check`` already, whose kernel has nothing to do with it."""
    with pytest.raises(UserError, match=f"^test: flows: .*{words}"):
        plan_of(flows=flows)
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(scenario_dict(flows=flows)))
    with pytest.raises(UserError, match=words):
        check([path])


def test_as_many_flows_as_there_is_room_for_are_planned():
    hosts = plan_of(flows=APART[:4]).content["hosts"]
    assert len({host["ip"] for host in hosts}) == len(hosts) == 4001


def first_data_of(flow, **changes):
    scenario = validate(scenario_dict(flows=[{"cca": "reno", **flow}], **changes), "s")
    return pytest.approx(first_data_s(scenario.flows[0], scenario))


def test_when_the_data_of_a_group_begins():
    """Each stream takes a round trip, of at most 128 in a process; all together one."""
    assert first_data_of({}) == 5 * 0.04
    assert first_data_of({"count": 100, "start_s": 2}) == 2 + 104 * 0.04
    assert first_data_of({"count": 500}) == 132 * 0.04
    assert first_data_of({"count": 500, "start": "together"}) == 5 * 0.04
    assert first_data_of({"count": 9, "rtt_ms": [10, 30]}) == 5 * 0.03
    assert first_data_of({"count": 4, "rtts_ms": [20, 20, 20, 25]}) == 7 * 0.02
    assert first_data_of({"count": 4, "rtts_ms": [20, 20, 20, 25], "start": "together"}) == 5 * 0.025
    links = [{"rtt_ms": 40}, {"rtt_ms": 0}]
    assert first_data_of({"count": 4, "rtts_ms": [10, 10, 10, 20]}, network__links=links) == 7 * 0.05
    changes = [{"at_s": 3, "rtt_ms": 200}, {"at_s": 1, "rtt_ms": 100}]
    assert [first_data_of({"start_s": s}, network__changes=changes) for s in (0, 1, 4)] == [0.2, 1.5, 5]


@pytest.mark.parametrize(
    ("flow", "window_s", "said"),
    [
        ({"count": 100}, [2, 10], r"starts at 0 s, but sends no data before about 4.16 s.*100 connections one after another.*104 round trips of 40 ms.*start: together"),
        ({"count": 100}, [6, 10], "about 4.16 s"),  # the larger part of the time before the window
        ({"count": 100}, [9, 10], None),
        ({"count": 100, "start": "together"}, [2, 10], None),
        ({"rtt_ms": 3000}, [2, 10], "about 15 s.*its connections"),
        ({"count": 100}, [0, 10], "about 4.16 s"),
        ({}, [0, 10], None),  # 0.2 s of 10
        ({"count": 30, "start_s": 6}, [2, 10], "about 7.36 s"),
        ({"count": 30, "bytes": 1000}, [2, 10], None),
        ({"count": 40, "stop_s": 1}, [3, 6], r"about 1.76 s, and stops at 1 s, so that it may never send.*a later stop_s"),
        ({"count": 40, "stop_s": 1, "start": "together"}, [3, 6], None),
        ({"count": 30, "bytes": 1000, "rtt_ms": 300, "stop_s": 1}, [3, 6], r"about 1.5 s, and stops at 1 s.*opens its connections"),
    ],
)  # fmt: skip
def test_data_that_begins_near_the_window_or_later_is_noted(flow, window_s, said):
    point = base_point(validate(scenario_dict(flows=[{"cca": "reno", **flow}], window_s=window_s), "s"))
    notes = [note for note in partly_there([point]) if "sends no data" in note]
    assert len(notes) == (said is not None)
    if said:
        assert re.search(said, notes[0])


@pytest.mark.parametrize(
    ("count", "hosts", "said"),
    [(1, {}, True), (2, {}, False), (1, {"rmem_max_bytes": 1 << 20}, False)],
)
def test_a_path_that_the_largest_window_does_not_fill_is_noted(count, hosts, said):
    flows = [{"cca": "reno", "count": count}]
    changes = {"network__rate_mbit": 10_000, "network__rtt_ms": 600, "window_s": [8, 10], "hosts": hosts}
    notes = partly_there([base_point(validate(scenario_dict(flows=flows, **changes), "s"))])
    assert [
        note for note in notes if "is 715 MiB, but a flow can have 512 MiB in flight at most" in note
    ] == notes * said


@pytest.mark.guest
@pytest.mark.parametrize(
    ("flows", "begins_s"),
    [
        ([{"cca": "cubic", "count": 40}], 44 * 0.04),
        ([{"cca": "cubic", "count": 40, "start": "together"}, {"cca": "reno"}], 5 * 0.04),
    ],
)
def test_data_begins_when_it_is_said_to(run_scenario, flows, begins_s):
    """On an idle path, to two samples: one is the next to see it; what 40 connections send before takes a millisecond."""
    result = run_scenario(flows=flows, duration_s=3, window_s=[2.5, 3], sample_hz=250, network__rate_mbit=100)
    samples = result.samples[result.samples["bytes_sent"] > 37]
    first_s = samples.groupby("flow")["time_s"].min()
    assert len(first_s) == sum(flow.get("count", 1) for flow in flows)
    assert first_s.to_numpy() == pytest.approx(begins_s, abs=0.008)
    scenario = validate(result.manifest["scenario"], "s")
    assert [first_data_s(flow, scenario) for flow in scenario.flows] == [pytest.approx(begins_s)] * len(flows)
    assert result.failed == []


def test_reverse_flows_send_from_the_other_side():
    plan = plan_of(flows=[{"cca": "reno"}, {"cca": "reno", "direction": "reverse"}])
    assert [b["device"] for b in plan.content["bottlenecks"]] == ["s1-s2", "s2-s1"]
    by_name = {h["name"]: h for h in plan.content["hosts"]}
    forward, reverse = plan.content["transfers"]
    assert by_name[forward["client"]]["switch"] == by_name[reverse["server"]]["switch"] == "s1"
    assert by_name[reverse["client"]]["delay_us"] == 40_000


def test_windows_are_never_the_limit_by_default():
    sysctls = plan_of(network__rate_mbit=10_000, network__rtt_ms=100).content["sysctls"]
    flight = 10e9 / 8 * 0.1 * 3
    assert int(sysctls["net.ipv4.tcp_rmem"].split()[2]) > flight
    assert int(sysctls["net.ipv4.tcp_wmem"].split()[2]) > flight
    shaken = {"network__rate_mbit": 1000, "network__rtt_ms": 10, "network__buffer": {"packets": 20}}
    sysctls = plan_of(**shaken, network__jitter={"kind": "slotted", "ms": 1000}).content["sysctls"]
    assert int(sysctls["net.ipv4.tcp_rmem"].split()[2]) > 1e9 / 8 * 1.01 * 3, (
        "ACKs that jitter delays are of a flight, too"
    )
    limited = plan_of(hosts__rmem_max_bytes=20_000, hosts__wmem_max_bytes=10_000).content
    assert limited["sysctls"]["net.ipv4.tcp_rmem"] == "4096 20000 20000"
    assert limited["sysctls"]["net.ipv4.tcp_wmem"] == "4096 10000 10000"
    assert [t["receive_lowat_bytes"] for t in limited["transfers"]] == [0]


def test_socket_memory_grows_from_where_the_scenario_says():
    plain = plan_of().content["sysctls"]["net.ipv4.tcp_rmem"]
    assert len(set(plain.split()[1:])) == 1, "the largest, at once"
    grows = plan_of(
        hosts__rmem_initial_bytes=131_072, hosts__wmem_initial_bytes=16_384, hosts__wmem_max_bytes=4 << 20
    ).content
    assert grows["sysctls"]["net.ipv4.tcp_rmem"] == f"4096 131072 {plain.split()[2]}"
    assert grows["sysctls"]["net.ipv4.tcp_wmem"] == "4096 16384 4194304"
    assert [t["receive_lowat_bytes"] for t in grows["transfers"]] == [0], "read at once, by which it grows"
    assert (
        plan_of(hosts__rmem_initial_bytes=1 << 30).content["sysctls"]["net.ipv4.tcp_rmem"].split()[1:]
        == [str(1 << 30)] * 2
    )
    for name in ("rmem", "wmem"):
        with pytest.raises(UserError, match=f"{name}_initial_bytes 9000 is more than {name}_max_bytes 8000"):
            plan_of(**{f"hosts__{name}_initial_bytes": 9000, f"hosts__{name}_max_bytes": 8000})


def test_changes_touch_only_flows_without_an_rtt_of_their_own():
    flows = [{"cca": "reno"}, {"cca": "reno", "rtt_ms": 7}]
    plan = plan_of(flows=flows, network__changes=[{"at_s": 1, "rtt_ms": 90}])
    (change,) = plan.content["changes"]
    assert change["delay_us"] == {"h1": 90_000.0}
    assert plan.content["loss_devices"] == []


@pytest.mark.parametrize(
    ("place", "loss", "links", "devices"),
    [
        ("behind", 0.1, [("s1", "s2")], ["s2-r1", "s1-h2"]),
        ("before", 0.1, [("s1", "s2"), ("s3", "s1"), ("s4", "s2")], ["s3-s1", "s4-s2"]),
        ("before", 0, [("s1", "s2")], []),
    ],
)
def test_random_loss_has_its_place(place, loss, links, devices):
    flows = [{"cca": "reno"}, {"cca": "reno", "direction": "reverse"}]
    plan = plan_of(flows=flows, network__loss=loss, network__loss_place=place).content
    assert plan["switch_links"] == links
    assert sorted(plan["loss_devices"]) == sorted(devices)
    assert {h["switch"] for h in plan["hosts"] if h["receives"]} == {"s1", "s2"}
    assert [b["device"] for b in plan["bottlenecks"]] == ["s1-s2", "s2-s1"]


def test_the_delay_of_interrupts_has_a_default():
    plans = [
        plan_of(**changes).content
        for changes in (
            {},
            {"hosts__receive_offload": "gro"},
            {"hosts__receive_offload": "gro", "hosts__receive_offload_us": 250},
            {"hosts__receive_offload": "gro-timer"},
        )
    ]
    assert [(p["interrupt_delay_us"], p["gro_timer_us"]) for p in plans] == [
        (None, None),
        (50, None),
        (250, None),
        (None, 50),
    ]


def test_a_missing_cca_is_refused_before_anything_starts():
    with pytest.raises(UserError, match=r"no bbr3 .*it has bbr1, cubic.*--kernel"):
        plan_of(flows=[{"cca": "bbr3"}])


def test_module_parameters_go_to_the_kernel_command_line():
    plan = plan_of(flows=[{"cca": "cubic", "params": {"beta": 700, "hystart": False}}])
    assert plan.kernel_arguments == ["tcp_cubic.beta=700", "tcp_cubic.hystart=0"]  # a number in the kernel


def test_parameters_of_a_group_are_its_own_where_the_kernel_has_sets():
    """Groups with equal parameters share a set; those without use the algorithm itself; nothing goes to the command line."""
    flows = [
        {"cca": "bbr3", "params": {"headroom": False, "profile": "v3-06"}},
        {"cca": "bbr3"},
        {"cca": "bbr2", "params": {"headroom": False}, "count": 2, "rtt_ms": [40, 60]},
        {"cca": "bbr3", "params": {"profile": "v3-06", "headroom": False}},
        {"cca": "cubic", "params": {"beta": 700}},
    ]
    ccas = {"bbr2": "bbr2", "bbr3": "bbr3", "cubic": "cubic"}
    point = base_point(validate(scenario_dict(flows=flows), "s"))
    plan = make_plan(point, 1, ccas, modules={"bbr2": "bbr_model", "bbr3": "bbr_model"})
    module = {"module": "bbr_model"}
    assert plan.content["parameter_sets"] == [
        module | {"name": "bbr3_set1", "base": "bbr3", "values": {"profile": "v3-06", "headroom": "N"}},
        module | {"name": "bbr2_set2", "base": "bbr2", "values": {"headroom": "N"}},
    ]
    assert [t["cca"] for t in plan.content["transfers"]] == [
        "bbr3_set1", "bbr3", "bbr2_set2", "bbr2_set2", "bbr3_set1", "cubic",
    ]  # fmt: skip
    assert plan.kernel_arguments == ["tcp_cubic.beta=700"]


@pytest.mark.parametrize(
    ("trace", "arguments"),
    [
        ("", []),
        ("acks", [f"tcp_ack_records.kept={1 << 17}"]),
        ("changes", [f"tcp_ack_records.kept={1 << 17}", "tcp_ack_records.changes=Y"]),
    ],
)
def test_records_of_acks_are_asked_for_on_the_kernels_command_line(trace, arguments):
    """Whatever the algorithms of the flows."""
    point = base_point(validate(scenario_dict(flows=[{"cca": "reno"}]), "s"))
    plan = make_plan(point, 1, {"reno": "reno"}, trace=trace)
    assert plan.content["trace_acks"] == bool(trace)
    assert plan.kernel_arguments == arguments


@pytest.mark.parametrize(
    ("qdisc", "words"),
    [
        ({"kind": "fifo"}, "bfifo limit 100000"),
        ({"kind": "codel", "target_ms": 5, "ecn": True}, "codel limit 66 target 5000.000us ecn"),
        ({"kind": "fq_codel", "ecn": False, "flows": 8}, "fq_codel limit 66 flows 8 memory_limit 2147483648 noecn"),
        ({"kind": "pie", "alpha": 2, "beta": 20}, "pie limit 66 alpha 2 beta 20"),
        ({"kind": "cake", "isolation": "flows"}, "cake unlimited memlimit 150480b flows"),
        ({"kind": "fq", "ce_threshold_ms": 1.5}, "fq limit 66 flow_limit 66 nopacing ce_threshold 1500.000us"),
        (
            {"kind": "red", "min_bytes": 10_000, "max_bytes": 30_000, "probability": 0.1, "ecn": True},
            "red limit 100000 min 10000 max 30000 avpkt 1514 burst 13 bandwidth 10000000bit probability 0.1 ecn",
        ),
        (
            {"kind": "red", "max_bytes": 6000, "probability": 1},
            "red limit 100000 min 2000 max 6000 avpkt 1514 burst 4 bandwidth 10000000bit probability 0.9999999997671694",
        ),
    ],
    ids=lambda v: v["kind"] if isinstance(v, dict) else "",
)
def test_qdisc_words(qdisc, words):
    assert " ".join(qdisc_words(Network(rate_mbit=10, rtt_ms=40, buffer={"bytes": 100_000}, qdisc=qdisc))) == words


def test_groups_that_want_a_kernel_wide_parameter_differently_are_refused():
    """A kernel whose bbr3 has no parameter sets (Google's) cannot give two groups different ones."""
    flows = [{"cca": "bbr3", "params": {"gain": 1}}, {"cca": "bbr3", "params": {"gain": 2}}]
    point = base_point(validate(scenario_dict(flows=flows), "s"))
    kernel = Kernel("k", "6", "b", "key", "image", {"bbr3": "bbr"}, {"bbr": ["gain"]}, "source", "cc", 1.0)
    with pytest.raises(UserError, match=r"flows.1.params: the parameters of bbr3 hold for the whole kernel k"):
        check_parameters(point, kernel)
    check_parameters(point, dataclasses.replace(kernel, modules={"bbr": "module"}))


def test_a_profile_that_the_kernel_does_not_have_is_refused_before_it_boots():
    def point_with(profile):
        flows = [{"cca": "cubic"}, {"cca": "bbr3", "params": {"profile": profile}}]
        return base_point(validate(scenario_dict(flows=flows), "s"))

    kernel = Kernel("k", "6", "b", "key", "image", {"cubic": "cubic", "bbr3": "x3"}, {"x3": ["profile"]}, "source", "cc", 1.0,
                    modules={"x3": "module"}, profiles={"x2": ["v9"], "x3": ["v3", "v3-06"]})  # fmt: skip
    for profile in ("v3", "v3-06"):
        check_parameters(point_with(profile), kernel)
    said = r"flows\.1\.params\.profile: bbr3 has no profile 'v9' in kernel k \(it has: v3, v3-06\)"
    with pytest.raises(UserError, match=said):
        check_parameters(point_with("v9"), kernel)
    check_parameters(point_with("v9"), dataclasses.replace(kernel, profiles={}))  # which does not tell them
