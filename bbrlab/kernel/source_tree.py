"""The source trees in which kernels are compiled: one for each source, in which the build after a failed one continues.

build/source-trees/HASH has ``source``, the tree, and ``original``, the original versions of its changed files. Patches are
tried on copies of the files that they touch; what they make of them is put into the tree only then, and only where it
differs. So make compiles what is new, and the next try takes seconds to its first error. A tree goes when a kernel of
config/kernels.yaml is made of it, or when it is none of the TREES_MAX that were used last; it may be removed at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.base.locks import lock, owned_folder, remove_abandoned
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
        """The tree itself."""
        return self.folder / "source"

    def at(self, name: str) -> Path:
        """The path of a file of the tree, which need not exist. UserError if a link leads to it, perhaps out of the tree."""
        path = self.source / name
        if path.is_symlink() or not path.parent.resolve().is_relative_to(self.source.resolve()):
            raise UserError(
                f"{name}: this source has a symbolic link there, and what is behind it cannot be changed; patch another file"
            )
        return path

    def original(self, name: str) -> Path:
        """A file as it was when the source was unpacked; there may be none."""
        return self.folder / "original" / name if name in self._touched() else self.at(name)

    def put(self, new: Path, names: Iterable[str]) -> None:
        """Make files of the tree what they are in another folder, and those that were changed before and are not named now what
        they were. A file that is as it should be keeps its time."""
        before = self._touched()
        wanted = set(names)
        for name in sorted(wanted - before):
            if self.at(name).is_file():
                kept = self.folder / "original" / name
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.at(name), kept)
        files.write_json(self.folder / TOUCHED, sorted(before | wanted))
        for name in sorted(before | wanted):
            self._put((new if name in wanted else self.folder / "original") / name, self.at(name))

    def _put(self, content: Path, place: Path) -> None:
        if not content.is_file():
            place.unlink(missing_ok=True)
            return
        data = content.read_bytes()
        if place.is_file() and place.read_bytes() == data:
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = place.with_name(place.name + ".new")
        aside.write_bytes(data)
        shutil.copymode(content, aside)
        aside.replace(place)

    def _touched(self) -> set[str]:
        file = self.folder / TOUCHED
        return set(files.read_json(file)) if file.exists() else set()


@contextlib.contextmanager
def source_tree(source: Located, arch: str, run: Run, on_wait: Callable[[], None]) -> Iterator[SourceTree]:
    """Lock the tree of a source for the block, unpacked if needed. If the block moves it away, its folder is removed.

    Args:
        arch: as in kernels.yaml; each has its own tree.
        run: runs (step, command), for what unpacks.
        on_wait: called if another process has it.
    """
    parent = source_trees()
    parent.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(f"{source.identity} {arch}".encode()).hexdigest()[:16]
    folder = parent / name
    with lock(parent / f".{name}.lock", on_wait):
        remove_abandoned(parent, PREFIX)
        there = (folder / "source").is_dir()
        if not there:
            _make_room(parent, name)
            with owned_folder(parent, PREFIX) as scratch:
                (scratch / "source").mkdir()
                source.unpack(scratch / "source", run)
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                (scratch / "source").rename(folder / "source")
        shutil.rmtree(folder / "tmp", ignore_errors=True)  # of compilers that were killed
        os.utime(folder)
        try:
            yield SourceTree(folder, there)
        finally:
            if not (folder / "source").is_dir():
                shutil.rmtree(folder, ignore_errors=True)


def _make_room(parent: Path, name: str) -> None:
    """Remove the least recently used trees, but none that are in use."""
    others = sorted((p for p in parent.glob("[!.]*") if p.name != name), key=lambda p: p.stat().st_mtime, reverse=True)
    for folder in others[TREES_MAX - 1 :]:
        with contextlib.suppress(_InUseError), lock(parent / f".{folder.name}.lock", _refuse):
            shutil.rmtree(folder, ignore_errors=True)


class _InUseError(Exception):
    """Another process uses a tree."""


def _refuse() -> None:
    raise _InUseError
