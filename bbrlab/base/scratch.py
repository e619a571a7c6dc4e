"""The folder that a guest works in, on the fastest temporary file system, and what killed runs left of theirs there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from bbrlab.base.errors import UserError
from bbrlab.base.locks import owned_folder, remove_abandoned

PREFIX = "bbrlab-run-"


def scratch_parent() -> Path:
    """Where guests keep their memory files: the fastest temporary folder from which a program may be mapped to run."""
    for name in (os.environ.get("TMPDIR"), "/dev/shm", "/tmp", "/var/tmp"):  # noqa: S108
        if name and os.access(name, os.W_OK | os.X_OK) and not os.statvfs(name).f_flag & os.ST_NOEXEC:
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
