"""Every documented smallest and largest value of every queue's options runs in a guest, or is refused with the true limit."""

from __future__ import annotations

import re

import pytest

from bbrlab.base.errors import UserError
from bbrlab.run.compatibility import asks_for_l4s
from bbrlab.run.run import run_point
from bbrlab.scenario.load import points_of
from bbrlab.scenario.messages import validate
from bbrlab.scenario.schema import QDISC_OPTIONS
from tests.conftest import scenario_dict
from tests.fuzz.meaning import FOREIGN, ends_of, fuzz
from tests.kernel.test_other_kernels import built

CHEAP = {"network__rtt_ms": 10, "network__buffer": {"packets": 50}, "duration_s": 1, "window_s": [0.2, 1]}
ECN = {"network__qdisc__ecn": True, "hosts__ecn": "on"}


def with_option(kind, name, value):
    changes = {"network__qdisc": {"kind": kind, name: value}}
    if name == "harddrop":
        changes |= ECN
    elif name in ("ce_threshold_ms", "ecn"):
        changes["hosts__ecn"] = "on"
    if name == "ce_threshold_ms":  # a full buffer waits longer, at 1.2 ms for each packet: else it has no effect
        changes["network__buffer"] = {"packets": 50 + int(value)}
    if name == "min_bytes":
        changes["network__qdisc__avpkt_bytes"] = min(value, 1514)
    if name == "avpkt_bytes":
        changes["network__qdisc__burst_packets"] = max(1, 6308 // value + 1)
    return scenario_dict(**(CHEAP | changes))


def runs_or_is_refused(content, folder):
    """Whether it ran with all its self-checks; what was said if not."""
    try:
        (point,) = points_of(validate(content, "s"))
    except UserError as error:
        assert not FOREIGN.search(str(error)) and re.search(r"\d|no effect", str(error)), error
        return str(error)
    l4s = built("lab-7.3").name if asks_for_l4s(point.scenario) else None
    summary = run_point(point, 1, folder, kernel_name=l4s)
    return "; ".join(f"{c['name']}: {c}" for c in summary["checks"] if c["ok"] is False and c["name"] != "first_data")


ALL = [
    (kind, name, value) for kind, options in QDISC_OPTIONS.items() for name in options for value in ends_of(kind, name)
]


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.parametrize(("kind", "name", "value"), ALL, ids=str)
def test_ends_of_the_options_of_queues(kind, name, value, tmp_path):
    said = runs_or_is_refused(with_option(kind, name, value), tmp_path / "out")
    low, high = QDISC_OPTIONS[kind][name]
    if not isinstance(value, bool | str) and low <= value <= high and low > -1:
        assert not said, "a documented end runs"
    assert "qdisc_values" not in said and not said.startswith(("buffer", "rate", "queue_peak")), said


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.parametrize(
    "changes",
    [
        {"network__rate_mbit": 0.001, "duration_s": 30, "window_s": [5, 30]},
        {"network__rtt_ms": 0.001},
        {"network__loss": 1e-7},
        {"network__loss": 0.9999999},
        {"network__jitter": {"kind": "slotted", "ms": 0.001}},
        {"network__jitter": {"kind": "per-packet", "ms": 0.001}},
        {"hosts__receive_offload": "gro", "hosts__receive_offload_us": 0.001},
        {"hosts__receive_offload": "gro-timer", "hosts__receive_offload_us": 0.001},
        {"hosts__segmentation": "router", "network__rate_mbit": 0.01},
        {"hosts__rmem_max_bytes": 4096},
        {"hosts__wmem_max_bytes": 4096},
        {"sample_hz": 1e-5},
        {"network__buffer": {"bytes": 1514}},
        {"network__qdisc": {"kind": "red"}, "network__buffer": {"packets": 1}},
        {"network__qdisc": {"kind": "red", "probability": 1}},
        {"network__qdisc": {"kind": "cake"}, "network__buffer": {"packets": 1}},
        {"network__qdisc": {"kind": "cake"}, "network__buffer": {"packets": 1_883_757}},
        {"network__qdisc": {"kind": "fq_codel"}, "network__buffer": {"packets": 941_878}},
        {"network__qdisc": {"kind": "fq_codel"}, "network__buffer": {"packets": 15_000}, "network__rate_mbit": 500},
    ],
    ids=str,
)
def test_ends_of_the_path_and_the_hosts(changes, tmp_path):
    said = runs_or_is_refused(scenario_dict(**(CHEAP | changes)), tmp_path / "out")
    if changes.get("network__loss", 0) > 0.9:
        assert said.startswith("flows_ran"), "nothing arrives"
    else:
        assert not said, said


@pytest.mark.slow
@pytest.mark.guest
def test_scenarios_of_meaning_run_or_are_refused(tmp_path):
    """Thirty; the command tries thousands."""
    found = fuzz(30, 7, tmp_path, guests=1)
    assert [one["said"] for one in found if one["outcome"] == "died"] == []
    assert {one["outcome"] for one in found} >= {"passed", "refused"}
