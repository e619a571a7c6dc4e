"""Runs the guest's program in a virtual machine: one process on one core, watched, and cleaned up.

This is common to UML (virtual time) and QEMU (real time).
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import re
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TextIO

from bbrlab.base.errors import UserError
from bbrlab.base.signals import postponed
from bbrlab.experiment.machine.cores import one_core
from bbrlab.experiment.machine.strain import Gauge

PR_SET_CHILD_SUBREAPER = 36
WATCHDOG_S = 60  # real seconds without a sign of life, those that it waited for its core left out
POLL_S = 0.05
MEMORY = "memory"  # the folder in its scratch folder in which a guest keeps its memory file
CONSOLE_BYTES = 64 << 20  # a guest prints some kB
LOOK_S = 5.0  # how often it is asked how long it waited for its core
# A guest that runs out of memory ends: with one of its processes killed it would hang, or go on without it.
PANIC_ARGUMENTS = ["sysctl.vm.panic_on_oom=2", "panic=-1"]
OUT_OF_MEMORY = "Kernel panic - not syncing: Out of memory"
OUT_OF_HOST_MEMORY = "UML ran out of memory on the host side"
KILLED = (
    "; most often there was too little memory: run fewer at once (--cores), or give the machine or the container more"
)
MOUNT, LOADER = Path("/usr/bin/mount"), "/lib64/ld-linux-x86-64.so.2"
# What UML says when the terminals of this machine, which it would try and needs not, are refused to it.
NO_TERMINALS = "check_one_sigio failed, errno = 13"
# What the kernel says of a value that its module does not take. It then reads no more of its command line, and so never starts
# the guest's first program.
REFUSED = re.compile(r"`(.*)' (?:invalid|too large) for parameter `tcp_(\w+)\.(\w+)'")
REFUSED_BY_MODULE = re.compile(r"the kernel refused the parameters of ([\w, ]+): unknown value, or out of range")
SIGNS_OF_TIME = ("start", "at")  # said when the experiment starts, and every second of it
PROGRESS = re.compile(r"^bbrlab (\w+)(?: (.*))?$")
_libc = ctypes.CDLL(None)


class GuestFailed(Exception):
    """The guest did not finish; the text is a message for the user."""


class Stopped(Exception):
    """The guest was ended because the user wanted it."""


class PromptConsole(Protocol):
    """A second console of a guest, for a user who types commands."""

    @property
    def guest_end(self) -> int:
        """The guest's end, a file descriptor."""

    def hand_over(self) -> None:
        """Called when the guest has taken its end."""


@dataclass(frozen=True)
class Job:
    """One run of the guest's program."""

    # Folder with ``guest`` (the guest's code, with its first program ``init``), ``lib`` (compiled helpers) and ``out`` (the one
    # folder that it may write to); also gets what the machine needs on its way
    scratch: Path
    seed: int  # of its entropy, if that can be chosen
    memory_bytes: int
    arguments: list[str]
    log: Path
    # Real seconds without a line from the guest after which it is ended, without those in which it waited for its core: on a busy
    # machine, at a low priority, the second of computing that a set-up needs may take minutes
    watchdog_s: float = WATCHDOG_S
    on_progress: Callable[[str, str], None] = lambda verb, text: None  # called with each "bbrlab VERB TEXT" line
    die_with_parent: bool = False  # end the guest when this process loses its parent (a killed campaign)
    prompt: PromptConsole | None = None  # for a user who types commands; None without one
    stop: threading.Event | None = None
    on_start: Callable[[], None] = lambda: None  # called when it has a core, right before it starts
    ip_version: int = 4
    # Looks at it during its experiment; None: in virtual time it has all the time that it wants
    gauge: Gauge | None = None
    devices: tuple[str, ...] = ()  # further words for its command line: QEMU's network devices


def check_watchdog(watchdog_s: float) -> None:
    """UserError for an invalid watchdog: not positive, or not finite."""
    if not (math.isfinite(watchdog_s) and watchdog_s > 0):
        raise UserError(
            f"--watchdog-s {watchdog_s:g}: must be a finite number of seconds above 0; the default is {WATCHDOG_S}"
        )


def mount_command() -> str:
    """The command by which the guest's first program calls mount(8).

    The guest honours its setuid bit. Where root is not mapped (most user namespaces of users other than root) the program belongs to
    nobody, who may mount nothing: so the loader starts it, as the calling user.
    """
    status = MOUNT.stat() if MOUNT.exists() else None
    of_another = status is not None and status.st_mode & stat.S_ISUID and status.st_uid != 0
    return f"{LOADER} {MOUNT}" if of_another else MOUNT.name


def run(job: Job, argv: list[str]) -> None:
    """Start a machine in the scratch folder and wait until it switches itself off.

    Its console is its standard output: a file, never a pipe, for a reader of a pipe makes the host signal its writer, and a UML
    guest would take an interrupt at a moment that depends on real time. GuestFailed if it hangs, dies or reports a failure.
    Stopped if ``job.stop`` was set. UserError if the program is missing.
    """
    parent = os.getppid()
    # Adopt the machine's processes when it dies, so that they can be collected.
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(job.scratch / MEMORY), "HOME": str(job.scratch)}
    console = job.scratch / "console"
    with one_core(lambda text: job.on_progress("stage", text), lambda: _go_on(job)) as core:
        job.on_start()
        pinned = ["taskset", "-c", str(core), "setpriv", "--pdeathsig", "KILL", *argv]
        before = os.sched_getaffinity(0)
        process = None
        try:
            with open(console, "wb") as output, postponed():
                process = subprocess.Popen(
                    pinned, env=environment, cwd=job.scratch, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT, start_new_session=True, pass_fds=[job.prompt.guest_end] if job.prompt else [],
                )  # fmt: skip
            if job.gauge:
                job.gauge.watch(process.pid, core)
            if job.prompt:
                job.prompt.hand_over()
            else:
                os.sched_setaffinity(0, {core})  # what follows the guest belongs to its core, too
            with open(console, "rb") as lines, open(job.log, "w", encoding="utf-8") as kept:
                _follow(process, lines, kept, job, parent)
        finally:
            if process is not None:
                _end(process)
            os.sched_setaffinity(0, before)


def _go_on(job: Job) -> None:
    """Raise Stopped if the user wants to stop."""
    if job.stop and job.stop.is_set():
        raise Stopped


def _reap(group: int) -> None:
    """Collect the processes of a machine's group that were adopted from it, and end those that still live.

    Only this machine's: another one, which a thread of this process runs, has its own Popen, which must learn how it ended.
    """
    options = os.WNOHANG
    with contextlib.suppress(ChildProcessError):  # none is left
        while True:
            if os.waitpid(-group, options)[0] == 0:  # one is alive, so that the group is still this machine's
                os.killpg(group, signal.SIGKILL)
                options = 0


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
    process.wait()
    _reap(process.pid)


def _delays_ns(pid: int) -> dict[int, int]:
    """{process: ns that it was runnable without a core}, of a machine's process and its children; empty if it has ended."""
    waited_ns = {}
    with contextlib.suppress(OSError, ValueError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        for number in (pid, *map(int, children)):
            with contextlib.suppress(OSError, ValueError, IndexError):  # it ended, or this kernel does not tell
                waited_ns[number] = int(Path(f"/proc/{number}/schedstat").read_text(encoding="ascii").split()[1])
    return waited_ns


class _Silence:
    """The time without output of a machine, not counting the time in which it waited for its core."""

    def __init__(self, pid: int):
        self.pid = pid
        self.looked, self.delays = time.monotonic(), _delays_ns(pid)
        self.counted_s = 0.0

    def broken(self) -> None:
        """Note a sign of life."""
        self.counted_s = 0.0

    def lasts_s(self, look_s: float) -> float:
        """Its length so far. One of a machine's processes runs at a time, so that their waiting times may be added.

        Args:
            look_s: the shortest interval between looks at the processes.
        """
        now = time.monotonic()
        if (passed := now - self.looked) >= look_s:
            delays = _delays_ns(self.pid)
            waited_s = sum(ns - self.delays.get(pid, 0) for pid, ns in delays.items()) / 1e9
            self.counted_s += max(passed - waited_s, 0.0)
            self.looked, self.delays = now, delays
        return self.counted_s


def _given(failed: str, arguments: list[str]) -> str:
    """The parameters that were given to algorithms whose modules refused them."""
    refused = REFUSED_BY_MODULE.search(failed)
    modules = tuple(f"tcp_{name}." for name in refused[1].split(", ")) if refused else ()
    given = [argument.partition(".")[2] for argument in arguments if argument.startswith(modules)]
    return f" (params: {', '.join(given)})" if given else ""


def _follow(process: subprocess.Popen[bytes], console: BinaryIO, kept: TextIO, job: Job, parent: int) -> None:
    """Read the console until the guest ends; keep all but the heartbeats. GuestFailed if it ends badly or hangs."""
    failed, finished, virtual, pending = None, False, None, b""
    silence, look_s = _Silence(process.pid), min(LOOK_S, job.watchdog_s / 4)
    while True:
        ended = process.poll() is not None  # asked before reading: what it wrote before its end is read, too
        *lines, pending = (pending + console.read(CONSOLE_BYTES)).split(b"\n")
        if console.tell() >= CONSOLE_BYTES:
            raise GuestFailed(
                f"the guest printed more than {CONSOLE_BYTES >> 20} MiB; the beginning of it is {job.log}"
            )
        for raw in lines:
            line = raw.decode(errors="replace").rstrip("\r")
            match = PROGRESS.match(line)
            verb, text = (match[1], match[2] or "") if match else ("", "")
            if match:
                silence.broken()
                job.on_progress(verb, text)
            if job.gauge and verb in SIGNS_OF_TIME:
                job.gauge.look()
            if verb == "at":
                virtual = text
            elif line != NO_TERMINALS:
                kept.write(line + "\n")
            failed = text if verb == "failed" else failed
            if refused := None if match else REFUSED.search(line):
                kept.flush()
                value, module, name = refused.groups()
                raise GuestFailed(
                    f'params.{name} = {value}: the kernel refused it: "{refused[0]}"; give a value of the type that {module} has for '
                    f"it (module_param in its C file); its log is {job.log}"
                )
            if OUT_OF_MEMORY in line:
                kept.flush()
                raise GuestFailed(f"the guest's {job.memory_bytes >> 20} MiB of memory did not suffice; its log is {job.log}")  # fmt: skip
            if OUT_OF_HOST_MEMORY in line:
                kept.flush()
                raise GuestFailed(
                    "this machine gives the guest no more memory, though it has not used all of its own (a limit of memory, or of maps: "
                    f"sysctl vm.max_map_count); its log is {job.log}"
                )
            finished = finished or verb == "done"
        if ended:
            break
        _go_on(job)
        if job.die_with_parent and os.getppid() != parent:
            raise GuestFailed("the campaign that started this run is gone")
        if silence.lasts_s(look_s) > job.watchdog_s:
            clock = "its" if job.prompt else "virtual"
            at = f"at {virtual} s of {clock} time" if virtual else "while setting up"
            raise GuestFailed(
                f"the guest hung {at}: no sign of life for {job.watchdog_s:g} s of real time; its log is {job.log}"
            )
        time.sleep(POLL_S)
    kept.flush()
    if failed:
        raise GuestFailed(f"the guest gave up: {failed}{_given(failed, job.arguments)}; its log is {job.log}")
    if not finished:
        code = process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        why = KILLED if code == -signal.SIGKILL else ""
        raise GuestFailed(f"the guest {how} before the experiment was over; its log is {job.log}{why}")
