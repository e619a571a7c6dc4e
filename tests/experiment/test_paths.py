"""Paths that people have: policers, ACK paths, links that follow a trace, bursts of loss. Each field against a known answer, and what is refused."""

from __future__ import annotations

import ast
import itertools
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.measure.checks.check import VIRTUAL_TIME
from bbrlab.measure.checks.path import policer_checks
from bbrlab.run.capture import Capture
from bbrlab.run.output import BOTTLENECK, RECEIVERS, SENDERS
from bbrlab.scenario.frames import FRAME_BYTES, PAYLOAD_PER_FRAME
from bbrlab.scenario.link_trace import link_trace
from bbrlab.scenario.load import base_point, load_points, load_scenario, points_of
from bbrlab.scenario.messages import validate
from bbrlab_apps.traffic.records import Records
from tests.conftest import scenario_dict
from tests.experiment.test_plan import plan_of
from tests.workload.test_short_flows import guest_module

POLICER = {"rate_mbit": 10, "burst_bytes": 100_000}
POLICED = {"network__rate_mbit": 50, "network__policer": POLICER, "duration_s": 6, "window_s": [2, 6]}


def test_a_policer_stands_where_it_is_asked_for():
    both = [{"cca": "cubic"}, {"cca": "cubic", "direction": "reverse"}]
    at = {
        place: plan_of(flows=both, network__policer={**POLICER, "place": place}).content["policers"]
        for place in ("before", "behind")
    }
    assert [entry["device"] for entry in at["before"]] == ["s1-s2", "s2-s1"]
    assert [entry["device"] for entry in at["behind"]] == ["s2-r1", "s1-h2"]
    assert {(e["rate_bps"], e["burst_bytes"]) for place in at.values() for e in place} == {(10_000_000, 100_000)}
    assert guest_module("policer").commands(at["before"][:1]) == [
        "qdisc add dev s1-s2 clsact",
        "filter add dev s1-s2 egress matchall action police rate 10000000bit burst 100000 mtu 65535 conform-exceed drop/pipe "
        "action police mtu 65535 conform-exceed drop/ok",
    ]


def test_without_the_fields_nothing_is_another():
    """Neither the plan nor a point's name has them."""
    assert not {"policers", "opportunities"} & plan_of().content.keys()
    assert base_point(validate(scenario_dict(), "s")).fingerprint == "40d00dd24a"


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"network__policer": {"rate_mbit": 10}}, ["network.policer.burst_bytes"]),
     ({"network__policer": {"rate_mbit": 10, "burst_bytes": 1513}}, ["network.policer.burst_bytes", "1514"]),
     ({"network__policer": {"rate_mbit": 0.01, "burst_bytes": 400_000}}, ["network.policer", "fills in 320 s", "at most 342500"]),
     ({"network__policer": {**POLICER, "place": "at"}}, ["network.policer.place", "before", "behind"]),
     ({"network__policer": {**POLICER, "place": "behind"}}, ["network.policer.rate_mbit 10", "no effect", "carries 10 Mbit/s at most"]),
     ({"network__policer": POLICER, "hosts__segmentation": "router"}, ["segmentation router", "network.policer.place before"])],
)  # fmt: skip
def test_policers_that_cannot_be_are_refused(changes, words):
    with pytest.raises(UserError) as told:
        points_of(validate(scenario_dict(**changes), "s"))
    assert all(word in str(told.value) for word in words), told.value


def test_what_passes_a_policer_is_judged():
    """More than a full bucket and its rate allow, or packets that are neither passed nor dropped, fail the run."""
    scenario = validate(scenario_dict(**POLICED), "s")
    entry = {
        "device": "s1-s2",
        "options": "",
        "offered_packets": 10,
        "offered_bytes": 0,
        "passed_packets": 8,
        "drops": 2,
    }
    options = bytes.fromhex("3c000100" "01000000" "02000000" "00000000" "80130000" "ffff0000" "00010000ffff000050c31200").hex()  # fmt: skip
    for changes, ok in (
        ({"passed_bytes": 7_600_000}, True), ({"passed_bytes": 7_640_000}, False),
        ({"passed_bytes": 7_000_000, "drops": 3}, False),
        ({"passed_bytes": 7_000_000, "passed_packets": 10, "drops": 0}, None),
    ):  # fmt: skip
        report = {"policers": [{**entry, "options": options + bytes(24).hex(), **changes}]}
        values, law = policer_checks(scenario, plan_of(**POLICED), report, VIRTUAL_TIME)
        assert (values.name, law.name, law.ok) == ("policer_values", "policer", ok)


@pytest.mark.guest
def test_a_token_bucket_lets_its_burst_and_its_rate_pass_to_a_packet(run_scenario):
    """What came to the queue behind it, less the rate, never grows by more than the bucket, and once by all of it."""
    run = run_scenario(**POLICED | {"duration_s": 3, "window_s": [1, 3], "sample_hz": 1000}, flows=[{"cca": "bbr1"}])
    assert run.failed == []
    assert {"policer", "policer_values"} <= {c["name"] for c in run.summary["checks"] if c["ok"]}
    rows = run.samples.drop_duplicates("time_s")
    beyond = rows["queue_sent_bytes"] + rows["queue_bytes"] - rows["time_s"] * POLICER["rate_mbit"] * 1e6 / 8
    growth = (beyond - beyond.cummin()).max()
    assert POLICER["burst_bytes"] - 2 * FRAME_BYTES < growth <= POLICER["burst_bytes"]


@pytest.mark.guest
@pytest.mark.parametrize(("size", "drops"), [(90_000, False), (200_000, True)])
def test_a_flow_within_the_burst_loses_nothing(run_scenario, size, drops):
    flows = [{"cca": "cubic", "bytes": size}]
    policer = {"rate_mbit": 1, "burst_bytes": 100_000}
    run = run_scenario(network__rate_mbit=50, network__policer=policer, flows=flows, duration_s=4, window_s=[0, 4])
    assert (run.manifest["report"]["policers"][0]["drops"] > 0) == drops
    assert run.failed == []


@pytest.mark.guest
@pytest.mark.parametrize("place", ["before", "behind"])
def test_flows_deliver_the_policers_rate(run_scenario, place):
    """Flows that never leave it tokens: eight of BBRv1. Behind the link its queue sees them all."""
    flows = [{"cca": "bbr1", "count": 8}]
    run = run_scenario(**POLICED | {"network__policer": {**POLICER, "place": place}}, flows=flows)
    assert run.failed == []
    assert run.summary["groups"][0]["goodput_mbit"] == pytest.approx(10 * PAYLOAD_PER_FRAME, rel=0.01)
    carried = run.summary["bottleneck"]["link_utilisation"] * 50
    assert carried == pytest.approx(10, rel=0.01) if place == "before" else carried > 10.5


@pytest.mark.guest
def test_bbr1_finds_the_policers_rate(run_scenario):
    """Its long-term bandwidth (lt_bw): after two lossy intervals at one rate it paces at that, without gain, for 48 rounds."""
    run = run_scenario(**POLICED, flows=[{"cca": "bbr1"}], trace="changes")
    assert run.failed == []
    rows = run.samples.query("flow == 0 and time_s > 0.5")
    held = rows.groupby((rows["bbr_bw"].diff() != 0).cumsum()).agg(
        bw=("bbr_bw", "first"), gain=("bbr_pacing_gain", "max"), begin=("time_s", "min"), end=("time_s", "max")
    )
    longest = held.loc[(held["end"] - held["begin"]).idxmax()]
    assert longest["end"] - longest["begin"] == pytest.approx(48 * 0.041, abs=0.2)
    assert longest["gain"] == 1
    assert longest["bw"] * 8e-6 == pytest.approx(10 * PAYLOAD_PER_FRAME, rel=0.02)


@pytest.mark.guest
@pytest.mark.parametrize("cca", ["bbr2", "bbr3"])
def test_bbr2_and_bbr3_settle_at_the_policers_rate(run_scenario, cca):
    """Case 17 of draft -06's appendix: their lower bounds pull the rate to that of the tokens. Loss comes when they probe, and
    not all the time, as with a BBRv1 that does not look for policers."""
    seconds = {"duration_s": 20, "window_s": [5, 20]}
    quiet = {}
    for name, params in ((cca, {}), ("bbr1", {"policer_detection": False})):
        run = run_scenario(**(POLICED | seconds), flows=[{"cca": name, "params": params}])
        assert run.failed == []
        (flow,) = run.summary["flows"]
        assert flow["goodput_mbit"] > 0.9 * 10 * PAYLOAD_PER_FRAME
        more = run.samples.query("flow == 0 and time_s >= 5")["total_retrans"].diff().dropna()
        quiet[name] = (more == 0).mean()  # of the 0.1 s between two samples
    assert quiet[cca] > 0.5 > quiet["bbr1"], quiet


REVERSE = {"rate_mbit": 0.1, "buffer": {"packets": 60}}
ACK_BYTES = 66
RECEIVER = bytes([10, 0, 32, 2])  # r1, in an IP header
ACKED = {"network__rate_mbit": 50, "duration_s": 12, "window_s": [4, 12]}


def test_the_other_direction_has_a_link_of_its_own():
    """Its own rate, buffer in its own BDP, and queue; ACKs alone need no flow against the others; its rate stays."""
    reverse = {"rate_mbit": 0.5, "buffer": {"bdp": 2}, "qdisc": {"kind": "cake", "ack_filter": "on"}}
    plan = plan_of(network__reverse=reverse, network__changes=[{"at_s": 1, "rate_mbit": 5}])
    forward, back = plan.content["bottlenecks"]
    assert (back["device"], back["rate_bps"], back["buffer_bytes"]) == ("s2-s1", 500_000, 5000)
    assert (back["burst_from"], back["burst_to_ip"], back["constant"]) == ("r1", "10.0.16.2", True)
    assert back["qdisc"][-1] == "ack-filter" and "constant" not in forward
    assert plan_of(network__reverse=reverse, flows=[{"cca": "cubic", "direction": "reverse"}]).content[
        "bottlenecks"
    ] == [back | {"burst_from": "r1", "burst_to_ip": "10.0.16.2"}]


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"network__reverse": {"rate_mbit": 1}}, ["network.reverse.buffer"]),
     ({"network__reverse": {"rate_mbit": 1, "buffer": {"packets": 10**9}}}, ["network", "reverse.buffer", "tc's limit"]),
     ({"network__reverse": {**REVERSE, "qdisc": {"kind": "fifo", "ecn": True}}}, ["network.reverse.qdisc", "fifo has no option ecn"]),
     ({"network__reverse": {**REVERSE, "qdisc": {"kind": "codel", "ecn": True}}}, ["network.reverse.qdisc.ecn", "no effect", "hosts.ecn: on"]),
     ({"network__reverse": {**REVERSE, "qdisc": {"kind": "fq", "flow_limit_packets": 60}}}, ["network.reverse.qdisc.flow_limit_packets 60", "whole buffer has 60"]),
     ({"network__reverse": {**REVERSE, "qdisc": {"kind": "codel"}}, "hosts__segmentation": "router"}, ["network.reverse.qdisc.kind codel"]),
     ({"network__qdisc": {"kind": "codel", "ack_filter": "on"}}, ["qdisc codel has no option ack_filter"])],
)  # fmt: skip
def test_links_of_the_other_direction_that_cannot_be_are_refused(changes, words):
    with pytest.raises(UserError) as told:
        points_of(validate(scenario_dict(**changes), "s"))
    assert all(word in str(told.value) for word in words), told.value


def test_its_buffer_is_swept_as_the_bottlenecks_is():
    content = scenario_dict(network__reverse=REVERSE, sweep={"network.reverse.buffer.bdp": [1, 20]})
    sizes = [p.scenario.network.towards("reverse").buffer_bytes for p in points_of(validate(content, "s"))]
    assert sizes == [FRAME_BYTES, 10_000]


@pytest.mark.guest
@pytest.mark.parametrize("cca", ["cubic", "bbr3"])
def test_goodput_is_at_most_what_the_acks_that_pass_acknowledge(run_scenario, cca):
    """No ACK is lost and the ACK path is full: packets come alone, and each is acknowledged by one of its 66 bytes."""
    run = run_scenario(**ACKED, network__reverse=REVERSE, flows=[{"cca": cca}])
    assert run.failed == []
    back = run.summary["bottleneck_reverse"]
    assert back["link_utilisation"] == pytest.approx(1, abs=0.002) and back["drops"] == 0
    assert back["buffer_bytes"] == 60 * FRAME_BYTES
    assert run.check("rate_reverse")["measured"] == pytest.approx(0.1, rel=0.002)
    acks_per_s = 0.1e6 / 8 / ACK_BYTES
    assert run.summary["flows"][0]["goodput_mbit"] == pytest.approx(acks_per_s * 1448 * 8e-6, rel=0.01)


@pytest.mark.guest
def test_acks_that_are_lost_let_goodput_rise_and_a_filter_lets_it_fill_the_link(run_scenario):
    flows = [{"cca": "cubic"}]
    shallow = run_scenario(**ACKED, network__reverse=REVERSE | {"buffer": {"packets": 2}}, flows=flows)
    thinned = REVERSE | {"qdisc": {"kind": "cake", "ack_filter": "on"}}
    filtered = run_scenario(**ACKED, network__reverse=thinned, flows=flows)
    assert shallow.failed == filtered.failed == []
    ceiling = 0.1e6 / ACK_BYTES / 8 * 1448 * 8e-6
    assert shallow.summary["bottleneck_reverse"]["loss"] > 0.5
    assert shallow.summary["flows"][0]["goodput_mbit"] > 5 * ceiling
    assert filtered.summary["flows"][0]["goodput_mbit"] > 0.95 * 50 * PAYLOAD_PER_FRAME
    assert filtered.summary["flows"][0]["rtt_ms"]["p50"] < 0.6 * shallow.summary["flows"][0]["rtt_ms"]["p50"]


@pytest.mark.guest
def test_flows_against_the_others_have_that_link(run_scenario):
    reverse = {"rate_mbit": 2, "buffer": {"bdp": 2}}
    run = run_scenario(network__reverse=reverse, flows=[{"cca": "cubic"}, {"cca": "cubic", "direction": "reverse"}])
    assert run.failed == []
    acks = 10 / 2 * ACK_BYTES / FRAME_BYTES / 2  # one for two packets of the first flow, as part of the 2 Mbit/s
    share = run.summary["groups"][1]["share_of_capacity"]
    assert share == pytest.approx(PAYLOAD_PER_FRAME * (1 - acks), abs=0.04)
    assert run.summary["bottleneck_reverse"]["link_utilisation"] > 0.96
    assert run.summary["bottleneck_reverse"]["buffer_bytes"] == 20_000


TRACED = {"network__rate_mbit": 6, "network__buffer": {"packets": 100}}


def trace_of(folder, text):
    (folder / "trace.txt").write_text(text)
    return str(folder / "trace.txt")


def test_a_trace_repeats_as_mahimahis_do(tmp_path):
    """The last time is the period: what is at 4 ms is followed by 5 and 6, and what would be at 0 is at the turn's end."""
    trace = link_trace(trace_of(tmp_path, "# a comment\n0\n1\n\n2\n2\n4\n"))
    assert list(trace.when_s(np.arange(1, 11)) * 1000) == [1, 2, 2, 4, 4, 5, 6, 6, 8, 8]
    assert list(trace.count(np.array([0, 0.0009, 0.001, 0.002, 0.0041, 0.008]))) == [0, 0, 1, 3, 5, 10]
    assert trace.mbit(0, 0.008) == pytest.approx(10 * FRAME_BYTES * 8e-6 / 0.008)
    assert list(trace.delay_ms(np.array([0.0, 0.001, 0.0025]), np.array([1, 2 * FRAME_BYTES, 0]))) == [1, 1, 0]


def test_a_table_of_rates_is_exact_to_the_packet(tmp_path):
    """A frame whenever the rate has made one up, over an outage, too: 12.112 Mbit/s are a frame a ms."""
    trace = link_trace(trace_of(tmp_path, "0, 12.112\n0.0025, 0\n0.01, 24.224\n0.012 0"))
    assert list(trace.times_ns) == [1_000_000, 2_000_000, 10_250_000, 10_750_000, 11_250_000, 11_750_000]
    assert trace.period_ns == 12_000_000


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "has no time above 0"), ("0\n", "has no time above 0"), ("1\n3\n2\n", ":3: times must ascend, but 2 follows 3"),
     ("1\nx\n", ":2: 'x'"), ("1\n2 3\n", ":2: '2 3'"), ("-1\n", ":1: '-1'"), ("nan\n", ":1: 'nan'"), ("1 5\n2 0\n", ":1: the first time of a table is 0"),
     ("0 0\n1 0\n", "has 0 opportunities"), ("0 12000\n9 0\n", "at most 4194304")],
)  # fmt: skip
def test_files_that_are_no_traces_are_refused(tmp_path, text, words):
    with pytest.raises(UserError) as told:
        validate(scenario_dict(**TRACED, network__trace=trace_of(tmp_path, text)), "s", folder=tmp_path)
    assert words in str(told.value) and "network.trace" in str(told.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"network__trace": "nowhere"}, ["network.trace", "is not a file", "cellular or leo"]), ({"network__trace": "a" * 300}, ["is not a file"]),
     ({"network__trace": "leo", "window_s": [0, 0.001]}, ["network.trace", "no packet through in window_s [0.0, 0.001]"]),
     ({"network__trace": "leo", "network__changes": [{"at_s": 1, "rate_mbit": 5}]}, ["changes.0.rate_mbit", "trace"])],
)  # fmt: skip
def test_traces_that_cannot_be_are_refused(changes, words):
    with pytest.raises(UserError) as told:
        points_of(validate(scenario_dict(**changes), "s", folder=Path.cwd()))
    assert all(word in str(told.value) for word in words), told.value


@pytest.mark.parametrize("field", ["network__trace", "network__changes", "flows"])
def test_pipes_devices_and_huge_files_are_not_read(tmp_path, field):
    """A pipe would be waited for, a device read for ever."""
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(100 << 30)
    for name, words in (
        ("pipe", "pipe is not a file"),
        ("/dev/zero", "/dev/zero is not a file"),
        ("sparse", "has 107374 MB"),
    ):
        value = [{"cca": "reno", "traffic": {"trace": name}}] if field == "flows" else name
        with pytest.raises(UserError, match=words):
            validate(scenario_dict(**{field: value}), "s", folder=tmp_path)


def test_a_list_has_no_more_changes_than_a_file():
    changes = [{"at_s": i / 1000, "rtt_ms": 40 + i % 2} for i in range(2001)]
    with pytest.raises(UserError, match=r"network\.changes = .*must have at most 2,000 entries"):
        validate(scenario_dict(network__changes=changes), "s")


def test_a_point_is_of_what_a_trace_says_not_of_its_name(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    names = []
    for folder, text in ((one, "1\n3\n"), (other, "1\n3\n"), (other, "1\n4\n")):
        folder.mkdir(exist_ok=True)
        names.append(
            base_point(validate(scenario_dict(network__trace=trace_of(folder, text)), "s", folder=folder)).fingerprint
        )
    assert names[0] == names[1] != names[2]


def test_the_plan_has_the_times_of_a_run(tmp_path):
    plan = plan_of(network__trace=trace_of(tmp_path, "5\n7\n20000\n"), window_s=[0, 10])
    (entry,) = plan.content["opportunities"]
    assert entry == {
        "field": "network.trace", "devices": ["s1-s2"], "file": "opportunities-0.u64", "bytes": 1514, "first_ns": 5_000_000,
        "period_ns": 20_000_000_000,
    }  # fmt: skip
    assert list(np.frombuffer(plan.opportunities[entry["file"]], "<u8")) == [0, 2_000_000], (
        "what is after the run is not handed over"
    )
    reverse = plan_of(network__trace="leo", network__reverse=REVERSE)
    assert [entry["devices"] for entry in reverse.content["opportunities"]] == [["s1-s2"]], (
        "a way back of its own has its rate"
    )


@pytest.mark.guest
@pytest.mark.parametrize("name", ["cellular", "leo", "wifi"])
def test_a_busy_link_sends_what_its_trace_lets_to_a_packet(run_scenario, name):
    """Each interval between samples, 2 ms, in which packets wait all the time has the bytes of the trace's opportunities."""
    flows = [{"cca": "cubic", "count": 4}]
    run = run_scenario(**TRACED | {"network__buffer": {"packets": 600}, "network__rtt_ms": 20}, network__trace=name, flows=flows, duration_s=3, window_s=[1, 3], sample_hz=500)  # fmt: skip
    assert run.failed == []
    rows = run.samples.drop_duplicates("time_s").query("time_s > 1")
    busy = rows["queue_packets"].to_numpy() > 2
    assert busy.all()
    trace, times_s = link_trace(run.manifest["scenario"]["network"]["trace"]), rows["time_s"].to_numpy()
    before = trace.count(times_s - 1e-6)
    clear = before == trace.count(times_s + 1e-6)  # what is due at the very instant of a sample may be on either side
    excess = (rows["queue_sent_bytes"].to_numpy() - before * FRAME_BYTES)[clear] / FRAME_BYTES
    assert clear.sum() > 100 and np.ptp(excess) <= 1.01
    assert run.summary["bottleneck"]["link_utilisation"] == pytest.approx(1, abs=1e-3)


@pytest.mark.guest
def test_a_trace_repeats_and_what_nobody_used_is_lost(run_scenario, tmp_path):
    """One packet each 2 ms for 1 s, then nothing for 1 s, over again; a flow that starts at 2.5 s finds no more than the rest."""
    trace = trace_of(tmp_path, "".join(f"{ms}\n" for ms in range(2, 1001, 2)) + "2000\n")
    flows = [{"cca": "cubic", "start_s": 2.2}]
    run = run_scenario(**TRACED, network__trace=trace, flows=flows, duration_s=6, window_s=[3, 6], sample_hz=100)
    assert run.failed == []
    sent = run.samples.drop_duplicates("time_s").set_index("time_s")["queue_sent_bytes"]
    at = {s: int(sent[abs(sent.index - s) < 1e-6].iloc[0]) for s in (3.01, 3.99, 4.01, 5.01, 5.99)}
    assert at[3.99] == at[3.01], "nothing leaves without an opportunity"
    assert at[5.01] - at[4.01] == pytest.approx(496 * FRAME_BYTES, abs=2 * FRAME_BYTES)
    assert run.summary["bottleneck"]["link_utilisation"] == pytest.approx(1, abs=0.01)


BURSTS = {"network__rate_mbit": 50, "network__rtt_ms": 20, "network__buffer": {"bdp": 8}, "network__loss": 0.05, "network__loss_burst_packets": 4,
          "duration_s": 10, "window_s": [2, 10]}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"network__loss": 0.9, "network__loss_burst_packets": 5}, ["loss_burst_packets 5", "loss 0.9", "at least 9 packets"]),
     ({"network__loss": 1e-7, "network__loss_burst_packets": 5}, ["loss_burst_packets 5", "at most 1"]),
     ({"network__loss_burst_packets": 0.5, "network__loss": 0.1}, ["network.loss_burst_packets", "0.5"]),
     ({"network__loss_burst_packets": 5, "network__changes": [{"at_s": 1, "loss": 0.9}]}, ["changes.0.loss 0.9"]),
     ({"network__loss_burst_packets": 5}, ["network.loss_burst_packets 5", "no effect", "set network.loss"])],
)  # fmt: skip
def test_bursts_of_loss_that_cannot_be_are_refused(changes, words):
    with pytest.raises(UserError) as told:
        points_of(validate(scenario_dict(**changes), "s"))
    assert all(word in str(told.value) for word in words), told.value


def test_bursts_are_handed_to_netem_as_it_begins_and_ends_them(monkeypatch):
    """0.2 lost in bursts of 4: of those that are not lost a sixteenth is followed by a burst, which each packet ends with a quarter."""
    assert plan_of(network__loss=0.2, network__loss_burst_packets=4).content["loss_burst_packets"] == 4
    assert "loss_burst_packets" not in plan_of(network__loss=0.2).content
    tree = ast.parse((paths.GUEST_CODE / "dumbbell.py").read_text(encoding="utf-8"))
    (function,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "loss_words")
    names: dict[str, Any] = {}
    exec(
        compile(ast.Module([function], []), "dumbbell.py", "exec"), names
    )  # Mininet, which the file needs, is the guest's
    assert names["loss_words"](0.2, 4) == ["loss", "gemodel", "6.25000000%", "25.00000000%"]
    assert names["loss_words"](0.2, None) == ["loss", "random", "20.00000000%"]
    assert names["loss_words"](0, 4) == []


@pytest.mark.guest
@pytest.mark.parametrize("place", ["before", "behind"])
def test_losses_come_in_bursts_of_the_length_that_is_asked_for(run_scenario, place):
    """Run lengths of packets that left one end and did not come to the other: geometric, with that mean; told by the IP headers' numbers."""
    run = run_scenario(
        **BURSTS, network__loss_place=place, flows=[{"cca": "bbr1"}], capture=Capture(("bottleneck", "hosts"))
    )
    assert run.failed == []
    assert run.check("random_loss")["ok"]
    sent, came = (
        [int.from_bytes(p.data[18:20], "big") for p in Records(run.folder / name) if p.wire_bytes > 1000]
        for name in ((SENDERS, BOTTLENECK) if place == "before" else (BOTTLENECK, RECEIVERS))
    )
    arrivals = iter([*came, None])
    following, lost = next(arrivals), []
    for number in sent:
        lost.append(number != following)
        following = following if lost[-1] else next(arrivals)
    lengths = [len(list(run)) for is_lost, run in itertools.groupby(lost) if is_lost][:-1]
    assert sum(lost) > 500 and len(lengths) > 100
    mean, sigma = 4, math.sqrt(4 * 3 / len(lengths))  # of a geometric distribution of mean m: m (m - 1)
    assert abs(np.mean(lengths) - mean) < 4 * sigma
    ones, one = np.mean(np.array(lengths) == 1), 1 / mean
    assert abs(ones - one) < 4 * math.sqrt(one * (1 - one) / len(lengths))


@pytest.mark.guest
def test_acks_leave_together_at_intervals(run_scenario):
    """Groups follow each other by 10 ms while there are ACKs; of the handshake each packet is alone and waits for all of that."""
    jitter = {"kind": "aggregated", "ms": 10}
    run = run_scenario(network__rate_mbit=20, network__jitter=jitter, hosts__noise={"processing_us": 0}, flows=[{"cca": "bbr3"}], duration_s=4, window_s=[1, 4],
                       capture=Capture(("hosts",)))  # fmt: skip
    assert run.failed == []
    rtt_ms = run.check("base_rtt")["asked"] - 10
    left, came = ([p.time_ns / 1e6 for p in Records(run.folder / name) if p.wire_bytes < 100 and p.data[26:30] == RECEIVER] for name in (RECEIVERS, SENDERS))  # fmt: skip
    took_ms = np.array(came) - np.array(left[: len(came)])
    groups = np.flatnonzero(np.diff(came, prepend=-1) > 1)
    assert took_ms[:3] == pytest.approx(rtt_ms + 10, abs=0.02)
    assert took_ms.min() >= rtt_ms and took_ms.max() <= rtt_ms + 10.02
    apart_ms = np.diff(np.array(came)[groups[len(groups) // 4 :]])
    assert np.median(apart_ms) == pytest.approx(10, abs=0.02) and apart_ms.min() >= 9.98
    assert len(came) > 4 * len(groups)


TABLE = "# s, RTT, loss\n0 40 0\n2, 60, 0\n3 60 0\n\n4 60 0.01\n8 20 0.01\n99 5 0\n"


def table_of(folder, text=TABLE):
    (folder / "table.txt").write_text(text)
    return str(folder / "table.txt")


def test_rtts_and_losses_of_a_file_are_changes(tmp_path):
    """Rows that change nothing, and those beyond the run, are left out; the rest stands in the scenario that is run."""
    scenario = validate(scenario_dict(network__changes=table_of(tmp_path)), "s", folder=tmp_path)
    assert [c.model_dump(exclude_none=True) for c in scenario.network.changes] == [
        {"at_s": 2, "rtt_ms": 60}, {"at_s": 4, "loss": 0.01}, {"at_s": 8, "rtt_ms": 20},
    ]  # fmt: skip
    (point,) = points_of(scenario)
    written = base_point(validate(scenario_dict(network__changes=scenario.model_dump()["network"]["changes"]), "s"))
    assert point.fingerprint == written.fingerprint
    swept = scenario_dict(sweep={"network.changes": [table_of(tmp_path), []]})
    assert [len(p.scenario.network.changes) for p in points_of(validate(swept, "s", folder=tmp_path))] == [3, 0]


def test_a_trace_is_no_faster_than_a_link_may_be(tmp_path):
    """Times in s in place of ms let 20187 Mbit/s through."""
    in_s = trace_of(tmp_path, "".join(f"{i * 0.0006:.4f}\n" for i in range(1, 2001)))
    with pytest.raises(
        UserError, match=r"lets 20187 Mbit/s through in the mean; at most 12000 are possible: .* one time in ms"
    ):
        validate(scenario_dict(**TRACED, network__trace=in_s), "s", folder=tmp_path)
    with pytest.raises(UserError, match="lets 12200 Mbit/s through"):
        validate(scenario_dict(**TRACED, network__trace=trace_of(tmp_path, "0 12200\n1 0\n")), "s", folder=tmp_path)
    assert link_trace(trace_of(tmp_path, "0 11999\n1 0\n")).mbit(0, 1) == pytest.approx(11999, rel=1e-4)


@pytest.mark.parametrize(
    ("grid", "words"),
    [("sweep: {duration_s: [10, 100]}", "sweep sets duration_s"), ("sweep: {network.rtt_ms: [40, 60]}", "sweep sets network.rtt_ms"),
     ("cases: {a: {network.loss: 0.01}}", "cases.a sets network.loss"), ("scales: {full: {duration_s: 100}}", "scales.full sets duration_s")],
)  # fmt: skip
def test_rows_of_a_file_are_never_those_of_another_point(tmp_path, grid, words):
    """They were: a point of 100 s ended with the rows of 10 s, and one of another RTT lacked the rows with the scenario's own."""
    table_of(tmp_path)
    file = tmp_path / "s.yaml"
    rest = "flows: [{cca: cubic}]\nduration_s: 10\nwindow_s: [1, 9]\n"
    text = f"name: s\nnetwork:\n  rate_mbit: 10\n  rtt_ms: 40\n  buffer: {{packets: 50}}\n  changes: table.txt\n{rest}"
    file.write_text(text)
    load_scenario(file)
    file.write_text(text + grid + "\n")
    with pytest.raises(UserError, match=r"s\.yaml:6: network\.changes table\.txt: .*" + words):
        load_scenario(file)
    swept = (
        text.replace("  changes: table.txt\n", "") + "sweep: {network.changes: [table.txt], duration_s: [10, 100]}\n"
    )
    file.write_text(swept)
    assert [len(point.scenario.network.changes) for point in load_points(file)[1]] == [3, 4]


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "has no line"), ("1 40\n2\n", ":2: '2'"), ("1 40 0\n2 50\n", ":2: '2 50'"), ("1 x\n", ":1: '1 x'"), ("2 40\n1 50\n", ":2: times must ascend"),
     ("0 40 0\n30 50 0\n", "no row changes anything within the run, which ends at 10 s; give other rows"), ("0 40\n5 40\n", "no row changes anything"),
     ("1 50\n1 60\n", ":2: times must ascend"), ("1 50 2\n", "network.changes.0.loss"), ("1 -4\n", ":1: '1 -4'"), ("1 20000\n", "network.changes.0.rtt_ms"),
     ("".join(f"{i / 1000} {40 + i % 2}\n" for i in range(2002)), "2001 changes within the run; at most 2000"), (None, "nowhere is not a file; give a list of changes, or a file that has lines")],
)  # fmt: skip
def test_files_that_are_no_tables_are_refused(tmp_path, text, words):
    file = str(tmp_path / "nowhere") if text is None else table_of(tmp_path, text)
    with pytest.raises(UserError) as told:
        points_of(validate(scenario_dict(network__changes=file), "s", folder=tmp_path))
    assert words in str(told.value) and "network" in str(told.value)


@pytest.mark.guest
def test_acks_take_what_the_table_says_at_each_time(run_scenario, tmp_path):
    """Twenty times another RTT; an ACK that leaves the receiver between two times takes what holds then, in order."""
    rows = [(0.2 * i, 30 + 7 * (i * i % 11)) for i in range(1, 20)]
    table = table_of(tmp_path, "".join(f"{s} {ms}\n" for s, ms in rows))
    run = run_scenario(network__rate_mbit=20, network__rtt_ms=40, network__changes=table, hosts__noise="off", flows=[{"cca": "cubic"}], duration_s=4, window_s=[1, 4],
                       capture=Capture(("hosts",)))  # fmt: skip
    assert run.failed == []
    left, came = ([p.time_ns / 1e6 for p in Records(run.folder / name) if p.wire_bytes < 100 and p.data[26:30] == RECEIVER] for name in (RECEIVERS, SENDERS))  # fmt: skip
    left_ms, came_ms = np.array(left[: len(came)]), np.array(came)
    edges = np.array([0, *(1000 * s for s, _ in rows)])
    asked_ms = np.array([40, *(ms for _, ms in rows)])[np.searchsorted(edges, left_ms, side="right") - 1]
    expected = np.maximum.accumulate(left_ms + asked_ms)  # those behind a longer delay wait for it
    sure = np.abs(left_ms[:, None] - edges).min(axis=1) > 0.01
    assert came_ms[sure] == pytest.approx(expected[sure], abs=0.05)
    assert len(set(asked_ms)) > 5
