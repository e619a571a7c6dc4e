"""Runs one User-Mode Linux guest in virtual time, under a watchdog, and leaves no process behind."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TextIO

from bbrlab.errors import UserError
from bbrlab.guest.cores import one_core
from bbrlab.kernel import Kernel

PR_SET_CHILD_SUBREAPER = 36
# The guest's kernel mixes its command line into its entropy, and every step of a path walk moves its clock, so no path
# of this run or checkout may reach the guest: its process runs in the scratch folder, and hostfs, which opens files in
# the name of that process, knows the folder by this name.
HERE = "/proc/self/cwd"
# hostfs takes its folder as a bare mount option, which Debian 13's mount passes on only by the old system call.
OLD_MOUNT = "LIBMOUNT_FORCE_MOUNT2=always"
EPOCH_S = 1_700_000_000  # what the guest's wall clock shows at its start
WATCHDOG_S = 60  # real seconds without a sign of life
POLL_S = 0.05
# The TCP hash tables are walked for every sample; the default is thousands of empty buckets.
HASH_ENTRIES = 128
MIN_MEMORY_BYTES = 384 << 20
MEMORY_PER_FLIGHT = 4  # kernel memory per byte in flight or queued, with room to spare
PROGRESS = re.compile(r"^bbrlab (\w+)(?: (.*))?$")

_libc = ctypes.CDLL(None)


class GuestFailed(Exception):
    """The guest did not finish; the text says how, in words for the user."""


def memory_bytes(flight_bytes: float) -> int:
    """Guest memory for experiments with ``flight_bytes`` in flight and in queues."""
    return int(MIN_MEMORY_BYTES + MEMORY_PER_FLIGHT * flight_bytes)


def scratch_parent() -> Path:
    """Where guests keep their memory files: the fastest temporary folder from which a program may be mapped to run."""
    for name in (os.environ.get("TMPDIR"), "/dev/shm", "/tmp", "/var/tmp"):  # noqa: S108
        if name and os.access(name, os.W_OK | os.X_OK) and not os.statvfs(name).f_flag & os.ST_NOEXEC:
            return Path(name)
    raise UserError(
        "no temporary folder allows programs to run (all are mounted noexec); set TMPDIR to a folder on a disk that does"
    )


def _become_subreaper() -> None:
    """Adopt the guest's host processes when it dies, so that reap() can collect them."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)


def _reap() -> None:
    with_children = True
    while with_children:
        try:
            with_children = os.waitpid(-1, os.WNOHANG)[0] != 0
        except ChildProcessError:
            with_children = False


def run(
    kernel: Kernel,
    *,
    scratch: Path,
    seed: int,
    memory: int,
    arguments: list[str],
    log: Path,
    watchdog_s: float = WATCHDOG_S,
    on_progress: Callable[[str, str], None] = lambda verb, text: None,
    die_with_parent: bool = False,
) -> None:
    """Boot a guest and wait until it switches itself off.

    Args:
        kernel: what to boot.
        scratch: folder with ``guest`` (the guest's code, with its first program ``init``), ``lib`` (compiled helpers) and
            ``out`` (the one folder that it may write to); also gets its memory file and control socket.
        seed: of its entropy.
        memory: bytes.
        arguments: further kernel arguments.
        log: gets everything that its console prints.
        watchdog_s: real seconds without a line from the guest after which it is ended.
        on_progress: called with each "bbrlab VERB TEXT" line.
        die_with_parent: end the guest when this process loses its parent (a killed campaign).

    Raises:
        GuestFailed: if it hangs, dies or reports a failure.
    """
    # UML empties and uses uml_dir/umid: a folder where nothing else may ever stand.
    (scratch / "control").mkdir()
    parent = os.getppid()
    _become_subreaper()
    with one_core() as core:
        argv = [
            kernel.image, f"mem={memory >> 20}M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
            "time-travel=inf-cpu", f"time-travel-start={EPOCH_S}", f"random_seed={seed}", f"hostfs_writable={HERE}/out",
            f"thash_entries={HASH_ENTRIES}", "umid=guest", f"uml_dir={HERE}/control/",
            f"HERE={HERE}", "con=null", "con0=null,fd:1", "quiet", *arguments, "init=/bin/sh", "--", "-c",
            f'"{OLD_MOUNT} mount -t hostfs -o ro,noatime,{HERE}/guest none /mnt && exec /mnt/init"',
        ]  # fmt: skip
        environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(scratch), "HOME": str(scratch)}
        # The console is a file, never a pipe: a reader of a pipe makes the host signal its writer, and the guest would
        # take an interrupt at a moment that depends on real time.
        console = scratch / "console"
        pinned = ["taskset", "-c", str(core), "setpriv", "--pdeathsig", "KILL", *argv]
        with open(console, "wb") as output:
            process = subprocess.Popen(
                pinned, env=environment, cwd=scratch, stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {core})  # what follows the guest belongs to its core, too
        try:
            with open(console, "rb") as lines, open(log, "w", encoding="utf-8") as kept:
                _follow(process, lines, kept, watchdog_s, on_progress, parent if die_with_parent else None, log)
        finally:
            _end(process)
            os.sched_setaffinity(0, before)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
    process.wait()
    _reap()


def _follow(
    process: subprocess.Popen[bytes],
    console: BinaryIO,
    kept: TextIO,
    watchdog_s: float,
    on_progress: Callable[[str, str], None],
    parent: int | None,
    log: Path,
) -> None:
    """Read the console until the guest ends; keep all but the heartbeats. GuestFailed if it ends badly or hangs."""
    last_life, failed, finished, virtual, pending = time.monotonic(), None, False, None, b""
    while True:
        ended = process.poll() is not None  # asked before reading: what it wrote before its end is read, too
        *lines, pending = (pending + console.read()).split(b"\n")
        for raw in lines:
            line = raw.decode(errors="replace").rstrip("\r")
            match = PROGRESS.match(line)
            verb, text = (match[1], match[2] or "") if match else ("", "")
            if match:
                last_life = time.monotonic()
                on_progress(verb, text)
            if verb == "at":
                virtual = text
            else:
                kept.write(line + "\n")
            failed = text if verb == "failed" else failed
            finished = finished or verb == "done"
        if ended:
            break
        if parent is not None and os.getppid() != parent:
            raise GuestFailed("the campaign that started this run is gone")
        if time.monotonic() - last_life > watchdog_s:
            at = f"at {virtual} s of virtual time" if virtual else "while setting up"
            raise GuestFailed(
                f"the guest hung {at}: no sign of life for {watchdog_s:g} s of real time; its log is {log}"
            )
        time.sleep(POLL_S)
    kept.flush()
    if failed:
        raise GuestFailed(f"the guest gave up: {failed}; its log is {log}")
    if not finished:
        code = process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        raise GuestFailed(f"the guest {how} before the experiment was over; its log is {log}")


def is_supported() -> bool:
    """Whether this machine can run UML guests at all."""
    return sys.platform == "linux" and os.uname().machine == "x86_64"
