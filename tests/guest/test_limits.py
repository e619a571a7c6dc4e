"""The documented largest and smallest of what a scenario has many of, or waits for: they run, in the memory that is planned."""

from __future__ import annotations

import shutil

import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.run.memory import LEAST_BYTES, guest_bytes, largest_part
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from bbrlab.scenario.schema import PER_PACKET_JITTER_MS
from tests.conftest import scenario_dict

RATE = {"network__rate_mbit": 100, "network__rtt_ms": 20, "network__buffer": {"packets": 1000}}
LATE = "flows_ran", "first_data"  # on a path that 1000 connections overload, not all are open in a few seconds


def point_of(**changes):
    return base_point(validate(scenario_dict(**changes), "s"))


def test_memory_is_planned_by_what_there_is_many_of():
    """A small run's is that of before; each thing that a guest has many of counts; the message names the field."""
    small = guest_bytes(point_of())
    assert LEAST_BYTES < small < LEAST_BYTES + (8 << 20)
    many = {
        "flows (count)": {"flows": [{"cca": "cubic", "count": 1000}]},
        "flows with an iperf3 each": {"flows": [{"cca": "cubic", "count": 1000, "rtt_ms": [10, 100]}]},
        "data in flight": {"network__rate_mbit": 10_000, "network__rtt_ms": 100},
    }
    for words, changes in many.items():
        point = point_of(**changes)
        assert guest_bytes(point) > small + (200 << 20)
        assert largest_part(point).startswith(words)
    assert guest_bytes(point_of(flows=[{"cca": "cubic", "count": 1000, "bytes": 1000}])) > small + (4000 << 20)
    assert largest_part(point_of(), 1e9).startswith("short flows (traffic): 954 MiB")
    paced = point_of(flows=[{"cca": "cubic", "count": 1000, "rtt_ms": [10, 100]}], hosts__pacing="fq")
    assert guest_bytes(paced) == guest_bytes(point_of(**many["flows with an iperf3 each"])) + (1000 << 19)
    slow = {"network__rate_mbit": 1000, "network__buffer": {"packets": 20}}
    flows = many["flows (count)"]
    assert guest_bytes(
        point_of(**slow, network__rtt_ms=10, network__jitter={"kind": "slotted", "ms": 990})
    ) == guest_bytes(point_of(**slow, network__rtt_ms=1000))
    assert guest_bytes(point_of(**slow, network__rtt_ms=[10, 1000])) == guest_bytes(
        point_of(**slow, network__rtt_ms=1000)
    )
    assert guest_bytes(point_of(**flows), virtual=False) == guest_bytes(point_of(**flows)) + (4000 << 20), (
        "iperf3's blocks"
    )


@pytest.mark.guest
def test_a_guest_without_memory_says_what_it_was_for(run_scenario, monkeypatch, tmp_path):
    """A program takes the memory in few steps: one that runs its own code between them may read that code anew for ever instead."""
    from bbrlab.run import guest

    shutil.copytree(paths.GUEST_CODE, tmp_path / "code")
    (tmp_path / "code/guest.py").write_text("kept = [b'x' * (64 << 20) for _ in range(64)]\n")
    monkeypatch.setattr(paths, "GUEST_CODE", tmp_path / "code")
    monkeypatch.setattr(guest, "guest_bytes", lambda *args, **kwargs: 128 << 20)
    said = (
        r"128 MiB of memory did not suffice(.|\n)*most of it is planned for data in flight and in the buffer.*: 173 MiB"
    )
    with pytest.raises(UserError, match=said):
        run_scenario(network__buffer={"packets": 30_000}, duration_s=1, window_s=[0.5, 1])


def test_more_jitter_than_netem_holds_is_refused():
    """The kernel would take 4295 ms without a word."""
    with pytest.raises(UserError, match=r"network\.jitter.*per-packet jitter can be 4293 ms at most"):
        point_of(network__jitter={"kind": "per-packet", "ms": 4295})


FAST = {
    "network__rate_mbit": 12_000, "network__rtt_ms": 1, "network__buffer": {"packets": 2000}, "flows": [{"cca": "cubic", "count": 4}],
    "duration_s": 0.5, "window_s": [0.25, 0.5], "sample_hz": 100,
}  # fmt: skip
LIMITS = {
    "1000 flows at 1 Mbit/s": {"network__rate_mbit": 1, "flows": [{"cca": "cubic", "count": 1000}]},
    "1000 flows together": RATE | {"flows": [{"cca": "bbr1", "count": 1000, "start": "together"}]},
    "1000 flows of a size": RATE | {"flows": [{"cca": "cubic", "count": 1000, "bytes": 1}]},
    "the largest rate": FAST,
    "a change to the largest rate": FAST | {"network__rate_mbit": 1000, "network__changes": [{"at_s": 0.2, "rate_mbit": 12_000}]},
    "an RTT of 10 s": {"network__rtt_ms": 10_000, "network__buffer": {"packets": 50}, "duration_s": 60, "window_s": [55, 60]},
    "an RTT of 10 s and the most jitter": {
        "network__rtt_ms": 10_000, "network__jitter": {"kind": "per-packet", "ms": PER_PACKET_JITTER_MS}, "network__buffer": {"packets": 50},
        "duration_s": 200, "window_s": [150, 200], "sample_hz": 1,
    },
    "the most jitter in slots": {
        "network__jitter": {"kind": "slotted", "ms": 10_000}, "duration_s": 100, "window_s": [90, 100], "sample_hz": 1,
    },
    "a change to an RTT of 10 s": {"network__changes": [{"at_s": 1, "rtt_ms": 10_000}], "network__buffer": {"packets": 50}},
    "the least RTT that is written": {"network__rtt_ms": 0.001, "network__buffer": {"packets": 50}},
    "samples as often as may be": RATE | {"flows": [{"cca": "cubic", "count": 200}], "sample_hz": 1000},
    "flows at the ends of the run": {"flows": [{"cca": "cubic"}, {"cca": "cubic", "start_s": 10}, {"cca": "reno", "stop_s": 10}]},
    "the longest run": {"network__rate_mbit": 0.01, "network__buffer": {"packets": 2}, "duration_s": 86_000, "window_s": [5, 86_000], "sample_hz": 0.01},
    "the fewest samples": {"sample_hz": 1e-3},
    "the smallest socket buffers": {"hosts__rmem_max_bytes": 4096, "hosts__wmem_max_bytes": 4096},
    "the largest socket buffers": {"hosts__rmem_max_bytes": 2**31 - 1, "hosts__wmem_max_bytes": 2**31 - 1},
}  # fmt: skip


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("case", LIMITS)
def test_a_documented_limit_runs(run_scenario, case):
    """What a flow came to is not looked at here; that it is the network that was asked for is."""
    changes = {"duration_s": 3, "window_s": [2, 3], "sample_hz": 2} | LIMITS[case]
    if "end" in case:
        changes |= {"duration_s": 10, "window_s": [2, 10]}
    result = run_scenario(**changes)
    assert set(result.failed) <= set(LATE)


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize("ip_version", [4, 6])
def test_a_thousand_rtts(run_scenario, ip_version):
    """About two minutes of a processor, 3.8 GB. A host each."""
    result = run_scenario(**RATE | {"network__rtt_ms": [10, 100], "network__ip_version": ip_version}, flows=[{"cca": "cubic", "count": 1000}], duration_s=3,
                          window_s=[2, 3], sample_hz=1)  # fmt: skip
    assert set(result.failed) <= set(LATE)
    assert result.samples["flow"].nunique() > 900
