"""Builds a kernel with the user's own algorithms in a copy of the kernel's built tree, so that only their files are compiled. First
they are compiled beside that tree, so that mistakes show at once, also while the tree is still being built."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bbrlab.base.algorithms import TUTORIAL
from bbrlab.base.errors import UserError
from bbrlab.kernel import beneath
from bbrlab.kernel.own import OwnCca, check_name, crash_message, own_name
from bbrlab.kernel.probe import BootFailed, probe_kernel
from bbrlab.kernel.sources import Located
from bbrlab.kernel.specs import KernelSpec
from bbrlab.kernel.steps import TARGETS, Say, Steps, make
from bbrlab.kernel.trees import built_tree

PLACE = "net/ipv4"  # of the kernel's source, where its own algorithms are
WORDS_MAX = 24  # lines of a compiler that are shown
# What make says beside the compiler: its own errors, the commands of our log, "  CC      net/ipv4/tcp_mine.o".
MAKES_OWN = re.compile(r"\$ |make(\[\d+\])?: |  [A-Z][A-Z0-9_]+ +\S")


def compile_with_own(
    name: str,
    spec: KernelSpec,
    source: Located,
    base_key: str,
    key: str,
    own: Sequence[OwnCca],
    scratch: Path,
    jobs: int,
    say: Say,
) -> tuple[Path, Path, dict[str, Any]]:
    """Compile a kernel with the user's own algorithms and probe it.

    UserError naming the algorithm's file and, where there is one, the line: if its name is taken, it does not compile, it stops
    the kernel as it starts, or it registers nothing, or something else.

    Args:
        name, spec, source: the kernel's entry of kernels.yaml, and its source.
        base_key: of that kernel without them, and of its patches for the host.
        key: of the kernel with them; its log is named by it, since two versions of a file may be built at once.
        own: the algorithms.
        scratch: an empty folder.
        jobs: parallel compilers.
        say: gets one line per step.

    Returns:
        The tree in which it was compiled, the kernel, and the result of probe_kernel().
    """
    tree, log = scratch / "source", scratch.parent / f"{own_name(name, own)}.{key}.log"
    tree.mkdir()

    def try_all(built: Path) -> None:
        for cca in own:
            _try(steps, cca, built)

    with open(log, "w", encoding="utf-8") as file:
        steps = Steps(own_name(name, own), tree, log, file, say)
        with built_tree(name, spec, source, base_key, jobs, say, try_all) as (built, registered):
            for cca in own:
                check_name(cca, name, spec, registered)
            try_all(built)
            copy = ["cp", "-dR", "--preserve=mode,timestamps", "--reflink=auto", ".", str(tree)]
            steps.run("copy of the tree", copy, at=built)
    with open(log, "a", encoding="utf-8") as file:
        steps = Steps(own_name(name, own), tree, log, file, say)
        beneath.remove(tree, ".version")  # the count of builds in this tree, which would show in the kernel
        for cca in own:
            beneath.write(tree, f"{PLACE}/{cca.module}.c", cca.text.encode())
            _make(steps, cca, f"compile {cca.name}", make(spec, f"-j{jobs}", f"{PLACE}/{cca.module}.o"))
        more = "".join(f"\nobj-y += {cca.module}.o\n" for cca in own)
        beneath.write(tree, f"{PLACE}/Makefile", beneath.read_bytes(tree, f"{PLACE}/Makefile") + more.encode())
        _link(steps, own, make(spec, f"-j{jobs}", TARGETS[spec.arch][0]))
        image = scratch / "image"
        beneath.copy(tree, TARGETS[spec.arch][1], image)
        before = len(steps.words())
        try:
            probe = steps.timed("probe", lambda: probe_kernel(image, spec.arch, log, own=True))
        except BootFailed as error:
            place = crash_message(own, steps.words()[before:])
            raise UserError(f"{place}; it stopped as it was started" if place else str(error)) from None
        console = "\n".join(steps.words()[before:])
    for cca in own:
        _check_registered(cca, name, probe["ccas"], registered, console)
    return tree, image, probe


def _try(steps: Steps, own: OwnCca, built: Path) -> None:
    """Compile one algorithm's file beside the kept tree, as make compiled a file there: mistakes show in seconds, before anything is
    copied. Nothing is compiled if the tree does not record how a file was."""
    if beneath.exists(built, f"{PLACE}/{own.module}.c"):
        raise UserError(
            f"{own.path}: the kernel's source has {PLACE}/{own.module}.c already; give the file, and what it registers, "
            "another name"
        )
    if not (command := _command_like(built)):
        return
    apart = Steps(steps.name, steps.tree.with_name("tried"), steps.log, steps.file, steps.say)
    apart.tree.mkdir(exist_ok=True)
    beneath.write(apart.tree, f"{PLACE}/{own.module}.c", own.text.encode())
    source = apart.tree / PLACE / f"{own.module}.c"
    stem, words = command
    argv = [word.replace(stem, own.module) for word in words]
    argv += ["-iquote", PLACE, "-c", "-o", str(source.with_suffix(".o")), str(source)]
    _make(apart, own, f"try {own.name}", argv, at=built)


def _command_like(built: Path) -> tuple[str, list[str]] | None:
    """A file of PLACE that make compiled in a tree, and the command without input and output; None if there is no record."""
    for record in sorted(beneath.files(built, PLACE)):
        if not (named := re.fullmatch(rf"{PLACE}/\.(tcp_[^/]*)\.o\.cmd", record)):
            continue
        stem = named[1]
        with contextlib.suppress(OSError, ValueError, UserError):
            line = beneath.read_text(built, record).partition("\n")[0]
            words = shlex.split(line.partition(":=")[2].partition(" ; ")[0])
            end = ["-c", "-o", f"{PLACE}/{stem}.o", f"{PLACE}/{stem}.c"]
            if words[-len(end) :] == end:
                return stem, [word for word in words[: -len(end)] if not word.startswith("-Wp,-MMD")]
    return None


def _make(steps: Steps, own: OwnCca, step: str, argv: list[str], at: Path | None = None) -> None:
    """Compile one algorithm's file. UserError with the compiler's messages, in which the file has the user's name.

    Args:
        at: the kept tree, for a trial compilation.
    """
    before = len(steps.words())
    failed = False
    try:
        steps.run(step, argv, at=at)
    except UserError:
        if not (words := _compilers(steps, own, before)):
            raise
        failed = True
    words = _compilers(steps, own, before)
    if failed:
        shown = words[:WORDS_MAX] + ([f"... (all of it: {steps.log})"] if len(words) > WORDS_MAX else [])
        raise UserError("\n".join([f"{own.path}: does not compile:", *shown]))
    for warning in (line for line in words if "warning:" in line and at is None):
        steps.say(warning)


def _compilers(steps: Steps, own: OwnCca, before: int) -> list[str]:
    """The compiler's messages from its first error or warning on, with the user's name of the file."""
    name, lines = f"{PLACE}/{own.module}.c", [line for line in steps.words()[before:] if not MAKES_OWN.match(line)]
    messages = [line.replace(f"{steps.tree}/{name}", name).replace(name, str(own.path)) for line in lines]
    return messages if any(re.search(r"\b(error|warning)\b", line) for line in messages) else []


def _link(steps: Steps, own: Sequence[OwnCca], argv: list[str]) -> None:
    """Compile the rest and link. UserError naming the file whose function or variable the kernel lacks, or has twice."""
    before = len(steps.words())
    try:
        steps.run("link", argv)
    except UserError:
        for line in steps.words()[before:]:
            for cca in own:
                if f"{cca.module}." in line and re.search("undefined reference|multiple definition", line):
                    what = line[re.search("undefined reference|multiple definition", line).start() :]  # type: ignore[union-attr]
                    raise UserError(
                        f"{cca.path}: does not link: {what} (a function that the kernel {steps.name} has, or has not; "
                        f"the log is {steps.log})"
                    ) from None
        raise


def _check_registered(own: OwnCca, kernel_name: str, found: list[str], before: list[str], console: str) -> None:
    """UserError if a started kernel does not have an algorithm, with the kernel's reason if it gave one."""
    if own.name in found:
        return
    other = sorted(set(found) - set(before))
    if refused := re.findall(r"TCP: (\S+) already registered", console):
        raise UserError(
            f"{own.path}: registers the name '{refused[0]}', which is taken: kernel {kernel_name} has an algorithm of this "
            f"name; register '{own.name}', as the file is called"
        )
    if lacking := re.findall(r"TCP: (\S+) does not implement required ops", console):
        raise UserError(
            f"{own.path}: the kernel refuses '{lacking[0]}': it needs ssthresh, undo_cwnd, and cong_avoid or cong_control"
        )
    if other:
        raise UserError(
            f"{own.path}: registers '{', '.join(other)}' and not '{own.name}', as the file is called; give one of them the "
            "other's name"
        )
    raise UserError(
        f"{own.path}: registers no algorithm; call tcp_register_congestion_control() in its module_init() ({TUTORIAL})"
    )
