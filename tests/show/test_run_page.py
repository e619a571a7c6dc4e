"""A run's page and its picture: what is drawn of rates, bounds and losses, and how exact BBR's states are."""

from __future__ import annotations

import json
import os
import re
from html import unescape

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bbrlab.base.errors import UserError
from bbrlab.measure.bbr_record import STATES
from bbrlab.measure.sample_schema import ACKS
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from bbrlab.scenario.point import Point
from bbrlab_apps.site.run_page import write_run_page
from bbrlab_apps.study.plot import Wish, plot
from bbrlab_apps.study.sources import source_of
from tests.conftest import scenario_dict
from tests.made_up_runs import made_up_run
from tests.show.test_site import a_flow

UP, DOWN = STATES.index("UP"), STATES.index("DOWN")


@pytest.fixture
def run(tmp_path):
    """BBRv3 and CUBIC for 10 s at 10 Mbit/s, which become 20 at 5 s; BBRv3's bound is infinite at first."""
    changes = {"flows": [{"cca": "bbr3"}, {"cca": "cubic"}], "network__changes": [{"at_s": 5, "rate_mbit": 20}]}
    folder = made_up_run(base_point(validate(scenario_dict(**changes), "test")), 1, tmp_path / "run")
    samples = pd.read_parquet(folder / "samples.parquet")
    bbr = samples["flow"] == 0
    samples["bbr_inflight_hi"] = np.where(bbr, np.where(samples["time_s"] < 2, np.inf, 30.0), np.nan)
    samples["bbr_inflight_lo"] = np.where(bbr, np.inf, np.nan)
    samples["queue_drops"] = 100 + samples["time_s"] // 1
    samples.to_parquet(folder / "samples.parquet")
    summary = json.loads((folder / "summary.json").read_text())
    summary["flows"] = [
        a_flow() | {"cca": cca, "flow": group, "group": group} for group, cca in enumerate(("bbr3", "cubic"))
    ]
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def record(folder):
    """Records of ACKs in which BBRv3 is in UP for 20 ms each second, and in DOWN else."""
    times = np.arange(0, 10, 0.01)
    rows = pd.DataFrame(dict.fromkeys(ACKS, 0.0) | {"time_s": times})
    rows["bbr_state"] = np.where((times % 1 >= 0.495) & (times % 1 < 0.515), UP, DOWN)
    rows["rtt_us"], rows["in_flight"] = np.where(times < 5, -1, 50_000), 7
    other = rows.assign(flow=1, bbr_state=np.nan, bbr_bw=np.nan)
    table = pd.concat([rows.assign(flow=0), other], ignore_index=True)
    table.astype({"flow": "int32"}).to_parquet(folder / "acks.parquet")


def page_of(folder, tmp_path):
    """The text of a run's page, and its panels by label."""
    write_run_page(folder, tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="series-data">(.*?)</script>', text)[1])
    return unescape(text), {panel["label"]: panel for panel in data["panels"]}


def test_rates_bounds_and_losses_are_drawn(run, tmp_path):
    _, panels = page_of(run, tmp_path)
    assert [line["name"] for line in panels["pacing rate (Mbit/s)"]["lines"]] == ["BBRv3, flow 1", "CUBIC, flow 2"]
    assert panels["pacing rate (Mbit/s)"]["lines"][0]["y"][0] == 8
    bandwidth, fair = panels["BBR's bandwidth (Mbit/s)"]["lines"]
    assert bandwidth["name"] == "BBRv3, flow 1"
    assert {x: y for x, y in zip(fair["x"], fair["y"], strict=True) if x in (1.0, 4.9, 5.0)} == {
        1.0: 4.782,
        4.9: 4.782,
        5.0: 9.5641,
    }, "1448 of 1514 bytes of the rate"
    flying = {line["name"]: line for line in panels["in flight (packets)"]["lines"]}
    assert set(flying) == {"BBRv3, flow 1", "CUBIC, flow 2", "BBRv3, flow 1: inflight_hi"}, (
        "a bound that never is, is no line"
    )
    high = flying["BBRv3, flow 1: inflight_hi"]
    assert (high["y"][0], high["y"][-1], high["dash"]) == (None, 30, "dash")
    lost = {line["name"]: line["y"][-1] for line in panels["retransmissions (packets)"]["lines"]}
    assert lost == {"BBRv3, flow 1": 4, "CUBIC, flow 2": 4, "dropped by the queue": 9}


def test_an_equal_share_is_of_the_flows_of_the_bottlenecks_direction(run, tmp_path):
    summary = json.loads((run / "summary.json").read_text())
    summary["groups"][1]["direction"] = "reverse"
    (run / "summary.json").write_text(json.dumps(summary))
    fair = page_of(run, tmp_path)[1]["BBR's bandwidth (Mbit/s)"]["lines"][1]
    assert fair["y"][0] == 9.5641


def test_flows_of_one_look_are_told_apart(run, tmp_path):
    """In the table, too; algorithms of one's own all have one colour, so that dashes tell theirs apart."""
    manifest, summary = (json.loads((run / name).read_text()) for name in ("manifest.json", "summary.json"))

    def shown(*ccas):
        for which, cca in enumerate(ccas):
            manifest["scenario"]["flows"][which]["cca"] = summary["groups"][which]["cca"] = cca
        (run / "manifest.json").write_text(json.dumps(manifest))
        (run / "summary.json").write_text(json.dumps(summary))
        text, panels = page_of(run, tmp_path)
        return text, [(line["colour"], line["dash"]) for line in panels["goodput (Mbit/s)"]["lines"][:2]]

    text, looks = shown("bbr3", "bbr3")
    assert "1 BBRv3, flow 1<" in text and "1 BBRv3, flow 2<" in text and len(set(looks)) == 2
    assert len(set(shown("mine", "other")[1])) == 2


def test_samples_of_more_flows_than_the_run_had_are_not_read(run, tmp_path):
    """By the page and the picture, before they are in memory."""
    samples = pd.read_parquet(run / "samples.parquet")
    pd.concat([samples] * 2).to_parquet(run / "samples.parquet")
    for show in (lambda: page_of(run, tmp_path), lambda: plot(source_of([str(run)], None), Wish())):
        with pytest.raises(UserError, match=r"samples\.parquet: is damaged \(400 rows; such a run has at most 220\)"):
            show()


@pytest.mark.parametrize(
    ("column", "value"), [("bytes_acked", "x"), ("bbr_state", 7.0), ("group", 7), ("flow", 99), ("cwnd", np.inf), ("cwnd", np.nan), ("cwnd", [1])]
)  # fmt: skip
def test_page_and_picture_refuse_the_same_values(run, tmp_path, column, value):
    samples = pd.read_parquet(run / "samples.parquet")
    samples.assign(**{column: [value] * len(samples)}).to_parquet(run / "samples.parquet")
    for show in (lambda: page_of(run, tmp_path), lambda: plot(source_of([str(run)], None), Wish())):
        with pytest.raises(UserError, match=f"column {column} h(as|olds)"):
            show()


def test_a_page_says_how_coarse_sampled_states_are(run, tmp_path):
    text, panels = page_of(run, tmp_path)
    assert "Curves and BBR's states are of the samples, one each 0.1 s: what is shorter may be missing" in text
    assert len(set(panels["BBRv3, flow 1: state, sampled every 0.1 s"]["lines"][0]["y"])) > 2


def test_a_page_draws_each_recorded_stay(run, tmp_path):
    """Of 20 ms each second, between two samples."""
    record(run)
    text, panels = page_of(run, tmp_path)
    assert (
        "Curves are of the samples, one each 0.1 s: what is shorter may be missing; BBR's states are recorded" in text
    )
    line = panels["BBRv3, flow 1: state, each change recorded"]["lines"][0]
    stays = list(zip(line["x"][::2], line["x"][1::2], line["y"][::2], strict=True))
    short = [end - start for start, end, state in stays if state == "UP"]
    assert len(short) == 10
    assert all(length == pytest.approx(0.02, abs=0.011) for length in short)


def test_a_page_without_bbr_says_nothing_of_states(tmp_path):
    folder = made_up_run(base_point(validate(scenario_dict(), "test")), 1, tmp_path / "run")
    text, panels = page_of(folder, tmp_path)
    assert "Curves are of the samples, one each 0.1 s: what is shorter may be missing." in text
    assert "BBR's states" not in text.split("<figure")[0]
    assert "BBR's bandwidth (Mbit/s)" not in panels


def titles(figure):
    found = [legend.get_title().get_text() for axes in figure.axes if (legend := axes.get_legend()) is not None]
    plt.close(figure)
    return found


def test_a_picture_says_the_same_of_states(run):
    figure, _ = plot(source_of([str(run)], None), Wish())
    assert titles(figure) == ["state, sampled every 0.1 s: shorter stays are not seen"]
    record(run)
    figure, _ = plot(source_of([str(run)], None), Wish())
    bars = [bar for axes in figure.axes for bar in axes.collections if len(getattr(bar, "get_paths", list)()) == 10]
    assert bars, "ten stays in UP"
    assert titles(figure) == ["state, each change recorded"]


def test_acks_are_drawn_of_a_run_that_has_them(run):
    with pytest.raises(UserError, match=r"acks\.parquet: is not there; run it with --trace-acks, or leave --acks out"):
        plot(source_of([str(run)], None), Wish(acks=True))
    record(run)
    figure, name = plot(source_of([str(run)], None), Wish(acks=True))
    assert name.endswith("-acks")
    labels = [axes.get_ylabel().replace("\n", " ") for axes in figure.axes]
    assert labels[:3] == ["RTT of each ACK (ms)", "cwnd (packets)", "in flight (packets)"]
    rtts = figure.axes[0].lines[0].get_ydata()
    assert np.isnan(rtts[0])
    assert rtts[-1] == 50
    assert figure.axes[2].lines[0].get_ydata()[0] == 7
    plt.close(figure)
    figure, _ = plot(source_of([str(run)], None), Wish(acks=True, y=["rate_delivered"]))
    assert len(figure.axes) == 1
    plt.close(figure)
    for acks, series in ((True, "queue"), (False, "ack_rtt")):  # the queue is not of an ACK
        with pytest.raises(UserError, match=f"--y {series}: "):
            plot(source_of([str(run)], None), Wish(acks=acks, y=[series]))


@pytest.mark.parametrize(
    ("trace", "told"), [("/home/ada/bbrlab/data/traces/leo.txt", True), ("/home/ada/t.txt", False), ("pipe", False)]
)
def test_a_trace_on_somebody_elses_machine_is_not_opened(run, tmp_path, trace, told):
    """One that comes with the package is here; of another nobody can say how long what waits takes to leave."""
    if trace == "pipe":
        os.mkfifo(trace := str(tmp_path / "pipe"))
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["scenario"]["network"] |= {"trace": trace, "changes": []}
    (run / "manifest.json").write_text(json.dumps(manifest))
    text, panels = page_of(run, tmp_path)
    assert ("queue (ms)" in panels) == told
    assert ("How long the queue's packets wait is not told" in text) != told
    figure, _ = plot(source_of([str(run)], None), Wish())
    assert ("queue\n(ms)" in [axes.get_ylabel() for axes in figure.axes]) == told
    plt.close(figure)


def test_the_queue_over_ones_own_trace_is_drawn_while_the_file_is_as_it_was_run(tmp_path):
    """And so is every other file of the run."""
    (trace := tmp_path / "t.txt").write_text("0 6\n4 12\n20 6\n")
    (chunks := tmp_path / "chunks.csv").write_text("flow,chunk,start_s,pause_s,bytes\n0,0,0.5,0,20000\n")
    flows = [{"cca": "bbr3"}, {"cca": "cubic", "traffic": {"trace": "chunks.csv"}}]
    scenario = validate(scenario_dict(flows=flows), "test", folder=tmp_path)
    network = scenario.network.model_copy(update={"trace": str(trace)})  # beside short flows of a manifest alone
    folder = made_up_run(Point(scenario.model_copy(update={"network": network}), {}), 1, tmp_path / "run")
    figure, _ = plot(source_of([str(folder)], None), Wish(y=["queue"]))
    assert figure.axes[0].lines[0].get_ydata().max() > 0
    plt.close(figure)
    text, panels = page_of(folder, tmp_path)
    assert "queue (ms)" in panels and "is not told" not in text
    for file in (chunks, trace):
        was = file.read_text()
        file.write_text(f"{was}\n")
        for kind in ("line", "cdf"):
            with pytest.raises(
                UserError, match=rf"no run has .*queue.*: .*without {trace} and {chunks} as they were run"
            ):
                plot(source_of([str(folder)], None), Wish(y=["queue"], kind=kind))
        text, panels = page_of(folder, tmp_path)
        assert "queue (ms)" not in panels and "is not told" in text
        file.write_text(was)
    assert "queue (ms)" in page_of(folder, tmp_path)[1]


@pytest.mark.parametrize("path", ["network.trace", "network.changes"])
def test_what_somebody_elses_run_would_set_opens_no_file(run, tmp_path, path):
    """The command that repeats a run is made of its values, and of a scenario's file that is here."""
    os.mkfifo(tmp_path / "pipe")
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["scenario"] |= {"paper": "sarpkaya2025", "name": "fig2a"}
    (run / "manifest.json").write_text(json.dumps(manifest | {"values": {path: str(tmp_path / "pipe")}}))
    text = page_of(run, tmp_path)[0]
    assert "bbrlab run this_run.yaml --seed 1 " in text and str(tmp_path / "pipe") not in text
