"""Files of a source tree, read, written and removed in that tree alone, whatever the source has there or its make left there.

A link is followed at no part of a path, and a pipe or device never read. Each part of a path is opened in the folder before it: a
process that still runs there can put a link in the place of a folder at any time, and leads nowhere with it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from bbrlab.base.errors import UserError

TEXT_MAX_BYTES = 64 << 20  # Linux has no text of half as many
FILE_MAX_BYTES = 1 << 30  # nor is it itself as large; a file with holes can be as large as it likes to be
NAME_MAX = 4096  # characters of a path, as Linux has it: nothing that is compiled lies deeper
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
ABSENT = (FileNotFoundError, NotADirectoryError)


def exists(tree: Path, name: str) -> bool:
    """Whether a tree has anything of this name, be it a link that leads nowhere. UserError if a link leads to it."""
    return _status(tree, name) is not None


def is_file(tree: Path, name: str) -> bool:
    """Whether a tree has a file of this name. UserError if it is a link, or one leads to it."""
    status = _status(tree, name)
    if status is not None and stat.S_ISLNK(status.st_mode):
        raise _strange(tree, name)
    return status is not None and stat.S_ISREG(status.st_mode)


def read_bytes(tree: Path, name: str) -> bytes:
    """The content of a file. UserError if it is a link, one leads to it, or it is no file that could be text; OSError if there is none."""
    with _opened(tree, name, TEXT_MAX_BYTES) as handle, open(handle, "rb", closefd=False) as file:
        return file.read(TEXT_MAX_BYTES)


def read_text(tree: Path, name: str) -> str:
    """The same as text, whatever its bytes are."""
    return read_bytes(tree, name).decode("utf-8", "replace")


def copy(tree: Path, name: str, to: Path) -> None:
    """Copy a file out of a tree, with its permissions. Errors as of read_bytes(), but it may be larger."""
    with (
        _opened(tree, name, FILE_MAX_BYTES) as handle,
        open(handle, "rb", closefd=False) as file,
        open(to, "wb") as out,
    ):
        shutil.copyfileobj(file, out)
        os.fchmod(out.fileno(), os.fstat(handle).st_mode & 0o777)


def write(tree: Path, name: str, data: bytes, mode: int = 0o644) -> None:
    """Put a file with these permissions in the place of the file that a tree has there, if any. UserError if that is a folder, or a link
    leads to it."""
    with _parent(tree, name, make=True) as (parent, last):
        handle, aside = tempfile.mkstemp(dir=tree.parent)  # where no make may write
        try:
            with open(handle, "wb") as file:
                file.write(data)
                os.fchmod(handle, mode)
            os.replace(aside, last, dst_dir_fd=parent)
        except BaseException:
            os.unlink(aside)
            raise


def remove(tree: Path, name: str) -> None:
    """Remove a file, or a link itself, if it is there. UserError if it is a folder, or a link leads to it."""
    with contextlib.suppress(*ABSENT), _parent(tree, name) as (parent, last):
        os.unlink(last, dir_fd=parent)


def files(tree: Path, top: str = ".") -> Iterator[str]:
    """The names, from the tree on, of all files below one of its folders, without what is behind links or cannot be read."""
    left = [top]
    while left:
        here = left.pop()
        try:
            with _folder(tree, here, here) as handle, os.scandir(handle) as entries:
                found = sorted(
                    (e.name, e.is_dir(follow_symlinks=False), e.is_file(follow_symlinks=False)) for e in entries
                )
        except (*ABSENT, PermissionError, UserError):
            continue
        for last, is_folder, is_plain in found:
            name = str(PurePosixPath(here, last))
            if is_plain:
                yield name
            elif is_folder and len(name) < NAME_MAX:
                left.append(name)


def _strange(tree: Path, name: str) -> UserError:
    return UserError(
        f"{name}: this source has a symbolic link there, or what is no file, and what is behind it is neither read nor changed; patch "
        f"another file or, if its make left it there, remove {tree.parent}"
    )


@contextlib.contextmanager
def _folder(tree: Path, name: str, about: str, make: bool = False) -> Iterator[int]:
    """A handle of a folder of a tree.

    Args:
        about: the file that a message names.
        make: make it if need be.
    """
    parts = PurePosixPath(name).parts
    if ".." in parts or name.startswith("/"):
        raise _strange(tree, about)
    handle = os.open(tree, FOLDER)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            try:
                inner = os.open(part, FOLDER, dir_fd=handle)
            except NotADirectoryError:
                if make or stat.S_ISLNK(os.lstat(part, dir_fd=handle).st_mode):
                    raise _strange(tree, about) from None
                raise
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _parent(tree: Path, name: str, make: bool = False) -> Iterator[tuple[int, str]]:
    """A handle of the folder that has a file, and the file's name in it."""
    path = PurePosixPath(name)
    try:
        with _folder(tree, str(path.parent), name, make) as handle:
            yield handle, path.name
    except IsADirectoryError:
        raise _strange(tree, name) from None
    except OSError as error:
        error.filename = str(tree / name)
        raise


@contextlib.contextmanager
def _opened(tree: Path, name: str, max_bytes: int) -> Iterator[int]:
    """A handle of a file, to read it."""
    with _parent(tree, name) as (parent, last):
        try:
            handle = os.open(last, FILE, dir_fd=parent)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
                raise _strange(tree, name) from None
            raise
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise _strange(tree, name)
            if status.st_size > max_bytes:
                raise UserError(
                    f"{name}: has more than {max_bytes >> 20} MB in this source, as no such file of Linux has"
                )
            yield handle
        finally:
            os.close(handle)


def _status(tree: Path, name: str) -> os.stat_result | None:
    with contextlib.suppress(*ABSENT), _parent(tree, name) as (parent, last):
        return os.lstat(last, dir_fd=parent)
    return None
