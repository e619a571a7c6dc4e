"""The folder that a guest works in, on the fastest temporary file system, and what killed runs left of theirs there."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.base.locks import owned_folder, remove_abandoned

PREFIX = "bbrlab-run-"


def _looked_at() -> Iterator[tuple[str, str]]:
    """Temporary folders, and why each will not do; empty if it will."""
    for name in (os.environ.get("TMPDIR"), "/dev/shm", "/tmp", "/var/tmp"):  # noqa: S108
        if not name:
            continue
        if not os.path.isdir(name):
            yield name, "there is no such folder"
        elif not os.access(name, os.W_OK | os.X_OK):
            yield name, "you may not write there"
        else:
            yield name, "it is mounted noexec" if os.statvfs(name).f_flag & os.ST_NOEXEC else ""


def passed_over() -> list[str]:
    """Folders that come before scratch_parent() and will not do, each with the reason."""
    return [f"{name} ({why_not})" for name, why_not in itertools.takewhile(lambda one: one[1], _looked_at())]


def scratch_parent() -> Path:
    """Where guests keep their memory files: the fastest temporary folder from which a program may be mapped to run."""
    for name, why_not in _looked_at():
        if not why_not:
            return Path(name).absolute()  # guests and compilers have a folder of their own
    raise UserError(
        "no temporary folder allows programs to run (all are mounted noexec); set TMPDIR to a folder on a disk that does"
    )


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for one run, gone afterwards; what runs that were killed left there, which is often memory, goes first."""
    parent = scratch_parent()
    remove_abandoned(parent, PREFIX)
    with owned_folder(parent, PREFIX) as folder:
        yield folder
