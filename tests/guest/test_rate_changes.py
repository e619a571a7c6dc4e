"""A run whose rate changes: what leaves is what the rate allows, to a packet, and the queue's delay, and that of a full
buffer, are by the rate that the bottleneck has at that time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bbrlab.results.figures import figures_at
from bbrlab.scenario.frames import FRAME_BYTES
from bbrlab.scenario.rates import buffer_full_ms, highest_mbit, queueing_delay_ms, rates_at
from bbrlab.scenario.schema import ROUTER_RATE_MBIT_MIN, Network
from bbrlab_apps.site.run_page import write_run_page
from studies.by_hand import Tried, over_time
from tests.made_up_runs import made_up_run

# 1,000 bytes take 0.8 ms at 10 Mbit/s, 1.6 at 5 and 0.4 at 20.
CHANGES = [{"at_s": 150.0, "rate_mbit": 20.0}, {"at_s": 50.0, "rate_mbit": 5.0}, {"at_s": 100.0, "rtt_ms": 7.0}]
NETWORK = {"rate_mbit": 10.0, "rtt_ms": 40.0, "buffer": {"bytes": 2000}, "changes": CHANGES}


@pytest.fixture
def network() -> Network:
    return Network.model_validate(NETWORK)


@pytest.fixture
def run(tmp_path) -> Path:
    """1,000 bytes of backlog all the time, 200 s; the buffer has 2,000."""
    folder = made_up_run(figures_at("smoke", ["tang/fig2"])[0].points[0], 1, tmp_path / "run")
    first = pd.read_parquet(folder / "samples.parquet").head(1)
    times = np.arange(2000) * 0.1
    samples = pd.concat([first] * len(times)).assign(time_s=times, bytes_acked=times * 1e6, queue_bytes=1000)
    samples.to_parquet(folder / "samples.parquet")
    given = {"network": NETWORK, "duration_s": 200.0, "window_s": [0.0, 200.0]}
    for file, change in (
        ("manifest.json", lambda c: c["scenario"].update(given | {"network": c["scenario"]["network"] | NETWORK})),
        ("summary.json", lambda c: c.update(virtual_s=200.0) or c["bottleneck"].update(buffer_bytes=2000)),
    ):
        content = json.loads((folder / file).read_text())
        change(content)
        (folder / file).write_text(json.dumps(content))
    return folder


def test_delay_is_that_of_the_rate_at_the_time(network):
    times = np.array([0.0, 49.9, 50, 149, 150, 200])
    assert list(queueing_delay_ms(network, times, np.full(6, 1000))) == pytest.approx([0.8, 0.8, 1.6, 1.6, 0.4, 0.4])
    assert list(rates_at(network, times)) == [10, 10, 5, 5, 20, 20]
    assert highest_mbit(network) == 20


@pytest.mark.parametrize(
    ("low", "high", "times", "delays"),
    [(0, 200, [0, 50, 50, 150, 150, 200], [1.6, 1.6, 3.2, 3.2, 0.8, 0.8]),
     (60, 200, [60, 150, 150, 200], [3.2, 3.2, 0.8, 0.8]),
     (0, 50, [0, 50], [1.6, 1.6]), (50, 60, [50, 60], [3.2, 3.2])],
)  # fmt: skip
def test_a_full_buffer_is_a_step(network, low, high, times, delays):
    found = buffer_full_ms(network, low, high, 2000)
    assert list(found[0]) == times
    assert list(found[1]) == pytest.approx(delays)


def test_on_a_runs_own_page(run, tmp_path):
    write_run_page(run, tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    panels = json.loads(re.search(r'id="series-data">(.*?)</script>', text)[1])["panels"]
    queue, full = next(panel["lines"] for panel in panels if panel["label"] == "queue (ms)")
    delay = dict(zip(queue["x"], queue["y"], strict=True))
    assert {d for t, d in delay.items() if t < 50} == {0.8}
    assert {d for t, d in delay.items() if 50.1 < t < 149.9} == {1.6}
    assert {d for t, d in delay.items() if t > 150.1} == {0.4}
    assert full["x"] == [0, 50, 50, 150, 150, 199.9]
    assert full["y"] == [1.6, 1.6, 3.2, 3.2, 0.8, 0.8]


def test_in_a_figure_of_a_run(run):
    _, bottom = over_time(Tried({}, json.loads((run / "summary.json").read_text()), run)).axes
    queue, full = bottom.get_lines()
    assert list(queue.get_ydata()[[0, 600, 1600]]) == pytest.approx([0.8, 1.6, 0.4])
    assert list(full.get_ydata()) == pytest.approx([1.6, 1.6, 3.2, 3.2, 0.8, 0.8])
    plt.close("all")


# An outage, low and high rates in quick succession, two at one instant, one that hardly begins, one at the end.
STEPS = [(1.2, 0.001), (1.5, 10), (1.7, 0.1), (1.71, 0.3), (1.7203, 0.05), (1.73, 0.2), (1.75, 0.1), (1.75, 0.07), (2, 0.5),
         (2.1333, 20), (2.18, 1.2345678), (2.5, 0.001)]  # fmt: skip


def steps(least_mbit: float) -> list[tuple[float, float]]:
    return [(at_s, max(mbit, least_mbit)) for at_s, mbit in STEPS]


def excess_packets(samples: pd.DataFrame, begin_s: float, least_mbit: float = 0) -> np.ndarray:
    """What the link has carried by each sample from ``begin_s`` on beyond what the rate allows, in packets, from some zero."""
    rows = samples.drop_duplicates("time_s").query(f"time_s > {begin_s}")
    times = np.array([0, *(at_s for at_s, _ in STEPS), 1e9])
    rates = np.array([10, *(mbit for _, mbit in steps(least_mbit))])
    allowed = np.interp(rows["time_s"], times, np.concatenate([[0], np.cumsum(np.diff(times) * 125_000 * rates)]))
    excess: np.ndarray = (rows["queue_sent_bytes"].to_numpy() - allowed) / FRAME_BYTES
    return excess


def changing(kind: str, least_mbit: float = 0, **more: Any) -> dict[str, Any]:
    changes = [{"at_s": at_s, "rate_mbit": mbit} for at_s, mbit in steps(least_mbit)]
    return {"network__changes": changes, "network__qdisc": {"kind": kind}, "network__buffer": {"packets": 300}, "network__rtt_ms": 20,
            "flows": [{"cca": "cubic"}], "duration_s": 2.6, "window_s": [1, 2.5], "sample_hz": 400, **more}  # fmt: skip


@pytest.mark.guest
def test_a_queue_leaves_at_each_new_rate_to_a_packet(run_scenario):
    """htb kept its debt in time: the outage of 0.3 s was one of 12 s. Here the backlog never ends, so the sum of all that
    left is the rate's integral, but for the packet that is under way (and some hundredths: a sample is stamped late by
    the microseconds that it takes)."""
    result = run_scenario(**changing("fifo"))
    assert result.samples.query("time_s > 1")["queue_packets"].min() > 10
    assert np.ptp(excess_packets(result.samples, 1)) < 1.05
    assert result.failed == []


REVERSE = {"flows": [{"cca": "bbr1", "direction": "reverse"}]}
ROUTER = {"hosts__segmentation": "router"}


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "least_mbit", "more"),
    [(kind, 0, more) for kind in ("fifo", "red", "codel", "fq_codel", "pie", "cake", "fq") for more in ({}, REVERSE)]
    + [(kind, ROUTER_RATE_MBIT_MIN, ROUTER) for kind in ("fifo", "red")],
)
def test_no_queue_stands_still_or_leaves_too_fast(run_scenario, kind, least_mbit, more):
    result = run_scenario(**changing(kind, least_mbit, **more))
    assert not {"queue_sends", "queue_sends_reverse", "busy_rate", "busy_rate_reverse"} & set(result.failed)
    largest = 46 if more is ROUTER else 1  # packets in a segment
    excess = excess_packets(result.samples, 1, least_mbit)
    assert (excess - np.minimum.accumulate(excess)).max() < 3 * largest


@pytest.mark.guest
@pytest.mark.parametrize(
    "changes",
    [{"hosts__segmentation": "router", "network__buffer": {"packets": 300}, "network__rate_mbit": 100},
     {"network__qdisc": {"kind": "cake"}, "network__buffer": {"packets": 20}, "network__rate_mbit": 20, "flows": [{"cca": "cubic", "count": 2}, {"cca": "bbr1"}]}],
)  # fmt: skip
def test_a_run_whose_rate_changes_passes_everything(run_scenario, changes):
    """What the limiter lets go at once is no rate, and the packet that it holds is none of CAKE's memory."""
    rates = [{"at_s": 1, "rate_mbit": 19}]
    run = run_scenario(network__rtt_ms=20, network__changes=rates, duration_s=2, window_s=[1, 2], sample_hz=500, **changes)  # fmt: skip
    assert run.failed == []
