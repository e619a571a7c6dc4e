"""What programs on nodes wrote in a play: plain files, copied to the results. Links and devices are left out."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from bbrlab.run.output import PROMPT_FILES

FILES_MAX = 1000
BYTES_MAX = 1_000_000_000


def keep_files(folder: Path, out: Path) -> list[str]:
    """Copy the files of a play's nodes. OSError if a file cannot be written.

    Returns:
        What was left out and why, in words; nothing is copied, and no folder made, if there are no files.
    """
    left, count, total = list[str](), 0, 0
    root = folder / PROMPT_FILES
    for parent, folders, names in os.walk(root):  # follows no links
        folders.sort()
        for name in sorted(names):
            source = Path(parent, name)
            place = source.relative_to(root)
            try:
                handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                left.append(f"{place}: is no plain file")
                continue
            with open(handle, "rb") as file:
                status = os.fstat(handle)
                if not stat.S_ISREG(status.st_mode):
                    left.append(f"{place}: is no plain file")
                elif count == FILES_MAX or total + status.st_size > BYTES_MAX:
                    left.append(f"{place}: more than {FILES_MAX} files or {BYTES_MAX // 1_000_000} MB")
                else:
                    target = out / PROMPT_FILES / place
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with open(target, "wb") as copy:
                        shutil.copyfileobj(file, copy)
                    count, total = count + 1, total + status.st_size
    return left
