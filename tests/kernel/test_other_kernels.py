"""Kernels older and newer than the default: git takes their patches, they boot, carry every algorithm and repeat themselves.

And one that checks itself: no wrong memory access and no undefined behaviour, whatever the algorithms meet. Each kernel is
built if need be, from a source that is fetched then.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bbrlab.base.errors import UserError
from bbrlab.experiment.machine import uml
from bbrlab.kernel.build import build_kernel
from bbrlab.kernel.built import Kernel
from bbrlab.kernel.sources import locate
from bbrlab.kernel.specs import find_spec, recipe
from tests.kernel.test_bbr_robustness import selftest
from tests.kernel.test_kernel_source import git

pytestmark = [pytest.mark.guest, pytest.mark.slow]

OTHERS = ["lab-5.10", "lab-6.1", "lab-6.12-before-4.20", "lab-6.12-three-packets", "lab-7.3"]
CHECKED = "lab-6.12-checked"
CCAS = ["bbr1", "bbr2", "bbr3", "cubic", "dctcp", "reno"]
MARKING = {"kind": "fq_codel", "ecn": True}


def built(name: str) -> Kernel:
    """A kernel, built if need be; skips the test where no mirror has its source any more."""
    try:
        return build_kernel(name, say=lambda text: None)
    except UserError as error:
        if "no mirror of Debian" in str(error):
            pytest.skip(str(error))
        raise


@pytest.fixture(scope="module", params=OTHERS)
def other(request):
    return built(request.param)


def test_git_takes_all_patches_in_their_order(other, tmp_path):
    """``git am`` applies a kernel's series to its own source, and ``patch`` makes the same of it."""
    spec = find_spec(other.name)[1]
    parts = recipe(spec)
    patches = [*parts.patches, *parts.host_patches]
    touched = {name for p in patches for name in re.findall(r"(?m)^--- a/(\S+)", p.read_text(encoding="utf-8"))}
    tree = tmp_path / "build" / "source"
    tree.mkdir(parents=True)
    locate(spec.source, fetch=True).unpack(tree, lambda step, argv: subprocess.run(argv, check=True))
    git(tree, "init", "-q")
    git(tree, "add", "-f", *sorted(name for name in touched if (tree / name).exists()))
    git(tree, "commit", "-q", "-m", "source")
    git(tree, "am", "--quiet", *map(str, patches))
    assert len(git(tree, "log", "--format=%h").split()) == len(patches) + 1
    for message in git(tree, "log", f"-{len(patches)}", "--format=%s%n%b%x00").split("\0")[:-1]:
        assert len(message.split()) > 15, message
        assert "Signed-off-by:" in message


def test_it_has_every_algorithm(other):
    assert sorted(other.ccas) == CCAS
    assert other.release.startswith(other.name.removeprefix("lab-").split("-")[0])


def qdisc_for(cca: str) -> dict[str, Any]:
    """DCTCP needs marks."""
    return {"network__qdisc": MARKING} if cca == "dctcp" else {}


@pytest.mark.parametrize("cca", CCAS)
def test_it_carries_every_algorithm_and_repeats_itself(other, run_scenario, cca):
    """Two runs of one dumbbell: all self-checks pass, the link is used, and both have the same bytes."""
    runs = [
        run_scenario(
            flows=[{"cca": cca, "count": 2}],
            kernel_name=other.name,
            tamper=lambda plan: None,  # so that the fixture runs it again
            **qdisc_for(cca),
        )
        for _ in range(2)
    ]
    assert [run.failed for run in runs] == [[], []]
    assert runs[0].summary["bottleneck"]["utilisation"] > 0.8
    assert runs[0].summary["kernel"]["name"] == other.name
    first, second = ((run.folder / "samples.parquet").read_bytes() for run in runs)
    assert first == second


def test_it_carries_ipv6_and_repeats_itself(other, run_scenario):
    """All self-checks pass, that of the packets' version among them; a full link has 1428 of 1514 bytes of data, and both runs the same bytes."""
    runs = [
        run_scenario(
            network__ip_version=6, flows=[{"cca": "bbr3"}, {"cca": "cubic"}], duration_s=10, window_s=[3, 10],
            kernel_name=other.name, tamper=lambda plan: None,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [run.failed for run in runs] == [[], []]
    assert runs[0].check("ip_version")["ok"]
    assert 1428 / 1514 - 0.02 < runs[0].summary["bottleneck"]["utilisation"] < 1428 / 1514 + 0.001
    first, second = ((run.folder / "samples.parquet").read_bytes() for run in runs)
    assert first == second


def test_without_the_margin_a_bbr1_flow_queues_more(run_scenario):
    """As it paced before Linux 4.20 (docs/explanation/kernel_age.md: 0.95 and 0.30 RTTs over 60 s)."""
    short = {"network__rate_mbit": 100, "network__rtt_ms": 10, "network__buffer": {"bytes": 10_000_000}}
    short |= {"flows": [{"cca": "bbr1"}], "hosts__segmentation": "nic", "duration_s": 20, "window_s": [0, 20]}
    names = "lab-6.12", "lab-6.12-before-4.20"
    now, before = (run_scenario(**short, kernel_name=built(name).name) for name in names)
    assert not now.failed + before.failed
    queued = [run.summary["bottleneck"]["queue_ms"]["mean"] for run in (now, before)]
    assert queued[1] > 1.5 * queued[0]


def test_with_three_packets_the_windows_of_bbr1_flows_are_smaller(run_scenario):
    """Than with three bursts: eight flows, the set-up of Tang's Table III."""
    eight = {"network__rate_mbit": 10, "network__rtt_ms": 200, "network__buffer__bdp": 1.5}
    eight |= {"flows": [{"cca": "bbr1", "count": 8}], "duration_s": 60, "window_s": [30, 60]}
    names = "lab-6.12", "lab-6.12-three-packets"
    bursts, packets = (run_scenario(**eight, kernel_name=built(name).name) for name in names)
    assert not bursts.failed + packets.failed
    assert packets.summary["groups"][0]["cwnd_packets_p50"] < bursts.summary["groups"][0]["cwnd_packets_p50"] - 8


def test_traced_processes_give_the_same_bytes(run_scenario, monkeypatch):
    """Linux 7.3 runs a guest's processes by seccomp; by ptrace, as where a host does not allow that, nothing differs."""
    kernel = built("lab-7.3")
    found = []
    for word in (uml.SECCOMP, "seccomp=off"):
        monkeypatch.setattr(uml, "SECCOMP", word)
        run = run_scenario(flows=[{"cca": "bbr3"}, {"cca": "cubic"}], kernel_name=kernel.name, tamper=lambda plan: None)
        assert not run.failed
        found.append((run.folder / "samples.parquet").read_bytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["connections", "ecn"])
def test_selftests(other, tmp_path, name):
    selftest(name, tmp_path, other)


# Losses at random and in bursts, marks, ProbeRTT (after five or ten seconds), a policer's pattern, short flows that end in
# the middle, records of each ACK, counters that wrap.
HARD = {
    "losses": {"network__loss": 0.02, "network__buffer__bdp": 0.5, "network__rate_mbit": 20, "duration_s": 25},
    "marks": {"network__qdisc": MARKING, "duration_s": 25},
    "a deep buffer": {"network__buffer__bdp": 8, "hosts__segmentation": "nic", "duration_s": 25},
    "jitter": {"network__jitter": {"kind": "per-packet", "ms": 5, "group": 0}, "duration_s": 25},
}


@pytest.fixture(scope="module")
def checked():
    return built(CHECKED)


def panic_on_a_report(plan: Any) -> None:
    """A report of KASAN or UBSan, or a warning, ends the guest: the run then fails with it."""
    plan["sysctls"]["kernel.panic_on_warn"] = 1


@pytest.mark.parametrize("hard", HARD)
def test_no_wrong_access_and_no_undefined_behaviour(checked, run_scenario, hard):
    """All algorithms at once, each ACK of BBRv2 and BBRv3 recorded, in a kernel that checks each access."""
    config = (Path(checked.image).parent / "config").read_text(encoding="utf-8")
    assert "CONFIG_KASAN_GENERIC=y" in config
    assert "CONFIG_UBSAN_SHIFT=y" in config
    flows = [
        {"cca": "bbr1", "count": 2},
        {"cca": "bbr2", "count": 2, "params": {"ecn": "on"}},
        {"cca": "bbr3", "count": 2, "params": {"counters_start": 2**32 - 2000}},
        {"cca": "cubic", "start_s": 2, "stop_s": 15},
        {"cca": "reno"},
        {"cca": "dctcp"},
    ]
    run = run_scenario(
        flows=flows,
        kernel_name=CHECKED,
        tamper=panic_on_a_report,
        trace="acks",
        hosts__ecn="on",
        window_s=[5, 25],
        **HARD[hard],
    )
    assert not re.search("KASAN|UBSAN|WARNING", run.log)
    assert (run.acks["bbr_state"] == 6).any()  # ProbeRTT
    assert run.summary["flows"][0]["goodput_mbit"] > 0


@pytest.mark.parametrize("name", ["connections", "ecn"])
def test_selftests_of_a_kernel_that_checks_itself(checked, tmp_path, name):
    assert not re.search("KASAN|UBSAN", selftest(name, tmp_path, checked))
