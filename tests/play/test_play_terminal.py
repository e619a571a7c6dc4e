"""bbrlab play whose terminal vanishes or stands still: it ends, nothing of it is left, and what was measured is kept where that is said."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from bbrlab.base import paths
from bbrlab.run.capture import NO_CAPTURE
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from bbrlab_apps.play.prompt_link import READY
from bbrlab_apps.play.run import BACKEND
from bbrlab_apps.play.session import Session
from bbrlab_apps.play.terminal import Terminal
from tests.conftest import Result, processes_of, scenario_dict, wait_for
from tests.play.test_play import PLAY, scenario_file, spawn  # noqa: F401 - a fixture

ENDS_S = 60  # on a machine that does something else, too; alone it takes some five seconds
FILLED = "x" * 100_000  # more than a terminal that nobody reads takes


# --- the terminal by itself ----------------------------------------------------------------------------------------------


@pytest.fixture
def ends():
    """Both ends of a pseudo-terminal."""
    both = pty.openpty()
    yield both
    for end in both:
        with contextlib.suppress(OSError):
            os.close(end)


def finishes(do: Callable[[], object]) -> bool:
    """Whether it ends within a few seconds."""
    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    thread.join(5)
    return not thread.is_alive()


@pytest.mark.parametrize("shown", [False, True])
def test_an_answer_that_comes_before_its_line_is_sent_to_the_end_is_shown(tmp_path, shown):
    """A terminal shows what is typed itself; what the guest says at the same time is shown all the same."""
    session = Session(base_point(validate(scenario_dict(), "test")), 1, tmp_path / "out", None, (), 60, NO_CAPTURE)
    texts: list[str] = []
    session.on_text = texts.append
    listens = threading.Thread(target=session._listen, daemon=True)
    listens.start()
    sends = session.link.send_line

    def send_line(line):
        sent = sends(line)
        os.write(session.link.guest_end, b"the answer\n")
        assert wait_for(lambda: "answer" in session.text, 10)
        return sent

    session.link.send_line = send_line
    session.send("nodes", shown)
    assert session.text == "nodes\nthe answer\n"
    assert "".join(texts) == ("" if shown else "nodes\n") + "the answer\n"
    session.link.close()
    listens.join(5)


def test_what_is_written_arrives_whole(ends):
    other, own = ends
    terminal = Terminal(own, own)
    text, seen = "äöü" + FILLED, b""
    writer = threading.Thread(target=terminal.write, args=(text,), daemon=True)
    writer.start()
    while len(seen) < len(text.encode()) and select.select([other], [], [], 5)[0]:
        seen += os.read(other, 1 << 16)
    assert seen.decode() == text
    assert not terminal.is_gone()
    assert os.get_blocking(own), "what the shell has, too, is as it was"
    terminal.close()


def test_a_terminal_that_is_gone_takes_everything_and_says_so(ends):
    other, own = ends
    terminal = Terminal(own, own)
    os.close(other)
    assert terminal.is_gone()
    assert finishes(lambda: [terminal.write(FILLED) for _ in range(100)])


def test_a_terminal_that_stands_still_is_waited_for_until_it_is_given_up(ends):
    _, own = ends
    terminal = Terminal(own, own)
    writer = threading.Thread(target=terminal.write, args=(FILLED,), daemon=True)
    writer.start()
    writer.join(0.5)
    assert writer.is_alive() and not terminal.is_gone()
    terminal.give_up()
    writer.join(5)
    assert not writer.is_alive()
    assert finishes(lambda: [terminal.write(FILLED) for _ in range(1000)]), "it is not waited for again"


def test_one_that_is_given_up_and_read_all_the_same_gets_everything(ends):
    """So that the view leaves the screen as it was."""
    other, own = ends
    terminal, seen = Terminal(own, own), b""
    terminal.give_up()
    writer = threading.Thread(target=terminal.write, args=(FILLED,), daemon=True)
    writer.start()
    while len(seen) < len(FILLED) and select.select([other], [], [], 5)[0]:
        seen += os.read(other, 1 << 16)
    assert seen.decode() == FILLED


# --- plays ---------------------------------------------------------------------------------------------------------------


def begun(scenario: Path, out: Path, until: str, *options: str) -> pexpect.spawn:
    """A play on a pseudo-terminal that has come so far."""
    child = spawn(scenario, out, 120, 40, *options)
    child.expect(until)
    return child


def status_of(child: pexpect.spawn) -> int:
    """Its exit code, negative for a signal, once it has ended; it does within a minute."""
    found: list[int] = []

    def ended() -> bool:
        pid, status = os.waitpid(child.pid, os.WNOHANG)
        found.extend([os.waitstatus_to_exitcode(status)] if pid else [])
        return bool(pid)

    if not wait_for(ended, ENDS_S):
        os.kill(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)
        pytest.fail("it hangs")
    child.terminated = True
    return found[0]


def nothing_runs_for(scenario: Path, guests: list[int]) -> bool:
    """Whether its guests are gone, and every process that names its scenario."""
    return wait_for(lambda: not set(guests) & set(processes_of("bbrlab-run-")) and not processes_of(str(scenario)))


def guests_of(child: pexpect.spawn) -> list[int]:
    found = []
    for pid in processes_of("bbrlab-run-"):
        with contextlib.suppress(OSError):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
            found += [pid] if parent == child.pid else []
    return found


@pytest.mark.guest
@pytest.mark.parametrize(
    "options", [pytest.param((), marks=pytest.mark.slow, id="view"), pytest.param(("--plain",), id="plain")]
)
def test_a_play_whose_terminal_is_closed_is_kept(scenario_file, tmp_path, options):  # noqa: F811
    """As with Ctrl-D; a command that runs is ended."""
    out = tmp_path / "out"
    child = begun(scenario_file, out, READY if options else "help lists them", *options)
    guests = guests_of(child)
    assert guests
    child.send("sleep 300\r")
    child.expect("sleep 300", timeout=60)
    time.sleep(2)
    os.close(child.child_fd)
    assert status_of(child) == 0
    assert nothing_runs_for(scenario_file, guests)
    result = Result(out)
    assert result.summary["backend"] == BACKEND
    assert 1 < result.summary["virtual_s"] < 200
    assert (result.folder / "played.yaml").exists()
    assert "sleep 300" in (out / "prompt.log").read_text()


@pytest.mark.slow
@pytest.mark.guest
def test_a_terminal_that_is_closed_without_a_signal(scenario_file, tmp_path):  # noqa: F811
    """Of a play that is not in the terminal's session: nobody sends it SIGHUP."""
    other, own = pty.openpty()
    out = tmp_path / "out"
    environment = os.environ | {"TERM": "xterm-256color", "LINES": "40", "COLUMNS": "120"}
    code = "import fcntl, sys, struct, termios; fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 120, 0, 0)); sys.argv[0:1] = []; "
    code += "from bbrlab.cli.main import main; main()"
    argv = [sys.executable, "-c", code, "bbrlab", "play", str(scenario_file), "--out", str(out)]
    process = subprocess.Popen(argv, stdin=own, stdout=own, stderr=own, cwd=paths.ROOT, env=environment, start_new_session=True)  # fmt: skip
    os.close(own)
    try:
        seen, end = b"", time.monotonic() + 300
        while b"help lists them" not in seen and time.monotonic() < end:
            if select.select([other], [], [], 1)[0]:
                seen += os.read(other, 1 << 16)
        os.close(other)
        assert process.wait(ENDS_S) == 0
    finally:
        process.kill()
    assert (out / "summary.json").exists()


@pytest.mark.guest
def test_a_terminal_that_is_closed_before_the_prompt_is_there(scenario_file, tmp_path):  # noqa: F811
    child = begun(scenario_file, tmp_path / "out", "being set up")
    wait_for(lambda: bool(guests_of(child)), 60)
    guests = guests_of(child)
    os.close(child.child_fd)
    assert status_of(child) == 130
    assert nothing_runs_for(scenario_file, guests)
    assert not (tmp_path / "out").exists()


@pytest.mark.guest
@pytest.mark.parametrize(
    "read", [pytest.param(True, id="read"), pytest.param(False, marks=pytest.mark.slow, id="unread")]
)
def test_sigterm_ends_a_play_at_once_whether_its_terminal_is_read_or_not(scenario_file, tmp_path, read):  # noqa: F811
    """Nothing is kept. A terminal that nobody reads (Ctrl-S, a connection that stands still) has the view wait."""
    child = begun(scenario_file, tmp_path / "out", "help lists them")
    guests = guests_of(child)
    reading, seen = threading.Event(), bytearray()
    if read:
        threading.Thread(target=lambda: _read(child, reading, seen), daemon=True).start()
    else:
        time.sleep(15)  # until the terminal and the view's queue are full
    os.kill(child.pid, signal.SIGTERM)
    try:
        assert status_of(child) == 130
    finally:
        reading.set()
    assert nothing_runs_for(scenario_file, guests)
    assert not (tmp_path / "out").exists()
    if read:
        assert b"\x1b[?1049l" in seen, "the screen is as it was before"
        assert seen.rstrip().endswith(b"interrupted; nothing half-done was kept")


def _read(child: pexpect.spawn, ended: threading.Event, seen: bytearray) -> None:
    while not ended.is_set():
        with contextlib.suppress(OSError):
            if select.select([child.child_fd], [], [], 0.2)[0]:
                seen += os.read(child.child_fd, 1 << 16)


@pytest.mark.slow
@pytest.mark.guest
def test_hang_up_ends_the_plain_prompt_whose_output_is_no_terminal(scenario_file, tmp_path):  # noqa: F811
    """What was measured is kept, and told."""
    process = subprocess.Popen([*PLAY, str(scenario_file), "--out", str(tmp_path / "out")], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=paths.ROOT)  # fmt: skip
    assert process.stdin and process.stdout
    seen = ""
    while READY not in seen:
        seen += process.stdout.read(1)
    time.sleep(2)
    process.send_signal(signal.SIGHUP)
    said, _ = process.communicate(timeout=ENDS_S)
    assert process.returncode == 0
    assert "results: " in said and (tmp_path / "out" / "summary.json").exists()
