"""Locks, and temporary folders, that are released when their process ends.

Both stand on flock: the system takes a lock away when its holder ends, however it ends. So who holds a lock is alive, and
a folder whose lock is free was left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

YOUNG_S = 60  # a folder may be so old before its maker has locked it
PARTIAL = ".partial"  # how the name ends of what is written aside; it begins with a dot


@contextlib.contextmanager
def owned_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder in ``parent`` that is removed at the end of the block, or after a kill, by the next remove_abandoned(). OSError
    if it cannot be made."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        remove_tree(folder)
        os.close(handle)


def remove_tree(folder: Path) -> None:
    """Remove a folder, if it is there, with all that is in it, as far as that is possible; links are not followed.

    What kernel code of others writes may be nested deeper than Python's own goes, and closed to its owner.
    """
    if not os.path.lexists(folder):
        return
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, str(folder)], capture_output=True, check=False)


def remove_abandoned(parent: Path, prefix: str) -> list[Path]:
    """Remove the folders that owned_folder() made in ``parent`` for processes that are gone. Returns those removed.

    Only this user's real folders: what belongs to others and what links elsewhere stays, and so does what is young.
    """
    return [path for path in sorted(parent.glob(f"{prefix}*")) if _removed(path, os.O_DIRECTORY)]


def remove_partials(parent: Path) -> list[Path]:
    """Remove what killed processes left half-written anywhere below ``parent`` (files.aside() and its like). Returns those removed.

    What a living process writes it has locked; what is young may be about to be locked, and stays.
    """
    return [path for path in sorted(parent.rglob(f".*{PARTIAL}")) if _removed(path)]


def _removed(path: Path, flags: int = 0) -> bool:
    """Remove a file or folder of this user's that no process has locked, unless it is young. Returns whether it did."""
    with contextlib.suppress(OSError):  # gone meanwhile, a link, or locked: somebody's
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags)
        try:
            status = os.fstat(handle)
            if status.st_uid == os.geteuid() and time.time() - status.st_mtime >= YOUNG_S:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(path) if stat.S_ISDIR(status.st_mode) else path.unlink()
                return True
        finally:
            os.close(handle)
    return False


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder of one's own for the block, so that remove_partials() leaves it, where the file system has
    locks."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def open_lock(path: Path) -> int:
    """A handle of a lock file, made if need be; OSError for a link and for what is no file."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path}: is no file")
    return handle


@contextlib.contextmanager
def lock(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock file ``path`` for the block; calls ``on_wait`` once if somebody else has it."""
    handle = open_lock(path)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
