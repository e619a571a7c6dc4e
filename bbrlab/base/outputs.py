"""Where a command may write: where nothing is yet, and in place of what bbrlab made there and can tell by a mark in it.

Anything else is refused before anything is computed: it is somebody's, and a result would replace it.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import mmap
import os
import stat
import tempfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

from bbrlab.base import files
from bbrlab.base.errors import UserError

MADE = ".made-by-bbrlab"  # in a folder that is replaced as a whole: the names of its files
BESIDES = {MADE, ".snakemake_timestamp"}  # that such a folder may have
PICTURE = b"made by bbrlab"  # in the metadata of every picture
PAGE = b'<meta name="generator" content="bbrlab">'
QLOG = b"recorded at each ACK and retransmission timeout by bbrlab"  # in the first record of each file
LINE_BYTES = 1 << 16  # more than any first line that has a mark
TEXT_BYTES = 64 << 20  # more than any text that bbrlab writes
OWNER = "bbrlab"  # "made_by" in each JSON file that a command may replace
JSON = b'"made_by": "bbrlab"'  # as it stands there
SIGNED = "# made by bbrlab; who changes it, gives it another name. SHA-256 of what follows: "


def check_file(option: str, file: Path | None, mark: bytes | None = None) -> None:
    """UserError if the file that an option names cannot be written, or is there and is not bbrlab's; nothing is made.

    Args:
        mark: what is in each file that the command makes; None: they have none, and no file that is there is replaced.
    """
    if file is None:
        return
    if file.is_dir():
        raise UserError(f"{option} {file}: is a folder; give a file")
    parent = files.existing_parent(file.absolute().parent)
    if not parent.is_dir():
        raise UserError(f"{option} {file}: {parent} is a file, not a folder; choose another place")
    if os.path.lexists(file) and not is_own(file, mark):
        why = "does not have the mark of what this command makes" if mark else "would be replaced"
        if file.is_symlink():
            why = "is a link, which a file would replace"
        raise UserError(f"{option} {file}: is there, and {why}; move it, or give another name")
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        raise files.explain(error, file) from None


def is_own(file: Path, mark: bytes | None) -> bool:
    """Whether a file is empty or has the mark, packed or not."""
    with contextlib.suppress(OSError, EOFError, zlib.error):
        if not file.is_file() or file.is_symlink():
            return False
        if not file.stat().st_size:
            return True
        if mark is None:
            return False
        if file.suffix == ".gz":
            with gzip.open(file, "rb") as packed:
                return mark in packed.readline(LINE_BYTES)
        with open(file, "rb") as content, mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return text.find(mark) >= 0
    return False


def check_folder(option: str, folder: Path | None, made: Collection[str] | None = None) -> None:
    """UserError if a folder that is to be replaced as a whole has a file that bbrlab did not make.

    Args:
        folder: that the option names; None: it is not given, and the place is bbrlab's own.
        made: the names of what bbrlab made there; default: what list_made() wrote.
    """
    if folder is None or not os.path.lexists(folder):
        return
    if folder.is_symlink():
        raise UserError(f"{option} {folder}: is a link, which a folder would replace; give the folder that it leads to")
    if not folder.is_dir():
        raise UserError(f"{option} {folder}: is a file; give a folder")
    if made is None:
        made = (text_of(folder / MADE) or "").splitlines()
    known = {*BESIDES, *made}
    try:
        other = next((name for name in _names(folder) if name not in known), None)
    except OSError as error:
        raise files.explain(error, folder) from None
    if other is not None:
        raise UserError(
            f"{option} {folder}: has {other}, which is not among what bbrlab made there, and the folder would be replaced as a whole; "
            "give one that is empty or not there yet, or delete this one if nothing in it is yours"
        )


def list_made(folder: Path) -> None:
    """Write the names of a folder's files into it, so that check_folder() knows them."""
    (folder / MADE).write_text("".join(f"{name}\n" for name in sorted(_names(folder))), encoding="utf-8")


def _names(folder: Path) -> Iterator[str]:
    """Of all files in a folder and below it, and of links."""

    def fail(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(folder, onerror=fail):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in (*names, *links):
            yield os.path.relpath(os.path.join(place, name), folder)


def signed(text: str) -> str:
    """A text with a first line by which is_as_made() tells whether anybody changed it."""
    return f"{SIGNED}{hashlib.sha256(text.encode()).hexdigest()}\n{text}"


def is_as_made(file: Path) -> bool:
    """Whether a file has a signed() text, as it was written."""
    text = text_of(file)
    return text is not None and text == signed(text.partition("\n")[2])


def text_of(file: Path) -> str | None:
    """The text of a file that anybody may have put where bbrlab writes one; None if it is none: a link, a pipe, of more than TEXT_BYTES."""
    with contextlib.suppress(OSError, ValueError):
        status = file.lstat()
        if stat.S_ISREG(status.st_mode) and status.st_size <= TEXT_BYTES:
            return file.read_text(encoding="utf-8")
    return None
