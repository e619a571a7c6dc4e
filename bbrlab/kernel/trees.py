"""Built source trees, kept so that building a kernel with one more file takes seconds.

The default kernel's is kept when it is built, another kernel's is built when it is first asked for. build/trees/KERNEL has it,
some 300 MB, whole or not at all, until the kernel changes. Nothing is ever built in it, only in copies.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bbrlab.base import files, paths
from bbrlab.base.locks import lock
from bbrlab.kernel import beneath
from bbrlab.kernel.compile import compiled
from bbrlab.kernel.sources import Located
from bbrlab.kernel.specs import KernelSpec
from bbrlab.kernel.steps import Say

# Three quarters of a tree's files are of drivers and machines that the guest has not.
PRUNED = ("arch", "crypto", "drivers", "fs", "samples", "sound")
GUESTS_MACHINES = ("arch/um/", "arch/x86/")
PRUNED_SUFFIXES = (".c", ".h", ".S", ".dts", ".dtsi", ".rs")


def trees_folder() -> Path:
    """The folder of built trees."""
    return paths.build_folder() / "trees"


@contextlib.contextmanager
def built_tree(
    name: str, spec: KernelSpec, source: Located, key: str, jobs: int, say: Say, on_first: Callable[[Path], None]
) -> Iterator[tuple[Path, list[str]]]:
    """The tree in which a kernel was built, made if needed, and the names that the kernel registers.

    It is locked for the block. UserError naming the step that failed and the log to read.

    Args:
        name, spec, source: of the kernel.
        key: of the kernel and of its patches for the host.
        jobs: parallel compilers.
        say: gets one line per step.
        on_first: as of compile_kernel(), if the tree has to be made.
    """
    folder = trees_folder() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(f"{name}.making", name, say):
        while True:  # keep_tree() of another checkout's kernel may come between
            with _alone(name, name, say):
                content = _read(folder)
                if content is not None and content["key"] == key:
                    yield folder / "source", content["registered"]
                    return
            say(
                f"kernel {name}: its tree is built once, which takes minutes; from then on one's own algorithms take seconds"
            )
            with compiled(name, spec, source, folder.with_name(f"{name}.log"), jobs, say, on_first) as (tree, _, probe):
                keep_tree(tree, name, key, probe["ccas"], say)


def keep_tree(tree: Path, name: str, key: str, registered: list[str], say: Say) -> None:
    """Keep the tree in which a kernel was just built; it is moved.

    Args:
        tree: folder on the file system of the build folder, in one that is removed after this.
        name: of the kernel.
        key: of the kernel and of its patches for the host.
        registered: the names of congestion controls that it registers.
        say: called if another process has it locked.
    """
    trees_folder().mkdir(parents=True, exist_ok=True)
    with _alone(name, name, say):
        _put(tree, tree.with_name("new"), trees_folder() / name, key, registered)


def _alone(what: str, name: str, say: Say) -> contextlib.AbstractContextManager[None]:
    return lock(
        trees_folder() / f".{what}.lock",
        lambda: say(f"kernel {name}: another process is at its tree; waiting for that"),
    )


def _put(tree: Path, new: Path, folder: Path, key: str, registered: list[str]) -> None:
    prune(tree)
    new.mkdir()
    tree.rename(new / "source")
    files.write_json(new / "tree.json", {"key": key, "registered": registered})
    files.put_folder(new, folder)


def prune(tree: Path) -> None:
    """Remove source files from which nothing was compiled, in the folders that have most of them."""
    used: set[str] = set()
    for record in beneath.files(tree):
        if re.search(r"(^|/)\.[^/]*\.cmd$", record):  # what make was told that a file depends on
            names = re.findall(r"[\w./,+-]+\.[chS]\b", beneath.read_text(tree, record))
            used |= {posixpath.normpath(name) for name in names}  # "../x.h" beside a file is one of the folder above
    for top in PRUNED:
        for place in beneath.files(tree, top):
            if place.endswith(PRUNED_SUFFIXES) and place not in used and not place.startswith(GUESTS_MACHINES):
                beneath.remove(tree, place)


def _read(folder: Path) -> dict[str, Any] | None:
    """The record beside a tree; None if it is missing or damaged."""
    try:
        content = json.loads((folder / "tree.json").read_text(encoding="utf-8"))
        return content if {"key", "registered"} <= content.keys() else None
    except (OSError, ValueError, AttributeError):
        return None
