"""Compiles a kernel in its source tree: patches, configuration, make."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.kernel import beneath
from bbrlab.kernel.options import CCAS, check_config, fragment_of, options_off
from bbrlab.kernel.probe import probe_kernel
from bbrlab.kernel.series import apply_series
from bbrlab.kernel.source_tree import SourceTree, source_tree, source_trees
from bbrlab.kernel.sources import Located
from bbrlab.kernel.specs import KernelSpec, OwnSpec, recipe
from bbrlab.kernel.steps import TARGETS, Say, Steps, make

ALWAYS = "net/ipv4/tcp_cong.o"  # an object that every kernel has
FRAGMENT = "bbrlab.config"  # in a source tree: the lines that its configuration must have
LISTS = re.compile(r"(?m)^([\w-]+?)-(?:y|objs|\$\((CONFIG_\w+)\))[ \t]*[:+]?=(.*)$")  # obj-$(CONFIG_X) += a.o b.o


@contextlib.contextmanager
def compiled(
    name: str,
    spec: KernelSpec,
    source: Located,
    log: Path,
    jobs: int,
    say: Say,
    on_first: Callable[[Path], None] | None = None,
) -> Iterator[tuple[Path, Path, dict[str, Any]]]:
    """A source tree in which a kernel was compiled, the kernel, and the result of probe_kernel(). The block may move the tree away.

    If a step fails, the tree stays, and the next build from this source continues in it. UserError naming the step that failed and
    the log to read; if the kernel lacks what its names promise.

    Args:
        name, spec, source: of the kernel.
        log: of the build, written anew.
        jobs: parallel compilers.
        say: gets one line per step.
        on_first: as of compile_kernel().
    """
    source_trees().mkdir(parents=True, exist_ok=True)
    with open(log, "w", encoding="utf-8") as file:
        outside = Steps(name, source_trees(), log, file, say)

        def wait() -> None:
            say(f"kernel {name}: another process is at the tree of this source; waiting for that")

        with source_tree(source, spec.arch, owner_of(name, spec), outside.run_unconfined, wait) as tree:
            if tree.reused:
                say(f"kernel {name}: goes on in {tree.folder}: only what differs is compiled")
            steps = Steps(name, tree.source, log, file, say)
            compile_kernel(steps, spec, source, tree, jobs, on_first)
            image = tree.folder / "image"  # nothing that make left can change it there
            beneath.copy(tree.source, TARGETS[spec.arch][1], image)
            probe = steps.timed("probe", lambda: probe_kernel(image, spec.arch, log, own=spec.foreign))
            check_promised_ccas(name, spec, probe, tree.source)
            yield tree.source, image, probe


def owner_of(name: str, spec: KernelSpec) -> str:
    """The series whose tree a kernel is compiled in: its name and the files of its patches, "" if it has no code of others.

    Not what is in the files: who changes his own patch and tries again goes on in his tree. Another one's patch is another file."""
    return json.dumps([name, *(str(path.resolve()) for path in recipe(spec).series)]) if spec.foreign else ""


def compile_kernel(
    steps: Steps,
    spec: KernelSpec,
    source: Located,
    tree: SourceTree,
    jobs: int,
    on_first: Callable[[Path], None] | None = None,
) -> None:
    """Patch, configure and compile a kernel in a source tree, patched files first. UserError naming the step that failed.

    Args:
        on_first: called with the tree when its first files are compiled, one of the network code among them, before all others.
    """
    parts = recipe(spec)
    touched = apply_series(steps, tree, parts, source.identity)
    if spec.foreign and (lacking := absent_ccas(spec, tree.source)):
        raise UserError(
            f'kernel {steps.name}: no file of net/ has the name "{lacking[0]}" of an algorithm, which its names promise '
            f"({', '.join(f'{field}={cca}' for field, cca in spec.names.items() if cca in lacking)}): the source, or a patch, is another "
            "one, or the algorithm is called otherwise there (--names)"
        )
    wanted = fragment_of(spec, parts, tree.source)
    beneath.write(tree.source, FRAGMENT, wanted.encode())
    beneath.remove(tree.source, ".version")  # the count of builds in this tree, which would show in the kernel
    steps.run("configure", make(spec, f"KCONFIG_ALLCONFIG={tree.source / FRAGMENT}", "allnoconfig"))
    check_config(steps.name, wanted, parts.settings, tree.source, source.identity)
    for cca, options in switched_off(spec, tree.source).items():
        promised = ", ".join(f"{field}={name}" for field, name in spec.names.items() if name == cca)
        raise UserError(
            f"kernel {steps.name}: {cca}, which its names promise ({promised}), would not be compiled: {' and '.join(options)} "
            f"{'is' if len(options) == 1 else 'are'} off; {_remedy(spec, options)}"
        )
    if objects := [*objects_of(touched, tree.source), *([ALWAYS] if on_first else [])]:
        steps.run("compile: first", make(spec, f"-j{jobs}", *objects))
    if on_first:
        on_first(tree.source)
    steps.run("compile", make(spec, f"-j{jobs}", TARGETS[spec.arch][0]))


def _remedy(spec: KernelSpec, options: list[str]) -> str:
    if isinstance(spec, OwnSpec):
        return f"add {' '.join(f'--option {option}=y' for option in options)}"
    return "add a fragment of kernels/options/ to its entry in which they are on"


def objects_of(names: Iterable[str], tree: Path) -> list[str]:
    """The objects that the configured tree compiles from C files, as targets of make, as far as its Makefiles list them plainly.

    Without those of arch/: before Linux 6.2 make finds an object of arch/um/os-Linux in arch/um, too, and compiles it as the kernel's.
    """
    on = _options_on(tree)
    objects = []
    for name in names:
        path = PurePosixPath(name)
        if (
            path.suffix == ".c"
            and path.parts[0] != "arch"
            and beneath.is_file(tree, name)
            and _is_built(path.stem, _makefile(tree, path.parent), on)
        ):
            objects.append(name.removesuffix(".c") + ".o")
    return objects


def _is_built(stem: str, makefile: str, on: set[str]) -> bool:
    """Whether a Makefile has an object in its list, or in that of one that it builds."""
    return _options_of(stem, makefile, on) == []


def _options_of(stem: str, makefile: str, on: set[str]) -> list[str] | None:
    """The options that are off and with which a Makefile builds an object; None if it does not list the object."""
    for whole, option, objects in LISTS.findall(makefile):
        if f"{stem}.o" in objects.split():
            above = [] if whole == "obj" else _options_of(whole, makefile, on)
            return None if above is None else [option] * (bool(option) and option not in on) + above
    return None


def switched_off(spec: KernelSpec, tree: Path) -> dict[str, list[str]]:
    """{CCA that a kernel's names promise: the options without which its file is not compiled}, of those that the configured tree
    plainly leaves out."""
    on = _options_on(tree)
    folder = PurePosixPath(CCAS).parent
    names = [PurePosixPath(n) for n in beneath.files(tree, str(folder))]
    files = {p: beneath.read_text(tree, str(p)) for p in sorted(names) if p.parent == folder and p.suffix == ".c"}
    makefile = _makefile(tree, folder)
    options_of = {}
    for cca in dict.fromkeys(spec.names.values()):
        named = [p for p, text in files.items() if re.search(rf'\bname\s*=\s*"{re.escape(cca)}"', text)]
        options = [_options_of(p.stem, makefile, on) for p in named]
        if options and all(options):
            options_of[cca] = options[0] or []
    return options_of


def _options_on(tree: Path) -> set[str]:
    config = beneath.read_text(tree, ".config").splitlines()
    return {line.removesuffix("=y") for line in config if line.endswith("=y")}


def _makefile(tree: Path, folder: PurePosixPath) -> str:
    name = str(folder / "Makefile")
    return beneath.read_text(tree, name).replace("\\\n", " ") if beneath.is_file(tree, name) else ""


def absent_ccas(spec: KernelSpec, tree: Path) -> list[str]:
    """The algorithms that a kernel's names promise and whose names no file of the tree's network code has in quotation marks."""
    left = dict.fromkeys(spec.names.values())
    names = [name for name in beneath.files(tree, "net") if name.endswith((".c", ".h"))]
    for name in sorted(names, key=lambda name: PurePosixPath(name).parent.name != "ipv4"):
        if not left:
            break
        text = beneath.read_text(tree, name)
        left = {cca: None for cca in left if f'"{cca}"' not in text}
    return list(left)


def check_promised_ccas(name: str, spec: KernelSpec, probe: dict[str, Any], tree: Path) -> None:
    """UserError if a kernel lacks an algorithm that its names promise, with options that may be off.

    Args:
        name: of the kernel.
        probe: result of probe_kernel().
        tree: that it was compiled in.
    """
    missing = {field: cca for field, cca in spec.names.items() if cca not in probe["ccas"]}
    if not missing:
        return
    promised = ", ".join(f"{field}={cca}" for field, cca in missing.items())
    off = options_off(tree)
    called = [option for option in off if any(cca.upper() in option for cca in missing.values())]
    which = (
        f"an option may be off: {', '.join(called or off)} (--option {(called or off)[0]}=y, or a fragment in kernels/options/)"
        if off
        else "no option for one is off"
    )
    raise UserError(
        f"kernel {name}: has no {', '.join(missing.values())}, which its names promise ({promised}); it has {', '.join(probe['ccas'])}; "
        f"{which}; or give the names that it has (--names)"
    )
