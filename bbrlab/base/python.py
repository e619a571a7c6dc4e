"""Python, and none of the files that happen to lie in the working folder: it may be a stranger's.

``python -m`` and ``python -c`` put the working folder first on the path of modules, so that a ``yaml.py`` in it runs in the place of
PyYAML. Libraries read settings there, too, and of numba's one names a folder of pickles.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bbrlab.base import paths

SAFE_PATH = "PYTHONSAFEPATH"  # in the environment: as -P, for a Python that others start


def start(module: str, *arguments: str, **how: Any) -> subprocess.Popen[Any]:
    """Start a Python of ours: ``python -m module``, in the checkout, with nothing of its working folder on the path.

    Args:
        arguments: its command line; paths must be absolute, for the working folder is another.
    """
    return subprocess.Popen([sys.executable, "-P", "-m", module, *arguments], cwd=paths.ROOT, **how)


def isolated(file: Path, *arguments: str) -> list[str]:
    """The command of a Python that runs one file of ours with the standard library alone, in whatever folder and environment."""
    return [sys.executable, "-I", "-S", str(file), *arguments]


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """A Python that a library starts in the block has nothing of the working folder on its path."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


@contextlib.contextmanager
def in_the_checkout() -> Iterator[None]:
    """The working folder is the checkout: for the import of a library that reads settings in the working folder."""
    before = os.open(".", os.O_PATH | os.O_CLOEXEC)  # it may have no name any more
    try:
        os.chdir(paths.ROOT)
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def forget_working_folder() -> None:
    """Take the working folder off the path of modules, where ``python -m`` has put it, unless it is the checkout itself.

    And off the path of programs, where an empty or relative entry means it: git, gcc and others are started by their names.
    """
    if path := os.environ.get("PATH"):
        os.environ["PATH"] = os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.isabs(entry))
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        here = ""
    if not sys.flags.safe_path and sys.path[0] in ("", here) and here != str(paths.ROOT):
        del sys.path[0]
