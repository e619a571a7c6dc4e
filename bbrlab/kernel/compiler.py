"""The C compiler, part of what decides a kernel and the guest's helper."""

from __future__ import annotations

import subprocess

from bbrlab.base.errors import UserError


def compiler() -> str:
    """First line of ``gcc --version``. UserError if there is none."""
    try:
        return subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        raise UserError("no C compiler; run 'make setup', or: apt-get install build-essential") from None
