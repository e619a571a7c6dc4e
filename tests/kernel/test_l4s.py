"""DualPI2 and AccECN in Linux 7.3: the known answers of its two queues. The kernel is built if need be."""

from __future__ import annotations

import pytest

from tests.kernel.test_other_kernels import built

pytestmark = [pytest.mark.guest, pytest.mark.slow]

RTT_MS, TARGET_MS, STEP_MS = 20.0, 15.0, 1.0


@pytest.fixture(scope="module")
def run(run_scenario):
    built("lab-7.3")

    def go(cca, **qdisc):
        return run_scenario(
            network={"rate_mbit": 40, "rtt_ms": RTT_MS, "buffer": {"bdp": 10}, "qdisc": {"kind": "dualpi2"} | qdisc},
            hosts={"segmentation": "nic", "ecn": "accurate", "noise": "off"},
            flows=[{"cca": cca}], duration_s=40, window_s=[10, 40], kernel_name="lab-7.3",
        )  # fmt: skip

    return go


@pytest.mark.parametrize(
    ("cca", "qdisc", "low_ms", "high_ms"),
    [
        ("dctcp", {"l4s_of": "ect"}, 0.3 * STEP_MS, 1.5 * STEP_MS),
        ("dctcp", {"l4s_of": "ect", "step_threshold_ms": 3}, 0.9 * STEP_MS, 4.5 * STEP_MS),
        ("cubic", {}, TARGET_MS * 2 / 3, TARGET_MS * 4 / 3),
        ("cubic", {"target_ms": 30}, 2 * TARGET_MS * 2 / 3, 2 * TARGET_MS * 4 / 3),
    ],
    ids=str,
)
def test_each_queue_has_its_own_delay(run, cca, qdisc, low_ms, high_ms):
    """RFC 9332: the queue of scalable flows waits about as long as its step, the classic one about its target. Marks, no losses."""
    found = run(cca, **qdisc)
    (group,) = found.summary["groups"]
    assert not found.failed
    assert found.check("qdisc_values")["ok"] and found.check("host_values")["ok"]
    assert low_ms < group["rtt_ms_mean"] - RTT_MS < high_ms
    assert group["ecn_marked"] > 0 and found.summary["bottleneck"]["ecn_marks"] > 0
    assert group["retransmits"] == 0 and found.summary["bottleneck"]["utilisation"] > 0.9
