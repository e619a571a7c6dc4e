"""The C compiler, part of what decides a kernel and the guest's helper."""

from __future__ import annotations

import subprocess

from bbrlab.base.errors import UserError
from bbrlab.kernel.recorded import recorded


def compiler() -> str:
    """First line of ``gcc --version``; of an image without a compiler, of the one that its kernels were built with. UserError if
    there is none."""
    try:
        return subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except FileNotFoundError:
        known = recorded()
    except (OSError, subprocess.CalledProcessError):
        known = None
    if known is None:
        raise UserError("no C compiler; run 'make setup', or: apt-get install build-essential")
    return known["compiler"]
