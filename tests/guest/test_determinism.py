"""One seed, one result: byte for byte, whatever else the machine does and wherever things lie."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from tests.conftest import scenario_dict

pytestmark = pytest.mark.guest
MIX = [{"cca": "bbr1", "count": 2}, {"cca": "cubic"}, {"cca": "reno", "start_s": 2, "stop_s": 8}]
SPIN = "while True: pass"


def run_in_process(folder: Path, seed: int = 1, under: tuple[str, ...] = (), **environment: str) -> Path:
    """A run in a process of its own, as a campaign makes them, started by the command ``under``."""
    scenario = folder.parent / "s.yaml"
    scenario.write_text(json.dumps(scenario_dict(flows=MIX)))
    argv = [
        *under,
        sys.executable,
        "-m",
        "bbrlab.cli.main",
        "run",
        str(scenario),
        "--seed",
        str(seed),
        "--out",
        str(folder),
        "--quiet",
    ]
    subprocess.run(argv, check=True, env={**os.environ, **environment}, cwd=paths.ROOT)
    return folder


def content(folder: Path) -> tuple[dict[str, bytes], dict]:
    summary = json.loads((folder / "summary.json").read_text())
    assert summary.pop("wall_s") > 0  # the only wall-clock field
    assert summary["ok"] is True, [c for c in summary["checks"] if c["ok"] is False]
    return {table.name: table.read_bytes() for table in sorted(folder.glob("*.parquet"))}, summary


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return content(run_in_process(tmp_path_factory.mktemp("reference") / "out"))


def test_two_guests_at_once(reference, tmp_path):
    folders = [tmp_path / name / "out" for name in "ab"]
    for folder in folders:
        folder.parent.mkdir()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run_in_process, folders))
    for folder in folders:
        assert content(folder) == reference


def test_with_all_cores_loaded(reference, tmp_path):
    load = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(len(os.sched_getaffinity(0)))]
    try:
        assert content(run_in_process(tmp_path / "out")) == reference
    finally:
        for process in load:
            process.kill()
            process.wait()


def test_where_root_is_not_mapped(reference, tmp_path):
    """The host's programs are somebody else's there, that of `mount` with its setuid bit, too."""
    enter = ("unshare", "--user", "--map-user=1", "--map-group=1")
    if subprocess.run([*enter, "true"], capture_output=True).returncode:
        pytest.skip("this machine gives no user namespaces")
    assert content(run_in_process(tmp_path / "out", under=enter)) == reference


def test_with_other_folders(reference, tmp_path):
    """Neither the place of temporary files nor that of the checkout, nor the age of byte code, may change a result."""
    elsewhere = tmp_path / "a rather, long" / "path"
    elsewhere.mkdir(parents=True)
    code = elsewhere / "guest code"
    shutil.copytree(paths.GUEST_CODE, code)
    point = base_point(validate(scenario_dict(flows=MIX), "s"))
    before = paths.GUEST_CODE, os.environ.get("TMPDIR")
    paths.GUEST_CODE = code
    os.environ["TMPDIR"] = str(elsewhere)
    try:
        run_point(point, 1, tmp_path / "out")
    finally:
        paths.GUEST_CODE = before[0]
        os.environ.pop("TMPDIR")
        if before[1]:
            os.environ["TMPDIR"] = before[1]
    assert content(tmp_path / "out") == reference


NOISY = {
    "flows": [*MIX, {"cca": "dctcp", "start_s": 3, "rtt_ms": 25}],
    "network__loss": 0.002,
    "network__jitter": {"kind": "per-packet", "ms": 3, "group": 0},
    "network__qdisc": {"kind": "fq_codel", "ecn": True},
}


# Many flows, whose programs draw names of temporary files, and which draw how long to wait before they probe.
MANY = {"flows": [{"cca": "bbr2", "count": 5}, {"cca": "bbr3", "count": 5}], "network__rtt_ms": [30, 40]}

SHORT = {
    "network__rate_mbit": 100,
    "network__rtt_ms": 10,
    "flows": [{"cca": "bbr3", "traffic": {"mode": "synthetic", "offered_mbit": 60, "senders": 2}}],
    "duration_s": 5,
    "window_s": [0, 5],
}

# More connections on a host than fq, as it comes, would remember.
CONNECTIONS = {
    "network__rate_mbit": 3000,
    "network__rtt_ms": 10,
    "network__buffer__bdp": 8,
    "hosts__pacing": "fq",
    "flows": [{"cca": "bbr3", "traffic": {"offered_mbit": 1250, "senders": 2}}],
    "duration_s": 10,
    "window_s": [0, 10],
}


def run_with_other_code(point, seed: int, code: Path, out: Path):
    before, paths.GUEST_CODE = paths.GUEST_CODE, code
    try:
        run_point(point, seed, out)
    finally:
        paths.GUEST_CODE = before
    return content(out)


def guest_code(folder: Path, step: str, other: str) -> Path:
    """A copy of the guest's program that does something else before a step."""
    shutil.copytree(paths.GUEST_CODE, folder)
    program = (folder / "guest.py").read_text()
    assert program.count(step) == 1
    (folder / "guest.py").write_text(program.replace(step, other + step))
    return folder


@pytest.mark.parametrize(
    "changes",
    [{"flows": MIX}, NOISY, MANY, *(pytest.param(more, marks=pytest.mark.slow) for more in (SHORT, CONNECTIONS))],
    ids=["plain", "noisy", "many", "short", "connections"],
)
def test_with_another_set_up(changes, tmp_path):
    """What the set-up does, how long it takes, and what random numbers it draws (all differ between versions of
    Debian) must make no difference to the experiment."""
    other = (
        "        import asyncio, subprocess; os.urandom(77); subprocess.run(['ls', '/usr']); time.sleep(0.3712345678)\n"
    )
    code = guest_code(tmp_path / "guest", "        dumbbell = Dumbbell(plan", other)
    point = base_point(validate(scenario_dict(**changes), "s"))
    run_point(point, 1, tmp_path / "reference")
    assert run_with_other_code(point, 1, code, tmp_path / "out") == content(tmp_path / "reference")


@pytest.mark.parametrize("seed", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_with_a_program_that_draws_more(seed, tmp_path):
    """What programs draw, even during the experiment, moves none of the numbers that TCP draws."""
    step = "        traffic.start_due(instant)\n"
    point = base_point(validate(scenario_dict(**MANY), "s"))
    results = [
        run_with_other_code(
            point, seed, guest_code(tmp_path / name, step, f"        {call}\n"), tmp_path / f"out-{name}"
        )
        for name, call in (("none", "os.getppid()"), ("more", "os.getrandom(8)"))  # one system call either way
    ]
    assert results[0] == results[1]


def test_the_machine_is_the_same(tmp_path):
    """Its memory, too, to the page: the host's address randomization must not reach it."""
    files = 'open("/proc/vmstat").read() + open("/proc/meminfo").read() + open("/proc/interrupts").read()'
    code = guest_code(tmp_path / "guest", "        sampler.close()\n", f'        report["machine"] = {files}\n')
    point = base_point(validate(scenario_dict(flows=MIX), "s"))
    machines = []
    for name in "abc":
        run_with_other_code(point, 1, code, tmp_path / name)
        machines.append(json.loads((tmp_path / name / "manifest.json").read_text())["report"]["machine"])
    assert "MemTotal" in machines[0]
    assert machines[0] == machines[1] == machines[2]


def test_different_seeds_differ(reference, tmp_path):
    samples, summary = content(run_in_process(tmp_path / "out", seed=2))
    assert samples != reference[0]
    assert [f["goodput_mbit"] for f in summary["flows"]] != [f["goodput_mbit"] for f in reference[1]["flows"]]
