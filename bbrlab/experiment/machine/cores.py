"""One guest per core: a lock file for each core that this process may use.

The two halves of a UML guest hand over to each other at every system call; across cores, or with two guests on one
core, that makes everything several times slower.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.base.locks import open_lock

POLL_S = 0.05
TELL_AFTER_S = 5  # of waiting
TELL_AGAIN_S = 60
SHARED = Path("/tmp")  # noqa: S108
ID_MAP = Path("/proc/self/uid_map")


def outer_user(id_map: str, uid: int) -> int:
    """A user's number outside of this user namespace, in which numbers may be mapped arbitrarily.

    Args:
        id_map: /proc/self/uid_map: lines of first number inside, first number outside, how many.
    """
    for line in id_map.splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= uid < inside + count:
            return outside + uid - inside
    return uid


def lock_folder() -> Path:
    """The folder of the lock files: one per user, independent of TMPDIR, since all guests of a user must share it. UserError if
    another user made it, or may write to it."""
    try:
        user = outer_user(ID_MAP.read_text(encoding="ascii"), os.getuid())
        folder = (SHARED if os.access(SHARED, os.W_OK) else Path(tempfile.gettempdir())) / f"bbrlab-cores-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise UserError(
            f"no folder for the locks of the cores: {error}; set TMPDIR to one that you may write to"
        ) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise UserError(f"{folder}: must be a folder of yours that nobody else may write to; remove it and start again")
    return folder


def holders(folder: Path, cores: list[int]) -> list[str]:
    """The processes that hold the cores, as "core 0: process 123", as far as they are known."""
    words = []
    for core in cores:
        with contextlib.suppress(OSError):
            pid = (folder / f"core-{core}.lock").read_text(encoding="ascii", errors="replace").strip()
            words.append(f"core {core}: process {pid or 'unknown'}")
    return words


def waiting_words(since_s: float, who: Sequence[str]) -> str:
    """A message that a run waits for a core, since when, and which processes have the cores (holders())."""
    minutes = int(since_s / 60)
    since = f", for {minutes} min now" if minutes else ""
    return f"waiting for a free core{since} ({', '.join(who)})"


def _take(folder: Path, core: int) -> int | None:
    """The handle of a core's lock, which is held until it is closed; None if somebody has it."""
    try:
        handle = open_lock(folder / f"core-{core}.lock")
    except OSError as error:
        raise UserError(f"{folder}/core-{core}.lock: {error.strerror or error}; remove it and start again") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def owners() -> list[str]:
    """The processes that hold the cores (holders()); empty if one is free, which is locked for an instant to see that."""
    folder, cores = lock_folder(), sorted(os.sched_getaffinity(0))
    for core in cores:
        if (handle := _take(folder, core)) is not None:
            os.close(handle)
            return []
    return holders(folder, cores)


@contextlib.contextmanager
def one_core(
    on_wait: Callable[[str], None] = lambda text: None, may_wait: Callable[[], None] = lambda: None
) -> Iterator[int]:
    """Wait for a free core and hold it. The lock ends with the process, however that ends.

    Args:
        on_wait: called with a message on who has the cores, after a while and then each minute.
        may_wait: called at intervals; raises an exception to end the waiting.
    """
    folder = lock_folder()
    cores = sorted(os.sched_getaffinity(0))
    start = time.monotonic()
    tell_s = start + TELL_AFTER_S
    while True:
        for core in cores:
            if (handle := _take(folder, core)) is None:
                continue
            try:
                os.ftruncate(handle, 0)
                os.pwrite(handle, b"%d\n" % os.getpid(), 0)
                yield core
            finally:
                os.close(handle)
            return
        may_wait()
        if (now_s := time.monotonic()) > tell_s:
            tell_s = now_s + TELL_AGAIN_S
            on_wait(waiting_words(now_s - start, holders(folder, cores)))
        time.sleep(POLL_S)
