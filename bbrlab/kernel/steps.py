"""The steps of building a guest kernel, timed, with a log, and with messages if one fails."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bbrlab.base.errors import UserError
from bbrlab.kernel.confine import confined
from bbrlab.kernel.specs import KernelSpec

Say = Callable[[str], None]
LOG_TAIL_LINES = 6
TARGETS = {"um": ("linux", "linux"), "x86_64": ("bzImage", "arch/x86/boot/bzImage")}  # what to make, where it then is


ERROR = re.compile(r"(?i)error|fatal|cannot|no space|undefined reference|multiple definition")
MAKE_PROGRESS = re.compile(r"  [A-Z][A-Z0-9_]+ +\S")  # "  CC      lib/error-inject.o"


class StepFailedError(UserError):
    """A command of a build failed."""


class Steps:
    """The steps of a build, each timed and with its output in the log.

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
        """Call ``action``, report its time, and return its result."""
        begin = time.monotonic()
        result = action()
        self.report_time(step, begin)
        return result

    def report_time(self, step: str, begin: float) -> None:
        """Report the time of a step that began at a time of the monotonic clock, in seconds."""
        self.say(f"kernel {self.name}: {step:<18} {time.monotonic() - begin:6.1f} s")

    def run(
        self, step: str, argv: list[str], stdin: Path | None = None, *, quiet: bool = False, at: Path | None = None
    ) -> None:
        """Run a command on others' files in the tree, confined to the files that a compiler needs.

        StepFailedError with its first error messages if it fails.

        Args:
            quiet: do not report its time.
            at: another tree in which it runs, which it may only read.
        """
        temporary = self.tree.with_name("tmp")
        temporary.mkdir(exist_ok=True)
        held = confined.compiler(argv, self.tree, temporary, at)
        self._run(step, argv, held, stdin, {"TMPDIR": str(temporary)}, quiet, at)

    def run_unconfined(self, step: str, argv: list[str]) -> None:
        """The same, unconfined, for a command that fetches or unpacks the source."""
        self._run(step, argv, argv, None, {}, quiet=False)

    def _run(
        self,
        step: str,
        shown: list[str],
        argv: list[str],
        stdin: Path | None,
        settings: dict[str, str],
        quiet: bool,
        at: Path | None = None,
    ) -> None:
        before = len(self.words())

        def action() -> None:
            self.file.write(f"$ {' '.join(shown)}\n")
            self.file.flush()
            # The same binary wherever, whenever and by whomever it is built (KCFLAGS, LLVM and others would change it).
            environment = {k: v for k, v in os.environ.items() if k in {"PATH", "HOME", "TMPDIR"}}
            environment |= {
                "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
                "KBUILD_BUILD_USER": "bbrlab",
                "KBUILD_BUILD_HOST": "bbrlab",
                "LC_ALL": "C",
                **settings,
            }
            with open(stdin or os.devnull, "rb") as source:
                status = _call(
                    argv,
                    lambda: self.say(f"kernel {self.name}: {step} was ended"),
                    cwd=at or self.tree,
                    stdin=source,
                    stdout=self.file,
                    env=environment,
                )
            if status:
                words = self.words()[before + 1 :]
                errors = [line for line in words if ERROR.search(line) and not MAKE_PROGRESS.match(line)]
                raise StepFailedError(
                    f"kernel {self.name}: step '{step}' failed; the log is {self.log}, and says:\n  "
                    + "\n  ".join((errors or words)[:LOG_TAIL_LINES])
                )

        if quiet:
            action()
        else:
            self.timed(step, action)

    def words(self) -> list[str]:
        """The lines of the log so far."""
        self.file.flush()
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()


def _call(argv: list[str], on_end: Callable[[], None], **how: Any) -> int:
    """A command's exit status. All that it started ends with it, also if this is interrupted: nothing of it works on in the tree.

    What is confined cannot leave its group (seccomp.BUILDS_NOT).

    Args:
        on_end: called after it was interrupted.
        how: further arguments of Popen.
    """
    # Who is killed can end nothing: then make gets SIGTERM, which it passes on.
    command = ["setpriv", "--pdeathsig", "TERM", *argv]
    process = subprocess.Popen(command, stderr=subprocess.STDOUT, process_group=0, **how)
    try:
        # Its exit status stays: until it is collected, its group can be nobody else's.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    except BaseException:
        _end(process)
        on_end()
        raise
    return _end(process)


def _end(process: subprocess.Popen[bytes]) -> int:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def make(spec: KernelSpec, *arguments: str) -> list[str]:
    """A call of the kernel's make.

    Whether the machine has a Rust compiler or pahole would show in the configuration, and so in the kernel's build ID.
    """
    return ["make", f"ARCH={spec.arch}", "RUSTC=false", "BINDGEN=false", "PAHOLE=false", *arguments]
