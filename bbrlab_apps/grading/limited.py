"""Runs a function that reads untrusted files in a process of its own, with limits of time, memory and disk.

Its result comes back as JSON, so that nothing of it is executed or unpickled here.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import time
from collections.abc import Callable
from typing import Any

from bbrlab.base import files
from bbrlab.base.errors import UserError

END_BYTES = 64 << 20  # of the result, at most
SLOWER = 5  # real seconds for one of the processor's, at most, on a busy machine
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DONE, REFUSED, TROUBLE = "done", "refused", "trouble"


class Refused(UserError):
    """A submission cannot be read; the text says why, for the student."""


def run_limited(work: Callable[[], Any], *, seconds: float, memory_bytes: int, file_bytes: int) -> Any:
    """What ``work`` returns, as JSON has it.

    Refused: what it raised as a UserError, or that it used up a limit, or how it ended. UserError if this machine's disk is full,
    or somebody interrupted it.

    Args:
        work: the function; runs in a fork of this process.
        seconds: of a processor; after SLOWER times as many real ones it is ended, too.
        memory_bytes: that it may have beyond what this process has.
        file_bytes: of the largest file that it may write.
    """
    reader, writer = os.pipe()
    # Python prints and forgets a signal that comes while it forks, and in the fork it would count as a fault of the work.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    try:
        child = os.fork()
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(reader)
        os.close(writer)
        raise
    if child == 0:
        _work(work, reader, writer, seconds, memory_bytes, file_bytes)
    os.close(writer)
    deadline = time.monotonic() + SLOWER * seconds
    data, late = b"", True
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # signals that came meanwhile arrive here
        data = _received(reader, deadline)
        late = time.monotonic() >= deadline
    finally:
        os.close(reader)
        if late:  # or interrupted
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in INTERRUPTS and not late:  # no fault of the submission
        raise UserError("looking at a submission was interrupted; start again, what is graded is kept")
    if late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        raise Refused(f"looking at it took more than {seconds:g} s")
    try:
        verb, content = json.loads(data)
    except (ValueError, TypeError):
        how = (
            f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.waitstatus_to_exitcode(status)}"
        )
        raise Refused(f"the process that looked at it ended with {how}: a file in it cannot be read safely") from None
    if verb == REFUSED:
        raise Refused(str(content))
    if verb == TROUBLE:
        raise UserError(str(content))
    return content


def _received(reader: int, deadline: float) -> bytes:
    """All that the process writes until it ends, the deadline passes or END_BYTES are exceeded."""
    import select

    parts, size = [], 0
    while (left_s := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([reader], [], [], min(left_s, 1.0))
        if not ready:
            continue
        part = os.read(reader, 1 << 16)
        size += len(part)
        if not part or size > END_BYTES:
            break
        parts.append(part)
    return b"".join(parts)


def _work(
    work: Callable[[], Any], reader: int, writer: int, seconds: float, memory_bytes: int, file_bytes: int
) -> None:
    """Do the work under limits, write its result, and end this process."""
    status = 1
    try:
        os.close(reader)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C, too, and ends this process
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # At the first limit the kernel sends SIGXCPU, which says why; at the second it just kills.
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 3))
        limits = ((resource.RLIMIT_AS, _mapped_bytes() + memory_bytes), (resource.RLIMIT_FSIZE, file_bytes))
        for limit, value in limits:
            resource.setrlimit(limit, (value, value))
        try:
            answer = [DONE, work()]
        except UserError as error:
            answer = [REFUSED, str(error)]
        except MemoryError:
            answer = [REFUSED, f"looking at it took more than {memory_bytes >> 20} MiB of memory"]
        except RecursionError:
            answer = [REFUSED, "something in it is nested too deeply"]
        except OSError as error:
            full = error.errno in files.FULL
            place = (
                "no room for looking at submissions; set TMPDIR to a folder with more" if full else "it cannot be read"
            )
            answer = [TROUBLE if full else REFUSED, f"{place} ({error.strerror or error})"]
        data = json.dumps(answer, allow_nan=False).encode()
        while data:
            data = data[os.write(writer, data) :]
        status = 0
    finally:
        os._exit(status)


def _mapped_bytes() -> int:
    """The address space that this process has already."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
