"""Runs the guest's program on this machine itself, in real time: needs root, Mininet, Open vSwitch and the modules.

For cross-checks of virtual time on machines that allow it, and for inspecting a topology by hand.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from bbrlab.base import paths
from bbrlab.base.algorithms import KNOWN
from bbrlab.base.errors import UserError
from bbrlab.experiment.machine.process import PROGRESS, SIGNS_OF_TIME, GuestFailed
from bbrlab.experiment.machine.strain import Gauge
from bbrlab.kernel.built import Kernel

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def ccas(available: list[str]) -> dict[str, str]:
    """What this kernel calls each algorithm: {the field's name: its name}, of the names that it lists as available.

    "bbr" is BBRv1 in mainline and on Google's branch v2alpha, but BBRv3 on the branch v3, which has its BBRv1 as "bbr1".
    """
    names = {name: name for name in KNOWN if name in available}
    if "bbr" in available:
        names.setdefault("bbr3" if "bbr1" in available else "bbr1", "bbr")
    return names


def host_kernel() -> Kernel:
    """This machine's kernel, described like a built one. UserError without root."""
    if os.geteuid() != 0:
        raise UserError(
            "--backend host: builds network namespaces and bridges on this machine, which needs root (try sudo)"
        )
    available = AVAILABLE.read_text(encoding="utf-8").split()
    return Kernel(
        name="host", release=os.uname().release, build_id="host", key="host", image="",
        ccas=ccas(available), parameters={},
        source=os.uname().version, compiler="", build_s=0.0,
    )  # fmt: skip


def run(*, folder: Path, log: Path, on_progress: Callable[[str, str], None], gauge: Gauge) -> None:
    """Run guest.py on this machine, which ``gauge`` observes. GuestFailed with its message if it fails."""
    argv = ["/usr/bin/python3", str(paths.GUEST_CODE / "guest.py"), str(folder)]
    failed = None

    def once(number: int, frame: FrameType | None) -> None:
        """Handle the first Ctrl-C, and ignore others while guest.py cleans up."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if callable(before):
            before(number, frame)  # raises what the command line waits for

    with open(log, "w", encoding="utf-8") as console:
        before = signal.signal(signal.SIGINT, once)
        # In a session of its own: a terminal's Ctrl-C must not reach it, too.
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, start_new_session=True)  # fmt: skip
        try:
            assert process.stdout
            for line in process.stdout:
                match = PROGRESS.match(line.rstrip())
                if match is None or match[1] != "at":
                    console.write(line)
                if match:
                    failed = match[2] if match[1] == "failed" else failed
                    on_progress(match[1], match[2] or "")
                    if match[1] in SIGNS_OF_TIME:
                        gauge.look()
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()  # guest.py takes its own topology down; bridges of the user's stay as they are
            signal.signal(signal.SIGINT, before)
    if process.returncode:
        raise GuestFailed(f"the run on this machine failed: {failed or 'see its log'}; its log is {log}")
