"""Files that are whole or absent: write aside, then rename."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from bbrlab.base.errors import DamagedFile, UserError
from bbrlab.base.limits import limits_in_words
from bbrlab.base.locks import PARTIAL, held, remove_tree

CHUNK_BYTES = 1 << 20
TEXT_BYTES_MAX = 64_000_000  # of a text that a user names


FULL = (errno.ENOSPC, errno.EDQUOT)


def explain(error: OSError, path: Path, or_else: str = "") -> UserError:
    """The UserError for what could not be read or written at ``path``; ``or_else``: what else can be done about it."""
    return UserError(f"{path}: {_reason(error, path)}{f', {or_else}' if or_else else ''}{_limits(error)}")


def unreadable(error: OSError, path: Path) -> DamagedFile:
    """The error for a file of ours that could not be read."""
    return DamagedFile(path, f"{_reason(error, path)}{_limits(error)}")


def _limits(error: OSError) -> str:
    return limits_in_words() if error.errno in (errno.EFBIG, errno.EMFILE, errno.ENOMEM, errno.EAGAIN) else ""


def _reason(error: OSError, path: Path) -> str:
    if error.errno in FULL:
        # what was written is removed by now, so what is free now says nothing of what was missing
        what = "quota is used up" if error.errno == errno.EDQUOT else "file system has no space or no inodes left"
        return f"the {what}; remove files there, or choose another place"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"no permission ({error.strerror}); choose another place or change its permissions"
    if error.errno == errno.ENOENT:
        return "is not there; was it moved, or is it still to be made?"
    return str(error.strerror or error)


def place_of(error: OSError, *folders: Path) -> Path:
    """Which of ``folders`` an error is about: the one that holds the file it names, or the one with the least room."""
    for name in (error.filename, error.filename2):
        if isinstance(name, (str, os.PathLike)):
            for folder in folders:
                if Path(name).absolute().is_relative_to(folder.absolute()):
                    return folder
    if error.errno in FULL:
        return min(folders, key=lambda folder: shutil.disk_usage(existing_parent(folder)).free)
    return folders[0]


def existing_parent(path: Path) -> Path:
    """The nearest folder above ``path`` (or itself) that exists."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


@contextlib.contextmanager
def _about(path: Path) -> Iterator[None]:
    """Let an error of the block say which file it is about: one of a write does not, and one that is written aside has a strange name."""
    try:
        yield
    except OSError as error:
        if error.filename is None or str(error.filename).endswith(PARTIAL):
            error.filename = str(path)
        raise


@contextlib.contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A path beside ``path`` to write to; renamed to ``path`` when the block ends well, removed when not."""
    with _about(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=PARTIAL, dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        try:
            with held(temporary):
                yield temporary
            temporary.chmod(0o666 & ~_umask())
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def open_plain(path: Path) -> BinaryIO:
    """A plain file, open to be read. UserError if it is a pipe or a device, of which reading may never end; OSError as of open()."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115 - the caller closes it
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISFIFO(mode):  # as of <(...): files are read more than once, and a pipe cannot be
        file.close()
        raise UserError(
            f"{path}: is a pipe, not a file; write what comes out of it to a file (COMMAND > FILE), and give that"
        )
    if not stat.S_ISREG(mode):
        file.close()
        raise UserError(f"{path}: is not a file; give a plain file, no folder and no device")
    return file


def read_plain(path: Path, most_bytes: int = TEXT_BYTES_MAX) -> bytes:
    """The content of a plain file. UserError as open_plain(), or if it has more than ``most_bytes``."""
    with open_plain(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise UserError(f"{path}: has more than {most_bytes / 1e6:g} MB; is it the right file?")
    return content


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path``, whole or not at all."""
    with aside(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_if_changed(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` unless it has it already, so that its time tells when it changed."""
    if not path.exists() or path.read_bytes() != text.encode():
        write_text(path, text)


@contextlib.contextmanager
def folder_aside(folder: Path) -> Iterator[Path]:
    """A folder beside ``folder`` to write to; what is still there of it when the block ends is removed."""
    with _about(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=PARTIAL, dir=folder.parent))
        try:
            with held(temporary):
                yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def put_folder(new: Path, folder: Path) -> None:
    """Put a whole folder in its place. One that is there goes aside first, and is removed when the new one is in its place: who has files
    of it open goes on. One that a user names is looked at before (outputs.check_folder()).

    Two folders cannot change places in one step. Who is killed between the two leaves the old one aside: restore_folder().
    """
    old = _old_of(folder)
    if folder.exists():
        _remove(old)
        folder.replace(old)
    try:
        new.replace(folder)
    except BaseException:
        restore_folder(folder)
        raise
    _remove(old)


def restore_folder(folder: Path) -> None:
    """Put back what a killed put_folder() left aside, or remove it where the new folder is in its place; nothing where neither was."""
    old = _old_of(folder)
    if old.exists() and not folder.exists():
        old.replace(folder)
    elif folder.exists():
        _remove(old)


def may_be_restored(folder: Path) -> bool:
    """Whether a killed put_folder() left the old folder aside, and none is in its place."""
    return _old_of(folder).exists() and not folder.exists()


def _old_of(folder: Path) -> Path:
    """Where a folder is while another one takes its place."""
    return folder.with_name(f".{folder.name}.bbrlab.old")


def _remove(folder: Path) -> None:
    """A folder, or a link to one."""
    if folder.is_symlink():
        folder.unlink()
    else:
        remove_tree(folder)


def write_json(path: Path, content: Any) -> None:
    """Write ``content`` as indented JSON, keys in their order, to ``path``, whole or not at all."""
    write_text(path, json.dumps(content, indent=1) + "\n")


def read_json(path: Path, remedy: str = "delete it, and what made it makes it anew") -> Any:
    """The content of a JSON file of ours. DamagedFile if it is missing, cut off or no JSON; UserError as open_plain()."""
    try:
        with open_plain(path) as file:
            text = file.read().decode()
        content = json.loads(text)
        if "\\ud" in text.lower():  # halves of a letter: two are one, and one alone is no text
            json.dumps(content, ensure_ascii=False).encode("utf-8")
        return content
    except OSError as error:
        raise unreadable(error, path) from None
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError, too
        raise DamagedFile(path, f"is damaged ({error})", remedy) from None


def sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
