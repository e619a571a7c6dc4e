"""Snakemake's cache between workflows: how much is in it, and what of it has not been used for long."""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from bbrlab.base import paths
from bbrlab.base.errors import UserError

VARIABLE = "SNAKEMAKE_OUTPUT_CACHE"
# What Snakemake calls the files of an entry: its key, and behind it the output's name.
ENTRY = re.compile(r"^([0-9a-f]{64})(?:[_.].*)?$")
DAY_S = 86400


@dataclass(frozen=True)
class Entry:
    """What the cache holds of one job.

    Attributes:
        files: all of one key.
        size_bytes: together.
        used_s: when one of them was last read or written, in s since 1970; a file system without access times tells when
            it was written.
    """

    files: tuple[Path, ...]
    size_bytes: int
    used_s: float


def cache_folder(given: Path | None = None) -> Path | None:
    """The cache that is configured; None if there is none. UserError for a place that is no folder."""
    text = str(given) if given else os.environ.get(VARIABLE, "")
    if not text:
        return None
    if "://" in text:
        raise UserError(f"{VARIABLE}={text}: only a folder can be looked at and pruned here")
    folder = Path(text).absolute()
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder; make it first: mkdir -p {folder}")
    return folder


def entries(folder: Path) -> list[Entry]:
    """Everything in a cache, what was not used for longest first. What else lies there does not count."""
    grouped: dict[str, list[tuple[Path, os.stat_result]]] = {}
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # somebody else prunes
            if (found := ENTRY.match(path.name)) and path.is_file() and not path.is_symlink():
                grouped.setdefault(found[1], []).append((path, path.stat()))
    made = [
        Entry(
            tuple(sorted(path for path, _ in group)),
            sum(status.st_size for _, status in group),
            max(max(status.st_atime, status.st_mtime) for _, status in group),
        )
        for group in grouped.values()
    ]
    return sorted(made, key=lambda entry: (entry.used_s, entry.files))


def linked(results: Path) -> set[Path]:
    """The files that a folder of results has only as links: they are what a cache holds for it.

    Those of stand-ins (results/replace/) and of comparisons (results/compare/), too.
    """
    found = set()
    for parent, _, names in os.walk(results):
        found |= {p.resolve() for p in (Path(parent, name) for name in names) if p.is_symlink()}
    return found


@dataclass(frozen=True)
class Pruned:
    """What pruning did, or would do.

    Attributes:
        removed: entries that go.
        kept_linked: entries that would go, were results not linked to them.
        left: entries that stay, these among them.
    """

    removed: list[Entry]
    kept_linked: list[Entry]
    left: list[Entry]


def prune(
    folder: Path,
    *,
    older_days: float | None = None,
    largest_bytes: float | None = None,
    keep: list[Path] | None = None,
    dry: bool = False,
    now_s: float | None = None,
) -> Pruned:
    """Remove what was not used for so long, and then what was not used for longest until the rest is small enough.

    Args:
        older_days: None: age alone removes nothing.
        largest_bytes: of what stays; None: any size.
        keep: folders of results; what they link to stays. Default: this checkout's.
        dry: only say what would go.
        now_s: the time that it is, in s since 1970; default: the clock's.
    """
    now_s = time.time() if now_s is None else now_s
    there = entries(folder)
    held = {path for results in (keep if keep is not None else [paths.results_folder()]) for path in linked(results)}
    size = sum(entry.size_bytes for entry in there)
    removed, spared, left = [], [], []
    for entry in there:
        old = older_days is not None and now_s - entry.used_s > older_days * DAY_S
        large = largest_bytes is not None and size > largest_bytes
        if not (old or large):
            left.append(entry)
        elif held & {path.resolve() for path in entry.files}:
            spared.append(entry)
            left.append(entry)
        else:
            removed.append(entry)
            size -= entry.size_bytes
            for path in () if dry else entry.files:
                path.unlink(missing_ok=True)
    return Pruned(removed, spared, left)
