"""The burst model against published shares, closed forms and what it must do by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.claims.columns import beside, has_prediction
from bbrlab.claims.schema import BURST, FLUID, Term
from bbrlab.cli.commands import app
from bbrlab.models import _burst_loop, _burst_state, burst, burst_scenario, burst_versions
from bbrlab.models.burst import share, simulate
from bbrlab.models.burst_versions import READINGS, VERSIONS, Reading
from bbrlab.models.predictions import BURST_SEEDS
from bbrlab.results.figures import PANEL_KEYS, figures_at, write_points
from bbrlab.scenario.frames import FRAME_BYTES, PAYLOAD_BYTES, PAYLOAD_PER_FRAME
from bbrlab.scenario.messages import validate
from bbrlab.show.panel import Panel
from studies import burst_panels, burst_tables
from studies.model_panels import with_burst
from studies.share_plots import three_models
from tests.conftest import scenario_dict

# RMSE up to 16 BDP of the drafts to the letter; the first five are asked for by the model's specification, the last two are what two
# laboratories differ by with the set-up of Fig. 2a (.055), and what a prototype of the model had.
LIMITS = {
    "fig2a": 0.025, "fig2c": 0.025, "fig5a": 0.045, "fig5c": 0.025, "fig3a": 0.05, "fig2b": 0.055, "fig3c": 0.103,
}  # fmt: skip
# What is aimed at up to 32 BDP.
AIMS = {"fig5a": 0.03, "fig5c": 0.03, "fig3a": 0.05, "fig3c": 0.05}
MISSED = {
    "fig5a": ".063: at 32 BDP eight flows get .30 too much (so do the lab's, and Google's code)",
    "fig3c": ".053: at 1 and 2 BDP four flows get .10 to .14 too much, as in the lab (.10 to .15)",
}  # fmt: skip
# RMS difference to the lab's own runs up to 16 BDP (data/questions/readings_shares.csv), by version and rival. What is asked for: as of
# the published shares above.
LAB_LIMITS = {("bbr3", "cubic"): 0.03, ("bbr3", "reno"): 0.03, ("bbr2", "cubic"): 0.05, ("bbr2", "reno"): 0.05}


KILOBYTE = burst_panels.PUBLISHED.buffer_scale  # bytes of a kilobyte, over 1000


def rms(values):
    return float(np.sqrt((np.asarray(values) ** 2).mean()))


@pytest.mark.parametrize(
    "figure", [pytest.param(f, marks=[] if f in ("fig2a", "fig5a") else pytest.mark.slow) for f in LIMITS]
)
def test_published_shares(figure):
    chosen = burst_panels.cells(figure, 16)
    found = burst_panels.modelled(figure, chosen, "draft", seeds=1)
    assert rms(found - chosen["published"]) <= LIMITS[figure]


@pytest.mark.parametrize(
    "figure",
    [pytest.param(f, marks=[pytest.mark.xfail(strict=True, reason=MISSED[f])] if f in MISSED else []) for f in AIMS],
)
@pytest.mark.slow
def test_aims_in_deep_buffers(figure):
    chosen = burst_panels.cells(figure, 32)
    found = burst_panels.modelled(figure, chosen, burst_versions.LETTER)
    assert rms(found - chosen["published"]) <= AIMS[figure]


BISTABLE = (
    ".077: one flow at 8 BDP gets .5 of capacity or, if a loss in its first probes bounds its inflight_hi, .35; in the lab, whose flows "
    "all start at one instant, always the latter"
)


@pytest.mark.parametrize(
    ("cca", "rival"),
    [pytest.param(*k, marks=[pytest.mark.xfail(strict=True, reason=BISTABLE)] if k == ("bbr2", "reno") else [])
     for k in LAB_LIMITS],
)  # fmt: skip
def test_shares_of_the_lab(cca, rival):
    """The lab runs the kernel's own code; buffers in the model are the same bytes."""
    runs = pd.read_csv(paths.DATA / "questions/readings_shares.csv").query(
        "cca == @cca and rival == @rival and reading == 'drafts' and buffer_bdp <= 16"
    )
    found = [
        burst.shares(cca, int(n), rival, 10, 40, x, seeds=2).mean()
        for x, n in zip(runs["buffer_bdp"], runs["bbr_flows"], strict=True)
    ]
    assert len(found) == 16
    assert rms(found - runs["share_of_capacity"]) <= LAB_LIMITS[cca, rival]


NETWORKS = {
    "ccas": st.lists(st.sampled_from(list(burst_versions.CCAS)), min_size=1, max_size=8),
    "rate_mbit": st.floats(0.5, 50),
    "rtts_ms": st.lists(st.floats(2, 300), min_size=8, max_size=8),
    "buffer_packets": st.integers(1, 300),
    "segments": st.booleans(),
    "seed": st.integers(0, 1000),
}


@settings(max_examples=10, deadline=None, derandomize=True)
@given(**NETWORKS)
def test_what_holds_in_any_network(**network):
    check_network(**network)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, derandomize=True)
@given(**NETWORKS)
def test_what_holds_in_many_networks(**network):
    check_network(**network)


def check_network(ccas, rate_mbit, rtts_ms, buffer_packets, segments, seed):
    """Packets are conserved, the link carries what it can, the queue holds what it can, and nothing is lost before it was full."""
    rtt_ms = rtts_ms[: len(ccas)]
    length_s, bytes_per_s = 20, rate_mbit * 1e6 / 8

    def run_for(duration_s):
        return simulate(ccas, rate_mbit, rtt_ms, buffer_packets=buffer_packets, duration_s=duration_s, window_s=(0, duration_s),
                        segments=segments, seed=seed)  # fmt: skip

    run = run_for(length_s)
    delivered = run.flows["goodput_mbit"] * length_s * 1e6 / 8 / PAYLOAD_BYTES
    underway = run.flows["sent_packets"] - run.flows["lost_packets"] - delivered
    path = bytes_per_s * max(rtt_ms) / 1e3 / FRAME_BYTES
    # On the path twice a window and, at the receiver, one packet that waits for a second.
    assert (underway > -1e-6).all() and underway.sum() <= 2 * path + buffer_packets + 40 * rate_mbit / 8 + len(ccas) + 2
    assert (delivered.sum() - 2) * FRAME_BYTES <= bytes_per_s * length_s + 1600
    assert 0 <= run.queue_packets <= buffer_packets + 1
    assert run.rtt_histogram.sum() == pytest.approx(delivered.sum())
    frame_ms = FRAME_BYTES / bytes_per_s * 1e3
    assert run.rtt_ms(0) >= min(rtt_ms)
    full_ms = min(rtt_ms) + (buffer_packets - 1) * frame_ms
    # What was in the queue at a loss has an RTT when it has been delivered: as much later as a full queue takes.
    early = run_for(length_s - (max(rtt_ms) + (buffer_packets + 1) * frame_ms) / 1e3)
    if early.flows["lost_packets"].any():
        assert run.rtt_ms(100) >= full_ms - run.rtt_bin_ms


@settings(max_examples=25, deadline=None, derandomize=True)
@given(**NETWORKS)
def test_flows_have_no_number(ccas, rate_mbit, rtts_ms, buffer_packets, segments, seed):
    """In another order, the same flows at the same instants get the same, where no two ACKs come at one instant."""
    starts_s = [0.1 + 0.0371 * i for i in range(len(ccas))]
    rtts_ms = [rtt + 0.0137 * i for i, rtt in enumerate(rtts_ms)]

    def go(order):
        return simulate([ccas[i] for i in order], rate_mbit, [rtts_ms[i] for i in order], buffer_packets=buffer_packets,
                        duration_s=10, segments=segments, seed=seed, start_s=[starts_s[i] for i in order]).flows  # fmt: skip

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(burst, "STARTS_WITHIN_S", 0.0)
        forward, backward = go(range(len(ccas))), go(range(len(ccas))[::-1])
    pd.testing.assert_frame_equal(forward, backward[::-1].reset_index(drop=True), check_exact=True)


def flow_at(rtt_s):
    """A flow that has sent nothing yet, with eight places for bursts."""
    flow = np.zeros(1, _burst_state.FLOW).view(np.recarray)[0]
    flow.rtt = rtt_s
    flow.first = flow.live = flow.last = flow.waiting = _burst_state.NONE
    bursts = np.zeros(8, _burst_state.BURST)
    bursts["next"] = [*range(1, 8), _burst_state.NONE]
    return flow, bursts


def test_link_and_receiver():
    """An idle link lets go what it has tokens for (1600 bytes and the packet that uses them up); every second packet is answered, and
    one alone after 40 ms, or with the next burst."""
    flow, bursts = flow_at(0.1)
    free, taken, busy, lost = _burst_loop._send(flow, 3.0, 1.0, 0.0, 0.01, 10.0, bursts, 0)
    third = 1.0 + (2 - 1600 / 1514) * 0.01
    assert (taken, lost) == (2, 0) and busy == pytest.approx(third + 0.01)
    assert bursts["size"][:2].tolist() == [2, 1]
    assert bursts["acked_at"][:2] == pytest.approx([1.1, third + 0.04 + 0.1])
    free, taken, busy, lost = _burst_loop._send(flow, 2.0, third + 0.02, busy, 0.01, 10.0, bursts, free)
    fourth = third + 0.02
    assert bursts["acked_at"][1:3] == pytest.approx([fourth + 0.1, fourth + 0.1])
    assert bursts["size"][1:4].tolist() == [1, 1, 1] and taken == 2
    waits = bursts["acked_at"][3]
    _burst_loop._send(flow, 1.0, waits, busy, 0.01, 10.0, bursts, free)
    assert bursts["acked_at"][3] == waits, "its receiver did not wait that long"


def test_receiver_answers_at_once_while_something_is_missing():
    flow, bursts = flow_at(0.1)
    free, _, busy, lost = _burst_loop._send(flow, 2.0, 1.0, 1.01, 0.01, 1.5, bursts, 0)
    assert lost == 1 and flow.holes == 1 and bursts["arrives"][:2].tolist() == [1, 0]
    flow.to_repair, flow.to_repair_below = 1.0, 1.0
    _burst_loop._send(flow, 2.0, 2.0, busy, 0.01, 10.0, bursts, free)
    assert bursts["size"][2:4].tolist() == [1, 1] and bursts["repairs"][2:4].tolist() == [1, 0]
    assert bursts["acked_at"][2:4] == pytest.approx([2.1, 2.1])
    assert flow.holes == flow.to_repair == flow.to_repair_below == 0


@pytest.mark.parametrize("cca", ["cubic", "reno"])
def test_one_cut_for_each_loss_event(cca):
    """What was lost before recovery began is one event, however many packets; the window falls once (Linux: high_seq)."""
    run = simulate({cca: 1}, 10, 100, buffer_bdp=4, duration_s=400, window_s=(100, 400), sample_ms=10)
    window = run.trace[run.trace["t_s"] > 100].groupby((run.trace["t_s"] // 0.5).astype(int))["cwnd_packets"].min()
    low = window < 0.8 * window.rolling(3).max().shift()
    falls = int((low & ~low.shift(fill_value=False)).sum())
    assert falls >= 3
    assert run.flows["lost_packets"].sum() >= falls
    assert run.flows["share"].sum() > 0.98 * PAYLOAD_PER_FRAME
    assert window.min() > (0.45 if cca == "reno" else 0.65) * window.max()


@pytest.mark.parametrize("mix", [{"cubic": 30}, {"reno": 30}, {"bbr3": 16, "reno": 1}])
def test_nobody_stops_for_good(mix):
    """Where every packet of a window is lost, the retransmission timeout goes on."""
    run = simulate(mix, 10, 40, buffer_bdp=0.3 if "bbr3" not in mix else 1, duration_s=400, window_s=(300, 400))
    assert (run.flows["goodput_mbit"] > 0).all()


@pytest.mark.parametrize("cca", burst_versions.CCAS)
def test_equal_flows_get_equal_shares(cca):
    found = [simulate({cca: 4}, 20, 40, buffer_bdp=4, duration_s=600, seed=s).flows["share"] for s in (1, 2, 3)]
    means = np.mean(found, axis=0)
    assert means.sum() > 0.9
    assert means.max() - means.min() < 0.5 * means.mean()


@pytest.mark.parametrize("cca", ["bbr1", "bbr2", "bbr3"])
def test_no_loss_without_a_full_queue(cca):
    """BBR alone keeps at most some BDP in flight: 8 BDP of buffer never fill but in Startup."""
    run = simulate({cca: 2}, 20, 40, buffer_bdp=8, duration_s=100, window_s=(0, 100))
    assert run.loss == 0
    assert run.rtt_ms(100) < 40 * 9


def test_reno_scales_with_time():
    """Reno has no clock of its own: twice the rate at half the RTT is the same run, twice as fast. At this rate a burst has two
    packets in both."""
    slow = simulate({"reno": 1}, 4, 80, buffer_bdp=2, duration_s=400, window_s=(100, 400))
    fast = simulate({"reno": 1}, 8, 40, buffer_bdp=2, duration_s=200, window_s=(50, 200))
    assert fast.flows["share"].sum() == pytest.approx(slow.flows["share"].sum(), abs=1e-3)
    assert fast.loss == pytest.approx(slow.loss, rel=0.05)
    assert fast.queue_packets == pytest.approx(slow.queue_packets, rel=0.02)


def test_one_reno_flow_is_the_sawtooth():
    """One loss per cycle from W/2 to W, W being what path and buffer hold: 3/8 W^2 packets per loss (Mathis et al. 1997)."""
    run = simulate({"reno": 1}, 10, 40, buffer_bdp=1, duration_s=2000, window_s=(100, 2000))
    most = 10e6 / 8 / 1514 * 0.04 + run.buffer_packets
    assert run.loss == pytest.approx(8 / 3 / most**2, rel=0.25)
    assert run.flows["share"].sum() > 0.98 * PAYLOAD_PER_FRAME


def test_one_cubic_flow_falls_by_three_tenths():
    """The window before a loss over that after it is 1024 / 717 (RFC 9438: .7)."""
    run = simulate({"cubic": 1}, 10, 40, buffer_bdp=4, duration_s=300, sample_ms=10)
    window = run.trace[run.trace["t_s"] > 100]["cwnd_packets"].to_numpy()
    assert window.min() / window.max() == pytest.approx(717 / 1024, abs=0.03)


def test_one_bbr3_flow():
    """100 Mbit/s, 50 ms, 8 BDP (Bless et al., Networking 2025): a probe builds a queue of 1.25^3 - 1 = .95 RTTs (.8 to 1) in
    about 3.8 RTTs, and some 8.5 RTTs drain it; probes are 2 to 3.4 s apart; ProbeRTT comes every 5 s and half a round."""
    run = simulate({"bbr3": 1}, 100, 50, buffer_bdp=8, duration_s=100, window_s=(10, 100), sample_ms=5)
    assert 0.8 <= run.rtt_ms(100) / 50 - 1 <= 1.0
    # The pacing margin of 1 %, and half the rate for .225 s of every 5.2.
    assert run.flows["share"].sum() == pytest.approx(0.99 * (1 - 0.5 * 0.225 / 5.2) * PAYLOAD_PER_FRAME, abs=0.01)
    state = run.trace.query("t_s > 10")["state"]
    t_s = run.trace["t_s"]
    begins = {s: t_s[state.index[(state == s) & (state.shift() != s)]] for s in ("UP", "DOWN", "ProbeRTT")}
    ends = {s: t_s[state.index[(state == s) & (state.shift(-1) != s)]] for s in begins}
    lasts = {s: np.median(ends[s].to_numpy() - begins[s].to_numpy()) for s in begins}
    assert begins["ProbeRTT"].diff().median() == pytest.approx(5.22, abs=0.05)
    assert begins["UP"].diff().min() > 2.2
    assert lasts["ProbeRTT"] == pytest.approx(0.225, abs=0.01)
    assert 3 <= lasts["UP"] / 0.05 <= 4.5
    assert 6 <= lasts["DOWN"] / 0.05 <= 11


def test_bbr1_s_bandwidth_outlives_probe_rtt():
    """With 10 ms a ProbeRTT lasts twenty rounds, and the max filter ten: but what it forgets, it forgets when a sample comes that counts."""
    run = burst.simulate({"bbr1": 1, "cubic": 1}, 20, 10, buffer_bdp=2, duration_s=60, window_s=(20, 60), sample_ms=20)
    trace = run.trace[(run.trace["flow"] == 0) & (run.trace["t_s"] > 5)]
    probing = trace["state"] == "ProbeRTT"
    assert probing.sum() >= 40
    assert trace.loc[probing, "max_bw_mbit"].min() > 0.9 * trace.loc[~probing, "max_bw_mbit"].median()


@pytest.mark.parametrize(("rate_mbit", "lab"), [(10, 0.8326), (20, 0.7923)])
def test_bbr1_with_a_short_rtt_is_as_in_the_lab(rate_mbit, lab):
    """Cells of a map that were drawn at random, run without noise of hosts, which the model does not have either (commit 8816a66); before
    the filter forgot as Linux's does .025 and .040 off."""
    shares = [
        burst.simulate({"bbr1": 1, "cubic": 1}, rate_mbit, 10, buffer_bdp=2, duration_s=1000, seed=seed).shares["bbr1"]
        for seed in (1, 2)
    ]
    assert np.mean(shares) == pytest.approx(lab, abs=0.015)


def test_probe_rtt_caps_the_share():
    """docs/explanation/models.md: (g - 1) / (g - x) of the link, g = 2 the window's gain and x that of ProbeRTT, against one Reno flow in
    a deep buffer."""
    gains = [0.0, 0.25, 0.5, 0.75]
    found = []
    for x in gains:
        versions = {"bbr3": replace(VERSIONS["bbr3"], probe_rtt_gain=x)}
        found.append(burst.shares("bbr3", 2, "reno", 10, 40, 16 * KILOBYTE, seeds=2, versions=versions).mean())
    expected = [PAYLOAD_PER_FRAME / (2 - x) for x in gains]
    assert found[:3] == pytest.approx(expected[:3], abs=0.05)
    assert np.all(np.diff(found) > 0)


def test_same_seed_same_bits():
    def go(seed, **more):
        return simulate({"bbr3": 2, "bbr2": 1, "cubic": 1}, 10, 40, buffer_bdp=2, duration_s=60, seed=seed, **more)

    pd.testing.assert_frame_equal(go(7).flows, go(7, sample_ms=100).flows, check_exact=True)
    assert (go(7).flows["share"] != go(8).flows["share"]).any()


def test_places_for_bursts_grow(monkeypatch):
    arguments = {"rate_mbit": 50, "rtt_ms": 50, "buffer_bdp": 4, "duration_s": 20}
    many = simulate({"cubic": 2, "bbr1": 2}, **arguments)
    monkeypatch.setattr(burst, "FIRST_PLACES", 2)
    few = simulate({"cubic": 2, "bbr1": 2}, **arguments)
    pd.testing.assert_frame_equal(many.flows, few.flows, check_exact=True)


def test_rtts_and_starts_of_each_flow():
    run = simulate(["cubic", "cubic"], 10, [20, 80], buffer_bdp=1, duration_s=200)
    assert run.rtt_ms(0, [1]) >= 80 > run.rtt_ms(0, [0])
    same = simulate(["bbr3", "reno"], 10, [40, 40], buffer_bdp=1, duration_s=50)
    pd.testing.assert_frame_equal(
        same.flows, simulate({"bbr3": 1, "reno": 1}, 10, 40, buffer_bdp=1, duration_s=50).flows
    )
    late = simulate({"bbr1": 2}, 10, 40, buffer_bdp=1, duration_s=30, window_s=(0, 20), start_s=[0, 20])
    assert late.flows["sent_packets"].iloc[1] == 0 < late.flows["sent_packets"].iloc[0]


def test_losing_a_mechanism_changes_the_share():
    """What the model owes to: inflight_hi's growth, and that of ProbeRTT's window to .5 BDP."""
    base = burst.shares("bbr3", 2, "cubic", 10, 40, 4, seeds=3, reading="draft")
    for change in ({"growth": 0.0}, {"probe_rtt_gain": 0.0}):
        versions = {"bbr3": replace(VERSIONS["bbr3"], **change)}
        other = burst.shares("bbr3", 2, "cubic", 10, 40, 4, seeds=3, versions=versions, reading="draft")
        assert other.max() < base.min() and other.mean() < base.mean() - 0.05, change


@pytest.mark.parametrize("reading", [r for r in READINGS if r != "draft"])
def test_readings_are_of_bbr2_and_bbr3(reading):
    def go(cca, reading):
        return simulate({cca: 1, "cubic": 1}, 10, 40, buffer_bdp=8, duration_s=200, reading=reading).flows["share"]

    assert (go("bbr3", reading) != go("bbr3", "draft")).all()
    assert (go("bbr1", reading) == go("bbr1", "draft")).all()


def test_the_default_is_the_letter_as_the_labs_versions_are():
    assert READINGS["draft"] == Reading()
    runs = (
        simulate({"bbr3": 1, "cubic": 1}, 10, 40, buffer_bdp=8, duration_s=200, **given)
        for given in ({}, {"reading": "draft"})
    )
    mine, named = (run.flows["share"].tolist() for run in runs)
    assert mine == named


def test_the_drafts_to_the_letter_fail_in_a_very_deep_buffer():
    """32 BDP, eight BBRv3 flows: far above the published .209, as in the lab (.517); with the narrow reading near it."""
    assert share("bbr3", 8, "cubic", 10, 40, 32 * KILOBYTE, seeds=2, reading="draft") > 0.4
    assert share("bbr3", 8, "cubic", 10, 40, 32 * KILOBYTE, seeds=2, reading="narrow") < 0.3


SOUND = {"flows": {"bbr3": 1, "cubic": 1}, "rate_mbit": 10, "rtt_ms": 40, "buffer_bdp": 1, "duration_s": 1}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"flows": {"vegas": 1}}, "flows: the burst model knows reno, cubic, bbr1, bbr2, bbr3, found 'vegas'"),
        ({"flows": {"bbr3": 1.5}}, "flows: bbr3 must be a whole number of flows from 0 to 1000, found 1.5"),
        ({"flows": {"bbr3": -1}}, "from 0 to 1000, found -1"),
        ({"flows": {}}, "flows: must be from 1 to 1000 flows in all, found 0"),
        ({"flows": {"bbr3": 600, "cubic": 600}}, "from 1 to 1000 flows in all, found 1200"),
        ({"flows": "bbr3"}, "flows: must be algorithms with their numbers"),
        ({"flows": [3]}, "flows: each must be a name, or a name and a number, found 3"),
        ({"flows": 5}, "flows: must be algorithms with their numbers"),
        ({"rate_mbit": "10"}, "rate_mbit: must be a number, found '10'"),
        ({"rtt_ms": "x"}, "rtt_ms: must be a number, or one per flow, found 'x'"),
        ({"buffer_bdp": "1"}, "buffer_bdp: must be a number, found '1'"),
        ({"buffer_bdp": 0.01}, "buffer_bdp: must hold at least one packet of 1514 bytes, found 0.33"),
        ({"rate_mbit": 0}, "rate_mbit: must be positive and finite, found 0"),
        ({"rate_mbit": float("nan")}, "rate_mbit: must be positive and finite, found nan"),
        ({"rtt_ms": -1}, "rtt_ms: must be positive and finite, found -1"),
        ({"rtt_ms": [40, 40, 40]}, r"rtt_ms: must be one number, or one per flow \(2\), found 3"),
        ({"buffer_bdp": 0}, "buffer_bdp: must be positive and finite, found 0"),
        ({"buffer_bdp": None}, "give exactly one of buffer_bdp, buffer_packets, buffer_bytes .found: none"),
        ({"buffer_packets": 5}, "found: buffer_bdp, buffer_packets"),
        ({"buffer_bdp": 1e9}, r"buffer_bdp: must be at most 5e\+06 packets"),
        ({"rate_mbit": 1e5, "rtt_ms": 1e4}, "buffer_bdp: must be at most|path and buffer must hold at most"),
        ({"duration_s": float("inf")}, "duration_s: must be positive and finite, found inf"),
        ({"duration_s": 1e9}, "duration_s: 2 flows at 10 Mbit/s can be simulated for at most"),
        ({"window_s": (0, 2)}, "window_s: must lie within the duration of 1 s, found 0 to 2"),
        ({"start_s": 1}, "start_s: must be before the end at 1 s, found 1"),
        ({"seed": -1}, "seed: must be a whole number, 0 or more, found -1"),
        ({"seed": 1.5}, "seed: must be a whole number"),
        ({"reading": "fitted"}, "reading: must be one of draft, observed, narrow, cut, found 'fitted'"),
        ({"reading": Reading("never")}, "reading: lower_bounds must be one of outside-probes, lossy-refill, probes-too, found"),
        ({"sample_ms": 0}, "sample_ms: must be positive and finite, found 0"),
        ({"sample_ms": 1e-6}, "sample_ms: must be at least"),
        ({"versions": {"cubic": VERSIONS["bbr3"]}}, "versions: must be of bbr1, bbr2, bbr3, found 'cubic'"),
    ],
)  # fmt: skip
def test_bad_arguments(change, told):
    with pytest.raises(UserError, match=told):
        simulate(**{**SOUND, **change})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"cca": "cubic"}, "cca: must be one of bbr1, bbr2, bbr3, found 'cubic'"),
        ({"rival": "bbr1"}, "rival: must be one of cubic, reno, found 'bbr1'"),
        ({"seeds": 0}, "seeds: must be a whole number from 1 to 1000, found 0"),
        ({"flows": 0}, "flows: must be a whole number from 1 to 999, found 0"),
        ({"flows": 2.0}, "flows: must be a whole number"),
    ],
)
def test_bad_arguments_of_share(change, told):
    sound = {"cca": "bbr3", "flows": 1, "rival": "cubic", "rate_mbit": 10, "rtt_ms": 40, "buffer_bdp": 1}
    with pytest.raises(UserError, match=told):
        share(**{**sound, **change})


def test_bad_percentile():
    with pytest.raises(UserError, match="percentile: must be from 0 to 100, found 101"):
        simulate(**SOUND).rtt_ms(101)


def scenario(**changes):
    content = {"flows": [{"cca": "bbr3", "count": 2}, {"cca": "reno"}], "duration_s": 20, "window_s": [5, 20]}
    return validate(scenario_dict(**{"hosts": {}, **content, **changes}), "test")


def test_a_scenario_is_what_simulate_takes():
    s = scenario(hosts__segmentation="nic", network__rate_mbit=10, network__rtt_ms=40, network__buffer={"packets": 50})
    found = burst_scenario.predict(s, seeds=2)
    run = simulate({"bbr3": 2, "reno": 1}, 10, 40, buffer_packets=50, duration_s=20, window_s=(5, 20), seed=2)
    assert found.shares[1] == pytest.approx([run.shares["bbr3"], run.shares["reno"]], abs=0)
    assert found.means == pytest.approx(found.shares.mean(axis=0)) and (found.spreads > 0).all()
    single = burst_scenario.predict(scenario(hosts__segmentation="off"), seeds=1)
    pairs = burst_scenario.predict(scenario(hosts__segmentation="nic"), seeds=1)
    # A departure is an event, and so is an ACK, of which there are as many: one for two packets.
    assert single.runs[0].events > 1.3 * pairs.runs[0].events, "every packet is a burst"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"network__qdisc": {"kind": "fq_codel"}}, "network.qdisc.kind fq_codel"),
        ({"network__loss": 0.01}, "network.loss 0.01"),
        ({"network__jitter": {"kind": "per-packet", "ms": 1}}, "network.jitter"),
        ({"network__changes": [{"at_s": 1, "rate_mbit": 5}]}, "network.changes"),
        ({"hosts__ecn": "on"}, "hosts.ecn on"),
        ({"hosts__pacing": "fq"}, "hosts.pacing fq"),
        ({"hosts__segmentation": "router"}, "hosts.segmentation router"),
        ({"hosts__receive_offload": "gro"}, "hosts.receive_offload gro"),
        ({"hosts__rmem_max_bytes": 8192}, "hosts.rmem_max_bytes"),
        ({"hosts__wmem_initial_bytes": 8192}, "hosts.wmem_initial_bytes"),
        ({"flows": [{"cca": "cubic", "stop_s": 3}]}, "flows.0.stop_s"),
        ({"flows": [{"cca": "reno"}, {"cca": "cubic", "bytes": 3000}]}, "flows.1.bytes"),
        ({"flows": [{"cca": "cubic", "traffic": {}}]}, "flows.0.traffic"),
        ({"flows": [{"cca": "bbr3", "params": {"headroom": 0}}]}, r"flows.0.params \(headroom\)"),
        ({"flows": [{"cca": "bbr3", "direction": "reverse"}]}, "flows.0.direction reverse"),
        ({"flows": [{"cca": "dctcp"}]}, "flows.0.cca dctcp"),
    ],
)
def test_what_of_a_scenario_it_does_not_know(change, told):
    unknown = scenario(**change)
    with pytest.raises(UserError, match=f"the burst model does not describe {told}"):
        burst_scenario.predict(unknown)
    assert not burst_scenario.WORLD.describes(unknown)


def test_command(tmp_path):
    file = str(paths.SCENARIOS / "sarpkaya2025" / "fig5a.yaml")
    few = ["--set", "sweep={}", "--duration-s", "20"]
    done = CliRunner().invoke(app, ["model", "burst", file, *few, "--seeds", "2"])
    assert done.exit_code == 0, done.output
    assert "bbr3 share" in done.output and "±" in done.output
    refused = CliRunner().invoke(app, ["model", "burst", file, *few, "--set", "network.loss=0.01"])
    assert isinstance(refused.exception, UserError) and "network.loss" in str(refused.exception)


def test_column_of_claims(tmp_path):
    """The column is read from the workflow's file, which the rule's command writes; the fluid model has none of BBRv3."""
    (figure,) = figures_at("full", ["sarpkaya2025/fig5a"])
    term = Term(figure=figure.id, where={"network.buffer.bdp": 1, "flows.0.count": 1})
    assert has_prediction(BURST, term, figure) and not has_prediction(FLUID, term, figure)
    (point,) = [p for p in figure.points if p.values == {"network.buffer.bdp": 1, "flows.0.count": 1}]
    with pytest.raises(UserError, match="the burst model's prediction is missing; run: snakemake"):
        beside(BURST, term, [point], tmp_path)
    file = write_points(figure, tmp_path)[point.label]
    out = tmp_path / "models" / figure.id / point.label / "burst.parquet"
    out.parent.mkdir(parents=True)
    done = CliRunner().invoke(app, ["predict", str(file), f"burst={out}"])
    assert done.exit_code == 0, done.output
    for wrong, words in ((f"bursts={out}", "there is no such kind"), ("burst", "must be KIND=FILE")):
        refused = CliRunner().invoke(app, ["predict", str(file), wrong])
        assert isinstance(refused.exception, UserError) and words in str(refused.exception)
    (found,) = beside(BURST, term, [point], tmp_path)
    runs = [simulate({"bbr3": 1, "cubic": 1}, 10, 40, buffer_bdp=1, seed=s) for s in range(1, BURST_SEEDS + 1)]
    assert found == pytest.approx(sum(run.shares["bbr3"] for run in runs) / BURST_SEEDS)


def test_curve_beside_a_panel(tmp_path):
    """The page's curve is the workflow's prediction, point by point; without one there is none."""
    (figure,) = figures_at("quick", ["sarpkaya2025/fig5a"])
    keys = [{PANEL_KEYS[k]: v for k, v in p.values.items()} for p in figure.points]
    table = pd.DataFrame(keys).assign(measured=0.5, published=0.5, residual=0.0, ware=0.5, fluid_9s=0.5, fluid_own=0.5)
    first = figure.points[0]
    out = tmp_path / "models" / figure.id / first.label / "burst.parquet"
    out.parent.mkdir(parents=True)
    pd.DataFrame({"share_of_capacity": [0.4], "share_sd": [0.02]}).to_parquet(out)
    panel = with_burst(Panel(figure.id, "Fig. 5a", table, "bbr3", False), figure, tmp_path)
    assert panel.points["burst"].tolist()[0] == 0.4 and panel.points["burst"].isna().sum() == len(keys) - 1
    lines = {line.get_label() for axes in three_models(panel).axes for line in axes.lines}
    assert "burst" in lines


@pytest.mark.slow
def test_kept_tables_are_made_again():
    """Some cells of data/burst/panels.csv and a row of parts.csv, as `bbrlab model table` computes them."""
    kept = burst_tables.read("panels")
    assert len(kept) == 9 * 42 and set(kept["figure"]) == set(burst_panels.PANELS)
    for figure, reading, at in (
        ("fig2a", "draft", 5),
        ("fig5a", "cut", 30),
        ("fig3c", "narrow", 11),
        ("fig5b", "draft", 2),
    ):
        cell = kept[kept["figure"] == figure].iloc[[at]]
        found = burst_panels.modelled(figure, cell, reading)
        assert found == pytest.approx(cell[reading].to_numpy(), abs=6e-5)
    parts = burst_tables.read("parts").set_index("part")
    assert list(parts.index) == list(burst_panels.PARTS)
    (name,) = parts.index[-1:]
    (row,) = burst_panels.parts([name]).to_dict("records")
    assert row["change"] == pytest.approx(parts.loc[name, "change"], abs=6e-5)
    assert (parts["rmse"] > 1.5 * parts["rmse_with"]).all(), "each part is needed"


def test_errors_of_the_models():
    """docs/explanation/models.md has the table; each model over all cells of a panel."""
    errors = burst_panels.errors(burst_tables.read("panels")).set_index(["figure", "up_to_bdp"])
    assert errors.loc[("fig2a", 64), "draft"] < errors.loc[("fig2a", 64), "ware"] / 4
    assert errors.loc[("fig3a", 16), "fluid_9s"] > 3 * errors.loc[("fig3a", 16), "draft"]
    assert np.isnan(errors.loc[("fig5a", 16), "fluid_9s"]), "there is no fluid model of BBRv3"


@pytest.mark.slow
def test_table_command(tmp_path, monkeypatch):
    few = burst_tables.Table(["DOWN's gain of .9 (.75 in its place)"], burst_panels.parts, 0.1)
    monkeypatch.setitem(burst_tables.TABLES, "parts", few)
    out = tmp_path / "parts.csv"
    done = CliRunner().invoke(app, ["model", "table", "parts", "--out", str(out)])
    assert done.exit_code == 0, done.output
    kept = pd.read_csv(out)
    assert list(kept["part"]) == list(few.items) and kept["source"].str.contains("bbrlab model table parts").all()
    refused = CliRunner().invoke(app, ["model", "table", "nothing"])
    assert isinstance(refused.exception, UserError) and "there are panels, parts" in str(refused.exception)
    monkeypatch.setattr(burst_tables, "FOLDER", tmp_path / "none")
    with pytest.raises(UserError, match="is not there; run: bbrlab model table parts"):
        burst_tables.read("parts")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("cca: bbr3", "cca: bbr4", "panels.fig5a.cca: "),
        ("rate_mbit: 50", "rate_mbit: 0", "panels.fig2b.rate_mbit: "),
        ("panel: fig5a", "panel: fig9", "parts.panel: there is no panel 'fig9' \\(there are fig2a, "),
        ("paper: ", "papers: ", "papers: unknown key; did you mean 'paper'?"),
    ],
)
def test_what_is_wrong_with_a_file_of_panels_is_named(tmp_path, old, new, said):
    text = burst_panels.FILE.read_text()
    assert old in text
    (tmp_path / "panels.yaml").write_text(text.replace(old, new))
    with pytest.raises(UserError, match=f"panels.yaml: {said}"):
        burst_panels.read_published(tmp_path / "panels.yaml")
