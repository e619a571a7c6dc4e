"""Cases whose outcome is known without any experiment."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.guest
PAYLOAD_OVER_FRAME = 1448 / 1514  # 1500-byte packets with TCP time stamps, 14 bytes of Ethernet


@pytest.mark.parametrize(("rate", "rtt"), [(10, 40), pytest.param(50, 30, marks=pytest.mark.slow), (100, 5)])
def test_a_lone_cubic_flow_fills_a_clean_link(run_scenario, rate, rtt):
    result = run_scenario(
        network__rate_mbit=rate, network__rtt_ms=rtt, network__buffer__bdp=8, duration_s=30, window_s=[15, 30]
    )
    assert result.failed == []
    assert result.summary["groups"][0]["share_of_capacity"] == pytest.approx(PAYLOAD_OVER_FRAME, rel=0.002)
    assert result.summary["bottleneck"]["link_utilisation"] == pytest.approx(1, rel=0.002)


@pytest.mark.parametrize("rtt", [1, 40, 333])
def test_ping_gives_the_base_rtt(run_scenario, rtt):
    result = run_scenario(network__rtt_ms=rtt, hosts__noise="off")
    assert result.manifest["report"]["ping_ms"] == [pytest.approx(rtt, abs=0.02)]


def test_queueing_delay_of_a_full_buffer(run_scenario):
    """RTT of packets behind a full buffer: base RTT plus buffer over rate; a lone flow's peak must come near."""
    result = run_scenario(network__buffer__bdp=4, duration_s=60, window_s=[20, 60])
    bottleneck = result.summary["bottleneck"]
    assert bottleneck["queue_ms"]["max"] == pytest.approx(160, rel=0.05)
    assert result.summary["flows"][0]["rtt_ms"]["max"] == pytest.approx(200, rel=0.05)


def test_equal_flows_share_equally(run_scenario):
    flows = [{"cca": "cubic", "count": 4}]
    result = run_scenario(flows=flows, duration_s=200, window_s=[50, 200])
    assert result.summary["jain_index"] > 0.95


def test_goodput_agrees_with_iperf3_itself(run_scenario):
    """iperf3's receiver counts the same bytes as the sender's tcp_info."""
    result = run_scenario(flows=[{"cca": "cubic", "bytes": 5_000_000}], window_s=[0, 10])
    delivered = result.summary["flows"][0]["delivered_bytes"]
    assert delivered == pytest.approx(5_000_000, abs=100)
    assert result.manifest["iperf3"]["0"]["received_bytes"] == pytest.approx(delivered, abs=100)
