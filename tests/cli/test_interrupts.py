"""Ctrl-C and SIGTERM at bad moments: one line, exit code 130, what was begun is cleaned up."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.cli.interrupts import EXIT_INTERRUPTED
from tests.conftest import processes_of, wait_for
from tests.graded import RUBRIC, make_submission, write_rubric

# A program with a command of its own in bbrlab's frame; BODY is what it does. What a hangup does to it is not left to who started the
# tests: with nohup it would be ignored.
PROGRAM = """
import os, signal, sys, time
signal.signal(signal.SIGHUP, signal.AT_HANGUP)
from bbrlab.cli.main import main
import bbrlab.cli.app

@bbrlab.cli.app.app.command("try-out")
def try_out():
    def hit(number=signal.SIGTERM):
        os.kill(os.getpid(), number)
BODY
sys.argv = ["bbrlab", "try-out"]
main()
"""
MESSAGE = "bbrlab: interrupted; nothing half-done was kept\n"


def program(body: str, at_hangup: str = "SIG_DFL") -> list[str]:
    """The command of a program that does ``body``; with SIG_IGN as nohup would start it."""
    indented = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return [sys.executable, "-c", PROGRAM.replace("BODY\n", indented).replace("AT_HANGUP", at_hangup)]


def started(body: str, at_hangup: str = "SIG_DFL") -> subprocess.Popen[str]:
    argv = program(body, at_hangup)
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=paths.ROOT)


def ended(process: subprocess.Popen[str]) -> str:
    """What it printed, having said that it was interrupted and nothing else."""
    said, errors = process.communicate(timeout=30)
    assert errors == MESSAGE
    assert process.returncode == EXIT_INTERRUPTED
    return said


def test_while_it_starts():
    """A person who mistyped presses Ctrl-C before the libraries are there."""
    code = """
import os, signal, sys
class Hit:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Hit())
from bbrlab.cli.main import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=paths.ROOT, timeout=30)
    assert (done.returncode, done.stderr) == (EXIT_INTERRUPTED, MESSAGE)


def test_a_second_one_does_not_break_what_the_first_one_ends():
    said = ended(started("""
try:
    hit(signal.SIGINT)
    time.sleep(9)
finally:
    hit(signal.SIGINT); hit()
    time.sleep(.1)
    print("all is cleaned up")
"""))  # fmt: skip
    assert said == "all is cleaned up\n"


def test_in_a_finalizer_where_python_would_forget_it():
    said = ended(started("""
class Thing:
    def __del__(self):
        hit()
        time.sleep(.01)
Thing()
print("and on", flush=True)
time.sleep(9)
print("never")
"""))  # fmt: skip
    assert said == "and on\n"


def test_in_a_finalizer_on_a_busy_machine():
    """A thread is long in starting there."""
    said = ended(started("""
import threading
start = threading.Thread.start
threading.Thread.start = lambda self: (start(self), time.sleep(.3))
class Thing:
    def __del__(self):
        hit()
        time.sleep(.01)
Thing()
print("and on", flush=True)
time.sleep(9)
print("never")
"""))  # fmt: skip
    assert said == "and on\n"


@pytest.mark.parametrize("seed", range(4))
def test_while_it_prints(seed):
    """One signal or several, at any moment of printing a table as ``bbrlab run`` does."""
    process = started("""
from rich.console import Console
from rich.table import Table
console = Console(file=sys.stdout)
print("now", flush=True)
while True:
    table = Table(box=None)
    for name in "abcdef":
        table.add_column(name)
    for _ in range(20):
        table.add_row(*"abcdef")
    console.print(table)
""")
    rng = random.Random(seed)
    assert process.stdout and process.stdout.readline() == "now\n"
    for _ in range(1 + seed):
        process.send_signal(rng.choice((signal.SIGINT, signal.SIGTERM)))
        time.sleep(0.02 * rng.random())
    ended(process)


# --- bbrlab grade --class -----------------------------------------------------------------------------------------------

STUDENTS = ("ada", "bob", "eve", "joe")


def grading(folder: Path, rubric: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "bbrlab.cli.main", "grade", "--class", str(folder), "--rubric", str(rubric), "--out", str(out), "--cores", "2"]  # fmt: skip


@pytest.fixture(scope="module")
def room(tmp_path_factory) -> tuple[Path, Path]:
    """A class, each with runs of its own, and a rubric that has one of each made again by a guest."""
    folder = tmp_path_factory.mktemp("grading")
    longer = RUBRIC["scenario"] | {"duration_s": 60, "window_s": [10, 60]}
    rubric = write_rubric(folder, rerun=2, scenario=longer, points=RUBRIC["points"] | {"rerun": 10})
    for student in STUDENTS:
        make_submission(folder / "class" / student, rubric, student)
    return folder / "class", rubric


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.parametrize(
    ("number", "whole_group", "moment"),
    [
        pytest.param(signal.SIGINT, True, "looking", id="Ctrl-C, first looks"),
        pytest.param(signal.SIGINT, True, "guest", id="Ctrl-C, a guest runs"),
        pytest.param(signal.SIGTERM, False, "guest", id="SIGTERM, a guest runs"),
        pytest.param(signal.SIGTERM, True, "guest", id="SIGTERM to all, a guest runs"),
        pytest.param(signal.SIGTERM, False, "one graded", id="SIGTERM, one is graded"),
    ],
)  # fmt: skip
def test_a_class_that_is_graded(room, tmp_path, number, whole_group, moment):
    """Its workers and guests go with it, what was graded stays, and the next call goes on from there. A terminal's Ctrl-C goes to all
    of its processes."""
    folder, rubric = room
    out, scratch = tmp_path / "out", tmp_path / "tmp"
    scratch.mkdir()
    process = subprocess.Popen(grading(folder, rubric, out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=paths.ROOT, start_new_session=True, env=os.environ | {"TMPDIR": str(scratch)})  # fmt: skip
    come = {
        "looking": lambda: any(scratch.glob("bbrlab-grade-*")),
        "guest": lambda: bool(processes_of(f"{scratch}/bbrlab-run-")),
        "one graded": lambda: any(out.glob("*/grade.json")) and bool(processes_of(f"{scratch}/bbrlab-run-")),
    }[moment]
    assert wait_for(come, 240), process.communicate(timeout=1)
    (os.killpg if whole_group else os.kill)(process.pid, number)
    said, errors = process.communicate(timeout=60)
    assert [line for line in errors.splitlines() if "salt" not in line] == [MESSAGE.strip()]
    assert process.returncode == EXIT_INTERRUPTED
    assert wait_for(lambda: not processes_of(f"{scratch}/") and not processes_of(str(out))), "nothing is left running"
    assert not list(scratch.glob("bbrlab-grade-*")), "nor lying about"
    kept = {path: path.read_bytes() for path in out.glob("*/*.json")}
    for path in out.glob("*/examined.json"):
        assert json.loads(path.read_text())["examined"]["incomplete"] == [], (
            "what was interrupted is no fault of the student"
        )
    if moment == "one graded":
        assert any(path.name == "grade.json" for path in kept)
        again = subprocess.run(grading(folder, rubric, out), capture_output=True, text=True, cwd=paths.ROOT)
        assert again.returncode == 0 and f"{len(STUDENTS)} graded" in again.stdout, again.stderr
        assert all(path.read_bytes() == content for path, content in kept.items())
        assert {json.loads(p.read_text())["score"] for p in out.glob("*/grade.json")} == {110}


@pytest.mark.parametrize("moment", ["before", "after_in_parent"])
@pytest.mark.parametrize("forks", ["run_limited(lambda: time.sleep(30), seconds=20, memory_bytes=1 << 30, file_bytes=1 << 20)",
                                   "subprocess.Popen(['sleep', '20'], stdout=-3, stderr=-3, preexec_fn=lambda: None).wait()"])  # fmt: skip
def test_a_worker_that_forks(moment, forks):
    """Python prints and forgets what a signal's handler raises while it forks: no traceback, and the worker ends all the same."""
    process = started(f"""
import subprocess
from bbrlab_apps.grading.commands import _begin_worker, _work
from bbrlab_apps.grading.limited import run_limited
sys.unraisablehook = sys.__unraisablehook__  # as in a process of its own
_begin_worker()
os.register_at_fork({moment}=hit)
print("now", flush=True)
_work(lambda: {forks})
print("never")
""")
    said, errors = process.communicate(timeout=15)
    assert (said, errors, process.returncode) == ("now\n", "", EXIT_INTERRUPTED)


def test_a_worker_that_is_killed_is_no_fault_of_bbrlab(monkeypatch, tmp_path):
    """As by a system that is short of memory."""
    body = """
import bbrlab_apps.grading.commands as commands, bbrlab_apps.grading.grade as g, tests.cli.test_interrupts as t
from pathlib import Path
g.read_submission = t.killed
commands._class({"ada": Path("x"), "bob": Path("y")}, Path("r"), None, Path("o"), 2, {}, False)
"""
    process = started(body)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and "Traceback" not in errors
    assert errors.startswith("bbrlab: a process that graded was killed") and "start again" in errors


def killed(*given: object) -> None:
    """What a worker does that is killed."""
    os.kill(os.getpid(), signal.SIGKILL)


COMPUTES_S = 1.5  # of CPU, after which it is in the compiled loop


def cpu_s(pid: int) -> float:
    """CPU time of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("model", "number"),
    [
        ("fluid", signal.SIGINT),
        ("burst", signal.SIGTERM),
        pytest.param("fluid", signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_a_model_that_computes_for_long(tmp_path, model, number):
    """Its compiled loop lets no handler of Python's run. What computes ends with the command, however that one ends."""
    file = tmp_path / "long.yaml"
    file.write_text(
        "name: long\nnetwork: {rate_mbit: 10, rtt_ms: 40, buffer: {bdp: 1}}\nflows: [{cca: bbr1}, {cca: cubic}]\n"
        "duration_s: 10\nwindow_s: [5, 10]\n"
    )
    argv = [sys.executable, "-m", "bbrlab.cli.main", "model", model, str(file), "--duration-s", "700000"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=paths.ROOT)
    try:
        wait_for(lambda: len(processes_of(str(file))) > 1)
        (child,) = {*processes_of(str(file))} - {process.pid}
        assert wait_for(lambda: cpu_s(child) > COMPUTES_S)
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.communicate(timeout=30)
        else:
            assert ended(process) == ""
        assert wait_for(lambda: not processes_of(str(file)))
    finally:
        process.kill()


def test_a_model_whose_process_is_killed_says_so():
    """There is one such process, of which no smaller number could help."""
    process = started("""
import bbrlab.cli.models as models, tests.cli.test_interrupts as t
list(models._computed(t.killed, [None], "computing"))
""")
    _, errors = process.communicate(timeout=60)
    killed_so = "the process that computed was killed (was there too little memory?); nothing was printed, start again"
    assert (errors, process.returncode) == (f"bbrlab: {killed_so}\n", 2)


# What is left of a run is in a session of its own, as the processes of a guest are.
RUN = """#!/bin/sh
cd {folder}
setsid sleep 600 &
trap 'kill -KILL $!; exit 130' TERM
wait
"""


@pytest.mark.parametrize("how", ["SIGTERM", "too long"])
def test_a_run_that_is_made_again_takes_its_guest_with_it(tmp_path, how):
    """It is told to end, not killed: a booting guest stops a process to try how it traces, which stays if its kernel is killed."""
    run = tmp_path / "run"
    run.write_text(RUN.format(folder=tmp_path))
    run.chmod(0o755)
    limits = f"Limits(end_s={1 if how == 'too long' else 600})"
    process = started(f"""
import bbrlab_apps.grading.rerun as rerun
from pathlib import Path
from types import SimpleNamespace
from bbrlab_apps.grading.rubric import Limits
rerun.python.sys = SimpleNamespace(executable={str(run)!r})
asked = {{"scenario": {{}}, "name": "x", "seed": 1, "notes": []}}
print(rerun._again({limits}, asked, 0, None, SimpleNamespace(name="x"), Path({str(tmp_path / "again")!r}))["told"])
""")
    if how == "SIGTERM":
        assert wait_for(lambda: bool(processes_of(f"sleep\x00600\x00{tmp_path}")))
        process.terminate()
        assert ended(process) == ""
    else:
        assert process.communicate(timeout=30) == ("was ended after 1 s\n", "")
    assert wait_for(lambda: not processes_of(str(tmp_path)), 5), "nothing is left running"


def test_a_signal_while_a_process_is_started():
    """It comes when the process has a name, by which it can be ended."""
    said = ended(started("""
import subprocess
from bbrlab.base.signals import postponed
process = None
try:
    with postponed():
        hit()
        process = subprocess.Popen(["sleep", "600"])
    print("never")
finally:
    process.kill()
    print(process.wait())
"""))  # fmt: skip
    assert said == "-9\n"


def test_a_process_inherits_what_is_ignored():
    process = started("""
import subprocess
from bbrlab.base.signals import postponed
signal.signal(signal.SIGINT, signal.SIG_IGN)
with postponed():
    ignored = subprocess.run(["grep", "SigIgn", "/proc/self/status"], capture_output=True, text=True).stdout
print(int(ignored.split()[1], 16) >> (signal.SIGINT - 1) & 1)
""")
    assert process.communicate(timeout=30) == ("1\n", "")


# --- a terminal that is closed --------------------------------------------------------------------------------------------


def test_a_terminal_that_is_closed_ends_it_as_sigterm_does():
    said = ended(started("""
try:
    hit(signal.SIGHUP)
    time.sleep(9)
finally:
    print("all is cleaned up")
"""))  # fmt: skip
    assert said == "all is cleaned up\n"


def test_with_nohup_it_goes_on():
    process = started("hit(signal.SIGHUP)\ntime.sleep(.1)\nprint('done')", at_hangup="SIG_IGN")
    assert process.communicate(timeout=30) == ("done\n", "")
    assert process.returncode == 0


def test_the_terminal_itself_goes_away():
    """Its lines can be written no more, and that is no fault of its own."""
    leader, terminal = os.openpty()
    argv = program("print('now', flush=True)\ntime.sleep(9)")
    code = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *argv],
        stdin=terminal, stdout=terminal, stderr=terminal, cwd=paths.ROOT, start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    assert os.read(leader, 100) == b"now\r\n"
    os.close(leader)
    assert process.wait(timeout=30) == EXIT_INTERRUPTED


def test_a_signal_while_a_process_starts_waits():
    """postponed() knows each of them."""
    code = """
import os, signal
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from bbrlab.cli.interrupts import Interrupted, make_interruptible
from bbrlab.base.signals import postponed
make_interruptible()
try:
    with postponed():
        os.kill(os.getpid(), signal.SIGHUP)
        print("whole", flush=True)
except Interrupted:
    print("then")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=paths.ROOT, timeout=30)
    assert (done.stdout, done.stderr) == ("whole\nthen\n", "")


@pytest.mark.parametrize("ignored", [False, True])
def test_a_campaign_ends_at_a_hangup_as_at_sigterm(ignored):
    code = f"""
import os, signal
from bbrlab.campaign.snakemake import end_at_hangup
signal.signal(signal.SIGHUP, signal.{"SIG_IGN" if ignored else "SIG_DFL"})
end_at_hangup()
signal.signal(signal.SIGTERM, lambda number, frame: print("SIGTERM"))
os.kill(os.getpid(), signal.SIGHUP)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=paths.ROOT, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "" if ignored else "SIGTERM\n", "")
