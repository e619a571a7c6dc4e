"""Senders of several kernels on one bottleneck: what each machine is told, and two Debian kernels together (make test-slow)."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from bbrlab.base.errors import UserError
from bbrlab.experiment.machine import qemu
from bbrlab.kernel.build import build_kernel
from bbrlab.kernel.built import get_kernel
from bbrlab.kernel.probe import QEMU
from bbrlab.measure.netlink import HEAD, KIND_QDISC, KIND_SOCKETS, records
from bbrlab.run import run, several
from bbrlab.run.run import run_point
from bbrlab.run.several import plan_several
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from tests.conftest import Result, scenario_dict

FLOWS = [{"cca": "bbr1"}, {"cca": "cubic"}, {"cca": "bbr3"}]


def point_of(**changes):
    return base_point(validate(scenario_dict(**({"flows": FLOWS} | changes)), "s"))


@pytest.fixture(scope="module")
def kernels():
    """Two kernels, the second with other names and algorithms, as Google's have."""
    mine = get_kernel()
    ccas = {name: word for name, word in mine.ccas.items() if name not in ("bbr2", "bbr3")}
    return dataclasses.replace(mine, ccas=ccas), dataclasses.replace(
        mine, key="k2", ccas={"bbr3": "bbr", "cubic": "cubic"}
    )


def test_what_every_machine_is_told(kernels):
    plan, (senders,) = plan_several(point_of(), 1, kernels[0], {2: kernels[1]})
    content, theirs = plan.content, senders.plan
    assert [t["cca"] for t in content["transfers"]] == ["bbr", "cubic", "bbr"], "each by its kernel's name"
    here, there = content["several"], theirs["several"]
    assert here["role"] == "bottleneck" and there["role"] == "senders"
    (away,) = here["hosts"]
    assert here["elsewhere"] == there["hosts"] == [away] and there["elsewhere"] == []
    assert away not in {t["client"] for t in content["transfers"][:2]}, (
        "no host of two kernels, though all have one RTT"
    )
    assert [t["client"] for t in theirs["transfers"]] == [away]
    assert here["machines"] == [next(h["ip"] for h in content["hosts"] if h["name"] == away)]
    assert content["hosts"] == theirs["hosts"] and content["bottlenecks"] == theirs["bottlenecks"]
    assert (content["ccas"], theirs["ccas"]) == (["bbr", "cubic"], ["bbr"])
    assert len(plan.flows) == 3


def test_groups_of_one_kernel_share_a_machine(kernels):
    plan, machines = plan_several(point_of(), 1, kernels[0], {1: kernels[1], 2: kernels[1]})
    (senders,) = machines
    assert senders.groups == [1, 2] and len(senders.plan["transfers"]) == 2
    assert len(plan.content["several"]["machines"]) == 1


@pytest.mark.parametrize(
    ("flows", "group", "said"),
    [
        (FLOWS, 3, "has groups 0 to 2"),
        ([{"cca": "cubic", "direction": "reverse"}], 0, "long flows forward"),
        ([{"cca": "cubic", "params": {"beta": 900}}], 0, "without params"),
        (FLOWS, 0, "this kernel has no bbr1"),
    ],
)
def test_what_is_not_possible(kernels, flows, group, said):
    with pytest.raises(UserError, match=said):
        plan_several(point_of(flows=flows), 1, kernels[0], {group: kernels[1]})


def test_a_group_may_have_an_algorithm_that_only_its_senders_kernel_has(kernels, tmp_path, monkeypatch):
    """As Google's BBRv3 beside BBRv1 of a kernel that has no other: it has no parameters, which are all that would be looked up there."""

    def machines_start(machine, scratch, point, plan, senders, log):
        raise UserError(f"{len(senders)} beside the bottleneck's")

    monkeypatch.setattr(run, "kernel_for", lambda name, *_: kernels[name == "lab-6.1-qemu"])
    monkeypatch.setattr(run.iperf3_library, "library_folder", lambda: tmp_path)
    monkeypatch.setattr(run, "run_several", machines_start)
    with pytest.raises(UserError, match="^1 beside"):
        run_point(point_of(), 1, tmp_path / "out", backend="qemu", sender_kernels={2: "lab-6.1-qemu"})


def test_only_qemu_has_several_machines(tmp_path):
    with pytest.raises(UserError, match="need --backend qemu"):
        run_point(point_of(), 1, tmp_path, sender_kernels={1: "lab-6.1-qemu"})


def test_both_ends_of_a_cable_meet(tmp_path):
    ends = [several._ends(tmp_path, 1, first=first) for first in (True, False)]
    one, other = (qemu.cable(1, *end)[1] for end in ends)
    assert ends[0] == ends[1][::-1]
    assert one != other and "mac=52:54:00:00:00:01" in qemu.cable(1, *ends[0])[3]


def test_what_either_machine_saw_is_put_together(kernels, tmp_path):
    """Sockets of the hosts that were away, and of no others; not the other machine's queue, which nothing crossed."""
    plan, (senders,) = plan_several(point_of(), 1, kernels[0], {2: kernels[1]})
    (away,) = senders.hosts
    place = [h["name"] for h in plan.content["hosts"]].index(away)
    empty = {
        key: {h["name"]: {} for h in plan.content["hosts"]} for key in ("received", "received_before", "host_drops")
    }
    for name, seen in (("here", 0), ("there", 1)):
        folder = tmp_path / name
        folder.mkdir()
        rows = [(1, place, KIND_SOCKETS, b"mine"), (1, place + 1, KIND_SOCKETS, b"other"), (1, 0, KIND_QDISC, b"queue")]
        raw = b"".join(HEAD.pack(t, s, k, len(d)) + d for t, s, k, d in rows) if seen else b""
        (folder / "samples.raw").write_bytes(raw)
        report = json.loads(json.dumps(empty)) | {"parameters": {name: {}}, "traffic_failures": []}
        report["settings"] = {"hosts": {h["name"]: {"on": name} for h in plan.content["hosts"]}}
        report["received"][away] = {"packets": seen}
        (folder / "report.json").write_text(json.dumps(report))
    (tmp_path / "there" / "client-2.json").write_text("{}")
    several._join(plan, senders, tmp_path / "here", tmp_path / "there")
    data = (tmp_path / "here" / "samples.raw").read_bytes()
    assert [(s, k, data[o : o + n]) for _, s, k, o, n in records(data)] == [(place, KIND_SOCKETS, b"mine")]
    report = json.loads((tmp_path / "here" / "report.json").read_text())
    assert report["received"][away] == {"packets": 1} and set(report["parameters"]) == {"here", "there"}
    assert {h for h, settings in report["settings"]["hosts"].items() if settings["on"] == "there"} == {away}
    assert Path(tmp_path / "here" / "client-2.json").exists()


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(shutil.which(QEMU) is None, reason="needs QEMU (apt-get install qemu-system-x86)")
def test_two_debian_kernels_on_one_bottleneck(tmp_path):
    """CUBIC of Linux 6.12 and BBRv1 of Linux 6.1 share a link; both flows are seen, and together they fill it."""
    for name in ("lab-6.12-qemu", "lab-6.1-qemu"):
        build_kernel(name, say=lambda text: None)
    point = point_of(
        flows=[{"cca": "cubic"}, {"cca": "bbr1"}], network__rate_mbit=2, network__buffer__bdp=4, hosts__segmentation="nic",
        duration_s=20, window_s=[5, 20],
    )  # fmt: skip
    run_point(point, 1, tmp_path, backend="qemu", kernel_name="lab-6.12-qemu", sender_kernels={1: "lab-6.1-qemu"})
    result = Result(tmp_path)
    assert result.summary["kernel"]["release"].startswith("6.12")
    assert result.summary["sender_kernels"]["1"]["release"].startswith("6.1.")
    unfair = {"late_timers", "lost_time", "spare_time"}  # this machine's, whose tests it may run beside
    assert set(result.failed) <= unfair
    shares = [g["share_of_capacity"] for g in result.summary["groups"]]
    assert min(shares) > 0.05 and result.summary["bottleneck"]["utilisation"] > 0.9
