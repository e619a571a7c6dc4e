"""Runs the guest's program on this machine itself, in real time: needs root, Mininet, Open vSwitch and the modules.

A cross-check of virtual time on machines that allow it, and the way to look at a topology by hand.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from bbrlab import paths
from bbrlab.errors import UserError
from bbrlab.guest.machine import PROGRESS, GuestFailed
from bbrlab.kernel import Kernel

NAMES = {"bbr1": "bbr", "cubic": "cubic", "reno": "reno", "dctcp": "dctcp"}
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def host_kernel() -> Kernel:
    """This machine's kernel, described like a built one. UserError without root."""
    if os.geteuid() != 0:
        raise UserError(
            "--backend host: builds network namespaces and bridges on this machine, which needs root (try sudo)"
        )
    available = AVAILABLE.read_text(encoding="utf-8").split()
    return Kernel(
        name="host", release=os.uname().release, build_id="host", key="host", image="",
        ccas={field: name for field, name in NAMES.items() if name in available}, parameters={},
        source=os.uname().version, compiler="", build_s=0.0,
    )  # fmt: skip


def run(*, folder: Path, log: Path, on_progress: Callable[[str, str], None]) -> None:
    """Run guest.py on this machine. GuestFailed with its own words if it fails."""
    argv = ["/usr/bin/python3", str(paths.GUEST_CODE / "guest.py"), str(folder)]
    failed = None
    with open(log, "w", encoding="utf-8") as console:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert process.stdout
            for line in process.stdout:
                match = PROGRESS.match(line.rstrip())
                if match is None or match[1] != "at":
                    console.write(line)
                if match:
                    failed = match[2] if match[1] == "failed" else failed
                    on_progress(match[1], match[2] or "")
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()  # guest.py takes its own topology down; bridges of the user's stay as they are
    if process.returncode:
        raise GuestFailed(f"the run on this machine failed: {failed or 'see its log'}; its log is {log}")
