"""The burst model against published shares, closed forms and what it must do by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.campaign.figures import figures_at, write_points
from bbrlab.claims.columns import beside, has_prediction
from bbrlab.claims.schema import BURST, FLUID, Term
from bbrlab.cli.main import app
from bbrlab.models import burst, burst_scenario
from bbrlab.models.burst import READINGS, VERSIONS, Reading, share, simulate
from bbrlab.models.predictions import BURST_SEEDS
from bbrlab.report import readings
from bbrlab.report.panel import KEYS, Panel, with_burst
from bbrlab.report.plots.panels import three_models
from bbrlab.scenario.frames import PAYLOAD_PER_FRAME
from bbrlab.scenario.messages import validate
from tests.conftest import scenario_dict

# The testbed's kilobyte has 1024 bytes where its buffers are written in kilobytes, at 10 Mbit/s.
KILOBYTE = 1.024
# (figure, cca, rival, rate, RTT, buffers): RMSE up to 16 BDP of the drafts to the letter; the first five are asked for by the model's specification,
# the last two are what two laboratories differ by with the set-up of Fig. 2a (.055).
PANELS = {
    "fig2a": ("bbr1", "cubic", 10, 40, KILOBYTE, 0.025),
    "fig2c": ("bbr1", "reno", 10, 40, KILOBYTE, 0.025),
    "fig5a": ("bbr3", "cubic", 10, 40, KILOBYTE, 0.045),
    "fig5c": ("bbr3", "reno", 10, 40, KILOBYTE, 0.025),
    "fig3a": ("bbr2", "cubic", 10, 40, KILOBYTE, 0.05),
    "fig3c": ("bbr2", "reno", 10, 40, KILOBYTE, 0.103),
    "fig2b": ("bbr1", "cubic", 50, 30, 1.0, 0.055),
}


@pytest.mark.parametrize("figure", PANELS)
def test_published_shares(figure):
    cca, rival, rate, rtt, scale, limit = PANELS[figure]
    table = pd.read_csv(paths.DATA / f"sarpkaya2025/{figure}.csv").query("buffer_bdp <= 16")
    found = [
        share(cca, n, rival, rate, rtt, x * scale, seeds=1, reading="draft")
        for x, n in zip(table["buffer_bdp"], table["bbr_flows"], strict=True)
    ]
    assert np.sqrt(((found - table["share_of_capacity"]) ** 2).mean()) <= limit


@pytest.mark.parametrize("mix", [{"bbr1": 2, "bbr2": 1, "bbr3": 2, "cubic": 2, "reno": 2}, {"bbr3": 1}, {"reno": 3}])
@pytest.mark.parametrize("buffer_bdp", [0.2, 1, 8])
def test_packets_are_conserved(mix, buffer_bdp):
    run = simulate(mix, 20, 30, buffer_bdp=buffer_bdp, duration_s=60, window_s=(0, 60))
    arrived = run.flows["goodput_mbit"].sum() * 60e6 / 8 / 1448
    sent, lost = run.flows["sent_packets"].sum(), run.flows["lost_packets"].sum()
    outstanding = 2 * 20e6 / 8 / 1514 * 0.03 + run.buffer_packets  # path and queue, with room
    assert 0 <= sent - lost - arrived <= outstanding
    assert run.flows["share"].sum() <= PAYLOAD_PER_FRAME
    assert 0 <= run.queue_packets <= run.buffer_packets + 2
    assert run.rtt_ms(0) >= 30
    assert run.rtt_ms(100) <= 30 + (run.buffer_packets + 50) * 1514 * 8 / 20e3
    assert run.rtt_histogram.sum() == pytest.approx(arrived)


@pytest.mark.parametrize("cca", burst.CCAS)
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


def test_probe_rtt_caps_the_share():
    """docs/models.md: (g - 1) / (g - x) of the link, g = 2 the window's gain and x that of ProbeRTT, against one Reno flow in
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
        assert other.max() < base.min() - 0.05, change


@pytest.mark.parametrize("reading", [r for r in READINGS if r != "draft"])
def test_readings_are_of_bbr2_and_bbr3(reading):
    def go(cca, reading):
        return simulate({cca: 1, "cubic": 1}, 10, 40, buffer_bdp=8, duration_s=200, reading=reading).flows["share"]

    assert (go("bbr3", reading) != go("bbr3", "draft")).all()
    assert (go("bbr1", reading) == go("bbr1", "draft")).all()


def test_the_default_is_each_version_as_in_the_kernel():
    """The names that bbrlab/report/readings.py chooses by the rule are those that the model has for its versions."""
    assert burst.KERNEL_READINGS["bbr2"] == "draft" and readings.chosen("bbr2") == "drafts"
    assert burst.KERNEL_READINGS["bbr3"] == readings.chosen("bbr3") == "cut"
    for name, (lower_bounds, filter_after_probe_rtt) in (
        ("cut", readings.READINGS["cut"]),
        ("draft", readings.READINGS["drafts"]),
    ):
        assert READINGS[name] == Reading(lower_bounds, filter_after_probe_rtt)
    for cca, reading in burst.KERNEL_READINGS.items():
        mine, named = (
            simulate({cca: 1, "cubic": 1}, 10, 40, buffer_bdp=8, duration_s=200, reading=r) for r in (None, reading)
        )
        assert (mine.flows["share"] == named.flows["share"]).all()


def test_the_drafts_to_the_letter_fail_in_a_very_deep_buffer():
    """32 BDP, four BBRv3 flows: far above the published .180, as in the lab; with the narrow reading near it."""
    assert share("bbr3", 4, "cubic", 10, 40, 32 * KILOBYTE, seeds=2, reading="draft") > 0.35
    assert share("bbr3", 4, "cubic", 10, 40, 32 * KILOBYTE, seeds=2, reading="narrow") < 0.2


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
        ({"reading": "fitted"}, "reading: must be one of kernel, draft, observed, narrow, cut, found 'fitted'"),
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
    assert single.runs[0].events > 1.5 * pairs.runs[0].events, "every packet is a burst"


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
    with pytest.raises(UserError, match=f"the burst model does not know {told}"):
        burst_scenario.predict(unknown)
    assert not burst_scenario.speaks_of(unknown)


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
    done = CliRunner().invoke(app, ["predict", str(file), "--kind", "burst", "--out", str(out)])
    assert done.exit_code == 0, done.output
    (found,) = beside(BURST, term, [point], tmp_path)
    runs = [simulate({"bbr3": 1, "cubic": 1}, 10, 40, buffer_bdp=1, seed=s) for s in range(1, BURST_SEEDS + 1)]
    assert found == pytest.approx(sum(run.shares["bbr3"] for run in runs) / BURST_SEEDS)


def test_curve_beside_a_panel(tmp_path):
    """The page's curve is the workflow's prediction, point by point; without one there is none."""
    (figure,) = figures_at("quick", ["sarpkaya2025/fig5a"])
    keys = [{KEYS[k]: v for k, v in p.values.items()} for p in figure.points]
    table = pd.DataFrame(keys).assign(measured=0.5, published=0.5, residual=0.0, ware=0.5, fluid_9s=0.5, fluid_own=0.5)
    first = figure.points[0]
    out = tmp_path / "models" / figure.id / first.label / "burst.parquet"
    out.parent.mkdir(parents=True)
    pd.DataFrame({"share_of_capacity": [0.4], "share_sd": [0.02]}).to_parquet(out)
    panel = with_burst(Panel(figure.id, "Fig. 5a", table, False), figure, tmp_path)
    assert panel.points["burst"].tolist()[0] == 0.4 and panel.points["burst"].isna().sum() == len(keys) - 1
    lines = {line.get_label() for axes in three_models(panel).axes for line in axes.lines}
    assert "burst" in lines
