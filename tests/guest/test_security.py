"""What a guest's root may do to the host: read its programs, and write to one folder. Nothing else, and not without end.

The same of the guest's kernel: tests/kernel/test_confine.py, tests/kernel/test_own_cca.py.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bbrlab.base import paths
from bbrlab.base.errors import UserError
from bbrlab.kernel.confine import landlock
from bbrlab.run import guest
from bbrlab.run.run import run_point
from bbrlab.scenario.load import base_point
from bbrlab.scenario.messages import validate
from tests.conftest import processes_of, scenario_dict, wait_for
from tests.run.test_bad_days import in_namespace

pytestmark = pytest.mark.guest

# Each line is an attempt of the guest's root; it prints "escaped" if it worked.
ATTEMPTS = r"""
try() { "$@" 2>/dev/null && echo "escaped: $*" >>/mnt/attempts; }
touch /mnt/attempts
mkdir -p /run/host
mount -o remount,rw / 2>/dev/null
try sh -c 'echo x >TARGET/file'
try sh -c 'echo x >TARGET/new'
try rm TARGET/file
try chmod 777 TARGET/file
try mkdir TARGET/folder
try mv TARGET/file TARGET/moved
try ln TARGET/file /mnt/hard
try ln -s TARGET/file /mnt/soft
try mknod /mnt/device b 8 0
for place in TARGET /proc/self/cwd/out/../../TARGET /proc/self/cwd /; do
    umount /run/host 2>/dev/null
    mount -t hostfs -o "$place" none /run/host || continue
    try sh -c 'echo x >/run/host/file'
    try sh -c 'echo x >/run/host/TARGET/file'
    try rm /run/host/file
done
touch /mnt/suid && chmod 4755 /mnt/suid
echo mine >/mnt/allowed
"""


def test_a_guest_cannot_write_elsewhere(tmp_path, monkeypatch):
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").write_text("precious")
    code = tmp_path / "code"
    shutil.copytree(paths.GUEST_CODE, code)
    kept = tmp_path / "kept"
    (code / "attempts.sh").write_text(ATTEMPTS.replace("TARGET", str(target)))
    (code / "guest.py").write_text("import subprocess\nsubprocess.run(['sh', '/run/guest/attempts.sh'])\n")
    monkeypatch.setattr(paths, "GUEST_CODE", code)
    keep = guest.keep_console

    def keep_all(folder: Path, log: Path) -> None:
        shutil.copytree(folder, kept, dirs_exist_ok=True)
        keep(folder, log)

    monkeypatch.setattr(guest, "keep_console", keep_all)
    with pytest.raises(UserError):  # it runs no experiment
        run_point(base_point(validate(scenario_dict(), "s")), 1, tmp_path / "out")
    assert (kept / "attempts").read_text() == ""
    assert (kept / "allowed").read_text() == "mine\n"
    assert not (kept / "suid").stat().st_mode & 0o6000
    assert sorted(p.name for p in target.iterdir()) == ["file"]
    assert (target / "file").read_text() == "precious"
    assert not (tmp_path / "out" / "summary.json").exists()


# As ``bbrlab run``, with another guest's program.
PROGRAM = """
import sys
from pathlib import Path
from bbrlab.base import paths
from bbrlab.cli.main import main
paths.GUEST_CODE = Path({code!r})
sys.argv = ["bbrlab", "run", {scenario!r}, "--out", {out!r}, "--quiet", "--watchdog-s", "{watchdog_s}"]
main()
"""


@pytest.fixture
def hostile(tmp_path) -> Callable[..., list[str]]:
    """The command that runs a guest whose program is another; its results go to ``tmp_path / "out"``."""

    def command(text: str, watchdog_s: float = 60) -> list[str]:
        shutil.copytree(paths.GUEST_CODE, tmp_path / "code")
        (tmp_path / "code" / "guest.py").write_text(text)
        (tmp_path / "s.yaml").write_text(str(scenario_dict()))
        places = {"code": tmp_path / "code", "scenario": tmp_path / "s.yaml", "out": tmp_path / "out"}
        program = PROGRAM.format(**{k: str(v) for k, v in places.items()}, watchdog_s=watchdog_s)
        return [sys.executable, "-c", program]

    return command


def ended(command: list[str], tmp_path: Path, **environment: str) -> str:
    """Run such a guest to its bad end; returns what was said of it. Nothing of it is left."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=paths.ROOT, timeout=300,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")} | environment,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("bbrlab: "), done.stderr
    assert wait_for(lambda: not processes_of(str(tmp_path / "tmp")))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "out" / "summary.json").exists()
    return done.stderr


SECRETS = """
import os, socket, subprocess
found = []
def read(name, path, *inside):
    try:
        with open(path, "rb") as file:
            if b"do-not-tell" in file.read():
                found.append(name)
    except OSError:
        pass
os.makedirs("/run/host", exist_ok=True)
read("a file that its user may not read", "SECRET")
read("a file of its user's", "FOLDER/own")
subprocess.run(["mount", "-t", "hostfs", "-o", "FOLDER", "none", "/run/host"])
read("the same by a mount of its own", "/run/host/secret")
read("a file of its user's, by a mount of its own", "/run/host/own")
if "do-not-tell" in str(os.environ):
    found.append("an environment variable")
subprocess.run(["umount", "/run/host"])
subprocess.run(["mount", "-t", "hostfs", "-o", "/proc/self", "none", "/run/host"])
read("an environment variable of its process on the host", "/run/host/environ")
for family, address in ((socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_UNIX, "FOLDER/socket")):
    try:
        socket.socket(family).connect(address)
        found.append("a server of the host's")
    except OSError:
        pass
print("found", found)
raise SystemExit("found %d of the secrets" % len(found))
"""


def test_a_guest_reads_nothing_of_its_users_and_tells_nobody(tmp_path, hostile):
    """No file of its user's, or that its user may not read, no variable of the environment, no server of the host's, by whatever way."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "secret").write_text("do-not-tell")
    (folder / "secret").chmod(0)
    (folder / "own").write_text("do-not-tell" if landlock.version() else "there is no Landlock here")
    # Who is root reads every file, and so does a root's guest: here it is a root that permissions hold back, as others are.
    held_back = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local,
        contextlib.chdir(folder),
    ):
        local.bind("socket")
        local.listen()
        text = SECRETS.replace("SECRET", str(folder / "secret")).replace("FOLDER", str(folder))
        command = hostile(text.replace("PORT", str(server.getsockname()[1])))
        said = ended([*held_back, *command], tmp_path, BBRLAB_SECRET="do-not-tell")
        for one in (server, local):
            one.settimeout(0)
            with pytest.raises(BlockingIOError):
                one.accept()
    assert "found 0 of the secrets" in said, (tmp_path / "out" / "guest.log").read_text()


FORKS = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
PROCESSES_MOST = 5000


def test_a_guest_that_forks_without_end_is_ended(tmp_path, hostile):
    most = [0]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            most[0] = max(most[0], len(processes_of(str(tmp_path / "tmp"))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        said = ended(hostile(FORKS, watchdog_s=5), tmp_path)
    finally:
        over.set()
        watcher.join()
    assert "guest.log" in said
    assert 10 < most[0] < PROCESSES_MOST, "the guest's memory has room for so many"


def test_a_guest_that_prints_without_end_is_ended(tmp_path, hostile):
    """On the console, which is a file of the host's."""
    text = "line = b'x' * 1000 + b'\\n'\nwith open('/dev/console', 'wb') as console:\n    while True:\n        console.write(line)\n"
    assert "the guest printed more than 64 MiB" in ended(hostile(text), tmp_path)
    assert (tmp_path / "out" / "guest.log").stat().st_size < 70 << 20


def test_a_guest_that_fills_the_disk_is_ended(tmp_path, hostile):
    """The disk that its folder is on, in which its memory is, too."""
    text = "with open('/mnt/big', 'wb') as file:\n    while True:\n        file.write(bytes(1 << 20))\n"
    (tmp_path / "tmp").mkdir()
    script = 'tmp=$1; mount -t tmpfs -o size=300m none "$tmp"; export TMPDIR="$tmp"; shift; "$@"; code=$?; ls -A "$tmp"; exit $code'
    done = in_namespace(script, tmp_path / "tmp", *hostile(text))
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("bbrlab: "), done.stderr
    assert "MiB free, but the guest's memory" in done.stderr or "no space or no inodes left" in done.stderr, done.stderr
    assert done.stdout == "", "nothing of it is left"
    assert not (tmp_path / "out" / "summary.json").exists()
