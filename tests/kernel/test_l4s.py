"""DualPI2, AccECN and a scalable flow in Linux 7.3: the known answers of its two queues. The kernel is built if need be."""

from __future__ import annotations

import math

import pytest

from tests.kernel.test_other_kernels import built

pytestmark = [pytest.mark.guest, pytest.mark.slow]

RATE_MBIT, RTT_MS, TARGET_MS, STEP_MS = 40, 20.0, 15.0, 1.0


@pytest.fixture(scope="module")
def run(run_scenario):
    built("lab-7.3")

    def go(*flows, ip_version=4, **qdisc):
        return run_scenario(
            network={"rate_mbit": RATE_MBIT, "rtt_ms": RTT_MS, "buffer": {"bdp": 10}, "ip_version": ip_version,
                     "qdisc": {"kind": "dualpi2"} | qdisc},
            hosts={"segmentation": "nic", "ecn": "accurate", "noise": "off"},
            flows=list(flows), duration_s=40, window_s=[10, 40], kernel_name="lab-7.3",
        )  # fmt: skip

    return go


@pytest.mark.parametrize(
    ("cca", "qdisc", "queue", "low_ms", "high_ms"),
    [
        ("dctcp1", {}, "l4s", 0.3 * STEP_MS, 1.5 * STEP_MS),
        ("dctcp1", {"ip_version": 6}, "l4s", 0.3 * STEP_MS, 1.5 * STEP_MS),
        ("dctcp", {"l4s_of": "ect", "step_threshold_ms": 3}, "l4s", 0.9 * STEP_MS, 4.5 * STEP_MS),
        ("cubic", {}, "classic", TARGET_MS * 2 / 3, TARGET_MS * 4 / 3),
        ("cubic", {"target_ms": 30}, "classic", 2 * TARGET_MS * 2 / 3, 2 * TARGET_MS * 4 / 3),
    ],
    ids=str,
)
def test_each_queue_has_its_own_delay(run, cca, qdisc, queue, low_ms, high_ms):
    """RFC 9332: the queue of scalable flows waits about as long as its step, the classic one about its target. Marks, no losses.

    The queue's own delay, by the kernel, and the flow's RTT beyond the path's.
    """
    found = run({"cca": cca}, **qdisc)
    (group,) = found.summary["groups"]
    link = found.summary["bottleneck"]
    assert not found.failed
    assert found.check("qdisc_values")["ok"] and found.check("host_values")["ok"]
    assert low_ms < group["rtt_ms_mean"] - RTT_MS < high_ms
    assert low_ms < link[f"{queue}_queue_ms_mean"] < high_ms
    assert link["l4s_packets"] == (1 if queue == "l4s" else 0)
    assert group["ecn_marked"] > 0 and link["ecn_marks"] > 0
    assert group["retransmits"] == 0 and link["utilisation"] > 0.9


RENO_WINDOW = math.sqrt(
    3 / 2
)  # packets, times the root of the marking probability: Mathis et al. 1997; RFC 9332, Appendix C
DCTCP_WINDOW = 2  # packets, times the marking probability: RFC 9332, Appendix C


@pytest.mark.parametrize("coupling", [1, 2, 4])
def test_the_coupling_law(run, coupling):
    """RFC 9332, section 2.1: with the probability p' packets of the classic queue are marked with p'^2, those of the other with
    ``coupling`` p'. Of single marks p_C would have to be steady for p_L to be ``coupling`` sqrt(p_C); p' is what the kernel has.

    The rates follow: DCTCP has 2 / p_L packets in flight, Reno 1.22 / sqrt(p_C), each over its RTT. To a quarter and to a third,
    as both laws are of a steady state and the probability is not. The step, whose marks come on top (p_L is the larger of both),
    is out of reach here.
    """
    found = run({"cca": "dctcp1"}, {"cca": "reno"}, coupling=coupling, step_threshold_ms=4294)
    assert not found.failed
    scalable, classic = found.summary["groups"]
    link = found.summary["bottleneck"]
    assert scalable["ecn_marked"] == pytest.approx(coupling * link["coupled_probability_mean"], rel=1 / 4)
    assert math.sqrt(classic["ecn_marked"]) == pytest.approx(link["coupled_probability_rms"], rel=1 / 4)
    windows = DCTCP_WINDOW / (coupling * RENO_WINDOW)
    rates = windows * classic["rtt_ms_mean"] / scalable["rtt_ms_mean"]
    assert scalable["goodput_mbit"] / classic["goodput_mbit"] == pytest.approx(rates, rel=1 / 3)
    assert link["l4s_queue_ms_mean"] < 2 * STEP_MS, "it goes first, whatever the step"
    assert abs(link["classic_queue_ms_mean"] - TARGET_MS) < TARGET_MS / 3
    assert link["drops"] == 0 and link["utilisation"] > 0.9


def test_a_group_without_ecn_is_dropped_and_not_marked(run):
    found = run({"cca": "dctcp1"}, {"cca": "cubic", "ecn": "off"})
    assert not found.failed
    scalable, classic = found.summary["groups"]
    assert scalable["ecn_marked"] > 0 and scalable["retransmits"] == 0
    assert classic["ecn_marked"] == 0 and classic["retransmits"] > 0
    assert found.summary["bottleneck"]["drops"] == classic["retransmits"]


@pytest.mark.parametrize(("l4s_of", "cubic_is_marked"), [("ect", True), ("ect1", False)])
def test_fq_codels_threshold_is_for_scalable_flows(run, l4s_of, cubic_is_marked):
    """Above 1 ms ECT(1) is marked, and with ``ect`` CUBIC's ECT(0), too: it then waits nothing like the target of 50 ms."""
    found = run(
        {"cca": "dctcp1"}, {"cca": "cubic"}, kind="fq_codel", ce_threshold_ms=1, target_ms=50, interval_ms=1000,
        l4s_of=l4s_of,
    )  # fmt: skip
    assert not found.failed and found.check("qdisc_values")["ok"]
    scalable, classic = found.summary["groups"]
    assert scalable["ecn_marked"] > 0 and scalable["rtt_ms_mean"] - RTT_MS < 3
    assert (classic["rtt_ms_mean"] - RTT_MS < 50 / 2) == cubic_is_marked
