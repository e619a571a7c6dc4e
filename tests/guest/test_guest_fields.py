"""Every field of a scenario is honoured: each test fails if its field were ignored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.guest
FLOW = {"cca": "cubic"}


def share(result, group=0):
    return result.summary["groups"][group]["share_of_capacity"]


def during(samples: pd.DataFrame, low: float, high: float) -> pd.DataFrame:
    return samples[samples["time_s"].between(low, high)]


def goodput_mbit(samples: pd.DataFrame, flow: int, low: float, high: float) -> float:
    mine = during(samples[samples["flow"] == flow], low, high)
    return (
        (mine["bytes_acked"].iloc[-1] - mine["bytes_acked"].iloc[0])
        * 8e-6
        / (mine["time_s"].iloc[-1] - mine["time_s"].iloc[0])
    )


@pytest.mark.parametrize("rate", [2, 25.5])
def test_rate_and_buffer_in_bytes(run_scenario, rate):
    result = run_scenario(network__rate_mbit=rate, network__buffer__bytes=100_000)
    assert result.failed == []
    assert result.summary["bottleneck"]["buffer_bytes"] == 100_000
    assert share(result) == pytest.approx(1448 / 1514, abs=0.03)
    assert result.check("rate")["measured"] == pytest.approx(rate, rel=0.002)


def test_buffer_in_packets(run_scenario):
    result = run_scenario(network__buffer__packets=50)
    assert result.failed == []
    assert result.check("buffer")["measured"] == 50 * 1514


@pytest.mark.parametrize("rtt", [5, 120])
def test_rtt(run_scenario, rtt):
    result = run_scenario(network__rtt_ms=rtt, hosts__noise="off")
    assert result.failed == []
    assert result.check("base_rtt")["measured"] == pytest.approx(rtt, abs=0.02)


def test_rtt_per_group(run_scenario):
    flows = [{"cca": "cubic", "rtt_ms": 20}, {"cca": "cubic", "rtt_ms": 80}, {"cca": "reno"}]
    result = run_scenario(flows=flows, hosts__noise="off")
    assert result.failed == []
    assert [f["base_rtt_ms"] for f in result.summary["flows"]] == [20, 80, 40]
    assert [p for p in result.manifest["report"]["ping_ms"]] == pytest.approx([20, 80, 40], abs=0.02)


def test_rtt_range_is_drawn_per_flow_and_seed(run_scenario):
    flows = [{"cca": "reno", "count": 4}]
    rtts = [
        [f["base_rtt_ms"] for f in run_scenario(seed=s, network__rtt_ms=[30, 40], flows=flows).summary["flows"]]
        for s in (1, 2)
    ]
    assert all(30 <= r <= 40 for row in rtts for r in row)
    assert len(set(rtts[0])) == 4
    assert rtts[0] != rtts[1]
    assert run_scenario(seed=1, network__rtt_ms=[30, 40], flows=flows).failed == []


def test_start_and_stop(run_scenario):
    flows = [FLOW, {"cca": "reno", "start_s": 3, "stop_s": 7}]
    result = run_scenario(flows=flows, window_s=[0, 10])
    assert result.failed == []
    samples = result.samples
    late = samples[(samples["flow"] == 1) & (samples["bytes_acked"] > 1)]
    assert 3.0 < late["time_s"].min() < 3.8
    assert 6.8 < late["time_s"].max() < 7.8
    assert goodput_mbit(samples, 0, 8.5, 10) > 8.5


def test_finite_size_and_completion_time(run_scenario):
    flows = [{"cca": "cubic", "bytes": 2_000_000, "count": 2}]
    result = run_scenario(flows=flows, window_s=[0, 10])
    assert result.failed == []
    for flow in result.summary["flows"]:
        assert 2_000_000 <= flow["delivered_bytes"] <= 2_000_100
        assert 2.0 < flow["completion_s"] < 5.0


def test_a_flow_shorter_than_a_sample(run_scenario):
    result = run_scenario(flows=[{"cca": "cubic", "bytes": 5000, "start_s": 1.01}], network__rtt_ms=5, window_s=[0, 10])
    assert result.failed == []
    (flow,) = result.summary["flows"]
    assert flow["delivered_bytes"] >= 5000
    assert 0.004 < flow["completion_s"] < 0.05
    (group,) = result.summary["groups"]
    unseen = [
        flow["rtt_ms"]["mean"],
        flow["rtt_ms"]["min"],
        flow["cwnd_packets"],
        group["rtt_ms_mean"],
        group["cwnd_packets"],
    ]
    assert unseen == [None] * 5, "what no sample saw is not 0"


def test_count(run_scenario):
    result = run_scenario(flows=[{"cca": "cubic", "count": 5}])
    assert result.failed == []
    assert result.samples.query("flow >= 0")["flow"].nunique() == 5


def test_reverse_direction_has_a_bottleneck_of_its_own(run_scenario):
    result = run_scenario(flows=[FLOW, {"cca": "cubic", "direction": "reverse"}])
    assert result.failed == []
    assert share(result, 0) > 0.85
    assert share(result, 1) > 0.85
    assert result.summary["bottleneck_reverse"]["utilisation"] > 0.85


QDISCS = [
    {"kind": "red"},
    {"kind": "red", "min_bytes": 10_000, "max_bytes": 60_000, "probability": 0.1, "adaptive": True},
    {"kind": "codel", "target_ms": 5, "interval_ms": 100},
    {"kind": "fq_codel", "flows": 64, "quantum_bytes": 1514},
    {"kind": "pie", "target_ms": 15, "tupdate_ms": 15, "alpha": 2, "beta": 20},
    {"kind": "cake", "rtt_ms": 40, "isolation": "flows"},
    {"kind": "fq", "flow_limit_packets": 40},
]


@pytest.mark.parametrize("qdisc", QDISCS, ids=lambda q: "-".join(str(v) for v in q.values()))
def test_qdisc(run_scenario, qdisc):
    result = run_scenario(network__qdisc=qdisc, network__buffer__bdp=8, flows=[{"cca": "cubic", "count": 2}])
    assert result.failed == []
    assert any(q["kind"] == qdisc["kind"] and q["device"] == "s1-s2" for q in result.manifest["report"]["qdiscs"])
    # 8 BDP of FIFO would mean 320 ms; each of these keeps the queue shorter or drops earlier.
    assert result.summary["bottleneck"]["queue_ms"]["p50"] < 200
    assert result.summary["bottleneck"]["utilisation"] > 0.8


@pytest.mark.parametrize("qdisc", [
    {"kind": "red", "ecn": True}, {"kind": "codel", "ecn": True}, {"kind": "codel", "ecn": True, "ce_threshold_ms": 2},
    {"kind": "fq_codel", "ecn": True}, {"kind": "pie", "ecn": True}, {"kind": "cake"}, {"kind": "fq", "ce_threshold_ms": 5},
], ids=lambda q: "-".join(str(v) for v in q.values()))  # fmt: skip
def test_ecn_marks(run_scenario, qdisc):
    marked = run_scenario(
        network__qdisc=qdisc,
        network__buffer__bdp=8,
        hosts__ecn="on",
        flows=[{"cca": "cubic", "count": 2}],
        window_s=[1, 10],
    )
    assert marked.failed == []
    assert marked.summary["bottleneck"]["ecn_marks"] > 0
    assert marked.summary["flows"][0]["ecn_marked"] + marked.summary["flows"][1]["ecn_marked"] > 0


def test_ecn_is_off_by_default(run_scenario):
    result = run_scenario(network__qdisc={"kind": "codel", "ecn": True}, network__buffer__bdp=8, window_s=[1, 10])
    assert result.summary["bottleneck"]["ecn_marks"] == 0
    assert result.summary["bottleneck"]["drops"] > 0


def test_random_loss(run_scenario):
    result = run_scenario(network__loss=0.02, network__buffer__bdp=16, window_s=[1, 10])
    assert result.failed == []
    assert result.check("random_loss")["measured"] == pytest.approx(0.02, abs=0.01)
    assert result.summary["flows"][0]["retransmits"] > 0


def test_loss_before_the_bottleneck_costs_the_link_nothing(run_scenario):
    """Enough flows fill the link with what is not lost; what is lost behind it has used it."""
    asked, ceiling = 0.1, 1448 / 1514
    shares = {}
    for place in ("before", "behind"):
        result = run_scenario(network__loss=asked, network__loss_place=place, flows=[{"cca": "cubic", "count": 20}])
        assert result.failed == []
        assert place in result.check("random_loss")["detail"]
        shares[place] = share(result)
    assert shares["behind"] < (1 - asked) * ceiling
    assert shares["before"] == pytest.approx(ceiling, rel=0.01)


def test_loss_before_the_bottleneck_in_both_directions_and_changed(run_scenario):
    flows = [{"cca": "bbr1"}, {"cca": "bbr1", "direction": "reverse"}]
    changes = [{"at_s": 5, "loss": 0.3}]
    result = run_scenario(network__loss_place="before", network__changes=changes, network__buffer__bdp=16, flows=flows)
    assert result.failed == []
    for _, mine in result.samples.query("flow >= 0").groupby("flow"):
        assert during(mine, 0, 4.9)["total_retrans"].max() == 0
        assert during(mine, 5, 10)["total_retrans"].max() > 50
    lost = {q["device"]: q["drops"] for q in result.manifest["report"]["qdiscs"] if q["drops"]}
    assert set(lost) == {"s3-s1", "s4-s2"}


@pytest.mark.parametrize("kind", ["slotted", "per-packet"])
def test_jitter_shakes_its_group_only_and_never_reorders(run_scenario, kind):
    result = run_scenario(flows=[{"cca": "bbr1"}, {"cca": "bbr1"}], network__jitter={"kind": kind, "ms": 10, "group": 1},
                          network__buffer__bdp=4, hosts__noise="off")  # fmt: skip
    assert result.failed == []
    samples = result.samples
    shaken, calm = (during(samples[samples["flow"] == f], 5, 10)["rttvar_us"].mean() for f in (1, 0))
    assert shaken > 1.3 * calm
    pings = result.manifest["report"]["ping_ms"]
    assert pings[0] == pytest.approx(40, abs=0.02)
    assert 40 <= pings[1] <= 50.02


def test_changes_during_the_run(run_scenario):
    changes = [{"at_s": 4, "rate_mbit": 5}, {"at_s": 7, "rtt_ms": 80}, {"at_s": 8.5, "loss": 0.2}]
    result = run_scenario(network__changes=changes, window_s=[0, 10], network__buffer__bdp=1)
    assert result.failed == []
    samples = result.samples
    assert goodput_mbit(samples, 0, 2, 3.9) > 8.5
    assert 4.0 < goodput_mbit(samples, 0, 5, 6.9) <= 5
    flow = samples[samples["flow"] == 0]
    assert during(flow, 7.5, 8.4)["srtt_us"].mean() > 80_000
    lost = during(flow, 8.6, 10)["total_retrans"]
    assert lost.iloc[-1] > lost.iloc[0]


def test_pacing_by_fq(run_scenario):
    result = run_scenario(hosts__pacing="fq", flows=[{"cca": "bbr1"}])
    assert result.failed == []
    fq = [q for q in result.manifest["report"]["qdiscs"] if q["kind"] == "fq"]
    assert {q["device"] for q in fq} == {"h1-eth0", "r1-eth0"}
    assert max(q["packets"] for q in fq) > 1000


def test_segmentation_at_the_nic_makes_bursts(run_scenario):
    queue_ms = {}
    for mode in ("off", "nic"):
        result = run_scenario(
            hosts__segmentation=mode,
            network__rate_mbit=200,
            network__rtt_ms=10,
            flows=[{"cca": "bbr1"}],
            window_s=[2, 5],
            duration_s=5,
        )
        assert result.failed == []
        queue_ms[mode] = result.summary["bottleneck"]["queue_ms"]["mean"]
        assert share(result) > 0.8
    assert queue_ms["nic"] > queue_ms["off"]


def test_segments_that_cross_the_queue_whole_are_lost_whole(run_scenario):
    """At 100 Mbit/s BBRv1 builds segments of eight packets, and the buffer holds eight of them."""
    lost = {}
    for mode in ("nic", "router"):
        result = run_scenario(
            hosts__segmentation=mode,
            network__rate_mbit=100,
            network__rtt_ms=10,
            network__buffer={"bytes": 102_400},
            flows=[{"cca": "bbr1"}],
        )
        assert result.failed == []
        assert share(result) > 0.9
        lost[mode] = result.summary["flows"][0]["retransmits"]
    assert lost["router"] > 100 + 10 * lost["nic"]


FAST = {"network__rate_mbit": 200, "network__rtt_ms": 10, "duration_s": 4, "window_s": [1, 4], "hosts__noise": "off"}


def test_receive_offload_hands_over_what_came_in_its_time(run_scenario):
    """A frame takes 61 us at 200 Mbit/s: an interrupt 200 us after a packet is for that one and three more."""
    flows = [{"cca": "bbr1"}, {"cca": "bbr1", "direction": "reverse"}]
    merged, pings = {}, {}
    for us in (None, 50, 200):
        fields = {} if us is None else {"hosts__receive_offload": "gro", "hosts__receive_offload_us": us}
        result = run_scenario(**FAST, flows=flows, **fields)
        assert result.failed == []
        assert result.manifest["scenario"]["hosts"]["receive_offload_us"] == us
        merged[us] = result.check("receive_offload")["measured"]
        pings[us] = result.manifest["report"]["ping_ms"]
    assert merged[None] == pytest.approx(1, abs=0.001)
    assert merged[50] < 1.5
    assert 2.5 < merged[200] < 4.5
    assert pings[200] == pytest.approx([10.4, 10.4], abs=0.02)


def test_receive_offload_by_the_kernel_s_timer_merges_until_the_next_tick(run_scenario):
    """Up to 16 frames of 61 us come in 1 ms, whatever the timer says, as long as it finds something each time."""
    fields = {"hosts__receive_offload": "gro-timer", "hosts__segmentation": "nic", "flows": [{"cca": "bbr1"}]} | FAST
    one, other = (run_scenario(tamper=lambda plan: None, **fields) for _ in range(2))
    assert one.failed == []
    assert 4 < one.check("receive_offload")["measured"] <= 17
    assert one.manifest["report"]["ping_ms"] == pytest.approx([10], abs=0.02)
    assert (one.folder / "samples.parquet").read_bytes() == (other.folder / "samples.parquet").read_bytes()


@pytest.mark.parametrize("kind", ["slotted", "per-packet"])
def test_receive_offload_with_all_else_that_stands_on_a_port(run_scenario, kind):
    """Delay, jitter, loss and changes of the path keep their place above the delay of interrupts. Twice: the same bytes."""
    fields = {
        "hosts__receive_offload": "gro",
        "hosts__pacing": "fq",
        "network__jitter": {"kind": kind, "ms": 4},
        "network__loss": 0.01,
        "network__changes": [{"at_s": 2, "rtt_ms": 20}],
    } | FAST
    one, other = (run_scenario(seed=3, tamper=lambda plan: None, **fields) for _ in range(2))
    assert one.failed == []
    srtt_us = one.samples.query("flow == 0").set_index("time_s")["srtt_us"]
    assert srtt_us[1.0:1.9].mean() < 19_000 < srtt_us[3.0:4.0].mean()
    assert (one.folder / "samples.parquet").read_bytes() == (other.folder / "samples.parquet").read_bytes()


def test_receive_window_limit(run_scenario):
    result = run_scenario(hosts__rmem_max_bytes=32_768)
    assert result.failed == []  # asked for, hence no fault
    assert result.check("receive_window")["measured"] > 0.5
    assert share(result) < 0.6


def test_socket_memory_grows(run_scenario):
    """From Linux' defaults to what a path of 500 kB needs, which they alone do not fill."""
    path = {"network__rate_mbit": 50, "network__rtt_ms": 80, "duration_s": 10, "window_s": [5, 10]}
    grown = run_scenario(hosts__rmem_initial_bytes=131_072, hosts__wmem_initial_bytes=16_384, **path)
    kept = run_scenario(hosts__rmem_max_bytes=131_072, **path)
    assert grown.failed == kept.failed == []
    assert share(grown) > 0.8 and share(kept) < 0.4

    def tamper(plan):
        sysctls = plan["sysctls"]
        sysctls["net.ipv4.tcp_rmem"] = sysctls["net.ipv4.tcp_rmem"].replace(" 131072 ", " 131073 ")

    assert "host_values" in run_scenario(tamper=tamper, hosts__rmem_initial_bytes=131_072).failed


def test_send_buffer_limit(run_scenario):
    result = run_scenario(hosts__wmem_max_bytes=32_768)
    assert result.failed == []
    assert result.check("send_buffer")["measured"] > 0.3
    assert share(result) < 0.7


def test_module_parameters(run_scenario):
    result = run_scenario(flows=[{"cca": "cubic", "params": {"beta": 900}}], network__buffer__bdp=1)
    assert result.failed == []
    assert result.check("parameter cubic.beta")["measured"] == 900
    plain = run_scenario(network__buffer__bdp=1)
    ratio = [np.median(r.samples.query("flow == 0 and time_s > 5")["cwnd"]) for r in (result, plain)]
    assert ratio[0] > ratio[1]


@pytest.mark.parametrize("cca", ["bbr1", "cubic", "reno", "dctcp"])
def test_cca(run_scenario, cca):
    result = run_scenario(flows=[{"cca": cca}])
    assert result.failed == []
    assert result.samples["bbr_pacing_gain"].notna().any() == (cca == "bbr1")
    assert share(result) > 0.85


@pytest.mark.parametrize("hz", [1, 100])
def test_sample_hz(run_scenario, hz):
    result = run_scenario(sample_hz=hz)
    assert result.failed == []
    assert result.samples["time_s"].nunique() == hz * 10 + 1


def test_samples_stand_at_the_edges_of_the_window(run_scenario):
    result = run_scenario(sample_hz=1, window_s=[2.25, 7.75])
    times = result.samples["time_s"].to_numpy()
    for edge in (2.25, 7.75):
        assert np.abs(times - edge).min() < 1e-4


def test_a_flow_that_stalls_is_a_result(run_scenario):
    """Almost nothing gets through from 10 s on: two minutes without a byte, after which iperf3's server gave up by default."""
    result = run_scenario(
        network__changes=[{"at_s": 10, "loss": 0.99}], duration_s=400, window_s=[200, 400], sample_hz=1
    )
    flow = result.samples.query("flow == 0")
    progress = flow["time_s"][flow["bytes_acked"].diff() > 0]
    assert max(progress.diff().max(), 400 - progress.max()) > 120
    assert result.check("flows_ran")["ok"], result.check("flows_ran")
    assert flow["time_s"].max() == pytest.approx(400)
