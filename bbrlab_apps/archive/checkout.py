"""This package's sources at a commit, out of Git."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bbrlab.base import files, paths
from bbrlab.base.errors import UserError


@dataclass(frozen=True)
class Member:
    """A file of the archive: on disk (``path``), in memory (``data``), or a link to another (``link``)."""

    name: str
    path: Path | None = None
    data: bytes = b""
    executable: bool = False
    link: str = ""

    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size if self.path else len(self.data)

    def digest(self) -> str:
        """SHA-256."""
        return files.sha256(self.path) if self.path else hashlib.sha256(self.data).hexdigest()

    def open(self) -> IO[bytes]:
        """Its content."""
        return open(self.path, "rb") if self.path else io.BytesIO(self.data)


@dataclass(frozen=True)
class Commit:
    """A commit."""

    name: str  # 40 digits
    time_s: int  # when it was made, seconds since 1970
    day: str  # the same as a date (UTC)


def commit_of(checkout: Path = paths.ROOT, apart_from: Sequence[Path] = ()) -> Commit:
    """The commit that is checked out. UserError without Git or a commit, or if a file is not as the commit has it.

    Args:
        apart_from: folders whose files may be unknown to Git.
    """
    top = _run(checkout, "rev-parse", "--show-toplevel")
    if top.returncode or Path(top.stdout.decode().strip()).resolve() != checkout.resolve():
        words = f" ({top.stderr.decode(errors='replace').strip().splitlines()[0]})" if top.stderr.strip() else ""
        raise UserError(
            f"{checkout}: is no Git checkout{words}, so no commit says which sources these are; clone bbrlab with git, and "
            "name the results with --results"
        )
    shown = _git(checkout, "show", "-s", "--format=%H %ct %cd", "--date=format-local:%Y-%m-%d", "HEAD", TZ="UTC")
    if shown is None:
        raise UserError(f"{checkout}: Git has no commit yet; commit the sources first")
    changed = _changed(checkout, apart_from)
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise UserError(
            f"{checkout / changed[0]}{more}: not as in a commit, so that nobody could get these sources; commit it, or "
            "remove it (git status)"
        )
    name, seconds, day = shown.decode().split()
    return Commit(name, int(seconds), day)


def _changed(checkout: Path, apart_from: Sequence[Path]) -> list[str]:
    status = _git(checkout, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all") or b""
    entries = [(line[:2], line[3:]) for line in status.decode(errors="surrogateescape").split("\0") if line]
    apart = [folder.absolute() for folder in apart_from]
    return [
        name
        for kind, name in entries
        if not (kind == "??" and any((checkout / name).absolute().is_relative_to(folder) for folder in apart))
    ]


def sources(commit: Commit, checkout: Path = paths.ROOT) -> list[Member]:
    """Every file of a commit, in the order of the names."""
    packed = _git(checkout, "archive", "--format=tar", commit.name)
    if packed is None:
        raise UserError(f"{checkout}: git archive {commit.name[:10]} failed; look at it with git fsck")
    source_files = []
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        for entry in tar:
            file = tar.extractfile(entry) if entry.isfile() else None
            if file is not None:
                source_files.append(Member(entry.name, data=file.read(), executable=bool(entry.mode & 0o100)))
            elif entry.issym():
                source_files.append(Member(entry.name, link=entry.linkname))
    return sorted(source_files, key=lambda one: one.name)


def _git(checkout: Path, *arguments: str, **environment: str) -> bytes | None:
    """Git's output; None if it fails. UserError without Git."""
    done = _run(checkout, *arguments, **environment)
    return done.stdout if done.returncode == 0 else None


def _run(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    variables = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", **environment}
    try:
        return subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, check=False, env=variables)
    except FileNotFoundError:
        raise UserError("git is not installed; run: apt-get install git") from None
