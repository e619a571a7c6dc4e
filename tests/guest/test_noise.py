"""hosts.noise: what the seed draws of the path and the hosts, and that nothing else changes by it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.guest
TWO = [{"cca": "cubic"}, {"cca": "bbr1"}]
OFFSET_MS = 0.6  # less than a packet's time at 10 Mbit/s
PROCESSING_MS = 0.05
PING_MS = 0.02  # by how much a ping may be longer than the path


def offsets_ms(result) -> list[float]:
    return [flow["base_rtt_ms"] - 40 for flow in result.summary["flows"]]


def test_without_noise_the_rtt_is_exact_and_flows_of_one_rtt_share_a_host(run_scenario):
    result = run_scenario(flows=TWO, hosts__noise="off")
    assert result.failed == []
    assert offsets_ms(result) == [0, 0]
    assert result.manifest["report"]["ping_ms"] == [pytest.approx(40, abs=PING_MS)]
    again = run_scenario(flows=TWO, hosts__noise="off", seed=2)
    assert again.manifest["report"]["ping_ms"] == result.manifest["report"]["ping_ms"]


def test_each_group_and_seed_has_an_rtt_of_its_own(run_scenario):
    one, other = (run_scenario(flows=TWO, seed=seed) for seed in (1, 2))
    drawn = [*offsets_ms(one), *offsets_ms(other)]
    assert len(set(drawn)) == 4 and all(0 < ms <= OFFSET_MS + 5e-4 for ms in drawn)
    for result in (one, other):
        assert result.failed == []
        for ping_ms, offset_ms in zip(result.manifest["report"]["ping_ms"], offsets_ms(result), strict=True):
            assert 40 + offset_ms <= ping_ms <= 40 + offset_ms + PROCESSING_MS + PING_MS


def test_the_same_seed_gives_the_same_bytes(run_scenario):
    one, other = (run_scenario(flows=TWO, tamper=lambda plan: None) for _ in range(2))
    assert one.failed == []
    assert (one.folder / "samples.parquet").read_bytes() == (other.folder / "samples.parquet").read_bytes()
    exact = run_scenario(flows=TWO, hosts__noise="off")
    assert not exact.samples.equals(one.samples)


@pytest.mark.parametrize(
    ("rate_mbit", "pacing"),
    [(10, "internal"), *(pytest.param(1000, pacing, marks=pytest.mark.slow) for pacing in ("internal", "fq"))],
)
def test_packets_that_leave_late_do_not_slow_a_paced_flow(run_scenario, rate_mbit, pacing):
    """Lateness that added up would be 25 us for each packet, and a packet takes 12 at 1 Gbit/s."""
    fields = {"network__rate_mbit": rate_mbit, "hosts__pacing": pacing, "flows": [{"cca": "bbr1"}], "duration_s": 8,
              "window_s": [3, 8]}  # fmt: skip
    noisy, exact = (run_scenario(**fields, **more) for more in ({}, {"hosts__noise": "off"}))
    assert noisy.failed == exact.failed == []
    goodput = [result.summary["groups"][0]["goodput_mbit"] for result in (noisy, exact)]
    assert goodput[1] > 0.93 * rate_mbit and goodput[0] == pytest.approx(goodput[1], rel=0.001)
