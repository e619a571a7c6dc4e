"""Short flows: the model has the published facts, a capture becomes flows, SRPT is a bound, the guest begins each in time."""

from __future__ import annotations

import importlib.util
import io
import socket
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.measure.short_flows import SHORT, Read, ShortFlows, ShortGroup, ideal_s, read_between, srpt_s
from bbrlab.scenario.frames import FRAME_BYTES, PAYLOAD_PER_FRAME
from bbrlab.scenario.load import base_point, points_of
from bbrlab.scenario.messages import validate
from bbrlab.workload.backbone import ENOUGH_MBIT, backbone_chunks
from bbrlab.workload.chunks import COLUMNS, MIN_BYTES, PAUSE_S, collapsed_chunks, read_chunks, write_chunks
from bbrlab.workload.workload import workload_of
from tests.conftest import scenario_dict


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_model_has_the_published_facts(seed):
    """Bless et al. 2025, section VI: 18.2 kB, 6.4 MB, 280.7 MB, 1.25 Gbit/s, of 15 minutes."""
    flows = collapsed_chunks(backbone_chunks(seed, 900))
    sizes = np.sort(flows["bytes"].to_numpy().astype(float))
    part = np.cumsum(sizes) / sizes.sum()
    assert (sizes > 18.2e3).mean() == pytest.approx(0.10, abs=0.001)
    assert sizes[np.searchsorted(part, 0.1)] == pytest.approx(6.4e6, rel=0.15)
    assert sizes[np.searchsorted(part, 0.5)] == pytest.approx(280.7e6, rel=0.15)
    assert sizes.sum() * 8e-6 / 900 == pytest.approx(1250, rel=1e-3)
    assert sizes.min() >= MIN_BYTES


def test_seeds():
    one, again, other = (backbone_chunks(s, 5) for s in (1, 1, 2))
    assert one.equals(again)
    assert not one.equals(other)
    assert other["bytes"].sum() == pytest.approx(one["bytes"].sum(), rel=1e-3), "the same load"


def test_a_load_that_the_model_cannot_offer_is_refused():
    """Its large flows, few of all, make it up."""
    words = r"offered_mbit 2 for 10 s: the flows that seed 1 draws for it offer 0\.0288 Mbit/s; .* \(10 is enough\)"
    with pytest.raises(UserError, match=words):
        backbone_chunks(1, 10, 2)
    for seed in range(20):
        assert backbone_chunks(seed, 10, ENOUGH_MBIT / 10)["bytes"].sum() == pytest.approx(ENOUGH_MBIT / 8e-6, rel=1e-3)


def test_the_three_configurations_carry_the_same_bytes():
    replay, collapsed, synthetic = (workload_of(m, "model", 3, 10, 800) for m in ("replay", "collapsed", "synthetic"))
    assert replay["flow"].nunique() == len(collapsed) == len(synthetic)
    assert replay["bytes"].sum() == collapsed["bytes"].sum() == synthetic["bytes"].sum()
    assert len(replay) > len(collapsed), "some flows pause"
    assert (replay[replay["chunk"] > 0]["pause_s"] >= PAUSE_S).all()
    assert (collapsed["pause_s"] == 0).all()

    def dispersion(flows):
        counts = np.histogram(flows["start_s"], np.arange(0, 10.1, 0.5))[0]
        return counts.var() / counts.mean()

    assert dispersion(collapsed) > 2 * dispersion(synthetic), "drawn independently, arrivals lose their bursts"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", ":1: the columns must be"),
        ("flow,chunk,start_s,pause_s,bytes\n0,0,x,0,100\n", ":2: not a row of numbers"),
        ("flow,chunk,start_s,pause_s,bytes\n0,0,0,0,100\n1,0,-1,0,100\n", ":3: "),
        ("flow,chunk,start_s,pause_s,bytes\n0,0,0,0,3\n", "bytes at least 8"),
        ("flow,chunk,start_s,pause_s,bytes\n", "has no flow"),
        ("flow,chunk,start_s,pause_s,bytes\n0,0,1,0,100\n0,2,1,1,100\n", ":3: chunk 2 of flow 0"),
        ("flow,chunk,start_s,pause_s,bytes\n0,1,1,0,100\n", ":2: chunk 1 of flow 0"),
        ("flow,chunk,start_s,pause_s,bytes\n7,0,1,0,100\n8,0,1,0,100\n7,0,1,1,100\n", ":4: chunk 0 of flow 7"),
        ("flow,chunk,start_s,pause_s,bytes\n0,0,1,0,100\n0,1,2,1,100\n", ":3: .* start_s 2: .* start_s of the first"),
    ],
)
def test_what_is_no_workload(tmp_path, text, words):
    (tmp_path / "w.csv").write_text(text)
    with pytest.raises(UserError, match=words):
        read_chunks(tmp_path / "w.csv")


def first_come(starts, sizes, rate_mbit):
    now, taken = 0.0, []
    for start, size in sorted(zip(starts, sizes, strict=True)):
        now = max(now, start) + size * 8e-6 / rate_mbit
        taken.append(now - start)
    return np.array(taken)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(0, 5), st.integers(8, 10**7)), min_size=1, max_size=30))
def test_srpt_is_a_bound(flows):
    starts, sizes = (np.array(v, dtype=float) for v in zip(*flows, strict=True))
    taken = srpt_s(starts, sizes, 10)
    assert (taken >= sizes * 8e-6 / 10 * (1 - 1e-9)).all(), "not even it is faster than the link"
    assert taken.mean() <= first_come(starts, sizes, 10).mean() * (1 + 1e-9)


def test_srpt_by_hand():
    """1 Mbit/s: 125 kB need 1 s. A short one that comes in between goes first."""
    taken = srpt_s(np.array([0.0, 0.5]), np.array([125_000, 12_500]), 1)
    assert taken == pytest.approx([1.1, 0.1])


def group_of(flows, served, *, rtt_ms=100.0, window_s=(0.0, 10.0), duration_s=10.0):
    """A group of short flows, one chunk each, as an order of service serves them on a link of 10 Mbit/s."""
    scenario = validate(scenario_dict(duration_s=duration_s, window_s=list(window_s), network__rtt_ms=rtt_ms), "test")
    starts, sizes = (np.array(v, dtype=float) for v in zip(*flows, strict=True))
    rtt_s = rtt_ms * 1e-3
    end_s = (
        starts + 2 * rtt_s + served(starts + rtt_s, sizes)
    )  # data can flow one RTT after the begin, and takes a way back
    table = pd.DataFrame({"flow": range(len(flows)), "chunk": 0, "bytes": sizes, "begin_s": starts, "end_s": end_s})
    table["ideal_s"] = ideal_s(table["chunk"].to_numpy(), sizes, 10, rtt_ms)
    return ShortGroup(
        ShortFlows(
            scenario,
            rtt_ms,
            table.assign(end_s=table["end_s"].where(table["end_s"] < duration_s + rtt_s)),
            Read(0, window_s),
        ),
        0.0,
    )


def in_turn(starts, sizes):
    """First come, first served."""
    now, taken = 0.0, np.zeros(len(starts))
    for i in np.argsort(starts, kind="stable"):
        now = max(now, starts[i]) + sizes[i] * 8e-6 / 10
        taken[i] = now - starts[i]
    return taken


def largest_first(starts, sizes):
    """Always the one with the most bytes, to its end."""
    left, now, taken = set(range(len(starts))), 0.0, np.zeros(len(starts))
    while left:
        waiting = [i for i in left if starts[i] <= now]
        if not waiting:
            now = min(starts[i] for i in left)
            continue
        i = max(waiting, key=lambda k: sizes[k])
        left.remove(i)
        now += sizes[i] * 8e-6 / 10
        taken[i] = now - starts[i]
    return taken


def all_at_once(starts, sizes):
    """Processor sharing: what a fair queue comes near to."""
    left, now, taken = dict(enumerate(sizes)), 0.0, np.zeros(len(starts))
    while left:
        active = [i for i in left if starts[i] <= now + 1e-12]
        coming = [starts[i] for i in left if starts[i] > now + 1e-12]
        if not active:
            now = min(coming)
            continue
        rate = 10e6 / 8 / len(active)
        step = min([left[i] / rate for i in active] + [t - now for t in coming])
        now += step
        for i in active:
            left[i] -= step * rate
            if left[i] <= 1e-6:
                del left[i]
                taken[i] = now - starts[i]
    return taken


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 9.5), st.integers(8, 3 * 10**6)), min_size=1, max_size=15),
    st.sampled_from([in_turn, largest_first, all_at_once]),
    st.sampled_from([(0.0, 10.0), (3.0, 8.0)]),
)
def test_no_order_of_service_beats_the_bound(flows, served, window_s):
    """Of the same transmissions, also where some are not whole at the end of the run, or compete with earlier ones."""
    values = SHORT.values(group_of(flows, served, window_s=window_s))
    assume(values["chunks"])
    assert values["completion_s"] >= values["srpt_completion_s"] - 1e-9
    assert values["slowdown_mean"] >= 1
    assert values["srpt_slowdown_mean"] >= 1
    assert values["unfinished"] <= values["chunks"]


def test_a_lone_short_flow_scores_one():
    """Its connection's set-up is in the time that it took, so it is in what an empty network would take."""
    values = SHORT.values(group_of([(1.0, 1000)], in_turn))
    assert values["slowdown_mean"] == pytest.approx(1)
    assert values["srpt_slowdown_mean"] == pytest.approx(1)
    assert values["completion_s"] == pytest.approx(0.2008)


def test_an_unfinished_transmission_counts_with_the_time_it_had():
    values = SHORT.values(group_of([(0.0, 1000), (1.0, 20 * 10**6)], in_turn))
    assert (values["chunks"], values["unfinished"]) == (2, 1)
    assert values["completion_s"] == pytest.approx((0.2008 + 9) / 2)
    assert values["srpt_completion_s"] == pytest.approx(values["completion_s"])


def test_nothing_begun_is_nothing_told():
    values = SHORT.values(group_of([(9.5, 1000)], in_turn, window_s=(1.0, 2.0)))
    assert (values["chunks"], values["unfinished"], values["goodput_mbit"]) == (0, 0, 0)
    assert {
        values[n] for n in ("completion_s", "slowdown_mean", "srpt_slowdown_mean", "jain_index", "rtt_ms_mean")
    } == {None}


def read_of(tmp_path, text, low_s=5, high_s=10):
    (tmp_path / "read.log").write_text(text)
    return read_between(tmp_path / "read.log", low_s, high_s)


def test_a_late_read_counts_with_the_time_that_it_had(tmp_path):
    """1 Mbit/s throughout: 125 bytes a millisecond."""
    late = read_of(tmp_path, "5000000000 0\n10030000000 628750\n")
    assert (late.count, late.at_s) == (628_750, (5, 10.03))
    assert late.goodput_mbit((5, 10)) == pytest.approx(1)
    prompt = read_of(tmp_path, "5000000200 0\n10000000900 625000\n")
    assert prompt.goodput_mbit((5, 10)) == 1, "some hundred nanoseconds are not looked at"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "does not say what the receiver had read at 5 s and at 10 s"),
        ("5000000000 1000\n", "did not live to the end of the run"),
        ("5000000000 1000\n9000000000 4500\n", "did not live to the end of the run"),
        ("5000000000 1000\n10000000000 45", "read.log is cut off within its last line"),
    ],
)
def test_a_read_that_is_not_there_is_told(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        read_of(tmp_path, text)


def guest_module(name):
    """A module of the guest's program, which may load others of it."""
    spec = importlib.util.spec_from_file_location("guest_" + name, paths.GUEST_CODE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(paths.GUEST_CODE))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(paths.GUEST_CODE))
    return module


def test_the_receiver_notes_when_it_looked(monkeypatch):
    """Not the edge of the window, when its alarm is heard late."""
    guest, log = guest_module("short_flows"), io.StringIO()
    monkeypatch.setattr(guest.time, "monotonic_ns", lambda: 7_030_000_000)
    entry = {"server_ip": "127.0.0.1", "port": 0}
    receiver = guest.Receiver(entry, None, 2_000_000_000, log, [5 * 10**9], log, socket.AF_INET)
    receiver.note_edge()
    receiver.listener.close()
    assert log.getvalue() == "5030000000 0\n"


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32), st.floats(0.5, 30), st.floats(ENOUGH_MBIT, 9000), st.sampled_from(["collapsed", "synthetic"])
)
def test_every_way_to_send_conserves_the_bytes(seed, duration_s, all_mbit, mode):
    offered_mbit = all_mbit / duration_s
    chunks = backbone_chunks(seed, duration_s, offered_mbit)
    assert (chunks["bytes"] >= MIN_BYTES).all()
    assert chunks["start_s"].between(0, duration_s).all()
    assert (chunks["pause_s"][chunks["chunk"] > 0] >= PAUSE_S).all()
    other = workload_of(mode, "model", seed, duration_s, offered_mbit)
    assert len(other) == chunks["flow"].nunique()
    assert other["bytes"].sum() == chunks["bytes"].sum()
    sizes = chunks.groupby("flow")["bytes"].sum()
    assert sorted(other["bytes"]) == sorted(sizes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_two_megabytes_lie_between_two_pauses(seed):
    chunks = backbone_chunks(seed, 900)
    flows = chunks.groupby("flow").agg(bytes=("bytes", "sum"), chunks=("chunk", "size"), start_s=("start_s", "first"))
    assert flows["bytes"].sum() / (flows["chunks"] - 1).sum() == pytest.approx(2e6, rel=0.1)
    early = flows[(flows["start_s"] < 450) & (flows["bytes"] > 20e6)]
    assert early["bytes"].sum() / (early["chunks"] - 1).sum() == pytest.approx(2e6, rel=0.1), "of large flows, too"
    pauses = chunks[chunks["chunk"] > 0].groupby("flow")["pause_s"].agg(["sum", "size"])
    room = 900 - flows["start_s"].loc[pauses.index]
    many = pauses["size"] > 50
    assert (pauses["sum"][many] <= 0.75 * room[many]).all(), "they fit into the trace"


TRAFFIC = {"cca": "bbr3", "traffic": {"mode": "replay", "offered_mbit": 40, "senders": 2}}


@pytest.mark.guest
def test_short_flows_on_the_dumbbell(run_scenario):
    result = run_scenario(network__rate_mbit=100, network__rtt_ms=10, network__buffer__bdp=8, flows=[TRAFFIC], duration_s=5, window_s=[0, 5])  # fmt: skip
    assert result.failed == []
    assert result.check("short_flows")["measured"] > 50
    (group,) = result.summary["groups"]
    assert group["chunks"] - group["unfinished"] > 0.8 * group["chunks"]
    assert 1 <= group["slowdown_p50"] < 5
    import pandas as pd

    table = pd.read_parquet(result.folder / "short_flows.parquet")
    whole = table.dropna(subset="end_s")
    free_s = 2 * FRAME_BYTES * 8e-6 / 100  # an idle htb has tokens for two frames
    assert (whole["end_s"] - whole["begin_s"] >= whole["ideal_s"] - free_s).all(), (
        "nothing is faster than an empty network"
    )
    lone = whole[(whole["chunk"] == 0) & (whole["bytes"] < 10_000)]
    assert lone["slowdown"].min() == pytest.approx(1, abs=0.01), "a small flow that meets nobody"
    assert group["completion_s"] >= group["srpt_completion_s"]
    link = result.summary["bottleneck"]
    assert link["utilisation"] == pytest.approx(PAYLOAD_PER_FRAME * link["link_utilisation"], rel=0.01), (
        "of mostly full frames"
    )
    read = group["goodput_mbit"] * 5 / 8e-6
    assert whole["bytes"].sum() <= read <= table["bytes"].sum(), "all that was whole, and something of what was not"
    again = run_scenario(network__rate_mbit=100, network__rtt_ms=10, network__buffer__bdp=8, flows=[TRAFFIC], duration_s=5, window_s=[0, 5], trials=1)  # fmt: skip
    assert pd.read_parquet(again.folder / "short_flows.parquet").equals(table), "the same to the nanosecond"


@pytest.mark.guest
def test_short_flows_beside_a_long_one(run_scenario):
    result = run_scenario(network__rate_mbit=20, network__buffer__bdp=2, flows=[{"cca": "cubic"}, TRAFFIC | {"traffic": {"offered_mbit": 5}}], duration_s=20, window_s=[1, 20])  # fmt: skip
    assert result.failed == []
    long, short = result.summary["groups"]
    assert long["goodput_mbit"] > 5
    assert short["chunks"] > 5


def test_every_field_of_traffic_reaches_the_plan(tmp_path):
    from bbrlab.experiment.plan import make_plan

    def plan(**traffic):
        offered = {} if "trace" in traffic else {"offered_mbit": 40}
        scenario = validate(
            scenario_dict(flows=[{"cca": "bbr3", "traffic": offered | traffic}]), "test", folder=tmp_path
        )
        (point,) = points_of(scenario)
        return make_plan(point, 1, {"bbr3": "bbr3"}), point.fingerprint

    write_chunks(backbone_chunks(9, 5, 20), tmp_path / "w.csv")
    base, same = plan()[0], plan()[1]
    assert len(base.content["short_flows"][0]["clients"]) == 2
    assert len(plan(senders=3)[0].content["short_flows"][0]["clients"]) == 3
    assert plan(offered_mbit=80)[0].workloads[0]["bytes"].sum() > 1.5 * base.workloads[0]["bytes"].sum()
    assert (plan(mode="collapsed")[0].workloads[0]["chunk"] == 0).all()
    own, mark = plan(trace=str(tmp_path / "w.csv"))
    assert own.workloads[0].equals(read_chunks(tmp_path / "w.csv"))
    write_chunks(backbone_chunks(10, 5, 20), tmp_path / "w.csv")
    assert len({same, mark, plan(trace=str(tmp_path / "w.csv"))[1]}) == 3, "a trace's content decides the outcome"


def test_a_trace_has_its_own_load(tmp_path):
    """Points of another offered_mbit would be the same experiment under other names. The default, which the files of points
    have, may stand."""

    def flows(**traffic):
        return [{"cca": "bbr3", "traffic": {"trace": str(tmp_path / "w.csv")} | traffic}]

    write_chunks(backbone_chunks(9, 5, 20), tmp_path / "w.csv")
    words = r"s\.yaml: flows\.0\.traffic\.offered_mbit 40 would have no effect: .*w\.csv \(leave it out or at 1250"
    with pytest.raises(UserError, match=words):
        points_of(validate(scenario_dict(flows=flows(offered_mbit=40)), "s.yaml", folder=tmp_path), "s.yaml")
    left, given = (
        base_point(validate(scenario_dict(flows=f), "s", folder=tmp_path)) for f in (flows(), flows(offered_mbit=1250))
    )
    assert left.fingerprint == given.fingerprint
    swept = validate(
        scenario_dict(flows=flows(), sweep={"flows.0.traffic.offered_mbit": [1250, 2000]}), "s.yaml", folder=tmp_path
    )
    with pytest.raises(UserError, match=r"offered_mbit 2000 would have no effect"):
        points_of(swept, "s.yaml")


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ({"cca": "bbr3", "count": 2, "traffic": {}}, "count has no meaning"),
        ({"cca": "bbr3", "bytes": 1000, "traffic": {}}, "bytes has no meaning"),
        ({"cca": "bbr3", "traffic": {"trace": "nowhere.csv"}}, "nowhere.csv.*no file can be named here"),
        ({"cca": "bbr3", "traffic": {"mode": "other"}}, "mode"),
        ({"cca": "bbr3", "rtt_ms": [10, 20], "traffic": {}}, "one number"),
    ],
)
def test_refusals(flow, words):

    with pytest.raises(UserError, match=words):
        validate(scenario_dict(flows=[flow]), "test")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network__trace": "wifi"}, "network.trace"),
        ({"network__changes": [{"at_s": 1, "loss": 0.1}, {"at_s": 2, "rate_mbit": 5}]}, "network.changes.1.rate_mbit"),
        ({"network__changes": [{"at_s": 1, "rtt_ms": 80}]}, "network.changes.0.rtt_ms"),
    ],
)
def test_a_slowdown_is_of_one_rate_and_rtt(changes, words):
    flows = [{"cca": "cubic"}, {"cca": "bbr3", "traffic": {}}]
    with pytest.raises(
        UserError, match=rf"flows\.1\.traffic: short flows are not possible with {words}: .*; leave one"
    ):
        validate(scenario_dict(flows=flows, **changes), "test")
    flows[1]["rtt_ms"] = 20
    if "rtt_ms" in words:
        validate(scenario_dict(flows=flows, **changes), "test")  # it stays
    validate(scenario_dict(flows=flows, network__changes=[{"at_s": 1, "loss": 0.1}]), "test")


def test_flows_of_a_file_in_any_order_have_their_gaps(tmp_path):
    rows = [(0, 0, 9.0, 0.0, 10), (1, 0, 1.0, 0.0, 20), (2, 0, 5.0, 0.0, 30), (3, 0, 2.0, 0.0, 30)]
    write_chunks(pd.DataFrame(rows, columns=list(COLUMNS)), tmp_path / "w.csv")
    starts = workload_of("synthetic", str(tmp_path / "w.csv"), 1, 10, 1)["start_s"]
    assert sorted(np.diff(starts, prepend=0.0)) == [1, 1, 3, 4] and starts.max() == 9


def test_a_trace_with_gaps_and_out_of_order(tmp_path):
    """The guest takes flows numbered from 0, each one's chunks together."""
    rows = [(7, 0, 2.0, 0.0, 100), (3, 1, 1.0, 0.5, 20), (3, 0, 1.0, 0.0, 10), (5, 0, 60.0, 0.0, 9)]
    write_chunks(pd.DataFrame(rows, columns=list(COLUMNS)), tmp_path / "w.csv")
    chunks = workload_of("replay", str(tmp_path / "w.csv"), 1, 30, 1)
    write_chunks(chunks, tmp_path / "guest.csv")
    workload = guest_module("short_flows").Workload(tmp_path / "guest.csv")
    assert list(workload.start_ns) == [1_000_000_000, 2_000_000_000]  # flow 5 starts too late
    assert [workload.chunks(f) for f in (0, 1)] == [[(0, 10), (500_000_000, 20)], [(0, 100)]]
