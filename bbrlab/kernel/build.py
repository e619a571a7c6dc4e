"""Builds guest kernels, once for each (source version, options, patches, compiler)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bbrlab.base import files
from bbrlab.base.errors import UserError
from bbrlab.base.owned import lock, owned_folder, remove_abandoned
from bbrlab.kernel.built import Kernel, build_key, kernel_folder, read_kernel
from bbrlab.kernel.compiler import compiler
from bbrlab.kernel.probe import probe_kernel
from bbrlab.kernel.sources import Located, locate
from bbrlab.kernel.specs import KernelSpec, find_spec, recipe

Say = Callable[[str], None]
LOG_TAIL_LINES = 6
PREFIX = ".build-"  # of the folders that kernels are built in
TARGETS = {"um": ("linux", "linux"), "x86_64": ("bzImage", "arch/x86/boot/bzImage")}  # what to make, where it then is


def build_kernel(name: str | None = None, jobs: int | None = None, say: Say = print) -> Kernel:
    """Build a kernel unless it is there already. Of two processes that need the same one, one builds and one waits.

    Args:
        name: entry of kernels.yaml.
        jobs: parallel compilers; default: all cores.
        say: gets one line per step with the time it took.

    Raises:
        UserError: naming the step that failed and the log to read.
    """
    name, spec = find_spec(name)
    source = locate(spec.source, fetch=True, say=lambda text: say(f"kernel {name}: {text}"))
    compiler_line = compiler()
    key = build_key(spec, source.identity, compiler_line)
    if kernel := read_kernel(name, key):
        return kernel
    folder = kernel_folder(key)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock(
            folder.parent / f".{key}.lock",
            lambda: say(f"kernel {name}: another process is building it; waiting for that"),
        ):
            if kernel := read_kernel(name, key):  # what was waited for
                return kernel
            remove_abandoned(folder.parent, PREFIX)
            with owned_folder(folder.parent, PREFIX) as scratch:
                _build(name, spec, source, key, scratch, jobs or os.cpu_count() or 1, say)
                _put(scratch / "out", folder)
    except OSError as error:
        raise files.explain(error, files.place_of(error, folder.parent, Path(tempfile.gettempdir()))) from None
    kernel = read_kernel(name, key)
    assert kernel is not None
    return kernel


def _build(name: str, spec: KernelSpec, source: Located, key: str, scratch: Path, jobs: int, say: Say) -> None:
    """Compile a kernel and try it out; its folder is ``out`` in ``scratch`` then."""
    start = time.monotonic()
    tree, out = scratch / "source", scratch / "out"
    tree.mkdir()
    out.mkdir()
    log = scratch.parent / f"{name}.log"
    with open(log, "w", encoding="utf-8") as file:
        steps = _Steps(name, tree, log, file, say)
        _compile(steps, spec, source, jobs)
        shutil.copy2(tree / TARGETS[spec.arch][1], out / "linux")
        shutil.copy2(tree / ".config", out / "config")
        probe = steps.timed("probe", lambda: probe_kernel(out / "linux", spec.arch, log))
    info = {
        "release": probe["release"],
        "build_id": files.sha256(out / "linux")[:16],
        "key": key,
        "ccas": {field: kernel for field, kernel in spec.names.items() if kernel in probe["ccas"]},
        "parameters": probe["parameters"],
        "modules": {name: module for name, module in probe["modules"].items() if name in spec.names.values()},
        "source": source.identity,
        "compiler": compiler(),
        "build_s": round(time.monotonic() - start, 1),
        "acceleration": probe["acceleration"],
    }
    files.write_json(out / "kernel.json", info)


def _put(new: Path, folder: Path) -> None:
    """Put a whole kernel in its place. A damaged one that is there goes aside first, and away after: what runs it goes on."""
    aside = new.with_name("old")
    if folder.exists():
        folder.replace(aside)
    new.replace(folder)


class _Steps:
    def __init__(self, name: str, tree: Path, log: Path, file: Any, say: Say):
        self.name, self.tree, self.log, self.file, self.say = name, tree, log, file, say

    def timed(self, step: str, action: Callable[[], Any]) -> Any:
        begin = time.monotonic()
        result = action()
        self.say(f"kernel {self.name}: {step:<18} {time.monotonic() - begin:6.1f} s")
        return result

    def run(self, step: str, argv: list[str], stdin: Path | None = None) -> None:
        def action() -> None:
            self.file.write(f"$ {' '.join(argv)}\n")
            self.file.flush()
            # The same binary wherever, whenever and by whomever it is built (KCFLAGS, LLVM and others would change it).
            environment = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "TMPDIR"}}
            environment |= {"KBUILD_BUILD_TIMESTAMP": "2026-01-01", "KBUILD_BUILD_USER": "bbrlab",
                            "KBUILD_BUILD_HOST": "bbrlab", "LC_ALL": "C"}  # fmt: skip
            with open(stdin or os.devnull, "rb") as source:
                done = subprocess.run(argv, cwd=self.tree, stdin=source, stdout=self.file, stderr=subprocess.STDOUT,
                                      env=environment, check=False)  # fmt: skip
            if done.returncode:
                self.file.flush()
                lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
                errors = [line for line in lines if re.search(r"(?i)error|fatal|cannot|no space", line)]
                tail = (errors or lines)[:LOG_TAIL_LINES]
                raise UserError(
                    f"kernel {self.name}: step '{step}' failed; the log is {self.log}, and says:\n  "
                    + "\n  ".join(tail)
                )

        self.timed(step, action)


def _compile(steps: _Steps, spec: KernelSpec, source: Located, jobs: int) -> None:
    parts = recipe(spec)
    source.unpack(steps.tree, steps.run)
    for patch in parts.patches:
        step = f"patch {patch.parent.name}/{patch.name[:4]}"
        steps.run(step, ["patch", "-p1", "--forward", "--fuzz=0"], stdin=patch)
    for path, target in parts.added:
        shutil.copy(path, steps.tree / target / path.name)
    fragment = steps.tree / "bbrlab.config"
    fragment.write_text("".join(o.read_text(encoding="utf-8") for o in parts.options), encoding="utf-8")
    # Whether the machine has a Rust compiler or pahole would show in the configuration, and so in the kernel's build ID.
    make = ["make", f"ARCH={spec.arch}", "RUSTC=false", "BINDGEN=false", "PAHOLE=false"]
    steps.run("configure", [*make, f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig"])
    lost = lost_options(fragment.read_text(encoding="utf-8"), (steps.tree / ".config").read_text(encoding="utf-8"))
    if lost:
        raise UserError(
            f"kernel {steps.name}: these options of kernels/options/ are not possible with this source: {', '.join(lost)}; "
            "add what they depend on, or remove them"
        )
    steps.run("compile", [*make, f"-j{jobs}", TARGETS[spec.arch][0]])


def lost_options(wanted: str, config: str) -> list[str]:
    """Lines of option fragments that a .config does not have. Of two lines about one option the later one counts."""
    have = set(config.splitlines())
    last: dict[str, str] = {}
    for line in wanted.splitlines():
        if found := re.fullmatch(r"# (CONFIG_\w+) is not set|(CONFIG_\w+)=.*", line):
            last[found[1] or found[2]] = line
    return [
        line
        for option, line in last.items()
        if (any(h.startswith(f"{option}=") for h in have) if line.startswith("#") else line not in have)
    ]
