"""The user's own algorithms: C files that are built into a kernel."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base.algorithms import KNOWN, TUTORIAL, name_of_source, own_sources
from bbrlab.base.errors import UserError
from bbrlab.base.files import explain, read_plain
from bbrlab.kernel.specs import KernelSpec, find_spec

WITHOUT = "struct tcp_congestion_ops"  # this in its text no file registers an algorithm
FRAME = re.compile(r"\b([A-Za-z_]\w*)(?:\.\w+)*\+0x[0-9a-f]+/0x[0-9a-f]+")  # of a call trace
STOPPED = re.compile(r"Kernel panic - not syncing: .*|BUG: failure at .*|kernel BUG at .*")


@dataclass(frozen=True)
class OwnCca:
    """A user's own algorithm."""

    name: str  # under which it registers, and which scenarios use
    path: Path  # its C file, as the user named it
    text: str  # the file's content

    @property
    def module(self) -> str:
        """The name of its module, under which the kernel has its parameters."""
        return f"tcp_{self.name}"

    @property
    def sha256(self) -> str:
        """Hash of its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_own(path: Path) -> OwnCca:
    """Read an algorithm's file, as data only. UserError if it cannot be one."""
    name = name_of_source(path)
    try:
        text = io.TextIOWrapper(io.BytesIO(read_plain(path)), encoding="utf-8").read()
    except OSError as error:
        raise explain(error, path) from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not text ({error.reason} at byte {error.start}); give a C file") from None
    if WITHOUT not in text or "\0" in text:
        raise UserError(
            f"{path}: has no '{WITHOUT}', and so registers no algorithm; see {TUTORIAL} and kernels/cca/aimd.c"
        )
    return OwnCca(name, path, text)


def own_of(used: Iterable[str], kernel_name: str | None, given: Sequence[Path] = ()) -> list[OwnCca]:
    """The algorithms to build into a kernel: all of ``given``, and those of kernels/cca/ in ``used``.

    UserError for an invalid file, or one with the name of an algorithm that the kernel has.

    Args:
        used: names that flows have.
        kernel_name: entry of kernels.yaml; default: its default.
        given: C files that the user named.

    Returns:
        Sorted by name; empty if the kernel has all that is used.
    """
    kernel_name, spec = find_spec(kernel_name)
    unknown = set(used) - set(KNOWN) - set(spec.names)
    if not unknown and not given:  # whatever stands in the folder
        return []
    sources = own_sources(given)
    wanted = {name_of_source(path) for path in given} | (unknown & set(sources))
    algorithms = [read_own(sources[name]) for name in sorted(wanted)]
    for own in algorithms:
        check_name(own, kernel_name, spec)
    return algorithms


def check_name(own: OwnCca, kernel_name: str, spec: KernelSpec, registered: Iterable[str] = ()) -> None:
    """UserError if an algorithm's name is taken: by the field's names, or by what the kernel registers itself."""
    if own.name in {*KNOWN, *spec.names, *spec.names.values(), *registered}:
        raise UserError(
            f"{own.path}: the name '{own.name}' is taken: kernel {kernel_name} has an algorithm of this name; give the file, "
            "and what it registers, another one"
        )


def own_name(kernel_name: str, own: Sequence[OwnCca]) -> str:
    """The name in results of a kernel with the user's own algorithms: lab-6.12+mine."""
    return "+".join([kernel_name, *(cca.name for cca in own)])


def recipe_name(name: str) -> str:
    """The entry of config/kernels.yaml for a result's kernel: lab-6.12 of lab-6.12+mine."""
    return name.partition("+")[0]


def place_of_crash(own: OwnCca, lines: Sequence[str]) -> str | None:
    """The place in an algorithm's file at which the kernel stopped, by the lines of its console.

    Returns:
        "FILE:LINE: in FUNCTION: the kernel's words"; None if the call trace has no function of the algorithm.
    """
    words = [m[0].strip() for line in lines if (m := STOPPED.search(line))]
    if not words:
        return None
    in_kernel = f"net/ipv4/{own.module}.c"
    for word in words:
        if at := re.search(rf"{re.escape(in_kernel)}:(\d+)", word):
            return f"{own.path}:{at[1]}: {word.replace(in_kernel, own.path.name)}"
    for line in lines:
        for frame in FRAME.finditer(line):
            if number := _line_of(frame[1], own.text):
                return f"{own.path}:{number}: in {frame[1]}(): {words[-1]}"
    return None


def crash_message(own: Sequence[OwnCca], lines: Sequence[str]) -> str | None:
    """The place at which a kernel with the user's own algorithms stopped, in words; None if it did not stop by itself.

    Args:
        own: the algorithms, one at least.
        lines: of the console.
    """
    for cca in own:
        if place := place_of_crash(cca, lines):
            return place
    words = [m[0].strip() for line in lines if (m := STOPPED.search(line))]
    names = ", ".join(str(cca.path) for cca in own)
    return f"{names}: the kernel with it stopped, and did not say where: {words[-1]}" if words else None


def _line_of(function: str, text: str) -> int | None:
    """The line of a function's definition in a C file; None if it has none."""
    match = re.search(rf"^[A-Za-z_][^;={{}}\n]*\b{re.escape(function)}\s*\([^;{{}}]*\)\s*\{{", text, re.MULTILINE)
    return None if match is None else text.count("\n", 0, match.start()) + 1
