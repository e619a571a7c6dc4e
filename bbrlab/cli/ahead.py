"""What is checked before anything runs, so that hours of runs do not end with a slip of the keyboard."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bbrlab.base import files
from bbrlab.base.errors import UserError


def check_csv(csv: Path | None) -> None:
    """UserError if the file of ``--csv`` cannot be written; nothing is made, and what is there stays."""
    if csv is None:
        return
    if csv.is_dir():
        raise UserError(f"--csv {csv}: is a folder; give a file")
    parent = files.existing_parent(csv.absolute().parent)
    if not parent.is_dir():
        raise UserError(f"--csv {csv}: {parent} is a file, not a folder; choose another place")
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        raise files.explain(error, csv) from None
