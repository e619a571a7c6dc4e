"""The backends beside virtual time: a QEMU machine (make test-slow), and the machine itself, which here is a guest."""

from __future__ import annotations

import dataclasses
import shutil
import sys
import time
from pathlib import Path

import pytest
import yaml

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.experiment import iperf3_library
from bbrlab.experiment.machine import host, process, qemu, uml
from bbrlab.kernel.build import build_kernel
from bbrlab.kernel.built import get_kernel
from bbrlab.kernel.probe import QEMU
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from tests.conftest import Result, scenario_dict

SPREAD = 0.08  # of the share between trials of a minute or two, at least
# A machine with root, Open vSwitch and Mininet whose first program is the user's command. /tmp hides the host's, where the
# repository may be, so everything is called by another way to the root.
MACHINE = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run LC_ALL=C PYTHONDONTWRITEBYTECODE=1 LIBMOUNT_FORCE_MOUNT2=always
mount -t tmpfs tmpfs /run
mkdir /run/root /run/out
mount --bind / /run/root
mount -t hostfs -o rw,$HERE/out none /run/out
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /tmp
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts && mount -t devpts devpts /dev/pts
export PYTHONPATH=/run/root%(repository)s TERM=dumb
sleep 12 # nobody runs an experiment on a machine that has just started; Open vSwitch would drop packets (mininet/dumbbell.py)
%(before)s /run/root%(python)s -m bbrlab.cli.main run /run/out/scenario.yaml --backend host --out /run/result
status=$?
[ ! -d /run/result ] || cp -r /run/result /run/out/ # in /run/out a confined guest may not do all that bbrlab does
echo $status >/run/out/status
ip -brief link >/run/out/interfaces
ip netns >>/run/out/interfaces
ps -e -o args | grep -v defunct >/run/out/processes # this shell collects its adopted children when it waits again
ls -A /run/openvswitch >/run/out/openvswitch
[ $status = %(status)d ] && echo "bbrlab done" || echo "bbrlab failed with status $status"
echo o >/proc/sysrq-trigger
sleep 1
"""


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.skipif(shutil.which(QEMU) is None, reason="needs QEMU (apt-get install qemu-system-x86)")
def test_real_time_agrees_with_virtual_time(run_scenario, tmp_path):
    """The same checks pass, with real time's tolerances; shares, utilisation and queue agree as trials do."""
    built = build_kernel("lab-6.12-qemu", say=lambda text: None)
    mix = {
        "flows": [{"cca": "bbr1"}, {"cca": "cubic"}],
        "hosts__segmentation": "nic",
        "network__rate_mbit": 10 if built.acceleration == "kvm" else 2,
        "network__buffer__bdp": 4,
        "duration_s": 120,
        "window_s": [40, 120],
    }
    virtual = [run_scenario(seed=seed, **mix).summary for seed in (1, 2, 3)]
    run_point(base_point(validate(scenario_dict(**mix), "s")), 1, tmp_path, backend="qemu")
    real = Result(tmp_path)
    assert real.summary["backend"] == "qemu"
    assert real.failed == []
    shares = [v["groups"][0]["share_of_capacity"] for v in virtual]
    tolerance = 2 * max(SPREAD, max(shares) - min(shares))
    assert real.summary["groups"][0]["share_of_capacity"] == pytest.approx(sum(shares) / 3, abs=tolerance)
    for key, allowed in (("utilisation", 0.02), ("occupancy", 0.15)):
        mean = sum(v["bottleneck"][key] for v in virtual) / 3
        assert real.summary["bottleneck"][key] == pytest.approx(mean, abs=allowed)


def test_a_kernel_of_another_backend_is_refused(tmp_path):
    point = base_point(validate(scenario_dict(), "s"))
    with pytest.raises(UserError, match=r"kernel lab-6.12 is not for it; those that are: lab-6.12-qemu"):
        run_point(point, 1, tmp_path, backend="qemu", kernel_name="lab-6.12")


def test_qemu_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install qemu-system-x86"):
        qemu.command(None, None)


def test_an_emulated_machine_does_not_count_its_timers_ticks_at_boot(tmp_path, monkeypatch):
    """On busy cores too few come in time: "IO-APIC + timer doesn't work!" (2026-11-23, at a load of seven on two cores)."""
    monkeypatch.setattr(qemu, "check_qemu", lambda: None)
    job = process.Job(scratch=tmp_path, seed=1, memory_bytes=1 << 30, arguments=[], log=tmp_path / "log")
    argv = qemu.command(dataclasses.replace(get_kernel(), acceleration="tcg"), job)
    assert "no_timer_check" in argv[argv.index("-append") + 1].split(" -- ")[0].split()


@pytest.mark.parametrize(
    ("release", "by_seccomp"), [("5.10.262", False), ("6.12.117", False), ("6.16.0", True), ("7.3.4", True)]
)
def test_a_guests_processes_are_traced_only_by_kernels_that_have_nothing_else(tmp_path, release, by_seccomp):
    job = process.Job(scratch=tmp_path, seed=1, memory_bytes=1 << 30, arguments=[], log=tmp_path / "log")
    argv = uml.command(dataclasses.replace(get_kernel(), release=release), job)
    assert (uml.SECCOMP in argv) == by_seccomp


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (
            "Booting kernel: `maybe' invalid for parameter `tcp_aimd.keep_permille'; sleep 60",
            r"params\.keep_permille = maybe: the kernel refused it: .*invalid for parameter `tcp_aimd\.keep_permille'.*; its log is .*log",
        ),
        (
            "bbrlab failed the kernel refused the parameters of aimd: unknown value, or out of range",
            r"refused the parameters of aimd: unknown value, or out of range \(params: keep_permille=5000\); its log is .*log",
        ),
    ],
)
def test_a_parameter_that_the_kernel_refuses_is_named(tmp_path, printed, said):
    """An own algorithm's; after a value of the wrong type the kernel starts no program, and would only be silent."""
    words, _, then = printed.partition("; ")
    arguments = ["tcp_aimd.keep_permille=5000", "tcp_ack_records.kept=1"]
    job = process.Job(tmp_path, 1, 1 << 30, arguments, tmp_path / "log")
    began = time.monotonic()
    with pytest.raises(process.GuestFailed, match=said):
        process.run(job, ["/bin/sh", "-c", f'echo "$0"; {then or ":"}', words])
    assert time.monotonic() - began < 50
    assert words in (tmp_path / "log").read_text()


def uml_that_reads_everything(job):
    """The command of a guest that runs bbrlab itself, with its repository and Python, which no experiment's guest may read."""
    with pytest.MonkeyPatch.context() as patch:
        confine = uml.confined.uml
        patch.setattr(uml.confined, "uml", lambda *args, **kwargs: confine(*args, **kwargs | {"reads": [Path("/")]}))
        return uml.command(get_kernel(), job)


@pytest.fixture(scope="module")
def run_on_a_machine(tmp_path_factory):
    """Run `bbrlab run SCENARIO --backend host` as root of a machine of its own; returns its folder for output."""

    def go(before="", status=0, ip_version=4, **changes):
        scratch = tmp_path_factory.mktemp("machine")
        (scratch / "guest").mkdir()
        (scratch / "out").mkdir()
        words = {"repository": paths.ROOT, "python": sys.executable, "before": before, "status": status}
        (scratch / "guest/init").write_text(MACHINE % words)
        (scratch / "guest/init").chmod(0o755)
        (scratch / "out/scenario.yaml").write_text(yaml.safe_dump(scenario_dict(**changes)))
        iperf3_library.library_folder()  # compiled here: the machine has the repository read-only
        job = process.Job(
            scratch=scratch, seed=1, memory_bytes=1 << 30, arguments=[], log=scratch / "log", watchdog_s=300,
            ip_version=ip_version,
        )  # fmt: skip
        process.run(job, uml_that_reads_everything(job))
        return scratch / "out"

    return go


MIX = {
    "flows": [{"cca": "bbr1"}, {"cca": "cubic"}],
    "hosts__segmentation": "nic",
    "duration_s": 20,
    "window_s": [5, 20],
}


def nothing_is_left(out):
    """Whether a machine is again as it was: no interface, namespace, process or database of ours."""
    interfaces = [line.split()[0] for line in (out / "interfaces").read_text().splitlines()]
    processes = (out / "processes").read_text()
    ours = [word for word in ("ovs", "iperf3", "mininet", "guest.py") if word in processes]
    return (interfaces, ours, (out / "openvswitch").read_text()) == (["lo", "dummy0", "ifb0", "ifb1"], [], "")


@pytest.mark.guest
def test_the_machine_itself(run_on_a_machine, run_scenario):
    """The same program on a machine's own kernel passes its checks, measures the same, and leaves nothing behind."""
    out = run_on_a_machine(**MIX)
    there, here = Result(out / "result"), run_scenario(**MIX)
    assert there.summary["backend"] == there.summary["kernel"]["name"] == "host"
    assert there.failed == []
    assert nothing_is_left(out)
    shares = [r.summary["groups"][0]["share_of_capacity"] for r in (there, here)]
    assert shares[0] == pytest.approx(shares[1], abs=2 * SPREAD)
    assert there.summary["bottleneck"]["utilisation"] == pytest.approx(
        here.summary["bottleneck"]["utilisation"], abs=0.01
    )


@pytest.mark.guest
@pytest.mark.slow
def test_ipv6_on_the_machine_itself(run_on_a_machine):
    """On a machine with IPv6, but not on new interfaces: the switches' ports would send packets of their own."""
    before = "echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6; sysctl net.ipv6.conf.default.disable_ipv6=1;"
    out = run_on_a_machine(before=before, ip_version=6, network__ip_version=6, **MIX)
    there = Result(out / "result")
    assert there.failed == [] and there.check("ip_version")["measured"] == 6
    assert there.summary["bottleneck"]["utilisation"] == pytest.approx(1428 / 1514, abs=0.01)
    assert nothing_is_left(out)


@pytest.mark.guest
@pytest.mark.slow
def test_an_interrupted_run_leaves_the_machine_as_it_was(run_on_a_machine):
    out = run_on_a_machine(before="timeout --signal INT 15", status=124, **MIX)
    assert not (out / "result/summary.json").exists()
    assert "bbrlab: interrupted; nothing half-done was kept" in (out.parent / "log").read_text()
    assert nothing_is_left(out)


@pytest.mark.parametrize(
    ("available", "names"),
    [
        ("reno cubic bbr", {"bbr1": "bbr", "cubic": "cubic", "reno": "reno"}),
        ("reno bbr bbr2", {"bbr1": "bbr", "bbr2": "bbr2", "reno": "reno"}),  # Google's v2alpha
        ("reno bbr bbr1", {"bbr1": "bbr1", "bbr3": "bbr", "reno": "reno"}),  # Google's v3
        ("reno bbr bbr2 bbr3", {"bbr1": "bbr", "bbr2": "bbr2", "bbr3": "bbr3", "reno": "reno"}),  # the lab's
    ],
)
def test_what_a_kernel_calls_its_algorithms(available, names):
    assert host.ccas(available.split()) == names


def test_a_parameter_that_this_machine_cannot_set_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(host.os, "geteuid", lambda: 0)
    point = base_point(validate(scenario_dict(flows=[{"cca": "cubic", "params": {"beta": 900}}]), "s"))
    with pytest.raises(UserError, match=r"cubic has no parameter 'beta' in kernel host"):
        run_point(point, 1, tmp_path, backend="host")
