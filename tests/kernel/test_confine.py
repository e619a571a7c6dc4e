"""What a confined process may not do to this machine: files, sockets, programs, processes. No guest is booted here."""

from __future__ import annotations

import json
import marshal
import os
import socket
import subprocess
from pathlib import Path

import pytest

from bbrlab.cli import doctor
from bbrlab.experiment.machine import process, uml
from bbrlab.kernel import build, probe
from bbrlab.kernel.built import Kernel
from bbrlab.kernel.confine import confined, landlock, seccomp
from bbrlab_apps.play.prompt_link import PromptLink

LINUX_6_12, LINUX_7_3 = (6, 12), (7, 3)
if not landlock.version() or not seccomp.is_supported():  # said by `bbrlab doctor`
    pytest.skip("this machine's kernel has not both Landlock and filters of system calls", allow_module_level=True)

# What is tried, in place of a guest's kernel, by a Python of the system's. Prints {attempt: what came of it}.
TRIES = """
import ctypes, json, os, socket, sys, time
secret, outside, folder, parent = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
found = {}
def attempt(name, action):
    try:
        action()
        found[name] = "done"
    except OSError as error:
        found[name] = error.strerror
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*map(ctypes.c_long, arguments)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def connect(address):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(address)
def send(address):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", address)
def send_message(address):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.sendmsg([b"x"], [], 0, address)
def in_child(action):
    pid = os.fork()
    if not pid:
        try:
            action()
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    if status := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError(status, os.strerror(status))
attempt("read", lambda: open(secret))
attempt("read by a child", lambda: in_child(lambda: open(secret)))
attempt("list", lambda: os.listdir(outside))
attempt("shadow", lambda: open("/etc/shadow"))
attempt("accounts", lambda: open("/etc/passwd"))
attempt("environment", lambda: open("/proc/self/environ"))
attempt("terminal", lambda: open("/dev/ptmx", "rb+", 0))
attempt("write", lambda: open(outside + "/new", "w"))
attempt("truncate", lambda: os.truncate(secret, 0))
attempt("remove", lambda: os.remove(secret))
attempt("rename", lambda: os.rename(secret, folder + "/taken"))
attempt("mode", lambda: os.chmod(secret, 0o777))
attempt("owner", lambda: os.chown(secret, 0, 0))
attempt("times", lambda: os.utime(secret))
attempt("attribute", lambda: os.setxattr(secret, "user.x", b"x"))
attempt("link", lambda: os.symlink(secret, folder + "/link"))
attempt("hard link", lambda: os.link(secret, folder + "/hard"))
attempt("pipe", lambda: os.mkfifo(folder + "/pipe"))
for family in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"):
    attempt(family, lambda: socket.socket(getattr(socket, family), socket.SOCK_RAW if family in ("AF_NETLINK", "AF_PACKET") else socket.SOCK_STREAM))
attempt("connect", lambda: connect(outside + "/socket"))
attempt("connect abstract", lambda: connect("\\0bbrlab-test-" + str(parent)))
attempt("send", lambda: send(outside + "/datagrams"))
attempt("send message", lambda: send_message(outside + "/datagrams"))
attempt("start by a child", lambda: in_child(lambda: os.execv("/usr/bin/true", ["true"])))
attempt("start at", lambda: in_child(lambda: call(322, -100, id(b"/usr/bin/true") + 32, 0, 0, 0x1000)))
def from_memory():
    program = os.memfd_create("program", 0)
    os.write(program, open("/usr/bin/true", "rb").read())
    call(322, program, id(b"") + 32, 0, 0, 0x1000)
def own_filter():
    program = ctypes.create_string_buffer(bytes([6, 0, 0, 0, 0, 0, 255, 127]))
    head = ctypes.create_string_buffer(bytes([1]) + bytes(7) + ctypes.addressof(program).to_bytes(8, "little"))
    call(317, 1, 1, ctypes.addressof(head))
attempt("start from memory", lambda: in_child(from_memory))
attempt("filter", lambda: in_child(own_filter))
attempt("a session of its own", lambda: in_child(os.setsid))
attempt("a group of its own", lambda: in_child(lambda: os.setpgid(0, 0)))
attempt("signal", lambda: os.kill(parent, 0))
attempt("signal all", lambda: os.kill(-1, 0))
attempt("attach", lambda: call(101, 16, parent, 0, 0))
attempt("seize", lambda: call(101, 0x4206, parent, 0, 0))
attempt("read memory", lambda: call(310, parent, 0, 0, 0, 0, 0))
attempt("pidfd", lambda: call(434, parent, 0))
attempt("io_uring", lambda: call(425, 1, id(bytearray(200)), 0))
attempt("bpf", lambda: call(321, 0, 0, 0))
attempt("keys", lambda: call(250, 0, -3, 0))
attempt("mount", lambda: call(165, 0, 0, 0, 0, 0))
attempt("namespace", lambda: call(272, 0x10000000))
attempt("namespace of a child", lambda: call(56, 0x10000011, 0, 0, 0, 0))
attempt("shared memory", lambda: call(29, 0, 4096, 0o1600))
attempt("affinity of another", lambda: os.sched_setaffinity(parent, {0}))
attempt("32 bits' numbers", lambda: call(0x40000000 + 39))
allowed = {}
refused, found = found, allowed
attempt("a system's file", lambda: open("/usr/bin/env", "rb").read())
attempt("a setting", lambda: open("/etc/ld.so.cache", "rb"))
attempt("what it is given", lambda: open(folder + "/given").read())
attempt("its own folder", lambda: (open(folder + "/a", "w").write("x"), os.rename(folder + "/a", folder + "/b"), os.truncate(folder + "/b", 0), os.remove(folder + "/b")))
attempt("a socket of its own", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).bind(folder + "/own"))
attempt("a child", lambda: in_child(lambda: None))
attempt("a child's end", lambda: (lambda pid: os.kill(pid, 9) if pid else time.sleep(60))(os.fork()))
print(json.dumps([refused, allowed]))
"""


@pytest.fixture
def places(tmp_path):
    """A secret outside, with servers, and a folder to write to."""
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    (folder / "given").write_text("x")
    (outside / "secret").write_text("do-not-tell")
    os.chdir(outside)  # a socket's path is short
    return outside, folder


def tried(places, release: tuple[int, ...], *, foreign: bool = True) -> tuple[dict[str, str], dict[str, str]]:
    outside, folder = places
    argv = [
        "/usr/bin/python3",
        "-I",
        "-S",
        "-c",
        TRIES,
        str(outside / "secret"),
        str(outside),
        str(folder),
        str(os.getpid()),
    ]
    with (
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        named.bind("socket")
        abstract.bind(f"\0bbrlab-test-{os.getpid()}")
        datagrams.bind("datagrams")
        for one in (named, abstract):
            one.listen()
        done = subprocess.run(
            confined.uml(argv, release, foreign=foreign, reads=[], writes=[folder]), capture_output=True, text=True
        )
    for name in ("socket", "datagrams"):
        Path(name).unlink()
    assert done.returncode == 0, done.stderr
    refused, allowed = json.loads(done.stdout)
    return refused, allowed


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.chdir(Path.cwd())  # and back again


@pytest.mark.parametrize("release", [LINUX_6_12, LINUX_7_3])
def test_a_strangers_kernel_reaches_nothing_of_the_users(places, release):
    refused, allowed = tried(places, release)
    of_its_own = {"start from memory"} if release == LINUX_7_3 else set()  # what it starts is held as it is itself
    assert {name for name, said in refused.items() if said == "done"} == of_its_own
    assert {name: said for name, said in allowed.items() if said != "done"} == {}
    assert (places[0] / "secret").read_text() == "do-not-tell"
    assert [p.name for p in places[0].iterdir()] == ["secret"]


def test_what_a_new_kernel_starts_ends_with_its_probe(tmp_path):
    """And its console is what it printed, whatever lies in its place, and however large it is made."""
    script = "import os; os.fork() or os.execv('/usr/bin/sleep', ['sleep', '60.0125'])\nprint('words'); os.remove('console'); os.mkdir('console')"
    assert probe._boot(["/usr/bin/python3", "-c", script], tmp_path, 60) == "words\n"
    assert not subprocess.run(["pgrep", "-f", "sleep 60.0125"], capture_output=True).stdout
    (tmp_path / "console").rmdir()
    assert len(probe._boot(["/usr/bin/truncate", "-s", "1T", "console"], tmp_path, 60)) == probe.CONSOLE_BYTES


def test_our_own_kernels_know_the_accounts_and_send_messages(places):
    """A newer UML's processes get their memory so; programs of the guest ask for names of users."""
    refused, allowed = tried(places, LINUX_7_3, foreign=False)
    assert {name for name, said in refused.items() if said == "done"} == {
        "accounts",
        "send message",
        "start from memory",
        "filter",
    }
    assert set(allowed.values()) == {"done"}


@pytest.mark.parametrize("version", range(1, landlock.version() + 1))
def test_with_an_older_landlock_as_much_as_it_has(places, monkeypatch, version):
    monkeypatch.setattr(landlock, "version", lambda: version)
    refused, _ = tried(places, LINUX_6_12)
    assert {name for name, said in refused.items() if said == "done"} == (
        {"truncate", "signal"} if version < 3 else {"signal"} if version < 6 else set()
    )
    assert ("emptying your files" in confined.lacking()) == (version < 3)
    assert ("signals to your other processes" in confined.lacking()) == (version < 6)


def test_without_landlock_the_filter_holds(places, monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: 0)
    refused, _ = tried(places, LINUX_6_12)
    open_to_it = {name for name, said in refused.items() if said == "done"}
    assert {"read", "write"} <= open_to_it
    assert open_to_it.isdisjoint(
        {
            "AF_INET",
            "AF_INET6",
            "AF_NETLINK",
            "AF_PACKET",
            "connect",
            "send",
            "start by a child",
            "attach",
            "seize",
            "io_uring",
            "mode",
            "link",
        }
    )
    assert confined.lacking() == ["reading and writing your files", "signals to your other processes"]
    said: list[str] = []
    monkeypatch.setattr(build, "read_kernel", lambda *_: "there already")
    own = [type("Own", (), {"name": "mine", "text": ""})()]
    build.build_kernel(say=said.append, own=own)
    assert said == [f"kernel lab-6.12+mine: {confined.warning()}"]
    assert "as another user" in said[0] and "\n" not in said[0]
    build.build_kernel(say=said.append)
    assert len(said) == 1, "kernels of this project's own sources need no word"


def test_a_kernel_that_lets_nobody_answer_starts_a_guest_all_the_same(places, monkeypatch):
    """Linux before 5.5: files alone hold back what it starts."""
    monkeypatch.setattr(os, "uname", type("Uname", (), {"release": "5.4.0-200-generic"}))
    refused, allowed = tried(places, LINUX_6_12)
    assert {name for name, said in refused.items() if said == "done"} == set()
    assert refused["start by a child"] == "Permission denied"
    assert set(allowed.values()) == {"done"}


def test_with_neither_all_goes_on_as_it_is(monkeypatch):
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(seccomp, "is_supported", lambda: False)
    done = subprocess.run(
        confined.uml(["/usr/bin/id", "-u"], LINUX_6_12, foreign=True, reads=[], writes=[]),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"{os.getuid()}\n"), done.stderr
    assert "all that you may" in confined.warning()
    assert "all that you may" in doctor._confinement().found


def test_doctor_says_what_holds():
    found = doctor._confinement()
    assert not found.remedy and found.found.startswith(f"Landlock version {landlock.version()}; ")


def test_a_program_starts_as_without(tmp_path):
    """Its arguments, environment, signals and open files are those that it would have."""
    text = "import os, signal, sys; print(sys.argv[1:], sorted(os.environ.items()), os.listdir('/proc/self/fd'))"
    argv = ["/usr/bin/python3", "-I", "-S", "-c", text, "a b", "", "\u00e9"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONCOERCECLOCALE": "0", "X": "y z"}
    plain, held = (
        subprocess.run(command, capture_output=True, text=True, env=environment)
        for command in (argv, confined.command(argv, None, b"", once=True))
    )
    assert held.stdout == plain.stdout and held.stderr == "" == plain.stderr
    status = ["/usr/bin/grep", "^Sig[IC]", "/proc/self/status"]
    plain, held = (
        subprocess.run(c, capture_output=True, text=True)
        for c in (status, confined.command(status, None, b"", once=True))
    )
    assert held.stdout == plain.stdout


@pytest.mark.parametrize(
    ("prompt", "own", "everything"), [(False, {}, False), (True, {}, True), (True, {"mine": "0"}, False)]
)
def test_programs_of_ones_own_run_in_a_play(tmp_path, prompt, own, everything):
    """Whoever types may read what he may; a stranger's kernel may not."""
    for name in ("guest", "lib", "out"):
        (tmp_path / name).mkdir()
    kernel = Kernel("k", "6.12.1", "b", "key", "/image", {}, {}, "s", "c", 1.0, own=own)
    link = PromptLink() if prompt else None
    job = process.Job(tmp_path, 1, 1 << 28, [], tmp_path / "log", prompt=link)
    spec = marshal.loads(bytes.fromhex(uml.command(kernel, job)[4]))
    assert (b"/" in [path for path, _ in spec["files"]["rules"]]) == everything


def test_what_does_not_start_says_so(tmp_path):
    done = subprocess.run(
        confined.uml([str(tmp_path / "none")], LINUX_6_12, foreign=False, reads=[], writes=[]),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 125
    assert done.stderr == f"bbrlab: {tmp_path / 'none'} does not start: No such file or directory\n"


LEAKS = [
    '#include "SECRET"',
    "#include <SECRET>",
    '#define X "SECRET"\n#include X',
    'asm(".incbin \\"SECRET\\"");',
    'asm(".include \\"SECRET\\"");',
    '_Pragma("GCC dependency \\"SECRET\\" shown") int x;',
    '#include "/proc/self/cwd/../outside/secret"',
    '#include "link.h"',
]


@pytest.mark.compiles
@pytest.mark.parametrize("text", LEAKS)
def test_a_compiler_shows_no_line_of_other_files(places, text):
    outside, tree = places
    (outside / "secret").write_text("do-not-tell\n")
    (tree / "link.h").symlink_to(outside / "secret")
    (tree / "a.c").write_text(text.replace("SECRET", str(outside / "secret")) + "\n")
    temporary = tree.with_name("temporary")
    temporary.mkdir()
    done = subprocess.run(
        confined.compiler(["gcc", "-c", "a.c", "-o", "a.o"], tree, temporary), capture_output=True, text=True, cwd=tree,
        env={"PATH": os.defpath, "TMPDIR": str(temporary), "LC_ALL": "C"},
    )  # fmt: skip
    assert "do-not-tell" not in done.stdout + done.stderr
    assert "dependency" in text or done.returncode
    assert not (tree / "a.o").exists() or b"do-not-tell" not in (tree / "a.o").read_bytes()


@pytest.mark.compiles
def test_a_build_step_opens_no_socket_and_writes_to_its_tree_only(places):
    outside, tree = places
    temporary = tree.with_name("temporary")
    temporary.mkdir()
    (tree / "Makefile").write_text(
        f"all:\n\t-echo x >{outside}/new\n\t-cat {outside}/secret\n\t-/usr/bin/python3 -c 'import socket; socket.socket()'\n"
        "\techo good >made && gcc -x c -c /dev/null -o made.o\n"
    )
    done = subprocess.run(
        confined.compiler(["make"], tree, temporary), capture_output=True, text=True, cwd=tree,
        env={"PATH": os.defpath, "TMPDIR": str(temporary), "LC_ALL": "C"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("ignored") == 3 and "do-not-tell" not in done.stdout
    assert (tree / "made").exists() and (tree / "made.o").exists() and not (outside / "new").exists()
