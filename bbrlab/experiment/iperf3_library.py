"""Compiles the small C library that iperf3 is run with inside the guest."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError
from bbrlab.kernel.compiler import compiler

SOURCE = "iperf3_patience.c"
LIBRARY = "iperf3_patience.so"
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]


def library_folder() -> Path:
    """The folder that holds the compiled helper, compiling it if needed. UserError with the compiler's words."""
    source = paths.GUEST_CODE / SOURCE
    text = source.read_bytes() + "\0".join([compiler(), *FLAGS]).encode()
    folder = paths.build_folder() / "guest" / hashlib.sha256(text).hexdigest()[:16]
    library = folder / LIBRARY
    if not library.exists():
        with files.aside(library) as temporary:
            done = subprocess.run(["gcc", *FLAGS, "-o", str(temporary), str(source), "-ldl"], capture_output=True,
                                  text=True, check=False)  # fmt: skip
            if done.returncode:
                raise UserError(f"{source}: does not compile:\n{done.stderr}")
        library.chmod(0o755)
    return folder
