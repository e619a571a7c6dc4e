"""The self-checks can fail: what differs from what was asked for is caught, and the run is marked."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.guest


def test_a_sound_run_passes_everything(run_scenario):
    result = run_scenario()
    assert result.failed == []
    assert result.summary["ok"] is True
    assert {"rate", "buffer", "base_rtt", "drops_elsewhere", "flows_ran", "samples"} <= {
        c["name"] for c in result.summary["checks"]
    }


def test_a_wrong_rate_is_caught(run_scenario):
    def tamper(plan):
        plan["bottlenecks"][0]["rate_bps"] = 9_900_000  # 1 % too slow

    result = run_scenario(tamper=tamper)
    assert "rate" in result.failed
    assert result.summary["ok"] is False


def test_a_rate_that_is_too_high_is_also_caught_during_the_run(run_scenario):
    def tamper(plan):
        plan["bottlenecks"][0]["rate_bps"] = 11_000_000

    assert {"rate", "busy_rate"} <= set(run_scenario(tamper=tamper).failed)


def test_a_wrong_delay_is_caught(run_scenario):
    def tamper(plan):
        plan["hosts"][0]["delay_us"] = 40_100  # .1 ms too long

    assert "base_rtt" in run_scenario(tamper=tamper).failed


@pytest.mark.parametrize("change", [-3000, +3000])
def test_a_wrong_buffer_is_caught(run_scenario, change):
    def tamper(plan):
        plan["bottlenecks"][0]["qdisc"] = ["bfifo", "limit", str(100_000 + change)]

    assert "buffer" in run_scenario(tamper=tamper).failed


def test_drops_elsewhere_are_caught(run_scenario):
    def tamper(plan):
        plan["loss_hop"], plan["loss"] = True, 0.001

    assert "drops_elsewhere" in run_scenario(tamper=tamper).failed


def test_a_wrong_loss_rate_is_caught(run_scenario):
    def tamper(plan):
        plan["loss"] = 0.05

    assert "random_loss" in run_scenario(tamper=tamper, network__loss=0.01).failed


def test_a_window_that_was_the_limit_is_caught(run_scenario):
    def tamper(plan):
        plan["sysctls"]["net.ipv4.tcp_rmem"] = "4096 30000 30000"
        plan["transfers"][0]["receive_lowat_bytes"] = 0

    assert "receive_window" in run_scenario(tamper=tamper).failed


def test_a_send_buffer_that_was_the_limit_is_caught(run_scenario):
    def tamper(plan):
        plan["sysctls"]["net.ipv4.tcp_wmem"] = "4096 30000 30000"

    assert "send_buffer" in run_scenario(tamper=tamper).failed


def test_a_flow_that_could_not_run_is_caught(run_scenario):
    def tamper(plan):
        plan["transfers"][1]["server_ip"] = "10.0.200.200"  # nobody there

    assert "flows_ran" in run_scenario(tamper=tamper, flows=[{"cca": "cubic"}, {"cca": "reno"}]).failed
