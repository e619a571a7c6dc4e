"""Landlock: restricts the files that a process may open, from Linux 5.13 on (Documentation/userspace-api/landlock.rst)."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CREATE_RULESET, VERSION = 444, 1  # landlock_create_ruleset, asked which rights this kernel has
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << bit for bit in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = (1 << bit for bit in range(13, 16))
OF_FILES = (
    EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
)  # rights that a file may have; the others are a folder's
TRUNCATE_FROM = 3
FS_RIGHTS = {
    1: MAKE_SYM * 2 - 1,
    2: REFER * 2 - 1,
    TRUNCATE_FROM: TRUNCATE * 2 - 1,
    5: IOCTL_DEV * 2 - 1,
}  # from which version on
NET_FROM, NET_RIGHTS = 4, 0b11  # bind and connect of TCP
SCOPED_FROM, SCOPES = 6, 0b11  # abstract Unix sockets, and signals, of processes that are not confined with it

READ = READ_FILE | READ_DIR
RUN = READ | EXECUTE
DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEV
# Files and folders; no links, devices and pipes, by which whoever reads the folder later would be led elsewhere.
WRITE = READ | WRITE_FILE | TRUNCATE | MAKE_REG | MAKE_DIR | REMOVE_FILE | REMOVE_DIR | REFER


@functools.cache
def version() -> int:
    """The version of Landlock of this machine's kernel; 0 if there is none, or a container forbids it."""
    return max(int(ctypes.CDLL(None).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION)), 0)


@dataclass(frozen=True)
class Ruleset:
    """The arguments of landlock_create_ruleset and landlock_add_rule."""

    # files, network, scopes: what is refused unless a rule allows it, as bits
    files: int
    network: int
    scopes: int
    # [[path, rights]]; a path as bytes, since the reading process may have another locale's encoding
    rules: list[tuple[bytes, int]]


def ruleset(allowed: Iterable[tuple[Path, int]]) -> Ruleset | None:
    """Rules that refuse all that ``allowed`` does not name, as far as this kernel's Landlock can; None without Landlock.

    Args:
        allowed: files and folders with the rights to them and below; missing ones are left out.
    """
    if not (abi := version()):
        return None
    handled = max(rights for since, rights in FS_RIGHTS.items() if since <= abi)
    rules = [
        (os.fsencode(path), rights & handled & (~0 if path.is_dir() else OF_FILES))
        for path, rights in allowed
        if path.exists()
    ]
    return Ruleset(handled, NET_RIGHTS if abi >= NET_FROM else 0, SCOPES if abi >= SCOPED_FROM else 0, rules)
