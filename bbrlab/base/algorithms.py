"""The congestion control algorithms that scenarios may name: the field's, and one's own in kernels/cca/.

An algorithm of one's own is one C file with a ``tcp_congestion_ops``. Its file is called by the name that it registers:
``mine.c``, or ``tcp_mine.c`` as the kernel's own files are called, registers ``mine``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from pathlib import Path

from bbrlab.base import paths
from bbrlab.base.errors import UserError

KNOWN = ("bbr1", "bbr2", "bbr3", "cubic", "reno", "dctcp")
NAME_MAX = 15  # TCP_CA_NAME_MAX of include/net/tcp.h, without the byte that ends it
NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{NAME_MAX - 1}}}")
TUTORIAL = "docs/howto/own_algorithm.md"


def own_folder() -> Path:
    """Where algorithms of one's own are found by their names alone."""
    return paths.KERNELS / "cca"


def name_of_source(path: Path) -> str:
    """The name that a C file has to register. UserError for a file that is not called like one."""
    name = path.stem.removeprefix("tcp_")
    if path.suffix != ".c" or not NAME.fullmatch(name):
        raise UserError(
            f"{path}: an algorithm of one's own is one C file called by its name, NAME.c or tcp_NAME.c: a small letter, then "
            f"small letters, digits or _, at most {NAME_MAX} of them ({TUTORIAL})"
        )
    return name


def own_sources(given: Iterable[Path] = ()) -> dict[str, Path]:
    """{name: C file} of the algorithms of one's own: those in kernels/cca/, and those ``given``, which come before them. UserError
    for a file that is not called like one; for two that have one name."""
    sources: dict[str, Path] = {}
    for folder in (sorted(own_folder().glob("*.c")), given):
        here: dict[str, Path] = {}
        for path in folder:
            name = name_of_source(path)
            if name in here and here[name] != path:
                raise UserError(f"{path}: {here[name]} is '{name}', too; give one of them another name")
            here[name] = path
        sources |= here
    return sources


def no_such(name: str, own: Collection[str]) -> str:
    """What is said of an algorithm that there is not, with one that may be meant.

    Args:
        own: those of one's own that there are.
    """
    close = get_close_matches(name.casefold(), [*KNOWN, *own], 1)
    meant = f", did you mean {close[0]}?" if close else ""
    if name.casefold() == "bbr":
        meant = "; Linux's own 'bbr' is BBRv1 and is called bbr1 here"
    return (
        f"there is no algorithm '{name}'{meant} (there are {', '.join(KNOWN)}; of one's own: {', '.join(own) or 'none'}, by a file "
        "NAME.c in kernels/cca/, or with --cca-source)"
    )
