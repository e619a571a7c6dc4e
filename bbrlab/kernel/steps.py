"""The steps of which a guest kernel is built, each with its time, its log and its words if it fails."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.kernel.confine import confined
from bbrlab.kernel.sources import Located
from bbrlab.kernel.specs import KernelSpec, recipe

Say = Callable[[str], None]
LOG_TAIL_LINES = 6
TARGETS = {"um": ("linux", "linux"), "x86_64": ("bzImage", "arch/x86/boot/bzImage")}  # what to make, where it then is


class Steps:
    """The steps of a build, each timed and with its words in the log.

    Args:
        name: what is built.
        tree: the source tree that commands run in.
        log: the log's path.
        file: the same, open for writing.
        say: gets one line per step with the time it took.
    """

    def __init__(self, name: str, tree: Path, log: Path, file: Any, say: Say):
        self.name, self.tree, self.log, self.file, self.say = name, tree, log, file, say

    def timed(self, step: str, action: Callable[[], Any]) -> Any:
        """What ``action`` returns; says how long it took."""
        begin = time.monotonic()
        result = action()
        self.say(f"kernel {self.name}: {step:<18} {time.monotonic() - begin:6.1f} s")
        return result

    def run(self, step: str, argv: list[str], stdin: Path | None = None) -> None:
        """Run a command in the tree that reads what others wrote: no more of this machine's files than a compiler needs.

        UserError with the log's first words about errors if it fails.
        """
        temporary = self.tree.with_name("tmp")
        temporary.mkdir(exist_ok=True)
        self._run(step, argv, confined.compiler(argv, self.tree, temporary), stdin, {"TMPDIR": str(temporary)})

    def run_freely(self, step: str, argv: list[str]) -> None:
        """The same for a command that gets the source from where it is."""
        self._run(step, argv, argv, None, {})

    def _run(self, step: str, shown: list[str], argv: list[str], stdin: Path | None, settings: dict[str, str]) -> None:
        def action() -> None:
            self.file.write(f"$ {' '.join(shown)}\n")
            self.file.flush()
            # The same binary wherever, whenever and by whomever it is built (KCFLAGS, LLVM and others would change it).
            environment = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "TMPDIR"}}
            environment |= {"KBUILD_BUILD_TIMESTAMP": "2026-01-01", "KBUILD_BUILD_USER": "bbrlab",
                            "KBUILD_BUILD_HOST": "bbrlab", "LC_ALL": "C", **settings}  # fmt: skip
            with open(stdin or os.devnull, "rb") as source:
                status = _call(argv, lambda: self.say(f"kernel {self.name}: {step} was ended; removing what was begun"),
                               cwd=self.tree, stdin=source, stdout=self.file, env=environment)  # fmt: skip
            if status:
                lines = self.words()
                errors = [line for line in lines if re.search(r"(?i)error|fatal|cannot|no space", line)]
                tail = (errors or lines)[:LOG_TAIL_LINES]
                raise UserError(
                    f"kernel {self.name}: step '{step}' failed; the log is {self.log}, and says:\n  "
                    + "\n  ".join(tail)
                )

        self.timed(step, action)

    def words(self) -> list[str]:
        """The lines of the log so far."""
        self.file.flush()
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()


def _call(argv: list[str], on_end: Callable[[], None], **how: Any) -> int:
    """A command's exit status. If this is interrupted, all that it started ends with it; else make's compilers would go on.

    Args:
        on_end: called once it was ended so.
        how: further arguments of Popen.
    """
    # Who is killed can end nothing: then make gets SIGTERM, which it passes on.
    command = ["setpriv", "--pdeathsig", "TERM", *argv]
    process = subprocess.Popen(command, stderr=subprocess.STDOUT, process_group=0, **how)
    try:
        return process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        on_end()
        raise


def make(spec: KernelSpec, *arguments: str) -> list[str]:
    """A call of the kernel's make.

    Whether the machine has a Rust compiler or pahole would show in the configuration, and so in the kernel's build ID.
    """
    return ["make", f"ARCH={spec.arch}", "RUSTC=false", "BINDGEN=false", "PAHOLE=false", *arguments]


def compile_kernel(steps: Steps, spec: KernelSpec, source: Located, jobs: int) -> None:
    """Unpack, patch, configure and compile a kernel in the steps' tree. UserError naming the step that failed."""
    parts = recipe(spec)
    source.unpack(steps.tree, steps.run_freely)
    for patch in [*parts.patches, *parts.host_patches]:
        step = f"patch {patch.parent.name}/{patch.name[:4]}"
        steps.run(step, ["patch", "-p1", "--forward", "--fuzz=0"], stdin=patch)
    for path, target in parts.added:
        shutil.copy(path, steps.tree / target / path.name)
    fragment = steps.tree / "bbrlab.config"
    fragment.write_text("".join(o.read_text(encoding="utf-8") for o in parts.options), encoding="utf-8")
    steps.run("configure", make(spec, f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig"))
    lost = lost_options(fragment.read_text(encoding="utf-8"), (steps.tree / ".config").read_text(encoding="utf-8"))
    if lost:
        raise UserError(
            f"kernel {steps.name}: these options of kernels/options/ are not possible with this source: {', '.join(lost)}; "
            "add what they depend on, or remove them"
        )
    steps.run("compile", make(spec, f"-j{jobs}", TARGETS[spec.arch][0]))


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
