"""The Wi-Fi trace's model against the theory of who sends when (Bianchi, IEEE JSAC 18(3), 2000)."""

from __future__ import annotations

import itertools

import pytest

from bbrlab.scenario.link_trace import FOLDER, link_trace
from docs._make import traces
from docs._make.traces import wifi_aggregates


def _sends_in_a_slot(stations: int) -> float:
    """Bianchi's fixed point: how likely a station that always has something begins in a slot."""
    windows, doublings = traces.WINDOW_MIN + 1, 6
    assert windows * 2**doublings == traces.WINDOW_MAX + 1
    loses = 0.1
    for _ in range(1000):
        sends = 2 * (1 - 2 * loses) / ((1 - 2 * loses) * (windows + 1) + loses * windows * (1 - (2 * loses) ** doublings))  # fmt: skip
        loses = (loses + 1 - (1 - sends) ** (stations - 1)) / 2
    return sends


def test_the_access_point_sends_as_often_as_the_theory_of_its_standard_has_it(monkeypatch):
    monkeypatch.setattr(traces, "WIFI_MBIT", (65.0,))
    monkeypatch.setattr(traces, "OTHERS_US", (2000, 2000))
    aggregates = list(wifi_aggregates(300))
    packets = int(4000 * 65 / (1544 * 8))
    assert {n for _, n in aggregates} == {packets}
    own_us, others_us = packets * 1544 * 8 / 65, 2000
    overhead_us = traces.AIFS_US + traces.PREAMBLE_US + traces.SIFS_US + traces.BLOCK_ACK_US
    sends = _sends_in_a_slot(3)
    nobody, alone = (1 - sends) ** 3, sends * (1 - sends) ** 2
    with_own = 1 - (1 - sends) ** 2  # of those who collide with the access point, that somebody does
    collides_own = sends * with_own
    collides_others = (1 - sends) * sends**2
    slot_us = (
        nobody * traces.SLOT_US
        + (alone + collides_own) * (own_us + overhead_us)
        + (2 * alone + collides_others) * (others_us + overhead_us)
    )
    expected = alone / slot_us * 1e6 * 300
    assert len(aggregates) == pytest.approx(expected, rel=0.02), "some 30,000: half a percent by chance"


def test_what_comes_together_is_one_aggregate():
    trace = link_trace(str(FOLDER / "wifi.txt"))
    assert trace.period_ns < traces.WIFI_S * 1e9
    sizes = [len(list(same)) for _, same in itertools.groupby(trace.times_ns)]
    assert sizes == [n for _, n in wifi_aggregates(traces.WIFI_S)]
    fitting = {int(traces.AGGREGATE_US * mbit / (traces.ON_AIR_BYTES * 8)) for mbit in traces.WIFI_MBIT}
    assert set(sizes) <= fitting and max(sizes) <= traces.AGGREGATE_PACKETS
    assert trace.mbit(0, trace.period_ns / 1e9) == pytest.approx(20.2, abs=0.1)
