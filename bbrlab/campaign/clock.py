"""Results with a date in the future, from a time when this machine's clock was ahead."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from bbrlab.base.words import number_of

AHEAD_S = 60  # machines that share a folder may differ by less
UNKNOWN_NS = 1_000_000_000  # 1970: older than everything that it may have been made from


def date_back(results: Path) -> None:
    """Let files that are dated in the future be older than all others, in the order in which they were made.

    Snakemake would take them for newer than what is changed from now on, and miss the change. For older ones it compares the content
    of what they were made from, and makes anew what has changed.
    """
    latest_ns = time.time_ns() + AHEAD_S * 1_000_000_000
    ahead = []
    for parent, _, names in os.walk(results):
        for name in names:
            path = os.path.join(parent, name)
            with contextlib.suppress(OSError):  # gone meanwhile, or somebody else's
                if (made_ns := os.lstat(path).st_mtime_ns) > latest_ns:
                    ahead.append((made_ns, path))
    for number, (_, path) in enumerate(sorted(ahead)):
        with contextlib.suppress(OSError):
            os.utime(path, ns=(UNKNOWN_NS + number * 1_000_000,) * 2, follow_symlinks=False)
    if ahead:
        print(
            f"bbrlab: {results}: {number_of(len(ahead), 'file')} dated in the future; what each was made from is compared",
            file=sys.stderr,
        )
