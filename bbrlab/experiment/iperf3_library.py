"""Compiles the small C libraries that are preloaded into iperf3 and Open vSwitch in the guest."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.kernel.built_with import compiler

LIBRARY = "iperf3_patience.so"
TOGETHER = "iperf3_together.so"  # of clients whose streams begin together
OVS_CLOCK = "ovs_clock.so"  # of a guest in real time
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]


def library_folder() -> Path:
    """The folder of the compiled helpers, which are compiled if needed. UserError with the compiler's messages."""
    sources = [paths.GUEST_CODE / f"{Path(name).stem}.c" for name in (LIBRARY, TOGETHER, OVS_CLOCK)]
    text = b"\0".join(source.read_bytes() for source in sources) + "\0".join([compiler(), *FLAGS]).encode()
    folder = paths.build_folder() / "guest" / hashlib.sha256(text).hexdigest()[:16]
    for source in sources:
        library = folder / f"{source.stem}.so"
        if library.exists():
            continue
        with files.aside(library) as temporary:
            done = subprocess.run(["gcc", *FLAGS, "-o", str(temporary), str(source), "-ldl"], capture_output=True,
                                  text=True, check=False)  # fmt: skip
            if done.returncode:
                raise UserError(f"{source}: does not compile:\n{done.stderr}")
        library.chmod(0o755)
    return folder
