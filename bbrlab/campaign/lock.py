"""One campaign at a time writes results."""

from __future__ import annotations

import fcntl
from pathlib import Path

from bbrlab.base import paths
from bbrlab.base.errors import UserError

_lock = None  # held as long as the process lives


def hold_lock(results: Path | None = None) -> None:
    """Make sure that one campaign at a time writes results. UserError if another one runs.

    The kernel drops the lock with its owner, however that ends, so a killed campaign never blocks the next one.
    """
    global _lock  # noqa: PLW0603 - the lock is the process's
    path = (results or paths.results_folder()) / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = open(path, "a")  # noqa: SIM115 - must stay open
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        raise UserError(f"another campaign is writing to {path.parent}; wait for it or end it") from None
    except OSError as error:  # network file systems that know no locks
        handle.close()
        raise UserError(
            f"{path}: this file system has no locks ({error.strerror}), so two campaigns could write here at once; mount it "
            "with locks (NFS: version 4, or lockd; Lustre: -o flock), or set BBRLAB_RESULTS to a folder on one that has them"
        ) from None
    _lock = handle
