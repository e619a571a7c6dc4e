"""Builds guest kernels, once for each (source version, options, patches, compiler)."""

from __future__ import annotations

import contextlib
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
from bbrlab.kernel.built import Kernel, build_key, kernel_folder, read_kernel
from bbrlab.kernel.compiler import compiler
from bbrlab.kernel.probe import probe_kernel
from bbrlab.kernel.sources import Located, locate
from bbrlab.kernel.specs import KernelSpec, find_spec, recipe

Say = Callable[[str], None]
LOG_TAIL_LINES = 6
LEFTOVER_S = 3600
TARGETS = {"um": ("linux", "linux"), "x86_64": ("bzImage", "arch/x86/boot/bzImage")}  # what to make, where it then is


def build_kernel(name: str | None = None, jobs: int | None = None, say: Say = print) -> Kernel:
    """Build a kernel unless it is there already.

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
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.parent / f"{name}.log"
    _remove_leftovers(folder.parent)
    start = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder.parent) as scratch:
            tree, out = Path(scratch) / "source", Path(scratch) / "out"
            tree.mkdir()
            out.mkdir()
            with open(log, "w", encoding="utf-8") as file:
                steps = _Steps(name, tree, log, file, say)
                _compile(steps, spec, source, jobs or os.cpu_count() or 1)
                shutil.copy2(tree / TARGETS[spec.arch][1], out / "linux")
                shutil.copy2(tree / ".config", out / "config")
                probe = steps.timed("probe", lambda: probe_kernel(out / "linux", spec.arch, log))
            ccas = {field: kernel for field, kernel in spec.names.items() if kernel in probe["ccas"]}
            info = {
                "release": probe["release"],
                "build_id": files.sha256(out / "linux")[:16],
                "key": key,
                "ccas": ccas,
                "parameters": probe["parameters"],
                "source": source.identity,
                "compiler": compiler_line,
                "build_s": round(time.monotonic() - start, 1),
                "acceleration": probe["acceleration"],
            }
            files.write_json(out / "kernel.json", info)
            shutil.rmtree(folder, ignore_errors=True)
            out.replace(folder)
    except OSError as error:
        raise files.explain(error, folder) from None
    kernel = read_kernel(name, key)
    assert kernel is not None
    return kernel


def _remove_leftovers(folder: Path) -> None:
    """Remove the trees of builds that were killed: hidden folders in which nothing has changed for a while."""
    for old in folder.glob(".*"):
        with contextlib.suppress(OSError):
            if time.time() - max(p.stat().st_mtime for p in (old, *old.iterdir())) > LEFTOVER_S:
                shutil.rmtree(old, ignore_errors=True)


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
    """Lines of an option fragment that a .config does not have."""
    have = set(config.splitlines())
    lost = []
    for line in wanted.splitlines():
        off = re.fullmatch(r"# (CONFIG_\w+) is not set", line)
        if off and any(h.startswith(f"{off[1]}=") for h in have) or line.startswith("CONFIG_") and line not in have:
            lost.append(line)
    return lost
