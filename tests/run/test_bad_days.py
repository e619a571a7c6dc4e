"""Bad input and bad days: one clear message, a non-zero exit, nothing half-written, no stray process."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from bbrlab.base import files, outputs, paths
from bbrlab.base.errors import UserError
from bbrlab.base.locks import owned_folder, remove_abandoned
from bbrlab.cli.commands import app
from bbrlab.experiment.machine import cores, process
from bbrlab.experiment.plan import make_plan
from bbrlab.kernel import build, probe, sources
from bbrlab.kernel.build import build_kernel, renew_kernel
from bbrlab.kernel.built import get_kernel, kernel_identity
from bbrlab.kernel.key import build_key, host_key
from bbrlab.kernel.options import lost_options
from bbrlab.kernel.specs import find_spec, load_specs
from bbrlab.results.figures import figures_at, runs_of
from bbrlab.results.tables import figure_table
from bbrlab.run import compatibility
from bbrlab.run.evaluate import evaluate
from bbrlab.run.guest import keep_console
from bbrlab.run.output import RESULTS, prepare_out, result_folder, write_results
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from tests.conftest import processes_of, scenario_dict, wait_for

BBRLAB = [sys.executable, "-m", "bbrlab.cli.main"]
BAD_SECONDS = ["-5", "0", "nan", "inf"]
LONG = {"duration_s": 5000, "window_s": [10, 5000]}


@pytest.fixture
def scenario_file(tmp_path):
    def write(**changes) -> Path:
        path = tmp_path / "s.yaml"
        path.write_text(yaml.safe_dump(scenario_dict(**changes)))
        return path

    return write


def bbrlab(*argv: object, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*BBRLAB, *map(str, argv)], capture_output=True, text=True, cwd=paths.ROOT, timeout=120, **options
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["run", "none.yaml", "--out", "x"], ["none.yaml", "cannot be read"]),
        (
            ["run", "{scenario}", "--out", "{out}", "--set", "network.bufer=1"],
            ["network.bufer", "did you mean 'buffer'"],
        ),
        (["run", "{scenario}", "--out", "{out}", "--set", "nonsense"], ["--set nonsense", "PATH=VALUE"]),
        (["run", "{scenario}", "--out", "{out}", "--backend", "cloud"], ["--backend cloud", "uml"]),
        (["run", "{scenario}", "--out", "{out}", "--kernel", "none"], ["--kernel none", "lab-6.12"]),
        (["run", "{scenario}", "--out", "{out}", "--seed", "-3"], ["--seed -3"]),
        (
            ["run", "{scenario}", "--out", "{out}", "--set", "flows.0.params={speed: 1}"],
            ["cubic has no parameter 'speed'", "beta"],
        ),
        (["run", "{scenario}"], ["--out"]),
        (["forecast", "nobody/fig1"], ["nobody/fig1", "sarpkaya2025"]),
        (["forecast", "--scale", "huge"], ["scale huge", "smoke, quick, full"]),
        (["frobnicate"], ["frobnicate"]),
    ],
    ids=lambda v: " ".join(v[-2:]) if isinstance(v, list) else "",
)
def test_one_clear_message(scenario_file, tmp_path, argv, words):
    names = {"{scenario}": scenario_file(), "{out}": tmp_path / "out"}
    done = bbrlab(*[names.get(a, a) for a in argv])
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert all(word in done.stderr for word in words), done.stderr
    assert not (tmp_path / "out" / "summary.json").exists()


def test_a_cca_that_the_kernel_lacks(tmp_path, monkeypatch):
    real = get_kernel()
    poorer = dataclasses.replace(real, ccas={k: v for k, v in real.ccas.items() if k != "bbr3"})
    monkeypatch.setattr(compatibility, "get_kernel", lambda name: poorer)
    point = base_point(validate(scenario_dict(flows=[{"cca": "bbr3"}]), "s"))
    with pytest.raises(UserError, match=r"this kernel has no bbr3 \(it has .*bbr2.*--kernel"):
        run_point(point, 1, tmp_path)
    assert not (tmp_path / "summary.json").exists()


def test_out_is_a_file(scenario_file, tmp_path):
    (tmp_path / "out").write_text("mine")
    done = bbrlab("run", scenario_file(), "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "is a file" in done.stderr
    assert (tmp_path / "out").read_text() == "mine"


def own_mounts() -> list[str] | None:
    """A command that gives what follows mounts of its own; None where this machine allows none (as in many containers)."""
    ways = [["-Urm"]] if os.geteuid() else [["-m"], ["-Urm"]]
    if not os.geteuid() and "shared:" not in Path("/proc/self/mountinfo").read_text(encoding="utf-8"):
        ways.append(["-m", "--propagation", "unchanged"])  # in a chroot, where nothing gets out anyway
    for flags in ways:
        argv = ["unshare", *flags]
        with contextlib.suppress(OSError):
            tried = [*argv, "sh", "-c", "mount -t tmpfs none /tmp"]
            if subprocess.run(tried, capture_output=True).returncode == 0:
                return argv
    return None


def in_namespace(script: str, *argv: object) -> subprocess.CompletedProcess[str]:
    """Run a shell script as root of a mount namespace of its own, and of a user namespace if need be."""
    enter = own_mounts()
    if enter is None:
        pytest.skip("neither `unshare -m` nor `unshare -Urm` may mount a tmpfs here (no user namespaces?)")
    command = [*enter, "sh", "-c", script, "sh", *map(str, argv)]
    return subprocess.run(command, capture_output=True, text=True, cwd=paths.ROOT, timeout=120)


@pytest.mark.guest
def test_out_is_read_only(scenario_file, tmp_path):
    (tmp_path / "out").mkdir()
    script = 'mount -t tmpfs -o ro none "$1" && shift && exec "$@"'
    done = in_namespace(script, tmp_path / "out", *BBRLAB, "run", scenario_file(), "--out", tmp_path / "out")
    assert done.returncode == 2, done.stderr
    assert f"{tmp_path / 'out'}: no permission" in done.stderr


@pytest.mark.guest
def test_disk_full(scenario_file, tmp_path):
    """The disk fills while results are written: nothing of them stays."""
    (tmp_path / "out").mkdir()
    script = 'out=$1; mount -t tmpfs -o size=64k none "$out"; shift; "$@"; code=$?; ls "$out"; exit $code'
    done = in_namespace(
        script, tmp_path / "out", *BBRLAB, "run", scenario_file(duration_s=200), "--out", tmp_path / "out", "--quiet"
    )
    assert done.returncode == 2, done.stderr
    assert f"{tmp_path / 'out'}: the file system has no space" in done.stderr
    assert "TMPDIR" not in done.stderr
    assert "summary.json" not in done.stdout
    assert "partial" not in done.stdout


@pytest.mark.guest
def test_temporary_disk_full(scenario_file, tmp_path):
    """The guest's own folder fills up: that folder is named, and not the one of the results."""
    (tmp_path / "tmp").mkdir()
    script = 'mount -t tmpfs -o size=30m none "$1"; export TMPDIR="$1"; shift; exec "$@"'
    done = in_namespace(script, tmp_path / "tmp", *BBRLAB, "run", scenario_file(), "--out", tmp_path / "out", "--quiet")
    assert done.returncode == 2
    assert f"{tmp_path / 'tmp'} had 29 MiB free, but the guest's memory" in done.stderr, done.stderr
    assert "set TMPDIR to another folder" in done.stderr
    assert str(tmp_path / "out: the disk") not in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "summary.json").exists()


def test_no_room_for_the_guests_input(scenario_file, tmp_path):
    """TMPDIR is full before the guest starts: it is named, and not the folder of the results."""
    (tmp_path / "tmp").mkdir()
    script = 'mount -t tmpfs -o size=4k,nr_inodes=6 none "$1"; export TMPDIR="$1"; shift; exec "$@"'
    done = in_namespace(script, tmp_path / "tmp", *BBRLAB, "run", scenario_file(), "--out", tmp_path / "out", "--quiet")
    assert done.returncode == 2
    assert f"{tmp_path / 'tmp'}: the file system has no space" in done.stderr, done.stderr
    assert "TMPDIR" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"not parquet", None])
@pytest.mark.parametrize("command", [["points", "{f}", "--out", "{o}"], ["verdicts", "{c}"]], ids=lambda c: c[0])
def test_a_damaged_table_is_named(tmp_path, command, content):
    path = tmp_path / "paper" / ("statements.parquet" if command[0] == "verdicts" else "fig1.parquet")
    path.parent.mkdir()
    if content is not None:
        path.write_bytes(content)
    names = {"{f}": path, "{c}": path.with_name("claims.parquet"), "{o}": tmp_path / "out.parquet"}
    done = bbrlab(*[names.get(a, a) for a in command])
    assert done.returncode == 2
    assert done.stderr.startswith(f"bbrlab: {path}: is {'damaged' if content is not None else 'not there'}"), (
        done.stderr
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", ["", '{"groups": [', "[1, 2", "\ufffd", None])
def test_a_damaged_summary_is_named(tmp_path, monkeypatch, content):
    monkeypatch.setenv("BBRLAB_RESULTS", str(tmp_path))
    (figure,) = figures_at("smoke", ["tang/fig2"])
    path = runs_of(figure)[0].folder / "summary.json"
    path.parent.mkdir(parents=True)
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=re.escape(f"{path}: is {'damaged' if content is not None else 'missing'}")):
        figure_table(figure)


def test_a_broken_notebook_is_named(tmp_path):
    (tmp_path / "n.ipynb").write_text("{")
    for name, words in (("n.ipynb", "is no notebook"), ("none.ipynb", "is not there")):
        done = bbrlab("execute", tmp_path / name, "--out", tmp_path / "n.ipynb")
        assert done.returncode == 2
        assert done.stderr.startswith(f"bbrlab: {tmp_path / name}: {words}"), done.stderr


def test_a_table_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    capture = tmp_path / "none.pcap"
    done = bbrlab("traffic", capture, "--out", tmp_path / "x.csv")
    assert done.returncode == 2
    assert str(capture) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def guest_program(tmp_path, monkeypatch):
    """Puts a program in the place of the guest's own."""

    def put(text: str) -> None:
        shutil.copytree(paths.GUEST_CODE, tmp_path / "code")
        (tmp_path / "code" / "guest.py").write_text(text)
        monkeypatch.setattr(paths, "GUEST_CODE", tmp_path / "code")

    return put


@pytest.mark.guest
def test_a_guest_that_hangs_is_ended(tmp_path, guest_program):
    guest_program("while True: pass\n")
    with pytest.raises(UserError, match=r"hung while setting up: no sign of life for 2 s.*guest\.log"):
        run_point(base_point(validate(scenario_dict(), "s")), 1, tmp_path / "out", watchdog_s=2)
    assert not (tmp_path / "out" / "summary.json").exists()


def _has_just_run(pid: int) -> None:
    """Wait until it had the core: Linux adds a wait to its statistics when the wait ends, on a busy machine after seconds."""
    before = process._delays_ns(pid)
    assert wait_for(lambda: process._delays_ns(pid) != before, 120)


def test_waiting_for_a_core_is_no_silence():
    """Beside a busy process on its core a guest of low priority hardly runs: it does not hang. One that sleeps does."""
    core = str(min(os.sched_getaffinity(0)))
    pinned = ["taskset", "-c", core]
    with contextlib.ExitStack() as stack:
        busy, starved, asleep = (
            stack.enter_context(subprocess.Popen([*pinned, *nice, sys.executable, "-c", text]))
            for nice, text in (
                ([], "while True: pass"),
                (["nice", "-n", "19"], "while True: pass"),
                ([], "import time; time.sleep(60)"),
            )
        )
        for child in (busy, starved, asleep):
            stack.callback(child.kill)
        time.sleep(1)  # they start
        _has_just_run(starved.pid)
        silences = [process._Silence(child.pid) for child in (starved, asleep)]
        time.sleep(2)
        _has_just_run(starved.pid)
        waiting_s, asleep_s = (silence.lasts_s(look_s=0.1) for silence in silences)
    assert asleep_s > 1.9
    assert waiting_s < asleep_s / 2
    silences[1].broken()
    assert silences[1].lasts_s(look_s=60) == 0


@pytest.mark.slow
@pytest.mark.guest
def test_a_guest_without_memory_says_so(tmp_path, guest_program):
    guest_program("kept = [b'x' * (1 << 20) for _ in range(4096)]\n")
    # Its memory in a file on a disk, as in the container, and it comes to the end of the host's maps first.
    with pytest.raises(
        UserError, match=r"the guest's \d+ MiB of memory did not suffice|gives the guest no more memory"
    ):
        run_point(base_point(validate(scenario_dict(), "s")), 1, tmp_path / "out")


@pytest.mark.guest
def test_a_host_without_memory_for_its_guest_is_named(tmp_path, guest_program):
    """As User-Mode Linux says it, by the guest's own console."""
    guest_program(
        "import os, time\nos.mknod('/run/says', 0o020600, os.makedev(1, 11))\n"  # /dev/kmsg
        "open('/run/says', 'w').write('<0>UML ran out of memory on the host side! This can happen')\ntime.sleep(5)\n"
    )
    with pytest.raises(UserError, match=r"gives the guest no more memory.*vm\.max_map_count.*guest\.log"):
        run_point(base_point(validate(scenario_dict(), "s")), 1, tmp_path / "out")


@pytest.mark.guest
def test_a_guest_that_breaks_says_why(tmp_path, guest_program):
    guest_program("raise RuntimeError('the cable is loose')\n")
    with pytest.raises(UserError, match=r"(?s)guest\.log.*the cable is loose"):
        run_point(base_point(validate(scenario_dict(), "s")), 1, tmp_path / "out")


def read_back(tmp_path: Path, flows: list[dict[str, object]], failures: list[object], samples: bytes = b"") -> None:
    """Evaluate what a guest left in a folder."""
    point = base_point(validate(scenario_dict(flows=flows, duration_s=10, window_s=[5, 10]), "s"))
    plan = make_plan(point, 1, {"cubic": "cubic"})
    (tmp_path / "report.json").write_text(json.dumps({"traffic_failures": failures}))
    (tmp_path / "samples.raw").write_bytes(samples)
    evaluate(point, 1, "uml", plan, None, tmp_path)


def test_samples_that_are_cut_off_are_told(tmp_path):
    with pytest.raises(UserError, match=r"what the guest wrote cannot be read \(samples.raw is cut off.*guest.log"):
        read_back(tmp_path, [{"cca": "cubic"}], [], samples=b"\0" * 17)


SHORT = [{"cca": "cubic", "traffic": {"offered_mbit": 10}}]
LOGS = {"short-0-send-0.log": "", "short-0-send-1.log": "", "short-0-receive-0.log": "", "short-0-read.log": ""}


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({}, r"short-0-read.log does not say what the receiver had read at 5 s and at 10 s"),
        ({"short-0-send-1.log": "3 0 12"}, "short-0-send-1.log is cut off within its last line"),
        ({"short-0-receive-0.log": None}, "the guest did not write short-0-receive-0.log"),
    ],
)
def test_a_receiver_that_died_is_told_first(tmp_path, broken, words):
    for name, text in (LOGS | broken).items():
        if text is not None:
            (tmp_path / name).write_text(text)
    died = [["short flows of group 0, receive", "short_flows.py ended with 1"]]
    with pytest.raises(UserError, match=rf"short flows of group 0, receive: short_flows.py ended with 1; .*{words}"):
        read_back(tmp_path, SHORT, died)


def test_what_short_flows_said_last_is_in_the_log(tmp_path):
    (tmp_path / "console.log").write_text("of the guest\n")
    (tmp_path / "short-0-receive-0.err").write_text("MemoryError\n")
    (tmp_path / "short-0-send-0.err").write_text("")
    keep_console(tmp_path, tmp_path / "guest.log")
    assert (tmp_path / "guest.log").read_text() == "of the guest\nshort-0-receive-0:\nMemoryError\n"


def start(tmp_path: Path, scenario: Path) -> tuple[subprocess.Popen[str], Path]:
    """A long run in the background, once its guest is in the experiment."""
    temporary = tmp_path / "scratch"
    temporary.mkdir()
    process = subprocess.Popen(
        [*BBRLAB, "run", str(scenario), "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=paths.ROOT, env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    log = tmp_path / "out" / "guest.log"
    assert wait_for(lambda: bool(processes_of(str(temporary))) and log.exists())
    time.sleep(3)
    assert process.poll() is None
    return process, temporary


@pytest.mark.guest
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(scenario_file, tmp_path, number):
    process, temporary = start(tmp_path, scenario_file(**LONG))
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert processes_of(str(temporary)) == []
    assert list(temporary.glob("bbrlab-*")) == []
    assert not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.guest
def test_killed_guest(scenario_file, tmp_path):
    process, temporary = start(tmp_path, scenario_file(**LONG))
    guest = min(p for p in processes_of(str(temporary)) if p != process.pid)
    os.kill(guest, signal.SIGKILL)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "killed by signal 9" in errors
    assert "guest.log; most often there was too little memory: run fewer at once" in errors
    assert processes_of(str(temporary)) == []
    assert not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.guest
def test_killed_run_takes_its_guest_along(scenario_file, tmp_path):
    process, temporary = start(tmp_path, scenario_file(**LONG))
    process.kill()
    process.communicate(timeout=20)
    assert wait_for(lambda: processes_of(str(temporary)) == [])
    assert not (tmp_path / "out" / "summary.json").exists()


@pytest.mark.guest
def test_an_old_result_does_not_stand_beside_half_a_new_one(scenario_file, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").write_text("{}")
    (tmp_path / "out" / "manifest.json").write_text(json.dumps({"scenario": {}, "seed": 1, "plan_sha256": "0"}))
    process, _ = start(tmp_path, scenario_file(**LONG))
    process.kill()
    process.communicate(timeout=20)
    assert not (tmp_path / "out" / "summary.json").exists()


@pytest.fixture
def old_result(tmp_path) -> Path:
    """A folder with every file that a run or a play leaves, and one of somebody's own."""
    out = tmp_path / "out"
    out.mkdir()
    for name in RESULTS:
        (out / name).write_text(f"old {name}")
    (out / "manifest.json").write_text(json.dumps({"scenario": {}, "seed": 1, "plan_sha256": "0"}))
    (out / "notes.txt").write_text("mine")
    return out


def test_what_was_made_of_an_old_result_goes_with_it(old_result):
    """Its page and its qlogs, and nobody's own files of these names."""
    (old_result / "index.html").write_bytes(outputs.PAGE)
    (old_result / "flow-0.sqlog").write_bytes(outputs.QLOG)
    (old_result / "flow-12.sqlog.gz").write_bytes(gzip.compress(outputs.QLOG))
    (old_result / "flow-1.sqlog").write_text("mine")
    with result_folder(old_result) as result:
        assert len(list(old_result.glob("flow-*"))) == 3, "until the guest starts"
        result.begin()
        (old_result / "summary.json").touch()
    assert sorted(path.name for path in old_result.iterdir()) == [
        ".bbrlab-run",
        "flow-1.sqlog",
        "notes.txt",
        "summary.json",
    ]


def test_a_run_into_the_folder_of_a_study_leaves_the_study_its_page(tmp_path):
    (tmp_path / "index.html").write_bytes(outputs.PAGE)
    with result_folder(tmp_path) as result:
        result.begin()
    assert (tmp_path / "index.html").exists()


def content_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--kernel", "nosuch"], "--kernel nosuch"),
        (["--set", "flows.0.params={nosuch: 1}"], "flows.0.params.nosuch: cubic has no parameter 'nosuch' in kernel"),
        (["--trace-acks", "--trace-changes"], "--trace-acks and --trace-changes: give one of them"),
        (
            ["--trace-acks", "--sender-kernel", "0=lab-6.1-qemu"],
            "--trace-acks, --trace-changes: not with --sender-kernel",
        ),
        (["--sender-kernel", "0=lab-6.1-qemu"], "need --backend qemu"),
        (["--seed", "-3"], "--seed -3"),
        *[(["--watchdog-s", n], f"--watchdog-s {n}: must be a finite number of seconds above 0") for n in BAD_SECONDS],
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_mistake_keeps_the_old_result_and_leaves_no_folder(scenario_file, old_result, tmp_path, argv, words):
    before = content_of(old_result)
    for out in (old_result, tmp_path / "new"):
        done = CliRunner().invoke(app, ["run", str(scenario_file()), "--out", str(out), *argv])
        assert isinstance(done.exception, UserError) and words in str(done.exception), done.output
        assert "\n" not in str(done.exception)
    assert content_of(old_result) == before
    assert not (tmp_path / "new").exists()


def test_a_kernel_without_records_of_acks_is_refused_for_a_trace():
    kernel = get_kernel(None)
    compatibility.check_trace(kernel)
    other = dataclasses.replace(kernel, name="theirs", parameters={"bbr": ["kept"]})
    with pytest.raises(UserError, match="--trace-acks, --trace-changes: the kernel theirs keeps no records of ACKs"):
        compatibility.check_trace(other)


@pytest.mark.parametrize("seconds", BAD_SECONDS)
def test_a_play_without_a_watchdog_is_refused_before_it_begins(scenario_file, old_result, monkeypatch, seconds):
    monkeypatch.setattr("bbrlab_apps.play.session.Session", lambda *arguments: pytest.fail("it began"))
    before = content_of(old_result)
    done = CliRunner().invoke(
        app, ["play", str(scenario_file()), "--out", str(old_result), "--watchdog-s", seconds, "--plain"]
    )
    assert isinstance(done.exception, UserError) and f"--watchdog-s {seconds}" in str(done.exception), done.output
    assert content_of(old_result) == before


def test_the_old_result_stays_until_the_guest_starts(old_result, monkeypatch):
    """Also where the guest's input finds no room, or the wait for a core is interrupted."""
    before = content_of(old_result)
    point = base_point(validate(scenario_dict(), "s"))

    def full(*arguments: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(UserError, match="no space or no inodes"):
        patch.setattr("bbrlab.run.run.write_inputs", full)
        run_point(point, 1, old_result)
    assert content_of(old_result) == before

    @contextlib.contextmanager
    def interrupted(*arguments: object):
        raise KeyboardInterrupt
        yield

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(process, "one_core", interrupted)
        run_point(point, 1, old_result)
    assert content_of(old_result) == before

    popen = subprocess.Popen

    def at_its_start(argv: list[str], **options: object) -> object:
        if argv[0] != "taskset":
            return popen(argv, **options)
        assert content_of(old_result) == {"notes.txt": "mine", ".bbrlab-run": ""}
        raise OSError(errno.EAGAIN, "no more processes", "taskset")

    with monkeypatch.context() as patch, pytest.raises(UserError, match="no more processes|temporarily unavailable"):
        patch.setattr(process.subprocess, "Popen", at_its_start)
        run_point(point, 1, old_result)
    assert content_of(old_result) == {"notes.txt": "mine"}


@pytest.mark.parametrize("content", ['{"name": "an app", "start_url": "/"}', "[1]", "", "{"])
def test_a_manifest_that_is_not_of_a_run_is_not_replaced(scenario_file, tmp_path, content):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text(content)
    done = CliRunner().invoke(app, ["run", str(scenario_file()), "--out", str(tmp_path / "out")])
    assert str(done.exception).startswith(f"--out {tmp_path / 'out'}: has a manifest.json that is not of a run"), (
        done.output
    )
    assert content_of(tmp_path / "out") == {"manifest.json": content}


@pytest.mark.parametrize("name", [*(n for n in RESULTS if n != "manifest.json"), "prompt-files"])
def test_somebodys_file_with_a_results_name_is_not_replaced(tmp_path, name):
    (tmp_path / name).mkdir() if name == "prompt-files" else (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match=f"has {name}, but no manifest.json of a run"):
        prepare_out(tmp_path)


@pytest.mark.parametrize("log", ["", "bbrlab stage mininet\n", "Kernel panic - not syncing\n"])
def test_a_run_that_was_broken_off_is_made_again_in_its_folder(tmp_path, log):
    """Also where the guest died before it said anything, and nobody was left to clean up."""
    out = tmp_path / "out"
    with pytest.raises(UserError, match="died"), result_folder(out) as result:
        result.begin()
        (out / "samples.parquet").write_text("half")
        (out / "guest.log").write_text(log)
        raise UserError("the guest died")
    assert (out / "guest.log").read_text() == log
    prepare_out(out)
    with result_folder(out) as result:
        result.begin()
        (out / "samples.parquet").write_text("half")
        (out / "manifest.json").write_text('{"scenario": {}, "seed": 1, "plan_sha256": "0"}')
        prepare_out(out)


def test_a_whole_result_has_no_mark_of_a_run_that_began(tmp_path):
    with result_folder(tmp_path / "out") as result:
        result.begin()
        write_results(tmp_path / "out", {}, {}, {}, {}, time.monotonic())  # type: ignore[typeddict-item]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"manifest.json", "summary.json"}


def test_a_run_that_leaves_nothing_leaves_no_mark_of_it(tmp_path):
    with pytest.raises(UserError, match="no guest"), result_folder(tmp_path / "new" / "out") as result:
        result.begin()
        raise UserError("no guest")
    assert not list(tmp_path.iterdir())


def test_what_an_earlier_version_broke_off_is_made_again_in_its_folder(tmp_path):
    (tmp_path / "guest.log").write_text("bbrlab stage mininet\nbbrlab done\n")
    prepare_out(tmp_path)


@pytest.mark.parametrize("log", ["empty", "prose", "link", "pipe", "device", "endless"])
def test_a_guest_log_that_is_of_no_run_gives_no_file_free(tmp_path, log):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").write_text("mine")
    place = tmp_path / "out" / "guest.log"
    if log == "link":
        (tmp_path / "log").write_text("bbrlab stage mininet\n")
        place.symlink_to(tmp_path / "log")
    elif log == "device":
        place.symlink_to("/dev/zero")
    elif log == "pipe":
        os.mkfifo(place)
    else:
        place.write_text({"prose": "bbrlab run is what I try\n"}.get(log, ""))
    if log == "endless":
        os.truncate(place, 1 << 40)
    with pytest.raises(UserError, match=r"has summary\.json, but no manifest\.json of a run"):
        prepare_out(tmp_path / "out")


def test_a_manifest_that_is_a_pipe_is_of_no_run(tmp_path):
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(UserError, match=r"has a manifest\.json that is not of a run"):
        prepare_out(tmp_path)


@pytest.mark.parametrize("command", ["run", "play"])
def test_a_scenario_is_not_replaced_by_its_own_result(scenario_file, old_result, command):
    (old_result / "played.yaml").write_text(scenario_file().read_text())
    before = content_of(old_result)
    done = CliRunner().invoke(app, [command, str(old_result / "played.yaml"), "--out", f"{old_result}/."])
    assert "has played.yaml, which is the scenario" in str(done.exception), done.output
    assert content_of(old_result) == before


def test_two_runs_do_not_share_a_folder(scenario_file, old_result):
    """The second is refused while the first has it; a campaign's waits a little for one that its campaign left behind."""
    before = content_of(old_result)
    with result_folder(old_result):
        done = bbrlab("run", scenario_file(), "--out", old_result)
    assert done.returncode == 2
    assert done.stderr == (
        f"bbrlab: --out {old_result}: another run is writing to this folder; wait for it or end it, or choose another folder\n"
    )
    assert content_of(old_result) == before
    with contextlib.ExitStack() as first, ThreadPoolExecutor(1) as pool:
        first.enter_context(result_folder(old_result))

        def second() -> bool:
            with result_folder(old_result, patience_s=30) as result:
                return result.begun

        waiting = pool.submit(second)
        time.sleep(0.3)
        assert not waiting.done()
        first.close()
        assert waiting.result(20) is False


def test_a_machine_that_ends_takes_no_other_ones_status():
    """Machines that threads of one process run: each is told how its own ended. What the one leaves is ended and collected."""
    process._libc.prctl(process.PR_SET_CHILD_SUBREAPER, 1)
    machines: list[subprocess.Popen[bytes]] = []
    try:
        machines = [
            subprocess.Popen(argv, start_new_session=True)
            for argv in (
                ["sleep", "60"],
                ["sh", "-c", "sleep 60 & sleep 60 & kill -9 $$"],
                ["sh", "-c", "sleep 60 & wait"],
            )
        ]
        killed, first, alive = machines
        assert first.wait(20) == -signal.SIGKILL
        killed.kill()
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)  # it is over, and nobody has asked how
        for machine in (first, alive):
            process._end(machine)
            with pytest.raises(ProcessLookupError):  # not even as zombies
                os.killpg(machine.pid, 0)
        assert killed.poll() == -signal.SIGKILL
    finally:
        process._libc.prctl(process.PR_SET_CHILD_SUBREAPER, 0)
        for machine in machines:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(machine.pid, signal.SIGKILL)


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A copy of kernels/ and an empty build folder, to break."""
    shutil.copytree(paths.KERNELS, tmp_path / "kernels")
    monkeypatch.setattr(paths, "KERNELS", tmp_path / "kernels")
    monkeypatch.setenv("BBRLAB_BUILD", str(tmp_path / "build"))
    return tmp_path / "kernels"


def leftovers(tmp_path: Path) -> list[str]:
    return [p.name for p in (tmp_path / "build" / "kernels").iterdir() if not p.name.endswith((".log", ".lock"))]


@pytest.mark.compiles
def test_kernel_build_that_fails_names_step_and_log(kernels, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "UNPACK_EXCLUDES", ("*/[a-zB-Z]*/*",))  # nearly nothing: quick to unpack
    with pytest.raises(
        UserError,
        match=r"step 'patch um/0001' failed: .*/um/0001\S+ does not apply .*: this source has no .*the log is .*lab-6\.12\.log",
    ):
        build_kernel(say=lambda text: None)
    assert leftovers(tmp_path) == []
    with pytest.raises(UserError, match="not built yet"):
        get_kernel()


@pytest.fixture
def fake_builds(kernels, monkeypatch):
    """Kernel builds that take half a second and compile nothing; the list of them."""
    built = []

    def fake(name, spec, source, key, host, scratch, jobs, say):
        built.append(key)
        (scratch / "out").mkdir()
        time.sleep(0.5)
        (scratch / "out" / "linux").write_text("an image")
        info = {"release": "6", "build_id": "b", "key": key, "ccas": {}, "parameters": {}, "source": "s", "compiler": "c",
                "build_s": 1.0, "host": host}  # fmt: skip
        (scratch / "out" / "kernel.json").write_text(json.dumps(info))

    monkeypatch.setattr(build, "_build", fake)
    return built


@pytest.mark.compiles
def test_a_kernel_is_not_built_where_make_would_refuse_it(fake_builds, tmp_path, monkeypatch):
    monkeypatch.setenv("BBRLAB_BUILD", str(tmp_path / "my papers"))
    with pytest.raises(UserError, match="space or colon in its path.*export BBRLAB_BUILD="):
        build_kernel(say=lambda text: None)
    assert fake_builds == []


@pytest.mark.compiles
def test_two_kernel_builds_at_once_build_once(fake_builds, tmp_path):
    said: list[str] = []
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: build_kernel(say=said.append), range(3)))
    assert len(fake_builds) == 1
    assert found == [found[0]] * 3
    assert [text for text in said if "another process is building it" in text]
    assert Path(found[0].image).read_text() == "an image"
    assert leftovers(tmp_path) == [found[0].key]


@pytest.mark.compiles
def test_a_damaged_kernel_is_built_anew_and_what_runs_it_goes_on(fake_builds, tmp_path):
    first = build_kernel(say=lambda text: None)
    folder = Path(first.image).parent
    with open(first.image, encoding="utf-8") as running:
        for damaged in ("[]", "null", '{"release": '):
            (folder / "kernel.json").write_text(damaged)
            with pytest.raises(UserError, match="not built as it is to be: the one that is there is damaged"):
                get_kernel()
        assert build_kernel(say=lambda text: None) == first
        assert running.read() == "an image"
    assert len(fake_builds) == 2
    assert leftovers(tmp_path) == [first.key]
    (folder / "linux").unlink()
    build_kernel(say=lambda text: None)
    assert len(fake_builds) == 3


def test_a_damaged_kernel_goes_aside_whole(tmp_path):
    """No moment at which a part of it is there: who starts it meanwhile has either all of the old or all of the new."""
    folder, new = tmp_path / "key", tmp_path / "scratch" / "out"
    for place, text in ((folder, "old"), (new, "new")):
        place.mkdir(parents=True)
        (place / "linux").write_text(text)
    with open(folder / "linux", encoding="utf-8") as running:
        files.put_folder(new, folder)
        assert running.read() == "old"
    assert (folder / "linux").read_text() == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"key", "scratch"}, "the old one is gone"


@pytest.mark.parametrize("left", ["folder", "link"])
def test_what_a_killed_one_left_aside_is_in_nobodys_way(tmp_path, left):
    """The old folder is removed only when a new one is there; put back if none is."""
    folder, old, new = tmp_path / "key", tmp_path / ".key.bbrlab.old", tmp_path / "scratch" / "out"
    whole = tmp_path / "elsewhere" if left == "link" else old
    whole.mkdir()
    (whole / "linux").write_text("old")
    if left == "link":
        old.symlink_to(whole)
    files.restore_folder(folder)
    assert (folder / "linux").read_text() == "old" and not old.exists()
    files.restore_folder(folder)
    for text in ("new", "newer"):
        new.mkdir(parents=True, exist_ok=True)
        (new / "linux").write_text(text)
        files.put_folder(new, folder)
        assert (folder / "linux").read_text() == text
        assert not old.is_symlink() and not old.exists()
    assert left == "folder" or (whole / "linux").read_text() == "old", "what a link leads to is somebody's"


@pytest.mark.compiles
def test_a_long_build_is_no_leftover(fake_builds, tmp_path, monkeypatch):
    """Only what nobody works in any more is removed, however old."""
    parent = tmp_path / "build" / "kernels"
    parent.mkdir(parents=True)
    with owned_folder(parent, build.PREFIX) as alive:
        dead = parent / f"{build.PREFIX}dead"
        dead.mkdir()
        for folder in (alive, dead):
            os.utime(folder, (0, 0))
        build_kernel(say=lambda text: None)
        assert alive.exists()
        assert not dead.exists()


def test_kernel_key_follows_its_ingredients(kernels):
    _, spec = find_spec(None)
    key = build_key(spec, "source 1", "gcc 12")
    assert key == build_key(spec, "source 1", "gcc 12")
    assert key != build_key(spec, "source 2", "gcc 12")
    assert key != build_key(spec, "source 1", "gcc 13")
    probe = kernels / "probe"
    before = probe.read_text()
    probe.write_text(before + "\n")
    assert key != build_key(spec, "source 1", "gcc 12"), "what it prints decides what the kernel is said to have"
    probe.write_text(before)
    patch = next((kernels / "patches" / "um").glob("*.patch"))
    patch.write_text(patch.read_text() + "\n")
    assert key != build_key(spec, "source 1", "gcc 12")


def test_comments_in_c_files_make_no_other_kernel(kernels):
    _, spec = find_spec(None)
    key, identity = build_key(spec, "source", "gcc"), kernel_identity()
    code = kernels / "bbr" / "tcp_bbr_main.c"
    code.write_text("/* another\n * comment */\n\n" + code.read_text().replace("\t", "  "))
    assert (build_key(spec, "source", "gcc"), kernel_identity()) == (key, identity)
    code.write_text(code.read_text() + "int one_more;\n")
    assert build_key(spec, "source", "gcc") != key
    assert kernel_identity() != identity


def test_a_patch_for_the_host_makes_no_other_kernel(kernels):
    """What a kernel computes does not depend on it: shipped results, caches and campaigns stay."""
    _, spec = find_spec(None)
    patch = next((kernels / "patches" / "um-host").glob("*.patch"))
    key, host, identity = build_key(spec, "source", "gcc"), host_key(spec), kernel_identity()
    assert host
    patch.write_text(patch.read_text() + "\n")
    assert (build_key(spec, "source", "gcc"), kernel_identity()) == (key, identity)
    assert host_key(spec) != host
    bare = spec.model_copy(update={"host_patches": []})
    assert (build_key(bare, "source", "gcc"), host_key(bare)) == (key, "")
    with pytest.raises(UserError, match=r"host_patches: kernels/patches/nosuch holds no \.patch file"):
        host_key(spec.model_copy(update={"host_patches": ["nosuch"]}))


@pytest.mark.compiles
def test_a_kernel_that_is_not_there_is_not_renewed(fake_builds):
    renew_kernel(say=lambda text: None)
    assert fake_builds == []


@pytest.mark.compiles
def test_with_another_patch_for_the_host_a_kernel_is_built_anew_in_its_place(fake_builds, kernels, tmp_path):
    first = build_kernel(say=lambda text: None)
    assert get_kernel() == first
    patch = next((kernels / "patches" / "um-host").glob("*.patch"))
    patch.write_text(patch.read_text() + "\n")
    with pytest.raises(
        UserError, match="not built as it is to be: .* other patches for the host; run: bbrlab kernel build"
    ):
        get_kernel()
    renew_kernel(say=lambda text: None)  # as a campaign does that has recorded it
    second = get_kernel()
    renew_kernel(say=lambda text: None)
    assert (second.key, len(fake_builds)) == (first.key, 2)
    assert second.host != first.host
    assert leftovers(tmp_path) == [first.key]


def test_a_kernel_is_told_by_its_own_entry(tmp_path, monkeypatch):
    """A campaign makes kernel and runs anew if its entry has changed, not if another one has, or a description."""
    text = (paths.CONFIG / "kernels.yaml").read_text()
    monkeypatch.setattr(paths, "CONFIG", tmp_path)

    def identity(old: str = "", new: str = "") -> str:
        assert old in text
        (tmp_path / "kernels.yaml").write_text(text.replace(old, new) if old else text)
        return kernel_identity()

    before = identity()
    assert identity("options: [guest.config, um.config, um-7.3.config", "options: [um-7.3.config") == before
    assert identity("description: Debian's Linux 6.12 in virtual", "description: Linux in virtual") == before
    assert identity("    host_patches: [um-host]\n", "") == before
    assert identity("patches: [um, veth, lateness, sched, acks, bbr]", "patches: [um, lateness, bbr]") != before
    assert identity("default: lab-6.12", "default: mainline-6.12") != before


def test_lost_options_are_found():
    wanted = "# a comment\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\n"
    assert lost_options(wanted, "CONFIG_A=y\nCONFIG_B=y\n") == ["# CONFIG_B is not set", "CONFIG_C=y"]
    assert lost_options(wanted, "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\n") == []
    # Of two lines about one option the later one counts, as it does for kconfig.
    assert lost_options(wanted + "# CONFIG_C is not set\n", "CONFIG_A=y\n# CONFIG_B is not set\n") == []
    assert lost_options("CONFIG_A=y\nCONFIG_A=m\n", "CONFIG_A=y\n") == ["CONFIG_A=m"]


def test_kernels_yaml_errors(tmp_path):
    path = tmp_path / "kernels.yaml"
    for text, words in (
        ("default: a\nkernels: {}\n", "default: 'a' is not one of"),
        ("default: a\nkernels: {a: {description: x, source: {debian: y}, options: [], names: {}}}\n", "options"),
        ("default: a\nkernels: {a: {descripton: x}}\n", "kernels.a"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match=words):
            load_specs(path)


def test_doctor_in_words():
    done = bbrlab("doctor")
    assert "packages" in done.stdout
    assert done.returncode in (0, 1)
    assert ("->" in done.stdout) == (done.returncode == 1)


def test_schema_is_json():
    assert json.loads(bbrlab("schema").stdout)["title"] == "Scenario"


@pytest.mark.guest
def test_waiting_for_a_core_is_no_time_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(cores, "SHARED", tmp_path)
    monkeypatch.setattr(cores, "TELL_AFTER_S", 1)
    held, told = contextlib.ExitStack(), []
    for _ in os.sched_getaffinity(0):
        held.enter_context(cores.one_core())
    threading.Timer(3, held.close).start()
    start = time.monotonic()
    summary = run_point(base_point(validate(scenario_dict(), "s")), 1, tmp_path / "out", on_progress=lambda verb, text: told.append(text))  # fmt: skip
    took_s = time.monotonic() - start
    wall = json.loads((tmp_path / "out" / "manifest.json").read_text())["wall"]
    assert 2 < wall["waiting_s"] < 3.5
    assert summary["wall_s"] == wall["total_s"] < took_s - 2
    assert wall["guest_s"] < wall["total_s"]
    assert any(text.startswith("waiting for a free core (core ") for text in told)


def test_what_is_refused_leaves_no_folders_above_it_either(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(UserError, match="refused"), result_folder(tmp_path / "mine" / "play" / "now"):
        raise UserError("refused")
    assert list(tmp_path.rglob("*")) == [tmp_path / "mine"]
    with pytest.raises(UserError, match="refused"), result_folder(tmp_path / "mine" / "play" / "now"):
        (tmp_path / "mine" / "play" / "before").mkdir()
        raise UserError("refused")
    assert sorted(p.name for p in (tmp_path / "mine" / "play").iterdir()) == ["before"]


def test_trying_out_a_kernel_leaves_no_folder_behind(tmp_path, tmp_path_factory, monkeypatch):
    """What a killed build left goes with the next one; a folder that is in use stays, however old."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    image = tmp_path_factory.mktemp("built") / "linux"
    image.write_bytes(b"Linux version 6.12.1")
    dead = tmp_path / f"{probe.PREFIX}dead"
    dead.mkdir()
    os.utime(dead, (0, 0))

    def booted(argv: list[str], folder: Path, timeout_s: float) -> str:
        (own,) = tmp_path.iterdir()
        assert own == folder
        assert f"uml_dir={own}/" in argv
        os.utime(own, (0, 0))
        assert remove_abandoned(tmp_path, probe.PREFIX) == []
        return "probe release 6\nprobe ccas cubic bbr\nprobe profile bbr v-1\nprobe profile bbr v-2\nprobe end\n"

    monkeypatch.setattr(probe, "_boot", booted)
    found = probe.probe_kernel(image, "um", tmp_path / "log")
    assert (found["ccas"], found["profiles"]) == (["cubic", "bbr"], {"bbr": ["v-1", "v-2"]})
    assert [p.name for p in tmp_path.iterdir()] == ["log"]


# --- limits of the shell, and a file system without inodes ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("-f 100", "ulimit -f (100 kB of a file)"),
        ("-v 4000000", "ulimit -v (4000000 kB of memory)"),
        ("-n 200", "ulimit -n (200 open files)"),
        ("-u 900", "ulimit -u (900 processes)"),
        ("-n 1024", ""),
        ("-c 0", ""),
    ],
)
def test_low_limits_are_named(limit, words):
    code = "from bbrlab.base.limits import limits_in_words; print(limits_in_words())"
    command = f"ulimit -n 4096 -u unlimited; ulimit {limit}; exec {sys.executable} -c '{code}'"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=paths.ROOT, check=True)
    assert words in done.stdout and (words or not done.stdout.strip())


@pytest.mark.guest
def test_a_limit_that_ends_the_guest_is_named(scenario_file, tmp_path):
    """Without it all that is told is a signal's number."""
    command = (
        f"ulimit -f 100; exec {sys.executable} -m bbrlab.cli.main run {scenario_file()} --out {tmp_path}/out --quiet"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=paths.ROOT)
    assert (
        done.returncode == 2
        and "this shell has limits that may be the reason: ulimit -f (100 kB of a file)" in done.stderr
    )


def test_without_space_or_inodes_no_number_contradicts(tmp_path):
    message = str(files.explain(OSError(errno.ENOSPC, "No space left on device"), tmp_path))
    assert "no space or no inodes left" in message and "MB free" not in message
