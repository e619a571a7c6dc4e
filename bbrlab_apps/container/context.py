"""The files of the checkout that go into the image, as .dockerignore chooses them."""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase
from pathlib import Path

from bbrlab.base import paths

ANYWHERE = "**/"


def context_files(root: Path | None = None) -> list[Path]:
    """Every file of the context, sorted. .dockerignore names what goes in (``!name``) and what never does (``**/name``)."""
    root = root or paths.ROOT
    lines = (root / ".dockerignore").read_text(encoding="utf-8").splitlines()
    chosen = [line[1:] for line in lines if line.startswith("!")]
    never = [line.removeprefix(ANYWHERE) for line in lines if line.startswith(ANYWHERE)]
    files: list[Path] = []
    for name in chosen:
        place = root / name
        below = sorted(place.rglob("*")) if place.is_dir() else [place]
        files += [path for path in below if path.is_file() and not _matches(path.relative_to(root), never)]
    return sorted(files)


def _matches(path: Path, patterns: list[str]) -> bool:
    return any(fnmatchcase(part, pattern) for part in path.parts for pattern in patterns)


def context_digest(root: Path | None = None) -> str:
    """SHA-256 of the names, contents and permissions of context_files()."""
    root = root or paths.ROOT
    digest = hashlib.sha256()
    for path in context_files(root):
        mode = "x" if path.stat().st_mode & 0o100 else "-"
        digest.update(f"{path.relative_to(root)}\0{mode}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
