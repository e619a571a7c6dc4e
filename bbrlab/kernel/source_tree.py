"""The source trees in which kernels are compiled: one for each source, in which the build after a failed one continues.

build/source-trees/HASH has ``source``, the tree, and ``original``, the original versions of its changed files. Patches are
tried on copies of the files that they touch; what they make of them is put into the tree only then, and only where it
differs. So make compiles what is new, and the next try takes seconds to its first error. What others' code left in a tree, objects
that make would take for its own among it, is for their series alone: other patches, other names and other sources have other trees. A
tree goes when a kernel of config/kernels.yaml is made of it, or when it is none of the TREES_MAX that were used last; it may be removed
at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.locks import lock, owned_folder, remove_abandoned, remove_tree
from bbrlab.kernel import beneath
from bbrlab.kernel.sources import Located, Run

TREES_MAX = 2  # some 700 MB each
PREFIX = ".unpack-"  # of the folders in which they are unpacked
TOUCHED = "touched.json"


def source_trees() -> Path:
    """The folder of the source trees."""
    return paths.build_folder() / "source-trees"


@dataclass(frozen=True)
class SourceTree:
    """A source tree that this process has locked."""

    folder: Path  # around it
    reused: bool  # whether it existed already

    @property
    def source(self) -> Path:
        """The tree itself, in which only beneath.py and what is confined may work."""
        return self.folder / "source"

    def has(self, name: str) -> bool:
        """Whether there was anything of this name when the source was unpacked. UserError if a link leads to it."""
        return (self._kept / name).exists() if name in self._touched() else beneath.exists(self.source, name)

    def copy_original(self, name: str, to: Path) -> None:
        """Copy a file as it was when the source was unpacked; nothing if there was none. UserError if a link is there, or leads to it,
        perhaps out of the tree."""
        changed = name in self._touched()
        if (self._kept / name).is_file() if changed else beneath.is_file(self.source, name):
            to.parent.mkdir(parents=True, exist_ok=True)
            beneath.copy(self._kept if changed else self.source, name, to)

    def put(self, new: Path, names: Iterable[str]) -> None:
        """Make files of the tree what they are in another folder, and those that were changed before and are not named now what
        they were. A file that is as it should be keeps its time."""
        before = self._touched()
        wanted = set(names)
        for name in sorted(wanted - before):
            self.copy_original(name, self._kept / name)
        files.write_json(self.folder / TOUCHED, sorted(before | wanted))
        for name in sorted(before | wanted):
            self._put((new if name in wanted else self._kept) / name, name)

    def _put(self, content: Path, name: str) -> None:
        if not content.is_file():
            beneath.remove(self.source, name)
            return
        data = content.read_bytes()
        if not beneath.is_file(self.source, name) or beneath.read_bytes(self.source, name) != data:
            beneath.write(self.source, name, data, stat.S_IMODE(content.stat().st_mode))

    @property
    def _kept(self) -> Path:
        return self.folder / "original"

    def _touched(self) -> set[str]:
        file = self.folder / TOUCHED
        return set(files.read_json(file)) if file.exists() else set()


@contextlib.contextmanager
def source_tree(source: Located, arch: str, owner: str, run: Run, on_wait: Callable[[], None]) -> Iterator[SourceTree]:
    """Lock the tree of a source for the block, unpacked if needed. If the block moves it away, its folder is removed.

    Args:
        arch: as in kernels.yaml; each has its own tree.
        owner: whose code is compiled in it, in words that no other series has; "" for kernels of this project alone.
        run: runs (step, command), for what unpacks.
        on_wait: called if another process has it.
    """
    parent = source_trees()
    parent.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(f"{source.identity} {arch} {owner}".encode()).hexdigest()[:16]
    folder = parent / name
    with lock(parent / f".{name}.lock", on_wait):
        remove_abandoned(parent, PREFIX)
        there = (folder / "source").is_dir()
        if not there:
            _make_room(parent, name)
            with owned_folder(parent, PREFIX) as scratch:
                (scratch / "source").mkdir()
                source.unpack(scratch / "source", run)
                remove_tree(folder)
                folder.mkdir()
                (scratch / "source").rename(folder / "source")
        remove_tree(folder / "tmp")  # of compilers that were killed
        os.utime(folder)
        try:
            yield SourceTree(folder, there)
        finally:
            if not (folder / "source").is_dir():
                remove_tree(folder)


def _make_room(parent: Path, name: str) -> None:
    """Remove the least recently used trees, but none that are in use."""
    others = sorted((p for p in parent.glob("[!.]*") if p.name != name), key=lambda p: p.stat().st_mtime, reverse=True)
    for folder in others[TREES_MAX - 1 :]:
        with contextlib.suppress(_InUseError), lock(parent / f".{folder.name}.lock", _refuse):
            remove_tree(folder)


class _InUseError(Exception):
    """Another process uses a tree."""


def _refuse() -> None:
    raise _InUseError
