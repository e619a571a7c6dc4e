"""One guest per core: a lock file for each core that this process may use.

The two halves of a UML guest hand over to each other at every system call; across cores, or with two guests on one
core, that makes everything several times slower.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

POLL_S = 0.05


def lock_folder() -> Path:
    """The folder of the lock files, one per user, wherever TMPDIR points: all guests of a user must meet here."""
    shared = Path("/tmp")  # noqa: S108
    folder = (shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())) / f"bbrlab-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextlib.contextmanager
def one_core() -> Iterator[int]:
    """Wait for a free core and hold it. The lock goes with the process, however it ends."""
    folder = lock_folder()
    cores = sorted(os.sched_getaffinity(0))
    while True:
        for core in cores:
            handle = os.open(folder / f"core-{core}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            try:
                yield core
            finally:
                os.close(handle)
            return
        time.sleep(POLL_S)
