"""What Git says of this package's checkout."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime

from bbrlab.base import paths


def git(*argv: str) -> str | None:
    """What a git command prints; None without Git, outside a repository, or if it fails."""
    try:
        done = subprocess.run(["git", "-C", str(paths.ROOT), *argv], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit_time(commit: str) -> str:
    """When a commit was made, as 2026-11-27T04:39:48Z; empty where Git does not know it.

    Args:
        commit: its name, with "+" behind it where files had been changed.
    """
    seconds = git("show", "--no-patch", "--format=%ct", commit.removesuffix("+"), "--")
    return (
        datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if seconds and seconds.isdigit()
        else ""
    )
