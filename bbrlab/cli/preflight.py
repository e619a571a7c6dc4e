"""Checks of output paths before a long run."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bbrlab.base import files
from bbrlab.base.errors import UserError


def check_file(option: str, file: Path | None) -> None:
    """UserError if the file that an option names cannot be written; nothing is made, and what is there stays."""
    if file is None:
        return
    if file.is_dir():
        raise UserError(f"{option} {file}: is a folder; give a file")
    parent = files.existing_parent(file.absolute().parent)
    if not parent.is_dir():
        raise UserError(f"{option} {file}: {parent} is a file, not a folder; choose another place")
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        raise files.explain(error, file) from None
