"""Real time beside virtual time: whether KVM works, how honest a run was, and one scenario in both (bbrlab crosscheck)."""

from __future__ import annotations

import csv
import json
import os
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.cli.commands import app
from bbrlab.comparison.compare import NOT_COMPARED, POINTS
from bbrlab.experiment.machine import strain
from bbrlab.experiment.machine.strain import Gauge, Strain
from bbrlab.kernel import probe
from bbrlab.kernel.built import get_kernel
from bbrlab.measure.checks.check import failed_of
from bbrlab.measure.checks.real_time import real_time_checks, real_time_entry
from bbrlab.measure.queues import Queue
from bbrlab.run import compatibility
from bbrlab.scenario.load import load_scenario, points_of
from bbrlab.scenario.messages import validate
from bbrlab_apps.crosscheck import runs as crosschecks
from bbrlab_apps.crosscheck.runs import Crosscheck
from bbrlab_apps.crosscheck.table import show_crosscheck
from docs._make import crosschecks as crosscheck_page
from tests.conftest import processes_of, scenario_dict
from tests.made_up import nothing_measured, whole_summary

HONEST = {"late_ms_median": 0.1, "late_ms_p99": 1.0, "late_ms_max": 9.0, "busy": 0.4, "waited": 0.01, "stolen": 0.0}


# KVM, where it works.


@pytest.fixture
def qemu(tmp_path, monkeypatch):
    """A QEMU that does what a line of shell says, and a /dev/kvm."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (tmp_path / "kvm").touch()

    def behave(line: str) -> None:
        (programs / probe.QEMU).write_text(f"#!/bin/sh\n{line}\n")
        (programs / probe.QEMU).chmod(0o755)

    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(probe, "KVM", tmp_path / "kvm")
    probe.kvm_fails.cache_clear()
    yield behave
    probe.kvm_fails.cache_clear()


def test_kvm_that_works_is_taken(qemu, tmp_path):
    qemu("echo probe end")
    assert probe.kvm_fails(tmp_path / "linux") == ""
    said: list[str] = []
    assert compatibility.accelerated(get_kernel(), said.append).acceleration == "kvm"
    assert said == []


def test_kvm_that_hangs_is_found_in_time(qemu, tmp_path, monkeypatch):
    """A machine that never comes up, and does not go when it is told to; the reason is said, and emulation taken."""
    monkeypatch.setattr(probe, "KVM_TIMEOUT_S", 0.5)
    qemu(f"trap '' TERM; exec sleep 1000 # {tmp_path}")
    start = time.monotonic()
    assert "did not come up within 0.5 s" in probe.kvm_fails(tmp_path / "linux")
    assert time.monotonic() - start < 20
    assert not processes_of(str(tmp_path / "programs")), "what hung is gone"
    said: list[str] = []
    assert compatibility.accelerated(get_kernel(), said.append).acceleration == "tcg"
    assert "emulated" in said[0] and "nested virtualisation" in said[0]


def test_kvm_that_is_not_there_or_not_allowed(qemu, tmp_path, monkeypatch):
    qemu("echo kvm: failed to initialize; exit 1")
    assert "kvm: failed to initialize" in probe.kvm_fails(tmp_path / "linux")
    probe.kvm_fails.cache_clear()
    monkeypatch.setattr(probe.os, "access", lambda path, mode: False)
    assert "group kvm" in probe.kvm_fails(tmp_path / "linux")
    probe.kvm_fails.cache_clear()
    (tmp_path / "kvm").unlink()
    assert "there is no" in probe.kvm_fails(tmp_path / "linux")


# How honest its time was.


def test_a_machine_that_is_busy_shows_it():
    gauge = Gauge()
    gauge.watch(os.getpid(), min(os.sched_getaffinity(0)))
    assert gauge.strain() is None
    gauge.look()
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    gauge.look()
    found = gauge.strain()
    assert found is not None and found.waited is not None
    assert found.busy > 0.02 and found.busy + found.waited <= 1.1


def test_what_others_took_is_counted(tmp_path, monkeypatch):
    """A thread that ran for 2 of 10 s and waited for 1, on a core of whose 1000 ticks a hypervisor stole 30."""
    seen = iter([
        ({7: (0, 0), 8: (0, 0)}, [0] * 8, 100.0),
        ({7: (10**8, 5 * 10**9), 8: (2 * 10**9, 10**9)}, [200, 0, 0, 770, 0, 0, 0, 30], 110.0),
    ])  # fmt: skip
    gauge = Gauge()
    gauge.watch(1, 0)
    for _ in range(2):
        threads, ticks, now = next(seen)
        monkeypatch.setattr(strain, "_threads", lambda pid, found=threads: found)
        monkeypatch.setattr(strain, "_ticks", lambda line, found=ticks: found)
        monkeypatch.setattr(strain.time, "monotonic", lambda found=now: found)
        gauge.look()
    assert gauge.strain() == Strain(busy=0.2, waited=0.1, stolen=0.03)


def test_a_whole_machine_is_looked_at_by_its_pressure(tmp_path, monkeypatch):
    (tmp_path / "stat").write_text("cpu  0 0 0 0 0 0 0 0 0 0\n")
    (tmp_path / "cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
    monkeypatch.setattr(strain, "STAT", tmp_path / "stat")
    monkeypatch.setattr(strain, "PRESSURE", tmp_path / "cpu")
    gauge = Gauge()
    monkeypatch.setattr(strain.time, "monotonic", lambda: 0.0)
    gauge.look()
    (tmp_path / "stat").write_text("cpu  300 0 100 550 40 0 0 10 0 0\n")
    (tmp_path / "cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n")
    monkeypatch.setattr(strain.time, "monotonic", lambda: 10.0)
    gauge.look()
    assert gauge.strain() == Strain(busy=0.41, waited=0.05, stolen=0.01)


def test_late_samples_of_the_window_are_counted():
    """Samples at 10 Hz over 10 s, the window from 5 s: two of its 51 samples come 8 and 20 ms late, all before it a second."""
    scenario = validate(scenario_dict(), "test")
    due = np.arange(101) / 10
    times = due + np.where(due < 5, 1.0, 0.0)
    times[60] += 0.020
    times[70] += 0.008
    entry = real_time_entry(scenario, {"forward": Queue({"time_s": times})}, Strain(0.5, None, 0.0))
    assert entry["late_ms_max"] == pytest.approx(20)
    assert entry["late_ms_median"] == pytest.approx(0)
    assert 8 < entry["late_ms_p99"] < 20
    assert (entry["busy"], entry["waited"]) == (0.5, None)
    nothing = real_time_entry(scenario, {"forward": Queue({"time_s": times[:3]})}, Strain(0.5, None, 0.0))
    assert nothing["late_ms_p99"] is None


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ({}, []),
        ({"late_ms_p99": 6.0}, ["late_timers"]),
        ({"waited": 0.02, "stolen": 0.02}, ["lost_time"]),
        ({"waited": None, "stolen": 0.04}, ["lost_time"]),
        ({"waited": None}, []),
        ({"busy": 0.95}, ["spare_time"]),
        ({"late_ms_p99": None}, []),
    ],
)
def test_a_machine_that_was_too_slow_is_refused(change, failed):
    checks = real_time_checks(HONEST | change)
    assert [c.name for c in checks] == ["late_timers", "lost_time", "spare_time"]
    assert [c.name for c in checks if c.ok is False] == failed
    if failed == ["spare_time"]:
        assert "--backend uml" in checks[2].detail


# Both.


@pytest.fixture
def both(tmp_path, monkeypatch):
    """Cross-checks of runs that are made up: real time has ``shift`` more share; seeds in ``slow`` are refused."""
    rng = np.random.default_rng(1)

    def go(shift: float = 0.0, slow: tuple[int, ...] = (), seeds: int = 4, *options: str):
        def run_point(point, seed, out, *, backend, **_: object):
            real = backend != "uml"
            share = 0.5 + (shift if real else 0.0) + 0.005 * float(rng.standard_normal())
            late = HONEST | ({"busy": 0.99} if seed in slow else {})
            checks = [{"name": c.name, "asked": c.asked, "measured": c.measured, "ok": c.ok, "detail": c.detail}
                      for c in real_time_checks(late)] if real else []  # fmt: skip
            extra = {"real_time": late} if real else {}
            summary = whole_summary(
                nothing_measured(share_of_capacity=share), checks=checks, ok=not failed_of(checks), **extra
            )
            out.mkdir(parents=True)
            (out / "summary.json").write_text(json.dumps(summary))
            return summary

        monkeypatch.setattr(crosschecks, "run_point", run_point)
        file = tmp_path / "scenario.yaml"
        file.write_text(json.dumps(scenario_dict(window_s=[5, 5.01])))
        argv = [
            "crosscheck",
            str(file),
            "--backend",
            "qemu",
            "--seeds",
            str(seeds),
            "--out",
            str(tmp_path / "out"),
            *options,
        ]
        return CliRunner().invoke(app, argv)

    return go


def test_both_times_agree(both, tmp_path):
    done = both(0.0, (), 4, "--json", "--csv", str(tmp_path / "table.csv"))
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("note: window_s [5, 5.01] has no sample but those at its edges")
    found = json.loads(done.stdout)
    (row,) = [r for r in found["points"] if r["metric"] == "share_of_capacity"]
    assert row["low"] < 0 < row["high"]
    assert len(found["runs"]) == 4 and all(run["ok"] for run in found["runs"])
    assert found["runs"][0]["real_time"]["late_ms_p99"] == 1.0
    with open(tmp_path / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["backend"] for row in rows} == {"qemu"} and {row["refused"] for row in rows} == {"0"}


def test_a_difference_is_told(both):
    done = both(0.1)
    assert done.exit_code == 1, done.output
    assert "differs" in done.output


def test_refused_runs_do_not_count(both):
    done = both(0.0, (1, 2), 4, "--json")
    found = json.loads(done.stdout)
    (row,) = [r for r in found["points"] if r["metric"] == "share_of_capacity"]
    assert (row["a_seeds"], row["b_seeds"]) == (4, 2)
    assert [run["failed"] for run in found["runs"]] == [["spare_time"], ["spare_time"], [], []]


def test_a_machine_that_was_too_slow_for_all_runs(both):
    done = both(0.0, (1, 2, 3, 4))
    assert isinstance(done.exception, UserError)
    assert "every run in real time was refused" in str(done.exception) and "spare_time" in str(done.exception)


@pytest.mark.parametrize(
    ("seeds", "options", "words"),
    [
        (1, [], "--seeds 1: an interval needs at least 2"),
        (0, [], "--seeds 0: an interval needs at least 2"),
        (4, ["--metric", "los"], "--metric los: there is no such metric"),
        (4, ["--csv", "/proc/table.csv"], "/proc/table.csv: "),
        (4, ["--real-kernel", "linux-2.0"], "linux-2.0: no such kernel"),
    ],
)
def test_a_slip_is_told_before_anything_runs(both, tmp_path, seeds, options, words):
    """Hours of runs in real time would come first."""
    done = both(0.0, (), seeds, *options)
    assert isinstance(done.exception, UserError) and words in str(done.exception), done.output
    assert not (tmp_path / "out").exists()


def test_the_backend_that_is_there(monkeypatch, tmp_path):
    points = points_of(validate(scenario_dict(), "s"))
    monkeypatch.setattr(crosschecks.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(crosschecks.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match=r"apt-get install qemu-system-x86.*host: needs root"):
        crosschecks.real_backend(points)
    monkeypatch.setattr(crosschecks.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert crosschecks.real_backend(points) == "qemu"
    monkeypatch.setattr(crosschecks.os, "geteuid", lambda: 0)
    monkeypatch.setattr(crosschecks, "OPEN_VSWITCH", tmp_path / "none")
    assert "Open vSwitch" in crosschecks._host_lacks({"cubic"})
    monkeypatch.setattr(crosschecks, "OPEN_VSWITCH", tmp_path)
    monkeypatch.setattr(crosschecks.host, "AVAILABLE", tmp_path / "available")
    monkeypatch.setattr(crosschecks.host.os, "geteuid", lambda: 0)
    (tmp_path / "available").write_text("reno cubic\n")
    assert "bbr1" in crosschecks._host_lacks({"cubic", "bbr1"})
    assert crosschecks.real_backend(points) == "host"


def test_the_cross_check_that_ships_has_every_algorithm():
    points = points_of(load_scenario(paths.DATA / "crosschecks" / "algorithms.yaml"))
    assert {p.scenario.flows[0].cca for p in points} == {"bbr1", "bbr2", "bbr3", "cubic", "reno", "dctcp"}
    assert {p.scenario.duration_s for p in points} == {20}
    assert {p.scenario.flows[0].cca for p in points if p.scenario.hosts.ecn == "on"} == {"dctcp"}


def test_the_page_has_the_cross_checks_that_ship():
    ccas = {row.split("|")[1].strip() for row in crosscheck_page.table().splitlines() if "share of capacity" in row}
    assert ccas == {"bbr1", "bbr2", "bbr3", "cubic", "reno"}, "DCTCP's have to be made again, with ECN"


def test_a_run_in_real_time_is_told_by_all_its_values(capsys):
    run = {"point": "rate_mbit=1,buffer.bdp=2,0123456789", "seed": 1, "ok": True, "failed": [], "real_time": None}
    show_crosscheck(Crosscheck("s", "qemu", pd.DataFrame(columns=list(POINTS)), [run], {"virtual": "v", "real": "r"}))
    assert "real time, rate_mbit=1,buffer.bdp=2, seed 1: passed" in capsys.readouterr().out


def test_a_cross_check_that_compares_nothing_is_no_pass(monkeypatch, tmp_path):
    """Runs that passed, of which none observed what was asked for."""
    row = dict.fromkeys(POINTS, float("nan")) | {
        "point": "p", "cca": "", "metric": "loss", "unit": "1", "a_seeds": 0, "b_seeds": 0, "outcome": NOT_COMPARED,
    }  # fmt: skip
    nothing = Crosscheck("s", "host", pd.DataFrame([row]), [], {"virtual": "v", "real": "r"})
    assert not nothing.compared
    monkeypatch.setattr(crosschecks, "crosscheck", lambda *args, **more: nothing)
    scenario = str(paths.SCENARIOS / "tang" / "fig2.yaml")
    ended = CliRunner().invoke(app, ["crosscheck", scenario, "--backend", "host", "--out", str(tmp_path)])
    assert isinstance(ended.exception, UserError) and "no metric has a number in both times" in str(ended.exception)
